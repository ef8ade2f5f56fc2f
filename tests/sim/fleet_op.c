/* fleet_op.c: the operator of a simulated fleet, over the wire: puts the archive and submits the
 * sweep, again with the same key after each lost connection, until it is told that it is accepted;
 * now and then asks for what has no result to be made again. */
#include "common/clock.h"
#include "common/diag.h"
#include "common/loop.h"
#include "proto/conn.h"
#include "proto/hello.h"
#include "proto/msg.h"
#include "proto/tls.h"
#include "tests/sim/fleet_int.h"

#include <assert.h>
#include <string.h>

static void dial(void *arg);

static int64_t now_s(void *arg)
{
    (void)arg;
    return clock_wall_ns() / CLOCK_SEC;
}

static void send(struct fleet *f, const struct msg *m)
{
    int rc = conn_send(f->op.conn, m);
    (void)rc; /* CLOSED says it, too */
}

static void say_hello(struct fleet *f)
{
    struct msg m = {.type = MSG_HELLO};
    struct hello_caps caps;
    hello_write_caps(CAPS_OURS, &caps);
    hello_fill(&m.u.hello, &caps, "makespan", "0", clock_wall_ns());
    send(f, &m);
}

static void ask_to_put(struct fleet *f)
{
    struct msg m = {.type = MSG_BLOB_WANT};
    m.u.blob_want.call = ++f->op.call;
    m.u.blob_want.hash = (struct msg_bytes){f->archive_hash, sizeof(f->archive_hash)};
    m.u.blob_want.total = sizeof(f->archive);
    send(f, &m);
}

static void put(struct fleet *f, uint64_t have)
{
    struct msg m = {.type = MSG_BLOB_DATA};
    size_t n = sizeof(f->archive) - (size_t)have;
    m.u.blob_data.hash = (struct msg_bytes){f->archive_hash, sizeof(f->archive_hash)};
    m.u.blob_data.offset = have;
    m.u.blob_data.total = sizeof(f->archive);
    m.u.blob_data.bytes = (struct msg_bytes){f->archive + have, n < 4000 ? n : 4000};
    send(f, &m);
}

static void submit(struct fleet *f)
{
    struct msg m = {.type = MSG_SWEEP_PUT};
    struct msg_sweep_put *p = &m.u.sweep_put;
    const struct rec_revision revision = {
        .expr = "",
        .commit = "",
        .tree = "",
        .subject = "",
        .blob = {f->archive_hash, sizeof(f->archive_hash)},
        .size = sizeof(f->archive),
    };
    p->call = ++f->op.call;
    p->action = "run";
    p->file = "sweep.yaml";
    p->text = (struct msg_bytes){(const uint8_t *)f->conf.sweep, strlen(f->conf.sweep)};
    p->revisions = &revision;
    p->revisions_count = 1;
    p->yes = true;
    p->format = "json";
    p->key = "once";
    send(f, &m);
}

static void retry(struct fleet *f)
{
    struct msg m = {.type = MSG_SWEEP_SET};
    m.u.sweep_set.call = ++f->op.call;
    m.u.sweep_set.sweep = "sim";
    m.u.sweep_set.action = "retry";
    send(f, &m);
}

/* Whatever the answer is: there may be nothing to be made again. */
static void retried(struct fleet *f)
{
    f->op.retries--;
    if (f->op.retries > 0) {
        loop_timer_set(f->op.again, f->conf.retry_pause_ns);
    }
}

static void on_reply(struct fleet *f, const struct msg_reply *r)
{
    if (r->call != f->op.call || !r->last) {
        return;
    }
    if (f->op.accepted) {
        retried(f);
        return;
    }
    bool early = r->talk != NULL && strstr(r->talk, "has never connected") != NULL;
    if (r->exit == 0) {
        f->op.accepted = true;
        loop_timer_set(f->op.again, f->op.retries > 0 ? f->conf.retry_pause_ns : CLOCK_SEC);
    } else if (early) {
        loop_timer_set(f->op.again, CLOCK_SEC); /* of a worker nothing is known yet */
    } else {
        fleet_fail(f, "the sweep is refused: exit %u, %.300s", (unsigned)r->exit,
                   r->talk != NULL ? r->talk : "");
    }
}

static void on_message(struct fleet *f, const struct msg *m)
{
    switch (m->type) {
    case MSG_WELCOME:
        if (!f->op.accepted) {
            ask_to_put(f);
        } else {
            retry(f);
        }
        break;
    case MSG_BLOB_NEXT:
        if (m->u.blob_next.done) {
            submit(f);
        } else {
            put(f, m->u.blob_next.have);
        }
        break;
    case MSG_REPLY:
        on_reply(f, &m->u.reply);
        break;
    default:
        break;
    }
}

static void on_event(struct conn *conn, const struct conn_event *event, void *arg)
{
    struct fleet *f = arg;
    (void)conn;
    switch (event->kind) {
    case CONN_OPEN:
        say_hello(f);
        break;
    case CONN_MESSAGE:
        on_message(f, event->msg);
        break;
    case CONN_DRAINED:
        break;
    case CONN_CLOSED:
        f->op.conn = NULL;
        if (!fleet_is_content(f) && !loop_timer_pending(f->op.again)) {
            loop_timer_set(f->op.again, CLOCK_SEC);
        }
        break;
    }
}

/* A connection without an answer within a minute is given up: the other side may have lost
 * power. */
static void dial(void *arg)
{
    struct fleet *f = arg;
    if (f->op.conn != NULL) {
        conn_close(f->op.conn, f->op.accepted ? CLOSE_DONE : CLOSE_SILENT, NULL, true);
        f->op.conn = NULL;
    }
    if (fleet_is_content(f)) {
        return;
    }
    int rc = conn_dial(f->op.loop, f->op.tls, "coord:7443", NULL, on_event, f, &f->op.conn, NULL);
    assert(rc == 0);
    (void)rc;
    loop_timer_set(f->op.again, CLOCK_MIN);
}

void fleet_op_start(struct fleet *f, struct loop *loop)
{
    const struct tls_client_config config = {
        .key = f->op.key, .cert = f->op.cert, .authority = f->op.authority, .now_s = now_s};
    int rc = tls_new_client(&config, &f->op.tls, NULL);
    assert(rc == 0);
    (void)rc;
    f->op.loop = loop;
    f->op.again = loop_timer_new(loop, dial, f);
    loop_timer_set(f->op.again, 0);
}

void fleet_op_stop(struct fleet *f)
{
    if (f->op.conn != NULL) {
        conn_close(f->op.conn, CLOSE_DONE, NULL, true);
        f->op.conn = NULL;
    }
    loop_timer_free(&f->op.again);
    tls_free(&f->op.tls);
}
