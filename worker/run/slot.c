/* slot.c: the states of the attempt in progress: who may change them, how long each may last, and
 * how an attempt ends early. What is done in them: slot_tree.c, slot_cmd.c,
 * slot_run.c, slot_out.c. */
#include "worker/run/slot.h"

#include "common/clock.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/jobs.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "worker/os/confine.h"
#include "worker/run/env.h"
#include "worker/run/fetch.h"
#include "worker/run/journal.h"
#include "worker/run/meter.h"
#include "worker/run/output.h"
#include "worker/run/settle.h"
#include "worker/run/slot_int.h"
#include "worker/run/tree.h"
#include "worker/run/words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A command has its own limit, and its tree is killed within some seconds after it: a state that
 * lasts so much longer hangs by our own fault. */
#define MARGIN (2 * CLOCK_MIN)
/* For an archive that has to come through a link which may be down. */
#define FETCH_LIMIT CLOCK_DAY
/* For unpacking, beside the limit of setup. */
#define UNPACK_LIMIT CLOCK_HOUR

/* --- the attempt --- */

static void attempt_free(struct slot_attempt *at)
{
    buf_fini(&at->text);
    free(at->blob_path);
    free(at->fingerprint_text);
    told_free(&at->told);
    for (int i = 0; i < CMD_COUNT; i++)
        output_remove(&at->output[i]);
    env_dropped_free(&at->dropped, at->dropped_count);
    memset(at, 0, sizeof *at);
}

static void attempt_init(struct slot *slot, const struct journal_running *running)
{
    struct slot_attempt *at = &slot->at;

    memset(at, 0, sizeof *at);
    at->a = running->assign;
    at->begin_wall_ns = running->begin_wall_ns;
    at->exit_status = -1;
    at->setup_ns = at->reset_ns = at->settle_ns = at->check_ns = -1;
    buf_init(&at->text, 16 * 1024);
    if (os_cpus(&at->cpus) != 0)
        at->cpus = (struct os_cpus){.online = -1, .affinity = -1, .quota_milli = -1};
    if (os_limits(&at->limits) != 0)
        at->limits = (struct os_limits){-1, -1, -1, -1, -1, -1};
}

/* "nightly/3 lua O2 -j4, attempt 1 of run 17" */
static const char *name_of(const struct slot_attempt *at, char *dst, size_t room)
{
    char jobs[16];
    struct buf b = BUF_INIT;

    jobs_text(jobs, sizeof jobs, (int32_t)at->a->jobs);
    buf_printf(&b, "%s %s %s jobs %s, attempt %" PRIu32 " of run %" PRIu64, at->a->sweep,
               at->a->workload, at->a->variant, jobs, at->a->attempt, at->a->run);
    words_copy(dst, room, buf_str(&b));
    buf_fini(&b);
    return dst;
}

/* --- states --- */

static int64_t limit_of(const struct slot *slot, enum phase phase)
{
    const struct msg_assign *a = slot->at.a;

    switch (phase) {
    case PHASE_FETCH:
        return a->setup_timeout_ns + FETCH_LIMIT;
    case PHASE_SETUP:
        return a->setup_timeout_ns + UNPACK_LIMIT;
    case PHASE_RESET:
        return a->reset_timeout_ns + MARGIN;
    case PHASE_SETTLE:
        return a->settle_timeout_ns + MARGIN;
    case PHASE_MEASURE:
        return a->run_timeout_ns + MARGIN;
    case PHASE_CHECK:
        return a->check_timeout_ns + MARGIN;
    default:
        return 0; /* IDLE; FLUSH, which lasts until there is room: a result is not given up */
    }
}

void slot_arm(struct slot *slot)
{
    int64_t limit = limit_of(slot, slot->phase);

    if (limit > 0)
        loop_timer_set(slot->deadline, limit);
}

void slot_enter(struct slot *slot, enum phase phase, const char *why)
{
    const struct msg_assign *a = slot->at.a;

    log_debug("run %" PRIu64 ": %s -> %s%s%s", a == NULL ? 0 : a->run,
              vocab_phase((int)slot->phase), vocab_phase((int)phase), why == NULL ? "" : ": ",
              why == NULL ? "" : why);
    slot->phase = phase;
    slot->retry = NULL;
    if (phase != PHASE_FLUSH && phase != PHASE_IDLE)
        slot_disk_has_room(slot);
    memset(&slot->disk, 0, sizeof slot->disk);
    slot->phase_ns = clock_mono_ns();
    if (phase != PHASE_FLUSH) {
        slot->at.ending = ENDING_NONE;
        slot->at.exit_status = -1;
        slot->at.signal = 0;
    }
    loop_timer_clear(slot->deadline);
    loop_timer_clear(slot->again);
    if (phase == PHASE_IDLE)
        return;
    slot_arm(slot);
    journal_phase(slot->conf.journal, phase, slot->at.fresh);
    slot->ops.state(a->run, a->attempt, phase, NULL, slot->arg);
}

