/* house.c: a coordinator and its guests for tests. */
#include "tests/unit/whole/house.h"

/* To reach its rooms. */
#include "coordinator/coord.c"

#include "common/str.h"
#include "common/version.h"
#include "proto/frame.h"
#include "proto/hello.h"
#include "proto/msg.h"
#include "proto/token.h"
#include "tests/harness/place.h"
#include "tests/unit/coordinator/store/fault_vfs.h"

#include <unistd.h>

void house_turn(struct house *house, int64_t deadline, const char *condition)
{
    cr_assert(clock_mono_ns() < deadline, "never came true: %s", condition);
    loop_turn(house->loop, 10 * CLOCK_MS);
}

void house_idle(struct house *house)
{
    for (int i = 0; i < 20; i++) {
        loop_turn(house->loop, CLOCK_MS);
    }
}

/* --- the house --- */

void house_init(struct house *house)
{
    char path[256];
    struct store *store;
    memset(house, 0, sizeof(*house));
    fault_vfs_register();
    house->diag = diag_new(16);
    place_new_dir(house->dir, sizeof(house->dir), "makespan-house");
    snprintf(house->operator_dir, sizeof(house->operator_dir), "%s/operator", house->dir);
    snprintf(path, sizeof(path), "%s/makespan.db", house->dir);
    cr_assert_eq(store_open(path, NULL, 0, &store, house->diag), 0, "%s", diag_first(house->diag));
    struct ca_init init = {.dir = house->dir,
                           .fleet = "lab",
                           .operator_dir = house->operator_dir,
                           .operator_name = "boss",
                           .store = store,
                           .wall_ns = clock_wall_ns()};
    cr_assert_eq(ca_init(&init, house->diag), 0, "%s", diag_first(house->diag));
    store_close(&store);
    cr_assert_eq(coord_conf_load(NULL, &house->conf, house->diag), 0);
    free(house->conf.dir);
    free(house->conf.listen);
    house->conf.dir = mem_xstrdup(house->dir);
    house->conf.listen = mem_xstrdup("127.0.0.1:0");
    house->loop = loop_new();
    cr_assert_not_null(house->loop);
}

void house_start(struct house *house)
{
    int err = coord_new(house->loop, &house->conf, FAULT_VFS, &house->coord, house->diag);
    cr_assert_eq(err, 0, "%s", diag_first(house->diag));
    snprintf(house->address, sizeof(house->address), "127.0.0.1:%u",
             (unsigned)coord_port(house->coord));
}

void house_stop(struct house *house)
{
    coord_free(&house->coord);
}

void house_fini(struct house *house)
{
    for (size_t i = 0; i < house->guest_count; i++) {
        guest_leave(&house->guests[i]);
    }
    coord_free(&house->coord);
    loop_free(&house->loop);
    coord_conf_free(&house->conf);
    diag_free(&house->diag);
    cr_expect_eq(file_remove_tree(house->dir), 0);
}

struct store *house_store(struct house *house)
{
    return house->coord->store;
}

void house_fill_disk(bool full)
{
    fault_vfs_set(full ? FAULT_WRITE_FULL : FAULT_NONE, 0);
}

/* --- who comes --- */

static void commit(struct house *house)
{
    cr_assert_eq(store_commit(house->coord->store, house->diag), 0, "%s", diag_first(house->diag));
}

static void make_token(struct house *house, enum role role, const char *name, const char *class,
                       int64_t wall_ns, char text[CA_TOKEN_TEXT])
{
    struct ca_token_request request = {.role = role,
                                       .name = name,
                                       .classes = &class,
                                       .class_count = class != NULL ? 1 : 0,
                                       .ttl_ns = CLOCK_HOUR,
                                       .made_by = "boss"};
    cr_assert_eq(
        ca_token_make(house->coord->ca, &request, wall_ns, text, house->diag), 0, "%s",
        diag_first(house->diag));
    commit(house);
}

void house_token(struct house *house, enum role role, const char *name, char text[96])
{
    make_token(house, role, name, NULL, clock_wall_ns(), text);
}

void house_old_token(struct house *house, enum role role, char text[96])
{
    make_token(house, role, NULL, NULL, clock_wall_ns() - 2 * CLOCK_HOUR, text);
}

