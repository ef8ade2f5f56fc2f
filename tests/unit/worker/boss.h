/* boss.h: a coordinator that does what a test says, over real TLS on loopback. */
#ifndef MAKESPAN_TESTS_UNIT_WORKER_BOSS_H
#define MAKESPAN_TESTS_UNIT_WORKER_BOSS_H

#include "common/fileio.h"
#include "proto/conn.h"
#include "proto/msg.h"
#include "tests/unit/proto/trust.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent;
struct identity;
struct worker_conf;

enum { BOSS_BOX = 4096, BOSS_RUNS = 512 };

struct boss {
    struct loop *loop;
    struct trust_pair lab, coordinator, worker;
    struct trust_world world;
    struct tls *tls;
    struct conn_listener *listener;
    char address[64];
    struct conn *conn; /* the present link, after HELLO */
    unsigned hellos, closes;
    char close_text[512];
    /* what it does by itself */
    bool mute;              /* answers nothing, not even HELLO */
    bool no_acks;           /* takes records, and says nothing of it */
    int64_t beat_ns;        /* of WELCOME */
    bool beats;             /* sends beats at that interval */
    const uint8_t *archive; /* answer to BLOB_GET; NULL: BLOB_NONE */
    size_t archive_len;
    /* what came, in order, HELLOs included; owned */
    struct msg *box[BOSS_BOX];
    size_t count;
    size_t read; /* up to here boss_next() has gone */
    /* records that it has of each attempt 1, by run */
    uint32_t have[BOSS_RUNS];
    bool whole[BOSS_RUNS];
    struct loop_timer *timer;
    uint64_t sent_beats;
};

/* Keys and certificates: before any fork. */
void boss_init(struct boss *boss);
/* Listens in that loop. */
void boss_listen(struct boss *boss, struct loop *loop);
void boss_fini(struct boss *boss);

void boss_send(struct boss *boss, const struct msg *msg);
/* Cuts the link without a word. */
void boss_cut(struct boss *boss);
/* Turns the loop until a message of that type comes that boss_next() has not given before; asserts
 * that it comes within 30 s. */
const struct msg *boss_next(struct boss *boss, enum msg_type type);
/* How many messages of that type have come in all. */
size_t boss_count(const struct boss *boss, enum msg_type type);
/* The RESULT of a run's attempt 1, or NULL. */
const struct msg_result *boss_result(const struct boss *boss, uint64_t run);
int64_t boss_deadline(void);
void boss_turn(struct boss *boss, int64_t deadline, const char *condition);
#define BOSS_WAIT(boss, condition)                                                                 \
    do {                                                                                           \
        int64_t boss_until = boss_deadline();                                                      \
        while (!(condition))                                                                       \
            boss_turn((boss), boss_until, #condition);                                             \
    } while (0)

/* --- the worker's side --- */

/* An identity of boss's worker, with TLS. */
void boss_identity(const struct boss *boss, struct trust_world *world, struct identity *out);
/* A configuration for it in that folder; worker_conf_free() it. */
void boss_conf(const struct boss *boss, const char *dir, struct worker_conf *out);

#endif
