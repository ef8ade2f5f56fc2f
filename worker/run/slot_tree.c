/* slot_tree.c: FETCH, SETUP and RESET: what must be there before something can be timed. */
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/str.h"
#include "worker/run/fetch.h"
#include "worker/run/slot_int.h"
#include "worker/run/tree.h"
#include "worker/run/words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TIDY_PAUSE (100 * CLOCK_MS)

/* A failure that another attempt may not have: of the disk, the memory, the link. */
static enum outcome outcome_of(int code)
{
    switch (-code) {
    case ERR_FULL:
    case ERR_IO:
    case ERR_NOMEM:
    case ERR_SYS:
    case ERR_TIMEOUT:
    case ERR_AGAIN:
    case ERR_BUSY:
        return OUTCOME_INTERRUPTED;
    default:
        return OUTCOME_FAILED;
    }
}

static bool wants_archive(const struct slot *slot)
{
    return slot->at.a->source_kind == TREE_ARCHIVE;
}

/* The trees are being tidied up: that is waited for, as long as the phase may last. */
static void try_again(struct slot *slot, void (*what)(struct slot *slot))
{
    slot->retry = what;
    loop_timer_set(slot->again, TIDY_PAUSE);
}

/* --- FETCH --- */

static void bring_archive(struct slot *slot);

static void on_fetched(const struct fetch_result *result, void *arg)
{
    struct slot *slot;

    CAST_OBJ(slot, arg, SLOT_MAGIC);
    slot->fetching = false;
    if (slot_obeys_wish(slot))
        return;
    if (result->code == -ERR_FULL) {
        slot_wait_disk(slot, fetch_dir(slot->conf.fetch), result->text, bring_archive);
        return;
    }
    if (result->code != 0) {
        slot_fail(slot, outcome_of(result->code), "the archive could not be had: %s", result->text);
        return;
    }
    slot->at.blob_path = mem_xstrdup(result->path);
    slot_make_tree(slot);
}

static void bring_archive(struct slot *slot)
{
    struct diag *diag = diag_new(2);
    int err;

    slot->fetching = true;
    err = fetch_get(slot->conf.fetch, slot->at.a->blob.data, slot->at.a->blob_size, on_fetched,
                    slot, diag);
    if (err != 0)
        slot->fetching = false;
    if (err == -ERR_FULL) {
        slot_wait_disk(slot, fetch_dir(slot->conf.fetch), diag_first(diag), bring_archive);
    } else if (err != 0) {
        slot_fail(slot, outcome_of(err), "the archive could not be had: %s", diag_first(diag));
    }
    diag_free(&diag);
}

void slot_fetch(struct slot *slot)
{
    int err = trees_mend_home(slot->conf.trees);

    if (err == -ERR_FULL)
        slot_wait_disk(slot, trees_work(slot->conf.trees), "HOME and TMPDIR", slot_fetch);
    else if (err != 0)
        slot_fail(slot, outcome_of(err), "HOME and TMPDIR cannot be made: %s", err_text(err));
    else if (slot_has_cmd(slot, CMD_FINGERPRINT))
        slot_run_cmd(slot, CMD_FINGERPRINT);
    else
        slot_get_archive(slot);
}

/* --- SETUP --- */

static void enter_tree(struct slot *slot);

static void on_tree(const struct tree_result *result, void *arg)
{
    struct slot *slot;
    struct slot_attempt *at;

    CAST_OBJ(slot, arg, SLOT_MAGIC);
    at = &slot->at;
    slot->entering = false;
    words_copy(at->tree_seen, sizeof at->tree_seen,
               result->tree_seen == NULL ? "" : result->tree_seen);
    at->has_blob_seen = result->blob_seen != NULL;
    if (at->has_blob_seen)
        memcpy(at->blob_seen, result->blob_seen, sizeof at->blob_seen);
    if (slot_obeys_wish(slot))
        return;
    if (result->code != 0 && wants_archive(slot) && at->blob_path == NULL) {
        /* The tree that was there turned out to be spoilt, and has to be made anew. */
        slot_enter(slot, PHASE_FETCH, result->text);
        bring_archive(slot);
        return;
    }
    if (result->code == -ERR_FULL) {
        slot_wait_disk(slot, trees_work(slot->conf.trees), result->text, enter_tree);
        return;
    }
    if (result->code != 0) {
        slot_fail(slot, outcome_of(result->code), "the source could not be made ready: %s",
                  result->text);
        return;
    }
    words_copy(at->key, sizeof at->key, result->key);
    at->fresh = result->fresh;
    if (at->a->source_kind == TREE_HOST_DIR)
        marks_add(&at->marks, MARK_HOST_TREE, "%s: %s", at->a->host_dir,
                  at->tree_seen[0] == '\0' ? "it says nothing of its revision" : at->tree_seen);
    if (at->fresh)
        slot_run_cmd(slot, CMD_SETUP);
    else
        slot_reset(slot);
}

