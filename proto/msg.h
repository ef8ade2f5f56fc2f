/* msg.h: the messages of the protocol as structs, and what can be done with any of them.
 *
 * All structs come from proto/schema.def: struct msg_hello for the message HELLO, struct rec_fact
 * for the record fact. A field `x` is
 *     U32 U64 I64 BOOL   uint32_t, uint64_t, int64_t, bool x       and bool has_x
 *     STR                const char *x                             NULL: absent
 *     BIN                struct msg_bytes x                        and bool has_x
 *     STRS               const char *const *x; size_t x_count      and bool has_x
 *     R(fact)            const struct rec_fact *x; size_t x_count  and bool has_x
 *
 * A sender fills a zeroed `struct msg` with borrowed pointers. Of required fields it need not set
 * has_x: numbers, bytes and lists are always written, a STR must not be NULL. Optional numbers,
 * bools and bytes are written when has_x is set; an optional list when has_x is set or x_count is
 * not 0; an optional STR when it is not NULL. After msg_decode() has_x says what the message had,
 * of required fields too. Numbers of vocabularies (outcome, phase, mark, role, reason, code) are
 * passed as they come: a receiver may meet one that it does not know.
 *
 * On the wire a message is a frame (frame.h) whose body is one msgpack map, integer key to value,
 * in the order of keys, without absent fields. */
#ifndef MAKESPAN_PROTO_MSG_H
#define MAKESPAN_PROTO_MSG_H

#include "common/attr.h"
#include "common/vocab.h"
#include "proto/close.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct diag;
struct mem_arena;

/* Numbers of messages: 1 to 255, one byte of a frame. */
enum msg_type {
#define REC(name, doc)
#define F(owner, key, type, name, presence, limit, doc)
#define END(name)
#define MSG(number, NAME, name, from, roles, state, doc) MSG_##NAME = (number),
#include "proto/schema.def"
#undef REC
#undef F
#undef END
#undef MSG
};

/* Bytes, borrowed; data may be NULL when len is 0. */
struct msg_bytes {
    const uint8_t *data;
    size_t len;
};

/* How a row of the schema becomes members: the type gives a shape and a C type. */
#define MSG_C_U32 MSG_ONE, uint32_t
#define MSG_C_U64 MSG_ONE, uint64_t
#define MSG_C_I64 MSG_ONE, int64_t
#define MSG_C_BOOL MSG_ONE, bool
#define MSG_C_BIN MSG_ONE, struct msg_bytes
#define MSG_C_STR MSG_TEXT, const char *
#define MSG_C_STRS MSG_LIST, const char *const *
#define MSG_C_R(record) MSG_LIST, const struct rec_##record *
#define MSG_ONE(ctype, name)                                                                       \
    ctype name;                                                                                    \
    bool has_##name;
#define MSG_TEXT(ctype, name) ctype name;
#define MSG_LIST(ctype, name)                                                                      \
    ctype name;                                                                                    \
    size_t name##_count;                                                                           \
    bool has_##name;
#define MSG_MEMBER_AS(shape, ctype, name) shape(ctype, name)
#define MSG_MEMBER(...) MSG_MEMBER_AS(__VA_ARGS__)

#define REC(name, doc) struct rec_##name {
#define MSG(number, NAME, name, from, roles, state, doc) struct msg_##name {
#define F(owner, key, type, name, presence, limit, doc) MSG_MEMBER(MSG_C_##type, name)
#define END(name)                                                                                  \
    }                                                                                              \
    ;
#include "proto/schema.def"
#undef REC
#undef F
#undef END
#undef MSG

#undef MSG_C_U32
#undef MSG_C_U64
#undef MSG_C_I64
#undef MSG_C_BOOL
#undef MSG_C_BIN
#undef MSG_C_STR
#undef MSG_C_STRS
#undef MSG_C_R
#undef MSG_ONE
#undef MSG_TEXT
#undef MSG_LIST
#undef MSG_MEMBER_AS
#undef MSG_MEMBER

struct msg {
    enum msg_type type;
    /* Owns a decoded message with all its pointers; NULL in a sender's message. */
    struct mem_arena *arena;
    union {
#define REC(name, doc)
#define F(owner, key, type, name, presence, limit, doc)
#define END(name)
#define MSG(number, NAME, name, from, roles, state, doc) struct msg_##name name;
#include "proto/schema.def"
#undef REC
#undef F
#undef END
#undef MSG
    } u;
};

/* Limits beside those of the schema. */
enum {
    MSG_STRS_ITEM_MAX = 4096, /* bytes of one item of STRS */
};

