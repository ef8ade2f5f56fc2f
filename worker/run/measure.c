/* measure.c: the timed command: a step with its window. */
#include "worker/run/measure.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/num.h"
#include "worker/probe/window.h"
#include "worker/run/meter.h"
#include "worker/run/output.h"

#include <stdlib.h>

#define MEASURE_MAGIC 0x6d656173u
/* A sample that comes later than this was not merely scheduled late. */
#define PAUSE (5 * CLOCK_SEC)

struct measure {
    unsigned magic;
    struct step *step;
    struct meter *meter;
    struct output *output;
    int64_t interval_ns;
    measure_end_f *f;
    void *arg;
    bool in_window;
    struct window_cpu cpu_before;
    struct window_cpu cpu_after;
    struct window_clocks clocks_before;
    struct window_clocks clocks_after;
};

/* What only the step knows of a sample. */
static void extra(struct probe_row *row, void *arg)
{
    struct measure *m;
    struct confine_usage usage;

    CAST_OBJ(m, arg, MEASURE_MAGIC);
    if (m->step != NULL) {
        step_usage(m->step, &usage);
        if (usage.way != CPU_WAY_NONE)
            probe_set(row, INSTRUMENT_TREE, usage.user_ns + usage.sys_ns);
    } else {
        probe_set(row, INSTRUMENT_TREE, 0); /* before the spawn */
    }
    if (m->output != NULL)
        probe_set(row, INSTRUMENT_OUTPUT, (int64_t)output_seen(m->output));
}

static void before(void *arg)
{
    struct measure *m;

    CAST_OBJ(m, arg, MEASURE_MAGIC);
    meter_start(m->meter, m->interval_ns, extra, m);
    log_hold();
    window_clocks_take(&m->clocks_before);
    window_cpu_before(&m->cpu_before);
    meter_zero(m->meter, clock_mono_ns());
    m->in_window = true;
}

static void after(const struct proc_end *end, void *arg)
{
    struct measure *m;

    (void)end;
    CAST_OBJ(m, arg, MEASURE_MAGIC);
    window_cpu_after(&m->cpu_after);
    window_clocks_take(&m->clocks_after);
    meter_stop(m->meter);
    m->in_window = false;
    log_release();
}

static int64_t tick(void *arg)
{
    struct measure *m;

    CAST_OBJ(m, arg, MEASURE_MAGIC);
    return meter_tick(m->meter);
}

static void mark_clocks(const struct measure *m, struct marks *marks)
{
    struct window_clocks_moved moved;
    char text[32];

    window_clocks_diff(&m->clocks_before, &m->clocks_after, &moved);
    if (moved.suspend_ns != 0)
        marks_add(marks, MARK_SUSPEND, "the system slept for %s",
                  num_duration_text(text, sizeof(text), moved.suspend_ns));
    if (moved.step_ns != 0)
        marks_add(marks, MARK_CLOCK_STEP, "the wall clock was set %s by %s",
                  moved.step_ns > 0 ? "forward" : "back",
                  num_duration_text(text, sizeof(text),
                                    moved.step_ns > 0 ? moved.step_ns : -moved.step_ns));
    if (meter_longest_gap(m->meter) > PAUSE && moved.suspend_ns == 0)
        marks_add(marks, MARK_PAUSED, "the worker was stopped, or could not run, for %s",
                  num_duration_text(text, sizeof(text), meter_longest_gap(m->meter)));
}

static void step_ended(const struct step_result *result, void *arg)
{
    struct measure *m;
    struct measure_result r = {.step = *result};
    struct window_cpu_used used = {-1, -1, -1, -1};

    CAST_OBJ(m, arg, MEASURE_MAGIC);
    if (result->ending != ENDING_NOEXEC) {
        window_cpu_diff(
            &m->cpu_before, &m->cpu_after,
            result->usage.way != CPU_WAY_NONE ? result->usage.user_ns + result->usage.sys_ns : -1,
            &used);
        mark_clocks(m, &r.step.marks);
    }
    r.foreign_ns = used.foreign_ns;
    r.observer_ns = used.observer_ns;
    r.kernel_ns = used.kernel_ns;
    r.steal_ns = used.steal_ns;
    r.meter = m->meter;
    m->f(&r, m->arg);
}

int measure_start(struct loop *loop, const struct step_spec *spec, struct meter *meter,
                  int64_t interval_ns, measure_end_f *f, void *arg, struct measure **out,
                  struct diag *diag)
{
    struct measure *m = mem_xzalloc(sizeof(*m));
    struct step_spec own = *spec;
    int r;

    *out = NULL;
    assert(spec->before == NULL && spec->after == NULL && spec->tick == NULL);
    m->magic = MEASURE_MAGIC;
    m->meter = meter;
    m->output = spec->output;
    m->interval_ns = interval_ns;
    m->f = f;
    m->arg = arg;
    own.before = before;
    own.after = after;
    own.tick = tick;
    own.hook_arg = m;
    r = step_start(loop, &own, step_ended, m, &m->step, diag);
    if (r != 0) {
        free(m);
        return r;
    }
    *out = m;
    return 0;
}

void measure_cancel(struct measure *measure)
{
    step_cancel(measure->step);
}

bool measure_in_window(const struct measure *measure)
{
    return measure->in_window;
}

void measure_free(struct measure **measure)
{
    struct measure *m = *measure;

    if (m == NULL)
        return;
    if (m->in_window)
        log_release();
    step_free(&m->step);
    m->magic = 0;
    free(m);
    *measure = NULL;
}
