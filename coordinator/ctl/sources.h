/* sources.h: sources that are read where the operator's command runs: looked up, packed, put to the coordinator. */
#ifndef MAKESPAN_COORDINATOR_CTL_SOURCES_H
#define MAKESPAN_COORDINATOR_CTL_SOURCES_H

#include "common/attr.h"

#include <stddef.h>

struct call;
struct ctl;
struct rec_revision;
struct sources;
struct spec;

/* Looks up every local expression of the sweep file; with `call` not NULL makes the archives and puts those that the coordinator has not. Blocks. 0 and *out, or an exit status with text in
 * ctl->diag. */
int sources_read(struct ctl *ctl, const struct spec *spec, struct call *call, struct sources **out) MUST_CHECK;
/* What goes into SWEEP_PUT; borrowed. */
const struct rec_revision *sources_revisions(const struct sources *sources, size_t *n);
/* Frees, and removes the archives that were made. NULL inside is fine. */
void sources_free(struct sources **sources);

#endif
