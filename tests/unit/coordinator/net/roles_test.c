/* roles_test.c: every message from every role, over a real connection: what a role may not send,
 * or not now, ends the connection with the reason; what it may send does not. */
#include "proto/close.h"
#include "tests/unit/proto/msg_gen.h"
#include "tests/unit/whole/house.h"

#include <stdio.h>
#include <string.h>

/* After WELCOME: w worker, v viewer, s submitter, a admin; written by hand. */
static const struct {
    enum msg_type type;
    const char *may;
    const char *misplaced; /* whose message it is, but not in this state */
} TABLE[] = {
    {MSG_HELLO, "", "wvsa"},     {MSG_WELCOME, "", ""},        {MSG_BEAT, "wvsa", ""},
    {MSG_JOIN, "", ""},          {MSG_JOINED, "", ""},         {MSG_ASSIGN, "", ""},
    {MSG_TAKEN, "w", ""},        {MSG_REFUSED, "w", ""},       {MSG_WITHDRAW, "", ""},
    {MSG_CANCEL, "", ""},        {MSG_READY, "w", ""},         {MSG_STATE, "w", ""},
    {MSG_AWAY, "w", ""},         {MSG_AWAY_OK, "", ""},        {MSG_RESULT, "w", ""},
    {MSG_SAMPLES, "w", ""},      {MSG_OUTPUT, "w", ""},        {MSG_MARK, "w", ""},
    {MSG_END, "w", ""},          {MSG_ACK, "", ""},            {MSG_BLOB_GET, "w", ""},
    {MSG_BLOB_DATA, "sa", ""},   {MSG_BLOB_NONE, "", ""},      {MSG_BLOB_WANT, "sa", ""},
    {MSG_BLOB_NEXT, "", ""},     {MSG_REPLY, "", ""},          {MSG_HOST_LIST, "vsa", ""},
    {MSG_HOST_SET, "a", ""},     {MSG_TOKEN_CREATE, "a", ""},  {MSG_SWEEP_PUT, "sa", ""},
    {MSG_SWEEP_PART, "sa", ""},  {MSG_SWEEP_LIST, "vsa", ""}, {MSG_SWEEP_SET, "sa", ""},    {MSG_WATCH, "vsa", ""},
    {MSG_WATCH_END, "vsa", ""},  {MSG_REPORT, "vsa", ""},
};

static const struct {
    enum role role;
    char letter;
} ROLES[] = {
    {ROLE_WORKER, 'w'}, {ROLE_VIEWER, 'v'}, {ROLE_SUBMITTER, 's'}, {ROLE_ADMIN, 'a'}};

/* Whether the connection was ended for who or when, and not for what the message says. */
static bool is_refusal(const struct guest *g, const char *name)
{
    char begin[64];
    snprintf(begin, sizeof(begin), "%s: a message came that ", name);
    return strncmp(g->text, begin, strlen(begin)) == 0;
}

static void try_one(struct house *h, struct guest **g, const struct ident *who, size_t row,
                    char letter, struct gen *gen)
{
    enum msg_type type = TABLE[row].type;
    const struct msg_row *schema = msg_table_find(type);
    const char *name = msg_name(type);
    bool may = strchr(TABLE[row].may, letter) != NULL;
    bool misplaced = strchr(TABLE[row].misplaced, letter) != NULL;
    struct msg m;
    if (*g == NULL || (*g)->closed) {
        if (*g != NULL) {
            guest_leave(*g);
        }
        *g = house_welcome(h, who);
    }
    guest_forget(*g);
    gen_least(gen, schema, &m);
    cr_assert_eq(guest_send(*g, &m), 0, "%s", name);
    if (may) {
        /* A second message behind it that all may send: when it is taken, so was the first. */
        house_idle(h);
        cr_expect(!(*g)->closed || !is_refusal(*g, name), "%s from %c: %s", name, letter,
                  (*g)->text);
        return;
    }
    HOUSE_WAIT(h, (*g)->closed);
    enum close_reason want = misplaced ? CLOSE_NOT_NOW : CLOSE_NOT_YOURS;
    cr_expect_eq((*g)->reason, want, "%s from %c: %s", name, letter, (*g)->text);
    cr_expect(is_refusal(*g, name), "%s from %c: %s", name, letter, (*g)->text);
    cr_expect_eq((*g)->count, 0, "%s from %c was answered", name, letter);
}

