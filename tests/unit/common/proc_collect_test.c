/* proc_collect_test.c: a program's output and end, its limits, and processes that it leaves behind. */
#include "common/proc.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/loop.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct proc_spec collect_plain = PROC_SPEC_INIT;

struct collected {
    struct loop *loop;
    int calls;
    struct proc_end end;
    bool timed_out;
    bool truncated;
    struct buf out;
    struct buf err;
};

static void on_output(const struct proc_output *output, void *arg)
{
    struct collected *c = arg;
    c->calls++;
    c->end = output->end;
    c->timed_out = output->timed_out;
    c->truncated = output->truncated;
    buf_add(&c->out, output->out->data, output->out->len);
    buf_add(&c->err, output->err->data, output->err->len);
    loop_stop(c->loop);
}

static struct collected collect(const char *command, size_t max, int64_t timeout)
{
    struct collected c = {.loop = loop_new(), .out = BUF_INIT, .err = BUF_INIT};
    const char *argv[] = {"/bin/sh", "-c", command, NULL};
    struct proc_spec spec = collect_plain;
    spec.argv = argv;
    cr_assert_eq(proc_collect(c.loop, &spec, max, timeout, on_output, &c, NULL, NULL), 0);
    loop_run(c.loop);
    cr_assert_eq(c.calls, 1);
    loop_free(&c.loop);
    return c;
}

static void drop(struct collected *c)
{
    buf_fini(&c->out);
    buf_fini(&c->err);
}

Test(proc_collect, both_outputs_and_the_end)
{
    struct collected c = collect("echo out; echo err >&2; printf 'a\\000b'; exit 4", 1000, 0);
    cr_assert_eq(c.end.exit_status, 4);
    cr_assert_not(c.timed_out);
    cr_assert_not(c.truncated);
    cr_assert_eq(c.out.len, 7);
    cr_assert(memcmp(c.out.data, "out\na\0b", 7) == 0);
    cr_assert_str_eq(buf_str(&c.err), "err\n");
    drop(&c);
    c = collect("exit 0", 0, CLOCK_HOUR);
    cr_assert_eq(c.out.len, 0);
    cr_assert_not(c.truncated);
    drop(&c);
}

Test(proc_collect, much_output)
{
    struct collected c = collect("i=0; while [ $i -lt 20000 ]; do echo $i 0123456789; i=$((i+1)); done", 1 << 20, 0);
    cr_assert_eq(c.end.exit_status, 0);
    cr_assert_eq(c.out.len, 20000 * 12 + 10 + 90 * 2 + 900 * 3 + 9000 * 4 + 10000 * 5);
    cr_assert_not_null(strstr(buf_str(&c.out), "\n19999 0123456789\n"));
    drop(&c);
}

Test(proc_collect, too_much_output)
{
    struct collected c = collect("echo $$; exec yes", 1000, 0); /* never ends by itself */
    cr_assert(c.truncated);
    cr_assert_not(c.timed_out);
    cr_assert(c.end.signaled);
    cr_assert_eq(c.end.signal, SIGKILL);
    cr_assert_eq(c.out.len, 1000);
    drop(&c);
    c = collect("printf 1234567890", 10, 0);
    cr_assert_not(c.truncated, "what just fits is whole");
    cr_assert_eq(c.end.exit_status, 0);
    drop(&c);
    c = collect("printf 12345678901", 10, 0);
    cr_assert(c.truncated);
    cr_assert_eq(c.out.len, 10);
    drop(&c);
}

Test(proc_collect, keeps_the_head_of_the_errors)
{
    struct collected c = collect("echo first >&2; i=0; while [ $i -lt 9000 ]; do echo 0123456789 >&2; i=$((i+1)); done; echo done", 100, 0);
    cr_assert_eq(c.end.exit_status, 0, "errors beyond their room do not kill it");
    cr_assert_not(c.truncated);
    cr_assert_eq(c.err.len, 65536);
    cr_assert(memcmp(c.err.data, "first\n0123", 10) == 0);
    cr_assert_str_eq(buf_str(&c.out), "done\n");
    drop(&c);
}

Test(proc_collect, ends_at_its_time_limit_with_the_whole_group)
{
    char alive[128];
    struct collected c = collect("sleep 1000 & echo $!; sleep 1000", 1000, 200 * CLOCK_MS);
    cr_assert(c.timed_out);
    cr_assert(c.end.signaled);
    cr_assert_eq(c.end.signal, SIGKILL);
    cr_assert_geq(c.end.end_ns - c.end.start_ns, 199 * CLOCK_MS);
    long pid = strtol(buf_str(&c.out), NULL, 10);
    cr_assert_gt(pid, 1);
    /* the sleeper is no child of ours: wait until it is gone or a zombie of whoever inherited it */
    snprintf(alive, sizeof(alive), "while grep -q '^State:.[^Z]' /proc/%ld/status 2>/dev/null; do :; done", pid);
    drop(&c);
    c = collect(alive, 1000, 0);
    cr_assert_eq(c.end.exit_status, 0);
    drop(&c);
}

