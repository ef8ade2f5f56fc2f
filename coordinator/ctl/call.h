/* call.h: a conversation with the coordinator: connect, ask, collect the answer. Blocks in the loop until it is there. */
#ifndef MAKESPAN_COORDINATOR_CTL_CALL_H
#define MAKESPAN_COORDINATOR_CTL_CALL_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct call;
struct ctl;
struct msg;

/* Connects with the identity of ctl->home. 0 and *out, or an exit status with text in ctl->diag (CTL_INFRASTRUCTURE names the address tried). */
int call_open(struct ctl *ctl, struct call **out) MUST_CHECK;
void call_close(struct call **call); /* NULL inside is fine */
/* The coordinator's address. */
const char *call_address(const struct call *call);
/* The number for the next request. */
uint32_t call_number(struct call *call);

/* A piece of an answer; returns false to stop waiting (the caller then says WATCH_END or closes). */
typedef bool call_piece_f(const char *kind, const void *bytes, size_t n, void *arg);

struct call_answer {
    int exit;        /* as the coordinator says */
    int code;        /* ERR_*, positive; 0 */
    bool lost;       /* the connection ended before the answer was whole; text in ctl->diag */
    bool stopped;    /* the callback stopped it */
    bool interrupted; /* call_interrupt() */
    bool next;       /* the answer was BLOB_NEXT */
    uint64_t have;   /* of BLOB_NEXT */
    bool done;       /* of BLOB_NEXT */
};
/* Sends a request with this call number and waits for the last piece of its answer. What the coordinator says for standard error is printed there. `piece` may be NULL. Waits at most three
 * intervals of the beat for each sign of life. Returns the exit status: that of the answer, CTL_NO when the operator's role may not ask for it, or CTL_INFRASTRUCTURE
 * when it was lost. */
int call_ask(struct call *call, uint32_t number, const struct msg *request, call_piece_f *piece, void *arg, struct call_answer *out);
/* Sends without waiting for an answer. 0 or a negative code. */
int call_send(struct call *call, const struct msg *msg) MUST_CHECK;
/* Ends the waiting of call_ask() from a signal's callback. */
void call_interrupt(struct call *call);
/* Collects an answer's document. Exit status. */
int call_document(struct call *call, uint32_t number, const struct msg *request, struct buf *out);

#endif
