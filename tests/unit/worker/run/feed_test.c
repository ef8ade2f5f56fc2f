/* The way out of the spool: order, what is sent again after a break, what frees, how much is under
 * way. The connection is an array. */
#include "worker/run/feed.h"

#include "common/diag.h"
#include "common/err.h"
#include "common/log.h"
#include "tests/unit/worker/run/records.h"
#include "worker/run/spool.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static char dir[FILE_PATH_MAX];
static struct spool *spool;
static struct feed *feed;

static struct wire {
    struct msg_record_id sent[4096];
    size_t count;
    size_t bytes; /* of outputs */
    size_t queued;
    bool closing;
} wire;

static int send_it(const struct msg *msg, void *arg)
{
    cr_assert_eq(arg, &wire);
    if (wire.closing)
        return -ERR_CLOSED;
    cr_assert_lt(wire.count, 4096u);
    cr_assert(msg_record_id(msg, &wire.sent[wire.count++]));
    if (msg->type == MSG_OUTPUT)
        wire.bytes += msg->u.output.bytes.len;
    return 0;
}

static size_t queued(void *arg)
{
    (void)arg;
    return wire.queued;
}

static const struct feed_ops OPS = {.send = send_it, .queued = queued};

static void set_up(void)
{
    struct diag *diag = diag_new(4);

    cr_assert_eq(log_open("test", "/dev/null", LOG_ERROR), 0);
    records_dir(dir);
    cr_assert_eq(spool_open(dir, &spool, diag), 0);
    feed = feed_new(spool, &OPS, &wire);
    diag_free(&diag);
}

static void tear_down(void)
{
    feed_free(&feed);
    spool_close(&spool);
    cr_assert_eq(file_remove_tree(dir), 0);
    log_close();
}

TestSuite(feed, .init = set_up, .fini = tear_down);

static void expect(size_t at, uint64_t run, uint32_t seq)
{
    cr_assert_lt(at, wire.count);
    cr_assert_eq(wire.sent[at].run, run);
    cr_assert_eq(wire.sent[at].seq, seq);
}

static void ack(uint64_t run, uint32_t seq, bool whole)
{
    struct rec_acked a = {.run = run, .attempt = 1, .seq = seq, .whole = whole};

    feed_acked(feed, &a, 1);
}

Test(feed, sends_nothing_before_welcome)
{
    records_spool(spool, 1, 1, 1, 10);
    feed_pump(feed);
    cr_assert_eq(wire.count, 0u);
}

Test(feed, sends_all_in_order_and_frees_what_is_whole)
{
    records_spool(spool, 1, 1, 1, 10);
    records_spool(spool, 2, 1, 0, 0);
    feed_up(feed, NULL, 0);
    cr_assert_eq(wire.count, 5u);
    for (uint32_t i = 0; i < 3; i++)
        expect(i, 1, i);
    expect(3, 2, 0);
    expect(4, 2, 1);
    ack(1, 2, false);
    cr_assert_eq(spool_count(spool), 2u);
    ack(1, 3, true);
    cr_assert_eq(spool_count(spool), 1u);
    cr_assert_not(feed_is_empty(feed));
    ack(2, 2, true);
    cr_assert(feed_is_empty(feed));
    ack(2, 2, true); /* again, of what is gone */
    records_spool(spool, 3, 1, 0, 0);
    feed_pump(feed);
    cr_assert_eq(wire.count, 7u);
    expect(5, 3, 0);
}

Test(feed, begins_after_a_break_where_the_coordinator_stands)
{
    struct rec_acked known[] = {{.run = 1, .attempt = 1, .seq = 2, .whole = false},
                                {.run = 2, .attempt = 1, .seq = 2, .whole = true}};

    records_spool(spool, 1, 1, 3, 10);
    records_spool(spool, 2, 1, 0, 0);
    records_spool(spool, 3, 1, 0, 0);
    feed_up(feed, NULL, 0);
    cr_assert_eq(wire.count, 9u);
    feed_down(feed);
    feed_pump(feed);
    cr_assert_eq(wire.count, 9u);
    wire.count = 0;
    feed_up(feed, known, 2);
    cr_assert_eq(spool_count(spool), 2u, "what WELCOME says is whole is freed");
    cr_assert_eq(wire.count, 5u);
    expect(0, 1, 2);
    expect(1, 1, 3);
    expect(2, 1, 4);
    expect(3, 3, 0);
    expect(4, 3, 1);
}

