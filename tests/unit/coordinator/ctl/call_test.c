/* call_test.c: the operator's side of a connection, against a coordinator of a few lines that says
 * what a test wants, or nothing. */
#include "coordinator/ctl/call.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/loop.h"
#include "common/str.h"
#include "common/version.h"
#include "coordinator/ctl/ctl.h"
#include "proto/conn.h"
#include "proto/hello.h"
#include "proto/msg.h"
#include "proto/pki.h"
#include "proto/tls.h"
#include "tests/harness/place.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What it does once it was asked. */
enum manner { ANSWERS, IS_SILENT, CLOSES, ANSWERS_IN_PIECES, REFUSES, ANOTHER_PROTO, DENIES };

static struct {
    char dir[256];
    struct loop *loop;
    struct ctl ctl;
    struct pki_key *ca_key, *key;
    struct pki_cert *ca, *cert;
    struct tls *tls;
    struct conn_listener *listener;
    struct conn *conn;
    char address[64];
    enum manner manner;
    unsigned beats; /* of the operator */
} t;

static int64_t now_s(void *arg)
{
    (void)arg;
    return clock_wall_ns() / CLOCK_SEC;
}

static void welcome(struct conn *conn)
{
    struct msg m = {.type = MSG_WELCOME};
    struct hello_caps caps;
    hello_write_caps(CAPS_OURS, &caps);
    m.u.welcome.proto = t.manner == ANOTHER_PROTO ? 99 : PROTO_MAX;
    m.u.welcome.caps = caps.words;
    m.u.welcome.caps_count = caps.count;
    m.u.welcome.fleet = "lab";
    m.u.welcome.version = version_text();
    m.u.welcome.beat_ns = 100 * CLOCK_MS;
    cr_assert_eq(conn_send(conn, &m), 0);
}

static void reply(struct conn *conn, uint32_t call, const char *body, bool last)
{
    struct msg m = {.type = MSG_REPLY};
    m.u.reply.call = call;
    m.u.reply.exit = last ? 7 : 0;
    m.u.reply.kind = "text";
    m.u.reply.body = (struct msg_bytes){.data = (const uint8_t *)body, .len = strlen(body)};
    m.u.reply.last = last;
    cr_assert_eq(conn_send(conn, &m), 0);
}

static void asked(struct conn *conn, uint32_t call)
{
    switch (t.manner) {
    case ANSWERS:
        reply(conn, call, "hello\n", true);
        break;
    case ANSWERS_IN_PIECES:
        reply(conn, call + 1, "of another request\n", true);
        reply(conn, call, "one ", false);
        reply(conn, call, "two", true);
        break;
    case DENIES:
        conn_close(conn, CLOSE_NOT_YOURS, NULL, false);
        break;
    case CLOSES:
        reply(conn, call, "half", false);
        conn_close(conn, CLOSE_SHUTDOWN, NULL, false);
        break;
    default:
        break;
    }
}

static void on_event(struct conn *conn, const struct conn_event *event, void *arg)
{
    (void)arg;
    if (event->kind == CONN_CLOSED) {
        t.conn = NULL;
    } else if (event->kind == CONN_MESSAGE && event->msg->type == MSG_HELLO) {
        if (t.manner == REFUSES) {
            conn_close(conn, CLOSE_TOO_MANY, NULL, false);
        } else {
            welcome(conn);
        }
    } else if (event->kind == CONN_MESSAGE && event->msg->type == MSG_HOST_LIST) {
        asked(conn, event->msg->u.host_list.call);
    } else if (event->kind == CONN_MESSAGE && event->msg->type == MSG_HOST_SET) {
        asked(conn, event->msg->u.host_set.call);
    } else if (event->kind == CONN_MESSAGE && event->msg->type == MSG_BEAT) {
        t.beats++;
    }
}

static void on_accept(struct conn *conn, void *arg)
{
    (void)arg;
    t.conn = conn;
    conn_set_handler(conn, on_event, NULL);
}

static void issue(enum role role, const char *name, struct pki_key **key, struct pki_cert **cert)
{
    struct buf request = BUF_INIT;
    cr_assert_eq(pki_key_make(key, NULL), 0);
    cr_assert_eq(pki_request_make(*key, &request, NULL), 0);
    cr_assert_eq(pki_issue(t.ca_key, t.ca, request.data, request.len, role, name, now_s(NULL), cert,
                           NULL),
                 0);
    buf_fini(&request);
}

