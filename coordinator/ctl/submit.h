/* submit.h: a sweep file on its way to the coordinator: read, checked here, its sources put, sent. */
#ifndef MAKESPAN_COORDINATOR_CTL_SUBMIT_H
#define MAKESPAN_COORDINATOR_CTL_SUBMIT_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct call;
struct ctl;
struct opts;

struct submit {
    const char *action; /* check, plan, run */
    const char *file;   /* "-": standard input */
    const char *key;    /* NULL */
    const char *host;   /* this host alone; NULL: those of the file */
    bool yes;
    bool document; /* the answer is wanted as JSON, whatever the format for people is */
};

/* *call is opened when it is NULL and the file is in order (all its mistakes are found first). The answer's document is appended to out. Exit status. */
int submit_sweep(struct ctl *ctl, const struct opts *opts, const struct submit *submit, struct call **call, struct buf *out) MUST_CHECK;

/* Finds the mistakes of a sweep file's meaning, without a coordinator; hosts are not asked for. 0 or CTL_USAGE with text in ctl->diag. */
int submit_check(struct ctl *ctl, const struct opts *opts, const char *file) MUST_CHECK;

#endif
