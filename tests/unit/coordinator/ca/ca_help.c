/* ca_help.c: a fleet in a folder of its own. */
#include "tests/unit/coordinator/ca/ca_help.h"

#include "common/diag.h"
#include "coordinator/store/store.h"
#include "proto/pki.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

void fleet_open(struct fleet *fleet)
{
    box_open(&fleet->box);
    snprintf(fleet->operator_dir, sizeof(fleet->operator_dir), "%s/operator", fleet->box.dir);
    struct ca_init init = {.dir = fleet->box.dir,
                           .fleet = "lab",
                           .operator_dir = fleet->operator_dir,
                           .operator_name = "alice",
                           .store = fleet->box.store,
                           .wall_ns = NOW_NS};
    cr_assert_eq(ca_init(&init, fleet->box.diag), 0, "%s", diag_first(fleet->box.diag));
    cr_assert_eq(ca_open(fleet->box.dir, fleet->box.store, NOW_NS, &fleet->ca, fleet->box.diag), 0,
                 "%s", diag_first(fleet->box.diag));
}

void fleet_close(struct fleet *fleet)
{
    ca_close(&fleet->ca);
    box_close(&fleet->box);
}

void joiner_init(struct joiner *joiner, enum role role, const char *name)
{
    memset(joiner, 0, sizeof(*joiner));
    cr_assert_eq(pki_key_make(&joiner->key, NULL), 0);
    cr_assert_eq(pki_request_make(joiner->key, &joiner->csr, NULL), 0);
    joiner->request.role = role;
    joiner->request.name = name;
    joiner->request.csr = joiner->csr.data;
    joiner->request.csr_len = joiner->csr.len;
    joiner->request.token_id = joiner->token.id;
    joiner->request.secret = joiner->token.secret;
}

void joiner_fini(struct joiner *joiner)
{
    pki_key_free(&joiner->key);
    buf_fini(&joiner->csr);
}

void joiner_token(struct fleet *fleet, struct joiner *joiner, enum role role, const char *name)
{
    char text[CA_TOKEN_TEXT];
    struct ca_token_request request = {
        .role = role, .name = name, .ttl_ns = DAY_NS, .made_by = "alice"};
    cr_assert_eq(ca_token_make(fleet->ca, &request, NOW_NS, text, fleet->box.diag), 0, "%s",
                 said(fleet));
    cr_assert_eq(token_parse(text, &joiner->token, fleet->box.diag), 0);
}

int joiner_join_at(struct fleet *fleet, struct joiner *joiner, int64_t wall_ns)
{
    diag_clear(fleet->box.diag);
    if (joiner->request.wall_ns == 0) {
        joiner->request.wall_ns = wall_ns;
    }
    return ca_join(fleet->ca, &joiner->request, wall_ns, &joiner->grant, &joiner->reason,
                   fleet->box.diag);
}

int joiner_join(struct fleet *fleet, struct joiner *joiner)
{
    return joiner_join_at(fleet, joiner, NOW_NS);
}

const char *said(const struct fleet *fleet)
{
    return diag_first(fleet->box.diag);
}
