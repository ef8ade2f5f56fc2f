/* slot_cmd.c: the five commands of an attempt: what each is given, how it is started, what its end
 * means. */
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/str.h"
#include "proto/digest.h"
#include "worker/os/confine.h"
#include "worker/run/env.h"
#include "worker/run/limits.h"
#include "worker/run/output.h"
#include "worker/run/slot_int.h"
#include "worker/run/step.h"
#include "worker/run/tree.h"
#include "worker/run/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUSY_PAUSE CLOCK_SEC /* until processes that could not be killed are tried again */
#define TAIL_SHOWN 1500      /* bytes of a failed command's output in its sentence */
#define FINGERPRINT_SHOWN 4096
#define ENV_DROPPED_MAX 64

static const struct {
    const char *word;
    bool stop_on_error;
} CMDS[CMD_COUNT] = {
    [CMD_FINGERPRINT] = {"fingerprint", false},
    [CMD_SETUP] = {"setup", true},
    [CMD_RESET] = {"reset", false},
    [CMD_RUN] = {"run", false},
    [CMD_CHECK] = {"check", false},
};

const char *slot_cmd_word(enum slot_cmd cmd)
{
    return CMDS[cmd].word;
}

const char *slot_cmd_text(const struct slot *slot, enum slot_cmd cmd)
{
    const struct msg_assign *a = slot->at.a;

    switch (cmd) {
    case CMD_FINGERPRINT:
        return a->fingerprint;
    case CMD_SETUP:
        return a->setup;
    case CMD_RESET:
        return a->reset;
    case CMD_RUN:
        return a->command;
    case CMD_CHECK:
        return a->check;
    case CMD_COUNT:
        break;
    }
    return NULL;
}

bool slot_has_cmd(const struct slot *slot, enum slot_cmd cmd)
{
    const char *text = slot_cmd_text(slot, cmd);

    return text != NULL && text[0] != '\0';
}

static int64_t timeout_of(const struct msg_assign *a, enum slot_cmd cmd)
{
    switch (cmd) {
    case CMD_RESET:
        return a->reset_timeout_ns;
    case CMD_RUN:
        return a->run_timeout_ns;
    case CMD_CHECK:
        return a->check_timeout_ns;
    default:
        return a->setup_timeout_ns;
    }
}

/* --- the environment --- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Whether a command names this variable, as a word of its own. */
static bool names(const char *command, const char *variable)
{
    size_t n = strlen(variable);
    const char *p = command == NULL ? NULL : strstr(command, variable);

    for (; p != NULL; p = strstr(p + 1, variable))
        if ((p == command || !is_word(p[-1])) && !is_word(p[n]))
            return true;
    return false;
}

/* What of the attempt setup may see. */
struct seen {
    bool variant, kernel, jobs, rev;
};

static struct seen seen_by_setup(const struct msg_assign *a)
{
    return (struct seen){.variant = names(a->setup, "VARIANT"),
                         .kernel = names(a->setup, "KERNEL") || names(a->setup, "KERNEL_SHORT"),
                         .jobs = names(a->setup, "JOBS") || names(a->setup, "JFLAG"),
                         .rev = names(a->setup, "REV")};
}

size_t slot_setup_env(const struct slot *slot, const char **list,
                      char text[SLOT_SETUP_ENV][SLOT_SETUP_TEXT])
{
    const struct msg_assign *a = slot->at.a;
    struct seen seen = seen_by_setup(a);
    size_t n = 0;

    if (seen.variant)
        snprintf(text[n++], SLOT_SETUP_TEXT, "VARIANT=%s", a->variant);
    if (seen.kernel)
        snprintf(text[n++], SLOT_SETUP_TEXT, "KERNEL=%s", a->kernel == NULL ? "" : a->kernel);
    if (seen.jobs)
        snprintf(text[n++], SLOT_SETUP_TEXT, "JOBS=%" PRId64, a->jobs);
    if (seen.rev)
        snprintf(text[n++], SLOT_SETUP_TEXT, "REV=%s", a->rev == NULL ? "" : a->rev);
    for (size_t i = 0; i < n; i++)
        list[i] = text[i];
    for (size_t i = 0; i < a->env_count; i++)
        list[n++] = a->env[i];
    return n;
}

