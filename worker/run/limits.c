/* limits.c: judges limits against a job count and an output. */
#include "worker/run/limits.h"

#include "common/attr.h"
#include "worker/os/os.h"
#include "worker/run/marks.h"
#include "worker/run/words.h"

#include <inttypes.h>
#include <stdio.h>

/* The smaller of two limits; below 0: not known. */
static int64_t least(int64_t a, int64_t b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

static const char *text_of(char *dst, size_t room, int64_t limit)
{
    if (limit < 0)
        snprintf(dst, room, "(unknown)");
    else if (limit == OS_NO_LIMIT)
        snprintf(dst, room, "(none)");
    else
        snprintf(dst, room, "%" PRId64, limit);
    return dst;
}

/* What a program prints when a limit stops it, and of which limit it speaks. */
static bool complains(const struct limits_case *c, int64_t processes, struct marks *marks)
{
    static const char *const NO_PROCESS[] = {"Resource temporarily unavailable", "Cannot fork",
                                             "cannot fork", "fork: retry", "can't fork"};
    static const char *const NO_FILE[] = {"Too many open files"};
    const char *words;
    char limit[32];

    if (c->failed == NULL)
        return false;
    words = words_find(c->failed, NO_PROCESS, ARRAY_LEN(NO_PROCESS));
    if (words != NULL) {
        marks_add(marks, MARK_PROCESS_LIMIT,
                  "process limit %s of the worker's service: the output says “%s”",
                  text_of(limit, sizeof limit, processes), words);
        return true;
    }
    words = words_find(c->failed, NO_FILE, ARRAY_LEN(NO_FILE));
    if (words != NULL)
        marks_add(marks, MARK_PROCESS_LIMIT,
                  "file limit %s of the worker's service: the output says “%s”",
                  text_of(limit, sizeof limit, c->limits->files), words);
    return words != NULL;
}

void limits_mark(const struct limits_case *c, struct marks *marks)
{
    int64_t jobs = c->jobs > 0 ? c->jobs : c->jobs == 0 ? 1 : 2 * (int64_t)c->cpus;
    int64_t processes = least(c->is_root ? -1 : c->limits->processes, c->limits->pids);
    int64_t want = jobs * LIMITS_EACH;

    if (complains(c, processes, marks))
        return;
    if (processes >= 0 && processes < want)
        marks_add(marks, MARK_PROCESS_LIMIT,
                  "process limit %" PRId64 " of the worker's service: %" PRId64
                  " jobs may want %" PRId64,
                  processes, jobs, want);
    else if (c->limits->files >= 0 && c->limits->files < want)
        marks_add(marks, MARK_PROCESS_LIMIT,
                  "file limit %" PRId64 " of the worker's service: %" PRId64
                  " jobs may want %" PRId64,
                  c->limits->files, jobs, want);
}
