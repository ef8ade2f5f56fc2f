/* msg_role_test.c: who may send which message, and when. The table below is written by hand, from
 * what each side is for, not from the schema. */
#include "proto/msg.h"
#include "proto/msg_table.h"

#include <criterion/criterion.h>
#include <string.h>

/* Rows: who may send it before WELCOME / after it / while joining.
 *   W worker, C coordinator, v viewer and above, s submitter and above, a admin, J joiner */
static const struct {
    enum msg_type type;
    const char *start;
    const char *open;
    const char *joining;
} table[] = {
    {MSG_HELLO, "Wv", "", ""},    {MSG_WELCOME, "C", "", ""},    {MSG_GOODBYE, "WCv", "WCv", "CJ"},
    {MSG_BEAT, "", "WCv", ""},    {MSG_JOIN, "", "", "J"},       {MSG_JOINED, "", "", "C"},
    {MSG_ASSIGN, "", "C", ""},    {MSG_TAKEN, "", "W", ""},      {MSG_REFUSED, "", "W", ""},
    {MSG_WITHDRAW, "", "C", ""},  {MSG_CANCEL, "", "C", ""},     {MSG_READY, "", "W", ""},
    {MSG_STATE, "", "W", ""},     {MSG_AWAY, "", "W", ""},       {MSG_AWAY_OK, "", "C", ""},
    {MSG_RESULT, "", "W", ""},    {MSG_SAMPLES, "", "W", ""},    {MSG_OUTPUT, "", "W", ""},
    {MSG_MARK, "", "W", ""},      {MSG_END, "", "W", ""},        {MSG_ACK, "", "C", ""},
    {MSG_BLOB_GET, "", "W", ""},  {MSG_BLOB_DATA, "", "Cs", ""}, {MSG_BLOB_NONE, "", "C", ""},
    {MSG_BLOB_WANT, "", "s", ""}, {MSG_BLOB_NEXT, "", "C", ""},  {MSG_REPLY, "", "C", ""},
    {MSG_HOST_LIST, "", "v", ""}, {MSG_HOST_SET, "", "a", ""},   {MSG_TOKEN_CREATE, "", "a", ""},
    {MSG_SWEEP_PUT, "", "s", ""}, {MSG_SWEEP_PART, "", "s", ""}, {MSG_SWEEP_LIST, "", "v", ""}, {MSG_SWEEP_SET, "", "s", ""},
    {MSG_WATCH, "", "v", ""},     {MSG_WATCH_END, "", "v", ""},  {MSG_REPORT, "", "v", ""},
};

#define ROWS (sizeof(table) / sizeof(table[0]))

static const struct {
    enum msg_from side;
    enum role role;
    const char *letters; /* of which one must stand in the row */
    const char *name;
} senders[] = {
    {MSG_FROM_WORKER, ROLE_WORKER, "W", "worker"},
    {MSG_FROM_COORDINATOR, ROLE_COORDINATOR, "C", "coordinator"},
    {MSG_FROM_OPERATOR, ROLE_VIEWER, "v", "viewer"},
    {MSG_FROM_OPERATOR, ROLE_SUBMITTER, "vs", "submitter"},
    {MSG_FROM_OPERATOR, ROLE_ADMIN, "vsa", "admin"},
    {MSG_FROM_JOINER, (enum role)0, "J", "joiner"},
    /* Nobody: a certificate's role that does not fit an operator. */
    {MSG_FROM_OPERATOR, ROLE_WORKER, "", "operator with a worker's certificate"},
    {MSG_FROM_OPERATOR, ROLE_COORDINATOR, "", "operator with a coordinator's certificate"},
    {MSG_FROM_OPERATOR, (enum role)0, "", "operator without a role"},
    {MSG_FROM_OPERATOR, (enum role)6, "", "operator of an unknown role"},
};

static bool has_any(const char *row, const char *letters)
{
    return *letters != '\0' && strpbrk(row, letters) != NULL;
}

Test(msg_role, only_who_may_can_send_and_only_when)
{
    static const enum msg_when whens[] = {MSG_WHEN_START, MSG_WHEN_OPEN, MSG_WHEN_JOINING};
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t k = 0; k < sizeof(senders) / sizeof(senders[0]); k++) {
            const char *columns[] = {table[i].start, table[i].open, table[i].joining};
            bool ever = false;
            for (size_t w = 0; w < 3; w++) {
                ever = ever || has_any(columns[w], senders[k].letters);
            }
            for (size_t w = 0; w < 3; w++) {
                enum close_reason want = has_any(columns[w], senders[k].letters) ? CLOSE_NONE
                                         : ever                                  ? CLOSE_NOT_NOW
                                                                                 : CLOSE_NOT_YOURS;
                enum close_reason is =
                    msg_refusal(table[i].type, senders[k].side, senders[k].role, whens[w]);
                cr_expect_eq(is, want, "%s from %s in state %zu: %s", msg_name(table[i].type),
                             senders[k].name, w, close_name(is));
                cr_expect_eq(
                    msg_may_send(table[i].type, senders[k].side, senders[k].role, whens[w]),
                    want == CLOSE_NONE);
            }
        }
    }
}

Test(msg_role, every_message_has_its_row_here)
{
    size_t count = 0;
    const struct msg_row *rows = msg_table(&count);
    for (size_t i = 0; i < count; i++) {
        size_t found = 0;
        for (size_t k = 0; k < ROWS; k++) {
            found += (uint32_t)table[k].type == rows[i].number;
        }
        cr_assert_eq(found, 1, "%s stands %zu times in this test's table", rows[i].name, found);
    }
    cr_assert_eq(count, ROWS);
}

Test(msg_role, the_least_role_is_the_first_that_may)
{
    static const enum role ROLES[] = {ROLE_VIEWER, ROLE_SUBMITTER, ROLE_ADMIN};
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        enum role least = msg_least_role(table[i].type);
        bool any = false;
        for (size_t k = 0; k < ARRAY_LEN(ROLES); k++) {
            bool may = msg_refusal(table[i].type, MSG_FROM_OPERATOR, ROLES[k], MSG_WHEN_OPEN) != CLOSE_NOT_YOURS;
            any = any || may;
            if (may) {
                cr_expect_leq(least, ROLES[k], "%s", msg_name(table[i].type));
            } else if (any) {
                cr_expect_fail("%s: a higher role may less", msg_name(table[i].type));
            }
        }
        if (any) {
            cr_expect_neq(msg_refusal(table[i].type, MSG_FROM_OPERATOR, least, MSG_WHEN_OPEN), CLOSE_NOT_YOURS,
                          "%s", msg_name(table[i].type));
        }
    }
    cr_expect_eq(msg_least_role(MSG_HOST_SET), ROLE_ADMIN);
    cr_expect_eq(msg_least_role(MSG_SWEEP_PUT), ROLE_SUBMITTER);
    cr_expect_eq(msg_least_role(MSG_REPORT), ROLE_VIEWER);
    cr_expect_eq(msg_least_role(99), ROLE_VIEWER);
}

Test(msg_role, unknown_messages_come_from_nobody)
{
    cr_assert_eq(msg_refusal(99, MSG_FROM_COORDINATOR, ROLE_COORDINATOR, MSG_WHEN_OPEN),
                 CLOSE_UNKNOWN_MESSAGE);
    cr_assert_not(msg_may_send(0, MSG_FROM_WORKER, ROLE_WORKER, MSG_WHEN_OPEN));
}
