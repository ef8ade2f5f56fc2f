/* coord_test.c: a coordinator starts where a fleet is, and says why where it cannot. */
#include "coordinator/coord.h"

#include "common/err.h"
#include "common/fileio.h"
#include "common/mem.h"
#include "tests/unit/whole/house.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect_start_fails(struct house *h, int code, const char *part)
{
    struct coord *c = NULL;
    diag_clear(h->diag);
    int err = coord_new(h->loop, &h->conf, NULL, &c, h->diag);
    cr_expect_eq(err, -code, "%s: %s", err_name(err), diag_first(h->diag));
    cr_expect_null(c);
    EXPECT_HAS(diag_first(h->diag), part);
}

static const char *in(const struct house *h, const char *name)
{
    static char path[300];
    snprintf(path, sizeof(path), "%s/%s", h->dir, name);
    return path;
}

Test(coord, needs_a_fleet)
{
    struct house h;
    house_init(&h);
    free(h.conf.dir);
    h.conf.dir = mem_xstrdup(h.operator_dir);
    expect_start_fails(&h, ERR_NOTFOUND, "make one with `makespan init`");
    house_fini(&h);
}

Test(coord, needs_its_authority)
{
    struct house h;
    house_init(&h);
    cr_assert_eq(file_remove(in(&h, "ca.key")), 0);
    expect_start_fails(&h, ERR_NOTFOUND, "there is no authority here: `makespan init` makes one");
    house_fini(&h);
}

Test(coord, refuses_a_database_that_is_none)
{
    struct house h;
    house_init(&h);
    char text[4096];
    memset(text, 'x', sizeof(text));
    cr_assert_eq(file_write_atomic(in(&h, "makespan.db"), text, sizeof(text), 0600), 0);
    expect_start_fails(&h, ERR_CORRUPT, "makespan.db");
    house_fini(&h);
}

Test(coord, says_which_address_it_cannot_have)
{
    struct house h, other;
    house_init(&h);
    house_start(&h);
    house_init(&other);
    free(other.conf.listen);
    other.conf.listen = mem_xstrdup(h.address);
    struct coord *c = NULL;
    cr_expect_lt(coord_new(other.loop, &other.conf, NULL, &c, other.diag), 0);
    cr_expect_null(c);
    EXPECT_HAS(diag_first(other.diag), h.address);
    free(other.conf.listen);
    other.conf.listen = mem_xstrdup("nowhere");
    diag_clear(other.diag);
    cr_expect_lt(coord_new(other.loop, &other.conf, NULL, &c, other.diag), 0);
    EXPECT_HAS(diag_first(other.diag), "nowhere");
    house_fini(&other);
    house_fini(&h);
}

Test(coord, makes_a_lost_certificate_of_its_own_again)
{
    struct house h;
    struct ident p6;
    house_init(&h);
    cr_assert_eq(file_remove(in(&h, "server.crt")), 0);
    house_start(&h);
    house_admit(&h, ROLE_WORKER, "p6", &p6);
    house_welcome(&h, &p6);
    house_fini(&h);
    ident_free(&p6);
}

Test(coord, starts_and_stops_again_and_again)
{
    struct house h;
    struct ident p6;
    house_init(&h);
    house_start(&h);
    house_admit(&h, ROLE_WORKER, "p6", &p6);
    for (int i = 0; i < 3; i++) {
        struct guest *g = house_welcome(&h, &p6);
        cr_expect(!coord_is_stuck(h.coord));
        house_stop(&h);
        HOUSE_WAIT(&h, g->closed);
        guest_leave(g);
        house_start(&h);
    }
    house_fini(&h);
    ident_free(&p6);
}