void slot_close_window(struct slot *slot)
{
    if (!slot->window)
        return;
    slot->window = false;
    slot->ops.window(false, slot->arg);
}

void slot_unlock(struct slot *slot)
{
    file_lock_free(&slot->lock);
}

/* Nothing of the attempt is under way any more. */
static void end_now(struct slot *slot, enum outcome outcome)
{
    struct slot_attempt *at = &slot->at;

    slot->starting = slot->quieting = false;
    slot_unlock(slot);
    slot_close_window(slot);
    at->outcome = outcome;
    at->end_phase = slot->phase;
    slot_enter(slot, PHASE_FLUSH, vocab_outcome((int)outcome));
    slot_flush(slot);
}

void slot_end(struct slot *slot, enum outcome outcome)
{
    struct slot_attempt *at = &slot->at;

    if (outcome == OUTCOME_OK) {
        at->ending = ENDING_EXIT;
        at->exit_status = 0;
    }
    for (size_t i = 0; outcome == OUTCOME_OK && i < at->marks.count; i++) {
        if (!at->marks.list[i].invalid)
            continue;
        outcome = OUTCOME_INVALID;
        buf_printf(&at->text, "%s: %s", vocab_mark_sentence((int)at->marks.list[i].mark),
                   at->marks.list[i].text);
    }
    end_now(slot, outcome);
}

void slot_fail(struct slot *slot, enum outcome outcome, const char *fmt, ...)
{
    va_list ap;

    buf_reset(&slot->at.text);
    va_start(ap, fmt);
    buf_vprintf(&slot->at.text, fmt, ap);
    va_end(ap);
    end_now(slot, outcome);
}

void slot_finish(struct slot *slot, bool spooled)
{
    uint64_t run = slot->at.a->run;
    uint32_t attempt = slot->at.a->attempt;
    char name[400], real[32];

    name_of(&slot->at, name, sizeof name);
    if (!spooled)
        log_info("%s: withdrawn", name);
    else if (slot->at.outcome == OUTCOME_OK)
        log_info("%s: ok, %s s", name,
                 num_seconds_text(real, sizeof real, slot->at.result.step.real_ns, 3));
    else
        log_warn("%s: %s: %s", name, vocab_outcome((int)slot->at.outcome), buf_str(&slot->at.text));
    slot->starting = slot->quieting = false;
    slot->wish = WISH_NONE;
    slot_unlock(slot);
    slot_close_window(slot);
    fetch_keep(slot->conf.fetch, NULL);
    attempt_free(&slot->at);
    journal_done(slot->conf.journal);
    slot_enter(slot, PHASE_IDLE, NULL);
    slot->ops.done(run, attempt, spooled, slot->arg);
}

/* --- ending early --- */

bool slot_obeys_wish(struct slot *slot)
{
    switch (slot->wish) {
    case WISH_NONE:
        return false;
    case WISH_CANCEL:
        slot_fail(slot, OUTCOME_CANCELLED, "cancelled in phase %s: %s",
                  vocab_phase((int)slot->phase), slot->why);
        break;
    case WISH_STOP:
        slot_fail(slot, OUTCOME_INTERRUPTED, "the worker was stopped while it was in phase %s",
                  vocab_phase((int)slot->phase));
        break;
    case WISH_WITHDRAW:
        slot_finish(slot, false);
        break;
    }
    return true;
}

/* Ends what is under way; the wish is obeyed at once, or when its end is told. */
static void break_off(struct slot *slot)
{
    if (slot->step != NULL) {
        step_cancel(slot->step);
        return;
    }
    if (slot->measure != NULL) {
        measure_cancel(slot->measure);
        return;
    }
    if (slot->cleaning)
        return;
    if (slot->fetching)
        fetch_cancel(slot->conf.fetch);
    if (slot->entering)
        trees_cancel(slot->conf.trees);
    slot->fetching = slot->entering = false;
    settle_cancel(&slot->settle);
    (void)slot_obeys_wish(slot);
}

static void wish(struct slot *slot, enum slot_wish what, const char *why)
{
    if (slot->wish != WISH_NONE)
        return; /* the end is under way already */
    slot->wish = what;
    words_copy(slot->why, sizeof slot->why, why);
    break_off(slot);
}

static bool has(const struct slot *slot, uint64_t run, uint32_t attempt)
{
    return slot->phase != PHASE_IDLE && slot->at.a->run == run && slot->at.a->attempt == attempt;
}

bool slot_cancel(struct slot *slot, uint64_t run, uint32_t attempt, const char *why)
{
    if (!has(slot, run, attempt))
        return false;
    if (slot->phase == PHASE_FLUSH) /* it waits for room on the disk */
        marks_add(&slot->at.marks, MARK_CANCELLED_LATE, "cancelled when all was done: %s", why);
    else
        wish(slot, WISH_CANCEL, why);
    return true;
}

