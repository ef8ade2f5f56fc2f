/* agent.c: makes a worker out of its parts and takes it apart again. */
#include "worker/agent.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "common/version.h"
#include "proto/digest.h"
#include "worker/agent_int.h"
#include "worker/conf.h"
#include "worker/identity.h"
#include "worker/link.h"
#include "worker/os/confine.h"
#include "worker/probe/compiler.h"
#include "worker/run/feed.h"
#include "worker/run/fetch.h"
#include "worker/run/journal.h"
#include "worker/run/slot.h"
#include "worker/run/spool.h"
#include "worker/run/tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STASH_ROOM (16 * 1024) /* kept ready, so that the window need not allocate */
#define STASH_MAX (4 * 1024 * 1024)
#define ORPHAN_LIMIT (5 * CLOCK_SEC)
#define ORPHAN_LOOK (20 * CLOCK_MS)

/* --- callbacks that only pass on --- */

static void on_pump(void *arg)
{
    struct agent *agent;

    CAST_OBJ(agent, arg, AGENT_MAGIC);
    agent_pump(agent);
}

void agent_kick(struct agent *agent)
{
    loop_timer_set(agent->pump, 0);
}

static int feed_send(const struct msg *msg, void *arg)
{
    struct agent *agent;

    CAST_OBJ(agent, arg, AGENT_MAGIC);
    return link_send(agent->link, msg);
}

static size_t queued(void *arg)
{
    struct agent *agent;

    CAST_OBJ(agent, arg, AGENT_MAGIC);
    return link_queued(agent->link);
}

static void on_drained(void *arg)
{
    struct agent *agent;

    CAST_OBJ(agent, arg, AGENT_MAGIC);
    feed_pump(agent->feed);
}

static void on_window(bool open, void *arg)
{
    struct agent *agent;

    CAST_OBJ(agent, arg, AGENT_MAGIC);
    agent->window = open;
    link_hold(agent->link, open);
    feed_hold(agent->feed, open);
    if (!open)
        agent_kick(agent);
}

static void on_done(uint64_t run, uint32_t attempt, bool spooled, void *arg)
{
    struct agent *agent;

    CAST_OBJ(agent, arg, AGENT_MAGIC);
    if (!spooled)
        on_coord_say_refused(agent, run, attempt, ERR_STATE, "withdrawn before it began");
    agent_kick(agent);
}

static void ask_piece(const uint8_t hash[FETCH_HASH], uint64_t offset, uint32_t length, void *arg)
{
    struct agent *agent;
    struct msg m = {.type = MSG_BLOB_GET};

    CAST_OBJ(agent, arg, AGENT_MAGIC);
    m.u.blob_get.hash = (struct msg_bytes){.data = hash, .len = FETCH_HASH};
    m.u.blob_get.offset = offset;
    m.u.blob_get.length = length;
    (void)link_send(agent->link,
                    &m); /* a link that goes down meanwhile is told to fetch by itself */
}

/* --- the start --- */

static int own_path(const struct agent *agent, const char *name, char path[FILE_PATH_MAX],
                    struct diag *diag)
{
    int err = file_path(path, FILE_PATH_MAX, agent->conf->dir, name);

    return err == 0
               ? 0
               : diag_error(diag, err, "the name of the folder %s is too long", agent->conf->dir);
}

/* Whether the process that wrote this line into the lock still lives. */
static bool holder_lives(const char *holder)
{
    const char *pid = strstr(holder, ", pid ");
    struct os_proc proc;
    uint64_t n;

    if (pid == NULL || num_parse_u64(pid + strlen(", pid "), &n) != 0 || n > INT64_MAX)
        return true;
    return os_proc_get((int64_t)n, &proc) != -ERR_NOTFOUND && !proc.zombie;
}

/* A worker that was killed just when it started a child leaves its lock to that child until the
 * child's exec, a moment later: that is waited for. */
static int take_lock(struct agent *agent, const char *path, const char *holder, char other[256])
{
    int64_t end = clock_mono_ns() + ORPHAN_LIMIT;
    int err;

    while ((err = file_lock_take(path, holder, &agent->folder, other)) == -ERR_BUSY &&
           clock_mono_ns() < end && !holder_lives(other))
        loop_turn(agent->loop, ORPHAN_LOOK);
    return err;
}

