/* revisions.h: the look-ups of one request: what each expression of its file stands for. Private to
 * coordinator/plan. */
#ifndef MAKESPAN_COORDINATOR_PLAN_REVISIONS_H
#define MAKESPAN_COORDINATOR_PLAN_REVISIONS_H

#include "coordinator/plan/state.h"
#include "coordinator/plan/sweep.h"
#include "proto/spec.h"

struct diag;
struct revisions;

struct revisions_given {
    const struct plan_revision *revisions; /* from the operator's command */
    size_t count;
    bool archives; /* the archives are needed too */
};

/* Takes what the operator gave for the expressions that are his, and asks ops->resolve for the
 * others, which may answer at once: *out is set before that. Mistakes go to diag at their place.
 * `spec` is borrowed until revisions_free(). */
void revisions_begin(struct plan *plan, const struct spec *spec,
                     const struct revisions_given *given, struct diag *diag,
                     struct revisions **out);
/* Calls off what is not answered. NULL inside is fine. */
void revisions_free(struct plan *plan, struct revisions **revisions);
/* Look-ups that are not answered. */
size_t revisions_pending(const struct revisions *revisions);
/* Mistakes that are of the infrastructure, not of the file. */
size_t revisions_infra(const struct revisions *revisions);
/* An answer of ops->resolve; false: the ticket is not of these. */
bool revisions_answer(struct revisions *revisions, uint64_t ticket, int code,
                      const struct spec_rev *revs, size_t n, const char *text,
                      const struct spec *spec, struct diag *diag);
/* Gives everything to the spec. 0, or -ERR_INVAL with text in diag (also when some look-up
 * failed). */
int revisions_set(struct revisions *revisions, struct spec *spec, struct diag *diag) MUST_CHECK;

#endif
