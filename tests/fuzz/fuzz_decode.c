/* fuzz_decode.c: any body under any number is a message or an error. What is a message can be written,
 * read again as the same, and printed as one line. Input: one byte, the number; then the body. */
#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "proto/frame.h"
#include "proto/msg.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(int holds)
{
    if (!holds) {
        abort();
    }
}

static void check_message(const struct msg *m, size_t size)
{
    need(msg_memory(m) <= MSG_MEMORY_MAX(size));
    struct buf b = BUF_INIT;
    need(msg_check(m, NULL) == 0);
    int rc = msg_encode(m, &b);
    need(rc == 0 || (rc == -ERR_LIMIT && size > FRAME_MAX - 1));
    if (rc == 0) {
        need(b.len - FRAME_HEAD <= size); /* the shortest form of every value */
        struct msg *again = NULL;
        need(msg_decode(b.data[4], b.data + FRAME_HEAD, b.len - FRAME_HEAD, &again, NULL) == 0);
        need(msg_equal(m, again));
        msg_free(&again);
    }
    buf_reset(&b);
    msg_print(m, &b);
    need(b.len > 0 && memchr(b.data, '\n', b.len) == NULL && memchr(b.data, 0x1b, b.len) == NULL);
    buf_fini(&b);
    struct msg_record_id id;
    uint32_t call;
    need(msg_record_id(m, &id) == msg_is_durable((uint32_t)m->type));
    need(msg_call(m, &call) || !msg_is_request((uint32_t)m->type));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    struct diag *diag = diag_new(2);
    struct msg *m = NULL;
    int rc = msg_decode(data[0], data + 1, size - 1, &m, diag);
    need((rc == 0) == (m != NULL));
    if (rc == 0) {
        check_message(m, size - 1);
    } else {
        need(rc == -ERR_PROTO || rc == -ERR_LIMIT || rc == -ERR_UNSUP);
        need(strlen(diag_first(diag)) > 0);
    }
    msg_free(&m);
    diag_free(&diag);
    return 0;
}
