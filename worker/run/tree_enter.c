/* tree_enter.c: one prepared tree takes the place of another.
 *
 * A ladder: ask the host's own folder; count, sync and put away the tree that stands; take the
 * wanted one out, or make it: room on the disk, folders, unpack, hash, compare. Between the
 * steps children run; each step begins the next. Any failure leaves nothing standing. */
#include "worker/run/tree_int.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/proc.h"
#include "common/str.h"
#include "worker/os/os.h"
#include "worker/run/archive.h"
#include "worker/run/hostdir.h"
#include "worker/run/treehash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHILD_LIMIT (2 * CLOCK_HOUR)
#define REMOVE                                                                                     \
    "for x in --one-file-system -x ''; do rm $x -f 2>/dev/null && break; done; rm $x -rf ./*"

struct tree_job {
    enum tree_source source;
    uint8_t blob[32];
    char *blob_path;
    char *tree;
    char *host_dir;
    char key[65];
    char says[65]; /* tree hash, or what the host's own folder said */
    uint8_t seen[32];
    bool has_seen;
    bool fresh;
    /* What enters the key, until the key is known. */
    struct tree_want want;
    char *setup;
    char **env;
    char *storage;
    char *fingerprint;
    tree_f *f;
    void *arg;
    struct loop_timer *timer; /* the beginning, then the telling */
    bool begun;
    struct proc_collect *child;
    struct archive *archive;
    struct treehash *hash;
    struct hostdir *asking;
    int code;
    char text[1100];
};

static void free_job(struct tree_job *j)
{
    loop_timer_free(&j->timer);
    if (j->child != NULL)
        proc_collect_cancel(&j->child);
    archive_cancel(&j->archive);
    treehash_cancel(&j->hash);
    hostdir_cancel(&j->asking);
    for (size_t i = 0; j->env != NULL && j->env[i] != NULL; i++)
        free(j->env[i]);
    free(j->env);
    free(j->blob_path);
    free(j->tree);
    free(j->host_dir);
    free(j->setup);
    free(j->storage);
    free(j->fingerprint);
    free(j);
}

void tree_job_cancel(struct trees *trees)
{
    struct tree_job *j = trees->job;

    if (j == NULL)
        return;
    /* Half a tree is none. */
    if (j->fresh)
        trees->stands = false;
    trees->job = NULL;
    free_job(j);
}

void trees_cancel(struct trees *trees)
{
    tree_job_cancel(trees);
}

/* Tells the end from the loop; the job is gone before. */
static void tell(struct trees *t)
{
    struct tree_job *j = t->job;
    struct tree_result r;

    t->job = NULL;
    r = (struct tree_result){.code = j->code,
                             .text = j->text,
                             .fresh = j->fresh,
                             .key = j->key,
                             .tree_seen = j->says,
                             .blob_seen = j->has_seen ? j->seen : NULL};
    j->f(&r, j->arg);
    free_job(j);
}

static void finish(struct trees *t)
{
    loop_timer_set(t->job->timer, 0);
}

static void fail(struct trees *t, int code, const char *text)
{
    struct tree_job *j = t->job;

    j->code = code;
    (void)str_copy(j->text, sizeof(j->text), text);
    if (j->fresh) { /* it goes to the trash with the next one */
        t->stands = false;
        j->fresh = false;
    }
    finish(t);
}

static void fail_call(struct trees *t, int code, const char *what)
{
    char text[600];

    (void)snprintf(text, sizeof(text), "%s: %s", what, err_text(code));
    fail(t, code, text);
}

/* --- children --- */

static int child(struct trees *t, const char *const *argv, const char *cwd, size_t out_max,
                 proc_output_f *f, void *arg, struct proc_collect **out, struct diag *diag)
{
    char *path_var = mem_xasprintf("PATH=%s", t->path);
    const char *env[] = {path_var, "LC_ALL=C", "TZ=UTC", NULL};
    struct proc_spec spec = PROC_SPEC_INIT;
    int r;

    spec.argv = argv;
    spec.env = env;
    spec.cwd = cwd;
    spec.no_core = true;
    r = proc_collect(t->loop, &spec, out_max, CHILD_LIMIT, f, arg, out, diag);
    free(path_var);
    return r;
}

static bool went_well(const struct proc_output *output)
{
    return !output->timed_out && !output->end.signaled && !output->end.exec_failed &&
           output->end.exit_status == 0;
}

