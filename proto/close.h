/* close.h: the reasons why a connection ends (close.def): their numbers for GOODBYE, sentences, and
 * what to do next. */
#ifndef MAKESPAN_PROTO_CLOSE_H
#define MAKESPAN_PROTO_CLOSE_H

#include <stdbool.h>
#include <stdint.h>

enum close_reason {
    CLOSE_NONE = 0, /* no reason: nothing is closed. Not a number that travels. */
#define CLOSE(name, number, is_error, dial_again, sentence) CLOSE_##name = (number),
#include "proto/close.def"
#undef CLOSE
};

/* The functions take any number, as it may come from a peer; an unknown one is an error after which
 * dialling again is worth a try. */

/* "REVOKED"; unknown: "UNKNOWN". Never NULL. */
const char *close_name(uint32_t reason);
/* The sentence for a person, without a full stop. Never NULL. */
const char *close_text(uint32_t reason);
/* Whether the reason is a failure, to be logged and counted as one. */
bool close_is_error(uint32_t reason);
/* Whether whoever dialled may dial again, after its back-off. */
bool close_dial_again(uint32_t reason);

#endif
