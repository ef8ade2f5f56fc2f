/* settle.h: the wait for the machine: one measurement at a time on one machine, whoever makes it.
 *
 * Owns: the taking of the lock file, the questions how long and for whom. The lock itself is handed
 * over and is held by the slot until the timed command has ended. */
#ifndef MAKESPAN_WORKER_RUN_SETTLE_H
#define MAKESPAN_WORKER_RUN_SETTLE_H

#include "common/attr.h"

#include <stdint.h>

struct file_lock;
struct loop;
struct settle;

struct settle_spec {
    const char *path;   /* of the lock file */
    const char *holder; /* line that others are shown */
    int64_t timeout_ns;
    /* Whom it waits for has changed: "another measurement holds this machine: …". */
    void (*waits)(const char *text, void *arg);
};

struct settle_result {
    int code; /* 0, -ERR_BUSY: not free within the time, or why the file cannot be used */
    struct file_lock *lock; /* with code 0: taken by the callee */
    const char *text;       /* of a failure: who held it, or what is wrong; "" */
    int64_t waited_ns;
};
typedef void settle_f(const struct settle_result *result, void *arg);

/* Everything in spec is copied. `f` is called once, from the loop; after that the settle
 * is gone. */
struct settle *settle_start(struct loop *loop, const struct settle_spec *spec, settle_f *f,
                            void *arg) MUST_CHECK;
/* Forgets it; `f` is not called. NULL inside is fine. */
void settle_cancel(struct settle **settle);

#endif
