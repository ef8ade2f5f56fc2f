/* store_help.c: what the tests of the coordinator's rows share. */
#include "tests/unit/coordinator/store/store_help.h"

#include "common/diag.h"
#include "common/fileio.h"
#include "common/mem.h"
#include "coordinator/store/cells.h"
#include "coordinator/store/hosts.h"
#include "coordinator/store/runs.h"
#include "coordinator/store/store.h"
#include "coordinator/store/sweeps.h"

#include <criterion/criterion.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void say(char *text, const char *fmt, ...)
{
    size_t n = strlen(text);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text + n, SAY_ROOM - n, fmt, ap);
    va_end(ap);
}

void box_open_with(struct box *box, const char *vfs, unsigned flags)
{
    memset(box, 0, sizeof(*box));
    const char *tmp = getenv("TMPDIR");
    snprintf(box->dir, sizeof(box->dir), "%s/makespan-store.XXXXXX", tmp != NULL ? tmp : "/tmp");
    cr_assert(mkdtemp(box->dir) != NULL);
    snprintf(box->path, sizeof(box->path), "%s/makespan.db", box->dir);
    box->diag = diag_new(10);
    box->arena = mem_arena_new(0);
    cr_assert_eq(store_open(box->path, vfs, flags, &box->store, box->diag), 0, "%s",
                 diag_first(box->diag));
}

void box_open(struct box *box)
{
    box_open_with(box, NULL, 0);
}

void box_reopen(struct box *box)
{
    store_close(&box->store);
    cr_assert_eq(store_open(box->path, NULL, 0, &box->store, box->diag), 0, "%s",
                 diag_first(box->diag));
}

void box_close(struct box *box)
{
    store_close(&box->store);
    diag_free(&box->diag);
    mem_arena_free(&box->arena);
    cr_expect_eq(file_remove_tree(box->dir), 0);
}

void box_commit(struct box *box)
{
    cr_assert_eq(store_commit(box->store, box->diag), 0, "%s", diag_first(box->diag));
}

int64_t box_host(struct box *box, const char *name)
{
    char key[80];
    int64_t id = 0;
    snprintf(key, sizeof(key), "key-of-%s", name);
    struct model_host host = {
        .name = name, .state = HOST_ACTIVE, .key_hash = key, .joined_wall_ns = 7};
    cr_assert_eq(store_host_insert(box->store, &host, &id), 0, "%s", store_error(box->store));
    return id;
}

int64_t box_sweep(struct box *box, const char *name)
{
    int64_t id = 0;
    int64_t number = 0;
    struct model_sweep sweep = {.name = name,
                                .state = SWEEP_ACTIVE,
                                .priority = PRIORITY_NORMAL,
                                .seed = 1,
                                .file = "sweep.yaml",
                                .text = "sweep: x\n",
                                .sets = "{}",
                                .base = "a",
                                .compare = "[\"base\"]",
                                .tolerance_ppm = 20000,
                                .submitted_by = "alice",
                                .submitted_wall_ns = 5};
    cr_assert_eq(store_sweep_insert(box->store, &sweep, &id, &number), 0, "%s",
                 store_error(box->store));
    return id;
}

int64_t box_workload(struct box *box, int64_t sweep, uint32_t index, const char *name)
{
    int64_t id = 0;
    struct model_workload w = {.sweep = sweep,
                               .index = index,
                               .name = name,
                               .source_kind = SOURCE_NONE,
                               .run = "make $JFLAG"};
    cr_assert_eq(store_workload_insert(box->store, &w, &id), 0, "%s", store_error(box->store));
    return id;
}

int64_t box_variant(struct box *box, int64_t sweep, uint32_t index, const char *name)
{
    int64_t id = 0;
    struct model_variant v = {.sweep = sweep, .index = index, .name = name};
    cr_assert_eq(store_variant_insert(box->store, &v, &id), 0, "%s", store_error(box->store));
    return id;
}

void box_sweep_host(struct box *box, int64_t sweep, int64_t host)
{
    struct model_sweep_host row = {.sweep = sweep,
                                   .host = host,
                                   .selector = "h",
                                   .seed = 9,
                                   .until_runs = 3,
                                   .warmup = 1,
                                   .settings = "{}"};
    cr_assert_eq(store_sweep_host_insert(box->store, &row), 0, "%s", store_error(box->store));
}

int64_t box_cell(struct box *box, int64_t sweep, int64_t host, int64_t workload, int64_t variant,
                 int32_t jobs)
{
    int64_t id = 0;
    struct model_cell cell = {.sweep = sweep,
                              .host = host,
                              .workload = workload,
                              .variant = variant,
                              .jobs = jobs,
                              .state = CELL_OPEN,
                              .run_timeout_ns = 100};
    cr_assert_eq(store_cell_insert(box->store, &cell, &id), 0, "%s", store_error(box->store));
    return id;
}

void box_block(struct box *box, int64_t sweep, int64_t host, int64_t number)
{
    struct model_block block = {
        .sweep = sweep, .host = host, .number = number, .seed = 3, .mirror_of = -1};
    cr_assert_eq(store_block_insert(box->store, &block), 0, "%s", store_error(box->store));
}

int64_t box_run(struct box *box, int64_t sweep, int64_t host, int64_t cell, int64_t block,
                int64_t slot)
{
    int64_t id = 0;
    struct model_run run = {.sweep = sweep,
                            .host = host,
                            .cell = cell,
                            .block = block,
                            .slot = slot,
                            .state = RUN_QUEUED,
                            .state_wall_ns = 1000 + slot};
    cr_assert_eq(store_run_insert(box->store, &run, &id), 0, "%s", store_error(box->store));
    return id;
}

struct model_attempt box_attempt(int64_t run, uint32_t attempt)
{
    return (struct model_attempt){.run = run,
                                  .attempt = attempt,
                                  .outcome = OUTCOME_OK,
                                  .reported = OUTCOME_OK,
                                  .phase = PHASE_CHECK,
                                  .ending = ENDING_EXIT,
                                  .exit_status = {true, 0},
                                  .text = "",
                                  .real_ns = {true, 1500},
                                  .user_ns = {true, 900},
                                  .sys_ns = {true, 100},
                                  .cpu_way = CPU_WAY_WAIT4,
                                  .begin_wall_ns = 10,
                                  .end_wall_ns = 5010,
                                  .boot_id = "boot",
                                  .visit = 1,
                                  .jobs = 2,
                                  .worker_version = "0.1.0",
                                  .stored_wall_ns = 6000};
}

struct box_ids box_small(struct box *box)
{
    struct box_ids ids = {0};
    ids.host = box_host(box, "quad");
    ids.sweep = box_sweep(box, "vm");
    ids.workload = box_workload(box, ids.sweep, 0, "kernel");
    ids.variant = box_variant(box, ids.sweep, 0, "a");
    box_sweep_host(box, ids.sweep, ids.host);
    ids.cell = box_cell(box, ids.sweep, ids.host, ids.workload, ids.variant, 4);
    box_block(box, ids.sweep, ids.host, 0);
    ids.run = box_run(box, ids.sweep, ids.host, ids.cell, 0, 0);
    return ids;
}
