/* init.h: the beginning of a fleet: its folder, database and authority, an admin's identity, and where both sides find each other. */
#ifndef MAKESPAN_COORDINATOR_INIT_H
#define MAKESPAN_COORDINATOR_INIT_H

#include "common/attr.h"

#include <stdbool.h>

struct coord_conf;
struct diag;

struct init_request {
    const char *fleet;
    const char *operator_dir;  /* where the admin's identity goes, and the coordinator's address beside it */
    const char *operator_name;
    const char *config;        /* the configuration that the daemon will read */
    bool write_config;         /* write listen and dir there; when it is there already, it must say the same */
    const char *address;       /* HOST:PORT by which the coordinator is reached; NULL: this machine, and the port of `listen` */
};

/* Makes the fleet and says on standard output what was made, on standard error what comes next. Nothing that is there is overwritten but the operator's file `address`. `conf` is what the daemon will
 * run with: its folder and where it listens. 0; -ERR_INVAL for what the caller wrote, before anything is made; else a negative code with text. */
int init_fleet(const struct init_request *request, const struct coord_conf *conf, struct diag *diag) MUST_CHECK;

#endif