static int take_folder(struct agent *agent, struct diag *diag)
{
    char path[FILE_PATH_MAX], holder[128], other[256];
    /* Builds of another user have to get through it; what is secret in it has a mode of its own. */
    int err = file_mkdirs(agent->conf->dir, 0711);

    if (err != 0)
        return diag_error(diag, err, "the folder %s cannot be made: %s", agent->conf->dir,
                          err_text(err));
    if ((err = own_path(agent, "lock", path, diag)) != 0)
        return err;
    snprintf(holder, sizeof holder, "makespan-worker %s, pid %" PRId64, agent->identity->name,
             os_pid());
    err = take_lock(agent, path, holder, other);
    if (err == -ERR_BUSY)
        return diag_error(diag, err, "the folder %s is in use by %s", agent->conf->dir,
                          other[0] == '\0' ? "another worker" : other);
    return err == 0 ? 0 : diag_error(diag, err, "%s cannot be locked: %s", path, err_text(err));
}

static int choose_user(struct agent *agent, struct diag *diag)
{
    const char *name = agent->conf->run_as;
    int err;

    if (name == NULL) {
        if (os_is_root())
            log_warn("builds run as root: `run_as` in worker.yaml names no user");
        return 0;
    }
    err = os_user_find(name, &agent->user);
    if (err != 0)
        return diag_error(diag, err, "run_as: there is no user %s", name);
    if (!os_is_root() && agent->user.uid != os_uid())
        return diag_error(diag, ERR_PERM, "run_as: %s: only root can run builds as another user",
                          name);
    agent->set_user = os_is_root();
    if (agent->set_user && agent->user.uid == 0)
        log_warn("builds run as root: `run_as` in worker.yaml says so");
    return 0;
}

static int make_confine(struct agent *agent, struct diag *diag)
{
    uint8_t hash[DIGEST_MAX];
    char tag[17];
    struct confine_opts opts = {.tag = tag,
                                .use = worker_conf_confine(agent->conf),
                                .set_user = agent->set_user,
                                .uid = agent->user.uid,
                                .uid_is_ours = agent->set_user && agent->user.uid != 0 &&
                                               agent->conf->run_as_alone};
    struct diag *notes = diag_new(8);
    int err;

    digest_sha256(agent->conf->dir, strlen(agent->conf->dir), hash);
    str_hex(tag, hash, 8);
    err = confine_new(agent->loop, &opts, &agent->confine, notes);
    for (size_t i = 0; i < diag_count(notes); i++) {
        if (diag_get(notes, i)->level == DIAG_ERROR)
            diag_error(diag, diag_get(notes, i)->code, "%s", diag_get(notes, i)->text);
        else
            log_info("confinement: %s", diag_get(notes, i)->text);
    }
    if (err == 0)
        log_info("builds are kept together by: %s", confine_way_text(agent->confine));
    diag_free(&notes);
    return err;
}

static int make_store(struct agent *agent, struct diag *diag)
{
    char path[FILE_PATH_MAX];
    int err = own_path(agent, "journal", path, diag);

    if (err == 0)
        err = journal_open(path, clock_wall_ns(), &agent->journal, diag);
    if (err == 0)
        err = own_path(agent, "spool", path, diag);
    if (err == 0)
        err = spool_open(path, &agent->spool, diag);
    if (err == 0 && journal_heard_s(agent->journal) > agent->identity->heard_s)
        agent->identity->heard_s = journal_heard_s(agent->journal);
    return err;
}

static int make_trees(struct agent *agent, struct diag *diag)
{
    char path[FILE_PATH_MAX];
    struct trees_conf trees = {.work = path,
                               .path = agent->conf->path,
                               .budget = (uint64_t)agent->conf->disk_trees,
                               .set_user = agent->set_user,
                               .uid = agent->user.uid,
                               .gid = agent->user.gid};
    struct fetch_conf fetch = {.dir = path,
                               .budget = (uint64_t)agent->conf->disk_archives,
                               .ask = ask_piece,
                               .ask_arg = agent};
    int err = own_path(agent, "work", path, diag);

    if (err == 0)
        err = trees_new(agent->loop, &trees, &agent->trees, diag);
    if (err == 0)
        err = own_path(agent, "blobs", path, diag);
    if (err == 0)
        err = fetch_new(agent->loop, &fetch, &agent->fetch, diag);
    return err;
}

