/* agent_queue.c: what is done next: the queue against the slot, the room that is told, the polite
 * end. Everything that may be due is looked at whenever anything happened. */
#include "common/clock.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/num.h"
#include "common/str.h"
#include "worker/agent_int.h"
#include "worker/conf.h"
#include "worker/link.h"
#include "worker/run/feed.h"
#include "worker/run/journal.h"
#include "worker/run/slot.h"
#include "worker/run/spool.h"
#include "worker/run/tree.h"

#include <inttypes.h>
#include <stdio.h>

#define RETRY (5 * CLOCK_SEC)
#define DELIVERY (2 * CLOCK_SEC)
#define DELIVERY_LOOK (20 * CLOCK_MS)
#define FREE_STEP (64 * 1024)

static bool is_idle(const struct agent *agent)
{
    return slot_phase(agent->slot) == PHASE_IDLE;
}

uint32_t agent_room(const struct agent *agent)
{
    size_t held = journal_queued(agent->journal) + (is_idle(agent) ? 0 : 1);

    if (agent->stopping || !agent->ready || agent->no_room[0] != '\0' ||
        !spool_has_reserve(agent->spool) || held >= AGENT_AHEAD + 1)
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

/* No work is begun, since `what` cannot be written to the folder of that name: said once in the log,
 * and to the coordinator until it is over. What is free is told in steps, lest each byte be told. */
static void no_room(struct agent *agent, const char *folder, const char *what, int err)
{
    char path[FILE_PATH_MAX], size[32];
    uint64_t n = 0;

    if (file_path(path, sizeof path, agent->conf->dir, folder) != 0 ||
        file_disk_free(path, &n) != 0)
        str_copy(path, sizeof path, agent->conf->dir);
    if (agent->no_room[0] == '\0')
        log_error("no work is taken: %s cannot be written to %s: %s; %s free", what, path,
                  err_text(err), num_size_text(size, sizeof size, n));
    snprintf(agent->no_room, sizeof agent->no_room, "%s cannot be written to %.150s: %s; %s free",
             what, path, err_text(err),
             num_size_text(size, sizeof size, n / FREE_STEP * FREE_STEP));
}

/* Whether a result is sure to fit on the disk. */
static bool has_space(struct agent *agent)
{
    int err = spool_refill(agent->spool);

    if (err != 0)
        no_room(agent, "spool", "results", err);
    /* A build may have filled the disk, and what it left is removed before the next one alone. */
    if (err != 0 && trees_give_room(agent->trees, TREES_ROOM_STANDING))
        log_warn("what builds left in %s is thrown away, as far as that is needed",
                 agent->conf->dir);
    return err == 0;
}

static void there_is_room(struct agent *agent)
{
    if (agent->no_room[0] == '\0')
        return;
    log_info("there is room on the disk again: work is taken");
    agent->no_room[0] = '\0';
}

/* False: something was not possible and is to be tried again. */
static bool begin_next(struct agent *agent)
{
    int err;

    if (agent->stopping || !is_idle(agent) || journal_queued(agent->journal) == 0)
        return true;
    err = journal_begin(agent->journal, agent->boot_id, clock_wall_ns());
    if (err != 0) {
        no_room(agent, "journal", "the journal", err);
        return false;
    }
    there_is_room(agent);
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

    if (agent->stopping && !agent->ready)
        end_politely(agent);
    if (agent->window || !agent->ready)
        return;
    on_coord_unstash(agent);
    if (is_idle(agent) && !agent->stopping)
        good = has_space(agent);
    if (!settle_the_past(agent))
        good = false;
    if (good)
        good = begin_next(agent);
    if (good)
        there_is_room(agent);
    if (!good)
        loop_timer_set(agent->retry, RETRY);
    if (agent->window)
        return;
    on_coord_say_room(agent);
    feed_pump(agent->feed);
    if (agent->stopping)
        end_politely(agent);
}
