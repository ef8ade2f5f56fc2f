/* rig.h: a planner and an ingest over a real database in a folder of its own, with workers that are
 * a few lines each. Time stands still until a test moves it. */
#ifndef MAKESPAN_TESTS_UNIT_COORDINATOR_PLAN_RIG_H
#define MAKESPAN_TESTS_UNIT_COORDINATOR_PLAN_RIG_H

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/json.h"
#include "coordinator/plan/fleet.h"
#include "coordinator/plan/plan.h"
#include "coordinator/plan/status.h"
#include "coordinator/plan/sweep.h"
#include "coordinator/result/ingest.h"
#include "coordinator/store/store.h"
#include "proto/spec.h"

/* Two variants at two job counts, a warm-up and two runs each; `hosts` is to be added. */
#define RIG_SMALL                                                                                  \
    "sweep: small\n"                                                                               \
    "workload: {name: w, setup: make config, run: make $JFLAG}\n"                                  \
    "variants: [{name: a, env: {X: 1}}, {name: b, env: {X: 2}}]\n"                                 \
    "jobs: [1, 2]\n"                                                                               \
    "repeat: {warmup: 1, until: 2}\n"

enum { RIG_HOSTS = 8, RIG_HELD = 32, RIG_WIRE = 256, RIG_ASKS = 16 };

/* What the coordinator sent to a worker and is not delivered yet. */
struct rig_message {
    enum { RIG_ASSIGN, RIG_WITHDRAW, RIG_CANCEL, RIG_AWAY_OK } kind;
    int64_t run;
    uint32_t attempt;
    int32_t jobs;
    bool warmup, fresh_warmup;
    int64_t cell, slot, block;
    char setup[64];
};

/* An attempt at a worker; it outlives links and coordinators. */
struct rig_held {
    struct rig_message order;
    enum plan_held_state state;
    enum outcome outcome; /* once spooled */
    enum phase phase;     /* in which it ended */
    bool fresh, warm;
    uint32_t acked; /* records that are acknowledged */
};

struct rig_worker {
    int64_t id;
    char name[32];
    char boot[32];
    bool up;
    uint32_t room; /* for assignments besides the one that is made */
    struct rig_held held[RIG_HELD];
    size_t held_count;
    struct rig_message wire[RIG_WIRE];
    size_t wire_count;
};

/* A look-up that the planner asked for. */
struct rig_look_up {
    uint64_t ticket;
    char path[64];
    char text[64];
    bool archive;
};

struct rig_answer {
    bool given;
    int code, exit;
    int64_t sweep;
    char *body, *talk;
};

struct rig {
    char dir[200];
    char path[256];
    struct store *store;
    struct plan *plan;
    struct ingest *ingest;
    struct plan_now now;
    struct plan_conf conf;
    struct rig_worker workers[RIG_HOSTS];
    size_t worker_count;
    struct rig_look_up asks[RIG_ASKS];
    size_t ask_count;
    size_t cancelled_asks;
    bool resolve_at_once; /* every look-up answers within the call */
    struct buf events;    /* "kind: text\n" of this and earlier turns */
    int event_code;       /* what writing an event answers */
    int64_t next;         /* what plan_turn() said last */
    uint64_t random;
    size_t assigned; /* ASSIGN messages that left */
    size_t status_calls; /* by rig_status() */
};

struct rig *rig_new(void);
void rig_free(struct rig **rig);
/* A host that joined, with classes separated by spaces. Never connected when cpus_milli is 0. */
struct rig_worker *rig_host(struct rig *rig, const char *name, const char *classes,
                            int64_t cpus_milli, int64_t memory_bytes);

/* A rig with one host that is up, alpha of class p6 with four CPUs and 1 GiB, and room for so many assignments besides the one that is made. */
struct rig_worker *rig_one_host(struct rig **rig, uint32_t room);
/* The run that it is given next, or has. */
int64_t rig_held_run(struct rig *rig, struct rig_worker *w);

/* The end of a turn: plan_turn, commit, messages. 0 or the code of the failure. */
int rig_turn(struct rig *rig);
void rig_pass(struct rig *rig, int64_t ns); /* time passes, and then a turn */
/* The coordinator dies: what is not committed is gone; it starts again, links are down. */
void rig_crash(struct rig *rig);
/* The present turn's rows are lost. */
void rig_roll_back(struct rig *rig, int code);

/* Submits and waits for the answer; look-ups are answered by rig_resolve() or at once. */
struct rig_answer rig_submit(struct rig *rig, const struct plan_request *request);
/* Two quad-cores, many, p6 and new, which never connected; none is up. */
struct rig *rig_fleet(void);
struct plan_request rig_request(enum plan_action action, const char *text);
struct rig_answer rig_ask(struct rig *rig, enum plan_action action, const char *text);
int rig_sweeps(struct rig *rig); /* in the store */
/* Accepts a file that must be fine; returns the sweep's id. */
int64_t rig_sweep(struct rig *rig, const char *text);
void rig_answer_free(struct rig_answer *answer);
void rig_resolve(struct rig *rig, size_t ask, int code, const char *text);

/* The worker connects with what it holds; what is on the wire is lost. */
void rig_up(struct rig *rig, struct rig_worker *w);
void rig_down(struct rig *rig, struct rig_worker *w);
/* The worker gets the next message; false: there is none. */
bool rig_deliver(struct rig *rig, struct rig_worker *w);
/* Everything is delivered, with turns between, until nothing moves. */
void rig_settle(struct rig *rig);
/* The attempt that is made, or the first that waits to be; NULL: none. */
struct rig_held *rig_head(struct rig_worker *w);
void rig_begin(struct rig *rig, struct rig_worker *w);
/* The attempt being made ends. */
void rig_end(struct rig *rig, struct rig_worker *w, enum outcome outcome, enum phase phase);
/* Sends the records of spooled attempts, at most `limit` of them, and takes what is acknowledged. */
void rig_feed(struct rig *rig, struct rig_worker *w, size_t limit);
/* One attempt from its delivery to its end. */
void rig_make(struct rig *rig, struct rig_worker *w, enum outcome outcome, enum phase phase);

/* Reading. */
struct model_run rig_run(struct rig *rig, int64_t id);
int64_t rig_count(struct rig *rig, int64_t sweep, enum run_state state, bool warmup);
json_t *rig_status(struct rig *rig, int64_t sweep);
enum sweep_state rig_state(struct rig *rig, int64_t sweep);

#endif
