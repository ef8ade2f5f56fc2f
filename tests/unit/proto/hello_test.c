/* hello_test.c: settling versions and capabilities. */
#include "proto/hello.h"

#include "common/diag.h"
#include "common/err.h"
#include "proto/msg.h"

#include <criterion/criterion.h>
#include <string.h>

Test(hello, the_highest_common_version_is_chosen)
{
    static const struct {
        struct hello_range ours, theirs;
        int rc;
        uint32_t version;
    } cases[] = {
        {{1, 1}, {1, 1}, 0, 1},
        {{1, 3}, {2, 5}, 0, 3},
        {{2, 5}, {1, 3}, 0, 3},
        {{1, 9}, {4, 4}, 0, 4},
        {{4, 4}, {1, 9}, 0, 4},
        {{1, 3}, {3, 4}, 0, 3},
        {{1, 1}, {1, UINT32_MAX}, 0, 1},
        {{1, 2}, {3, 4}, -ERR_VERSION, 0},
        {{3, 4}, {1, 2}, -ERR_VERSION, 0},
        {{1, 1}, {2, 1}, -ERR_PROTO, 0},
        {{1, 1}, {0, 1}, -ERR_PROTO, 0},
        {{1, 1}, {0, 0}, -ERR_PROTO, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t version = 0;
        int rc = hello_choose_version(cases[i].ours, cases[i].theirs, &version, NULL);
        cr_assert_eq(rc, cases[i].rc, "case %zu gave %d", i, rc);
        cr_assert_eq(version, cases[i].version, "case %zu chose %u", i, (unsigned)version);
    }
}

Test(hello, ranges_that_do_not_overlap_are_both_named)
{
    struct diag *diag = diag_new(4);
    uint32_t version = 0;
    struct hello_range ours = {1, 2};
    struct hello_range theirs = {3, 3};
    cr_assert_eq(hello_choose_version(ours, theirs, &version, diag), -ERR_VERSION);
    cr_assert_str_eq(diag_first(diag),
                     "no common protocol version: this side speaks 1 to 2, the other side 3");
    diag_free(&diag);
}

Test(hello, capabilities_go_out_and_come_back)
{
    struct hello_caps caps;
    for (uint32_t set = 0; set <= CAPS_OURS; set++) {
        hello_write_caps(set, &caps);
        cr_assert_eq(hello_read_caps(caps.words, caps.count), set);
    }
    hello_write_caps(CAPS_OURS, &caps);
    cr_assert_eq(caps.count, CAP_COUNT);
    cr_assert_str_eq(hello_cap_word(CAP_SWEEP), "sweep");
    cr_assert_null(hello_cap_word(CAP_COUNT));
    cr_assert_null(hello_cap_word(-1));
}

Test(hello, unknown_and_repeated_capabilities_do_no_harm)
{
    static const char *const words[] = {"teleport", "sweep", "", "sweep", "SWEEP"};
    cr_assert_eq(hello_read_caps(words, 5), CAP_BIT(CAP_SWEEP));
    cr_assert_eq(hello_read_caps(NULL, 0), 0);
}

Test(hello, a_hello_is_accepted_and_its_answer_confirmed)
{
    struct hello_caps mine;
    hello_write_caps(CAPS_OURS, &mine);
    struct msg m = {.type = MSG_HELLO};
    hello_fill(&m.u.hello, &mine, "makespan-worker", "0.1.0", 17);
    cr_assert_eq(msg_check(&m, NULL), 0);
    cr_assert_eq(m.u.hello.proto_min, PROTO_MIN);
    cr_assert_eq(m.u.hello.proto_max, PROTO_MAX);
    cr_assert_eq(m.u.hello.wall_ns, 17);

    static const char *const fewer[] = {"output", "new"};
    m.u.hello.caps = fewer;
    m.u.hello.caps_count = 2;
    struct hello_deal deal = {0, 0};
    cr_assert_eq(hello_accept(&m.u.hello, &deal, NULL), 0);
    cr_assert_eq(deal.proto, PROTO_MAX);
    cr_assert_eq(deal.caps, CAP_BIT(CAP_OUTPUT));

    struct msg_welcome welcome = {.proto = deal.proto, .caps = fewer, .caps_count = 2};
    struct hello_deal other = {0, 0};
    cr_assert_eq(hello_confirm(&welcome, &other, NULL), 0);
    cr_assert_eq(other.proto, deal.proto);
    cr_assert_eq(other.caps, deal.caps);
}

Test(hello, a_version_that_was_not_offered_is_refused)
{
    struct diag *diag = diag_new(4);
    struct hello_deal deal = {0, 0};
    struct msg_hello hello = {.proto_min = PROTO_MAX + 1, .proto_max = PROTO_MAX + 3};
    cr_assert_eq(hello_accept(&hello, &deal, diag), -ERR_VERSION);
    diag_clear(diag);
    struct msg_welcome welcome = {.proto = PROTO_MAX + 1};
    cr_assert_eq(hello_confirm(&welcome, &deal, diag), -ERR_VERSION);
    cr_assert_not_null(strstr(diag_first(diag), "chose protocol version 2"));
    welcome.proto = 0;
    cr_assert_eq(hello_confirm(&welcome, &deal, NULL), -ERR_VERSION);
    diag_free(&diag);
}
