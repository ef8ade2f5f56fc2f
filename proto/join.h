/* join.h: joining a fleet with a token: one question, one answer; for the worker and the operator's command.
 *
 * The key is the caller's and never travels. Nothing is sent before the other side has shown that its authority is the token's. */
#ifndef MAKESPAN_PROTO_JOIN_H
#define MAKESPAN_PROTO_JOIN_H

#include "common/attr.h"
#include "common/vocab.h"
#include "proto/close.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct join;
struct loop;
struct pki_cert;
struct pki_key;
struct token;

struct join_request {
    const char *address;       /* "HOST:PORT" */
    const struct token *token; /* as all of these borrowed for the call */
    const struct pki_key *key; /* borrowed until the answer */
    enum role role;            /* WORKER; or VIEWER: an operator, of whatever role the token gives */
    const char *name;
    const char *machine_id; /* NULL: none */
    bool late_clock_ok;     /* this host's clock may be before the certificates' beginning (a worker) */
};

struct join_answer {
    int code;                  /* 0: joined; else negative */
    enum close_reason reason;  /* of a failure */
    const char *text;          /* sentence of a failure: why, and what to do; "" */
    const struct pki_cert *cert;
    const struct pki_cert *authority;
    const char *name;
    const char *fleet;
    const char *const *warnings;
    size_t warning_count;
};

/* Called once, from a later turn; everything is borrowed for the call, after which the join is gone. */
typedef void join_f(const struct join_answer *answer, void *arg);

/* 0 and *out, or a negative code with text: the address is malformed, TLS cannot be set up. */
int join_start(struct loop *loop, const struct join_request *request, join_f *f, void *arg, struct join **out, struct diag *diag) MUST_CHECK;
/* Forgets it without an answer. NULL inside is fine. */
void join_cancel(struct join **join);

#endif