/* All that makes the tree; strings in it live as long as `env`, `text` and the attempt. */
static void fill_want(const struct slot *slot, struct tree_want *want, const char **env,
                      char text[SLOT_SETUP_ENV][SLOT_SETUP_TEXT])
{
    const struct msg_assign *a = slot->at.a;

    *want = (struct tree_want){.source = (enum tree_source)a->source_kind,
                               .blob = wants_archive(slot) ? a->blob.data : NULL,
                               .tree = a->tree,
                               .host_dir = a->host_dir,
                               .setup = a->setup,
                               .setup_env = env,
                               .setup_env_count = slot_setup_env(slot, env, text),
                               .storage = "",
                               .fingerprint = slot->at.fingerprint};
}

/* Whether the wanted tree is there. */
static bool has_tree(const struct slot *slot)
{
    const char **env = mem_xarray(SLOT_SETUP_ENV + slot->at.a->env_count + 1, sizeof *env);
    char text[SLOT_SETUP_ENV][SLOT_SETUP_TEXT];
    struct tree_want want;
    bool have;

    fill_want(slot, &want, env, text);
    have = trees_have(slot->conf.trees, &want);
    free(env);
    return have;
}

/* What an earlier build left on a full disk would make this one fail. The tree of a host's own folder
 * is not known by now, so that the one that stands may be it. */
static bool makes_room(struct slot *slot)
{
    struct trees *trees = slot->conf.trees;
    bool other = slot->at.a->source_kind != TREE_HOST_DIR && !has_tree(slot);

    if (!slot_disk_is_full(trees_work(trees)))
        return false;
    return trees_tidying(trees) ||
           trees_give_room(trees, other ? TREES_ROOM_STANDING : TREES_ROOM_HOME);
}

void slot_get_archive(struct slot *slot)
{
    if (makes_room(slot)) {
        try_again(slot, slot_get_archive);
        return;
    }
    if (!wants_archive(slot)) {
        slot_make_tree(slot);
        return;
    }
    fetch_keep(slot->conf.fetch, slot->at.a->blob.data);
    if (has_tree(slot))
        slot_make_tree(slot);
    else
        bring_archive(slot);
}

static void enter_tree(struct slot *slot)
{
    const struct msg_assign *a = slot->at.a;
    const char **env = mem_xarray(SLOT_SETUP_ENV + a->env_count + 1, sizeof *env);
    char text[SLOT_SETUP_ENV][SLOT_SETUP_TEXT];
    struct diag *diag = diag_new(2);
    struct tree_want want;
    int err;

    fill_want(slot, &want, env, text);
    want.blob_path = slot->at.blob_path;
    slot->entering = true;
    err = trees_enter(slot->conf.trees, &want, on_tree, slot, diag);
    if (err != 0)
        slot->entering = false;
    if (err == -ERR_BUSY)
        try_again(slot, enter_tree);
    else if (err == -ERR_FULL)
        slot_wait_disk(slot, trees_work(slot->conf.trees), diag_first(diag), enter_tree);
    else if (err != 0)
        slot_fail(slot, outcome_of(err), "the source could not be made ready: %s",
                  diag_first(diag));
    diag_free(&diag);
    free(env);
}

void slot_make_tree(struct slot *slot)
{
    slot_enter(slot, PHASE_SETUP, NULL);
    enter_tree(slot);
}

void slot_tree_is_ready(struct slot *slot)
{
    struct diag *diag = diag_new(2);
    int err = trees_ready(slot->conf.trees, diag);

    if (err == -ERR_FULL)
        slot_wait_disk(slot, trees_work(slot->conf.trees), diag_first(diag), slot_tree_is_ready);
    else if (err != 0)
        slot_fail(slot, outcome_of(err), "the prepared tree could not be marked as ready: %s",
                  diag_first(diag));
    else
        slot_reset(slot);
    diag_free(&diag);
}

/* --- RESET --- */

static void clean_home(struct slot *slot);

static void on_clean(int code, void *arg)
{
    struct slot *slot;

    CAST_OBJ(slot, arg, SLOT_MAGIC);
    if (!slot->cleaning)
        return; /* the attempt for which it was asked has ended */
    slot->cleaning = false;
    if (slot_obeys_wish(slot))
        return;
    if (code == -ERR_FULL)
        slot_wait_disk(slot, trees_work(slot->conf.trees), "HOME and TMPDIR", clean_home);
    else if (code != 0)
        slot_fail(slot, outcome_of(code), "HOME and TMPDIR could not be emptied: %s",
                  err_text(code));
    else
        slot_run_cmd(slot, CMD_RESET);
}

static void clean_home(struct slot *slot)
{
    struct diag *diag = diag_new(2);
    int err;

    slot->cleaning = true;
    err = trees_clean_home(slot->conf.trees, on_clean, slot, diag);
    if (err != 0)
        slot->cleaning = false;
    if (err == -ERR_BUSY)
        try_again(slot, clean_home);
    else if (err == -ERR_FULL)
        slot_wait_disk(slot, trees_work(slot->conf.trees), diag_first(diag), clean_home);
    else if (err != 0)
        slot_fail(slot, outcome_of(err), "HOME and TMPDIR could not be emptied: %s",
                  diag_first(diag));
    diag_free(&diag);
}

void slot_reset(struct slot *slot)
{
    slot_enter(slot, PHASE_RESET, NULL);
    clean_home(slot);
}