static void admit(struct house *house, enum role role, const char *name, const char *class,
                  struct ident *out)
{
    char text[CA_TOKEN_TEXT];
    struct token token;
    struct buf csr = BUF_INIT;
    struct ca_grant *grant = mem_xzalloc(sizeof(*grant));
    enum close_reason reason;
    memset(out, 0, sizeof(*out));
    out->role = role;
    str_copy(out->name, sizeof(out->name), name);
    make_token(house, role, NULL, class, clock_wall_ns(), text);
    cr_assert_eq(token_parse(text, &token, NULL), 0);
    cr_assert_eq(pki_key_make(&out->key, NULL), 0);
    cr_assert_eq(pki_request_make(out->key, &csr, NULL), 0);
    struct ca_request request = {.token_id = token.id,
                                 .secret = token.secret,
                                 .csr = csr.data,
                                 .csr_len = csr.len,
                                 .name = name,
                                 .role = role,
                                 .wall_ns = clock_wall_ns()};
    cr_assert_eq(
        ca_join(house->coord->ca, &request, clock_wall_ns(), grant, &reason, house->diag), 0, "%s",
        diag_first(house->diag));
    commit(house);
    cr_assert_eq(pki_cert_from_der(grant->cert, grant->cert_len, &out->cert, NULL), 0);
    cr_assert_eq(pki_cert_read(ca_authority_path(house->coord->ca), &out->authority, NULL), 0);
    buf_fini(&csr);
    free(grant);
}

void house_admit(struct house *house, enum role role, const char *name, struct ident *out)
{
    admit(house, role, name, NULL, out);
}

void house_admit_host(struct house *house, const char *name, const char *class, struct ident *out)
{
    admit(house, ROLE_WORKER, name, class, out);
}

void ident_free(struct ident *ident)
{
    pki_key_free(&ident->key);
    pki_cert_free(&ident->cert);
    pki_cert_free(&ident->authority);
}

/* --- guests --- */

/* A message of our own: encoded and decoded once more. */
static struct msg *copy_of(const struct msg *msg)
{
    struct buf frame = BUF_INIT;
    struct msg *copy;
    cr_assert_eq(msg_encode(msg, &frame), 0);
    cr_assert_eq(msg_decode(msg->type, frame.data + FRAME_HEAD,
                            frame.len - FRAME_HEAD, &copy, NULL),
                 0);
    buf_fini(&frame);
    return copy;
}

static void on_guest(struct conn *conn, const struct conn_event *event, void *arg)
{
    struct guest *g = arg;
    (void)conn;
    cr_assert(!g->closed, "an event after the last");
    switch (event->kind) {
    case CONN_OPEN:
        g->opened = true;
        break;
    case CONN_MESSAGE:
        cr_assert_lt(g->count, GUEST_MESSAGES);
        g->got[g->count++] = copy_of(event->msg);
        if (g->plays && event->msg->type == MSG_ASSIGN) {
            guest_taken(g, &event->msg->u.assign);
            guest_result(g, &event->msg->u.assign, CLOCK_SEC);
            guest_end(g, &event->msg->u.assign);
            guest_ready(g, 1);
        }
        break;
    case CONN_DRAINED:
        break;
    case CONN_CLOSED:
        g->closed = true;
        g->reason = event->reason;
        g->by_peer = event->by_peer;
        str_copy(g->text, sizeof(g->text), event->text);
        g->conn = NULL;
        break;
    }
}

static int64_t wall_s(void *arg)
{
    (void)arg;
    return clock_wall_ns() / CLOCK_SEC;
}

struct guest *house_guest(struct house *house, const struct ident *who)
{
    struct guest *g = NULL;
    for (size_t i = 0; i < house->guest_count && g == NULL; i++) {
        g = house->guests[i].house == NULL ? &house->guests[i] : NULL;
    }
    if (g == NULL) {
        cr_assert_lt(house->guest_count, HOUSE_GUESTS);
        g = &house->guests[house->guest_count++];
    }
    struct tls_client_config config = {
        .key = who->key, .cert = who->cert, .authority = who->authority, .now_s = wall_s};
    memset(g, 0, sizeof(*g));
    g->house = house;
    g->who = who;
    cr_assert_eq(tls_new_client(&config, &g->tls, house->diag), 0, "%s", diag_first(house->diag));
    cr_assert_eq(conn_dial(house->loop, g->tls, house->address, NULL, on_guest, g, &g->conn, NULL),
                 0);
    return g;
}