/* The most bytes that msg_decode() takes out of its arena for a body of n bytes. */
#define MSG_MEMORY_MAX(n) (8 * (n) + 6144)

/* Reads the body of a frame of that type. 0: *out is one heap object, given to msg_free(); it
 * borrows nothing from body. Strings are UTF-8 without NUL bytes. Memory is bounded by
 * MSG_MEMORY_MAX(n) and never by what a length claims. On failure *out is NULL, diag says message
 * and field (the sentence may go into GOODBYE), and the connection is to be closed:
 *     -ERR_UNSUP              no message has this number: CLOSE_UNKNOWN_MESSAGE
 *     -ERR_PROTO -ERR_LIMIT   damaged, incomplete, a wrong type, too long: CLOSE_DECODE
 *     -ERR_NOMEM              memory is out: CLOSE_DECODE */
int msg_decode(uint32_t type, const uint8_t *body, size_t n, struct msg **out,
               struct diag *diag) MUST_CHECK;

/* Frees a decoded message; NULL inside is fine. */
void msg_free(struct msg **m);

/* Bytes that a decoded message takes; 0 for a sender's. */
size_t msg_memory(const struct msg *m);

/* Appends the whole frame, ready to be sent. 0, or nothing is appended and the result is
 * -ERR_INVAL (unknown type, a required string is NULL, not UTF-8, bytes or a list without a
 * pointer), -ERR_LIMIT (over a limit of the schema, or a frame over FRAME_MAX), or the buffer's own
 * error, which then sticks to the buffer. What is appended is always accepted by msg_decode(). */
int msg_encode(const struct msg *m, struct buf *out) MUST_CHECK;

/* Says in diag what msg_encode() would refuse, except the length of the whole frame; 0: nothing. */
int msg_check(const struct msg *m, struct diag *diag) MUST_CHECK;

/* "HELLO"; NULL when no message has this number. */
const char *msg_name(uint32_t type);

/* Appends the message as one line without a newline: "BEAT n=4 run=17 phase=8". Text is quoted and
 * escaped, long text, bytes and lists are shortened, secrets are left out: for logs. */
void msg_print(const struct msg *m, struct buf *out);

/* Whether both say the same; has_x of required fields does not matter. */
bool msg_equal(const struct msg *a, const struct msg *b);

/* --- who may send what, when --- */

enum msg_from {
    MSG_FROM_WORKER = 1,
    MSG_FROM_COORDINATOR = 2,
    MSG_FROM_OPERATOR = 4, /* of any role: viewer, submitter, admin */
    MSG_FROM_JOINER = 8,   /* has no certificate yet */
};

/* The state of the connection. */
enum msg_when {
    MSG_WHEN_START = 1,   /* before WELCOME */
    MSG_WHEN_OPEN = 2,    /* after WELCOME */
    MSG_WHEN_JOINING = 4, /* a connection of the joining protocol */
    MSG_WHEN_ANY = 7,     /* in the schema only */
};

/* CLOSE_NONE when a message of that type may come from that side at that time, else why the
 * connection is to be closed: CLOSE_UNKNOWN_MESSAGE, CLOSE_NOT_YOURS, CLOSE_NOT_NOW. `role` is that
 * of an operator's certificate and matters for MSG_FROM_OPERATOR alone. */
enum close_reason msg_refusal(uint32_t type, enum msg_from side, enum role role,
                              enum msg_when when);

/* msg_refusal() is CLOSE_NONE. */
bool msg_may_send(uint32_t type, enum msg_from side, enum role role, enum msg_when when);

/* The least role of an operator that may send it; ROLE_VIEWER also for what is of another side, or unknown. */
enum role msg_least_role(uint32_t type);

/* --- kinds --- */

/* A record of an attempt, numbered (run, attempt, seq): RESULT, SAMPLES, OUTPUT, MARK, END. It is
 * spooled, and acknowledged after the commit. */
bool msg_is_durable(uint32_t type);
/* May be dropped when the other side reads slowly: BEAT, STATE. */
bool msg_is_lossy(uint32_t type);
/* A request of an operator that is answered under its call number. */
bool msg_is_request(uint32_t type);

/* The number of a durable message. */
struct msg_record_id {
    uint64_t run;
    uint32_t attempt;
    uint32_t seq;
};

/* False when the message is not durable; then *id is left alone. */
bool msg_record_id(const struct msg *m, struct msg_record_id *id);
/* The call number of an operator's request or of its answer (REPLY, BLOB_NEXT); false when the
 * message has none. */
bool msg_call(const struct msg *m, uint32_t *call);

#endif
