/* agent_int.h: the agent's inside, for agent.c, agent_queue.c and on_coord.c alone. */
#ifndef MAKESPAN_WORKER_AGENT_INT_H
#define MAKESPAN_WORKER_AGENT_INT_H

#include "common/buf.h"
#include "proto/msg.h"
#include "worker/agent.h"
#include "worker/os/facts.h"
#include "worker/os/os.h"

struct confine;
struct feed;
struct fetch;
struct file_lock;
struct journal;
struct link;
struct loop_timer;
struct probe_compiler;
struct slot;
struct spool;
struct trees;

struct agent {
    unsigned magic;
    struct loop *loop;
    const struct worker_conf *conf;
    struct identity *identity;
    char *lock_path;
    struct os_ident ident;
    char boot_id[65];
    bool set_user;
    struct os_user user; /* of builds, with set_user */
    /* in the order in which they are made */
    struct file_lock *folder;
    struct journal *journal;
    struct spool *spool;
    struct confine *confine;
    struct trees *trees;
    struct fetch *fetch;
    struct slot *slot;
    struct feed *feed;
    struct link *link;
    struct probe_compiler *compiler_ask;
    char compiler[256];
    struct loop_timer *pump;  /* to agent_pump() */
    struct loop_timer *retry; /* the disk was full, a write failed */
    bool ready; /* what an earlier start left is dead, and the compiler has answered */
    char no_room[257];        /* why no work is taken: said so already; "" */
    bool window;              /* the timed window is open */
    bool stopping;
    int64_t stop_ns; /* until when delivery is waited for */
    agent_stopped_f *stopped;
    void *stopped_arg;
    uint32_t told_room; /* what the coordinator believes */
    char told_why[257]; /* the same of no_room */
    struct buf stash;   /* frames that came in the window */
    /* what HELLO points to while it is sent */
    struct facts facts;
    struct rec_fact *hello_facts;
    struct rec_held *hello_held;
};
#define AGENT_MAGIC 0x6167656eu

/* --- agent.c --- */
void agent_kick(struct agent *agent); /* agent_pump() in a later turn */

/* --- agent_queue.c --- */

/* All that may be due: what the window held back, what an earlier start left, the next assignment,
 * the room, the feed, the end. */
void agent_pump(struct agent *agent);
/* Assignments that can be taken now besides those held. */
uint32_t agent_room(const struct agent *agent);

/* --- on_coord.c: messages of the coordinator; each has one small function --- */
void on_coord_hello(struct msg_hello *hello, void *agent);
void on_coord_hello_sent(void *agent);
void on_coord_up(const struct msg_welcome *welcome, void *agent);
void on_coord_message(const struct msg *msg, void *agent);
void on_coord_down(void *agent);
void on_coord_beat(struct msg_beat *beat, void *agent);
/* Handles what came in the window. */
void on_coord_unstash(struct agent *agent);
/* What the worker says. */
void on_coord_say_state(uint64_t run, uint32_t attempt, enum phase phase, const char *text,
                        void *agent);
void on_coord_say_room(struct agent *agent);
void on_coord_say_refused(struct agent *agent, uint64_t run, uint32_t attempt, int code,
                          const char *text);

#endif
