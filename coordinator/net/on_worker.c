/* on_worker.c: what a worker says: HELLO, assignments taken or refused, phases, records of attempts, requests for archives; and what it is told. */
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/version.h"
#include "coordinator/blob/blob.h"
#include "coordinator/ca/ca.h"
#include "coordinator/net/net_priv.h"
#include "coordinator/net/records.h"
#include "coordinator/plan/fleet.h"
#include "coordinator/result/ingest.h"
#include "proto/hello.h"
#include "proto/msg.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A clock that differs by more than this is told to the worker's log. */
#define CLOCK_TOLERANCE CLOCK_MIN

static const char *fact_of(const struct msg_hello *h, const char *key)
{
    for (size_t i = 0; i < h->facts_count; i++)
        if (strcmp(h->facts[i].key, key) == 0)
            return h->facts[i].value;
    return NULL;
}

static int64_t number_of(const char *text)
{
    int64_t v;

    return text == NULL || num_parse_i64(text, &v) != 0 || v < 0 ? 0 : v;
}

/* Of several facts with one key the first holds: the database takes no second one. */
static size_t read_facts(const struct msg_hello *h, struct model_fact *facts)
{
    size_t n = 0;

    for (size_t i = 0; i < h->facts_count; i++) {
        size_t k = 0;

        while (k < n && strcmp(facts[k].key, h->facts[i].key) != 0)
            k++;
        if (k == n)
            facts[n++] = (struct model_fact){.key = h->facts[i].key, .value = h->facts[i].value};
    }
    return n;
}

/* HELLO's lists as the planner wants them; the arrays are freed by the caller. */
static int read_hello(const struct msg_hello *h, struct plan_hello *out, struct model_fact **facts, struct plan_held **held)
{
    size_t fact_count;

    *facts = mem_try_array(h->facts_count + 1, sizeof **facts, 1024 * 1024);
    *held = mem_try_array(h->held_count + 1, sizeof **held, 16 * 1024 * 1024);
    if (*facts == NULL || *held == NULL)
        return -ERR_NOMEM;
    fact_count = read_facts(h, *facts);
    for (size_t i = 0; i < h->held_count; i++) {
        struct plan_held *to = &(*held)[i];

        if (h->held[i].run > INT64_MAX || h->held[i].state < PLAN_HELD_QUEUED || h->held[i].state > PLAN_HELD_SPOOLED)
            return -ERR_PROTO;
        to->run = (int64_t)h->held[i].run;
        to->attempt = h->held[i].attempt;
        to->state = h->held[i].state == PLAN_HELD_QUEUED    ? PLAN_HELD_QUEUED
                    : h->held[i].state == PLAN_HELD_RUNNING ? PLAN_HELD_RUNNING
                                                            : PLAN_HELD_SPOOLED;
        to->phase = h->held[i].has_phase && vocab_phase((int)h->held[i].phase) != NULL ? (enum phase)h->held[i].phase : PHASE_IDLE;
    }
    *out = (struct plan_hello){.boot_id = h->boot_id,
                               .machine_id = h->machine_id,
                               .version = h->version,
                               .visit = h->has_visit ? h->visit : 0,
                               .room = h->has_room ? h->room : 0,
                               .cpus_milli = number_of(fact_of(h, "cpus.usable_milli")),
                               .memory_bytes = number_of(fact_of(h, "memory.total")),
                               .facts = *facts,
                               .fact_count = fact_count,
                               .held = *held,
                               .held_count = h->held_count};
    return 0;
}

static size_t clock_warnings(const struct peer *peer, const struct msg_hello *h, char text[2][256], const char **out)
{
    int64_t now = clock_wall_ns();
    int64_t off = (h->wall_ns > 0 ? h->wall_ns : 0) - now; /* before 1970 there is nothing to set */
    int64_t left_s = conn_peer(peer->conn)->cert_end_s - now / CLOCK_SEC;
    char span[32];
    size_t n = 0;

    if (off > CLOCK_TOLERANCE || off < -CLOCK_TOLERANCE) {
        snprintf(text[n], sizeof text[n], "the clock of this host is %s %s the coordinator's: set it; times of results are shown as it says",
                 num_duration_text(span, sizeof span, (off < 0 ? -off : off) / CLOCK_SEC * CLOCK_SEC), off < 0 ? "behind" : "ahead of");
        out[n] = text[n];
        n++;
    }
    if (left_s < 30 * 86400) {
        snprintf(text[n], sizeof text[n], "the certificate of this host ends in %" PRId64 " days: make a token with --name %s and join again",
                 left_s / 86400, conn_peer(peer->conn)->name);
        out[n] = text[n];
        n++;
    }
    return n;
}

