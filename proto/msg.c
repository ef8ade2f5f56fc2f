/* msg.c: names, kinds and comparison of messages, and who may send which when. Owns nothing. */
#include "proto/msg.h"

#include "common/mem.h"
#include "common/str.h"
#include "proto/msg_table.h"

#include <string.h>

const char *msg_name(uint32_t type)
{
    const struct msg_row *row = msg_table_find(type);
    return row != NULL ? row->name : NULL;
}

size_t msg_memory(const struct msg *m)
{
    return m->arena != NULL ? mem_arena_used(m->arena) : 0;
}

/* --- who may send what, when --- */

static bool is_operator(enum role role)
{
    return role == ROLE_VIEWER || role == ROLE_SUBMITTER || role == ROLE_ADMIN;
}

/* A joining connection has a joiner at one end, and no other connection has one. */
static bool fits(enum msg_from side, enum msg_when when)
{
    return side == MSG_FROM_COORDINATOR || (side == MSG_FROM_JOINER) == (when == MSG_WHEN_JOINING);
}

enum close_reason msg_refusal(uint32_t type, enum msg_from side, enum role role, enum msg_when when)
{
    const struct msg_row *row = msg_table_find(type);
    if (row == NULL) {
        return CLOSE_UNKNOWN_MESSAGE;
    }
    if ((row->from & (unsigned)side) == 0) {
        return CLOSE_NOT_YOURS;
    }
    if (side == MSG_FROM_OPERATOR && (!is_operator(role) || (int)role < row->role)) {
        return CLOSE_NOT_YOURS;
    }
    if ((row->when & (unsigned)when) == 0 || !fits(side, when)) {
        return CLOSE_NOT_NOW;
    }
    return CLOSE_NONE;
}

bool msg_may_send(uint32_t type, enum msg_from side, enum role role, enum msg_when when)
{
    return msg_refusal(type, side, role, when) == CLOSE_NONE;
}

enum role msg_least_role(uint32_t type)
{
    const struct msg_row *row = msg_table_find(type);

    return row == NULL || row->role < ROLE_VIEWER ? ROLE_VIEWER : (enum role)row->role;
}

/* --- kinds --- */

/* The required field of that name and kind, or NULL. */
static const struct msg_field *find_field(const struct msg_shape *shape, const char *name,
                                          enum msg_kind kind)
{
    for (size_t i = 0; i < shape->count; i++) {
        const struct msg_field *f = &shape->fields[i];
        if (f->required && f->kind == kind && strcmp(f->name, name) == 0) {
            return f;
        }
    }
    return NULL;
}

/* Where a durable message keeps its number: what has all three is durable. */
struct record_fields {
    const struct msg_field *run;
    const struct msg_field *attempt;
    const struct msg_field *seq;
};

static bool find_record_fields(uint32_t type, struct record_fields *out)
{
    const struct msg_row *row = msg_table_find(type);
    if (row == NULL) {
        return false;
    }
    out->run = find_field(row->shape, "run", MSG_KIND_U64);
    out->attempt = find_field(row->shape, "attempt", MSG_KIND_U32);
    out->seq = find_field(row->shape, "seq", MSG_KIND_U32);
    return out->run != NULL && out->attempt != NULL && out->seq != NULL;
}

bool msg_is_durable(uint32_t type)
{
    struct record_fields fields;
    return find_record_fields(type, &fields);
}

bool msg_is_lossy(uint32_t type)
{
    return type == MSG_BEAT || type == MSG_STATE;
}

static const struct msg_field *find_call(uint32_t type)
{
    const struct msg_row *row = msg_table_find(type);
    return row != NULL ? find_field(row->shape, "call", MSG_KIND_U32) : NULL;
}

bool msg_is_request(uint32_t type)
{
    const struct msg_row *row = msg_table_find(type);
    return row != NULL && (row->from & MSG_FROM_OPERATOR) != 0 && find_call(type) != NULL;
}

bool msg_record_id(const struct msg *m, struct msg_record_id *id)
{
    struct record_fields fields;
    if (!find_record_fields((uint32_t)m->type, &fields)) {
        return false;
    }
    id->run = *(const uint64_t *)msg_member(&m->u, fields.run->value);
    id->attempt = *(const uint32_t *)msg_member(&m->u, fields.attempt->value);
    id->seq = *(const uint32_t *)msg_member(&m->u, fields.seq->value);
    return true;
}

bool msg_call(const struct msg *m, uint32_t *call)
{
    const struct msg_field *f = find_call((uint32_t)m->type);
    if (f == NULL) {
        return false;
    }
    *call = *(const uint32_t *)msg_member(&m->u, f->value);
    return true;
}

/* --- comparison --- */

static bool equal_bytes(struct msg_bytes a, struct msg_bytes b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static bool equal_shapes(const struct msg_shape *shape, const void *a, const void *b);

static bool equal_lists(const struct msg_field *f, const void *a, const void *b)
{
    size_t count = *(const size_t *)msg_member(a, f->count);
    if (count != *(const size_t *)msg_member(b, f->count)) {
        return false;
    }
    const void *x = *(const void *const *)msg_member(a, f->value);
    const void *y = *(const void *const *)msg_member(b, f->value);
    for (size_t i = 0; i < count; i++) {
        if (f->kind == MSG_KIND_STRS) {
            if (!str_eq(((const char *const *)x)[i], ((const char *const *)y)[i])) {
                return false;
            }
        } else if (!equal_shapes(f->rec, msg_member(x, i * f->rec->size),
                                 msg_member(y, i * f->rec->size))) {
            return false;
        }
    }
    return true;
}

static bool equal_fields(const struct msg_field *f, const void *a, const void *b)
{
    const void *x = msg_member(a, f->value);
    const void *y = msg_member(b, f->value);
    switch ((enum msg_kind)f->kind) {
    case MSG_KIND_U32:
        return *(const uint32_t *)x == *(const uint32_t *)y;
    case MSG_KIND_U64:
        return *(const uint64_t *)x == *(const uint64_t *)y;
    case MSG_KIND_I64:
        return *(const int64_t *)x == *(const int64_t *)y;
    case MSG_KIND_BOOL:
        return *(const bool *)x == *(const bool *)y;
    case MSG_KIND_STR:
        return str_eq(*(const char *const *)x, *(const char *const *)y);
    case MSG_KIND_BIN:
        return equal_bytes(*(const struct msg_bytes *)x, *(const struct msg_bytes *)y);
    case MSG_KIND_STRS:
    case MSG_KIND_RECS:
        return equal_lists(f, a, b);
    }
    return false;
}

static bool equal_shapes(const struct msg_shape *shape, const void *a, const void *b)
{
    for (size_t i = 0; i < shape->count; i++) {
        const struct msg_field *f = &shape->fields[i];
        bool has = f->required || msg_field_present(f, a);
        if (has != (f->required || msg_field_present(f, b)) || (has && !equal_fields(f, a, b))) {
            return false;
        }
    }
    return true;
}

bool msg_equal(const struct msg *a, const struct msg *b)
{
    const struct msg_row *row = msg_table_find((uint32_t)a->type);
    return a->type == b->type && row != NULL && equal_shapes(row->shape, &a->u, &b->u);
}
