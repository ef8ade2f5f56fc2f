/* identity.h: who this worker is: the files that joining left, and TLS made from them. */
#ifndef MAKESPAN_WORKER_IDENTITY_H
#define MAKESPAN_WORKER_IDENTITY_H

#include "common/attr.h"

#include <stdint.h>

struct diag;
struct tls;

/* Files in the worker's folder. The key is made there, with mode 0600, and never leaves it. */
#define IDENTITY_KEY "key.pem"
#define IDENTITY_CERT "cert.pem"
#define IDENTITY_AUTHORITY "authority.pem"

/* The simulation fills one in by hand, without TLS. */
struct identity {
    char name[65];
    char fleet[65];
    int64_t cert_end_s;
    /* When the coordinator was last heard, by its clock; the agent keeps it up to date. */
    int64_t heard_s;
    struct tls *tls;
};

/* Reads the three files. -ERR_NOTFOUND with what to do when this host has not joined; -ERR_CONFLICT
 * when they do not belong together. `out` must stay where it is as long as its TLS is used: dates
 * are checked with the latest of this host's clock, out->heard_s and the date of the build. */
int identity_load(const char *dir, struct identity *out, struct diag *diag) MUST_CHECK;
void identity_fini(struct identity *identity);

/* That latest time, in seconds since 1970. */
int64_t identity_now_s(const struct identity *identity);

#endif
