/* stand.h: a place to run one command in every way of confinement, for the tests of worker/run/step and measure. */
#ifndef MAKESPAN_TESTS_UNIT_WORKER_RUN_STAND_H
#define MAKESPAN_TESTS_UNIT_WORKER_RUN_STAND_H

#include "tests/unit/worker/work.h"
#include "worker/run/env.h"
#include "worker/run/output.h"
#include "worker/run/step.h"

#include <stdbool.h>
#include <stdint.h>

/* As root or as the user of a build; confined by groups, or only followed. */
enum { ROOT_GROUPS, ROOT_FOLLOW, USER_GROUPS, USER_FOLLOW, WAYS };

struct stand {
    struct loop *loop;
    struct confine *confine;
    struct diag *diag;
    char *dir;
    char *out_dir;
    char *out;
    struct output *output;
    struct step_spec spec;
    struct env *env;
    struct step *step;
    struct step_result result;
    char printed[4096];
    bool done;
    bool user;
};

#define IN_EVERY_WAY(way) for (int way = 0; way < WAYS; way++)

/* The user that builds run as in the ways USER_*. */
uint32_t stand_uid(void);
void stand_open(struct stand *b, int way);
void stand_close(struct stand *b);
/* Starts a command. */
void stand_begin(struct stand *b, const char *command);
/* Starts it and waits for its end. */
void stand_run(struct stand *b, const char *command);
/* The end of a command: a step_end_f with the stand as arg. */
void stand_on_end(const struct step_result *result, void *arg);
/* What was printed, up to 4 KiB, once it is over. */
const char *stand_printed(struct stand *b);
bool stand_has(const struct stand *b, enum mark mark);
/* The process id that a command wrote to a file of the work folder. */
int64_t stand_pid_in(struct stand *b, const char *name);

#endif
