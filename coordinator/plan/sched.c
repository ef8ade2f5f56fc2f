/* sched.c: picks the next assignments. Owns nothing: a function of its input. */
#include "coordinator/plan/sched.h"

/* Whether work `a` of a host goes before work `b`. */
static bool goes_before(const struct sched_host *host, const struct sched_work *a,
                        const struct sched_work *b)
{
    if (a->priority != b->priority) {
        return a->priority < b->priority;
    }
    bool stay_a = a->in_block && a->sweep == host->serving;
    bool stay_b = b->in_block && b->sweep == host->serving;
    if (stay_a != stay_b) {
        return stay_a;
    }
    if (a->age != b->age) {
        return a->age < b->age;
    }
    return a->sweep < b->sweep;
}

static size_t best_work(const struct sched_host *host)
{
    size_t best = 0;
    for (size_t i = 1; i < host->work_count; i++) {
        if (goes_before(host, &host->work[i], &host->work[best])) {
            best = i;
        }
    }
    return best;
}

static bool can_take(const struct sched_host *host)
{
    return host->ready && host->room > 0 && host->work_count > 0;
}

/* Whether the host and the next stand on one machine. */
static bool same_machine(const struct sched_host *a, const struct sched_host *b)
{
    return a->machine != 0 && a->machine == b->machine;
}

/* The host of one machine's hosts [from, to) that may be given an assignment, or `to`. */
static size_t choose_host(const struct sched_host *hosts, size_t from, size_t to, uint32_t ahead)
{
    size_t able = 0;
    size_t keepers = 0;
    size_t keeper = to;
    size_t oldest = to;
    for (size_t i = from; i < to; i++) {
        if (hosts[i].keeps || hosts[i].held > 0) {
            keepers++;
            keeper = i;
        }
        if (can_take(&hosts[i])) {
            able++;
            if (oldest == to || hosts[i].served < hosts[oldest].served) {
                oldest = i;
            }
        }
    }
    if (able == 0 || keepers > 1) {
        return to;
    }
    if (keepers == 0) {
        return oldest;
    }
    /* The machine is taken. Its holder may have more in advance, but not while another waits. */
    bool more = able == 1 && can_take(&hosts[keeper]) && hosts[keeper].held <= ahead;
    return more ? keeper : to;
}

size_t sched_decide(const struct sched_host *hosts, size_t host_count, uint32_t ahead,
                    struct sched_pick *out)
{
    size_t n = 0;
    for (size_t from = 0, to; from < host_count; from = to) {
        for (to = from + 1; to < host_count && same_machine(&hosts[from], &hosts[to]); to++) {
        }
        size_t host = choose_host(hosts, from, to, ahead);
        if (host < to) {
            out[n].host = host;
            out[n].work = best_work(&hosts[host]);
            n++;
        }
    }
    return n;
}