struct guest *house_welcome(struct house *house, const struct ident *who)
{
    struct guest *g = house_guest(house, who);
    HOUSE_WAIT(house, g->opened || g->closed);
    cr_assert(!g->closed, "%s", g->text);
    guest_hello(g, 1);
    HOUSE_WAIT(house, guest_count(g, MSG_WELCOME) > 0 || g->closed);
    cr_assert(!g->closed, "%s", g->text);
    return g;
}

void guest_forget(struct guest *guest)
{
    for (size_t i = 0; i < guest->count; i++) {
        msg_free(&guest->got[i]);
    }
    guest->count = 0;
}

void guest_leave(struct guest *guest)
{
    if (guest->house == NULL) {
        return;
    }
    if (guest->conn != NULL) {
        conn_close(guest->conn, CLOSE_SHUTDOWN, NULL, true);
    }
    guest_forget(guest);
    tls_free(&guest->tls);
    memset(guest, 0, sizeof(*guest));
}

int guest_send(struct guest *guest, const struct msg *msg)
{
    return guest->conn == NULL ? -ERR_CLOSED : conn_send(guest->conn, msg);
}

void guest_hello_with(struct guest *guest, uint32_t room, const struct rec_held *held, size_t n)
{
    static const struct rec_fact facts[] = {{.key = "cpus.usable_milli", .value = "4000"},
                                            {.key = "memory.total", .value = "67108864"}};
    struct msg m = {.type = MSG_HELLO};
    struct hello_caps caps;
    bool worker = guest->who->role == ROLE_WORKER;
    hello_write_caps(CAPS_OURS, &caps);
    hello_fill(&m.u.hello, &caps, worker ? "makespan-worker" : "makespan", version_text(),
               clock_wall_ns());
    if (worker) {
        m.u.hello.boot_id = guest->who->name; /* a machine of its own */
        m.u.hello.facts = facts;
        m.u.hello.facts_count = ARRAY_LEN(facts);
        m.u.hello.room = room;
        m.u.hello.has_room = true;
        m.u.hello.visit = 1;
        m.u.hello.has_visit = true;
        m.u.hello.held = held;
        m.u.hello.held_count = n;
    }
    cr_assert_eq(guest_send(guest, &m), 0);
}

void guest_hello(struct guest *guest, uint32_t room)
{
    guest_hello_with(guest, room, NULL, 0);
}

const struct msg *guest_got(const struct guest *guest, enum msg_type type, size_t n)
{
    for (size_t i = 0; i < guest->count; i++) {
        if (guest->got[i]->type == type && n-- == 0) {
            return guest->got[i];
        }
    }
    return NULL;
}

size_t guest_count(const struct guest *guest, enum msg_type type)
{
    size_t n = 0;
    while (guest_got(guest, type, n) != NULL) {
        n++;
    }
    return n;
}

/* --- operators --- */

uint32_t guest_call(struct guest *guest)
{
    return ++guest->calls;
}

bool guest_answered(const struct guest *guest, uint32_t call, struct answer *out)
{
    const struct msg *m;
    bool last = false;
    memset(out, 0, sizeof(*out));
    for (size_t n = 0; (m = guest_got(guest, MSG_REPLY, n)) != NULL; n++) {
        const struct msg_reply *r = &m->u.reply;
        if (r->call != call) {
            continue;
        }
        cr_assert(!last, "a piece after the last");
        last = r->last;
        out->exit = r->exit;
        out->code = r->code;
        out->pieces++;
        buf_add(&out->body, r->body.data, r->body.len);
        buf_add_str(&out->talk, r->talk != NULL ? r->talk : "");
    }
    return last;
}

void answer_free(struct answer *answer)
{
    buf_fini(&answer->body);
    buf_fini(&answer->talk);
}

static bool is_answered(const struct guest *guest, uint32_t call)
{
    struct answer a;
    bool last = guest_answered(guest, call, &a);
    answer_free(&a);
    return last;
}

void guest_ask(struct guest *guest, uint32_t call, const struct msg *request, struct answer *out)
{
    cr_assert_eq(guest_send(guest, request), 0);
    HOUSE_WAIT(guest->house, is_answered(guest, call) || guest->closed);
    cr_assert(!guest->closed, "%s", guest->text);
    cr_assert(guest_answered(guest, call, out));
}

