/* stand.c: opens and closes the place of stand.h, runs commands there. */
#include "tests/unit/worker/run/stand.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/loop.h"
#include "tests/harness/look.h"
#include "worker/os/os.h"
#include "worker/run/meter.h"

#include <criterion/criterion.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

uint32_t stand_uid(void)
{
    return 2000000u + (uint32_t)getpid();
}


void stand_open(struct stand *b, int way)
{
    struct confine_opts opts = {.tag = "steps"};
    struct output_opts out = {.head = 4096, .tail = 1024};
    struct env_spec env = {.path = "/usr/local/bin:/usr/bin:/bin", .jobs = 2, .ncpu = 2, .variant = "v"};
    char tag[33];

    memset(b, 0, sizeof(*b));
    b->user = os_is_root() && (way == USER_GROUPS || way == USER_FOLLOW);
    (void)snprintf(tag, sizeof(tag), "steps%ld", (long)getpid());
    opts.tag = tag;
    opts.use = way == ROOT_FOLLOW || way == USER_FOLLOW ? CONFINE_FOLLOW : 0;
    opts.set_user = b->user;
    opts.uid = stand_uid();
    opts.uid_is_ours = b->user;
    b->loop = loop_new();
    b->diag = diag_new(8);
    b->dir = work_dir_new();
    if (b->user)
        cr_assert_eq(chown(b->dir, stand_uid(), stand_uid()), 0);
    b->out_dir = work_dir_new();
    b->out = work_path(b->out_dir, "out");
    out.path = b->out;
    out.set_user = b->user;
    out.uid = stand_uid();
    out.gid = stand_uid();
    cr_assert_eq(output_new(&out, &b->output, b->diag), 0, "%s", diag_first(b->diag));
    cr_assert_eq(confine_new(b->loop, &opts, &b->confine, b->diag), 0);
    env.home = b->dir;
    env.tmpdir = b->dir;
    env.src = b->dir;
    env.obj = b->dir;
    env.mark = confine_env(b->confine);
    cr_assert_eq(env_new(&env, &b->env, b->diag), 0);
    b->spec = (struct step_spec){.name = "1.1.run",
                                 .env = env_list(b->env),
                                 .cwd = b->dir,
                                 .output = b->output,
                                 .set_user = b->user,
                                 .uid = stand_uid(),
                                 .gid = stand_uid(),
                                 .kill_grace_ns = 300 * CLOCK_MS,
                                 .confine = b->confine};
}

void stand_close(struct stand *b)
{
    step_free(&b->step);
    output_free(&b->output);
    env_free(&b->env);
    confine_free(&b->confine);
    loop_free(&b->loop);
    diag_free(&b->diag);
    free(b->out);
    work_dir_remove(&b->out_dir);
    work_dir_remove(&b->dir);
}

void stand_on_end(const struct step_result *result, void *arg)
{
    struct stand *b = arg;

    cr_assert_not(b->done, "told once");
    b->result = *result;
    b->done = true;
}

void stand_begin(struct stand *b, const char *command)
{
    b->spec.command = command;
    cr_assert_eq(step_start(b->loop, &b->spec, stand_on_end, b, &b->step, b->diag), 0, "%s", diag_first(b->diag));
}

/* What was printed, up to 4 KiB, once it is over. */
const char *stand_printed(struct stand *b)
{
    uint64_t cursor = 0, offset;
    const uint8_t *bytes;
    size_t n;

    b->printed[0] = '\0';
    if (output_piece(b->output, &cursor, &offset, &bytes, &n) == 1) {
        n = n < sizeof(b->printed) - 1 ? n : sizeof(b->printed) - 1;
        memcpy(b->printed, bytes, n);
        b->printed[n] = '\0';
    }
    return b->printed;
}

void stand_run(struct stand *b, const char *command)
{
    stand_begin(b, command);
    work_until(b->loop, &b->done);
}

bool stand_has(const struct stand *b, enum mark mark)
{
    return marks_find(&b->result.marks, mark) != NULL;
}

int64_t stand_pid_in(struct stand *b, const char *name)
{
    char *path = work_path(b->dir, name), *text;
    int64_t pid;

    work_until_file(b->loop, path);
    text = work_read(path);
    pid = look_number(text);
    free(text);
    free(path);
    cr_assert(pid > 1);
    return pid;
}
