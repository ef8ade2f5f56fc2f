/* agent_queue.c: what is done next: the queue against the slot, the room that is told, the polite
 * end. Everything that may be due is looked at whenever anything happened. */
#include "common/clock.h"
#include "common/err.h"
#include "common/log.h"
#include "common/loop.h"
#include "worker/agent_int.h"
#include "worker/conf.h"
#include "worker/link.h"
#include "worker/run/feed.h"
#include "worker/run/journal.h"
#include "worker/run/slot.h"
#include "worker/run/spool.h"
#include "worker/run/tree.h"

#include <inttypes.h>

#define RETRY (5 * CLOCK_SEC)
#define DELIVERY (2 * CLOCK_SEC)
#define DELIVERY_LOOK (20 * CLOCK_MS)

static bool is_idle(const struct agent *agent)
{
    return slot_phase(agent->slot) == PHASE_IDLE;
}

uint32_t agent_room(const struct agent *agent)
{
    size_t held = journal_queued(agent->journal) + (is_idle(agent) ? 0 : 1);

    if (agent->stopping || !agent->swept || !spool_has_reserve(agent->spool) ||
        held >= AGENT_AHEAD + 1)
        return 0;
    return (uint32_t)(AGENT_AHEAD + 1 - held);
}

/* An attempt that the journal names though the slot is idle was left by an earlier start. False: it
 * could not be written down, and nothing may be begun. */
static bool settle_the_past(struct agent *agent)
{
    const struct journal_running *left = journal_running(agent->journal);
    int err;

    if (left == NULL || !is_idle(agent))
        return true;
    err = slot_report_interrupted(agent->spool, left, agent->boot_id);
    if (err != 0) {
        log_error("run %" PRIu64 " was interrupted, which cannot be written: %s; tried again",
                  left->assign->run, err_text(err));
        return false;
    }
    log_warn("attempt %" PRIu32 " of run %" PRIu64 " was interrupted", left->assign->attempt,
             left->assign->run);
    journal_done(agent->journal);
    return true;
}

/* Whether a result is sure to fit on the disk. */
static bool has_space(struct agent *agent)
{
    int err = spool_refill(agent->spool);

    if (err != 0 && !agent->no_room)
        log_error("no work is taken: there is no room for results in %s: %s", agent->conf->dir,
                  err_text(err));
    if (err == 0 && agent->no_room)
        log_info("there is room for results again");
    /* A build may have filled the disk, and what it left is removed before the next one alone. */
    if (err != 0 && trees_give_room(agent->trees))
        log_warn("what builds left in %s is thrown away, as far as that is needed",
                 agent->conf->dir);
    agent->no_room = err != 0;
    return err == 0;
}

/* False: something was not possible and is to be tried again. */
static bool begin_next(struct agent *agent)
{
    int err;

    if (agent->stopping || !is_idle(agent) || journal_queued(agent->journal) == 0)
        return true;
    err = journal_begin(agent->journal, agent->boot_id, clock_wall_ns());
    if (err != 0) {
        log_error(
            "the next run cannot be begun, since the journal cannot be written: %s; tried again",
            err_text(err));
        return false;
    }
    slot_start(agent->slot);
    return true;
}

/* The polite end: all is delivered, or has had its time. */
static void end_politely(struct agent *agent)
{
    int64_t now = clock_mono_ns();
    agent_stopped_f *f = agent->stopped;

    if (f == NULL || !is_idle(agent))
        return;
    if (agent->stop_ns == 0)
        agent->stop_ns = now + DELIVERY;
    if (link_is_up(agent->link) && !feed_is_empty(agent->feed) && now < agent->stop_ns) {
        loop_timer_set(agent->retry, DELIVERY_LOOK);
        return;
    }
    agent->stopped = NULL;
    f(agent->stopped_arg);
}

void agent_pump(struct agent *agent)
{
    bool good = true;

    if (agent->stopping && !agent->swept)
        end_politely(agent);
    if (agent->window || !agent->swept)
        return;
    on_coord_unstash(agent);
    if (is_idle(agent) && !agent->stopping)
        good = has_space(agent);
    if (!settle_the_past(agent))
        good = false;
    if (good)
        good = begin_next(agent);
    if (!good)
        loop_timer_set(agent->retry, RETRY);
    if (agent->window)
        return;
    on_coord_say_room(agent);
    feed_pump(agent->feed);
    if (agent->stopping)
        end_politely(agent);
}
