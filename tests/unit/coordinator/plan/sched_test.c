/* The scheduler: small cases by hand, and millions of random steps over which nothing may starve,
 * be sent twice, or run beside another on one machine. */
#include "coordinator/plan/sched.h"

#include "common/prng.h"

#include <criterion/criterion.h>
#include <string.h>

static struct sched_host host(uint64_t machine, uint32_t held, const struct sched_work *work,
                              size_t n)
{
    return (struct sched_host){.ready = true,
                               .room = 2,
                               .held = held,
                               .keeps = held > 0,
                               .machine = machine,
                               .work = work,
                               .work_count = n};
}

Test(sched, highest_priority_first_then_the_oldest)
{
    struct sched_work work[] = {
        {10, 1, 5, true}, {11, 2, 1, true}, {12, 1, 3, true}, {13, 1, 4, true}};
    struct sched_host h = host(0, 0, work, 4);
    struct sched_pick pick;
    cr_assert_eq(sched_decide(&h, 1, 1, &pick), 1);
    cr_assert_eq(pick.work, 2);
    h.serving = 13; /* it stays with the sweep that it serves while its block is not over */
    cr_assert_eq(sched_decide(&h, 1, 1, &pick), 1);
    cr_assert_eq(pick.work, 3);
    work[3].in_block = false;
    cr_assert_eq(sched_decide(&h, 1, 1, &pick), 1);
    cr_assert_eq(pick.work, 2);
    h.serving = 11; /* but not against a higher priority */
    cr_assert_eq(sched_decide(&h, 1, 1, &pick), 1);
    cr_assert_eq(pick.work, 2);
}

Test(sched, holds_no_more_than_room_and_ahead_allow)
{
    static const struct sched_work work[] = {{10, 1, 5, false}};
    struct sched_pick pick;
    for (uint32_t ahead = 0; ahead < 4; ahead++) {
        struct sched_host h = host(0, 0, work, 1);
        h.room = 3;
        uint32_t sent = 0;
        while (sched_decide(&h, 1, ahead, &pick) == 1) {
            h.held++;
            h.room--;
            h.keeps = true;
            sent++;
        }
        cr_assert_eq(sent, ahead + 1 < 3 ? ahead + 1 : 3);
    }
    struct sched_host h = host(0, 0, work, 1);
    h.ready = false;
    cr_assert_eq(sched_decide(&h, 1, 1, &pick), 0);
    h = host(0, 0, work, 0);
    cr_assert_eq(sched_decide(&h, 1, 1, &pick), 0);
    cr_assert_eq(sched_decide(NULL, 0, 1, NULL), 0);
}

Test(sched, one_machine_runs_one_attempt)
{
    static const struct sched_work work[] = {{10, 1, 5, false}};
    struct sched_pick pick[2];
    struct sched_host h[2] = {host(7, 0, work, 1), host(7, 0, work, 1)};
    h[0].served = 4;
    h[1].served = 3;
    cr_assert_eq(sched_decide(h, 2, 1, pick), 1);
    cr_assert_eq(pick[0].host, 1, "the one that was served longest ago");
    h[1].held = 1;
    h[1].keeps = true;
    cr_assert_eq(sched_decide(h, 2, 1, pick), 0, "nothing in advance while another waits");
    h[0].work_count = 0;
    cr_assert_eq(sched_decide(h, 2, 1, pick), 1);
    cr_assert_eq(pick[0].host, 1, "alone it may have one in advance");
    h[0].work_count = 1;
    h[1].ready = false; /* away, perhaps measuring */
    h[1].held = 0;
    cr_assert_eq(sched_decide(h, 2, 1, pick), 0);
    h[1].keeps = false;
    cr_assert_eq(sched_decide(h, 2, 1, pick), 1);
    cr_assert_eq(pick[0].host, 0);
    h[1].keeps = h[0].keeps = true; /* found out too late: both hold something */
    h[0].held = 1;
    cr_assert_eq(sched_decide(h, 2, 1, pick), 0);
    h[1] = host(7, 1, work, 1);
    cr_assert_eq(sched_decide(h, 2, 1, pick), 0);
    h[0].work_count = 0;
    cr_assert_eq(sched_decide(h, 2, 1, pick), 0);
    h[0] = host(7, 0, work, 1);
    h[0].machine = 8; /* two machines */
    h[1] = host(7, 0, work, 1);
    cr_assert_eq(sched_decide(h, 2, 1, pick), 2);
}

/* --- random fleets --- */

enum { HOSTS = 7, SWEEPS = 5, HELD = 4 };

struct job {
    int64_t sweep;
    uint64_t number;
};

struct sim {
    struct prng g;
    struct sched_host hosts[HOSTS];
    struct sched_work work[HOSTS][SWEEPS];
    uint32_t left[HOSTS][SWEEPS]; /* runs that wait */
    int priority[SWEEPS];
    bool paused[SWEEPS];
    struct job held[HOSTS][HELD]; /* in the order in which they were sent; the first is made */
    uint64_t waits[HOSTS];        /* steps in which it could have been served and was not */
    uint64_t clock;               /* assignments so far */
    uint64_t sent[HOSTS];
    uint32_t ahead;
};

