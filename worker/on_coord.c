/* on_coord.c: what the coordinator says, and what it is told: one small function a message. What
 * comes in the timed window is kept as bytes until it is over, but for a cancel of what
 * is running. */
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/version.h"
#include "worker/agent_int.h"
#include "worker/conf.h"
#include "worker/identity.h"
#include "worker/link.h"
#include "worker/os/confine.h"
#include "worker/run/feed.h"
#include "worker/run/fetch.h"
#include "worker/run/journal.h"
#include "worker/run/slot.h"
#include "worker/run/spool.h"
#include "worker/run/words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define HELD_MAX 20000 /* attempts that HELLO names: more would not fit into a frame */
#define STATE_QUEUE_MAX (64 * 1024)
#define STASH_ROOM (16 * 1024)

enum { HELD_QUEUED = 1, HELD_RUNNING = 2, HELD_SPOOLED = 3 };

static struct agent *self(void *arg)
{
    struct agent *agent;

    CAST_OBJ(agent, arg, AGENT_MAGIC);
    return agent;
}

/* --- HELLO --- */

static void fill_facts(struct agent *agent, struct msg_hello *hello)
{
    struct facts *facts = &agent->facts;

    facts_fini(facts);
    os_facts(facts, agent->conf->dir, agent->compiler, confine_way_text(agent->confine),
             version_text());
    agent->hello_facts = mem_xarray(facts->count + 1, sizeof *agent->hello_facts);
    for (size_t i = 0; i < facts->count; i++)
        agent->hello_facts[i] =
            (struct rec_fact){.key = facts->list[i].key, .value = facts->list[i].value};
    hello->facts = agent->hello_facts;
    hello->facts_count = facts->count;
}

static size_t fill_running(const struct agent *agent, struct rec_held *held)
{
    const struct journal_running *running = journal_running(agent->journal);

    if (running == NULL)
        return 0;
    *held = (struct rec_held){.run = running->assign->run,
                              .attempt = running->assign->attempt,
                              .state = HELD_RUNNING,
                              .has_phase = true,
                              .phase = (uint32_t)running->phase};
    return 1;
}

static void fill_held(struct agent *agent, struct msg_hello *hello)
{
    size_t queued = journal_queued(agent->journal);
    size_t spooled = spool_count(agent->spool);
    struct rec_held *held;
    size_t n;

    if (spooled > HELD_MAX)
        spooled = HELD_MAX; /* the others are sent from their first record on */
    held = agent->hello_held = mem_xarray(1 + queued + spooled, sizeof *held);
    n = fill_running(agent, held);
    for (size_t i = 0; i < queued; i++) {
        const struct msg_assign *a = journal_at(agent->journal, i);

        held[n++] = (struct rec_held){.run = a->run, .attempt = a->attempt, .state = HELD_QUEUED};
    }
    for (size_t i = 0; i < spooled; i++) {
        const struct spool_entry *e = spool_at(agent->spool, i);

        held[n++] = (struct rec_held){
            .run = e->run, .attempt = e->attempt, .state = HELD_SPOOLED, .next_seq = e->count};
    }
    hello->held = held;
    hello->held_count = n;
}

void on_coord_hello(struct msg_hello *hello, void *arg)
{
    struct agent *agent = self(arg);

    hello->boot_id = agent->boot_id[0] == '\0' ? NULL : agent->boot_id;
    hello->machine_id = agent->ident.machine_id[0] == '\0' ? NULL : agent->ident.machine_id;
    fill_facts(agent, hello);
    fill_held(agent, hello);
    hello->has_room = true;
    hello->room = agent->told_room = agent_room(agent);
    agent->told_why[0] = '\0';
    hello->has_visit = true;
    hello->visit = journal_visit(agent->journal);
    hello->has_certificate_end_s = true;
    hello->certificate_end_s = agent->identity->cert_end_s;
}

void on_coord_hello_sent(void *arg)
{
    struct agent *agent = self(arg);

    facts_fini(&agent->facts);
    free(agent->hello_facts);
    free(agent->hello_held);
    agent->hello_facts = NULL;
    agent->hello_held = NULL;
}

/* --- up and down --- */

static void heard(struct agent *agent, int64_t wall_ns)
{
    if (wall_ns / CLOCK_SEC > agent->identity->heard_s)
        agent->identity->heard_s = wall_ns / CLOCK_SEC;
    if (!agent->window)
        journal_heard(agent->journal, agent->identity->heard_s);
}

void on_coord_up(const struct msg_welcome *welcome, void *arg)
{
    struct agent *agent = self(arg);

    heard(agent, welcome->wall_ns);
    feed_up(agent->feed, welcome->acked, welcome->acked_count);
    fetch_link(agent->fetch, true);
    agent_kick(agent);
}

