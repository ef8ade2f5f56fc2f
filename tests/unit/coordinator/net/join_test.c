/* join_test.c: joining over the wire: tokens made by an admin, certificates that work at once, and
 * the sentence of each refusal. */
#include "common/str.h"
#include "coordinator/coord.h"
#include "proto/close.h"
#include "proto/join.h"
#include "proto/pki.h"
#include "proto/token.h"
#include "tests/unit/whole/house.h"

#include <stdlib.h>
#include <string.h>

struct joined {
    bool done;
    int code;
    enum close_reason reason;
    char text[1200];
    char name[65], fleet[65];
    struct buf cert;
    size_t warnings;
    char warning[256];
};

static void on_answer(const struct join_answer *a, void *arg)
{
    struct joined *out = arg;
    out->done = true;
    out->code = a->code;
    out->reason = a->reason;
    str_copy(out->text, sizeof(out->text), a->text);
    out->warnings = a->warning_count;
    if (a->warning_count > 0) {
        str_copy(out->warning, sizeof(out->warning), a->warnings[0]);
    }
    if (a->code == 0) {
        str_copy(out->name, sizeof(out->name), a->name);
        str_copy(out->fleet, sizeof(out->fleet), a->fleet);
        cr_assert_eq(pki_cert_to_der(a->cert, &out->cert), 0);
    }
}

static void start_join(struct house *h, const char *text, const struct pki_key *key, enum role role,
                       const char *name, struct joined *out)
{
    struct token token;
    struct join *j;
    memset(out, 0, sizeof(*out));
    cr_assert_eq(token_parse(text, &token, h->diag), 0, "%s", diag_first(h->diag));
    struct join_request request = {
        .address = h->address, .token = &token, .key = key, .role = role, .name = name};
    cr_assert_eq(join_start(h->loop, &request, on_answer, out, &j, h->diag), 0);
}

static void join(struct house *h, const char *text, const struct pki_key *key, enum role role,
                 const char *name, struct joined *out)
{
    start_join(h, text, key, role, name, out);
    HOUSE_WAIT(h, out->done);
}

static struct pki_key *new_key(void)
{
    struct pki_key *key;
    cr_assert_eq(pki_key_make(&key, NULL), 0);
    return key;
}

/* TOKEN_CREATE; the answer's first line without its end. */
static void create(struct guest *admin, const char *role, const char *name, int64_t ttl_ns,
                   struct answer *a)
{
    static const char *const classes[] = {"old", "small"};
    struct msg m = {.type = MSG_TOKEN_CREATE};
    m.u.token_create.call = guest_call(admin);
    m.u.token_create.role = role;
    m.u.token_create.name = name;
    m.u.token_create.ttl_ns = ttl_ns;
    m.u.token_create.classes = classes;
    m.u.token_create.classes_count = strcmp(role, "worker") == 0 ? 2 : 0;
    guest_ask(admin, m.u.token_create.call, &m, a);
}

