/* resolve.h: looks up revisions for the planner by coordinator/blob: translates the records of sweep files to those of sources and back. */
#ifndef MAKESPAN_COORDINATOR_RESOLVE_H
#define MAKESPAN_COORDINATOR_RESOLVE_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blob;
struct diag;
struct resolve;
struct spec_expr;
struct spec_rev;

/* The answer to one ticket, as plan_resolved() takes it. */
typedef void resolve_f(void *arg, uint64_t ticket, int code, const struct spec_rev *revs, size_t n, const char *text);

/* `blob` is borrowed. */
struct resolve *resolve_new(struct blob *blob, resolve_f *f, void *arg) MUST_CHECK;
/* Ends what is under way without answers. NULL inside is fine. */
void resolve_free(struct resolve **resolve);
/* Starts a look-up of an expression that git answers. 0 or a negative code with text. */
int resolve_start(struct resolve *resolve, uint64_t ticket, const struct spec_expr *expr, bool archive, struct diag *diag) MUST_CHECK;
void resolve_cancel(struct resolve *resolve, uint64_t ticket);

#endif
