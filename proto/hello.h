/* hello.h: what HELLO and WELCOME settle: the version of the protocol and the capabilities. Pure:
 * no connection, no clock. */
#ifndef MAKESPAN_PROTO_HELLO_H
#define MAKESPAN_PROTO_HELLO_H

#include "common/attr.h"

#include <stddef.h>
#include <stdint.h>

struct diag;
struct msg_hello;
struct msg_welcome;

/* Versions of the protocol that this program speaks. */
enum { PROTO_MIN = 1, PROTO_MAX = 1 };

/* Capabilities: indexes of bits, within one program only; words travel. */
enum cap {
#define CAP(name, word, sentence) CAP_##name,
#include "proto/caps.def"
#undef CAP
    CAP_COUNT
};

#define CAP_BIT(cap) (UINT32_C(1) << (cap))
/* All that this program has. */
#define CAPS_OURS (CAP_BIT(CAP_COUNT) - 1)

struct hello_range {
    uint32_t min;
    uint32_t max;
};

/* What a connection agreed on. */
struct hello_deal {
    uint32_t proto;
    uint32_t caps; /* bits that both sides have */
};

/* The words of a set, as messages want them. */
struct hello_caps {
    const char *words[CAP_COUNT];
    size_t count;
};

/* The highest version in both ranges. -ERR_VERSION when they do not overlap, with a sentence that
 * names both ranges; -ERR_PROTO when theirs is no range (min above max, or 0). */
int hello_choose_version(struct hello_range ours, struct hello_range theirs, uint32_t *version,
                         struct diag *diag) MUST_CHECK;

/* The bits of the words that are known here; others are ignored. */
uint32_t hello_read_caps(const char *const *words, size_t count);
/* The words of the bits, in the order of caps.def. */
void hello_write_caps(uint32_t caps, struct hello_caps *out);
/* The word of one; NULL when there is none. */
const char *hello_cap_word(int cap);

/* Fills in the fields that every HELLO has; `caps` (from hello_write_caps) and the strings are
 * borrowed and must outlive the message. */
void hello_fill(struct msg_hello *hello, const struct hello_caps *caps, const char *program,
                const char *version, int64_t wall_ns);

/* The coordinator's decision about a HELLO; codes of hello_choose_version(). */
int hello_accept(const struct msg_hello *hello, struct hello_deal *deal,
                 struct diag *diag) MUST_CHECK;

/* The dialling side's check of the answer: -ERR_VERSION when the chosen version is none of ours. */
int hello_confirm(const struct msg_welcome *welcome, struct hello_deal *deal,
                  struct diag *diag) MUST_CHECK;

#endif