Test(proc_collect, is_not_held_by_a_process_left_behind)
{
    /* The grandchild holds both pipes, and writes as long as somebody reads. */
    struct collected c = collect("setsid yes & exit 6", 100000000, 0);
    cr_assert_eq(c.end.exit_status, 6);
    drop(&c);
    c = collect("setsid sleep 1000 </dev/null & echo $!; exit 6", 1000, 0);
    cr_assert_eq(c.end.exit_status, 6);
    long pid = strtol(buf_str(&c.out), NULL, 10);
    cr_assert_gt(pid, 1, "what was there at the end was read");
    kill((pid_t)pid, SIGKILL);
    drop(&c);
}

Test(proc_collect, reads_what_is_left_at_the_end)
{
    /* 60 000 bytes fit into the pipe at once: all are there when the end is seen. */
    for (int i = 0; i < 20; i++) {
        struct collected c = collect("head -c 60000 /dev/zero", 100000, 0);
        cr_assert_eq(c.out.len, 60000);
        cr_assert_not(c.truncated);
        drop(&c);
    }
}

Test(proc_collect, into_a_descriptor_of_the_caller)
{
    FILE *f = tmpfile();
    char text[16] = "";
    const char *argv[] = {"/bin/sh", "-c", "cat; echo err >&2", NULL};
    struct collected c = {.loop = loop_new(), .out = BUF_INIT, .err = BUF_INIT};
    struct proc_spec spec = collect_plain;
    int p[2];
    cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
    cr_assert_eq(write(p[1], "input", 5), 5);
    close(p[1]);
    spec.argv = argv;
    spec.in_fd = p[0];
    spec.out_fd = fileno(f);
    cr_assert_eq(proc_collect(c.loop, &spec, 0, 0, on_output, &c, NULL, NULL), 0);
    loop_run(c.loop);
    cr_assert_eq(c.end.exit_status, 0);
    cr_assert_eq(c.out.len, 0);
    cr_assert_str_eq(buf_str(&c.err), "err\n");
    cr_assert_eq(pread(fileno(f), text, 15, 0), 5);
    cr_assert_str_eq(text, "input");
    loop_free(&c.loop);
    drop(&c);
}

Test(proc_collect, that_cannot_start)
{
    struct collected c = {.loop = loop_new(), .out = BUF_INIT, .err = BUF_INIT};
    const char *argv[] = {"/nonexistent/git", NULL};
    struct proc_collect *handle = NULL;
    struct diag *diag = diag_new(2);
    struct proc_spec spec = collect_plain;
    spec.argv = argv;
    cr_assert_eq(proc_collect(c.loop, &spec, 10, CLOCK_SEC, on_output, &c, &handle, diag), -ERR_NOTFOUND);
    cr_assert_null(handle);
    cr_assert_str_eq(diag_first(diag), "cannot execute /nonexistent/git: No such file or directory");
    loop_free(&c.loop);
    cr_assert_eq(c.calls, 0);
    diag_free(&diag);
}

Test(proc_collect, cancelled)
{
    struct collected c = {.loop = loop_new(), .out = BUF_INIT, .err = BUF_INIT};
    const char *argv[] = {"/bin/sh", "-c", "echo x; sleep 1000", NULL};
    struct proc_collect *handle = NULL;
    struct proc_spec spec = collect_plain;
    spec.argv = argv;
    cr_assert_eq(proc_collect(c.loop, &spec, 10, 0, on_output, &c, &handle, NULL), 0);
    proc_collect_cancel(&handle);
    cr_assert_null(handle);
    proc_collect_cancel(&handle);
    siginfo_t info;
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0) { /* as long as there is a child */
        loop_turn(c.loop, 10 * CLOCK_MS);
    }
    cr_assert_eq(c.calls, 0);
    loop_free(&c.loop);
}

struct cancel_inside {
    struct loop *loop;
    struct proc_collect *handle;
};

static void on_output_cancel(const struct proc_output *output, void *arg)
{
    struct cancel_inside *c = arg;
    proc_collect_cancel(&c->handle);
    cr_assert_eq(output->end.exit_status, 0, "what was told is still there");
    loop_stop(c->loop);
}

Test(proc_collect, cancelled_by_its_own_callback)
{
    struct cancel_inside c = {.loop = loop_new()};
    const char *argv[] = {"/bin/true", NULL};
    struct proc_spec spec = collect_plain;
    spec.argv = argv;
    cr_assert_eq(proc_collect(c.loop, &spec, 10, 0, on_output_cancel, &c, &c.handle, NULL), 0);
    loop_run(c.loop);
    cr_assert_null(c.handle);
    loop_free(&c.loop);
}
