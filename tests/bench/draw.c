/* draw.c: what it costs to draw and store the runs of a large sweep, beside the bare rows.
 *
 * usage: draw [-n RUNS] [-l RATIO] [-v]
 *
 * Both in a database of its own in TMPDIR: a sweep with fixed numbers of about RUNS runs (100000 as it
 * is) is accepted, all its blocks are drawn and stored in one turn, and the turn is committed; then as
 * many rows of runs, all of one cell and state, are inserted one by one and committed. Three pairs;
 * the median of the ratios of their times is printed beside the limit.
 *
 * Exit status: 0 within the limit, 1 above it, 2 it could not be measured. */
#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/fileio.h"
#include "common/num.h"
#include "coordinator/plan/plan.h"
#include "coordinator/plan/sweep.h"
#include "coordinator/store/hosts.h"
#include "coordinator/store/runs.h"
#include "coordinator/store/store.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAIRS = 3, HOSTS = 2, VARIANTS = 5, POINTS = 10 };

NORETURN PRINTF_LIKE(1, 2) static void fail(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fputs("draw: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(2);
}

/* --- the planner's surroundings: nothing is sent, nothing is looked up --- */

static void no_assign(void *arg, const struct plan_assignment *a)
{
    (void)arg;
    (void)a;
}

static void no_withdraw(void *arg, int64_t host, int64_t run, uint32_t attempt)
{
    (void)arg;
    (void)host;
    (void)run;
    (void)attempt;
}

static void no_cancel(void *arg, int64_t host, int64_t run, uint32_t attempt, const char *text)
{
    (void)text;
    no_withdraw(arg, host, run, attempt);
}

static int no_event(void *arg, const struct model_event *event)
{
    (void)arg;
    (void)event;
    return 0;
}

static int no_resolve(void *arg, uint64_t ticket, const struct spec_expr *expr, bool archive, struct diag *diag)
{
    (void)arg;
    (void)ticket;
    (void)expr;
    (void)archive;
    (void)diag;
    fail("the sweep has no source, yet one is looked up");
}

static void no_resolve_cancel(void *arg, uint64_t ticket)
{
    (void)arg;
    (void)ticket;
}

static uint64_t fixed_random(void *arg)
{
    (void)arg;
    return 7;
}

static const struct plan_ops OPS = {.assign = no_assign,
                                    .withdraw = no_withdraw,
                                    .cancel = no_cancel,
                                    .away_ok = no_withdraw,
                                    .event = no_event,
                                    .resolve = no_resolve,
                                    .resolve_cancel = no_resolve_cancel,
                                    .random = fixed_random};

/* --- one pair --- */

struct bench {
    struct store *store;
    struct plan *plan;
    struct diag *diag;
    struct plan_now now;
    int64_t sweep;
};

static void commit(struct bench *b)
{
    if (plan_failed(b->plan) != 0 || store_commit(b->store, b->diag) != 0)
        fail("a turn was lost: %s %s", store_error(b->store), diag_first(b->diag));
    plan_committed(b->plan);
}

static void on_answer(void *arg, const struct plan_answer *a)
{
    struct bench *b = arg;

    if (a->code != 0)
        fail("the sweep was not accepted: %s", a->talk);
    b->sweep = a->sweep;
}

static void add_host(struct bench *b, const char *name)
{
    struct model_host row = {.name = name, .state = HOST_ACTIVE, .key_hash = name, .cpus_milli = 8000, .memory_bytes = INT64_C(1) << 33};
    int64_t id;

    if (store_host_insert(b->store, &row, &id) != 0)
        fail("no host: %s", store_error(b->store));
}

static void accept_sweep(struct bench *b, uint64_t runs)
{
    struct plan_request request = {.action = PLAN_RUN, .file = "bench.yaml", .who = "bench", .yes = true};
    struct buf text = BUF_INIT;
    uint64_t each = runs / (HOSTS * VARIANTS * POINTS);

    buf_add_str(&text, "sweep: bench\nworkload: {run: make $JFLAG}\nhosts: [a, b]\nvariants:\n");
    for (int i = 0; i < VARIANTS; i++)
        buf_printf(&text, "  - {name: v%d, env: {N: \"%d\"}}\n", i, i);
    buf_printf(&text, "jobs: [1..%d]\nrepeat: {warmup: 0, until: %" PRIu64 "}\n", POINTS, each);
    request.text = buf_str(&text);
    request.size = text.len;
    if (plan_submit(b->plan, b->now, &request, on_answer, b) == 0)
        fail("the sweep was not taken");
    for (int i = 0; i < 4 && b->sweep == 0; i++) {
        (void)plan_turn(b->plan, b->now);
        commit(b);
    }
    if (b->sweep == 0)
        fail("the sweep was not answered");
    buf_fini(&text);
}

/* The time to draw all; *runs becomes their number. */
static int64_t draw(struct bench *b, int64_t *runs)
{
    int64_t begin = clock_mono_ns();

    *runs = plan_draw_all(b->plan, b->now, b->sweep);
    if (*runs < 0)
        fail("the blocks were not drawn: %s", store_error(b->store));
    commit(b);
    return clock_mono_ns() - begin;
}

static int take_first(const struct model_run *run, void *arg)
{
    struct model_run *out = arg;

    *out = *run;
    out->reason = NULL;
    return 1;
}

static int64_t bare(struct bench *b, int64_t runs)
{
    struct model_run row;
    int64_t begin, id;

    if (store_runs_of_sweep(b->store, b->sweep, take_first, &row) != 1)
        fail("no run was stored");
    begin = clock_mono_ns();
    for (int64_t i = 0; i < runs; i++) {
        row.block = 1000000 + i / 100;
        row.slot = 100000000 + i;
        if (store_run_insert(b->store, &row, &id) != 0)
            fail("a row was not stored: %s", store_error(b->store));
    }
    commit(b);
    return clock_mono_ns() - begin;
}

static double one_pair(const char *path, uint64_t want, int64_t *runs, bool verbose)
{
    static const char *const ENDS[] = {"", "-wal", "-shm"};
    struct bench b = {.diag = diag_new(8), .now = {CLOCK_SEC, INT64_C(1800000000) * CLOCK_SEC}};
    struct plan_conf conf = PLAN_CONF_DEFAULT;
    int64_t drawn, rows;

    if (store_open(path, NULL, STORE_ALONE, &b.store, b.diag) != 0)
        fail("no database: %s", diag_first(b.diag));
    add_host(&b, "a");
    add_host(&b, "b");
    if (store_commit(b.store, b.diag) != 0 || plan_new(b.store, &OPS, NULL, &conf, b.now, &b.plan, b.diag) != 0)
        fail("no planner: %s", diag_first(b.diag));
    accept_sweep(&b, want);
    drawn = draw(&b, runs);
    rows = bare(&b, *runs);
    if (verbose)
        printf("%" PRId64 " runs drawn and stored in %.3f s, as many bare rows in %.3f s\n", *runs, (double)drawn / 1e9, (double)rows / 1e9);
    plan_free(&b.plan);
    store_close(&b.store);
    diag_free(&b.diag);
    for (size_t i = 0; i < ARRAY_LEN(ENDS); i++) {
        char file[FILE_PATH_MAX];

        snprintf(file, sizeof file, "%s%s", path, ENDS[i]);
        unlink(file);
    }
    return (double)drawn / (double)rows;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    const char *tmp = getenv("TMPDIR");
    char dir[FILE_PATH_MAX - 16], path[FILE_PATH_MAX];
    uint64_t want = 100000;
    double ratio[PAIRS], limit = 3;
    int64_t runs = 0;
    bool verbose = false;
    int option;

    while ((option = getopt(argc, argv, "n:l:v")) != -1) {
        if (option == 'v')
            verbose = true;
        else if (option == 'l')
            limit = strtod(optarg, NULL);
        else if (option != 'n' || num_parse_u64(optarg, &want) != 0)
            fail("usage: draw [-n RUNS] [-l RATIO] [-v]");
    }
    snprintf(dir, sizeof dir, "%s/draw.XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(dir) == NULL)
        fail("no folder in %s", tmp != NULL ? tmp : "/tmp");
    snprintf(path, sizeof path, "%s/db", dir);
    for (int i = 0; i < PAIRS; i++)
        ratio[i] = one_pair(path, want, &runs, verbose);
    rmdir(dir);
    qsort(ratio, PAIRS, sizeof ratio[0], compare);
    printf("coordinator, %" PRId64 " runs drawn and stored, times the commit of as many bare rows: %.2f, limit %.2f: %s\n", runs, ratio[PAIRS / 2], limit,
           ratio[PAIRS / 2] <= limit ? "ok" : "MISSED");
    return ratio[PAIRS / 2] <= limit ? 0 : 1;
}
