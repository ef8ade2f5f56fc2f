/* clock.c: common/clock.h: the clocks of the node whose code runs; outside of all, the world's. */
#include "common/clock.h"

#include "tests/sim/sim.h"

/* 2027-01-15 08:00:00 UTC: when each world begins. */
#define EPOCH (INT64_C(1800000000) * CLOCK_SEC)

int64_t clock_mono_ns(void)
{
    struct world *w = sim_world();
    if (w->here == NULL) {
        return w->now_ns;
    }
    struct sim_machine *m = sim_machine_of(w->here);
    return m->mono_at_boot + (w->now_ns - m->boot_ns);
}

int64_t clock_wall_ns(void)
{
    struct world *w = sim_world();
    return EPOCH + w->now_ns + (w->here != NULL ? sim_machine_of(w->here)->wall_off_ns : 0);
}

int64_t clock_boot_ns(void)
{
    return clock_mono_ns();
}