/* Of the frames that wait for the end of the window, those that cancel an attempt: they hold for
 * good. Nothing is allocated. */
static void keep_cancels(struct buf *stash)
{
    size_t kept = 0, n;

    for (size_t at = 0; at + 5 <= stash->len; at += n) {
        const uint8_t *p = stash->data + at;

        n = 4 + ((size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | (size_t)p[3]);
        if (p[4] != MSG_CANCEL)
            continue;
        memmove(stash->data + kept, p, n);
        kept += n;
    }
    stash->len = kept;
    stash->err = 0;
}

void on_coord_down(void *arg)
{
    struct agent *agent = self(arg);

    /* What was not confirmed is handed out again after the next HELLO. */
    keep_cancels(&agent->stash);
    feed_down(agent->feed);
    fetch_link(agent->fetch, false);
    agent_kick(agent);
}

void on_coord_beat(struct msg_beat *beat, void *arg)
{
    struct agent *agent = self(arg);
    const struct journal_running *running = journal_running(agent->journal);

    if (running == NULL || slot_phase(agent->slot) == PHASE_IDLE)
        return;
    beat->has_run = beat->has_phase = beat->has_elapsed_ns = true;
    beat->run = running->assign->run;
    beat->phase = (uint32_t)slot_phase(agent->slot);
    beat->elapsed_ns = slot_elapsed(agent->slot);
}

/* --- what the worker says --- */

void on_coord_say_state(uint64_t run, uint32_t attempt, enum phase phase, const char *text,
                        void *arg)
{
    struct agent *agent = self(arg);
    struct msg m = {.type = MSG_STATE};
    char plain[257];

    if (link_queued(agent->link) > STATE_QUEUE_MAX)
        return; /* lossy: HELLO and the next one say it again */
    m.u.state.run = run;
    m.u.state.attempt = attempt;
    m.u.state.phase = (uint32_t)phase;
    m.u.state.text = text == NULL ? NULL : words_copy(plain, sizeof plain, text);
    (void)link_send(agent->link, &m);
}

void on_coord_say_room(struct agent *agent)
{
    struct msg m = {.type = MSG_READY};
    char plain[257];
    uint32_t room = agent_room(agent);

    if (!link_is_up(agent->link) ||
        (room == agent->told_room && str_eq(agent->no_room, agent->told_why)))
        return;
    m.u.ready.room = room;
    m.u.ready.text = agent->no_room[0] == '\0' ? NULL : words_copy(plain, sizeof plain, agent->no_room);
    if (link_send(agent->link, &m) != 0)
        return;
    agent->told_room = room;
    str_copy(agent->told_why, sizeof agent->told_why, agent->no_room);
}

static void say_taken(struct agent *agent, uint64_t run, uint32_t attempt)
{
    struct msg m = {.type = MSG_TAKEN};

    m.u.taken.run = run;
    m.u.taken.attempt = attempt;
    (void)link_send(agent->link, &m); /* when it is lost, HELLO says it */
}

void on_coord_say_refused(struct agent *agent, uint64_t run, uint32_t attempt, int code,
                          const char *text)
{
    struct msg m = {.type = MSG_REFUSED};
    char plain[1025];

    m.u.refused.run = run;
    m.u.refused.attempt = attempt;
    m.u.refused.code = (uint32_t)(code < 0 ? -code : code);
    m.u.refused.text = words_copy(plain, sizeof plain, text);
    (void)link_send(agent->link, &m);
}

/* --- assignments --- */

static bool is_held(const struct agent *agent, uint64_t run, uint32_t attempt)
{
    const struct journal_running *running = journal_running(agent->journal);

    if (running != NULL && running->assign->run == run && running->assign->attempt == attempt)
        return true;
    for (size_t i = 0; i < journal_queued(agent->journal); i++) {
        const struct msg_assign *a = journal_at(agent->journal, i);

        if (a->run == run && a->attempt == attempt)
            return true;
    }
    return spool_find(agent->spool, run, attempt, 0) < spool_count(agent->spool);
}

static int take(struct agent *agent, const struct msg *msg, struct diag *diag)
{
    int err = worker_conf_allows(agent->conf, &msg->u.assign, diag);

    if (err != 0)
        return err;
    if (agent->stopping)
        return diag_error(diag, ERR_BUSY, "the worker is being stopped");
    if (!spool_has_reserve(agent->spool))
        return diag_error(diag, ERR_BUSY, "the disk of the worker has no room for results");
    err = journal_add(agent->journal, msg);
    return err == 0 ? 0
                    : diag_error(diag, ERR_BUSY, "the worker cannot write its journal: %s",
                                 err_text(err));
}

static void on_assign(struct agent *agent, const struct msg *msg)
{
    const struct msg_assign *a = &msg->u.assign;
    struct diag *diag = diag_new(4);
    int err = is_held(agent, a->run, a->attempt) ? 0 : take(agent, msg, diag);

    if (err == 0) {
        say_taken(agent, a->run, a->attempt);
    } else {
        log_warn("attempt %" PRIu32 " of run %" PRIu64 " (%s) is refused: %s", a->attempt, a->run,
                 a->sweep, diag_first(diag));
        on_coord_say_refused(agent, a->run, a->attempt, diag_get(diag, 0)->code, diag_first(diag));
    }
    diag_free(&diag);
    agent_kick(agent);
}

static void on_withdraw(struct agent *agent, const struct msg_withdraw *w)
{
    if (journal_remove(agent->journal, w->run, w->attempt) != -ERR_NOTFOUND) {
        on_coord_say_refused(agent, w->run, w->attempt, ERR_STATE, "withdrawn before it began");
        agent_kick(agent);
    } else if (!slot_withdraw(agent->slot, w->run, w->attempt)) {
        log_debug("a withdrawal of run %" PRIu64 " came too late", w->run);
    }
}

static void on_cancel(struct agent *agent, const struct msg_cancel *c)
{
    if (slot_cancel(agent->slot, c->run, c->attempt, c->text))
        return;
    /* One that has not begun leaves nothing; one that is spooled is delivered as it is. */
    if (journal_remove(agent->journal, c->run, c->attempt) != -ERR_NOTFOUND) {
        on_coord_say_refused(agent, c->run, c->attempt, ERR_STATE, "cancelled before it began");
        agent_kick(agent);
    }
}

/* --- archives --- */

static void on_blob_data(struct agent *agent, const struct msg_blob_data *b)
{
    if (b->hash.len == FETCH_HASH)
        fetch_data(agent->fetch, b->hash.data, b->offset, b->total, b->bytes.data, b->bytes.len);
}

static void on_blob_none(struct agent *agent, const struct msg_blob_none *b)
{
    if (b->hash.len == FETCH_HASH)
        fetch_none(agent->fetch, b->hash.data, b->text);
}

/* --- all of them --- */

static void handle(struct agent *agent, const struct msg *msg)
{
    switch (msg->type) {
    case MSG_ASSIGN:
        on_assign(agent, msg);
        break;
    case MSG_WITHDRAW:
        on_withdraw(agent, &msg->u.withdraw);
        break;
    case MSG_CANCEL:
        on_cancel(agent, &msg->u.cancel);
        break;
    case MSG_ACK:
        feed_acked(agent->feed, msg->u.ack.acked, msg->u.ack.acked_count);
        break;
    case MSG_BLOB_DATA:
        on_blob_data(agent, &msg->u.blob_data);
        break;
    case MSG_BLOB_NONE:
        on_blob_none(agent, &msg->u.blob_none);
        break;
    default:
        log_debug("%s: nothing to be done", msg_name(msg->type));
        break;
    }
}

static bool is_of_running(const struct agent *agent, const struct msg *msg)
{
    const struct journal_running *running = journal_running(agent->journal);

    return msg->type == MSG_CANCEL && running != NULL &&
           running->assign->run == msg->u.cancel.run &&
           running->assign->attempt == msg->u.cancel.attempt;
}

void on_coord_message(const struct msg *msg, void *arg)
{
    struct agent *agent = self(arg);

    /* What the coordinator assigned it counts as taken from the room that it was told. */
    if (msg->type == MSG_ASSIGN && agent->told_room > 0)
        agent->told_room--;
    if (!agent->window || is_of_running(agent, msg))
        handle(agent, msg);
    else if (msg_encode(msg, &agent->stash) != 0)
        link_close(agent->link, CLOSE_QUEUE_FULL, "too much was sent while a run is being timed");
}

void on_coord_unstash(struct agent *agent)
{
    struct buf stash = agent->stash;
    size_t at = 0;

    if (stash.len == 0)
        return;
    /* The frames are this program's own making: their form is not in doubt. */
    agent->stash = (struct buf){.cap = stash.cap};
    while (at + 5 <= stash.len) {
        const uint8_t *p = stash.data + at;
        size_t n = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | (size_t)p[3];
        struct msg *m = NULL;

        if (msg_decode(p[4], p + 5, n - 1, &m, NULL) == 0)
            handle(agent, m);
        msg_free(&m);
        at += 4 + n;
    }
    buf_fini(&agent->stash);
    buf_reset(&stash);
    if (stash.room > 4 * STASH_ROOM) {
        size_t cap = stash.cap;

        buf_fini(&stash);
        buf_init(&stash, cap);
        (void)!buf_reserve(&stash, STASH_ROOM);
    }
    agent->stash = stash;
}
