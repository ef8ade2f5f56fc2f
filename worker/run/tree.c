/* tree.c: the prepared trees of a worker: the object and its folders. */
#include "worker/run/tree.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/proc.h"
#include "common/str.h"
#include "worker/os/os.h"
#include "worker/run/tree_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES_MAX UINT64_C(2000000)
#define BYTES_MAX (UINT64_C(64) << 30)

int tree_make_folder(const struct trees *trees, const char *path)
{
    int r = file_mkdirs(path, 0755);

    if (r == 0 && trees->set_user)
        r = os_chown(path, trees->uid, trees->gid);
    return r;
}

/* Whether it is a folder that its owner may use: a build can have locked it, or put something
 * else in its place. */
static bool serves(const char *path)
{
    struct file_stat st;

    return file_stat(path, &st) == 0 && st.type == FILE_T_DIR && (st.mode & 0700) == 0700;
}

bool tree_is_usable(const struct trees *trees)
{
    return trees->stands && trees->stamp.ready && !trees->spoilt && serves(trees->at.src) &&
           serves(trees->at.obj);
}

static int paths(struct tree_paths *at, const char *work)
{
    int r = 0;

    if (str_copy(at->work, sizeof(at->work), work) >= sizeof(at->work))
        r = -ERR_LIMIT;
    if (r == 0)
        r = file_path(at->build, sizeof(at->build), work, "build");
    if (r == 0)
        r = file_path(at->trees, sizeof(at->trees), work, "trees");
    if (r == 0)
        r = file_path(at->trash, sizeof(at->trash), work, "trash");
    if (r == 0)
        r = file_path(at->home, sizeof(at->home), work, "home");
    if (r == 0)
        r = file_path(at->tmp, sizeof(at->tmp), work, "tmp");
    if (r == 0)
        r = file_path(at->src, sizeof(at->src), at->build, "src");
    if (r == 0)
        r = file_path(at->obj, sizeof(at->obj), at->build, "obj");
    return r;
}

static int folders(const struct trees *trees)
{
    int r = file_mkdirs(trees->at.work, 0755);

    if (r == 0)
        r = file_mkdirs(trees->at.trees, 0755);
    if (r == 0)
        r = file_mkdirs(trees->at.trash, 0755);
    if (r == 0)
        r = tree_make_folder(trees, trees->at.home);
    if (r == 0)
        r = tree_make_folder(trees, trees->at.tmp);
    return r;
}

int trees_new(struct loop *loop, const struct trees_conf *conf, struct trees **out,
              struct diag *diag)
{
    struct trees *t = mem_xzalloc(sizeof(*t));
    struct os_ident *ident = mem_xzalloc(sizeof(*ident));
    int r;

    *out = NULL;
    t->magic = TREES_MAGIC;
    t->loop = loop;
    t->path = mem_xstrdup(conf->path);
    t->budget = conf->budget;
    t->entries_max = conf->entries_max > 0 ? conf->entries_max : ENTRIES_MAX;
    t->bytes_max = conf->bytes_max > 0 ? conf->bytes_max : BYTES_MAX;
    t->set_user = conf->set_user;
    t->uid = conf->uid;
    t->gid = conf->gid;
    if (os_ident(ident) == 0)
        (void)str_copy(t->boot, sizeof(t->boot), ident->boot_id);
    free(ident);
    r = conf->work[0] == '/' ? paths(&t->at, conf->work) : -ERR_INVAL;
    if (r == 0)
        r = folders(t);
    if (r != 0)
        r = diag_error(diag, r, "the work folder %s cannot be used: %s", conf->work, err_text(r));
    else
        r = tree_store_load(t, diag);
    if (r != 0) {
        trees_free(&t);
        return r;
    }
    *out = t;
    return 0;
}

static void clean_cancel(struct trees *trees);

void trees_free(struct trees **trees)
{
    struct trees *t = *trees;

    if (t == NULL)
        return;
    tree_job_cancel(t);
    clean_cancel(t);
    free(t->waiting);
    free(t->path);
    t->magic = 0;
    free(t);
    *trees = NULL;
}

bool trees_have(const struct trees *trees, const struct tree_want *want)
{
    char key[65];

    if (want->source == TREE_HOST_DIR)
        return false; /* the folder has to be asked first */
    tree_key(trees, want, "", key);
    if (tree_is_usable(trees) && strcmp(trees->stamp.key, key) == 0)
        return true;
    return tree_store_find(trees, key) >= 0;
}

int trees_ready(struct trees *trees, struct diag *diag)
{
    int r;

    if (!trees->stands || trees->job != NULL)
        return diag_error(diag, ERR_STATE, "no tree stands");
    trees->stamp.ready = true;
    (void)str_copy(trees->stamp.boot, sizeof(trees->stamp.boot), trees->boot);
    r = treestamp_write(trees->at.build, &trees->stamp);
    if (r != 0) {
        trees->stamp.ready = false;
        return diag_error(diag, r, "the stamp of the tree cannot be written: %s", err_text(r));
    }
    trees->spoilt = false;
    return 0;
}

void trees_spoilt(struct trees *trees)
{
    trees->spoilt = true;
}

const char *trees_src(const struct trees *trees)
{
    return trees->host_dir[0] != '\0' ? trees->host_dir : trees->at.src;
}

const char *trees_obj(const struct trees *trees)
{
    return trees->at.obj;
}

const char *trees_work(const struct trees *trees)
{
    return trees->at.work;
}

