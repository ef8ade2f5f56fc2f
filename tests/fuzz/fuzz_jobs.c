/* fuzz_jobs.c: any text as job-count expressions: what is read makes points in order and within
 * limits; what is not has a reason. */
#include "common/jobs.h"
#include "common/str.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ITEMS_MAX 16
#define POINTS_MAX (JOBS_LIMIT + 2)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

/* none, rising numbers, max; each as text and back. */
static void check_points(const int32_t *points, int count)
{
    for (int i = 0; i < count; i++) {
        char text[16];
        char flag[16];
        int32_t back = -7;
        require(points[i] == JOBS_NONE || points[i] == JOBS_MAX ||
                (points[i] >= 1 && points[i] <= JOBS_LIMIT));
        require(jobs_from_text(jobs_text(text, sizeof(text), points[i]), &back) == 0 &&
                back == points[i]);
        (void)jobs_flag(flag, sizeof(flag), points[i]);
        require((flag[0] == '\0') == (points[i] == JOBS_NONE));
        if (i > 0) {
            require(points[i - 1] != JOBS_MAX &&
                    (points[i] == JOBS_MAX || points[i] > points[i - 1]));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const int64_t cpus[] = {0, 1, 1000, 1500, 2000, 48000, INT64_MAX};
    struct jobs_item items[ITEMS_MAX];
    int32_t points[POINTS_MAX];
    size_t count = 0;
    size_t at = 0;
    while (at < n && count < ITEMS_MAX) {
        char text[128];
        size_t len = 0;
        while (at + len < n && data[at + len] != '\n' && len < sizeof(text) - 1) {
            text[len] = (char)data[at + len];
            len++;
        }
        text[len] = '\0';
        const char *why = NULL;
        int rc = jobs_parse(text, &items[count], &why);
        require(why != NULL && (rc == 0) == (why[0] == '\0'));
        count += rc == 0 ? 1 : 0;
        at += len + 1;
    }
    for (size_t i = 0; i < ARRAY_LEN(cpus); i++) {
        int made = jobs_points(items, count, cpus[i], points, POINTS_MAX);
        require(made >= 0 && (made > 0) == (count > 0));
        check_points(points, made);
        if (made > 0) {
            require(jobs_points(items, count, cpus[i], points, (size_t)made - 1) < 0);
        }
    }
    return 0;
}
