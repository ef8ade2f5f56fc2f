/* idle_workers.c: many workers that join, connect and then are idle, in one process: load for a real
 * coordinator.
 *
 * usage: idle_workers HOST:PORT TOKENS
 *
 * TOKENS is a file with one token of role worker on each line; each becomes a worker with a key and a
 * certificate of its own. Joins and connects a few at a time; prints "N connected" once all were
 * welcomed, and stays, answering nothing but what keeps a connection up, until standard input ends.
 *
 * Exit status: 0 all stayed connected until then, 1 not. */
#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/fileio.h"
#include "common/loop.h"
#include "common/mem.h"
#include "proto/conn.h"
#include "proto/hello.h"
#include "proto/join.h"
#include "proto/msg.h"
#include "proto/pki.h"
#include "proto/tls.h"
#include "proto/token.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT_A_TIME 8
#define WAIT_NS (300 * CLOCK_SEC)

struct worker {
    struct load *load;
    struct token token;
    struct pki_key *key;
    struct join *join;
    struct tls *tls;
    struct conn *conn;
    char name[32];
    bool welcomed;
};

struct load {
    struct loop *loop;
    const char *address;
    struct worker *workers;
    size_t count, begun, welcomed;
    int64_t beat_ns;
    uint64_t beats;
    bool stop;
};

