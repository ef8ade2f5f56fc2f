/* reply.c: answers to operators: in pieces, at once or after the commit. Owns the list of what is held back. */
#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"
#include "coordinator/ca/ca.h"
#include "coordinator/net/net_priv.h"
#include "proto/msg.h"

#include <stdlib.h>
#include <string.h>

/* Below the schema's limit of REPLY.body, so that several fit into the queue of a connection. */
#define PIECE ((size_t)128 * 1024)
/* The schema's limit of REPLY.talk. */
#define TALK ((size_t)65536)
/* A long answer goes on while less than this is queued: the connection takes 4 MiB. */
#define QUEUE_ENOUGH ((size_t)1024 * 1024)
/* Most long answers that a peer has asked for and not yet read. */
#define REST_MAX 4
/* A watcher that has this much unread gets nothing more until it has read. */
#define WATCH_QUEUE ((size_t)256 * 1024)

static void send_piece(struct peer *peer, uint32_t call, uint32_t exit, int code, const char *kind, const void *body, size_t n,
                       const char *talk, bool last)
{
    struct msg m = {.type = MSG_REPLY};

    m.u.reply.call = call;
    m.u.reply.exit = exit;
    m.u.reply.last = last;
    m.u.reply.kind = kind;
    m.u.reply.body = (struct msg_bytes){.data = body, .len = n};
    m.u.reply.talk = talk;
    m.u.reply.code = (uint32_t)(code < 0 ? -code : code);
    peer_send(peer, &m);
}

/* What the schema lets REPLY.talk be: at most TALK bytes, well-formed. Texts quote files and programs, whose bytes may be anything: an answer that could not be sent would leave the operator waiting. */
static char *fit_talk(const char *talk)
{
    static const char more[] = "\n[...]\n";
    struct buf out = BUF_INIT;
    size_t n = strlen(talk);
    bool long_one = n > TALK;
    char *text;

    if (long_one)
        n = TALK - strlen(more);
    while (n > 0) {
        size_t good = str_utf8_bad(talk, n);

        buf_add(&out, talk, good);
        if (good < n)
            buf_add_char(&out, '?');
        good += good < n;
        talk += good;
        n -= good;
    }
    if (long_one)
        buf_add_str(&out, more);
    text = mem_xstrdup(buf_str(&out));
    buf_fini(&out);
    return text;
}

/* --- long answers --- */

static void rest_free(struct rest *rest)
{
    free(rest->kind_word);
    free(rest->talk);
    buf_fini(&rest->body);
    free(rest);
}

void rests_free(struct peer *peer)
{
    struct rest *rest;

    while ((rest = peer->rests) != NULL) {
        peer->rests = rest->next;
        rest_free(rest);
    }
}

/* True when its last piece was sent. */
static bool send_some(struct peer *peer, struct rest *rest)
{
    size_t left = rest->body.len - rest->sent;
    size_t n = left > PIECE ? PIECE : left;

    send_piece(peer, rest->call, rest->exit, rest->code, rest->kind_word, rest->body.data + rest->sent, n, n == left ? rest->talk : NULL,
               n == left);
    rest->sent += n;
    return n == left;
}

void reply_go_on(struct peer *peer)
{
    while (peer->rests != NULL && peer->state != PEER_CLOSING && conn_queued(peer->conn) < QUEUE_ENOUGH) {
        struct rest *rest = peer->rests;

        if (send_some(peer, rest)) {
            peer->rests = rest->next;
            rest_free(rest);
        }
    }
}

/* Behind those that wait. */
static void add_rest(struct peer *peer, struct rest *rest)
{
    struct rest **at = &peer->rests;
    size_t n = 0;

    for (; *at != NULL; at = &(*at)->next)
        n++;
    if (n == REST_MAX || rest->body.err != 0) {
        rest_free(rest);
        peer_close(peer, CLOSE_QUEUE_FULL, NULL);
        return;
    }
    *at = rest;
    reply_go_on(peer);
}

void reply_now(struct peer *peer, uint32_t call, uint32_t exit, int code, const char *kind, const void *body, size_t n, const char *talk)
{
    char *fit = talk == NULL ? NULL : fit_talk(talk);
    struct rest *rest;

    if (n <= PIECE) {
        send_piece(peer, call, exit, code, kind, body, n, fit, true);
        free(fit);
        return;
    }
    rest = mem_xzalloc(sizeof *rest);
    rest->call = call;
    rest->exit = exit;
    rest->code = code;
    rest->kind_word = mem_xstrdup(kind);
    rest->talk = fit;
    buf_add(&rest->body, body, n);
    add_rest(peer, rest);
}

uint32_t reply_exit_of(int code)
{
    switch (code < 0 ? -code : code) {
    case ERR_OK:
        return 0;
    case ERR_INVAL:
    case ERR_RANGE:
    case ERR_LIMIT:
    case ERR_SYNTAX:
    case ERR_NOTFOUND:
    case ERR_EXISTS:
    case ERR_DENIED:
    case ERR_STATE:
    case ERR_CONFLICT:
    case ERR_NOTYET:
        return 64;
    default:
        return 3;
    }
}

