/* ca_help.h: a fleet in a folder of its own, and who wants to join it. For the tests of ca/. */
#ifndef MAKESPAN_TESTS_CA_HELP_H
#define MAKESPAN_TESTS_CA_HELP_H

#include "common/buf.h"
#include "coordinator/ca/ca.h"
#include "proto/token.h"
#include "tests/unit/coordinator/store/store_help.h"

#include <stdint.h>

/* 2026-11-30, in nanoseconds. */
#define NOW_NS (INT64_C(1796000000) * 1000000000)
#define DAY_NS (INT64_C(86400) * 1000000000)

struct fleet {
    struct box box;
    char operator_dir[160];
    struct ca *ca;
};

/* Made at NOW_NS. */
void fleet_open(struct fleet *fleet);
void fleet_close(struct fleet *fleet);

/* One that joins, with a key of its own. */
struct joiner {
    struct pki_key *key;
    struct buf csr;
    struct token token;
    struct ca_request request;
    struct ca_grant grant;
    enum close_reason reason;
};

void joiner_init(struct joiner *joiner, enum role role, const char *name);
void joiner_fini(struct joiner *joiner);
/* Makes a token and takes it. name NULL: any. */
void joiner_token(struct fleet *fleet, struct joiner *joiner, enum role role, const char *name);
/* Asks at that time by both clocks; the result of ca_join(). */
int joiner_join_at(struct fleet *fleet, struct joiner *joiner, int64_t wall_ns);
int joiner_join(struct fleet *fleet, struct joiner *joiner);
/* The last sentence that was said. */
const char *said(const struct fleet *fleet);

#endif
