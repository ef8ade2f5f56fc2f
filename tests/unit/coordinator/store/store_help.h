/* store_help.h: what the tests of the coordinator's rows share: a store in a folder of its own,
 * and a small sweep in it. */
#ifndef MAKESPAN_TESTS_STORE_HELP_H
#define MAKESPAN_TESTS_STORE_HELP_H

#include "common/attr.h"
#include "coordinator/model.h"

#include <stdint.h>

struct diag;
struct mem_arena;
struct store;

struct box {
    char dir[128];
    char path[160]; /* of the database */
    struct store *store;
    struct diag *diag;
    struct mem_arena *arena;
};

/* Appends to a text of SAY_ROOM bytes: what callbacks saw, in their order. */
#define SAY_ROOM 256
void say(char *text, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* A new folder and an open store in it. */
void box_open(struct box *box);
/* The same on another file layer, with flags of store_open(). */
void box_open_with(struct box *box, const char *vfs, unsigned flags);
/* Closes the store and opens it again. */
void box_reopen(struct box *box);
void box_close(struct box *box);
void box_commit(struct box *box);

/* Rows with sensible values; each returns the id. */
int64_t box_host(struct box *box, const char *name);
int64_t box_sweep(struct box *box, const char *name);
int64_t box_workload(struct box *box, int64_t sweep, uint32_t index, const char *name);
int64_t box_variant(struct box *box, int64_t sweep, uint32_t index, const char *name);
void box_sweep_host(struct box *box, int64_t sweep, int64_t host);
int64_t box_cell(struct box *box, int64_t sweep, int64_t host, int64_t workload, int64_t variant,
                 int32_t jobs);
void box_block(struct box *box, int64_t sweep, int64_t host, int64_t number);
int64_t box_run(struct box *box, int64_t sweep, int64_t host, int64_t cell, int64_t block,
                int64_t slot);
/* A result of an attempt that went well. */
struct model_attempt box_attempt(int64_t run, uint32_t attempt);

/* The smallest sweep that has a run: one host, workload, variant, cell, block and run. */
struct box_ids {
    int64_t host, sweep, workload, variant, cell, run;
};
struct box_ids box_small(struct box *box);

#endif
