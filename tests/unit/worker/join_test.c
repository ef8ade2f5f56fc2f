/* Joining a fleet: which files it makes and leaves alone, what it sends to whom, what it says. The
 * coordinator is a process of its own that issues a certificate to everyone but the
 * host "refuse". */
#include "worker/join.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/loop.h"
#include "common/str.h"
#include "proto/conn.h"
#include "proto/msg.h"
#include "proto/token.h"
#include "tests/unit/proto/trust.h"
#include "tests/unit/worker/run/records.h"
#include "worker/conf.h"
#include "worker/identity.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct trust_pair lab, other, coordinator;
static struct trust_world world;
static char dir[FILE_PATH_MAX], config[FILE_PATH_MAX], seen[FILE_PATH_MAX], address[64];
static pid_t server;
static struct buf said = BUF_INIT;
static struct diag *diag;

/* --- the coordinator --- */

static void on_event(struct conn *conn, const struct conn_event *event, void *arg)
{
    const struct msg_join *j;
    struct msg m = {.type = MSG_JOINED};
    struct pki_cert *cert = NULL;
    struct buf der = BUF_INIT, authority = BUF_INIT;
    const char *const warnings[] = {"the clock of this host is behind"};
    struct file *file = NULL;

    (void)arg;
    if (event->kind != CONN_MESSAGE || event->msg->type != MSG_JOIN)
        return;
    j = &event->msg->u.join;
    if (file_open(seen, FILE_APPEND | FILE_CREATE, 0600, &file) != 0 ||
        file_append(file, j->name, strlen(j->name)) != 0)
        _exit(1);
    file_close(&file);
    if (strcmp(j->name, "refuse") == 0) {
        conn_close(conn, CLOSE_TOKEN_USED,
                   "the token was used by another host: have a new one made", false);
        return;
    }
    if (pki_issue(lab.key, lab.cert, j->csr.data, j->csr.len, (enum role)j->role, j->name,
                  TRUST_NOW, &cert, NULL) != 0 ||
        pki_cert_to_der(cert, &der) != 0 || pki_cert_to_der(lab.cert, &authority) != 0)
        _exit(1);
    m.u.joined.cert = (struct msg_bytes){.data = der.data, .len = der.len};
    m.u.joined.authority = (struct msg_bytes){.data = authority.data, .len = authority.len};
    m.u.joined.name = j->name;
    m.u.joined.fleet = "lab";
    m.u.joined.warnings = warnings;
    m.u.joined.warnings_count = 1;
    (void)conn_send(conn, &m);
    pki_cert_free(&cert);
    buf_fini(&der);
    buf_fini(&authority);
}

static void on_accept(struct conn *conn, void *arg)
{
    conn_set_handler(conn, on_event, arg);
}

static void on_reject(const char *from, enum close_reason reason, const char *text, void *arg)
{
    (void)from;
    (void)reason;
    (void)text;
    (void)arg;
}

static void serve(int port_fd)
{
    struct loop *loop = loop_new();
    struct conn_listener *listener;
    struct tls *tls = trust_server(&lab, &coordinator, &world);
    char text[64];

    if (conn_listen(loop, tls, "127.0.0.1:0", NULL, on_accept, on_reject, NULL, &listener, NULL) !=
        0)
        _exit(1);
    snprintf(text, sizeof text, "127.0.0.1:%u", (unsigned)conn_listener_port(listener));
    if (write(port_fd, text, sizeof text) != sizeof text)
        _exit(1);
    loop_run(loop);
    _exit(0);
}

static void set_up(void)
{
    int fds[2];

    records_dir(dir);
    cr_assert_eq(file_path(config, sizeof config, dir, "etc/worker.yaml"), 0);
    cr_assert_eq(file_path(seen, sizeof seen, dir, "seen"), 0);
    trust_authority("lab", &lab);
    trust_authority("lab", &other);
    trust_issue(&lab, ROLE_COORDINATOR, "main", &coordinator);
    world.now_s = TRUST_NOW;
    diag = diag_new(8);
    cr_assert_eq(pipe(fds), 0);
    server = fork();
    if (server == 0)
        serve(fds[1]);
    cr_assert_eq(read(fds[0], address, sizeof address), (ssize_t)sizeof address);
    close(fds[0]);
    close(fds[1]);
}

static void tear_down(void)
{
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    trust_free(&coordinator);
    trust_free(&other);
    trust_free(&lab);
    diag_free(&diag);
    buf_fini(&said);
    cr_assert_eq(file_remove_tree(dir), 0);
}

TestSuite(join, .init = set_up, .fini = tear_down, .timeout = 60);

static void make_token(const struct trust_pair *of, char text[TOKEN_TEXT_SIZE])
{
    uint8_t hash[PKI_HASH_SIZE];
    struct token token;

    cr_assert_eq(pki_cert_key_hash(of->cert, hash), 0);
    token_make(hash, &token);
    token_format(&token, text);
}

static int join_as(const char *name, const struct trust_pair *of)
{
    char token[TOKEN_TEXT_SIZE], folder[FILE_PATH_MAX];
    struct worker_join join = {
        .address = address, .token = token, .name = name, .dir = folder, .config = config};

    cr_assert_eq(file_path(folder, sizeof folder, dir, "worker"), 0);
    make_token(of, token);
    buf_reset(&said);
    diag_clear(diag);
    return worker_join(&join, &said, diag);
}

static void path_of(const char *name, char path[FILE_PATH_MAX])
{
    char folder[FILE_PATH_MAX];

    cr_assert_eq(file_path(folder, sizeof folder, dir, "worker"), 0);
    cr_assert_eq(file_path(path, FILE_PATH_MAX, folder, name), 0);
}

