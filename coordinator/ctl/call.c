/* call.c: the operator's side of a connection. Owns the connection and its TLS context. */
#include "coordinator/ctl/call.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/version.h"
#include "common/vocab.h"
#include "coordinator/ctl/ctl.h"
#include "coordinator/ctl/home.h"
#include "proto/conn.h"
#include "proto/hello.h"
#include "proto/msg.h"
#include "proto/pki.h"
#include "proto/tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WELCOME_WAIT (20 * CLOCK_SEC)

struct call {
    unsigned magic;
    struct ctl *ctl;
    struct tls *tls;
    struct conn *conn; /* NULL once it has ended */
    char address[256];
    struct pki_id me;
    bool welcomed;
    int64_t beat_ns;
    int64_t heard_ns;
    int64_t sent_ns;
    uint64_t beats;
    uint32_t number; /* of the last request */
    /* the request that is waited for */
    uint32_t waiting;
    uint32_t waiting_type; /* MSG_* */
    bool refused;          /* our role may not ask for it */
    bool finished;
    call_piece_f *piece;
    void *arg;
    struct call_answer *answer;
};
#define CALL_MAGIC 0x63616c6cu

static int64_t now_s(void *arg)
{
    (void)arg;
    return clock_wall_ns() / CLOCK_SEC;
}

static void say_hello(struct call *c)
{
    struct msg m = {.type = MSG_HELLO};
    struct hello_caps caps;

    hello_write_caps(CAPS_OURS, &caps);
    hello_fill(&m.u.hello, &caps, "makespan", version_text(), clock_wall_ns());
    if (conn_send(c->conn, &m) != 0)
        diag_error(c->ctl->diag, ERR_IO, "%s: the greeting could not be sent", c->address);
}

static void on_welcome(struct call *c, const struct msg_welcome *w)
{
    struct hello_deal deal;

    if (hello_confirm(w, &deal, c->ctl->diag) != 0)
        return;
    c->welcomed = true;
    c->beat_ns = w->beat_ns > 0 ? w->beat_ns : 30 * CLOCK_SEC;
}

static void on_reply(struct call *c, const struct msg_reply *r)
{
    if (c->waiting == 0 || r->call != c->waiting || c->finished)
        return; /* of a request that was given up, stopped or interrupted */
    c->answer->exit = (int)(r->exit > 255 ? CTL_INFRASTRUCTURE : r->exit);
    c->answer->code = (int)(r->code > 1000 ? 1000 : r->code);
    if (r->talk != NULL) {
        fflush(stdout);
        fputs(r->talk, stderr);
        if (r->talk[0] != '\0' && r->talk[strlen(r->talk) - 1] != '\n')
            fputc('\n', stderr);
    }
    if (r->body.len > 0 && c->piece != NULL && !c->piece(r->kind, r->body.data, r->body.len, c->arg)) {
        c->answer->stopped = true;
        c->finished = true;
    }
    if (r->last)
        c->finished = true;
}

static void on_next(struct call *c, const struct msg_blob_next *n)
{
    if (c->waiting == 0 || n->call != c->waiting)
        return;
    c->answer->next = true;
    c->answer->have = n->have;
    c->answer->done = n->done;
    c->finished = true;
}

static const char *article(const char *word)
{
    return strchr("aeiou", word[0]) == NULL ? "a" : "an";
}

static void on_refused(struct call *c)
{
    const char *need = vocab_role((int)msg_least_role(c->waiting_type));
    const char *have = vocab_role((int)c->me.role);

    c->refused = true;
    diag_error(c->ctl->diag, ERR_DENIED,
               "%s: this takes the role %s, and %s is %s %s in this fleet: an admin prints a token with `makespan token create --role %s`, "
               "and `makespan login --force %s TOKEN` takes it",
               c->address, need, c->me.name, article(have), have, need, c->address);
}

static void on_closed(struct call *c, const struct conn_event *event)
{
    c->conn = NULL;
    if (event->reason == CLOSE_DONE && c->finished)
        return;
    if (event->reason == CLOSE_DIAL) /* it names the addresses that were tried */
        diag_error(c->ctl->diag, ERR_UNREACH, "the coordinator%s%s cannot be reached: %s (--coordinator HOST:PORT names another, %s/address keeps it)",
                   str_starts(event->text, c->address) ? "" : " ", str_starts(event->text, c->address) ? "" : c->address, event->text, c->ctl->home);
    else if (event->reason == CLOSE_NOT_YOURS && c->waiting != 0)
        on_refused(c);
    else
        diag_error(c->ctl->diag, ERR_UNREACH, "%s: %s", c->address, event->text);
}

static void on_event(struct conn *conn, const struct conn_event *event, void *arg)
{
    struct call *c;

    (void)conn;
    CAST_OBJ(c, arg, CALL_MAGIC);
    if (event->kind == CONN_OPEN || event->kind == CONN_MESSAGE) /* not what went out by itself */
        c->heard_ns = clock_mono_ns();
    switch (event->kind) {
    case CONN_OPEN:
        say_hello(c);
        break;
    case CONN_MESSAGE:
        if (event->msg->type == MSG_WELCOME)
            on_welcome(c, &event->msg->u.welcome);
        else if (event->msg->type == MSG_REPLY)
            on_reply(c, &event->msg->u.reply);
        else if (event->msg->type == MSG_BLOB_NEXT)
            on_next(c, &event->msg->u.blob_next);
        break;
    case CONN_DRAINED:
        break;
    case CONN_CLOSED:
        on_closed(c, event);
        break;
    }
}