static int make_slot(struct agent *agent, struct diag *diag)
{
    char out[FILE_PATH_MAX], holder[256];
    struct slot_conf conf = {.loop = agent->loop,
                             .confine = agent->confine,
                             .trees = agent->trees,
                             .fetch = agent->fetch,
                             .spool = agent->spool,
                             .journal = agent->journal,
                             .out_dir = out,
                             .path = agent->conf->path,
                             .lock_path = agent->lock_path,
                             .holder = holder,
                             .boot_id = agent->boot_id,
                             .kernel = agent->ident.kernel,
                             .set_user = agent->set_user,
                             .uid = agent->user.uid,
                             .gid = agent->user.gid};
    struct slot_ops ops = {
        .state = on_coord_say_state, .queued = queued, .window = on_window, .done = on_done};
    int err = own_path(agent, "out", out, diag);

    if (err == 0 && (err = file_mkdirs(out, 0711)) != 0)
        diag_error(diag, err, "the folder %s cannot be made: %s", out, err_text(err));
    if (err != 0)
        return err;
    snprintf(holder, sizeof holder,
             "makespan-worker %s of %s at %s, pid %" PRId64 ", user %" PRIu32,
             agent->identity->name, agent->identity->fleet, agent->conf->coordinator, os_pid(),
             os_uid());
    agent->slot = slot_new(&conf, &ops, agent);
    return 0;
}

static int make_link(struct agent *agent, struct diag *diag)
{
    struct feed_ops feed = {.send = feed_send, .queued = queued};
    struct link_conf conf = {.loop = agent->loop,
                             .tls = agent->identity->tls,
                             .address = agent->conf->coordinator,
                             .fleet = agent->identity->fleet,
                             .beat_ns = agent->conf->beat_ns};
    struct link_ops ops = {.hello = on_coord_hello,
                           .hello_sent = on_coord_hello_sent,
                           .up = on_coord_up,
                           .message = on_coord_message,
                           .drained = on_drained,
                           .down = on_coord_down,
                           .beat = on_coord_beat};

    agent->feed = feed_new(agent->spool, &feed, agent);
    return link_new(&conf, &ops, agent, &agent->link, diag);
}

/* HELLO names the compiler: it is not sent before that is known; and no build begins beside a
 * program of the worker's own. */
static void on_compiler(const char *line, void *arg)
{
    struct agent *agent;

    CAST_OBJ(agent, arg, AGENT_MAGIC);
    agent->compiler_ask = NULL;
    str_copy(agent->compiler, sizeof agent->compiler, line);
    link_hold(agent->link, agent->window);
    agent->ready = true;
    agent_kick(agent);
}

static void on_swept(const struct confine_left *left, void *arg)
{
    struct agent *agent;
    struct diag *diag = diag_new(2);

    CAST_OBJ(agent, arg, AGENT_MAGIC);
    if (left->killed > 0)
        log_warn("%zu processes that an earlier start of this worker left were killed: %s",
                 left->killed, left->names);
    if (left->stuck > 0)
        log_error("%zu processes that an earlier start of this worker left cannot be ended: %s",
                  left->stuck, left->names);
    if (probe_compiler_ask(agent->loop, agent->conf->path, on_compiler, agent, &agent->compiler_ask,
                           diag) != 0) {
        log_warn("the compiler cannot be asked for its version: %s", diag_first(diag));
        on_compiler("", agent);
    }
    diag_free(&diag);
}

