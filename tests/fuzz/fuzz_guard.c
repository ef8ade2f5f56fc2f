/* fuzz_guard.c: what the guard lets pass, msgpack-c must read whole and without a surprise; and the
 * guard's two walks must agree. Input: the bytes of a body. */
#include "common/diag.h"
#include "common/err.h"
#include "proto/guard.h"

#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(int holds)
{
    if (!holds) {
        abort();
    }
}

/* The promises of guard_check() on what msgpack-c made of the bytes. */
static size_t check_object(const msgpack_object *o, unsigned depth)
{
    need(depth <= GUARD_DEPTH_MAX + 1);
    size_t nodes = 1;
    switch (o->type) {
    case MSGPACK_OBJECT_MAP:
        need(depth <= GUARD_DEPTH_MAX);
        for (uint32_t i = 0; i < o->via.map.size; i++) {
            const msgpack_object_kv *kv = &o->via.map.ptr[i];
            need(kv->key.type == MSGPACK_OBJECT_POSITIVE_INTEGER);
            need(kv->key.via.u64 >= 1 && kv->key.via.u64 <= UINT32_MAX);
            nodes += 1 + check_object(&kv->val, depth + 1);
        }
        break;
    case MSGPACK_OBJECT_ARRAY:
        need(depth <= GUARD_DEPTH_MAX);
        for (uint32_t i = 0; i < o->via.array.size; i++) {
            nodes += check_object(&o->via.array.ptr[i], depth + 1);
        }
        break;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
    case MSGPACK_OBJECT_EXT:
        abort();
    default:
        break;
    }
    return nodes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { NODES = 5000 };
    struct diag *diag = diag_new(2);
    int rc = guard_check(data, size, NODES, diag);
    need((diag_count(diag) == 0) == (rc == 0));
    diag_free(&diag);
    size_t measured = 0;
    int mrc = guard_measure(data, size, &measured);
    if (rc < 0) {
        need(rc == -ERR_PROTO || rc == -ERR_LIMIT);
        return 0;
    }
    need(mrc == 0 && measured == size);
    msgpack_unpacked u;
    msgpack_unpacked_init(&u);
    size_t used = 0;
    need(msgpack_unpack_next(&u, (const char *)data, size, &used) == MSGPACK_UNPACK_SUCCESS);
    need(used == size);
    need(u.data.type == MSGPACK_OBJECT_MAP);
    size_t nodes = check_object(&u.data, 1);
    need(nodes <= NODES);
    if (nodes > 1) {
        need(guard_check(data, size, nodes, NULL) == 0);
        need(guard_check(data, size, nodes - 1, NULL) == -ERR_LIMIT);
    }
    msgpack_unpacked_destroy(&u);
    return 0;
}