static void send_welcome(struct peer *peer, const struct msg_hello *h, const struct hello_deal *deal, const struct rec_acked *acked,
                         size_t n)
{
    struct msg m = {.type = MSG_WELCOME};
    struct hello_caps caps;
    char text[2][256];
    const char *warnings[2];

    hello_write_caps(deal->caps, &caps);
    m.u.welcome.proto = deal->proto;
    m.u.welcome.caps = caps.words;
    m.u.welcome.caps_count = caps.count;
    m.u.welcome.fleet = ca_fleet(peer->net->rooms.ca);
    m.u.welcome.version = version_text();
    m.u.welcome.wall_ns = clock_wall_ns();
    m.u.welcome.beat_ns = peer->net->conf.beat_ns;
    m.u.welcome.acked = acked;
    m.u.welcome.acked_count = n;
    m.u.welcome.warnings = warnings;
    m.u.welcome.warnings_count = clock_warnings(peer, h, text, warnings);
    for (size_t i = 0; i < m.u.welcome.warnings_count; i++)
        log_warn("%s: %s", conn_peer(peer->conn)->name, warnings[i]);
    peer_send(peer, &m);
}

/* So many refusals fit into WELCOME with all else; of more the worker hears when it sends their records. */
#define WELCOME_REFUSED_MAX 1000

/* What is committed of the attempts that the worker has spooled. */
static int known_attempts(struct peer *peer, const struct plan_hello *hello, struct rec_acked **out, size_t *n)
{
    size_t refused = 0;

    *n = 0;
    *out = mem_try_array(hello->held_count + 1, sizeof **out, 16 * 1024 * 1024);
    if (*out == NULL)
        return -ERR_NOMEM;
    for (size_t i = 0; i < hello->held_count; i++) {
        struct ingest_ack ack;
        int err;

        if (hello->held[i].state != PLAN_HELD_SPOOLED)
            continue;
        err = ingest_known(peer->net->rooms.ingest, peer->host, hello->held[i].run, hello->held[i].attempt, &ack);
        if (err != 0)
            return err;
        if (ack.refused != NULL && ++refused > WELCOME_REFUSED_MAX)
            continue;
        (*out)[(*n)++] =
            (struct rec_acked){.run = (uint64_t)ack.run, .attempt = ack.attempt, .seq = ack.seq, .whole = ack.whole, .refused = ack.refused};
    }
    return 0;
}

/* What was refused will not come: no run is to wait for it. */
static void drop_rejected(const struct peer *peer, struct plan_held *held, struct plan_hello *hello)
{
    size_t kept = 0;

    for (size_t i = 0; i < hello->held_count; i++)
        if (held[i].state != PLAN_HELD_SPOOLED || !ingest_is_rejected(peer->net->rooms.ingest, peer->host, held[i].run, held[i].attempt))
            held[kept++] = held[i];
    hello->held_count = kept;
}

/* A failure that is the store's: the turn is rolled back by its owner, and this peer is cut off then. */
static bool store_fault(int err)
{
    return err != 0 && err != -ERR_PROTO && err != -ERR_NOTFOUND && err != -ERR_DENIED;
}

static void replace_old(struct peer *peer)
{
    struct peer *old = net_find_worker(peer->net, peer->host);

    if (old == NULL || old == peer)
        return;
    old->host = 0; /* the planner hears of the new link, not of the end of the old one */
    peer_close(old, CLOSE_REPLACED, NULL);
}