static int make_env(struct slot *slot, enum slot_cmd cmd, struct env **out, struct diag *diag)
{
    const struct msg_assign *a = slot->at.a;
    const struct trees *trees = slot->conf.trees;
    bool all = cmd != CMD_SETUP && cmd != CMD_FINGERPRINT;
    bool tree = cmd != CMD_FINGERPRINT; /* it is asked before the tree stands */
    struct seen seen = cmd == CMD_SETUP ? seen_by_setup(a) : (struct seen){0};
    struct env_spec spec = {
        .path = slot->conf.path,
        .home = trees_home(trees),
        .tmpdir = trees_tmp(trees),
        .jobs = all || seen.jobs ? a->jobs : 0,
        .ncpu = os_cpus_usable(&slot->at.cpus),
        .variant = all || seen.variant ? a->variant : "",
        .rev = all || seen.rev ? a->rev : NULL,
        .kernel = all || seen.kernel ? a->kernel : NULL,
        .src = tree ? trees_src(trees) : "",
        .obj = tree ? trees_obj(trees) : "",
        .mark = confine_env(slot->conf.confine),
        .own = a->env,
        .own_count = a->env_count,
    };

    return env_new(&spec, out, diag);
}

/* --- the start --- */

static void on_step(const struct step_result *result, void *arg);
static void on_measure(const struct measure_result *result, void *arg);

static void on_swept(const struct confine_left *left, void *arg)
{
    struct slot *slot;

    CAST_OBJ(slot, arg, SLOT_MAGIC);
    slot->sweeping = false;
    if (!slot->starting)
        return; /* the attempt for which it was asked has ended */
    if (left->killed > 0)
        log_warn("%zu processes of an earlier command were killed: %s", left->killed, left->names);
    if (left->stuck > 0) {
        char text[300];

        snprintf(text, sizeof text, "waits for processes that cannot be ended: %s", left->names);
        slot->ops.state(slot->at.a->run, slot->at.a->attempt, slot->phase, text, slot->arg);
    }
    loop_timer_set(slot->again, left->stuck > 0 ? BUSY_PAUSE : 0);
}

/* What is left of an earlier command is in the way: it is killed first. */
static void wait_for_room(struct slot *slot, const struct diag *why)
{
    struct diag *diag = diag_new(2);

    slot->starting = true;
    if (!slot->sweeping) {
        log_debug("%s waits: %s", slot_cmd_word(slot->cmd), diag_first(why));
        slot->sweeping = true;
        if (confine_sweep(slot->conf.confine, on_swept, slot, diag) != 0) {
            slot->sweeping = false;
            loop_timer_set(slot->again, BUSY_PAUSE);
        }
    }
    diag_free(&diag);
}

static int make_output(struct slot *slot, enum slot_cmd cmd, struct diag *diag)
{
    char path[FILE_PATH_MAX], name[32];
    struct output_opts opts = {.path = path,
                               .set_user = slot->conf.set_user,
                               .uid = slot->conf.uid,
                               .gid = slot->conf.gid};
    int err;

    if (slot->at.output[cmd] != NULL)
        return 0;
    snprintf(name, sizeof name, "%s.log", slot_cmd_word(cmd));
    err = file_path(path, sizeof path, slot->conf.out_dir, name);
    return err != 0 ? err : output_new(&opts, &slot->at.output[cmd], diag);
}

static void note_dropped(struct slot *slot, const struct env *env)
{
    if (slot->at.dropped == NULL)
        slot->at.dropped_count = env_dropped(env, os_environ(), ENV_DROPPED_MAX, &slot->at.dropped);
}

static int start(struct slot *slot, enum slot_cmd cmd, const struct env *env, struct diag *diag)
{
    const struct msg_assign *a = slot->at.a;
    char name[65];
    struct step_spec spec = {
        .name = name,
        .command = slot_cmd_text(slot, cmd),
        .stop_on_error = CMDS[cmd].stop_on_error,
        .env = env_list(env),
        .cwd = cmd == CMD_FINGERPRINT ? trees_home(slot->conf.trees) : trees_src(slot->conf.trees),
        .output = slot->at.output[cmd],
        .set_user = slot->conf.set_user,
        .uid = slot->conf.uid,
        .gid = slot->conf.gid,
        .timeout_ns = timeout_of(a, cmd),
        .confine = slot->conf.confine,
    };

    snprintf(name, sizeof name, "%" PRIu64 ".%" PRIu32 ".%s", a->run, a->attempt,
             slot_cmd_word(cmd));
    if (cmd == CMD_RUN)
        return measure_start(slot->conf.loop, &spec, slot->meter, 0, on_measure, slot,
                             &slot->measure, diag);
    return step_start(slot->conf.loop, &spec, on_step, slot, &slot->step, diag);
}

static void run_again(struct slot *slot)
{
    slot_run_cmd(slot, slot->cmd);
}