int tree_empty_trash(struct trees *trees, tree_output_f *f, void *arg, struct proc_collect **out,
                     struct diag *diag)
{
    /* Nothing is removed unless the change into the trash went well, and nothing of another file
     * system, which a build mounted and left: where rm has an option for that (GNU's, the BSDs').
     * Builds leave folders that their owner may not write; for root that is no hindrance. A link
     * that a build put in the place of one of its folders is not followed. */
    static const char plain[] = "cd \"$1\" || exit; " REMOVE;
    static const char owner[] = "cd \"$1\" || exit; for f in ./*; do "
                                "[ -h \"$f\" ] || chmod -R u+rwx \"$f\" 2>/dev/null; done; " REMOVE;
    const char *argv[] = {"/bin/sh",       "-c", os_is_root() ? plain : owner, "sh",
                          trees->at.trash, NULL};

    return child(trees, argv, trees->at.trash, 4096, f, arg, out, diag);
}

/* --- the tree's own hash --- */

static void made(struct trees *t)
{
    struct tree_job *j = t->job;
    int r;

    (void)str_copy(t->stamp.tree, sizeof(t->stamp.tree), j->says);
    r = treestamp_write(t->at.build, &t->stamp);
    if (r != 0)
        fail_call(t, r, "the stamp of the tree cannot be written");
    else
        finish(t);
}

static void on_hash(int code, const char *hex, const char *text, void *arg)
{
    struct tree_job *j;
    struct trees *t;
    char why[600];

    CAST_OBJ(t, arg, TREES_MAGIC);
    loop_doing(t->loop, "stamping a tree that was unpacked");
    j = t->job;
    j->hash = NULL;
    if (code == 0)
        (void)str_copy(j->says, sizeof(j->says), hex);
    if (j->tree[0] == '\0' || (code == 0 && strcmp(hex, j->tree) == 0)) {
        made(t); /* a tree that cannot be hashed, and need not be, has no hash */
        return;
    }
    if (code != 0) {
        fail(t, code, text);
        return;
    }
    (void)snprintf(why, sizeof(why),
                   "the unpacked tree has the hash %s and not %s: it is not the wanted revision",
                   hex, j->tree);
    fail(t, -ERR_CONFLICT, why);
}

static void hash_tree(struct trees *t)
{
    struct tree_job *j = t->job;
    struct diag *diag = diag_new(1);
    int r = treehash_start(t->loop, t->at.src, strlen(j->tree) == 64, on_hash, t, &j->hash, diag);

    if (r != 0)
        fail(t, r, diag_first(diag));
    diag_free(&diag);
}

/* --- making a tree --- */

static void make_room(struct trees *t);

/* After a full disk: one waiting tree less, and again. False when there is none to give. */
static bool give_up_one(struct trees *t)
{
    int oldest = tree_store_oldest(t, NULL);

    return oldest >= 0 && tree_store_drop(t, (size_t)oldest) == 0 &&
           tree_store_trash(t, t->at.build) == 0;
}

static void on_unpacked(const struct archive_result *result, void *arg)
{
    struct tree_job *j;
    struct trees *t;

    CAST_OBJ(t, arg, TREES_MAGIC);
    loop_doing(t->loop, "hashing a tree that was unpacked");
    j = t->job;
    j->archive = NULL;
    if (result->hash != NULL) {
        memcpy(j->seen, result->hash, 32);
        j->has_seen = true;
        str_hex(t->stamp.blob, result->hash, 32);
    }
    t->stamp.bytes = result->bytes;
    if (result->code == 0) {
        hash_tree(t);
    } else if (result->code == -ERR_FULL && give_up_one(t)) {
        t->stands = false;
        j->fresh = false;
        make_room(t);
    } else {
        fail(t, result->code, result->text);
    }
}

static void unpack(struct trees *t)
{
    struct tree_job *j = t->job;
    struct archive_spec spec = {.file = j->blob_path,
                                .hash = j->blob,
                                .dest = t->at.src,
                                .path = t->path,
                                .entries_max = t->entries_max,
                                .bytes_max = t->bytes_max,
                                .set_user = t->set_user,
                                .uid = t->uid,
                                .gid = t->gid};
    struct diag *diag = diag_new(1);
    int r = archive_unpack(t->loop, &spec, on_unpacked, t, &j->archive, diag);

    if (r != 0)
        fail(t, r, diag_first(diag));
    diag_free(&diag);
}