static int greet(struct peer *peer, const struct msg_hello *h, struct plan_hello *hello, struct plan_held *held, struct diag *diag)
{
    const struct conn_peer *who = conn_peer(peer->conn);
    struct hello_deal deal;
    struct rec_acked *acked = NULL;
    enum host_state state;
    size_t n;
    int err = hello_accept(h, &deal, diag);

    if (err != 0)
        return err;
    err = peer->net->ops->host_of(peer->net->arg, who->name, who->key_hash, &peer->host, &state);
    if (err == -ERR_NOTFOUND)
        return diag_error(diag, ERR_NOTFOUND, "the fleet knows no host %s with this key: make a token and join again", who->name);
    if (err == 0 && state == HOST_REVOKED)
        return diag_error(diag, ERR_DENIED, "%s", close_text(CLOSE_REVOKED));
    if (err == 0)
        err = known_attempts(peer, hello, &acked, &n);
    if (err != 0) {
        free(acked);
        return diag_error(diag, err, "%s", err_text(err));
    }
    drop_rejected(peer, held, hello);
    replace_old(peer);
    peer->wrote = true;
    err = plan_host_up(peer->net->rooms.plan, net_now(), peer->host, hello, diag);
    if (err == 0) {
        peer->state = PEER_OPEN;
        send_welcome(peer, h, &deal, acked, n);
        log_info("%s at %s is connected", who->name, who->address);
    }
    free(acked);
    return err;
}

static enum close_reason reason_of(int err)
{
    switch (-err) {
    case ERR_VERSION:
        return CLOSE_VERSION;
    case ERR_NOTFOUND:
    case ERR_DENIED:
        return CLOSE_REVOKED;
    case ERR_PROTO:
    case ERR_NOMEM:
        return CLOSE_DECODE;
    default:
        return CLOSE_STORE;
    }
}

static void on_hello(struct peer *peer, const struct msg_hello *h)
{
    struct diag *diag = diag_new(4);
    struct plan_hello hello;
    struct model_fact *facts = NULL;
    struct plan_held *held = NULL;
    int err = read_hello(h, &hello, &facts, &held);

    if (err == 0)
        err = greet(peer, h, &hello, held, diag);
    if (err != 0)
        peer_violation(peer, diag, reason_of(err));
    for (size_t i = 0; err == 0 && i < diag_count(diag); i++)
        log_warn("%s: %s", conn_peer(peer->conn)->name, diag_get(diag, i)->text);
    free(facts);
    free(held);
    diag_free(&diag);
}

static void on_blob_get(struct peer *peer, const struct msg_blob_get *g)
{
    struct msg m = {.type = MSG_BLOB_DATA};
    size_t want = g->length > BLOB_PIECE_MAX ? BLOB_PIECE_MAX : g->length;
    uint8_t *bytes;
    uint64_t total;
    size_t got;
    int err;

    if (g->hash.len != MODEL_HASH) {
        peer_violation(peer, NULL, CLOSE_DECODE);
        return;
    }
    bytes = mem_xarray(want + 1, 1);
    if ((err = blob_size(peer->net->rooms.blob, g->hash.data, &total)) == 0)
        err = blob_read(peer->net->rooms.blob, g->hash.data, g->offset, bytes, want, &got);
    if (err != 0) {
        m.type = MSG_BLOB_NONE;
        m.u.blob_none.hash = g->hash;
        m.u.blob_none.text = err_text(err);
        log_error("an archive that %s asks for cannot be read: %s", conn_peer(peer->conn)->name, err_text(err));
    } else {
        m.u.blob_data.hash = g->hash;
        m.u.blob_data.offset = g->offset;
        m.u.blob_data.total = total;
        m.u.blob_data.bytes = (struct msg_bytes){.data = bytes, .len = got};
    }
    peer_send(peer, &m);
    free(bytes);
}

/* The run that an assignment's message speaks of; ids of the store fit into 63 bits. */
static bool run_fits(const struct msg *msg)
{
    switch (msg->type) {
    case MSG_TAKEN:
        return msg->u.taken.run <= INT64_MAX;
    case MSG_REFUSED:
        return msg->u.refused.run <= INT64_MAX;
    case MSG_STATE:
        return msg->u.state.run <= INT64_MAX;
    case MSG_AWAY:
        return msg->u.away.run <= INT64_MAX;
    default:
        return true;
    }
}