static void warn_of_clock(const struct agent *agent)
{
    int64_t now = clock_wall_ns() / CLOCK_SEC;

    if (now < identity_now_s(agent->identity))
        log_warn(
            "the clock of this host is behind the time that is known to be past: it is used for "
            "nothing but to be shown; set it");
    if (identity_now_s(agent->identity) > agent->identity->cert_end_s)
        log_error(
            "by the clock of this host its certificate is past its end: set the clock if it is "
            "wrong; else have a token made with --name %s and join again",
            agent->identity->name);
}

static int make_all(struct agent *agent, struct diag *diag)
{
    int err = take_folder(agent, diag);

    if (err == 0)
        err = choose_user(agent, diag);
    if (err == 0)
        err = make_store(agent, diag);
    if (err == 0)
        err = make_confine(agent, diag);
    if (err == 0)
        err = make_trees(agent, diag);
    if (err == 0)
        err = make_slot(agent, diag);
    if (err == 0)
        err = make_link(agent, diag);
    if (err != 0)
        return err;
    link_hold(agent->link, true);
    warn_of_clock(agent);
    return confine_sweep(agent->confine, on_swept, agent, diag);
}

int agent_new(const struct agent_setup *setup, struct agent **out, struct diag *diag)
{
    struct agent *agent = mem_xzalloc(sizeof *agent);
    int err = os_ident(&agent->ident);

    *out = NULL;
    agent->magic = AGENT_MAGIC;
    agent->loop = setup->loop;
    agent->conf = setup->conf;
    agent->identity = setup->identity;
    agent->lock_path = mem_xstrdup(setup->lock_path != NULL ? setup->lock_path : os_lock_path());
    str_copy(agent->boot_id, sizeof agent->boot_id,
             setup->boot_id != NULL ? setup->boot_id : agent->ident.boot_id);
    agent->pump = loop_timer_new(agent->loop, on_pump, agent);
    agent->retry = loop_timer_new(agent->loop, on_pump, agent);
    buf_init(&agent->stash, STASH_MAX);
    if (buf_reserve(&agent->stash, STASH_ROOM) == NULL)
        err = -ERR_NOMEM;
    if (err != 0)
        diag_error(diag, err, "the system does not say what it is: %s", err_text(err));
    else if (agent->conf->coordinator == NULL)
        err = diag_error(diag, ERR_INVAL, "worker.yaml names no coordinator");
    else if (agent->conf->name != NULL && !str_eq(agent->conf->name, agent->identity->name))
        err = diag_error(diag, ERR_CONFLICT,
                         "worker.yaml names this host %s, its certificate %s: correct the file, or "
                         "join again under that name",
                         agent->conf->name, agent->identity->name);
    else
        err = make_all(agent, diag);
    if (err == 0)
        *out = agent;
    else
        agent_free(&agent);
    return err;
}

/* --- the end --- */

void agent_free(struct agent **agent)
{
    struct agent *a = *agent;

    if (a == NULL)
        return;
    probe_compiler_cancel(&a->compiler_ask);
    slot_free(&a->slot);
    link_free(&a->link);
    feed_free(&a->feed);
    fetch_free(&a->fetch);
    trees_free(&a->trees);
    confine_free(&a->confine);
    spool_close(&a->spool);
    journal_close(&a->journal);
    file_lock_free(&a->folder);
    on_coord_hello_sent(a);
    loop_timer_free(&a->pump);
    loop_timer_free(&a->retry);
    buf_fini(&a->stash);
    free(a->lock_path);
    a->magic = 0;
    free(a);
    *agent = NULL;
}

void agent_stop(struct agent *agent, agent_stopped_f *f, void *arg)
{
    agent->stopping = true;
    agent->stopped = f;
    agent->stopped_arg = arg;
    agent->stop_ns = 0;
    slot_stop(agent->slot);
    agent_kick(agent);
}

/* --- what it does --- */

enum phase agent_phase(const struct agent *agent)
{
    return slot_phase(agent->slot);
}

bool agent_is_up(const struct agent *agent)
{
    return link_is_up(agent->link);
}

bool agent_in_window(const struct agent *agent)
{
    return agent->window;
}

size_t agent_queued(const struct agent *agent)
{
    return journal_queued(agent->journal);
}

size_t agent_spooled(const struct agent *agent)
{
    return spool_count(agent->spool);
}