void reply_failed(struct peer *peer, uint32_t call, int code, const struct diag *diag)
{
    struct buf talk = BUF_INIT;

    diag_print(diag, &talk);
    if (talk.len == 0)
        buf_printf(&talk, "%s\n", err_text(code));
    reply_now(peer, call, reply_exit_of(code), code, "text", "", 0, buf_str(&talk));
    buf_fini(&talk);
}

bool reply_event(struct peer *peer, uint32_t call, const char *line)
{
    if (conn_queued(peer->conn) > WATCH_QUEUE)
        return false;
    send_piece(peer, call, 0, 0, "event", line, strlen(line), NULL, false);
    return true;
}

struct held *held_add(struct net *net, struct peer *peer, int kind)
{
    struct held *h = mem_xzalloc(sizeof *h);

    h->peer = peer;
    switch (kind) {
    case HELD_REPLY:
        h->kind = HELD_REPLY;
        break;
    case HELD_JOINED:
        h->kind = HELD_JOINED;
        break;
    case HELD_NEXT:
        h->kind = HELD_NEXT;
        break;
    default:
        h->kind = HELD_CLOSE;
        break;
    }
    *net->held_last = h;
    net->held_last = &h->next;
    return h;
}

void reply_held(struct peer *peer, uint32_t call, uint32_t exit, const char *kind, const char *body, const char *talk)
{
    struct held *h = held_add(peer->net, peer, HELD_REPLY);

    h->call = call;
    h->exit = exit;
    h->kind_word = mem_xstrdup(kind);
    h->body = mem_xstrdup(body);
    h->talk = talk == NULL ? NULL : mem_xstrdup(talk);
}

static void held_free(struct held *h)
{
    free(h->kind_word);
    free(h->body);
    free(h->talk);
    free(h->grant);
    free(h);
}

static struct held *take_first(struct net *net)
{
    struct held *h = net->held_first;

    if (h != NULL && (net->held_first = h->next) == NULL)
        net->held_last = &net->held_first;
    return h;
}

static void send_joined(struct net *net, const struct held *h)
{
    struct msg m = {.type = MSG_JOINED};
    const char *warnings[CA_WARNINGS];
    size_t n;

    m.u.joined.cert = (struct msg_bytes){.data = h->grant->cert, .len = h->grant->cert_len};
    m.u.joined.authority.data = ca_authority_der(net->rooms.ca, &n);
    m.u.joined.authority.len = n;
    m.u.joined.name = h->grant->name;
    m.u.joined.fleet = ca_fleet(net->rooms.ca);
    m.u.joined.wall_ns = net_now().wall_ns;
    for (size_t i = 0; i < h->grant->warning_count; i++)
        warnings[i] = h->grant->warnings[i];
    m.u.joined.warnings = warnings;
    m.u.joined.warnings_count = h->grant->warning_count;
    peer_send(h->peer, &m);
    peer_close(h->peer, CLOSE_DONE, NULL);
}

static void send_next(const struct held *h)
{
    struct msg m = {.type = MSG_BLOB_NEXT};

    m.u.blob_next.call = h->call;
    m.u.blob_next.hash = (struct msg_bytes){.data = h->hash, .len = sizeof h->hash};
    m.u.blob_next.have = h->have;
    m.u.blob_next.done = true;
    peer_send(h->peer, &m);
}

void held_send_all(struct net *net)
{
    struct held *h;

    while ((h = take_first(net)) != NULL) {
        if (h->peer != NULL) {
            switch (h->kind) {
            case HELD_REPLY:
                reply_now(h->peer, h->call, h->exit, h->code, h->kind_word, h->body, strlen(h->body), h->talk);
                break;
            case HELD_JOINED:
                send_joined(net, h);
                break;
            case HELD_NEXT:
                send_next(h);
                break;
            case HELD_CLOSE:
                peer_close(h->peer, h->reason, NULL);
                break;
            }
        }
        held_free(h);
    }
}

void held_fail_all(struct net *net, const char *text)
{
    struct held *h;

    while ((h = take_first(net)) != NULL) {
        if (h->peer != NULL && (h->kind == HELD_REPLY || h->kind == HELD_NEXT)) {
            struct buf talk = BUF_INIT;

            buf_printf(&talk, "%s\n", text);
            reply_now(h->peer, h->call, 3, ERR_FULL, "text", "", 0, buf_str(&talk));
            buf_fini(&talk);
        } else if (h->peer != NULL && h->kind == HELD_JOINED) {
            peer_close(h->peer, CLOSE_STORE, text);
        }
        held_free(h);
    }
}

void held_forget(struct net *net, const struct peer *peer)
{
    for (struct held *h = net->held_first; h != NULL; h = h->next)
        if (h->peer == peer)
            h->peer = NULL;
}

void held_drop_all(struct net *net)
{
    struct held *h;

    while ((h = take_first(net)) != NULL)
        held_free(h);
}
