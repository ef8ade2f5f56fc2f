/* msg_table.c: the rows of schema.def as data, and the questions that the rows alone answer. Owns
 * nothing. */
#include "proto/msg_table.h"

#include "common/attr.h"
#include "proto/msg.h"

/* A row of a field names its owner, not whether that is a record or a message. */
#define REC(name, doc) typedef struct rec_##name owner_##name;
#define MSG(number, NAME, name, from, roles, state, doc) typedef struct msg_##name owner_##name;
#define F(owner, key, type, name, presence, limit, doc)
#define END(name)
#include "proto/schema.def"
#undef REC
#undef MSG
#undef F
#undef END

enum { IS_REQ = 1, IS_OPT = 0 };

#define T_U32 ROW_ONE, MSG_KIND_U32, NULL
#define T_U64 ROW_ONE, MSG_KIND_U64, NULL
#define T_I64 ROW_ONE, MSG_KIND_I64, NULL
#define T_BOOL ROW_ONE, MSG_KIND_BOOL, NULL
#define T_BIN ROW_ONE, MSG_KIND_BIN, NULL
#define T_STR ROW_TEXT, MSG_KIND_STR, NULL
#define T_STRS ROW_LIST, MSG_KIND_STRS, NULL
#define T_R(record) ROW_LIST, MSG_KIND_RECS, &shape_##record
#define ROW_ONE(kind_, rec_, owner, key_, name_, presence, limit_)                                 \
    {.name = #name_,                                                                               \
     .rec = rec_,                                                                                  \
     .limit = limit_,                                                                              \
     .key = key_,                                                                                  \
     .value = offsetof(owner, name_),                                                              \
     .has = offsetof(owner, has_##name_),                                                          \
     .kind = kind_,                                                                                \
     .required = IS_##presence},
#define ROW_TEXT(kind_, rec_, owner, key_, name_, presence, limit_)                                \
    {.name = #name_,                                                                               \
     .rec = rec_,                                                                                  \
     .limit = limit_,                                                                              \
     .key = key_,                                                                                  \
     .value = offsetof(owner, name_),                                                              \
     .kind = kind_,                                                                                \
     .required = IS_##presence},
#define ROW_LIST(kind_, rec_, owner, key_, name_, presence, limit_)                                \
    {.name = #name_,                                                                               \
     .rec = rec_,                                                                                  \
     .limit = limit_,                                                                              \
     .key = key_,                                                                                  \
     .value = offsetof(owner, name_),                                                              \
     .has = offsetof(owner, has_##name_),                                                          \
     .count = offsetof(owner, name_##_count),                                                      \
     .kind = kind_,                                                                                \
     .required = IS_##presence},
#define ROW_AS(row, ...) row(__VA_ARGS__)
#define ROW(...) ROW_AS(__VA_ARGS__)

#define REC(name, doc) static const struct msg_field fields_##name[] = {
#define MSG(number, NAME, name, from, roles, state, doc) REC(name, doc)
#define F(owner, key, type, name, presence, limit, doc)                                            \
    ROW(T_##type, owner_##owner, key, name, presence, limit)
#define END(name_)                                                                                 \
    }                                                                                              \
    ;                                                                                              \
    static const struct msg_shape shape_##name_ = {                                                \
        #name_, fields_##name_, ARRAY_LEN(fields_##name_), sizeof(owner_##name_)};
#include "proto/schema.def"
#undef REC
#undef MSG
#undef F
#undef END

enum { W = MSG_FROM_WORKER, C = MSG_FROM_COORDINATOR, O = MSG_FROM_OPERATOR, J = MSG_FROM_JOINER };
enum {
    LEAST_NONE = 0,
    LEAST_VIEWER = ROLE_VIEWER,
    LEAST_SUBMITTER = ROLE_SUBMITTER,
    LEAST_ADMIN = ROLE_ADMIN,
};

static const struct msg_row rows[] = {
#define REC(name, doc)
#define F(owner, key, type, name, presence, limit, doc)
#define END(name)
#define MSG(number, NAME, name, from, roles, state, doc)                                           \
    {number, #NAME, &shape_##name, from, LEAST_##roles, MSG_WHEN_##state},
#include "proto/schema.def"
#undef REC
#undef MSG
#undef F
#undef END
};

#define REC(name, doc)
#define F(owner, key, type, name, presence, limit, doc)
#define END(name)
#define MSG(number, NAME, name, from, roles, state, doc)                                           \
    _Static_assert((number) >= 1 && (number) <= UINT8_MAX, #NAME " has no number of one byte");
#include "proto/schema.def"
#undef REC
#undef MSG
#undef F
#undef END

const struct msg_row *msg_table(size_t *count)
{
    *count = ARRAY_LEN(rows);
    return rows;
}

const struct msg_row *msg_table_find(uint32_t number)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].number == number) {
            return &rows[i];
        }
    }
    return NULL;
}

size_t msg_shape_least(const struct msg_shape *shape)
{
    size_t least = 1;
    for (size_t i = 0; i < shape->count; i++) {
        least += shape->fields[i].required ? 2 : 0;
    }
    return least;
}

size_t msg_shape_nodes(const struct msg_shape *shape)
{
    size_t nodes = 1;
    for (size_t i = 0; i < shape->count; i++) {
        const struct msg_field *f = &shape->fields[i];
        nodes += 2; /* the key, and a single value or the list itself */
        if (f->kind == MSG_KIND_STRS) {
            nodes += f->limit;
        } else if (f->kind == MSG_KIND_RECS) {
            nodes += f->limit * msg_shape_nodes(f->rec);
        }
    }
    return nodes;
}

bool msg_field_present(const struct msg_field *field, const void *base)
{
    if (field->kind == MSG_KIND_STR) {
        return *(const char *const *)msg_member(base, field->value) != NULL;
    }
    if (*(const bool *)msg_member(base, field->has)) {
        return true;
    }
    bool is_list = field->kind == MSG_KIND_STRS || field->kind == MSG_KIND_RECS;
    return is_list && *(const size_t *)msg_member(base, field->count) > 0;
}
