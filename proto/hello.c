/* hello.c: settling the version and the capabilities of a connection. Owns nothing. */
#include "proto/hello.h"

#include "common/attr.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/str.h"
#include "proto/msg.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const words[] = {
#define CAP(name, word, sentence) word,
#include "proto/caps.def"
#undef CAP
};

_Static_assert(CAP_COUNT < 32, "a set of capabilities has 31 bits at most");

static const struct hello_range ours = {PROTO_MIN, PROTO_MAX};

static const char *range_text(char *dst, size_t room, struct hello_range r)
{
    if (r.min == r.max) {
        snprintf(dst, room, "%" PRIu32, r.min);
    } else {
        snprintf(dst, room, "%" PRIu32 " to %" PRIu32, r.min, r.max);
    }
    return dst;
}

int hello_choose_version(struct hello_range mine, struct hello_range theirs, uint32_t *version,
                         struct diag *diag)
{
    char a[32];
    char b[32];
    if (theirs.min == 0 || theirs.min > theirs.max) {
        return diag_error(diag, ERR_PROTO,
                          "the other side names no range of protocol versions: %" PRIu32
                          " to %" PRIu32,
                          theirs.min, theirs.max);
    }
    uint32_t low = mine.min > theirs.min ? mine.min : theirs.min;
    uint32_t high = mine.max < theirs.max ? mine.max : theirs.max;
    if (low > high) {
        return diag_error(diag, ERR_VERSION,
                          "no common protocol version: this side speaks %s, the other side %s",
                          range_text(a, sizeof(a), mine), range_text(b, sizeof(b), theirs));
    }
    *version = high;
    return 0;
}

uint32_t hello_read_caps(const char *const *list, size_t count)
{
    uint32_t caps = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t c = 0; c < ARRAY_LEN(words); c++) {
            if (str_eq(list[i], words[c])) {
                caps |= CAP_BIT(c);
            }
        }
    }
    return caps;
}

void hello_write_caps(uint32_t caps, struct hello_caps *out)
{
    out->count = 0;
    for (size_t c = 0; c < ARRAY_LEN(words); c++) {
        if ((caps & CAP_BIT(c)) != 0) {
            out->words[out->count++] = words[c];
        }
    }
}

const char *hello_cap_word(int cap)
{
    return cap >= 0 && cap < CAP_COUNT ? words[cap] : NULL;
}

void hello_fill(struct msg_hello *hello, const struct hello_caps *caps, const char *program,
                const char *version, int64_t wall_ns)
{
    hello->proto_min = ours.min;
    hello->proto_max = ours.max;
    hello->caps = caps->words;
    hello->caps_count = caps->count;
    hello->program = program;
    hello->version = version;
    hello->wall_ns = wall_ns;
}

int hello_accept(const struct msg_hello *hello, struct hello_deal *deal, struct diag *diag)
{
    struct hello_range theirs = {hello->proto_min, hello->proto_max};
    int rc = hello_choose_version(ours, theirs, &deal->proto, diag);
    if (rc == 0) {
        deal->caps = CAPS_OURS & hello_read_caps(hello->caps, hello->caps_count);
    }
    return rc;
}

int hello_confirm(const struct msg_welcome *welcome, struct hello_deal *deal, struct diag *diag)
{
    char a[32];
    if (welcome->proto < ours.min || welcome->proto > ours.max) {
        return diag_error(diag, ERR_VERSION,
                          "the coordinator chose protocol version %" PRIu32 ", this side speaks %s",
                          welcome->proto, range_text(a, sizeof(a), ours));
    }
    deal->proto = welcome->proto;
    deal->caps = CAPS_OURS & hello_read_caps(welcome->caps, welcome->caps_count);
    return 0;
}