void guest_put(struct guest *guest, const char *action, const char *text, struct answer *out)
{
    struct msg m = {.type = MSG_SWEEP_PUT};
    m.u.sweep_put.call = guest_call(guest);
    m.u.sweep_put.action = action;
    m.u.sweep_put.file = "s.yaml";
    m.u.sweep_put.text =
        (struct msg_bytes){.data = (const uint8_t *)text, .len = strlen(text)};
    m.u.sweep_put.yes = true;
    m.u.sweep_put.format = "text";
    guest_ask(guest, m.u.sweep_put.call, &m, out);
}

void guest_report(struct guest *guest, const char *sweep, const char *format, struct answer *out)
{
    struct msg m = {.type = MSG_REPORT};
    m.u.report.call = guest_call(guest);
    m.u.report.sweep = sweep;
    m.u.report.format = format;
    guest_ask(guest, m.u.report.call, &m, out);
}

/* --- workers --- */

void guest_taken(struct guest *guest, const struct msg_assign *assign)
{
    struct msg m = {.type = MSG_TAKEN};
    m.u.taken.run = assign->run;
    m.u.taken.attempt = assign->attempt;
    cr_assert_eq(guest_send(guest, &m), 0);
}

void guest_result(struct guest *guest, const struct msg_assign *assign, int64_t real_ns)
{
    struct msg m = {.type = MSG_RESULT};
    struct msg_result *r = &m.u.result;
    r->run = assign->run;
    r->attempt = assign->attempt;
    r->outcome = OUTCOME_OK;
    r->phase = PHASE_CHECK;
    r->ending = ENDING_EXIT;
    r->has_exit_status = true;
    r->text = "";
    r->warmup = assign->warmup;
    r->real_ns = real_ns;
    r->has_real_ns = true;
    r->user_ns = real_ns;
    r->has_user_ns = true;
    r->sys_ns = real_ns / 2;
    r->has_sys_ns = true;
    r->cpu_way = CPU_WAY_WAIT4;
    r->begin_wall_ns = clock_wall_ns() - real_ns;
    r->end_wall_ns = clock_wall_ns();
    r->boot_id = "boot";
    r->visit = 1;
    r->jobs = assign->jobs;
    r->worker_version = version_text();
    cr_assert_eq(guest_send(guest, &m), 0);
}

void guest_end(struct guest *guest, const struct msg_assign *assign)
{
    struct msg m = {.type = MSG_END};
    m.u.end.run = assign->run;
    m.u.end.attempt = assign->attempt;
    m.u.end.seq = 1;
    m.u.end.count = 2;
    cr_assert_eq(guest_send(guest, &m), 0);
}

void guest_ready(struct guest *guest, uint32_t room)
{
    struct msg m = {.type = MSG_READY};
    m.u.ready.room = room;
    cr_assert_eq(guest_send(guest, &m), 0);
}

bool guest_sees(struct guest *guest, const char *sweep, const char *part)
{
    struct msg m = {.type = MSG_SWEEP_LIST};
    struct answer a;
    m.u.sweep_list.call = guest_call(guest);
    m.u.sweep_list.sweep = sweep;
    guest_ask(guest, m.u.sweep_list.call, &m, &a);
    bool found = strstr(buf_str(&a.body), part) != NULL;
    answer_free(&a);
    guest_forget(guest);
    return found;
}

void guest_make(struct guest *guest, size_t n)
{
    HOUSE_WAIT(guest->house, guest_count(guest, MSG_ASSIGN) > n || guest->closed);
    cr_assert(!guest->closed, "%s", guest->text);
    const struct msg_assign *a = &guest_got(guest, MSG_ASSIGN, n)->u.assign;
    guest_taken(guest, a);
    guest_result(guest, a, (int64_t)(n + 1) * CLOCK_SEC);
    guest_end(guest, a);
    guest_ready(guest, 1);
}

bool guest_has_acked(const struct guest *guest, const struct msg_assign *assign)
{
    const struct msg *m;
    for (size_t n = 0; (m = guest_got(guest, MSG_ACK, n)) != NULL; n++) {
        for (size_t i = 0; i < m->u.ack.acked_count; i++) {
            const struct rec_acked *a = &m->u.ack.acked[i];
            if (a->run == assign->run && a->attempt == assign->attempt && a->whole) {
                return true;
            }
        }
    }
    return false;
}

void house_news(struct house *house, int64_t sweep, const char *text)
{
    cr_assert_eq(news_add(house->coord->news, EVENT_OPERATOR, sweep, 0, 0, NULL, "%s", text), 0);
}