static int connect_now(struct call *c)
{
    struct home_identity id;
    int64_t deadline;
    int err = home_read_identity(c->ctl->home, &id, c->ctl->diag);

    if (err == 0 && (err = pki_cert_id(id.cert, &c->me, c->ctl->diag)) != 0)
        home_free_identity(&id);
    if (err == 0) {
        struct tls_client_config config = {.key = id.key, .cert = id.cert, .authority = id.authority, .now_s = now_s};

        err = tls_new_client(&config, &c->tls, c->ctl->diag);
        home_free_identity(&id);
    }
    if (err == 0)
        err = conn_dial(c->ctl->loop, c->tls, c->address, NULL, on_event, c, &c->conn, c->ctl->diag);
    if (err != 0)
        return err;
    deadline = clock_mono_ns() + WELCOME_WAIT;
    while (c->conn != NULL && !c->welcomed && diag_errors(c->ctl->diag) == 0 && clock_mono_ns() < deadline)
        loop_turn(c->ctl->loop, 100 * CLOCK_MS);
    if (c->welcomed)
        return 0;
    if (diag_errors(c->ctl->diag) == 0)
        diag_error(c->ctl->diag, ERR_TIMEOUT, "%s: no answer within %d s", c->address, (int)(WELCOME_WAIT / CLOCK_SEC));
    return -ERR_UNREACH;
}

int call_open(struct ctl *ctl, struct call **out)
{
    struct call *c = mem_xzalloc(sizeof *c);
    int err = 0;

    c->magic = CALL_MAGIC;
    c->ctl = ctl;
    if (ctl->address != NULL)
        snprintf(c->address, sizeof c->address, "%s", ctl->address);
    else
        err = home_read_address(ctl->home, c->address, sizeof c->address, ctl->diag);
    if (err == 0)
        err = connect_now(c);
    *out = c;
    if (err != 0)
        call_close(out);
    return err == -ERR_INVAL ? CTL_USAGE : err != 0 ? CTL_INFRASTRUCTURE : 0;
}

void call_close(struct call **call)
{
    struct call *c = *call;

    if (c == NULL)
        return;
    if (c->conn != NULL)
        conn_close(c->conn, CLOSE_DONE, NULL, true);
    tls_free(&c->tls);
    c->magic = 0;
    free(c);
    *call = NULL;
}

const char *call_address(const struct call *call)
{
    return call->address;
}

uint32_t call_number(struct call *call)
{
    return ++call->number;
}

int call_send(struct call *call, const struct msg *msg)
{
    call->sent_ns = clock_mono_ns();
    return call->conn == NULL ? -ERR_CLOSED : conn_send(call->conn, msg);
}

void call_interrupt(struct call *call)
{
    if (call->waiting != 0) {
        call->answer->interrupted = true;
        call->finished = true;
    }
}

static void keep_alive(struct call *c)
{
    struct msg m = {.type = MSG_BEAT};
    int64_t now = clock_mono_ns();

    if (now - c->sent_ns >= c->beat_ns && c->conn != NULL) {
        m.u.beat.n = ++c->beats;
        c->sent_ns = now;
        if (conn_send(c->conn, &m) != 0)
            diag_error(c->ctl->diag, ERR_IO, "%s: a sign of life could not be sent", c->address);
    }
    if (now - c->heard_ns > 3 * c->beat_ns && c->conn != NULL) {
        diag_error(c->ctl->diag, ERR_TIMEOUT, "%s: no sign of life", c->address);
        conn_close(c->conn, CLOSE_SILENT, NULL, true);
        c->conn = NULL;
    }
}

int call_ask(struct call *call, uint32_t number, const struct msg *request, call_piece_f *piece, void *arg, struct call_answer *out)
{
    int err;

    memset(out, 0, sizeof *out);
    call->waiting = number;
    call->waiting_type = (uint32_t)request->type;
    call->finished = false;
    call->piece = piece;
    call->arg = arg;
    call->answer = out;
    err = call_send(call, request);
    if (err == -ERR_LIMIT || err == -ERR_INVAL)
        diag_error(call->ctl->diag, err, "the request is too large or malformed");
    while (err == 0 && call->conn != NULL && !call->finished) {
        loop_turn(call->ctl->loop, call->beat_ns / 2);
        keep_alive(call);
    }
    call->waiting = 0;
    call->answer = NULL;
    if (call->refused)
        return out->exit = CTL_NO;
    if (!call->finished) {
        out->lost = true;
        if (diag_errors(call->ctl->diag) == 0)
            diag_error(call->ctl->diag, ERR_CLOSED, "%s: the connection ended before the answer came", call->address);
        return err == -ERR_LIMIT || err == -ERR_INVAL ? CTL_USAGE : CTL_INFRASTRUCTURE;
    }
    return out->exit;
}

static bool collect(const char *kind, const void *bytes, size_t n, void *arg)
{
    (void)kind;
    buf_add(arg, bytes, n);
    return true;
}

int call_document(struct call *call, uint32_t number, const struct msg *request, struct buf *out)
{
    struct call_answer answer;
    int status = call_ask(call, number, request, collect, out, &answer);

    if (out->err != 0) {
        diag_error(call->ctl->diag, out->err, "the answer is too large");
        return CTL_INFRASTRUCTURE;
    }
    return status;
}
