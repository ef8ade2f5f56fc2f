/* migrate.h: the schema's versions: brings a database from the one it has to the newest. Not for
 * other folders. */
#ifndef MAKESPAN_COORDINATOR_STORE_MIGRATE_H
#define MAKESPAN_COORDINATOR_STORE_MIGRATE_H

#include "common/attr.h"

#include <stddef.h>

struct diag;
struct store;

/* One statement of the step to a version. Those of one version follow each other, and versions
 * rise by one from 1. */
struct migration {
    int version;
    const char *sql;
};

/* The steps of migrations.def. */
const struct migration *migrate_table(size_t *n);
/* Makes every step above the database's version, each in one transaction. Before the first, a
 * database that is not new is copied to PATH.before-VERSION. A version above the last step is
 * -ERR_VERSION. A store that is read only is looked at, and -ERR_VERSION unless it has just the
 * last. */
int migrate_run(struct store *store, const struct migration *steps, size_t n,
                struct diag *diag) MUST_CHECK;

#endif
