/* home.h: the operator's configuration directory: identity and address of the coordinator. */
#ifndef MAKESPAN_COORDINATOR_CTL_HOME_H
#define MAKESPAN_COORDINATOR_CTL_HOME_H

#include "common/attr.h"
#include "common/fileio.h"

#include <stddef.h>

struct diag;
struct pki_cert;
struct pki_key;

/* $MAKESPAN_HOME, else $XDG_CONFIG_HOME/makespan, else ~/.config/makespan. 0 or a negative code with text. */
int home_find(char *dst, size_t room, struct diag *diag) MUST_CHECK;

struct home_identity {
    struct pki_key *key;
    struct pki_cert *cert;
    struct pki_cert *authority;
};
/* Reads operator.key, operator.crt and ca.crt; a missing one says how to get an identity. */
int home_read_identity(const char *home, struct home_identity *out, struct diag *diag) MUST_CHECK;
void home_free_identity(struct home_identity *id);
/* Reads or writes `address`. Without the file: "127.0.0.1:7443". */
int home_read_address(const char *home, char *dst, size_t room, struct diag *diag) MUST_CHECK;
int home_write_address(const char *home, const char *address, struct diag *diag) MUST_CHECK;

#endif