/* There is no file for a command's output. `again` is called when there may be room for one. */
static void no_output(struct slot *slot, enum slot_cmd cmd, int err, const struct diag *diag,
                      void (*again)(struct slot *slot))
{
    const char *why = diag_first(diag)[0] != '\0' ? diag_first(diag) : err_text(err);

    if (err == -ERR_FULL)
        slot_wait_disk(slot, slot->conf.out_dir, why, again);
    else
        slot_fail(slot, OUTCOME_INTERRUPTED, "there is no file for the output of %s: %s",
                  slot_cmd_word(cmd), why);
}

/* The output file of the timed command is made before the machine's lock is asked for: others must
 * not wait for a machine that waits for room on a disk. */
static void prepare_run(struct slot *slot)
{
    struct diag *diag = diag_new(4);
    int err = slot_has_cmd(slot, CMD_RUN) ? make_output(slot, CMD_RUN, diag) : 0;

    if (err != 0)
        no_output(slot, CMD_RUN, err, diag, prepare_run);
    else
        slot_settle(slot);
    diag_free(&diag);
}

/* After a command that was not needed, or ended well. */
static void next(struct slot *slot, enum slot_cmd cmd)
{
    switch (cmd) {
    case CMD_FINGERPRINT:
        slot_get_archive(slot);
        break;
    case CMD_SETUP:
        slot_tree_is_ready(slot);
        break;
    case CMD_RESET:
        prepare_run(slot);
        break;
    case CMD_RUN:
        slot_enter(slot, PHASE_CHECK, NULL);
        slot_run_cmd(slot, CMD_CHECK);
        break;
    case CMD_CHECK:
    case CMD_COUNT:
        slot_end(slot, OUTCOME_OK);
        break;
    }
}

void slot_run_cmd(struct slot *slot, enum slot_cmd cmd)
{
    struct env *env = NULL;
    struct diag *diag;
    int err;

    slot->cmd = cmd;
    slot->starting = false;
    if (!slot_has_cmd(slot, cmd)) {
        next(slot, cmd);
        return;
    }
    diag = diag_new(4);
    err = make_env(slot, cmd, &env, diag);
    if (err != 0) {
        slot_fail(slot, OUTCOME_FAILED, "the environment of %s cannot be made: %s",
                  slot_cmd_word(cmd), diag_first(diag));
    } else if ((err = make_output(slot, cmd, diag)) != 0) {
        no_output(slot, cmd, err, diag, run_again);
    } else {
        slot_disk_has_room(slot);
        note_dropped(slot, env);
        err = start(slot, cmd, env, diag);
        if (err == -ERR_BUSY)
            wait_for_room(slot, diag);
        else if (err != 0)
            slot_fail(slot, OUTCOME_INTERRUPTED, "%s could not be started: %s", slot_cmd_word(cmd),
                      diag_first(diag));
    }
    env_free(&env);
    diag_free(&diag);
}

/* --- the end --- */

static void take_fingerprint(struct slot *slot)
{
    struct slot_attempt *at = &slot->at;
    struct digest *digest = digest_new(DIGEST_SHA256);
    uint8_t hash[DIGEST_MAX];
    struct buf head = BUF_INIT;
    const uint8_t *bytes;
    uint64_t cursor = 0, offset;
    size_t n;

    while (output_piece(at->output[CMD_FINGERPRINT], &cursor, &offset, &bytes, &n) == 1) {
        digest_add(digest, bytes, n);
        if (head.len < FINGERPRINT_SHOWN)
            buf_add(&head, bytes,
                    n < FINGERPRINT_SHOWN - head.len ? n : FINGERPRINT_SHOWN - head.len);
    }
    digest_end(digest, hash);
    digest_free(&digest);
    str_hex(at->fingerprint, hash, 32);
    at->fingerprint_text = mem_xarray(FINGERPRINT_SHOWN, 1);
    words_copy_lines(at->fingerprint_text, FINGERPRINT_SHOWN, buf_str(&head));
    buf_fini(&head);
    if (at->a->fingerprint_want != NULL && at->a->fingerprint_want[0] != '\0' &&
        !str_eq(at->a->fingerprint_want, at->fingerprint))
        marks_add(&at->marks, MARK_FINGERPRINT, "it is %.12s now, and was %.12s: %.200s",
                  at->fingerprint, at->a->fingerprint_want, at->fingerprint_text);
}

static void take_facts(struct slot *slot)
{
    struct told *told = &slot->at.told;
    struct output *o = slot->at.output[CMD_CHECK];
    const uint8_t *bytes;
    uint64_t cursor = 0, offset, expected = 0;
    size_t n;

    while (output_piece(o, &cursor, &offset, &bytes, &n) == 1) {
        if (offset != expected)
            told_gap(told);
        told_add(told, bytes, n);
        expected = offset + n;
    }
    told_end(told);
    if (told->left_out > 0)
        log_warn("check of run %" PRIu64 " printed %zu facts more than the %d that are kept",
                 slot->at.a->run, told->left_out, TOLD_MAX);
}