Test(join, makes_a_worker)
{
    char path[FILE_PATH_MAX], folder[FILE_PATH_MAX];
    struct worker_conf conf;
    struct identity identity;
    struct file_stat st;

    cr_assert_eq(join_as("p6", &lab), 0, "%s", diag_first(diag));
    path_of(IDENTITY_KEY, path);
    cr_assert_eq(file_stat(path, &st), 0);
    cr_assert_eq(st.mode & 0777, 0600u);
    cr_assert_not_null(strstr(buf_str(&said), "joined fleet lab as p6"));
    cr_assert_not_null(strstr(buf_str(&said), "warning: the clock of this host is behind"));
    cr_assert_not_null(strstr(buf_str(&said), "makespan-worker -c"));
    cr_assert_eq(worker_conf_load(config, &conf, diag), 0, "%s", diag_first(diag));
    cr_assert_str_eq(conf.coordinator, address);
    cr_assert_str_eq(conf.name, "p6");
    cr_assert_eq(file_path(folder, sizeof folder, dir, "worker"), 0);
    cr_assert_str_eq(conf.dir, folder);
    cr_assert_eq(identity_load(conf.dir, &identity, diag), 0, "%s", diag_first(diag));
    cr_assert_str_eq(identity.name, "p6");
    cr_assert_str_eq(identity.fleet, "lab");
    cr_assert_gt(identity.cert_end_s, TRUST_NOW);
    identity_fini(&identity);
    worker_conf_free(&conf);
}

Test(join, again_keeps_the_key_and_the_configuration)
{
    static uint8_t first[8192], second[8192];
    char key[FILE_PATH_MAX];
    size_t n;

    cr_assert_eq(join_as("p6", &lab), 0);
    path_of(IDENTITY_KEY, key);
    n = records_read(key, first, sizeof first);
    records_write(config, (const uint8_t *)"coordinator: elsewhere:1\n", 25);
    cr_assert_eq(join_as("p7", &lab), 0, "%s", diag_first(diag));
    cr_assert_eq(records_read(key, second, sizeof second), n);
    cr_assert_arr_eq(first, second, n);
    cr_assert_eq(records_read(config, second, sizeof second), 25u,
                 "a configuration was overwritten");
    cr_assert_not_null(strstr(buf_str(&said), address), "what has to be in it is said");
}

Test(join, says_nothing_to_another_fleet)
{
    char path[FILE_PATH_MAX];

    cr_assert_eq(join_as("p6", &other), -ERR_FLEET, "%s", diag_first(diag));
    cr_assert_not(file_exists(seen), "something was sent");
    cr_assert_not_null(strstr(diag_first(diag), address));
    cr_assert_gt(strlen(diag_first(diag)), strlen(address) + 20);
    path_of(IDENTITY_CERT, path);
    cr_assert_not(file_exists(path));
    cr_assert_not(file_exists(config));
}

Test(join, passes_on_why_it_is_refused)
{
    cr_assert_eq(join_as("refuse", &lab), -ERR_USED);
    cr_assert_not_null(strstr(diag_first(diag), "have a new one made"), "%s", diag_first(diag));
    cr_assert_not(file_exists(config));
}

Test(join, sees_what_was_typed_wrong)
{
    char token[TOKEN_TEXT_SIZE], folder[FILE_PATH_MAX];
    struct worker_join join = {
        .address = address, .token = token, .name = "p6", .dir = folder, .config = config};

    cr_assert_eq(file_path(folder, sizeof folder, dir, "worker"), 0);
    make_token(&lab, token);
    token[10] = token[10] == '2' ? '3' : '2';
    cr_assert_eq(worker_join(&join, &said, diag), -ERR_CHECKSUM);
    join.token = "hello";
    cr_assert_eq(worker_join(&join, &said, diag), -ERR_SYNTAX);
    make_token(&lab, token);
    join.token = token;
    join.name = "no name at all";
    cr_assert_eq(worker_join(&join, &said, diag), -ERR_INVAL);
    join.name = "p6";
    join.address = "no port";
    cr_assert_lt(worker_join(&join, &said, diag), 0);
    cr_assert_not(file_exists(seen));
}

Test(join, says_when_nobody_answers)
{
    char token[TOKEN_TEXT_SIZE], folder[FILE_PATH_MAX];
    struct worker_join join = {
        .address = address, .token = token, .name = "p6", .dir = folder, .config = config};

    cr_assert_eq(file_path(folder, sizeof folder, dir, "worker"), 0);
    make_token(&lab, token);
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    cr_assert_eq(worker_join(&join, &said, diag), -ERR_UNREACH);
    cr_assert_not_null(strstr(diag_first(diag), address), "%s", diag_first(diag));
    server = fork(); /* so that there is one to be ended */
    if (server == 0) {
        pause();
        _exit(0);
    }
}

Test(join, a_host_that_has_not_joined_is_told_how)
{
    struct identity identity;

    cr_assert_eq(identity_load(dir, &identity, diag), -ERR_NOTFOUND);
    cr_assert_not_null(strstr(diag_first(diag), "makespan-worker join"), "%s", diag_first(diag));
    identity_fini(&identity);
}

Test(join, a_key_that_others_can_read_is_refused)
{
    struct identity identity;
    char path[FILE_PATH_MAX], folder[FILE_PATH_MAX];

    cr_assert_eq(join_as("p6", &lab), 0);
    path_of(IDENTITY_KEY, path);
    cr_assert_eq(chmod(path, 0644), 0);
    cr_assert_eq(file_path(folder, sizeof folder, dir, "worker"), 0);
    cr_assert_eq(identity_load(folder, &identity, diag), -ERR_DENIED);
    identity_fini(&identity);
    cr_assert_eq(join_as("p6", &lab), -ERR_DENIED);
}
