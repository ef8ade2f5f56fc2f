/* trust.c: rows of certificates and tokens. */
#include "coordinator/store/trust.h"

#include "common/err.h"
#include "common/mem.h"
#include "coordinator/store/db.h"
#include "coordinator/store/list.h"
#include "coordinator/store/store.h"

static void read_cert(struct stmt *q, void *out)
{
    struct model_cert *c = out;
    c->serial = stmt_text(q);
    c->role = (enum role)stmt_i64(q);
    c->name = stmt_text(q);
    c->key_hash = stmt_text(q);
    c->end_s = stmt_i64(q);
    c->issued_wall_ns = stmt_i64(q);
    c->revoked_wall_ns = stmt_i64(q);
}

int store_cert_insert(struct store *store, const struct model_cert *cert)
{
    struct stmt *q = stmt_open(store, ST_CERT_INSERT);
    stmt_put_text(q, cert->serial);
    stmt_put_i64(q, cert->role);
    stmt_put_text(q, cert->name);
    stmt_put_text(q, cert->key_hash);
    stmt_put_i64(q, cert->end_s);
    stmt_put_i64(q, cert->issued_wall_ns);
    stmt_put_i64(q, cert->revoked_wall_ns);
    return stmt_run(q, NULL);
}

int store_cert_get(struct store *store, const char *serial, struct mem_arena *arena,
                   struct model_cert *out)
{
    struct stmt *q = stmt_open(store, ST_CERT_GET);
    stmt_put_text(q, serial);
    return stmt_get(q, arena, read_cert, out);
}

struct visit_cert {
    struct model_cert cert;
    store_cert_f *f;
    void *arg;
};

static int visit_cert(void *arg)
{
    struct visit_cert *v = arg;
    return v->f(&v->cert, v->arg);
}

int store_certs_each(struct store *store, int role, const char *name, store_cert_f *f, void *arg)
{
    struct visit_cert v = {.f = f, .arg = arg};
    enum statement which = role != 0 ? (name != NULL ? ST_CERTS_BY_BOTH : ST_CERTS_BY_ROLE)
                                     : (name != NULL ? ST_CERTS_BY_NAME : ST_CERTS_EACH);
    struct stmt *q = stmt_open(store, which);
    if (role != 0) {
        stmt_put_i64(q, role);
    }
    if (name != NULL) {
        stmt_put_text(q, name);
    }
    return stmt_each(q, read_cert, &v.cert, visit_cert, &v);
}

int store_cert_is_revoked(struct store *store, const char *serial, bool *revoked)
{
    *revoked = true;
    struct stmt *q = stmt_open(store, ST_CERT_REVOKED);
    stmt_put_text(q, serial);
    int rc = stmt_next(q);
    if (rc == 1) {
        *revoked = stmt_i64(q) != 0;
        return stmt_close(q, 0);
    }
    return stmt_close(q, rc == 0 ? -ERR_NOTFOUND : rc);
}

int store_cert_revoke(struct store *store, const char *serial, int64_t wall_ns)
{
    struct stmt *q = stmt_open(store, ST_CERT_REVOKE);
    stmt_put_i64(q, wall_ns);
    stmt_put_text(q, serial);
    return stmt_run_one(q);
}

int store_certs_revoke(struct store *store, enum role role, const char *name, int64_t wall_ns,
                       size_t *count)
{
    int64_t changes = 0;
    struct stmt *q = stmt_open(store, ST_CERTS_REVOKE);
    stmt_put_i64(q, wall_ns);
    stmt_put_i64(q, role);
    stmt_put_text(q, name);
    int rc = stmt_run(q, &changes);
    *count = (size_t)changes;
    return rc;
}

/* A token's row has an id of the store beside the token's own. */
struct token_row {
    int64_t id;
    struct model_token token;
};

