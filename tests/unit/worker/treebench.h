/* treebench.h: prepared trees of a test: a work folder, small sources, entering and looking. */
#ifndef MAKESPAN_TESTS_UNIT_WORKER_TREEBENCH_H
#define MAKESPAN_TESTS_UNIT_WORKER_TREEBENCH_H

#include "common/attr.h"
#include "proto/digest.h"
#include "worker/run/tree.h"
#include "worker/run/tree_int.h"

#include <stdbool.h>
#include <stdint.h>

struct treebench {
    struct loop *loop;
    struct trees *trees;
    struct diag *diag;
    char *dir;
    char *work; /* DIR/work */
    uint64_t budget;
    bool user; /* builds run as TREEBENCH_UID */
    /* What the last entering gave. */
    bool done;
    int code;
    bool fresh;
    bool blob;
    char text[1200];
    char key[65];
    char seen[80];
};

#define TREEBENCH_UID 54321u

/* An archive of a file `file` that holds its name, and of a folder. */
struct treebench_source {
    char *path; /* freed by the test */
    uint8_t hash[DIGEST_MAX];
    char tree[80];
};

void treebench_open(struct treebench *b);
void treebench_close(struct treebench *b);
/* The worker's part of it alone, as after a restart. */
void treebench_start(struct treebench *b);
void treebench_stop(struct treebench *b);
void treebench_make(const struct treebench *b, const char *name, struct treebench_source *s);
struct tree_want treebench_want(const struct treebench_source *s);
void treebench_on_tree(const struct tree_result *r, void *arg);
/* Enters and waits for the answer. */
void treebench_enter(struct treebench *b, const struct tree_want *want);
/* Enters, and makes it ready as setup does, which leaves its trace in OBJ. */
void treebench_prepare(struct treebench *b, const struct tree_want *want);
/* The first line of SRC/file; freed by the caller. */
char *treebench_file(const struct treebench *b) MUST_CHECK;
void treebench_expect_file(const struct treebench *b, const char *want);
bool treebench_configured(const struct treebench *b);

#endif
