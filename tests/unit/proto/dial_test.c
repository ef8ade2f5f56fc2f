/* Dialling again: pauses and their growth, what resets them, giving up, holding, and the wait for
 * WELCOME. No pause is waited for: each is read from its event and then cut short. */
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/str.h"
#include "proto/dial.h"
#include "tests/unit/proto/wire.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct wire wire;

static struct {
    struct dial *dial;
    unsigned opens, messages, drains, closes, gave_up;
    enum close_reason reason;
    bool by_peer, welcomed;
    int64_t again_ns;
    char text[1200];
    enum { NOTHING, WELCOME_AT_OPEN, FREE_AT_OPEN, FREE_AT_MESSAGE, FREE_AT_CLOSED } then;
} seen;

static void set_up(void)
{
    wire_init(&wire);
    memset(&seen, 0, sizeof(seen));
}

static void tear_down(void)
{
    dial_free(&seen.dial);
    wire_fini(&wire);
}

TestSuite(dial, .init = set_up, .fini = tear_down);

static void on_dial(struct dial *dial, const struct dial_event *event, void *arg)
{
    cr_assert_eq(arg, &seen);
    cr_assert_eq(dial, seen.dial);
    int then = NOTHING;
    switch (event->kind) {
    case DIAL_OPEN:
        seen.opens++;
        cr_assert_eq(event->conn, dial_conn(dial));
        cr_assert_not_null(event->conn);
        then = FREE_AT_OPEN;
        if (seen.then == WELCOME_AT_OPEN) {
            dial_welcomed(dial);
        }
        break;
    case DIAL_MESSAGE:
        seen.messages++;
        cr_assert_not_null(event->msg);
        then = FREE_AT_MESSAGE;
        break;
    case DIAL_DRAINED:
        seen.drains++;
        break;
    case DIAL_CLOSED:
    case DIAL_GAVE_UP:
        cr_assert_null(dial_conn(dial));
        seen.closes++;
        seen.gave_up += event->kind == DIAL_GAVE_UP;
        seen.reason = event->reason;
        seen.by_peer = event->by_peer;
        seen.welcomed = event->welcomed;
        seen.again_ns = event->again_ns;
        str_copy(seen.text, sizeof(seen.text), event->text);
        then = FREE_AT_CLOSED;
        break;
    }
    if (seen.then == (unsigned)then && then != NOTHING) {
        dial_free(&seen.dial);
    }
}

static void start(struct dial_config config)
{
    config.loop = wire.loop;
    config.tls = config.tls != NULL ? config.tls : wire.client;
    config.address = wire.address;
    struct diag *diag = diag_new(1);
    cr_assert_eq(dial_new(&config, on_dial, &seen, &seen.dial, diag), 0, "%s", diag_first(diag));
    diag_free(&diag);
}

/* Keeps a port of loopback from everybody; nobody listens on it. */
static int dead_port(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    cr_assert_eq(getsockname(fd, (struct sockaddr *)&addr, &size), 0);
    snprintf(wire.address, sizeof(wire.address), "127.0.0.1:%u", (unsigned)ntohs(addr.sin_port));
    return fd;
}

static void expect_pause(int64_t full)
{
    cr_expect(seen.again_ns >= full / 2 && seen.again_ns <= full,
              "%" PRId64 " ms after %u failures", seen.again_ns / CLOCK_MS,
              dial_failures(seen.dial));
}

Test(dial, pauses_grow_to_a_minute)
{
    int fd = dead_port();
    start((struct dial_config){0});
    static const int seconds[] = {1, 2, 4, 8, 16, 32, 60};
    for (unsigned i = 0; i < 60; i++) {
        WIRE_WAIT(&wire, seen.closes == i + 1);
        cr_expect_eq(dial_failures(seen.dial), i + 1);
        cr_expect_eq(seen.reason, CLOSE_DIAL);
        cr_expect(!seen.welcomed);
        expect_pause(seconds[i < ARRAY_LEN(seconds) ? i : ARRAY_LEN(seconds) - 1] * CLOCK_SEC);
        dial_now(seen.dial);
    }
    cr_expect_eq(seen.gave_up, 0);
    cr_expect(strstr(seen.text, "Connection refused") != NULL, "%s", seen.text);
    cr_expect_str_eq(dial_address(seen.dial), wire.address);
    close(fd);
}

Test(dial, pauses_are_not_all_the_same)
{
    int fd = dead_port();
    int64_t first = 0;
    bool differ = false;
    for (int i = 0; i < 5; i++) {
        unsigned closes = seen.closes;
        start((struct dial_config){0});
        WIRE_WAIT(&wire, seen.closes > closes);
        differ = differ || (i > 0 && seen.again_ns != first);
        first = seen.again_ns;
        dial_free(&seen.dial);
    }
    cr_expect(differ);
    close(fd);
}

