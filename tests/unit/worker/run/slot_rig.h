/* slot_rig.h: a slot with everything beneath it for real, in a folder of its own, and the queue and
 * the link played by the test. */
#ifndef MAKESPAN_TESTS_UNIT_WORKER_RUN_SLOT_RIG_H
#define MAKESPAN_TESTS_UNIT_WORKER_RUN_SLOT_RIG_H

#include "common/fileio.h"
#include "proto/msg.h"
#include "worker/run/slot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slot_rig {
    char dir[FILE_PATH_MAX];
    char lock_path[FILE_PATH_MAX];
    struct loop *loop;
    struct confine *confine;
    struct journal *journal;
    struct spool *spool;
    struct trees *trees;
    struct fetch *fetch;
    struct slot *slot;
    bool swept;
    /* what the slot said */
    enum phase phases[64]; /* each once in a row */
    size_t phase_count;
    char waits[512]; /* the last text of a state */
    bool window;
    unsigned windows; /* how often it opened */
    bool fill_behind_window; /* the disk is filled, with "filler", when the window is closed */
    bool done;
    bool spooled;
    size_t queued; /* what the link answers */
    /* pieces of the archive that fetch asks for; NULL: none are known */
    const uint8_t *archive;
    size_t archive_len;
    size_t asked;
    uint8_t ask_hash[32];
};

/* `use`: CONFINE_* ways. */
void slot_rig_open(struct slot_rig *rig, unsigned use);
void slot_rig_close(struct slot_rig *rig);
/* Frees the slot and opens all of it again on the same folder, as a new start of the worker. */
void slot_rig_restart(struct slot_rig *rig, unsigned use);

/* The rig's folder becomes a small disk of its own, 8 MiB; skips the test for who may not mount. */
void slot_rig_small_disk(struct slot_rig *rig);
/* A file that takes what is free; and its end. */
void slot_rig_fill(struct slot_rig *rig, const char *name);
void slot_rig_empty(struct slot_rig *rig, const char *name);

/* Begins the attempt. */
void slot_rig_start(struct slot_rig *rig, const struct msg *assign);
/* Turns until the slot is idle again, or for at most a minute: then asserts. */
void slot_rig_wait(struct slot_rig *rig);
/* Turns until the slot is in that phase; asserts when it ends before. */
void slot_rig_until(struct slot_rig *rig, enum phase phase);
/* The same, and turns until the command of that name has printed something. */
void slot_rig_until_printed(struct slot_rig *rig, enum phase phase, const char *command);
/* Turns until the timed window is open and the command has printed something. */
void slot_rig_in_window(struct slot_rig *rig);
/* Both. */
void slot_rig_run(struct slot_rig *rig, const struct msg *assign);
bool slot_rig_went_through(const struct slot_rig *rig, enum phase phase);

/* The newest attempt in the spool: its records, decoded; freed by slot_rig_forget(). */
struct slot_records {
    struct msg *msg[64];
    size_t count;
    const struct msg_result *result;
};
void slot_rig_records(struct slot_rig *rig, struct slot_records *out);
void slot_rig_forget(struct slot_records *records);
/* The mark, or NULL. */
const struct msg_mark *slot_rig_mark(const struct slot_records *records, enum mark mark);
/* Appends the output of a phase as it came, without gaps, to dst (NUL-terminated). */
size_t slot_rig_output(const struct slot_records *records, enum phase phase, char *dst,
                       size_t room);
const char *slot_rig_fact(const struct slot_records *records, const char *key);

#endif
