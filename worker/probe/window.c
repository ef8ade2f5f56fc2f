/* window.c: who used the processors between two instants, and whether the clocks ran straight. */
#include "worker/probe/window.h"

#include "common/clock.h"

#define CLOCKS_BLUR (20 * CLOCK_MS)

static int add_kernel(const struct os_proc *proc, void *arg)
{
    int64_t *sum = arg;

    if (proc->kernel)
        *sum = (*sum < 0 ? 0 : *sum) + (proc->cpu_ns > 0 ? proc->cpu_ns : 0);
    return 0;
}

static void take_kernel(struct window_cpu *at)
{
    at->kernel_ns = -1; /* in a container without the kernel's threads it stays so */
    if (os_procs(add_kernel, &at->kernel_ns) != 0)
        at->kernel_ns = -1;
}

static void take_self(struct window_cpu *at)
{
    struct os_usage self;

    at->self_ns = os_self_usage(&self) == 0 ? self.user_ns + self.sys_ns : -1;
}

void window_cpu_before(struct window_cpu *at)
{
    take_kernel(at);
    at->has_ticks = os_ticks(&at->ticks) == 0;
    take_self(at);
}

void window_cpu_after(struct window_cpu *at)
{
    take_self(at);
    at->has_ticks = os_ticks(&at->ticks) == 0;
    take_kernel(at);
}

void window_cpu_diff(const struct window_cpu *from, const struct window_cpu *to, int64_t tree_ns,
                     struct window_cpu_used *out)
{
    int64_t threads = -1, irq, programs;

    out->foreign_ns = -1;
    out->kernel_ns = -1;
    out->steal_ns = -1;
    out->observer_ns =
        from->self_ns >= 0 && to->self_ns >= from->self_ns ? to->self_ns - from->self_ns : -1;
    if (from->kernel_ns >= 0 &&
        to->kernel_ns >= 0) /* a kernel thread that ended takes its time out of the sum */
        threads = to->kernel_ns > from->kernel_ns ? to->kernel_ns - from->kernel_ns : 0;
    if (!from->has_ticks || !to->has_ticks) {
        out->kernel_ns = threads;
        return;
    }
    if (from->ticks.steal >= 0 && to->ticks.steal >= from->ticks.steal)
        out->steal_ns = to->ticks.steal - from->ticks.steal;
    irq = to->ticks.irq - from->ticks.irq;
    out->kernel_ns = (threads > 0 ? threads : 0) + (irq > 0 ? irq : 0);
    if (tree_ns < 0)
        return;
    programs = to->ticks.user - from->ticks.user + to->ticks.system - from->ticks.system;
    out->foreign_ns = programs - tree_ns - (threads > 0 ? threads : 0) -
                      (out->observer_ns > 0 ? out->observer_ns : 0);
    if (out->foreign_ns < 0)
        out->foreign_ns = 0;
}

void window_clocks_take(struct window_clocks *at)
{
    at->mono_ns = clock_mono_ns();
    at->wall_ns = clock_wall_ns();
    at->boot_ns = clock_boot_ns();
}

void window_clocks_diff(const struct window_clocks *from, const struct window_clocks *to,
                        struct window_clocks_moved *out)
{
    int64_t mono = to->mono_ns - from->mono_ns, boot = to->boot_ns - from->boot_ns,
            wall = to->wall_ns - from->wall_ns;
    int64_t slept = boot - mono, stepped;

    out->suspend_ns = slept > CLOCKS_BLUR ? slept : 0;
    stepped = wall - mono - out->suspend_ns;
    out->step_ns = stepped > CLOCKS_BLUR || stepped < -CLOCKS_BLUR ? stepped : 0;
}