static void write_home(void)
{
    struct pki_key *key;
    struct pki_cert *cert;
    char path[FILE_PATH_MAX];
    issue(ROLE_ADMIN, "ann", &key, &cert);
    cr_assert_eq(file_path(path, sizeof(path), t.dir, "operator.key"), 0);
    cr_assert_eq(pki_key_write(key, path, NULL), 0);
    cr_assert_eq(file_path(path, sizeof(path), t.dir, "operator.crt"), 0);
    cr_assert_eq(pki_cert_write(cert, path, NULL), 0);
    cr_assert_eq(file_path(path, sizeof(path), t.dir, "ca.crt"), 0);
    cr_assert_eq(pki_cert_write(t.ca, path, NULL), 0);
    pki_key_free(&key);
    pki_cert_free(&cert);
}

static void setup(void)
{
    place_new_dir(t.dir, sizeof(t.dir), "makespan-call");
    t.loop = loop_new();
    t.ctl = (struct ctl){
        .loop = t.loop, .program = "makespan", .home = t.dir, .diag = diag_new(8)};
    cr_assert_eq(pki_key_make(&t.ca_key, NULL), 0);
    cr_assert_eq(pki_authority_make(t.ca_key, "lab", now_s(NULL), &t.ca, NULL), 0);
    issue(ROLE_COORDINATOR, "main", &t.key, &t.cert);
    struct tls_server_config config = {
        .key = t.key, .cert = t.cert, .authority = t.ca, .now_s = now_s};
    cr_assert_eq(tls_new_server(&config, &t.tls, NULL), 0);
    cr_assert_eq(conn_listen(t.loop, t.tls, "127.0.0.1:0", NULL, on_accept, NULL, NULL, &t.listener,
                             NULL),
                 0);
    snprintf(t.address, sizeof(t.address), "127.0.0.1:%u", conn_listener_port(t.listener));
    t.ctl.address = t.address;
}

static void teardown(void)
{
    if (t.conn != NULL) {
        conn_close(t.conn, CLOSE_SHUTDOWN, NULL, true);
    }
    conn_listener_free(&t.listener);
    tls_free(&t.tls);
    diag_free(&t.ctl.diag);
    loop_free(&t.loop);
    pki_key_free(&t.ca_key);
    pki_key_free(&t.key);
    pki_cert_free(&t.ca);
    pki_cert_free(&t.cert);
    cr_expect_eq(file_remove_tree(t.dir), 0);
}

TestSuite(ctl_call, .init = setup, .fini = teardown);

static void expect_said(const char *part)
{
    cr_expect_not_null(strstr(diag_first(t.ctl.diag), part), "\"%s\" is not in: %s", part,
                       diag_first(t.ctl.diag));
}

static struct call *open_call(enum manner manner)
{
    struct call *call;
    write_home();
    t.manner = manner;
    cr_assert_eq(call_open(&t.ctl, &call), 0, "%s", diag_first(t.ctl.diag));
    return call;
}

static int ask(struct call *call, struct buf *out)
{
    struct msg m = {.type = MSG_HOST_LIST};
    m.u.host_list.call = call_number(call);
    return call_document(call, m.u.host_list.call, &m, out);
}

Test(ctl_call, without_an_identity)
{
    struct call *call;
    cr_expect_eq(call_open(&t.ctl, &call), CTL_INFRASTRUCTURE);
    cr_expect_null(call);
    expect_said("there is no identity in");
}

Test(ctl_call, where_nobody_listens_the_address_is_named)
{
    struct call *call;
    write_home();
    conn_listener_free(&t.listener);
    cr_expect_eq(call_open(&t.ctl, &call), CTL_INFRASTRUCTURE);
    cr_expect_null(call);
    expect_said(t.address);
    cr_expect_eq(diag_errors(t.ctl.diag), 1);
}

Test(ctl_call, an_address_that_is_none)
{
    struct call *call;
    write_home();
    t.ctl.address = "here";
    cr_expect_eq(call_open(&t.ctl, &call), CTL_USAGE);
    expect_said("here");
}

Test(ctl_call, the_address_of_the_configuration_is_taken)
{
    struct call *call;
    char path[FILE_PATH_MAX];
    write_home();
    cr_assert_eq(file_path(path, sizeof(path), t.dir, "address"), 0);
    cr_assert_eq(file_write_atomic(path, t.address, strlen(t.address), 0644), 0);
    t.ctl.address = NULL;
    cr_assert_eq(call_open(&t.ctl, &call), 0, "%s", diag_first(t.ctl.diag));
    cr_expect_str_eq(call_address(call), t.address);
    call_close(&call);
}

Test(ctl_call, a_coordinator_that_refuses_says_why)
{
    struct call *call;
    write_home();
    t.manner = REFUSES;
    cr_expect_eq(call_open(&t.ctl, &call), CTL_INFRASTRUCTURE);
    expect_said("too many connections");
    expect_said(t.address);
}

Test(ctl_call, a_protocol_that_it_does_not_speak)
{
    struct call *call;
    write_home();
    t.manner = ANOTHER_PROTO;
    cr_expect_eq(call_open(&t.ctl, &call), CTL_INFRASTRUCTURE);
    expect_said("99");
}