static void make_tree(struct trees *t)
{
    struct tree_job *j = t->job;
    int r = file_mkdirs(t->at.build, 0755);

    j->fresh = true;
    t->stands = true;
    t->spoilt = false;
    memset(&t->stamp, 0, sizeof(t->stamp));
    (void)str_copy(t->stamp.key, sizeof(t->stamp.key), j->key);
    (void)str_copy(t->stamp.tree, sizeof(t->stamp.tree), j->says);
    t->stamp.used = ++t->use_count;
    /* The stamp stands first: a tree without "ready" in it is thrown away whatever it holds. */
    if (r == 0)
        r = treestamp_write(t->at.build, &t->stamp);
    if (r == 0)
        r = tree_make_folder(t, t->at.src);
    if (r == 0)
        r = tree_make_folder(t, t->at.obj);
    if (r != 0)
        fail_call(t, r, "the folders of the tree cannot be made");
    else if (j->source == TREE_ARCHIVE)
        unpack(t);
    else
        finish(t);
}

static void on_room(const struct proc_output *output, void *arg)
{
    struct trees *t;

    (void)output; /* what could not be removed is no reason not to try */
    CAST_OBJ(t, arg, TREES_MAGIC);
    t->job->child = NULL;
    loop_doing(t->loop, "making the folders of a tree");
    make_tree(t);
}

/* Throws away what is not wanted, and of the waiting trees as many as the budget asks for. */
static void make_room(struct trees *t)
{
    struct diag *diag = diag_new(1);
    int r = 0, oldest;

    while (r == 0 && t->budget > 0 && tree_store_bytes(t) > t->budget &&
           (oldest = tree_store_oldest(t, NULL)) >= 0)
        r = tree_store_drop(t, (size_t)oldest);
    if (r != 0)
        fail_call(t, r, "an older tree cannot be thrown away");
    else if (!tree_store_has_trash(t))
        make_tree(t);
    else {
        r = tree_empty_trash(t, on_room, t, &t->job->child, diag);
        if (r != 0)
            fail(t, r, diag_first(diag));
    }
    diag_free(&diag);
}

/* --- one goes, one comes --- */

static void use(struct trees *t)
{
    struct tree_job *j = t->job;
    int r;

    t->stamp.used = ++t->use_count;
    r = treestamp_write(t->at.build, &t->stamp);
    if (r != 0) {
        fail_call(t, r, "the stamp of the tree cannot be written");
        return;
    }
    (void)str_copy(j->says, sizeof(j->says), t->stamp.tree);
    j->has_seen = str_unhex(j->seen, 32, t->stamp.blob) == 0 && t->stamp.blob[0] != '\0';
    finish(t);
}

static void change(struct trees *t)
{
    int r = tree_store_put_away(t, tree_is_usable(t)), waits;

    if (r != 0) {
        fail_call(t, r, "the tree that stands cannot be put away");
        return;
    }
    t->spoilt = false;
    waits = tree_store_find(t, t->job->key);
    if (waits < 0) {
        make_room(t);
        return;
    }
    r = tree_store_take_out(t, (size_t)waits);
    if (r != 0)
        fail_call(t, r, "the prepared tree cannot be taken out");
    else
        use(t);
}

static void on_counted(const struct proc_output *output, void *arg)
{
    struct trees *t;
    uint64_t kib;
    const char *text;
    int r;

    CAST_OBJ(t, arg, TREES_MAGIC);
    t->job->child = NULL;
    loop_doing(t->loop, "putting away a prepared tree");
    text = buf_str(output->out);
    if (went_well(output) && num_parse_digits(text, strspn(text, "0123456789"), &kib) == 0 &&
        kib < UINT64_MAX / 1024)
        t->stamp.bytes = kib * 1024;
    t->stamp.synced = t->stamp.synced || went_well(output);
    r = treestamp_write(t->at.build, &t->stamp);
    if (r != 0)
        fail_call(t, r, "the stamp of the tree cannot be written");
    else
        change(t);
}

/* A tree that goes to wait is on the disk before its stamp says so, once; and its size is known
 * then. */
static void count_and_sync(struct trees *t)
{
    static const char once[] = "du -sk . && sync";
    static const char again[] = "du -sk .";
    const char *argv[] = {"/bin/sh", "-c", t->stamp.synced ? again : once, NULL};
    struct diag *diag = diag_new(1);
    int r = child(t, argv, t->at.build, 4096, on_counted, t, &t->job->child, diag);

    if (r != 0)
        fail(t, r, diag_first(diag));
    diag_free(&diag);
}

