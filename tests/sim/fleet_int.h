/* fleet_int.h: what a simulated fleet consists of: for fleet*.c alone. */
#ifndef MAKESPAN_TESTS_SIM_FLEET_INT_H
#define MAKESPAN_TESTS_SIM_FLEET_INT_H

#include "coordinator/conf.h"
#include "tests/sim/fleet.h"
#include "worker/conf.h"
#include "worker/identity.h"

#define FLEET_COORD_DIR "/srv/makespan"
#define FLEET_WORKER_DIR "/var/lib/makespan-worker"
#define FLEET_ARCHIVE 10240 /* bytes of src.tar */

struct conn;
struct loop;
struct loop_timer;
struct pki_cert;
struct pki_key;
struct tls;

struct member {
    struct node *node;
    struct worker_conf conf;
    struct identity identity;
    struct agent *agent;
};

/* The operator: connects again and again until its sweep is accepted, and for each retry. */
struct fleet_op {
    const struct pki_key *key;
    const struct pki_cert *cert, *authority;
    struct tls *tls;
    struct loop *loop;
    struct loop_timer *again;
    struct conn *conn;
    uint32_t call;
    bool accepted;
    unsigned retries; /* to come */
};

struct fleet {
    struct fleet_conf conf;
    struct world *world;
    struct node *coord_node, *op_node;
    struct coord_conf coord_conf;
    struct coord *coord;
    struct member member[FLEET_WORKERS];
    struct fleet_op op;
    struct fleet_check *check;
    struct fleet_run *runs;
    size_t run_count, run_room;
    uint8_t archive[FLEET_ARCHIVE];
    uint8_t archive_hash[32];
    char failure[512];
};

/* fleet_found.c: authority, identities, the archive. */
void fleet_found(struct fleet *fleet);
/* fleet_op.c */
void fleet_op_start(struct fleet *fleet, struct loop *loop);
void fleet_op_stop(struct fleet *fleet);

#endif