bool slot_withdraw(struct slot *slot, uint64_t run, uint32_t attempt)
{
    if (!has(slot, run, attempt) || (slot->phase != PHASE_FETCH && slot->phase != PHASE_SETUP) ||
        slot->wish != WISH_NONE)
        return false;
    wish(slot, WISH_WITHDRAW, "");
    return true;
}

void slot_stop(struct slot *slot)
{
    if (slot->phase != PHASE_IDLE && slot->phase != PHASE_FLUSH)
        wish(slot, WISH_STOP, "");
}

/* --- deadlines --- */

static void on_deadline(void *arg)
{
    struct slot *slot;
    char span[32];
    bool own; /* no command's fault */

    CAST_OBJ(slot, arg, SLOT_MAGIC);
    num_duration_text(span, sizeof span, limit_of(slot, slot->phase));
    if (slot->starting) {
        marks_add(&slot->at.marks, MARK_SURVIVORS_BEFORE,
                  "they could not be ended within %s, so that %s was not begun", span,
                  slot_cmd_word(slot->cmd));
        slot_fail(slot, OUTCOME_INVALID, "processes of an earlier command could not be ended");
        return;
    }
    if (slot->step != NULL || slot->measure != NULL) {
        /* Its own limit did not end it, and its kill did not either. */
        log_error("%s did not end within %s: it is given up", slot_cmd_word(slot->cmd), span);
        step_free(&slot->step);
        measure_free(&slot->measure);
    }
    if (slot->fetching)
        fetch_cancel(slot->conf.fetch);
    if (slot->entering)
        trees_cancel(slot->conf.trees);
    /* The emptying of HOME and TMPDIR goes on, and the next attempt waits for it. */
    own = slot->phase == PHASE_FETCH || slot->cleaning;
    slot->fetching = slot->entering = slot->cleaning = false;
    settle_cancel(&slot->settle);
    slot_fail(slot, own ? OUTCOME_INTERRUPTED : OUTCOME_FAILED, "phase %s had no end within %s",
              vocab_phase((int)slot->phase), span);
}

/* What is tried again: a start, a quiet link, the writing of records, what a full disk kept from
 * being written. */
static void on_again(void *arg)
{
    struct slot *slot;
    void (*retry)(struct slot *);

    CAST_OBJ(slot, arg, SLOT_MAGIC);
    retry = slot->retry;
    slot->retry = NULL;
    if (retry != NULL)
        retry(slot);
    else if (slot->phase == PHASE_FLUSH)
        slot_flush(slot);
    else if (slot->quieting)
        slot_wait_quiet(slot);
    else if (slot->starting)
        slot_run_cmd(slot, slot->cmd);
}

/* --- public --- */

struct slot *slot_new(const struct slot_conf *conf, const struct slot_ops *ops, void *arg)
{
    struct slot *slot = mem_xzalloc(sizeof *slot);

    slot->magic = SLOT_MAGIC;
    slot->conf = *conf;
    slot->conf.out_dir = mem_xstrdup(conf->out_dir);
    slot->conf.path = mem_xstrdup(conf->path);
    slot->conf.lock_path = mem_xstrdup(conf->lock_path);
    slot->conf.holder = mem_xstrdup(conf->holder);
    slot->conf.boot_id = mem_xstrdup(conf->boot_id);
    slot->conf.kernel = mem_xstrdup(conf->kernel);
    slot->ops = *ops;
    slot->arg = arg;
    slot->phase = PHASE_IDLE;
    slot->phase_ns = clock_mono_ns();
    slot->deadline = loop_timer_new(conf->loop, on_deadline, slot);
    slot->again = loop_timer_new(conf->loop, on_again, slot);
    slot->meter = meter_new();
    return slot;
}

void slot_free(struct slot **slot)
{
    struct slot *s = *slot;

    if (s == NULL)
        return;
    step_free(&s->step);
    measure_free(&s->measure);
    settle_cancel(&s->settle);
    if (s->fetching)
        fetch_cancel(s->conf.fetch);
    if (s->entering)
        trees_cancel(s->conf.trees);
    slot_unlock(s);
    attempt_free(&s->at);
    meter_free(&s->meter);
    loop_timer_free(&s->deadline);
    loop_timer_free(&s->again);
    free((char *)(uintptr_t)s->conf.out_dir);
    free((char *)(uintptr_t)s->conf.path);
    free((char *)(uintptr_t)s->conf.lock_path);
    free((char *)(uintptr_t)s->conf.holder);
    free((char *)(uintptr_t)s->conf.boot_id);
    free((char *)(uintptr_t)s->conf.kernel);
    s->magic = 0;
    free(s);
    *slot = NULL;
}

void slot_start(struct slot *slot)
{
    char name[400];

    attempt_init(slot, journal_running(slot->conf.journal));
    log_info("%s: begun", name_of(&slot->at, name, sizeof name));
    slot_enter(slot, PHASE_FETCH, NULL);
    slot_fetch(slot);
}

enum phase slot_phase(const struct slot *slot)
{
    return slot->phase;
}

int64_t slot_elapsed(const struct slot *slot)
{
    return clock_mono_ns() - slot->phase_ns;
}