NORETURN PRINTF_LIKE(1, 2) static void fail(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fputs("idle_workers: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(1);
}

static int64_t now_s(void *arg)
{
    (void)arg;
    return clock_wall_ns() / CLOCK_SEC;
}

/* As much as a worker of a small host says of itself. */
static void say_hello(struct worker *w)
{
    static const struct rec_fact facts[] = {
        {"cpus.online", "4"},          {"cpus.usable_milli", "4000"},
        {"memory.total", "4294967296"}, {"os.name", "Linux"},
        {"os.release", "6.1.0"},       {"compiler", "cc (Debian 12.2.0-14) 12.2.0"},
    };
    struct msg m = {.type = MSG_HELLO};
    struct hello_caps caps;
    char boot[48];

    hello_write_caps(CAPS_OURS, &caps);
    hello_fill(&m.u.hello, &caps, "makespan-worker", "0.1.0", clock_wall_ns());
    snprintf(boot, sizeof boot, "00000000-0000-0000-0000-%012zu", (size_t)(w - w->load->workers));
    m.u.hello.boot_id = boot;
    m.u.hello.facts = facts;
    m.u.hello.facts_count = ARRAY_LEN(facts);
    m.u.hello.has_room = true;
    m.u.hello.room = 2;
    m.u.hello.has_visit = true;
    m.u.hello.visit = 1;
    if (conn_send(w->conn, &m) != 0)
        fail("%s: HELLO was not sent", w->name);
}

static void on_conn(struct conn *conn, const struct conn_event *event, void *arg)
{
    struct worker *w = arg;

    (void)conn;
    switch (event->kind) {
    case CONN_OPEN:
        say_hello(w);
        break;
    case CONN_MESSAGE:
        if (event->msg->type == MSG_WELCOME && !w->welcomed) {
            w->welcomed = true;
            w->load->welcomed++;
            w->load->beat_ns = event->msg->u.welcome.beat_ns;
        }
        break;
    case CONN_DRAINED:
        break;
    case CONN_CLOSED:
        fail("%s: the connection ended: %s", w->name, event->text);
    }
}

static void on_joined(const struct join_answer *answer, void *arg)
{
    struct worker *w = arg;
    struct tls_client_config config = {
        .key = w->key, .cert = answer->cert, .authority = answer->authority, .now_s = now_s};

    w->join = NULL;
    if (answer->code != 0)
        fail("%s could not join: %s", w->name, answer->text);
    if (tls_new_client(&config, &w->tls, NULL) != 0)
        fail("%s: no TLS", w->name);
    if (conn_dial(w->load->loop, w->tls, w->load->address, NULL, on_conn, w, &w->conn, NULL) != 0)
        fail("%s cannot dial", w->name);
}

static void begin(struct worker *w)
{
    struct join_request request = {
        .address = w->load->address, .token = &w->token, .role = ROLE_WORKER, .name = w->name};
    struct diag *diag = diag_new(4);

    snprintf(w->name, sizeof w->name, "idle-%zu", (size_t)(w - w->load->workers));
    if (pki_key_make(&w->key, diag) != 0)
        fail("no key");
    request.key = w->key;
    if (join_start(w->load->loop, &request, on_joined, w, &w->join, diag) != 0)
        fail("%s: %s", w->name, diag_first(diag));
    diag_free(&diag);
}

static void read_tokens(struct load *load, const char *path)
{
    struct diag *diag = diag_new(4);
    struct buf text = BUF_INIT;
    size_t n = 0;

    if (file_read_all(path, (size_t)16 * 1024 * 1024, &text) != 0)
        fail("%s cannot be read", path);
    for (const char *p = buf_str(&text); *p != '\0'; p++)
        n += *p == '\n';
    load->workers = mem_xzalloc((n + 1) * sizeof *load->workers);
    for (char *line = (char *)text.data, *next; line != NULL && *line != '\0' && load->count < n; line = next) {
        struct worker *w = &load->workers[load->count++];

        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        w->load = load;
        if (token_parse(line, &w->token, diag) != 0)
            fail("%s: line %zu: %s", path, load->count, diag_first(diag));
    }
    buf_fini(&text);
    diag_free(&diag);
}

static void on_input(int fd, int what, void *arg)
{
    struct load *load = arg;
    char bytes[64];

    (void)what;
    if (read(fd, bytes, sizeof bytes) <= 0)
        load->stop = true;
}

static void beat(struct load *load)
{
    struct msg m = {.type = MSG_BEAT, .u.beat = {.n = ++load->beats}};

    for (size_t i = 0; i < load->count; i++)
        if (load->workers[i].welcomed && conn_send(load->workers[i].conn, &m) != 0)
            fail("%s: no sign of life could be sent", load->workers[i].name);
}

static void run(struct load *load)
{
    struct loop_fd *input = loop_fd_new(load->loop, STDIN_FILENO, LOOP_READ, on_input, load);
    int64_t until = clock_mono_ns() + WAIT_NS;
    int64_t beaten = clock_mono_ns();
    bool said = false;

    while (!load->stop) {
        while (load->begun < load->count && load->begun - load->welcomed < AT_A_TIME)
            begin(&load->workers[load->begun++]);
        loop_turn(load->loop, 100 * CLOCK_MS);
        if (load->beat_ns > 0 && clock_mono_ns() - beaten >= load->beat_ns) {
            beaten = clock_mono_ns();
            beat(load);
        }
        if (!said && load->welcomed == load->count) {
            printf("%zu connected\n", load->count);
            fflush(stdout);
            said = true;
        }
        if (!said && clock_mono_ns() > until)
            fail("%zu of %zu are connected", load->welcomed, load->count);
    }
    loop_fd_free(&input);
}

int main(int argc, char **argv)
{
    struct load load = {.loop = loop_new()};

    if (argc != 3 || load.loop == NULL) {
        fputs("usage: idle_workers HOST:PORT TOKENS\n", stderr);
        return 1;
    }
    load.address = argv[1];
    read_tokens(&load, argv[2]);
    run(&load);
    for (size_t i = 0; i < load.count; i++) {
        join_cancel(&load.workers[i].join);
        if (load.workers[i].conn != NULL)
            conn_close(load.workers[i].conn, CLOSE_DONE, NULL, true);
        tls_free(&load.workers[i].tls);
        pki_key_free(&load.workers[i].key);
    }
    free(load.workers);
    loop_free(&load.loop);
    return 0;
}
