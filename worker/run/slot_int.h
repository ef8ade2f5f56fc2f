/* slot_int.h: the slot's inside, for slot*.c alone.
 *
 *     slot.c        states, deadlines, wishes (cancel, withdraw, stop), the public functions
 *     slot_tree.c   FETCH and SETUP up to the command
 *     slot_cmd.c    the five commands: environment, output, start, end
 *     slot_run.c    SETTLE and MEASURE
 *     slot_disk.c   the wait for room on a full disk
 *     slot_out.c    FLUSH: the records */
#ifndef MAKESPAN_WORKER_RUN_SLOT_INT_H
#define MAKESPAN_WORKER_RUN_SLOT_INT_H

#include "common/attr.h"
#include "common/buf.h"
#include "proto/msg.h"
#include "worker/os/os.h"
#include "worker/run/marks.h"
#include "worker/run/measure.h"
#include "worker/run/slot.h"
#include "worker/run/told.h"

struct file_lock;
struct loop_timer;
struct meter;
struct output;
struct settle;
struct step;
struct tree_result;

enum slot_cmd { CMD_FINGERPRINT, CMD_SETUP, CMD_RESET, CMD_RUN, CMD_CHECK, CMD_COUNT };

enum slot_wish { WISH_NONE, WISH_CANCEL, WISH_WITHDRAW, WISH_STOP };

/* What is known of the attempt in progress. Times are nanoseconds; -1: not known. */
struct slot_attempt {
    const struct msg_assign *a; /* the journal's */
    int64_t begin_wall_ns;
    /* how it ended */
    enum outcome outcome; /* 0: not known yet */
    enum phase end_phase;
    enum ending ending;
    int exit_status; /* -1: none */
    int signal;      /* 0: none */
    struct buf text;
    struct marks marks;
    /* the tree */
    char *blob_path; /* of the archive; NULL: it was not needed */
    bool fresh;
    char key[65];
    char tree_seen[65];
    uint8_t blob_seen[32];
    bool has_blob_seen;
    /* what commands told */
    char fingerprint[65];
    char *fingerprint_text;
    struct told told;
    struct output *output[CMD_COUNT];
    bool ended[CMD_COUNT]; /* the command has ended, and its output is complete */
    /* the run */
    bool measured;
    struct measure_result result;
    /* how long things took */
    int64_t setup_ns, reset_ns, settle_ns, check_ns;
    int64_t settle_start_ns;
    struct os_cpus cpus;
    struct os_limits limits;
    char **dropped;
    size_t dropped_count;
};

/* The wait for room on a disk; since_ns is 0 when there is none. */
struct slot_disk {
    int64_t since_ns, tried_ns, told_ns;
    uint64_t had;    /* bytes that were free and were not enough */
    const char *dir; /* what is full; borrowed from its owner for the life of the slot */
    void (*again)(struct slot *slot);
};

struct slot {
    unsigned magic;
    struct slot_conf conf; /* its strings are owned */
    struct slot_ops ops;
    void *arg;
    enum phase phase;
    int64_t phase_ns;                 /* when it began */
    struct loop_timer *deadline;      /* of the phase */
    struct loop_timer *again;         /* for what is tried again */
    void (*retry)(struct slot *slot); /* what that is, where the flags below do not say it */
    struct slot_disk disk;
    struct meter *meter;
    struct slot_attempt at;
    enum slot_wish wish;
    char why[257]; /* of the wish */
    /* what is under way; at most one */
    enum slot_cmd cmd; /* being started, or running */
    struct step *step;
    struct measure *measure;
    struct settle *settle;
    bool fetching, entering, cleaning;
    bool starting; /* a command waits for what is left of an earlier one to be killed */
    bool sweeping; /* confine_sweep() was asked, for that */
    bool quieting; /* the timed command waits for a quiet link */
    struct file_lock *lock;
    bool window;
};
#define SLOT_MAGIC 0x736c6f74u

/* --- slot.c --- */

/* The only writer of slot->phase: logs, writes it down, arms the deadline, tells upward. */
void slot_enter(struct slot *slot, enum phase phase, const char *why);
/* The phase may last as long as it may, from now on. */
void slot_arm(struct slot *slot);
/* Whether the attempt is to end early; then it is on its way, and the caller returns at once. To be
 * asked first in every callback. */
bool slot_obeys_wish(struct slot *slot);
/* The attempt ends in the present phase: on to FLUSH. The text of the attempt is already there. */
void slot_end(struct slot *slot, enum outcome outcome);
/* The same with a text, and no command's ending. */
void slot_fail(struct slot *slot, enum outcome outcome, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Idle again. */
void slot_finish(struct slot *slot, bool spooled);
void slot_close_window(struct slot *slot);
void slot_unlock(struct slot *slot);

/* --- slot_tree.c --- */
void slot_fetch(struct slot *slot);
/* The fingerprint is known, or none is asked for: brings the archive, unless its tree is there. */
void slot_get_archive(struct slot *slot);
/* The archive is here, or is not needed: makes the tree stand. */
void slot_make_tree(struct slot *slot);
/* Setup is done, or was not needed. */
void slot_tree_is_ready(struct slot *slot);
/* RESET. */
void slot_reset(struct slot *slot);

/* --- slot_cmd.c --- */

/* Starts the command of the present phase; an empty one counts as done. */
void slot_run_cmd(struct slot *slot, enum slot_cmd cmd);
const char *slot_cmd_text(const struct slot *slot, enum slot_cmd cmd);
bool slot_has_cmd(const struct slot *slot, enum slot_cmd cmd);
const char *slot_cmd_word(enum slot_cmd cmd);
/* What setup sees of the attempt beyond the fixed part: fills `list` (room for SLOT_SETUP_ENV + the
 * variant's own), returns how many. The texts of the first ones are in `text`. */
enum { SLOT_SETUP_ENV = 6, SLOT_SETUP_TEXT = 300 };
size_t slot_setup_env(const struct slot *slot, const char **list,
                      char text[SLOT_SETUP_ENV][SLOT_SETUP_TEXT]);

/* --- slot_run.c --- */
void slot_settle(struct slot *slot);
/* The lock is held: opens the window and starts the timed command when the link is quiet. */
void slot_measure(struct slot *slot);
void slot_wait_quiet(struct slot *slot);

/* --- slot_disk.c --- */

/* Something could not be written in `dir` for want of room: waits, with the reason told upward, and
 * calls `again` when more is free than was not enough, or now and then; while it waits the phase has
 * no deadline. After a day the attempt is interrupted. */
void slot_wait_disk(struct slot *slot, const char *dir, const char *why,
                    void (*again)(struct slot *slot));
/* What was waited for succeeded, if anything was. */
void slot_disk_has_room(struct slot *slot);
/* "the disk of DIR is full (4.0 KiB free)" */
void slot_disk_text(const char *dir, char *dst, size_t room);
/* Whether next to nothing is free there. */
bool slot_disk_is_full(const char *dir);

/* --- slot_out.c --- */
/* Writes all records; again later when there is no room. */
void slot_flush(struct slot *slot);

#endif