const char *trees_home(const struct trees *trees)
{
    return trees->at.home;
}

const char *trees_tmp(const struct trees *trees)
{
    return trees->at.tmp;
}

uint64_t trees_bytes(const struct trees *trees)
{
    return tree_store_bytes(trees);
}

/* --- HOME and TMPDIR --- */

struct clean_job {
    struct trees *trees;
    struct loop_timer *timer;
    struct proc_collect *child;
    int code;
    tree_clean_f *f;
    void *arg;
};

static void clean_cancel(struct trees *trees)
{
    struct clean_job *c = trees->clean;

    if (c == NULL)
        return;
    if (c->child != NULL)
        proc_collect_cancel(&c->child);
    loop_timer_free(&c->timer);
    free(c);
    trees->clean = NULL;
}

static void clean_done(void *arg)
{
    struct trees *trees;
    tree_clean_f *f;
    void *f_arg;
    int code;

    CAST_OBJ(trees, arg, TREES_MAGIC);
    f = trees->clean->f;
    f_arg = trees->clean->arg;
    code = trees->clean->code;
    clean_cancel(trees);
    f(code, f_arg);
}

static void clean_removed(const struct proc_output *output, void *arg)
{
    struct trees *trees;

    /* what could not be removed stays in the trash, and is tried again with the next tree */
    (void) output;
    CAST_OBJ(trees, arg, TREES_MAGIC);
    trees->clean->child = NULL;
    clean_done(trees);
}

static int note_entry(const char *name, void *arg)
{
    (void)name;
    *(bool *)arg = true;
    return 1;
}

/* A new empty folder in the place of one that is not, or that is locked. */
static int renew(struct trees *trees, const char *folder)
{
    bool any = false;
    int r = file_list(folder, note_entry, &any);

    if (r >= 0 && !any && serves(folder))
        return 0;
    r = tree_store_trash(trees, folder);
    return r == 0 ? tree_make_folder(trees, folder) : r;
}

static int mend(struct trees *trees, const char *folder)
{
    return serves(folder) ? 0 : renew(trees, folder);
}

int trees_mend_home(struct trees *trees)
{
    int r = mend(trees, trees->at.home);

    return r != 0 ? r : mend(trees, trees->at.tmp);
}

/* Removes what lies in the trash. */
static int start_cleaning(struct trees *trees, tree_clean_f *f, void *arg, struct diag *diag)
{
    struct clean_job *c = mem_xzalloc(sizeof(*c));
    int r;

    c->trees = trees;
    c->f = f;
    c->arg = arg;
    c->timer = loop_timer_new(trees->loop, clean_done, trees);
    trees->clean = c;
    if (!tree_store_has_trash(trees)) {
        loop_timer_set(c->timer, 0);
        return 0;
    }
    r = tree_empty_trash(trees, clean_removed, trees, &c->child, diag);
    if (r != 0)
        clean_cancel(trees);
    return r;
}

int trees_clean_home(struct trees *trees, tree_clean_f *f, void *arg, struct diag *diag)
{
    int r;

    if (trees->clean != NULL || trees->job != NULL)
        return diag_error(diag, ERR_BUSY, "the trees are being worked on");
    r = renew(trees, trees->at.home);
    if (r == 0)
        r = renew(trees, trees->at.tmp);
    if (r != 0)
        return diag_error(diag, r, "HOME and TMPDIR below %s cannot be emptied: %s", trees->at.work,
                          err_text(r));
    return start_cleaning(trees, f, arg, diag);
}

/* --- room on a full disk --- */

static bool is_empty(const char *folder)
{
    bool any = false;

    return file_list(folder, note_entry, &any) == 0 && !any;
}

static void room_given(int code, void *arg)
{
    struct trees *trees;

    CAST_OBJ(trees, arg, TREES_MAGIC);
    (void)code; /* what could not be removed stays in the trash */
    trees->trash_stays = tree_store_has_trash(trees);
}

/* Moves one thing into the trash; *thrown: there was one. */
static int throw_one_away(struct trees *trees, enum trees_room what, bool *thrown)
{
    int oldest;
    int r;

    *thrown = true;
    if (what >= TREES_ROOM_HOME && (!is_empty(trees->at.home) || !is_empty(trees->at.tmp))) {
        r = renew(trees, trees->at.home);
        return r != 0 ? r : renew(trees, trees->at.tmp);
    }
    oldest = tree_store_oldest(trees, NULL);
    if (oldest >= 0)
        return tree_store_drop(trees, (size_t)oldest);
    if (what >= TREES_ROOM_STANDING && file_exists(trees->at.build))
        return tree_store_put_away(trees, false);
    *thrown = false;
    return 0;
}

bool trees_tidying(const struct trees *trees)
{
    return trees->clean != NULL;
}

bool trees_give_room(struct trees *trees, enum trees_room what)
{
    struct diag *diag;
    bool thrown;
    int r;

    if (trees->clean != NULL || trees->job != NULL)
        return false;
    r = throw_one_away(trees, what, &thrown);
    if (r != 0)
        log_warn("no room could be made in %s: %s", trees->at.work, err_text(r));
    if (r != 0 || !thrown) {
        /* What lies in the trash may go now, unless that was tried and it stayed. */
        if (trees->trash_stays || !tree_store_has_trash(trees))
            return false;
    }
    diag = diag_new(1);
    r = start_cleaning(trees, room_given, trees, diag);
    diag_free(&diag);
    return r == 0;
}
