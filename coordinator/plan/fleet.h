/* fleet.h: what happens to hosts, as the planner sees it: links, room, what a worker holds, phases,
 * and what an admin changes.
 *
 * Each function writes rows in the present turn and queues messages for its end (plan/plan.h).
 * Those that return a code return 0 or a negative one; -ERR_DENIED and -ERR_NOTFOUND are the peer's
 * fault, everything else is a failure of the store. */
#ifndef MAKESPAN_COORDINATOR_PLAN_FLEET_H
#define MAKESPAN_COORDINATOR_PLAN_FLEET_H

#include "coordinator/plan/plan.h"

/* An attempt that a worker says that it holds; numbers as on the wire. */
enum plan_held_state { PLAN_HELD_QUEUED = 1, PLAN_HELD_RUNNING = 2, PLAN_HELD_SPOOLED = 3 };
struct plan_held {
    int64_t run;
    uint32_t attempt;
    enum plan_held_state state;
    enum phase phase; /* while running */
};

/* What a worker says of itself when it connects. Borrowed for the call. */
struct plan_hello {
    const char *boot_id;    /* NULL: unknown */
    const char *machine_id; /* NULL: unknown */
    const char *version;
    uint64_t visit;
    uint32_t room;
    int64_t cpus_milli;   /* usable CPUs in thousandths; 0: unknown, what is stored stays */
    int64_t memory_bytes; /* 0: unknown, likewise */
    const struct model_fact *facts;
    size_t fact_count;
    const struct plan_held *held;
    size_t held_count;
};

/* The host's link is up (after WELCOME was decided). What it holds is compared with the store: what
 * was sent and is not held goes back into the queue, what is held and no longer wanted is withdrawn
 * or cancelled, what runs is attached again. A machine id that another host has is a warning in
 * diag. A second call without plan_host_down() replaces the first. -ERR_NOTFOUND: no such host;
 * -ERR_DENIED: revoked. */
int plan_host_up(struct plan *plan, struct plan_now now, int64_t host,
                 const struct plan_hello *hello, struct diag *diag) MUST_CHECK;
/* The link is gone; `why` is for people. Nothing is repeated elsewhere: what the host holds is
 * waited for. */
int plan_host_down(struct plan *plan, struct plan_now now, int64_t host,
                   const char *why) MUST_CHECK;
/* A sign of life, for the age that is shown; writes nothing. */
void plan_host_beat(struct plan *plan, struct plan_now now, int64_t host);

/* READY: `room` assignments can be taken besides those held. */
void plan_ready(struct plan *plan, struct plan_now now, int64_t host, uint32_t room);
/* What else READY says: why no work is taken (a full disk), NULL: nothing is wrong. Writes nothing: it
 * is shown while the link is up. */
void plan_no_room(struct plan *plan, struct plan_now now, int64_t host, const char *text);
/* TAKEN: the assignment is in the worker's journal. One that is no longer wanted is cancelled. */
int plan_taken(struct plan *plan, struct plan_now now, int64_t host, int64_t run,
               uint32_t attempt) MUST_CHECK;
/* REFUSED: `code` is a positive ERR_*: DENIED (its configuration: the cells of this workload and
 * variant cannot be measured there), BUSY, STATE (withdrawn); others are as BUSY. */
int plan_refused(struct plan *plan, struct plan_now now, int64_t host, int64_t run,
                 uint32_t attempt, int code, const char *text) MUST_CHECK;
/* BEAT, lossy: a run that is known to be in the worker's slot is in this phase, for that long. It mends
 * what a lost STATE left behind: in the timed window the worker says nothing else. */
void plan_beat_phase(struct plan *plan, struct plan_now now, int64_t host, int64_t run,
                     enum phase phase, int64_t elapsed_ns);
/* STATE, lossy: the slot of the worker is in a new phase; `text` is what it waits for, or NULL. */
int plan_phase(struct plan *plan, struct plan_now now, int64_t host, int64_t run, uint32_t attempt,
               enum phase phase, const char *text) MUST_CHECK;
/* AWAY: the host goes for at most until_ns and comes back; away_ok follows after the commit. */
int plan_away(struct plan *plan, struct plan_now now, int64_t host, int64_t run, uint32_t attempt,
              int64_t until_ns, const char *text) MUST_CHECK;

/* An attempt is whole and its row is written: `attempt->outcome` is the one that counts, so that OK
 * of a measured run is the attempt that counts. Called by the owner of result/ingest's hook. */
int plan_attempt_whole(struct plan *plan, struct plan_now now, int64_t host,
                       const struct model_attempt *attempt) MUST_CHECK;
/* Records of an attempt were refused for good (result/ingest's hook `rejected`): it is one that came
 * out invalid. A run that does not wait for it stays as it is. */
int plan_attempt_rejected(struct plan *plan, struct plan_now now, int64_t host, int64_t run,
                          uint32_t attempt, const char *why) MUST_CHECK;
/* Was this attempt handed out after a later place of the host's order? */
bool plan_out_of_order(const struct plan *plan, int64_t run, uint32_t attempt);

enum plan_host_action {
    PLAN_HOST_DRAIN,
    PLAN_HOST_RESUME,
    PLAN_HOST_LABEL,
    PLAN_HOST_UNLABEL,
    PLAN_HOST_REVOKE
};
/* An admin changes a host. `label` for LABEL and UNLABEL. A revoked host's runs become NODATA; to
 * revoke its certificates and to close its link is the caller's. *host (may be NULL) is its id. 0,
 * or a negative code with text in diag. */
int plan_host_set(struct plan *plan, struct plan_now now, const char *name,
                  enum plan_host_action action, const char *label, const char *who, int64_t *host,
                  struct diag *diag) MUST_CHECK;
/* The action of a word (drain, resume, label, unlabel, revoke): 0 or -ERR_INVAL. */
int plan_host_action_of(const char *word, enum plan_host_action *out) MUST_CHECK;

#endif
