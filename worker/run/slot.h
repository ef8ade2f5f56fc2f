/* slot.h: the one attempt in progress: from the assignment to the spooled records.
 *
 *     IDLE FETCH SETUP RESET SETTLE MEASURE CHECK FLUSH
 *
 * Owns: the order of these, their deadlines, the machine's lock from SETTLE to the end of MEASURE,
 * what becomes of an attempt when something fails, is cancelled, withdrawn or stopped, the records.
 * Does not own: the queue (the agent hands over one assignment at a time), trees, archives,
 * processes, the spool, the link; it uses them.
 *
 *     FETCH    the archive is brought here
 *     SETUP    fingerprint; the tree is made to stand; setup, when the tree is new
 *     RESET    HOME and TMPDIR are emptied; reset
 *     SETTLE   the wait for the machine's lock
 *     MEASURE  the timed command; between its spawn and its end this process writes no file and no
 *              line of log, and sends nothing but its beat
 *     CHECK    check, and the facts that it prints
 *     FLUSH    the records are written and synced; on a full disk it waits here
 *
 * Setup sees VARIANT, KERNEL, KERNEL_SHORT, JOBS, JFLAG and REV only when its text names them: what
 * it sees makes the tree, and trees are shared by all variants that make the same. */
#ifndef MAKESPAN_WORKER_RUN_SLOT_H
#define MAKESPAN_WORKER_RUN_SLOT_H

#include "common/attr.h"
#include "common/vocab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct confine;
struct fetch;
struct journal;
struct journal_running;
struct loop;
struct msg_assign;
struct slot;
struct spool;
struct trees;

struct slot_ops {
    /* The attempt is in another phase, or waits for something else (text; NULL: nothing to say). */
    void (*state)(uint64_t run, uint32_t attempt, enum phase phase, const char *text, void *arg);
    /* Bytes that the link has not yet given to the kernel: 0 before the timed window opens. */
    size_t (*queued)(void *arg);
    /* The timed window opens (just before STATE is told) or is closed. */
    void (*window)(bool open, void *arg);
    /* The slot is idle again. `spooled`: the records are in the spool; else it was withdrawn. */
    void (*done)(uint64_t run, uint32_t attempt, bool spooled, void *arg);
};

/* All pointers are borrowed for the life of the slot; strings are copied. */
struct slot_conf {
    struct loop *loop;
    struct confine *confine;
    struct trees *trees;
    struct fetch *fetch;
    struct spool *spool;
    struct journal *journal;
    const char *out_dir;   /* for the output of commands; there already */
    const char *path;      /* PATH of builds */
    const char *lock_path; /* of the machine's lock */
    const char *holder;    /* what others are shown who wait for it */
    const char *boot_id;
    const char *kernel; /* identity of the running kernel */
    bool set_user;
    uint32_t uid;
    uint32_t gid;
};

struct slot *slot_new(const struct slot_conf *conf, const struct slot_ops *ops, void *arg);
/* Kills what it can without waiting; what was being made is reported by the next start. NULL inside
 * is fine. */
void slot_free(struct slot **slot);

/* Begins the attempt that journal_running() names. The slot must be idle. */
void slot_start(struct slot *slot);
enum phase slot_phase(const struct slot *slot);
/* Nanoseconds since the phase began. */
int64_t slot_elapsed(const struct slot *slot);

/* Ends the attempt in progress, killing its tree: its outcome is `cancelled`. False when the slot
 * has another one, or none. In FLUSH it only gets a mark. */
bool slot_cancel(struct slot *slot, uint64_t run, uint32_t attempt, const char *why);
/* Takes it back when its RESET has not begun: no records are made, done() says so. False when it is
 * too late or the slot has another one. */
bool slot_withdraw(struct slot *slot, uint64_t run, uint32_t attempt);
/* The worker stops: the attempt in progress becomes `interrupted`. */
void slot_stop(struct slot *slot);

/* Writes the records of an attempt that an earlier start of the worker left: outcome `interrupted`.
 * 0 also when the spool has them already; else negative: to be tried again. */
int slot_report_interrupted(struct spool *spool, const struct journal_running *left,
                            const char *boot_id) MUST_CHECK;

#endif