/* The file of attempt 1 of run 1, spooled first. */
#define FIRST "00000000000000000001-00000000000000000001-0000000001"

static int count_rejected(const char *name, void *arg)
{
    int *n = arg;

    *n += strncmp(name, "rejected-", strlen("rejected-")) == 0;
    return 0;
}

static int rejected(void)
{
    int n = 0;

    cr_assert_eq(file_list(dir, count_rejected, &n), 0);
    return n;
}

/* It is not sent again, neither to this coordinator nor after a start; and nothing is thrown away. */
Test(feed, what_is_refused_is_set_aside_and_not_sent_again)
{
    struct rec_acked no = {.run = 1, .attempt = 1, .seq = 1, .whole = true, .refused = "no such run"};
    struct diag *diag = diag_new(4);
    struct file_stat before, after;
    char path[FILE_PATH_MAX];

    records_spool(spool, 1, 1, 3, 10);
    records_spool(spool, 2, 1, 0, 0);
    cr_assert_eq(file_path(path, sizeof path, dir, FIRST), 0);
    cr_assert_eq(file_stat(path, &before), 0);
    feed_up(feed, NULL, 0);
    feed_acked(feed, &no, 1);
    cr_assert_eq(spool_count(spool), 1u);
    cr_assert_eq(rejected(), 1);
    cr_assert_eq(file_path(path, sizeof path, dir, "rejected-" FIRST), 0);
    cr_assert_eq(file_stat(path, &after), 0);
    cr_assert_eq(after.size, before.size, "its bytes are kept");
    feed_acked(feed, &no, 1);
    feed_down(feed);
    wire.count = 0;
    feed_up(feed, NULL, 0);
    cr_assert_eq(wire.count, 2u);
    expect(0, 2, 0);
    feed_free(&feed);
    spool_close(&spool);
    cr_assert_eq(spool_open(dir, &spool, diag), 0);
    cr_assert_eq(spool_count(spool), 1u, "nor after a start");
    cr_assert_eq(spool_at(spool, 0)->run, 2u);
    cr_assert_eq(rejected(), 1);
    feed = feed_new(spool, &OPS, &wire);
    diag_free(&diag);
}

Test(feed, what_welcome_refuses_is_set_aside_after_the_window)
{
    struct rec_acked no = {.run = 1, .attempt = 1, .seq = 0, .whole = true, .refused = "no such run"};

    records_spool(spool, 1, 1, 0, 0);
    feed_hold(feed, true);
    feed_up(feed, &no, 1);
    cr_assert_eq(rejected(), 0, "nothing is moved while a run is timed");
    feed_hold(feed, false);
    cr_assert_eq(rejected(), 1);
    cr_assert_eq(wire.count, 0u);
    cr_assert(feed_is_empty(feed));
}

Test(feed, a_coordinator_that_forgot_gets_everything_again)
{
    records_spool(spool, 1, 1, 1, 10);
    feed_up(feed, NULL, 0);
    ack(1, 2, false);
    feed_down(feed);
    wire.count = 0;
    struct rec_acked known = {.run = 1, .attempt = 1, .seq = 0, .whole = false};
    feed_up(feed, &known, 1);
    cr_assert_eq(wire.count, 3u);
    expect(0, 1, 0);
}

Test(feed, waits_for_the_connection_and_for_acknowledgements)
{
    for (uint64_t run = 1; run <= 20; run++)
        records_spool(spool, run, 1, 1, 200000);
    wire.queued = FEED_QUEUE_MAX;
    feed_up(feed, NULL, 0);
    cr_assert_eq(wire.count, 0u);
    wire.queued = 0;
    feed_pump(feed);
    cr_assert_gt(wire.count, 0u);
    cr_assert_leq(wire.bytes, (size_t)FEED_FLIGHT_MAX + 200000u);
    cr_assert_geq(wire.bytes, (size_t)FEED_FLIGHT_MAX / 2);
    size_t first = wire.bytes;
    feed_pump(feed);
    cr_assert_eq(wire.bytes, first, "more than allowed is under way");
    for (uint64_t run = 1; run <= 20; run++)
        ack(run, 3, true);
    cr_assert_eq(wire.count, 60u);
    cr_assert(feed_is_empty(feed));
}

