/* settle.c: tries for the machine's lock until it is free or the time is over. There is no way to
 * be told that a lock is free, so it is tried again, the more seldom the longer it takes. */
#include "worker/run/settle.h"

#include "common/clock.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"

#include <stdio.h>
#include <stdlib.h>

#define PAUSE_FIRST (5 * CLOCK_MS)
#define PAUSE_MOST (500 * CLOCK_MS)

struct settle {
    unsigned magic;
    char *path;
    char *holder;
    int64_t timeout_ns;
    int64_t start_ns;
    int64_t pause_ns;
    void (*waits)(const char *text, void *arg);
    struct loop_timer *timer;
    settle_f *f;
    void *arg;
    char text[512]; /* what was last said */
};
#define SETTLE_MAGIC 0x73746c65u

static void settle_free(struct settle *s)
{
    loop_timer_free(&s->timer);
    free(s->path);
    free(s->holder);
    s->magic = 0;
    free(s);
}

static void answer(struct settle *s, int code, struct file_lock *lock)
{
    struct settle_result result = {.code = code,
                                   .lock = lock,
                                   .text = code == 0 ? "" : s->text,
                                   .waited_ns = clock_mono_ns() - s->start_ns};

    s->f(&result, s->arg);
    settle_free(s);
}

/* Puts into s->text why the lock cannot be had now; tells when that is news. */
static void say(struct settle *s, int code, const char *other)
{
    char text[sizeof s->text];

    if (code == -ERR_BUSY)
        snprintf(text, sizeof text, "another measurement holds this machine: %s",
                 other[0] != '\0' ? other : "its name is not known");
    else
        snprintf(text, sizeof text, "the lock file %s cannot be used: %s", s->path, err_text(code));
    if (str_eq(text, s->text))
        return;
    str_copy(s->text, sizeof s->text, text);
    if (s->waits != NULL)
        s->waits(s->text, s->arg);
}

static void on_timer(void *arg)
{
    struct settle *s;
    struct file_lock *lock = NULL;
    char other[256];
    int64_t left;
    int code;

    CAST_OBJ(s, arg, SETTLE_MAGIC);
    code = file_lock_take(s->path, s->holder, &lock, other);
    if (code == 0) {
        answer(s, 0, lock);
        return;
    }
    say(s, code, other);
    left = s->timeout_ns - (clock_mono_ns() - s->start_ns);
    if (left <= 0) {
        answer(s, code, NULL);
        return;
    }
    loop_timer_set(s->timer, s->pause_ns < left ? s->pause_ns : left);
    s->pause_ns = s->pause_ns * 2 < PAUSE_MOST ? s->pause_ns * 2 : PAUSE_MOST;
}

struct settle *settle_start(struct loop *loop, const struct settle_spec *spec, settle_f *f,
                            void *arg)
{
    struct settle *s = mem_xzalloc(sizeof *s);

    s->magic = SETTLE_MAGIC;
    s->path = mem_xstrdup(spec->path);
    s->holder = mem_xstrdup(spec->holder);
    s->timeout_ns = spec->timeout_ns;
    s->start_ns = clock_mono_ns();
    s->pause_ns = PAUSE_FIRST;
    s->waits = spec->waits;
    s->timer = loop_timer_new(loop, on_timer, s);
    s->f = f;
    s->arg = arg;
    loop_timer_set(s->timer, 0);
    return s;
}

void settle_cancel(struct settle **settle)
{
    if (*settle != NULL)
        settle_free(*settle);
    *settle = NULL;
}
