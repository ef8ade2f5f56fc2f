/* slot_run.c: SETTLE and the way into MEASURE: the machine's lock, a quiet link. */
#include "common/clock.h"
#include "common/err.h"
#include "common/log.h"
#include "common/loop.h"
#include "worker/run/settle.h"
#include "worker/run/slot_int.h"

/* A link that does not drain must not keep a run from beginning. */
#define QUIET_LIMIT CLOCK_SEC

static void on_waits(const char *text, void *arg)
{
    struct slot *slot;

    CAST_OBJ(slot, arg, SLOT_MAGIC);
    log_info("waits: %s", text);
    slot->ops.state(slot->at.a->run, slot->at.a->attempt, slot->phase, text, slot->arg);
}

static void on_settled(const struct settle_result *result, void *arg)
{
    struct slot *slot;

    CAST_OBJ(slot, arg, SLOT_MAGIC);
    slot->settle = NULL;
    slot->lock = result->lock;
    slot->at.settle_ns = result->waited_ns;
    if (slot_obeys_wish(slot))
        return;
    if (result->code != 0) {
        marks_add(&slot->at.marks, MARK_LOCK_BUSY, "%s", result->text);
        slot_fail(slot, OUTCOME_INVALID, "the run was not begun: %s", result->text);
        return;
    }
    slot_measure(slot);
}

void slot_settle(struct slot *slot)
{
    struct settle_spec spec = {.path = slot->conf.lock_path,
                               .holder = slot->conf.holder,
                               .timeout_ns = slot->at.a->settle_timeout_ns,
                               .waits = on_waits};

    slot_enter(slot, PHASE_SETTLE, NULL);
    slot->at.settle_start_ns = clock_mono_ns();
    slot->settle = settle_start(slot->conf.loop, &spec, on_settled, slot);
}

void slot_measure(struct slot *slot)
{
    slot->window = true;
    slot->ops.window(true, slot->arg);
    slot_enter(slot, PHASE_MEASURE, NULL);
    /* The turn that follows gives the kernel what was just said of the phase. */
    slot->quieting = true;
    loop_timer_set(slot->again, 0);
}

void slot_wait_quiet(struct slot *slot)
{
    if (slot->ops.queued(slot->arg) > 0 && slot_elapsed(slot) < QUIET_LIMIT) {
        loop_timer_set(slot->again, CLOCK_MS);
        return;
    }
    slot->quieting = false;
    slot_run_cmd(slot, CMD_RUN);
}
