/* join.c: the joining side of the joining protocol. Owns its connection; writes no file. */
#include "proto/join.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/loop.h"
#include "common/mem.h"
#include "proto/conn.h"
#include "proto/msg.h"
#include "proto/pki.h"
#include "proto/tls.h"
#include "proto/token.h"

#include <stdlib.h>
#include <string.h>

struct join {
    unsigned magic;
    struct loop *loop;
    struct tls *tls;
    struct conn *conn;
    struct token token;
    const struct pki_key *key;
    enum role role;
    char *name;
    char *machine_id;
    join_f *f;
    void *arg;
};
#define JOIN_MAGIC 0x6a6f696eu

static int64_t now_s(void *arg)
{
    (void)arg;
    return clock_wall_ns() / CLOCK_SEC;
}

static void join_free(struct join *j)
{
    token_wipe(&j->token);
    tls_free(&j->tls);
    free(j->name);
    free(j->machine_id);
    j->magic = 0;
    free(j);
}

/* Ends with an answer; the connection is closed quietly. */
static void end(struct join *j, const struct join_answer *answer, bool close)
{
    if (close)
        conn_close(j->conn, CLOSE_DONE, NULL, true);
    j->f(answer, j->arg);
    join_free(j);
}

static void fail(struct join *j, int code, enum close_reason reason, const char *text, bool close)
{
    struct join_answer answer = {.code = code < 0 ? code : -code, .reason = reason, .text = text};

    end(j, &answer, close);
}

static int send_request(struct join *j)
{
    struct buf csr = BUF_INIT;
    struct diag *diag = diag_new(1);
    struct msg m = {.type = MSG_JOIN};
    int err = pki_request_make(j->key, &csr, diag);

    if (err == 0) {
        m.u.join.token_id = (struct msg_bytes){.data = j->token.id, .len = sizeof j->token.id};
        m.u.join.secret = (struct msg_bytes){.data = j->token.secret, .len = sizeof j->token.secret};
        m.u.join.csr = (struct msg_bytes){.data = csr.data, .len = csr.len};
        m.u.join.name = j->name;
        m.u.join.machine_id = j->machine_id;
        m.u.join.wall_ns = clock_wall_ns();
        m.u.join.role = (uint32_t)j->role;
        err = conn_send(j->conn, &m);
    }
    buf_fini(&csr);
    diag_free(&diag);
    return err;
}

/* The authority is the token's, the certificate is of our key, of this authority, and for the role. */
static int check_certs(struct join *j, const struct pki_cert *cert, const struct pki_cert *authority, struct diag *diag)
{
    uint8_t hash[PKI_HASH_SIZE];
    struct pki_id id;
    int err = pki_cert_key_hash(authority, hash);

    if (err != 0 || !pki_equal(hash, j->token.authority, TOKEN_AUTHORITY_SIZE))
        return diag_error(diag, ERR_FLEET, "the coordinator's authority is not the one of the token: the certificate was not taken");
    if (!pki_cert_is_of_key(cert, j->key) || !pki_cert_is_issued_by(cert, authority))
        return diag_error(diag, ERR_TLS, "the certificate that came is not of this host's key: it was not taken");
    err = pki_cert_id(cert, &id, diag);
    if (err == 0 && (id.role == ROLE_COORDINATOR || (id.role == ROLE_WORKER) != (j->role == ROLE_WORKER)))
        err = diag_error(diag, ERR_DENIED, "the certificate that came is for a %s, not for a %s", vocab_role((int)id.role),
                         vocab_role((int)j->role));
    return err;
}

static void on_joined(struct join *j, const struct msg_joined *m)
{
    struct pki_cert *cert = NULL;
    struct pki_cert *authority = NULL;
    struct diag *diag = diag_new(4);
    int err = pki_cert_from_der(m->cert.data, m->cert.len, &cert, diag);

    if (err == 0)
        err = pki_cert_from_der(m->authority.data, m->authority.len, &authority, diag);
    if (err == 0)
        err = check_certs(j, cert, authority, diag);
    if (err != 0) {
        fail(j, err, CLOSE_CERT_AUTHORITY, diag_first(diag), true);
    } else {
        struct join_answer answer = {.text = "",
                                     .cert = cert,
                                     .authority = authority,
                                     .name = m->name,
                                     .fleet = m->fleet,
                                     .warnings = m->warnings,
                                     .warning_count = m->warnings_count};

        end(j, &answer, true);
    }
    pki_cert_free(&cert);
    pki_cert_free(&authority);
    diag_free(&diag);
}

static int code_of(enum close_reason reason)
{
    switch (reason) {
    case CLOSE_TOKEN_UNKNOWN:
        return ERR_NOTFOUND;
    case CLOSE_TOKEN_EXPIRED:
        return ERR_EXPIRED;
    case CLOSE_TOKEN_USED:
        return ERR_USED;
    case CLOSE_TOKEN_ROLE:
    case CLOSE_NAME_TAKEN:
    case CLOSE_CLOCK:
        return ERR_DENIED;
    case CLOSE_CERT_AUTHORITY:
        return ERR_FLEET;
    case CLOSE_TLS:
        return ERR_TLS;
    default:
        return ERR_UNREACH;
    }
}

static void on_event(struct conn *conn, const struct conn_event *event, void *arg)
{
    struct join *j;
    int err;

    (void)conn;
    CAST_OBJ(j, arg, JOIN_MAGIC);
    switch (event->kind) {
    case CONN_OPEN:
        err = send_request(j);
        if (err != 0)
            fail(j, err, CLOSE_IO, "the request could not be sent", true);
        break;
    case CONN_MESSAGE:
        if (event->msg->type == MSG_JOINED)
            on_joined(j, &event->msg->u.joined);
        else
            fail(j, ERR_PROTO, CLOSE_NOT_NOW, "the coordinator answered with something else than a certificate", true);
        break;
    case CONN_DRAINED:
        break;
    case CONN_CLOSED:
        fail(j, code_of(event->reason), event->reason, event->text, false);
        break;
    }
}

int join_start(struct loop *loop, const struct join_request *request, join_f *f, void *arg, struct join **out, struct diag *diag)
{
    struct tls_joiner_config config = {.authority = request->token->authority, .now_s = now_s, .late_clock_ok = request->late_clock_ok};
    struct join *j = mem_xzalloc(sizeof *j);
    int err;

    *out = NULL;
    j->magic = JOIN_MAGIC;
    j->loop = loop;
    j->token = *request->token;
    j->key = request->key;
    j->role = request->role;
    j->name = mem_xstrdup(request->name);
    j->machine_id = request->machine_id == NULL ? NULL : mem_xstrdup(request->machine_id);
    j->f = f;
    j->arg = arg;
    err = tls_new_joiner(&config, &j->tls, diag);
    if (err == 0)
        err = conn_dial(loop, j->tls, request->address, NULL, on_event, j, &j->conn, diag);
    if (err != 0) {
        join_free(j);
        return err;
    }
    *out = j;
    return 0;
}

void join_cancel(struct join **join)
{
    if (*join == NULL)
        return;
    conn_close((*join)->conn, CLOSE_SHUTDOWN, NULL, true);
    join_free(*join);
    *join = NULL;
}
