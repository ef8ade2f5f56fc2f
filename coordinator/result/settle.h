/* settle.h: how a whole attempt counts. Pure. Private to coordinator/result. */
#ifndef MAKESPAN_COORDINATOR_RESULT_SETTLE_H
#define MAKESPAN_COORDINATOR_RESULT_SETTLE_H

#include "coordinator/model.h"

struct settle_input {
    const struct model_attempt *attempt; /* as it was reported */
    const struct model_run *run;         /* as it stands now */
    const struct model_cell *cell;
    const struct model_input *input;
    bool invalid_mark;     /* one that makes it invalid */
    bool fingerprint_mark; /* the worker saw that the toolchain changed */
};

struct settle_result {
    enum outcome outcome;
    bool late;
    bool cancelled_late; /* to be marked so */
    bool toolchain;      /* likewise: the fingerprint is not the cell's */
    const char *wrong;   /* likewise: what was not made as asked for; NULL */
};

void settle_attempt(const struct settle_input *in, struct settle_result *out);

/* Numbers that cannot be are absent: negative times and counts. */
void settle_clean(struct model_attempt *attempt);

#endif