Test(ctl_call, a_document_is_collected_of_its_pieces)
{
    struct buf out = BUF_INIT;
    struct call *call = open_call(ANSWERS_IN_PIECES);
    cr_expect_eq(ask(call, &out), 7, "the coordinator's exit status");
    cr_expect_str_eq(buf_str(&out), "one two");
    buf_reset(&out);
    t.manner = ANSWERS;
    cr_expect_eq(ask(call, &out), 7);
    cr_expect_str_eq(buf_str(&out), "hello\n");
    cr_expect_eq(diag_errors(t.ctl.diag), 0);
    buf_fini(&out);
    call_close(&call);
}

Test(ctl_call, a_connection_that_ends_before_the_answer_is_told)
{
    struct buf out = BUF_INIT;
    struct call *call = open_call(CLOSES);
    cr_expect_eq(ask(call, &out), CTL_INFRASTRUCTURE);
    expect_said(t.address);
    expect_said("the program stops");
    cr_expect_eq(ask(call, &out), CTL_INFRASTRUCTURE, "and it stays ended");
    buf_fini(&out);
    call_close(&call);
}

Test(ctl_call, what_the_role_does_not_reach_is_a_no_that_names_the_role)
{
    struct msg m = {.type = MSG_HOST_SET};
    struct call_answer answer;
    struct buf out = BUF_INIT;
    struct call *call = open_call(DENIES);
    m.u.host_set.call = call_number(call);
    m.u.host_set.name = "p6";
    m.u.host_set.action = "drain";
    cr_expect_eq(call_ask(call, m.u.host_set.call, &m, NULL, NULL, &answer), CTL_NO);
    cr_expect_not(answer.lost, "nobody dials again for it");
    expect_said("this takes the role admin");
    expect_said("ann is an admin in this fleet");
    expect_said("makespan token create --role admin");
    expect_said("makespan login --force 127.0.0.1:");
    call_close(&call);
    diag_clear(t.ctl.diag);
    cr_assert_eq(call_open(&t.ctl, &call), 0, "%s", diag_first(t.ctl.diag));
    cr_expect_eq(ask(call, &out), CTL_NO);
    expect_said("this takes the role viewer");
    buf_fini(&out);
    call_close(&call);
}

Test(ctl_call, a_coordinator_without_a_sign_of_life_is_given_up)
{
    struct buf out = BUF_INIT;
    struct call *call = open_call(IS_SILENT);
    cr_expect_eq(ask(call, &out), CTL_INFRASTRUCTURE);
    expect_said("no sign of life");
    cr_expect_gt(t.beats, 0, "its own signs of life went out meanwhile");
    buf_fini(&out);
    call_close(&call);
}

static void interrupt(void *arg)
{
    call_interrupt(arg);
}

Test(ctl_call, waiting_can_be_interrupted)
{
    struct msg m = {.type = MSG_HOST_LIST};
    struct call_answer answer;
    struct call *call = open_call(IS_SILENT);
    struct loop_timer *timer = loop_timer_new(t.loop, interrupt, call);
    loop_timer_set(timer, 0);
    m.u.host_list.call = call_number(call);
    cr_expect_eq(call_ask(call, m.u.host_list.call, &m, NULL, NULL, &answer), 0);
    cr_expect(answer.interrupted);
    cr_expect(!answer.lost);
    call_interrupt(call); /* nothing is waited for */
    loop_timer_free(&timer);
    call_close(&call);
}

static bool stop(const char *kind, const void *bytes, size_t n, void *arg)
{
    (void)bytes;
    cr_expect_str_eq(kind, "text");
    *(size_t *)arg += n;
    return false;
}

Test(ctl_call, the_reader_may_stop)
{
    struct msg m = {.type = MSG_HOST_LIST};
    struct call_answer answer;
    size_t got = 0;
    struct call *call = open_call(ANSWERS_IN_PIECES);
    m.u.host_list.call = call_number(call);
    cr_expect_eq(call_ask(call, m.u.host_list.call, &m, stop, &got, &answer), 0);
    cr_expect(answer.stopped);
    cr_expect_eq(got, 4);
    call_close(&call);
}

Test(ctl_call, a_request_that_breaks_the_schema_is_a_mistake_of_the_caller)
{
    struct msg m = {.type = MSG_HOST_LIST};
    struct call_answer answer;
    char name[100];
    struct call *call = open_call(ANSWERS);
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    m.u.host_list.call = call_number(call);
    m.u.host_list.name = name;
    cr_expect_eq(call_ask(call, m.u.host_list.call, &m, NULL, NULL, &answer), CTL_USAGE);
    cr_expect(answer.lost);
    expect_said("too large or malformed");
    call_close(&call);
}
