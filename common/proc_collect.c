/* proc_collect.c: a helper program run to its end with its output collected. Owns the pipes, the time limit and the bytes. */
#include "common/proc.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/loop.h"
#include "common/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define COLLECT_MAGIC 0x434f4c4cU
#define ERR_OUTPUT_MAX ((size_t)64 * 1024)
#define CHUNK 16384

/* One of the child's two outputs. */
struct stream {
    struct proc_collect *collect;
    int fd; /* our end, non-blocking; -1: closed or not collected */
    struct loop_fd *watch;
    struct buf bytes;
    size_t max;
    bool head_only; /* what is beyond max is dropped; else it is too much */
};

struct proc_collect {
    unsigned magic;
    struct loop *loop;
    struct proc *proc;
    struct loop_timer *timer;
    struct stream out;
    struct stream err;
    bool timed_out;
    bool truncated;
    bool telling; /* the callback runs */
    proc_output_f *f;
    void *arg;
};

static void kill_group(struct proc_collect *c)
{
    int rc = proc_signal(c->proc, SIGKILL, true);
    (void)rc; /* it fails only for a child that has ended, whose end is on its way */
}

static void close_stream(struct stream *s)
{
    loop_fd_free(&s->watch);
    if (s->fd >= 0) {
        close(s->fd);
        s->fd = -1;
    }
}

static void free_collect(struct proc_collect *c)
{
    close_stream(&c->out);
    close_stream(&c->err);
    buf_fini(&c->out.bytes);
    buf_fini(&c->err.bytes);
    loop_timer_free(&c->timer);
    proc_free(&c->proc);
    c->magic = 0;
    free(c);
}

static void keep(struct stream *s, const char *data, size_t n)
{
    size_t space = s->max - s->bytes.len;
    buf_add(&s->bytes, data, n < space ? n : space);
    if (!s->head_only && (n > space || s->bytes.err != 0) && !s->collect->truncated) {
        s->collect->truncated = true;
        kill_group(s->collect);
    }
}

/* Reads once, at most `most` bytes. The count; 0 when there is nothing (more): at the end the stream is closed. */
static size_t read_stream(struct stream *s, size_t most)
{
    char chunk[CHUNK];
    ssize_t n = read(s->fd, chunk, most < sizeof(chunk) ? most : sizeof(chunk));
    if (n > 0) {
        keep(s, chunk, (size_t)n);
        return (size_t)n;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        close_stream(s);
    }
    return 0;
}

static void on_readable(int fd, int what, void *arg)
{
    struct stream *s = arg;
    (void)fd;
    (void)what;
    assert(s->collect->magic == COLLECT_MAGIC);
    read_stream(s, CHUNK);
}

/* Reads what was in the pipe when the child ended, and no more: a process that it left behind may hold the pipe, and write to it, for ever. */
static void drain(struct stream *s)
{
    int there = 0;
    if (s->fd < 0 || ioctl(s->fd, FIONREAD, &there) != 0) {
        return;
    }
    size_t left = there > 0 ? (size_t)there : 0;
    while (left > 0 && s->fd >= 0) {
        size_t n = read_stream(s, left);
        if (n == 0) {
            break;
        }
        left -= n;
    }
}

static void on_end(struct proc *proc, const struct proc_end *end, void *arg)
{
    struct proc_collect *c;
    (void)proc;
    CAST_OBJ(c, arg, COLLECT_MAGIC);
    drain(&c->out);
    drain(&c->err);
    loop_timer_clear(c->timer);
    const struct proc_output output = {
        .end = *end,
        .timed_out = c->timed_out,
        .truncated = c->truncated,
        .out = &c->out.bytes,
        .err = &c->err.bytes,
    };
    c->telling = true;
    c->f(&output, c->arg);
    free_collect(c);
}

static void on_timeout(void *arg)
{
    struct proc_collect *c;
    CAST_OBJ(c, arg, COLLECT_MAGIC);
    c->timed_out = true;
    kill_group(c);
}

/* Makes the pipe of one output and watches it; *child_end is for the child. */
static int open_stream(struct proc_collect *c, struct stream *s, int *child_end)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return err_from_errno(errno);
    }
    s->fd = fds[0];
    *child_end = fds[1];
    int flags = fcntl(s->fd, F_GETFL);
    if (flags < 0 || fcntl(s->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
        return err_from_errno(errno);
    }
    s->watch = loop_fd_new(c->loop, s->fd, LOOP_READ, on_readable, s);
    return s->watch != NULL ? 0 : -ERR_SYS;
}

static void init_stream(struct proc_collect *c, struct stream *s, size_t max, bool head_only)
{
    s->collect = c;
    s->fd = -1;
    s->max = max;
    s->head_only = head_only;
    buf_init(&s->bytes, max);
}

int proc_collect(struct loop *loop, const struct proc_spec *spec, size_t out_max, int64_t timeout_ns, proc_output_f *f, void *arg,
                 struct proc_collect **out, struct diag *diag)
{
    struct proc_spec own = *spec;
    struct proc_collect *c = mem_xzalloc(sizeof(*c));
    int ends[2] = {-1, -1};
    int rc = 0;
    c->magic = COLLECT_MAGIC;
    c->loop = loop;
    c->f = f;
    c->arg = arg;
    init_stream(c, &c->out, out_max, false);
    init_stream(c, &c->err, ERR_OUTPUT_MAX, true);
    own.new_session = true;
    c->timer = loop_timer_new(loop, on_timeout, c);
    if (c->timer == NULL) {
        rc = -ERR_NOMEM;
    }
    if (rc == 0 && own.out_fd < 0) {
        rc = open_stream(c, &c->out, &ends[0]);
        own.out_fd = ends[0];
    }
    if (rc == 0 && own.err_fd < 0) {
        rc = open_stream(c, &c->err, &ends[1]);
        own.err_fd = ends[1];
    }
    if (rc != 0) {
        rc = diag_error(diag, rc, "cannot collect the output of %s: %s", spec->argv[0], err_text(rc));
    } else {
        rc = proc_spawn(loop, &own, on_end, c, &c->proc, diag);
    }
    for (int i = 0; i < 2; i++) {
        if (ends[i] >= 0) {
            close(ends[i]);
        }
    }
    if (rc != 0) {
        free_collect(c);
        return rc;
    }
    if (timeout_ns > 0) {
        loop_timer_set(c->timer, timeout_ns);
    }
    if (out != NULL) {
        *out = c;
    }
    return 0;
}

void proc_collect_cancel(struct proc_collect **collect)
{
    struct proc_collect *c = *collect;
    if (c == NULL) {
        return;
    }
    *collect = NULL;
    if (c->telling) {
        return; /* it is freed as soon as the callback returns */
    }
    kill_group(c);
    free_collect(c);
}