Test(feed, is_still_while_held)
{
    records_spool(spool, 1, 1, 0, 0);
    records_spool(spool, 2, 1, 0, 0);
    feed_up(feed, NULL, 0);
    feed_hold(feed, true);
    records_spool(spool, 3, 1, 0, 0);
    feed_pump(feed);
    cr_assert_eq(wire.count, 4u);
    ack(1, 2, true);
    ack(2, 2, true);
    cr_assert_eq(spool_count(spool), 3u, "a file was removed while held");
    feed_hold(feed, false);
    cr_assert_eq(spool_count(spool), 1u);
    cr_assert_eq(wire.count, 6u);
    expect(4, 3, 0);
}

Test(feed, a_closing_connection_loses_nothing)
{
    records_spool(spool, 1, 1, 0, 0);
    wire.closing = true;
    feed_up(feed, NULL, 0);
    cr_assert_eq(wire.count, 0u);
    feed_down(feed);
    wire.closing = false;
    feed_up(feed, NULL, 0);
    cr_assert_eq(wire.count, 2u);
}

Test(feed, skips_what_is_damaged)
{
    static uint8_t bytes[65536];
    char path[FILE_PATH_MAX];
    size_t n;

    records_spool(spool, 1, 1, 0, 0);
    records_file(dir, "0", path);
    records_spool(spool, 2, 1, 0, 0);
    n = records_read(path, bytes, sizeof bytes);
    bytes[40] ^= 1;
    records_write(path, bytes, n);
    feed_up(feed, NULL, 0);
    cr_assert_eq(wire.count, 2u);
    expect(0, 2, 0);
    cr_assert_eq(spool_count(spool), 1u);
}

/* Acknowledgements that make no sense must not free anything. */
Test(feed, believes_no_nonsense)
{
    records_spool(spool, 1, 1, 1, 10);
    feed_up(feed, NULL, 0);
    ack(1, 3, false); /* all of it, and yet not whole */
    ack(1, 4000000000u, false);
    ack(9, 1, true);
    cr_assert_eq(spool_count(spool), 1u);
    records_spool(spool, 2, 1, 0, 0);
    feed_pump(feed);
    feed_hold(feed, true);
    ack(1, 3, false);
    ack(2, 2, true);
    feed_hold(feed, false);
    cr_assert_eq(spool_count(spool), 1u, "what is not said to be whole was freed");
    cr_assert_eq(spool_at(spool, 0)->run, 1u);
    ack(1, 0, false);
    feed_down(feed);
    wire.count = 0;
    feed_up(feed, NULL, 0);
    cr_assert_eq(wire.count, 3u);
}

/* Random breaks, acknowledgements and holds: every record arrives, none before its predecessor. */
Test(feed, delivers_everything_whatever_happens)
{
    enum { RUNS = 60 };
    uint32_t have[RUNS + 1] = {0};
    uint32_t seed = 12345;
    size_t done = 0, spooled = 0;
    bool up = false, held = false;

    for (int step = 0; done < RUNS; step++) {
        cr_assert_lt(step, 100000, "%zu of %d delivered", done, RUNS);
        seed = seed * 1664525u + 1013904223u;
        switch (seed >> 24 & 7) {
        case 0:
            if (spooled < RUNS)
                records_spool(spool, ++spooled, 1, seed >> 8 & 3, 500);
            break;
        case 1:
            held = !held;
            feed_hold(feed, held);
            break;
        case 2:
            if (up)
                feed_down(feed);
            up = false;
            break;
        case 3:
            if (!up) {
                struct rec_acked known[RUNS];
                size_t n = 0;

                wire.count = 0;
                for (uint64_t run = 1; run <= spooled; run++)
                    if (spool_find(spool, run, 1, 0) < spool_count(spool))
                        known[n++] = (struct rec_acked){.run = run, .attempt = 1, .seq = have[run]};
                feed_up(feed, known, n);
            }
            up = true;
            break;
        default:
            feed_pump(feed);
            break;
        }
        for (size_t i = 0; i < wire.count; i++) {
            uint64_t run = wire.sent[i].run;

            cr_assert_leq(wire.sent[i].seq, have[run], "a gap in run %d", (int)run);
            if (wire.sent[i].seq == have[run])
                have[run]++;
        }
        wire.count = 0;
        if (up && (seed >> 16 & 1) != 0)
            for (uint64_t run = 1; run <= spooled; run++) {
                size_t at = spool_find(spool, run, 1, 0);

                if (at == spool_count(spool) || have[run] == 0)
                    continue;
                bool whole = have[run] == spool_at(spool, at)->count;
                ack(run, have[run], whole);
            }
        done = 0;
        for (uint64_t run = 1; run <= spooled; run++)
            done += spool_find(spool, run, 1, 0) == spool_count(spool);
    }
}
