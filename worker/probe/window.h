/* window.h: who used the processors between two instants, and whether the clocks ran straight.
 * What is read is os.h's; the differences are pure. */
#ifndef MAKESPAN_WORKER_PROBE_WINDOW_H
#define MAKESPAN_WORKER_PROBE_WINDOW_H

#include "worker/os/os.h"

#include <stdbool.h>
#include <stdint.h>

/* --- processors --- */
struct window_cpu {
    struct os_ticks ticks;
    bool has_ticks;
    int64_t kernel_ns; /* threads of the kernel, all together; -1: not to be seen from here */
    int64_t self_ns;   /* this process; -1: unknown */
};

/* Just before the window, and first thing after it. Each walks the list of processes once, on
 * the outer side. */
void window_cpu_before(struct window_cpu *at);
void window_cpu_after(struct window_cpu *at);

/* -1: unknown. */
struct window_cpu_used {
    /* neither the tree nor this process nor the kernel's threads and interrupts; at least 0 */
    int64_t foreign_ns;
    int64_t observer_ns; /* this process */
    int64_t kernel_ns;   /* threads of the kernel and interrupts */
    int64_t steal_ns;    /* taken by the hypervisor */
};
/* `tree_ns`: what the build's tree used in the window; below 0: unknown, and so is foreign_ns. */
void window_cpu_diff(const struct window_cpu *from, const struct window_cpu *to, int64_t tree_ns,
                     struct window_cpu_used *out);

/* --- clocks --- */
struct window_clocks {
    int64_t mono_ns;
    int64_t wall_ns;
    int64_t boot_ns;
};
void window_clocks_take(struct window_clocks *at);

struct window_clocks_moved {
    int64_t step_ns; /* the wall clock was set forward (above 0) or back by this; 0: it was not */
    int64_t suspend_ns; /* the system slept so long; 0: it did not */
};
/* Differences below 20 ms are not seen: the three clocks cannot be read at one instant. */
void window_clocks_diff(const struct window_clocks *from, const struct window_clocks *to,
                        struct window_clocks_moved *out);

#endif