static void key_known(struct trees *t)
{
    struct tree_job *j = t->job;

    tree_key(t, &j->want, j->says, j->key);
    (void)str_copy(t->host_dir, sizeof(t->host_dir), j->source == TREE_HOST_DIR ? j->host_dir : "");
    if (tree_is_usable(t) && strcmp(t->stamp.key, j->key) == 0)
        use(t);
    else if (tree_is_usable(t))
        count_and_sync(t);
    else
        change(t);
}

static void on_says(const char *says, void *arg)
{
    struct trees *t;

    CAST_OBJ(t, arg, TREES_MAGIC);
    t->job->asking = NULL;
    (void)str_copy(t->job->says, sizeof(t->job->says), says);
    key_known(t);
}

static void begin(struct trees *t)
{
    struct tree_job *j = t->job;
    struct hostdir_spec spec;
    struct diag *diag;
    int r;

    if (j->source != TREE_HOST_DIR) {
        key_known(t);
        return;
    }
    spec = (struct hostdir_spec){
        .dir = j->host_dir, .path = t->path, .set_user = t->set_user, .uid = t->uid, .gid = t->gid};
    diag = diag_new(1);
    r = hostdir_ask(t->loop, &spec, on_says, t, &j->asking, diag);
    if (r != 0) /* no git here: the folder says nothing */
        on_says("", t);
    diag_free(&diag);
}

static void timer_due(void *arg)
{
    struct trees *t;

    CAST_OBJ(t, arg, TREES_MAGIC);
    if (t->job->begun) {
        tell(t);
        return;
    }
    t->job->begun = true;
    loop_doing(t->loop, "looking for a prepared tree");
    begin(t);
}

/* --- the start --- */

static int check_want(const struct tree_want *want, struct diag *diag)
{
    struct file_stat st;
    int r;

    switch (want->source) {
    case TREE_ARCHIVE:
        return want->blob != NULL ? 0 : diag_error(diag, ERR_INVAL, "the archive has no hash");
    case TREE_HOST_DIR:
        if (want->host_dir == NULL || want->host_dir[0] != '/' ||
            strlen(want->host_dir) >= FILE_PATH_MAX)
            return diag_error(diag, ERR_INVAL, "the host's own folder is no absolute path");
        r = file_stat(want->host_dir, &st);
        if (r == 0 && st.type == FILE_T_LINK)
            return 0;
        if (r == 0 && st.type != FILE_T_DIR)
            r = -ERR_INVAL;
        return r == 0 ? 0
                      : diag_error(diag, r, "%s is no folder of this host: %s", want->host_dir,
                                   err_text(r));
    case TREE_NONE:
        return 0;
    }
    return diag_error(diag, ERR_INVAL, "a source of kind %d is not known", (int)want->source);
}

static char *copy(const char *s)
{
    return mem_xstrdup(s == NULL ? "" : s);
}

int trees_enter(struct trees *trees, const struct tree_want *want, tree_f *f, void *arg,
                struct diag *diag)
{
    struct tree_job *j;
    int r;

    if (trees->job != NULL || trees->clean != NULL)
        return diag_error(diag, ERR_BUSY, "the trees are being worked on");
    r = check_want(want, diag);
    if (r != 0)
        return r;
    j = mem_xzalloc(sizeof(*j));
    j->source = want->source;
    if (want->blob != NULL)
        memcpy(j->blob, want->blob, 32);
    j->blob_path = copy(want->blob_path);
    j->tree = copy(want->tree);
    j->host_dir = copy(want->host_dir);
    j->setup = copy(want->setup);
    j->storage = copy(want->storage);
    j->fingerprint = copy(want->fingerprint);
    j->env = mem_xarray(want->setup_env_count + 1, sizeof(*j->env));
    for (size_t i = 0; i < want->setup_env_count; i++)
        j->env[i] = mem_xstrdup(want->setup_env[i]);
    j->want = *want;
    j->want.blob = j->blob;
    j->want.host_dir = j->host_dir;
    j->want.setup = j->setup;
    j->want.setup_env = (const char *const *)j->env;
    j->want.storage = j->storage;
    j->want.fingerprint = j->fingerprint;
    j->f = f;
    j->arg = arg;
    j->timer = loop_timer_new(trees->loop, timer_due, trees);
    trees->job = j;
    loop_timer_set(j->timer, 0);
    return 0;
}