Test(net_join, a_token_of_an_admin_makes_a_host_that_connects_at_once)
{
    struct house h;
    struct ident ann, p6 = {.role = ROLE_WORKER, .name = "p6"};
    struct answer a;
    struct joined out, again;
    char text[96];
    house_init(&h);
    house_start(&h);
    house_admit(&h, ROLE_ADMIN, "ann", &ann);
    struct guest *admin = house_welcome(&h, &ann);
    create(admin, "worker", NULL, CLOCK_HOUR, &a);
    cr_assert_eq(a.exit, 0, "%s", buf_str(&a.talk));
    cr_assert_eq(buf_str(&a.body)[a.body.len - 1], '\n');
    str_copy(text, sizeof(text), buf_str(&a.body));
    text[a.body.len - 1] = '\0';
    answer_free(&a);

    p6.key = new_key();
    join(&h, text, p6.key, ROLE_WORKER, "p6", &out);
    cr_assert_eq(out.code, 0, "%s", out.text);
    cr_expect_str_eq(out.name, "p6");
    cr_expect_str_eq(out.fleet, "lab");
    cr_expect_eq(out.warnings, 0, "%s", out.warning);
    join(&h, text, p6.key, ROLE_WORKER, "p6", &again);
    cr_assert_eq(again.code, 0, "%s", again.text);
    cr_expect(again.cert.len == out.cert.len &&
                  memcmp(again.cert.data, out.cert.data, out.cert.len) == 0,
              "the same token and key give the same certificate");

    cr_assert_eq(pki_cert_from_der(out.cert.data, out.cert.len, &p6.cert, NULL), 0);
    p6.authority = ann.authority;
    house_welcome(&h, &p6);
    struct msg m = {.type = MSG_HOST_LIST};
    m.u.host_list.call = guest_call(admin);
    guest_ask(admin, m.u.host_list.call, &m, &a);
    EXPECT_HAS(buf_str(&a.body), "\"host\": \"p6\"");
    EXPECT_HAS(buf_str(&a.body), "\"old\"");
    EXPECT_HAS(buf_str(&a.body), "\"small\"");
    answer_free(&a);
    house_fini(&h);
    buf_fini(&out.cert);
    buf_fini(&again.cert);
    pki_key_free(&p6.key);
    pki_cert_free(&p6.cert);
    ident_free(&ann);
}

Test(net_join, each_refusal_says_why_and_what_to_do)
{
    static const struct {
        const char *what; /* of the token */
        enum role role;
        const char *name;
        enum close_reason reason;
        const char *says;
    } rows[] = {
        {"unknown", ROLE_WORKER, "new", CLOSE_TOKEN_UNKNOWN,
         "the token is not known to fleet lab: an admin makes a new one with `makespan token "
         "create`"},
        {"expired", ROLE_WORKER, "new", CLOSE_TOKEN_EXPIRED, "the token ended at 20"},
        {"operator", ROLE_WORKER, "new", CLOSE_TOKEN_ROLE,
         "the token's role is viewer and not worker: `makespan login` takes it"},
        {"worker", ROLE_VIEWER, "new", CLOSE_TOKEN_ROLE,
         "the token's role is worker and not viewer: `makespan-worker join` takes it"},
        {"used", ROLE_WORKER, "new", CLOSE_TOKEN_USED,
         "the token was used already by p6 with another key"},
        {"worker", ROLE_WORKER, "p6", CLOSE_NAME_TAKEN, "p6"},
        {"worker", ROLE_WORKER, "two words", CLOSE_NAME_TAKEN, "two words"},
    };
    struct house h, other;
    struct joined out;
    char used[96], text[96];
    struct pki_key *key = new_key();
    house_init(&h);
    house_start(&h);
    house_init(&other);
    house_start(&other);
    house_token(&h, ROLE_WORKER, NULL, used);
    join(&h, used, key, ROLE_WORKER, "p6", &out);
    cr_assert_eq(out.code, 0, "%s", out.text);
    buf_fini(&out.cert);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct pki_key *another = new_key();
        if (strcmp(rows[i].what, "used") == 0) {
            str_copy(text, sizeof(text), used);
        } else if (strcmp(rows[i].what, "expired") == 0) {
            house_old_token(&h, ROLE_WORKER, text);
        } else {
            house_token(&h, strcmp(rows[i].what, "operator") == 0 ? ROLE_VIEWER : ROLE_WORKER, NULL,
                        text);
        }
        if (strcmp(rows[i].what, "unknown") == 0) { /* of this fleet, with another secret */
            struct token token;
            cr_assert_eq(token_parse(text, &token, NULL), 0);
            token.secret[0] ^= 1;
            token_format(&token, text);
        }
        join(&h, text, another, rows[i].role, rows[i].name, &out);
        cr_expect_lt(out.code, 0);
        cr_expect_eq(out.reason, rows[i].reason, "%zu: %s: %s", i, close_name((uint32_t)out.reason),
                     out.text);
        EXPECT_HAS(out.text, rows[i].says);
        buf_fini(&out.cert);
        pki_key_free(&another);
    }
    /* Another fleet's token: seen before anything is sent. */
    house_token(&other, ROLE_WORKER, NULL, text);
    join(&h, text, key, ROLE_WORKER, "p7", &out);
    cr_expect_eq(out.reason, CLOSE_CERT_AUTHORITY, "%s: %s", close_name((uint32_t)out.reason),
                 out.text);
    buf_fini(&out.cert);
    house_fini(&h);
    house_fini(&other);
    pki_key_free(&key);
}