static void try_role(size_t role)
{
    struct house h;
    struct ident who;
    struct guest *g = NULL;
    struct gen *gen = gen_new();
    house_init(&h);
    house_start(&h);
    house_admit(&h, ROLES[role].role, "someone", &who);
    for (size_t i = 0; i < ARRAY_LEN(TABLE); i++) {
        try_one(&h, &g, &who, i, ROLES[role].letter, gen);
    }
    house_fini(&h);
    ident_free(&who);
    gen_free(&gen);
}

Test(net_roles, the_table_has_every_message)
{
    size_t n;
    const struct msg_row *rows = msg_table(&n);
    cr_assert_eq(n, ARRAY_LEN(TABLE) + 1); /* GOODBYE ends every connection */
    for (size_t i = 0; i < ARRAY_LEN(TABLE); i++) {
        cr_expect_eq(TABLE[i].type,
                     rows[i < 2 ? i : i + 1].number); /* in the order of the schema */
    }
}

Test(net_roles, of_a_worker)
{
    try_role(0);
}

Test(net_roles, of_a_viewer)
{
    try_role(1);
}

Test(net_roles, of_a_submitter)
{
    try_role(2);
}

Test(net_roles, of_an_admin)
{
    try_role(3);
}

Test(net_roles, before_welcome_nothing_but_hello_is_taken)
{
    static const enum msg_type types[] = {MSG_BEAT, MSG_READY, MSG_RESULT, MSG_END, MSG_BLOB_GET};
    struct house h;
    struct ident who;
    struct gen *gen = gen_new();
    house_init(&h);
    house_start(&h);
    house_admit(&h, ROLE_WORKER, "p6", &who);
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        struct guest *g = house_guest(&h, &who);
        struct msg m;
        HOUSE_WAIT(&h, g->opened);
        gen_least(gen, msg_table_find(types[i]), &m);
        cr_assert_eq(guest_send(g, &m), 0);
        HOUSE_WAIT(&h, g->closed);
        cr_expect_eq(g->reason, CLOSE_NOT_NOW, "%s", g->text);
        guest_leave(g);
    }
    house_fini(&h);
    ident_free(&who);
    gen_free(&gen);
}

Test(net_roles, records_that_fit_nothing_are_refused_for_good)
{
    static const enum msg_type types[] = {MSG_RESULT, MSG_END, MSG_OUTPUT, MSG_MARK};
    struct house h;
    struct ident who;
    struct gen *gen = gen_new();
    house_init(&h);
    house_start(&h);
    house_admit(&h, ROLE_WORKER, "p6", &who);
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        struct guest *g = house_welcome(&h, &who);
        struct msg m;
        gen_least(gen, msg_table_find(types[i]), &m);
        switch (types[i]) { /* numbers that no vocabulary has */
        case MSG_OUTPUT:
            m.u.output.phase = 99;
            break;
        case MSG_MARK:
            m.u.mark.mark = 99;
            break;
        default:
            break;
        }
        cr_assert_eq(guest_send(g, &m), 0);
        HOUSE_WAIT(&h, guest_count(g, MSG_ACK) > 0);
        const struct rec_acked *acked = &guest_got(g, MSG_ACK, 0)->u.ack.acked[0];
        cr_expect(acked->whole);
        cr_assert_not_null(acked->refused);
        EXPECT_HAS(acked->refused, "there is no such run");
        cr_expect(!g->closed, "so that the link may stay");
        guest_leave(g);
    }
    /* Of a run that no store can have, not even that can be said. */
    struct guest *g = house_welcome(&h, &who);
    struct msg m;
    gen_least(gen, msg_table_find(MSG_END), &m);
    m.u.end.run = UINT64_MAX;
    cr_assert_eq(guest_send(g, &m), 0);
    HOUSE_WAIT(&h, g->closed);
    cr_expect_eq(g->reason, CLOSE_NOT_NOW, "%s", g->text);
    EXPECT_HAS(g->text, "does not fit what came before it");
    guest_leave(g);
    house_fini(&h);
    ident_free(&who);
    gen_free(&gen);
}