static void list_work(struct sim *s)
{
    for (size_t h = 0; h < HOSTS; h++) {
        size_t n = 0;
        for (size_t w = 0; w < SWEEPS; w++) {
            if (s->left[h][w] > 0 && !s->paused[w]) {
                s->work[h][n++] = (struct sched_work){(int64_t)w + 1, s->priority[w], (int64_t)w,
                                                      s->left[h][w] % 3 > 0};
            }
        }
        s->hosts[h].work = s->work[h];
        s->hosts[h].work_count = n;
    }
}

static void check_machines(const struct sim *s)
{
    for (size_t a = 0; a < HOSTS; a++) {
        for (size_t b = a + 1; b < HOSTS; b++) {
            bool one = s->hosts[a].machine != 0 && s->hosts[a].machine == s->hosts[b].machine;
            cr_assert(!one || s->hosts[a].held == 0 || s->hosts[b].held == 0,
                      "hosts %zu and %zu of one machine both hold something", a, b);
        }
    }
}

static void hand_out(struct sim *s)
{
    struct sched_pick picks[HOSTS];
    size_t n;
    list_work(s);
    while ((n = sched_decide(s->hosts, HOSTS, s->ahead, picks)) > 0) {
        bool seen[HOSTS] = {false};
        for (size_t i = 0; i < n; i++) {
            size_t h = picks[i].host;
            struct sched_host *host = &s->hosts[h];
            cr_assert(!seen[h] && host->ready && host->room > 0 && host->held <= s->ahead);
            seen[h] = true;
            const struct sched_work *work = &host->work[picks[i].work];
            for (size_t j = 0; j < host->work_count; j++) {
                cr_assert_geq(host->work[j].priority, work->priority);
            }
            s->left[h][work->sweep - 1]--;
            s->held[h][host->held++] = (struct job){work->sweep, ++s->clock};
            host->room--;
            host->keeps = true;
            host->served = s->clock;
            host->serving = work->sweep;
            s->sent[h]++;
            s->waits[h] = 0;
        }
        check_machines(s);
        list_work(s);
    }
    for (size_t h = 0; h < HOSTS; h++) {
        const struct sched_host *host = &s->hosts[h];
        if (host->ready && host->room > 0 && host->work_count > 0 && host->held == 0) {
            s->waits[h]++;
        }
    }
}

static void finish_one(struct sim *s, size_t h)
{
    struct sched_host *host = &s->hosts[h];
    if (host->held == 0 || !host->ready) {
        return;
    }
    host->held--;
    memmove(&s->held[h][0], &s->held[h][1], host->held * sizeof(s->held[h][0]));
    host->keeps = host->held > 0;
    host->room++;
}

static void step(struct sim *s)
{
    size_t h = (size_t)prng_below(&s->g, HOSTS);
    size_t w = (size_t)prng_below(&s->g, SWEEPS);
    switch (prng_below(&s->g, 16)) {
    case 0:
        s->left[h][w] += (uint32_t)prng_below(&s->g, 30);
        break;
    case 1:
        s->paused[w] = !s->paused[w];
        break;
    case 2: /* the link goes or comes; what is held stays held */
        s->hosts[h].ready = !s->hosts[h].ready;
        break;
    default:
        finish_one(s, h);
        break;
    }
    hand_out(s);
}

Test(sched, random_fleets_keep_the_rules)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct sim s = {.ahead = (uint32_t)(seed % 4)};
        prng_init(&s.g, seed);
        for (size_t h = 0; h < HOSTS; h++) {
            s.hosts[h].ready = true;
            s.hosts[h].room = 1 + (uint32_t)prng_below(&s.g, HELD);
            s.hosts[h].machine = h < 2 ? 0 : h < 4 ? 1 : 2; /* alone, alone, two, three */
        }
        for (size_t w = 0; w < SWEEPS; w++) {
            s.priority[w] = (int)prng_below(&s.g, 3);
        }
        for (int i = 0; i < 250000; i++) {
            step(&s);
        }
        for (size_t h = 0; h < HOSTS; h++) {
            cr_assert(s.sent[h] > 100, "seed %d: host %zu got %d", (int)seed, h, (int)s.sent[h]);
        }
        /* All links up, nothing new, nothing paused: everything drains. */
        memset(s.paused, 0, sizeof(s.paused));
        for (size_t h = 0; h < HOSTS; h++) {
            s.hosts[h].ready = true;
            s.waits[h] = 0;
        }
        hand_out(&s);
        for (size_t i = 0; i < 4000000; i++) {
            uint64_t before[HOSTS];
            memcpy(before, s.waits, sizeof(before));
            size_t h = i % HOSTS;
            finish_one(&s, h);
            hand_out(&s);
            for (size_t k = 0; k < HOSTS; k++) {
                /* Each holder of the machine ends within a round of all hosts a held one. */
                cr_assert(s.waits[k] <= HOSTS * (HELD + 2) * 3, "host %zu starves", k);
            }
            bool idle = true;
            for (size_t k = 0; k < HOSTS; k++) {
                idle = idle && s.hosts[k].held == 0 && s.hosts[k].work_count == 0;
            }
            if (idle) {
                break;
            }
        }
        for (size_t k = 0; k < HOSTS; k++) {
            for (size_t w = 0; w < SWEEPS; w++) {
                cr_assert_eq(s.left[k][w], 0);
            }
        }
    }
}