Test(dial, it_really_dials_again)
{
    int fd = dead_port();
    start((struct dial_config){0});
    WIRE_WAIT(&wire, seen.closes == 1);
    int64_t began = clock_mono_ns();
    int64_t again_ns = seen.again_ns;
    WIRE_WAIT(&wire, seen.closes == 2);
    cr_expect_geq(clock_mono_ns() - began + CLOCK_MS, again_ns);
    close(fd);
}

Test(dial, only_welcome_resets)
{
    wire_listen(&wire);
    start((struct dial_config){0});
    for (unsigned i = 1; i <= 3; i++) { /* open, and closed without WELCOME */
        WIRE_WAIT(&wire,
                  seen.opens == i && wire.n_accepted == i && wire.accepted[i - 1].opens == 1);
        cr_expect(!dial_is_welcomed(seen.dial));
        conn_close(wire.accepted[i - 1].conn, CLOSE_SHUTDOWN, "restart", false);
        WIRE_WAIT(&wire, seen.closes == i);
        cr_expect_eq(seen.reason, CLOSE_SHUTDOWN);
        cr_expect(seen.by_peer);
        cr_expect_str_eq(seen.text, "restart");
        cr_expect(!seen.welcomed);
        cr_expect_eq(dial_failures(seen.dial), i);
        expect_pause((CLOCK_SEC / 2) << i);
        dial_now(seen.dial);
    }
    seen.then = WELCOME_AT_OPEN;
    WIRE_WAIT(&wire, seen.opens == 4 && wire.n_accepted == 4 && wire.accepted[3].opens == 1);
    cr_expect(dial_is_welcomed(seen.dial));
    cr_expect_eq(dial_failures(seen.dial), 0);
    conn_close(wire.accepted[3].conn, CLOSE_SHUTDOWN, NULL, false);
    WIRE_WAIT(&wire, seen.closes == 4);
    cr_expect(seen.welcomed);
    cr_expect_eq(dial_failures(seen.dial), 0);
    expect_pause(CLOCK_SEC);
}

Test(dial, messages_pass)
{
    wire_listen(&wire);
    seen.then = WELCOME_AT_OPEN;
    start((struct dial_config){0});
    WIRE_WAIT(&wire, seen.opens == 1 && wire.n_accepted == 1 && wire.accepted[0].opens == 1);
    struct msg msg = {.type = MSG_BEAT, .u.beat = {.n = 1}};
    cr_assert_eq(conn_send(dial_conn(seen.dial), &msg), 0);
    cr_assert_eq(wire_beat(&wire.accepted[0], 1), 0);
    WIRE_WAIT(&wire, seen.messages == 1 && seen.drains == 1 && wire.accepted[0].messages == 1);
    dial_now(seen.dial); /* nothing to do */
    dial_hold(seen.dial, true);
    cr_assert_eq(wire_beat(&wire.accepted[0], 2), 0); /* what stands goes on */
    WIRE_WAIT(&wire, seen.messages == 2);
    cr_expect_eq(seen.closes, 0);
}

Test(dial, no_welcome_in_time)
{
    wire_listen(&wire);
    start((struct dial_config){.welcome_ns = 50 * CLOCK_MS});
    WIRE_WAIT(&wire, seen.closes == 1);
    cr_expect_eq(seen.opens, 1);
    cr_expect_eq(seen.reason, CLOSE_HELLO_TIMEOUT);
    cr_expect(!seen.by_peer);
    cr_expect_str_eq(seen.text, "no WELCOME came in 50ms");
    expect_pause(CLOCK_SEC);
}

Test(dial, welcomed_in_time)
{
    wire_listen(&wire);
    seen.then = WELCOME_AT_OPEN;
    start((struct dial_config){.welcome_ns = 50 * CLOCK_MS});
    WIRE_WAIT(&wire, seen.opens == 1);
    int64_t until = clock_mono_ns() + 100 * CLOCK_MS;
    WIRE_WAIT(&wire, clock_mono_ns() > until);
    cr_expect_eq(seen.closes, 0);
}

static void expect_gave_up(bool hourly)
{
    struct pki_id id;
    cr_assert_eq(pki_cert_id(wire.worker.cert, &id, NULL), 0);
    wire.server_world.revoked = id.serial;
    wire_listen(&wire);
    start((struct dial_config){.hourly = hourly});
    WIRE_WAIT(&wire, seen.closes == 1);
    cr_expect_eq(seen.gave_up, 1);
    cr_expect_eq(seen.reason, CLOSE_REVOKED);
    cr_expect(strstr(seen.text, "was revoked: an admin must make a new token") != NULL, "%s",
              seen.text);
    if (hourly) {
        cr_expect(seen.again_ns > 50 * CLOCK_MIN && seen.again_ns <= 60 * CLOCK_MIN);
    } else {
        cr_expect_lt(seen.again_ns, 0);
    }
    wire.server_world.revoked = NULL; /* and somebody asks for another attempt */
    dial_now(seen.dial);
    WIRE_WAIT(&wire, wire.n_accepted == 1);
}

Test(dial, a_worker_gives_up_for_an_hour)
{
    expect_gave_up(true);
}

