/* proc_memory_test.c: whose memory max_rss_bytes is, and that a child with a memory of its own is started as any other. */
#include "common/proc.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/loop.h"
#include "common/mem.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define MB INT64_C(1000000)

/* A sanitizer keeps the parent's memory for itself: then the number may be unknown, and must not be wrong. */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED true
#elif defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(memory_sanitizer))
#else
#define SANITIZED false
#endif

static void on_end(struct proc *proc, const struct proc_end *end, void *arg)
{
    (void)proc;
    *(struct proc_end *)arg = *end;
}

static struct proc_end run(struct proc_spec spec, const char *const *argv)
{
    struct loop *loop = loop_new();
    struct proc *proc = NULL;
    struct diag *diag = diag_new(4);
    struct proc_end end = {.end_ns = 0};
    spec.argv = argv;
    cr_assert_eq(proc_spawn(loop, &spec, on_end, &end, &proc, diag), 0, "%s", diag_first(diag));
    for (int64_t until = clock_mono_ns() + 60 * CLOCK_SEC; end.end_ns == 0;) {
        cr_assert_lt(clock_mono_ns(), until);
        loop_turn(loop, CLOCK_SEC);
    }
    proc_free(&proc);
    loop_free(&loop);
    diag_free(&diag);
    return end;
}

/* This process has at least so much, and has written to all of it; in one piece, or in many small ones. */
static void *have(size_t bytes)
{
    void *p = mem_xzalloc(bytes);
    memset(p, 'x', bytes);
    return p;
}

static const struct proc_spec own = {.in_fd = -1, .out_fd = -1, .err_fd = -1, .own_memory = true};
static const char *const nothing[] = {"/bin/sh", "-c", "true", NULL};

static void expect_small(void)
{
    struct proc_end end = run(own, nothing);
    cr_assert_eq(end.exit_status, 0);
    if (SANITIZED) {
        cr_assert(end.usage.max_rss_bytes == -1 || end.usage.max_rss_bytes < 3 * MB, "%lld",
                  (long long)end.usage.max_rss_bytes);
        return;
    }
    cr_assert_gt(end.usage.max_rss_bytes, 100000, "%lld", (long long)end.usage.max_rss_bytes);
    cr_assert_lt(end.usage.max_rss_bytes, 3 * MB, "%lld", (long long)end.usage.max_rss_bytes);
}

Test(proc_memory, a_small_child_of_a_large_process_is_small)
{
    void *large = have(40 * MB);
    expect_small();
    free(large);
    expect_small(); /* nor does what the parent once had count */
}

Test(proc_memory, a_small_child_of_a_process_with_a_large_heap_is_small)
{
    enum { COUNT = 20000 };
    void **small = mem_xarray(COUNT, sizeof(*small));
    for (int i = 0; i < COUNT; i++) {
        small[i] = have(1000);
    }
    expect_small();
    for (int i = 0; i < COUNT; i++) {
        free(small[i]);
    }
    free(small);
}

Test(proc_memory, a_large_child_is_large)
{
    static const char *const argv[] = {"/bin/sh", "-c", "head -c 30000000 /dev/zero | tail -c 30000000 >/dev/null", NULL};
    struct proc_end end = run(own, argv);
    cr_assert(end.usage.max_rss_bytes > 25 * MB || (SANITIZED && end.usage.max_rss_bytes == -1), "%lld",
              (long long)end.usage.max_rss_bytes);
}

/* All that it is given lies where the child finds it, though the rest of the memory is gone. */
Test(proc_memory, it_is_started_as_any_other)
{
    static const char *const env[] = {"PATH=/nonexistent:/usr/bin:/bin", "A=1", "B=two words", NULL};
    static const char *const argv[] = {"sh", "-c",
                                       "[ \"$A\" = 1 ] && [ \"$B\" = 'two words' ] && [ \"$0\" = zero ] && [ \"$1\" = one ] && "
                                       "[ \"$(pwd)\" = /usr ] && [ \"$(ulimit -c)\" = 0 ] && exit 7",
                                       "zero", "one", NULL};
    struct proc_spec spec = own;
    void *large = have(40 * MB);
    spec.env = env;
    spec.cwd = "/usr";
    spec.new_session = true;
    spec.no_core = true;
    spec.no_new_privs = true;
    struct proc_end end = run(spec, argv);
    cr_assert(!end.signaled && end.exit_status == 7, "%d", end.exit_status);
    cr_assert_leq(end.start_ns, end.end_ns);
    free(large);
}

Test(proc_memory, a_start_that_fails_says_why)
{
    static const char *const argv[] = {"/nonexistent/prog", NULL};
    struct proc_spec spec = own;
    struct loop *loop = loop_new();
    struct proc *proc = NULL;
    struct diag *diag = diag_new(4);
    struct proc_end end = {.end_ns = 0};
    spec.argv = argv;
    cr_assert_eq(proc_spawn(loop, &spec, on_end, &end, &proc, diag), -ERR_NOTFOUND);
    cr_assert_str_eq(diag_first(diag), "cannot execute /nonexistent/prog: No such file or directory");
    spec.cwd = "/nonexistent";
    spec.argv = nothing;
    cr_assert_eq(proc_spawn(loop, &spec, on_end, &end, &proc, diag), -ERR_NOTFOUND);
    cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1, "no child is left");
    loop_free(&loop);
    diag_free(&diag);
}
