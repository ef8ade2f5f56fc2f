/* guard.c: the walk over msgpack bytes. Owns nothing; does not know messages. */
#include "proto/guard.h"

#include "common/diag.h"
#include "common/err.h"

#include <stdbool.h>

static uint64_t read_be(const uint8_t *p, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++) {
        v = v << 8 | p[i];
    }
    return v;
}

/* How a head is encoded: `extra` bytes behind the first hold the count or the value. */
struct coding {
    enum guard_kind kind;
    unsigned extra;
    uint8_t inner; /* count or value when extra is 0 */
};

static bool find_coding(uint8_t first, struct coding *c)
{
    if (first <= 0x7f) {
        *c = (struct coding){GUARD_UINT, 0, first};
        return true;
    }
    if (first <= 0x8f) {
        *c = (struct coding){GUARD_MAP, 0, first & 0x0f};
        return true;
    }
    if (first <= 0x9f) {
        *c = (struct coding){GUARD_ARRAY, 0, first & 0x0f};
        return true;
    }
    if (first <= 0xbf) {
        *c = (struct coding){GUARD_STR, 0, first & 0x1f};
        return true;
    }
    if (first >= 0xe0) {
        *c = (struct coding){GUARD_INT, 0, 0};
        return true;
    }
    switch (first) {
    case 0xc0:
        *c = (struct coding){GUARD_NIL, 0, 0};
        return true;
    case 0xc2:
    case 0xc3:
        *c = (struct coding){GUARD_BOOL, 0, 0};
        return true;
    case 0xc4:
    case 0xc5:
    case 0xc6:
        *c = (struct coding){GUARD_BIN, 1U << (first - 0xc4), 0};
        return true;
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
        *c = (struct coding){GUARD_UINT, 1U << (first - 0xcc), 0};
        return true;
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
        *c = (struct coding){GUARD_INT, 1U << (first - 0xd0), 0};
        return true;
    case 0xd9:
    case 0xda:
    case 0xdb:
        *c = (struct coding){GUARD_STR, 1U << (first - 0xd9), 0};
        return true;
    case 0xdc:
    case 0xdd:
        *c = (struct coding){GUARD_ARRAY, 2U << (first - 0xdc), 0};
        return true;
    case 0xde:
    case 0xdf:
        *c = (struct coding){GUARD_MAP, 2U << (first - 0xde), 0};
        return true;
    default:
        return false;
    }
}

static int fail(const char **why, const char *text)
{
    *why = text;
    return -ERR_PROTO;
}

int guard_read_head(const uint8_t *p, size_t left, struct guard_head *out, const char **why)
{
    if (left == 0) {
        return fail(why, "the bytes end where an item should begin");
    }
    struct coding c;
    if (!find_coding(p[0], &c)) {
        if (p[0] == 0xca || p[0] == 0xcb) {
            return fail(why, "a floating-point number, which no message has");
        }
        if (p[0] == 0xc1) {
            return fail(why, "the byte c1, which begins no item");
        }
        return fail(why, "an extension, which no message has");
    }
    if (c.extra > left - 1) {
        return fail(why, "the bytes end within an item");
    }
    uint64_t number = c.extra != 0 ? read_be(p + 1, c.extra) : c.inner;
    size_t after = left - 1 - c.extra;
    *out = (struct guard_head){.kind = c.kind, .size = (size_t)1 + c.extra};
    switch (c.kind) {
    case GUARD_UINT:
        out->value = number;
        return 0;
    case GUARD_STR:
    case GUARD_BIN:
    case GUARD_ARRAY:
        if (number > after) {
            return fail(why, "a length beyond the end of the bytes");
        }
        break;
    case GUARD_MAP:
        if (number > after / 2) {
            return fail(why, "a length beyond the end of the bytes");
        }
        break;
    default:
        return 0;
    }
    out->count = (uint32_t)number; /* at most 4 bytes encode a count */
    return 0;
}

/* A walk: for each open container the items still to come. */
struct walk {
    const uint8_t *data;
    size_t n;
    size_t at;
    size_t nodes;
    size_t max_nodes;
    unsigned depth;
    struct {
        uint64_t items; /* of a map two a pair */
        bool map;
    } open[GUARD_DEPTH_MAX];
};

static int walk_item(struct walk *w, const char **why)
{
    struct guard_head head;
    int rc = guard_read_head(w->data + w->at, w->n - w->at, &head, why);
    if (rc < 0) {
        return rc;
    }
    if (++w->nodes > w->max_nodes) {
        *why = "more items than such a message may have";
        return -ERR_LIMIT;
    }
    bool key = false;
    if (w->depth > 0) {
        key = w->open[w->depth - 1].map && w->open[w->depth - 1].items % 2 == 0;
        w->open[w->depth - 1].items--;
    } else if (head.kind != GUARD_MAP) {
        return fail(why, "no map");
    }
    if (key && (head.kind != GUARD_UINT || head.value == 0 || head.value > UINT32_MAX)) {
        return fail(why, "a key that is no positive integer of 32 bits");
    }
    w->at += head.size;
    if (head.kind == GUARD_STR || head.kind == GUARD_BIN) {
        w->at += head.count;
    } else if (head.kind == GUARD_MAP || head.kind == GUARD_ARRAY) {
        if (w->depth == GUARD_DEPTH_MAX) {
            *why = "containers nested too deep";
            return -ERR_LIMIT;
        }
        bool map = head.kind == GUARD_MAP;
        w->open[w->depth].map = map;
        w->open[w->depth].items = (uint64_t)head.count * (map ? 2 : 1);
        w->depth++;
    }
    while (w->depth > 0 && w->open[w->depth - 1].items == 0) {
        w->depth--;
    }
    return 0;
}

int guard_check(const uint8_t *data, size_t n, size_t max_nodes, struct diag *diag)
{
    struct walk w = {.data = data, .n = n, .max_nodes = max_nodes};
    do {
        const char *why = NULL;
        size_t at = w.at;
        int rc = walk_item(&w, &why);
        if (rc < 0) {
            return diag_error(diag, rc, "byte %zu: %s", at, why);
        }
    } while (w.depth > 0);
    if (w.at != n) {
        return diag_error(diag, ERR_PROTO, "byte %zu: bytes behind the end of the message", w.at);
    }
    return 0;
}

int guard_measure(const uint8_t *p, size_t left, size_t *size)
{
    size_t at = 0;
    uint64_t items = 1;
    while (items > 0) {
        struct guard_head head;
        const char *why = NULL;
        int rc = guard_read_head(p + at, left - at, &head, &why);
        if (rc < 0) {
            return rc;
        }
        items--;
        at += head.size;
        if (head.kind == GUARD_STR || head.kind == GUARD_BIN) {
            at += head.count;
        } else if (head.kind == GUARD_ARRAY) {
            items += head.count;
        } else if (head.kind == GUARD_MAP) {
            items += (uint64_t)head.count * 2;
        }
    }
    *size = at;
    return 0;
}