Test(dial, a_command_gives_up_for_good)
{
    expect_gave_up(false);
}

Test(dial, once_is_once)
{
    int fd = dead_port();
    start((struct dial_config){.once = true});
    WIRE_WAIT(&wire, seen.closes == 1);
    cr_expect_eq(seen.gave_up, 0);
    cr_expect_lt(seen.again_ns, 0);
    close(fd);
}

Test(dial, nothing_is_begun_while_held)
{
    wire_listen(&wire);
    start((struct dial_config){0});
    dial_hold(seen.dial, true);
    for (int i = 0; i < 20; i++) {
        loop_turn(wire.loop, CLOCK_MS);
    }
    cr_expect_eq(conn_listener_count(wire.listener), 0);
    dial_hold(seen.dial, true);
    dial_hold(seen.dial, false);
    WIRE_WAIT(&wire, seen.opens == 1);
}

Test(dial, a_hold_before_the_pause_is_over_changes_nothing)
{
    int fd = dead_port();
    start((struct dial_config){0});
    WIRE_WAIT(&wire, seen.closes == 1);
    dial_hold(seen.dial, true);
    dial_hold(seen.dial, false);
    for (int i = 0; i < 20; i++) {
        loop_turn(wire.loop, 0);
    }
    cr_expect_eq(seen.closes, 1);
    close(fd);
}

Test(dial, a_close_by_the_owner_dials_again)
{
    wire_listen(&wire);
    seen.then = WELCOME_AT_OPEN;
    start((struct dial_config){0});
    WIRE_WAIT(&wire, seen.opens == 1);
    conn_close(dial_conn(seen.dial), CLOSE_SILENT, NULL, false);
    WIRE_WAIT(&wire, seen.closes == 1);
    cr_expect_eq(seen.reason, CLOSE_SILENT);
    cr_expect(seen.welcomed);
    dial_now(seen.dial);
    WIRE_WAIT(&wire, seen.opens == 2);
}

Test(dial, freed_while_connected)
{
    wire_listen(&wire);
    start((struct dial_config){0});
    WIRE_WAIT(&wire, seen.opens == 1 && wire.n_accepted == 1 && wire.accepted[0].opens == 1);
    dial_free(&seen.dial);
    cr_expect_null(seen.dial);
    WIRE_WAIT(&wire, wire.accepted[0].closes == 1);
    cr_expect_eq(wire.accepted[0].reason, CLOSE_SHUTDOWN);
    cr_expect(wire.accepted[0].by_peer);
    cr_expect_eq(seen.closes, 0);
}

Test(dial, freed_in_each_state)
{
    wire_listen(&wire);
    start((struct dial_config){0}); /* before the first attempt */
    dial_free(&seen.dial);
    start((struct dial_config){0}); /* under way */
    loop_turn(wire.loop, 0);
    dial_free(&seen.dial);
    start((struct dial_config){0});
    dial_hold(seen.dial, true); /* due */
    loop_turn(wire.loop, 0);
    dial_free(&seen.dial);
    for (int i = 0; i < 20; i++) {
        loop_turn(wire.loop, CLOCK_MS);
    }
    cr_expect_eq(seen.opens + seen.closes, 0);
}

Test(dial, freed_from_within_its_callbacks)
{
    wire_listen(&wire);
    seen.then = FREE_AT_OPEN;
    start((struct dial_config){0});
    WIRE_WAIT(&wire, seen.opens == 1 && wire.n_accepted == 1 && wire.accepted[0].closes == 1);
    cr_expect_null(seen.dial);

    seen.then = FREE_AT_MESSAGE;
    start((struct dial_config){0});
    WIRE_WAIT(&wire, wire.n_accepted == 2 && wire.accepted[1].opens == 1);
    cr_assert_eq(wire_beat(&wire.accepted[1], 1), 0);
    cr_assert_eq(wire_beat(&wire.accepted[1], 2), 0);
    WIRE_WAIT(&wire, wire.accepted[1].closes == 1);
    cr_expect_eq(seen.messages, 1);

    seen.then = FREE_AT_CLOSED;
    start((struct dial_config){0});
    WIRE_WAIT(&wire, wire.n_accepted == 3 && wire.accepted[2].opens == 1);
    conn_close(wire.accepted[2].conn, CLOSE_STORE, NULL, false);
    WIRE_WAIT(&wire, seen.closes == 1);
    cr_expect_null(seen.dial);
    for (int i = 0; i < 10; i++) {
        loop_turn(wire.loop, 0);
    }
}

Test(dial, malformed_address)
{
    struct dial_config config = {.loop = wire.loop, .tls = wire.client, .address = "nowhere"};
    struct diag *diag = diag_new(1);
    cr_expect_eq(dial_new(&config, on_dial, &seen, &seen.dial, diag), -ERR_INVAL);
    cr_expect_null(seen.dial);
    cr_expect(strstr(diag_first(diag), "\"nowhere\" is not an address") != NULL);
    diag_free(&diag);
}