static int on_planned(struct peer *peer, const struct msg *msg)
{
    struct plan *plan = peer->net->rooms.plan;
    struct plan_now now = net_now();

    if (!run_fits(msg))
        return -ERR_PROTO;
    switch (msg->type) {
    case MSG_TAKEN:
        return plan_taken(plan, now, peer->host, (int64_t)msg->u.taken.run, msg->u.taken.attempt);
    case MSG_REFUSED:
        return plan_refused(plan, now, peer->host, (int64_t)msg->u.refused.run, msg->u.refused.attempt,
                            msg->u.refused.code > 1000 ? ERR_BUSY : (int)msg->u.refused.code, msg->u.refused.text);
    case MSG_STATE:
        if (vocab_phase((int)msg->u.state.phase) == NULL)
            return 0;
        return plan_phase(plan, now, peer->host, (int64_t)msg->u.state.run, msg->u.state.attempt, (enum phase)msg->u.state.phase,
                          msg->u.state.text);
    case MSG_AWAY:
        return plan_away(plan, now, peer->host, (int64_t)msg->u.away.run, msg->u.away.attempt, msg->u.away.until_ns, msg->u.away.text);
    default:
        return records_take(peer->net->rooms.ingest, now.wall_ns, peer->host, msg);
    }
}

void on_worker_message(struct peer *peer, const struct msg *msg)
{
    int err;

    if (peer->state == PEER_OPEN)
        plan_host_beat(peer->net->rooms.plan, net_now(), peer->host);
    switch (msg->type) {
    case MSG_HELLO:
        on_hello(peer, &msg->u.hello);
        return;
    case MSG_BEAT:
        if (msg->u.beat.has_run && msg->u.beat.has_phase && vocab_phase((int)msg->u.beat.phase) != NULL)
            plan_beat_phase(peer->net->rooms.plan, net_now(), peer->host, (int64_t)msg->u.beat.run,
                            (enum phase)msg->u.beat.phase, msg->u.beat.elapsed_ns);
        return;
    case MSG_READY:
        plan_ready(peer->net->rooms.plan, net_now(), peer->host, msg->u.ready.room);
        plan_no_room(peer->net->rooms.plan, net_now(), peer->host, msg->u.ready.text);
        return;
    case MSG_BLOB_GET:
        on_blob_get(peer, &msg->u.blob_get);
        return;
    default:
        break;
    }
    peer->wrote = true;
    err = on_planned(peer, msg);
    if (err == -ERR_PROTO) {
        struct diag *diag = diag_new(1);

        diag_error(diag, ERR_PROTO, "%s does not fit what came before it", msg_name(msg->type));
        peer_violation(peer, diag, CLOSE_NOT_NOW);
        diag_free(&diag);
    } else if (store_fault(err)) {
        log_error("a %s of %s cannot be stored: %s", msg_name(msg->type), conn_peer(peer->conn)->name, err_text(err));
        peer_close(peer, CLOSE_STORE, NULL);
    } else if (err != 0) {
        log_debug("a %s of %s was not taken: %s", msg_name(msg->type), conn_peer(peer->conn)->name, err_text(err));
    }
}

void on_worker_closed(struct peer *peer, const char *why)
{
    int err;

    if (peer->host == 0)
        return; /* replaced by a newer connection */
    ingest_host_down(peer->net->rooms.ingest, peer->host);
    err = plan_host_down(peer->net->rooms.plan, net_now(), peer->host, why);
    if (err != 0)
        log_error("the end of the link of %s cannot be stored: %s", conn_peer(peer->conn)->name, err_text(err));
    log_info("%s is disconnected: %s", conn_peer(peer->conn)->name, why);
    peer->host = 0;
}

#define ACKS_AT_ONCE 256
struct acks {
    struct peer *peer;
    struct rec_acked list[ACKS_AT_ONCE];
    size_t count;
};

static void flush_acks(struct acks *a)
{
    struct msg m = {.type = MSG_ACK};

    if (a->count == 0)
        return;
    m.u.ack.acked = a->list;
    m.u.ack.acked_count = a->count;
    peer_send(a->peer, &m);
    a->count = 0;
}

static void add_ack(void *arg, const struct ingest_ack *ack)
{
    struct acks *a = arg;

    a->list[a->count++] =
        (struct rec_acked){.run = (uint64_t)ack->run, .attempt = ack->attempt, .seq = ack->seq, .whole = ack->whole, .refused = ack->refused};
    if (a->count == ACKS_AT_ONCE)
        flush_acks(a);
}

void on_worker_acks(struct net *net)
{
    int64_t hosts[64];
    size_t n;

    while ((n = ingest_hosts_due(net->rooms.ingest, hosts, ARRAY_LEN(hosts))) > 0) {
        for (size_t i = 0; i < n; i++) {
            struct acks a = {.peer = net_find_worker(net, hosts[i]), .count = 0};

            if (a.peer == NULL) {
                ingest_host_down(net->rooms.ingest, hosts[i]);
                continue;
            }
            ingest_take_acks(net->rooms.ingest, hosts[i], add_ack, &a);
            flush_acks(&a);
        }
    }
}