static void read_token(struct stmt *q, void *out)
{
    struct token_row *row = out;
    struct model_token *t = &row->token;
    *t = (struct model_token){0};
    row->id = stmt_i64(q);
    stmt_fixed_bytes(q, t->id, sizeof(t->id));
    stmt_fixed_bytes(q, t->secret_hash, sizeof(t->secret_hash));
    t->role = (enum role)stmt_i64(q);
    t->name = stmt_text(q);
    t->end_wall_ns = stmt_i64(q);
    t->made_wall_ns = stmt_i64(q);
    t->made_by = stmt_text(q);
    t->used_key_hash = stmt_text(q);
    t->used_name = stmt_text(q);
    t->cert = stmt_bytes(q, &t->cert_len);
}

int store_token_insert(struct store *store, const struct model_token *token)
{
    int64_t id = 0;
    int savepoint = store_savepoint(store);
    struct stmt *q = stmt_open(store, ST_TOKEN_INSERT);
    stmt_put_bytes(q, token->id, sizeof(token->id));
    stmt_put_bytes(q, token->secret_hash, sizeof(token->secret_hash));
    stmt_put_i64(q, token->role);
    stmt_put_text(q, token->name);
    stmt_put_i64(q, token->end_wall_ns);
    stmt_put_i64(q, token->made_wall_ns);
    stmt_put_text(q, token->made_by);
    stmt_put_text(q, token->used_key_hash);
    stmt_put_text(q, token->used_name);
    stmt_put_bytes(q, token->cert, token->cert_len);
    int rc = stmt_insert(q, &id);
    if (rc == 0) {
        rc = list_insert(store, ST_TOKEN_CLASS_ADD, id, token->classes, token->class_count);
    }
    return db_end(store, savepoint, rc);
}

static int load_classes(struct store *store, struct token_row *row, struct mem_arena *arena)
{
    return list_load(store, ST_TOKEN_CLASSES, row->id, arena, &row->token.classes,
                     &row->token.class_count);
}

int store_token_get(struct store *store, const uint8_t id[8], struct mem_arena *arena,
                    struct model_token *out)
{
    struct token_row row;
    struct stmt *q = stmt_open(store, ST_TOKEN_GET);
    stmt_put_bytes(q, id, 8);
    int rc = stmt_get(q, arena, read_token, &row);
    if (rc == 0) {
        rc = load_classes(store, &row, arena);
    }
    if (rc == 0) {
        *out = row.token;
    }
    return rc;
}

struct visit_token {
    struct store *store;
    struct token_row row;
    store_token_f *f;
    void *arg;
};

static int visit_token(void *arg)
{
    struct visit_token *v = arg;
    struct mem_arena *arena = mem_arena_new(0);
    int rc = load_classes(v->store, &v->row, arena);
    if (rc == 0) {
        rc = v->f(&v->row.token, v->arg);
    }
    mem_arena_free(&arena);
    return rc;
}

int store_tokens_each(struct store *store, store_token_f *f, void *arg)
{
    struct visit_token v = {.store = store, .f = f, .arg = arg};
    return stmt_each(stmt_open(store, ST_TOKENS_EACH), read_token, &v.row, visit_token, &v);
}

int store_token_use(struct store *store, const uint8_t id[8], const char *key_hash,
                    const char *name, const uint8_t *cert, size_t cert_len)
{
    struct stmt *q = stmt_open(store, ST_TOKEN_USE);
    stmt_put_text(q, key_hash);
    stmt_put_text(q, name);
    stmt_put_bytes(q, cert, cert_len);
    stmt_put_bytes(q, id, 8);
    int rc = stmt_run_one(q);
    if (rc != -ERR_NOTFOUND) {
        return rc;
    }
    /* None was changed: because there is none, or because it is used. */
    struct mem_arena *arena = mem_arena_new(0);
    struct model_token token;
    rc = store_token_get(store, id, arena, &token);
    mem_arena_free(&arena);
    return rc == 0 ? -ERR_USED : rc;
}
