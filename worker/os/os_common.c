/* os_common.c: what follows from the system's answers, the same on every system. Pure. */
#include "worker/os/os.h"

int64_t os_cpus_usable_milli(const struct os_cpus *cpus)
{
    int64_t whole = cpus->affinity > 0 ? cpus->affinity : cpus->online, milli;

    if (whole < 1)
        whole = 1;
    milli = whole * 1000;
    if (cpus->quota_milli > 0 && cpus->quota_milli < milli)
        milli = cpus->quota_milli;
    return milli;
}

int32_t os_cpus_usable(const struct os_cpus *cpus)
{
    return (int32_t)((os_cpus_usable_milli(cpus) + 999) / 1000);
}