void net_send_withdraw(struct net *net, int64_t host, int64_t run, uint32_t attempt)
{
    struct peer *peer = net_find_worker(net, host);
    struct msg m = {.type = MSG_WITHDRAW};

    if (peer == NULL)
        return;
    m.u.withdraw.run = (uint64_t)run;
    m.u.withdraw.attempt = attempt;
    peer_send(peer, &m);
}

#define CANCEL_TEXT 256 /* what CANCEL has room for */

/* Cuts a text of UTF-8 to the room, at a character's end. */
static const char *cut_text(char dst[CANCEL_TEXT + 1], const char *text)
{
    size_t n = strlen(text);

    if (n > CANCEL_TEXT)
        for (n = CANCEL_TEXT; n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80;)
            n--;
    memcpy(dst, text, n);
    dst[n] = '\0';
    return dst;
}

void net_send_cancel(struct net *net, int64_t host, int64_t run, uint32_t attempt, const char *text)
{
    struct peer *peer = net_find_worker(net, host);
    struct msg m = {.type = MSG_CANCEL};
    char plain[CANCEL_TEXT + 1];

    if (peer == NULL)
        return;
    m.u.cancel.run = (uint64_t)run;
    m.u.cancel.attempt = attempt;
    m.u.cancel.text = text == NULL ? "" : cut_text(plain, text);
    peer_send(peer, &m);
}

void net_send_away_ok(struct net *net, int64_t host, int64_t run, uint32_t attempt)
{
    struct peer *peer = net_find_worker(net, host);
    struct msg m = {.type = MSG_AWAY_OK};

    if (peer == NULL)
        return;
    m.u.away_ok.run = (uint64_t)run;
    m.u.away_ok.attempt = attempt;
    peer_send(peer, &m);
}

void net_send_assign(struct net *net, const struct plan_assignment *a)
{
    struct peer *peer = net_find_worker(net, a->host);
    struct msg m = {.type = MSG_ASSIGN};
    struct msg_assign *to = &m.u.assign;

    if (peer == NULL)
        return;
    to->run = (uint64_t)a->run;
    to->attempt = a->attempt;
    to->sweep = a->sweep;
    to->workload = a->workload->name;
    to->variant = a->variant->name;
    to->jobs = a->cell->jobs;
    to->warmup = a->warmup;
    to->source_kind = (uint32_t)a->workload->source_kind;
    to->blob = (struct msg_bytes){.data = a->input == NULL ? NULL : a->input->blob, .len = a->input != NULL && a->input->has_blob ? MODEL_HASH : 0};
    to->has_blob = a->input != NULL && a->input->has_blob;
    to->blob_size = a->input == NULL ? 0 : a->input->size;
    to->has_blob_size = to->has_blob;
    to->host_dir = a->input == NULL ? NULL : a->input->host_dir;
    to->rev = a->input == NULL ? NULL : a->input->commit[0] != '\0' ? a->input->commit : a->input->expr;
    to->tree = a->tree_exact && a->input != NULL && a->input->tree[0] != '\0' ? a->input->tree : NULL;
    to->setup = a->workload->setup;
    to->reset = a->workload->reset;
    to->command = a->workload->run;
    to->check = a->workload->check;
    to->fingerprint = a->workload->fingerprint;
    to->env = a->variant->env;
    to->env_count = a->variant->env_count;
    to->setup_timeout_ns = a->cell->setup_timeout_ns;
    to->reset_timeout_ns = a->cell->reset_timeout_ns;
    to->run_timeout_ns = a->cell->run_timeout_ns;
    to->check_timeout_ns = a->cell->check_timeout_ns;
    to->kernel = a->variant->kernel;
    to->block = a->block >= 0 && a->block <= UINT32_MAX ? (uint32_t)a->block : 0;
    to->has_block = true;
    to->slot = a->slot >= 0 ? (uint64_t)a->slot : 0;
    to->has_slot = true;
    to->settle_timeout_ns = a->settle_timeout_ns;
    to->fresh_warmup = a->fresh_warmup;
    to->has_fresh_warmup = true;
    to->fingerprint_want = a->cell->fingerprint;
    peer_send(peer, &m);
}