Test(net_join, token_create_refuses_what_makes_no_sense)
{
    static const struct {
        const char *role, *name;
        int64_t ttl_ns;
        const char *says;
    } rows[] = {
        {"coordinator", NULL, CLOCK_HOUR, "unknown role coordinator: it is one of worker"},
        {"root", NULL, CLOCK_HOUR, "unknown role root"},
        {"worker", NULL, CLOCK_SEC, "minute"},
        {"worker", NULL, 31 * CLOCK_DAY, "30 days"},
        {"worker", "no name", CLOCK_HOUR, "no name"},
    };
    struct house h;
    struct ident ann;
    house_init(&h);
    house_start(&h);
    house_admit(&h, ROLE_ADMIN, "ann", &ann);
    struct guest *admin = house_welcome(&h, &ann);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct answer a;
        create(admin, rows[i].role, rows[i].name, rows[i].ttl_ns, &a);
        cr_expect_eq(a.exit, 64, "%zu", i);
        cr_expect_eq(a.body.len, 0);
        EXPECT_HAS(buf_str(&a.talk), rows[i].says);
        answer_free(&a);
    }
    house_fini(&h);
    ident_free(&ann);
}

Test(net_join, a_new_key_for_a_name_cuts_off_the_old_link)
{
    struct house h;
    struct ident p6;
    struct joined out;
    char text[96];
    struct pki_key *key = new_key();
    house_init(&h);
    house_start(&h);
    house_admit(&h, ROLE_WORKER, "p6", &p6);
    struct guest *old = house_welcome(&h, &p6);
    house_token(&h, ROLE_WORKER, "p6", text);
    join(&h, text, key, ROLE_WORKER, "p6", &out);
    cr_assert_eq(out.code, 0, "%s", out.text);
    HOUSE_WAIT(&h, old->closed);
    cr_expect_eq(old->reason, CLOSE_REVOKED);
    buf_fini(&out.cert);
    pki_key_free(&key);
    house_fini(&h);
    ident_free(&p6);
}

Test(net_join, no_certificate_leaves_when_its_row_cannot_be_written)
{
    struct house h;
    struct joined out;
    char text[96];
    struct pki_key *key = new_key();
    house_init(&h);
    house_start(&h);
    house_token(&h, ROLE_WORKER, NULL, text);
    house_fill_disk(true);
    join(&h, text, key, ROLE_WORKER, "p6", &out);
    cr_expect_lt(out.code, 0);
    cr_expect_eq(out.reason, CLOSE_STORE, "%s", out.text);
    EXPECT_HAS(out.text, "cannot write its database");
    EXPECT_HAS(out.text, "make room there, it goes on by itself");
    /* The next is refused before anything is written. */
    join(&h, text, key, ROLE_WORKER, "p6", &out);
    cr_expect_eq(out.reason, CLOSE_STORE, "%s", out.text);
    EXPECT_HAS(out.text, "make room there");
    house_fill_disk(false);
    HOUSE_WAIT(&h, !coord_is_stuck(h.coord));
    join(&h, text, key, ROLE_WORKER, "p6", &out);
    cr_expect_eq(out.code, 0, "the same token is good once there is room: %s", out.text);
    buf_fini(&out.cert);
    pki_key_free(&key);
    house_fini(&h);
}