static void note_ending(struct slot_attempt *at, const struct step_result *r)
{
    at->ending = r->ending;
    at->exit_status = r->exit_status;
    at->signal = r->signal;
}

static void say_failure(struct slot *slot, enum slot_cmd cmd, const struct step_result *r)
{
    struct buf *text = &slot->at.text;
    struct buf tail = BUF_INIT;

    buf_reset(text);
    buf_printf(text, "%s %s", slot_cmd_word(cmd), r->text);
    if (cmd == CMD_SETUP || cmd == CMD_FINGERPRINT) {
        words_tail(&tail, slot->at.output[cmd], TAIL_SHOWN);
        if (tail.len > 0)
            buf_printf(text, "; its output ends: %s", buf_str(&tail));
    }
    buf_fini(&tail);
    if (slot_disk_is_full(trees_work(slot->conf.trees))) {
        char full[220];

        slot_disk_text(trees_work(slot->conf.trees), full, sizeof full);
        buf_printf(text, "; %s", full);
    }
}

static void failed(struct slot *slot, enum slot_cmd cmd, const struct step_result *r)
{
    if (cmd == CMD_SETUP || cmd == CMD_RESET)
        trees_spoilt(slot->conf.trees);
    note_ending(&slot->at, r);
    say_failure(slot, cmd, r);
    slot_end(slot, OUTCOME_FAILED);
}

static void took(struct slot_attempt *at, enum slot_cmd cmd, int64_t ns)
{
    if (cmd == CMD_SETUP)
        at->setup_ns = ns;
    else if (cmd == CMD_RESET)
        at->reset_ns = ns;
    else if (cmd == CMD_CHECK)
        at->check_ns = ns;
}

static void on_step(const struct step_result *result, void *arg)
{
    struct slot *slot;
    enum slot_cmd cmd;
    const struct marks_item *left;
    struct step_result r = *result;

    CAST_OBJ(slot, arg, SLOT_MAGIC);
    cmd = slot->cmd;
    step_free(&slot->step);
    slot->at.ended[cmd] = true;
    took(&slot->at, cmd, r.real_ns);
    left = marks_find(&r.marks, MARK_SURVIVORS);
    if (left != NULL)
        log_warn("%s of run %" PRIu64 ": %s", slot_cmd_word(cmd), slot->at.a->run, left->text);
    if (slot->wish != WISH_NONE && (cmd == CMD_SETUP || cmd == CMD_RESET))
        trees_spoilt(slot->conf.trees);
    if (slot->wish != WISH_NONE)
        note_ending(&slot->at, &r);
    if (slot_obeys_wish(slot))
        return;
    if (!r.ok) {
        failed(slot, cmd, &r);
        return;
    }
    if (cmd == CMD_FINGERPRINT)
        take_fingerprint(slot);
    else if (cmd == CMD_CHECK)
        take_facts(slot);
    next(slot, cmd);
}

static void mark_limits(struct slot *slot, const struct step_result *r)
{
    struct limits_case c = {.limits = &slot->at.limits,
                            .jobs = slot->at.a->jobs,
                            .cpus = os_cpus_usable(&slot->at.cpus),
                            .is_root = slot->conf.set_user ? slot->conf.uid == 0 : os_is_root(),
                            .failed = r->ok ? NULL : slot->at.output[CMD_RUN]};

    limits_mark(&c, &slot->at.marks);
}

static void on_measure(const struct measure_result *result, void *arg)
{
    struct slot *slot;
    struct slot_attempt *at;
    const struct step_result *r;

    CAST_OBJ(slot, arg, SLOT_MAGIC);
    at = &slot->at;
    at->result = *result;
    r = &at->result.step;
    measure_free(&slot->measure);
    at->ended[CMD_RUN] = true;
    slot_unlock(slot);
    slot_close_window(slot);
    at->measured = r->ending != ENDING_NOEXEC && r->ending != ENDING_NONE;
    at->settle_ns = r->start_ns - at->settle_start_ns;
    marks_merge(&at->marks, &r->marks);
    if (r->ending != ENDING_NOEXEC)
        mark_limits(slot, r);
    if (slot->wish == WISH_CANCEL && r->ending != ENDING_CANCEL)
        marks_add(&at->marks, MARK_CANCELLED_LATE, "the run had ended by itself: %s", slot->why);
    note_ending(at, r);
    if (slot_obeys_wish(slot))
        return;
    if (!r->ok) {
        failed(slot, CMD_RUN, r);
        return;
    }
    next(slot, CMD_RUN);
}
