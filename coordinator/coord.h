/* coord.h: the coordinator: owns every room and the turn in which they work together. */
#ifndef MAKESPAN_COORDINATOR_COORD_H
#define MAKESPAN_COORDINATOR_COORD_H

#include "common/attr.h"

#include <stdbool.h>
#include <stdint.h>

struct coord;
struct coord_conf;
struct diag;
struct loop;
struct store;

/* Opens the database and the authority in conf->dir and starts to listen. `vfs`: file layer of SQLite, NULL: the system's. Loop and conf are borrowed for the life of the object. 0 and *out,
 * or a negative code with text. */
int coord_new(struct loop *loop, const struct coord_conf *conf, const char *vfs, struct coord **out, struct diag *diag) MUST_CHECK;
/* Says goodbye to the peers; what was not committed is rolled back. NULL inside is fine. */
void coord_free(struct coord **coord);
/* The port that is listened at. */
uint16_t coord_port(const struct coord *coord);
/* Whether the database cannot be written at present. */
bool coord_is_stuck(const struct coord *coord);

/* The database, to be looked at: for the simulation. */
struct store *coord_store(const struct coord *coord);

#endif
