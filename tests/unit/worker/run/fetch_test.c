/* fetch_test.c: archives come in pieces over a link that may go away, are checked, kept, and
 * thrown away in order. */
#include "worker/run/fetch.h"

#include "common/attr.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/str.h"
#include "proto/digest.h"
#include "tests/unit/worker/work.h"
#include "worker/os/os.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the coordinator has. */
struct stock {
    uint8_t *bytes;
    size_t n;
    uint8_t hash[DIGEST_MAX];
    char hex[65];
};

struct bench {
    struct loop *loop;
    struct fetch *fetch;
    struct diag *diag;
    char *dir;
    char *blobs;
    uint64_t budget;
    const struct stock *stock;
    struct loop_timer *answer; /* a link answers later, not at once */
    struct {
        uint64_t offset;
        uint32_t length;
    } asked[64];
    size_t asked_count, answered;
    size_t pieces;     /* answers given */
    size_t stop_after; /* answers, then silence; 0: never */
    int lie;           /* which answer is falsified, from 1 */
    bool short_pieces;
    bool done;
    int code;
    char path[600];
    char text[600];
};

static void make_stock(struct stock *s, size_t n, unsigned seed)
{
    s->bytes = malloc(n + 1);
    cr_assert(s->bytes != NULL);
    s->n = n;
    for (size_t i = 0; i < n; i++)
        s->bytes[i] = (uint8_t)((i * 2654435761u + seed) >> 7);
    digest_sha256(s->bytes, n, s->hash);
    str_hex(s->hex, s->hash, 32);
}

static void ask(const uint8_t hash[FETCH_HASH], uint64_t offset, uint32_t length, void *arg)
{
    struct bench *b = arg;

    cr_assert_eq(memcmp(hash, b->stock->hash, 32), 0);
    cr_assert(length > 0 && length <= FETCH_PIECE && offset + length <= b->stock->n);
    cr_assert(b->asked_count < ARRAY_LEN(b->asked));
    b->asked[b->asked_count].offset = offset;
    b->asked[b->asked_count++].length = length;
    loop_timer_set(b->answer, 0);
}

static void answer(void *arg)
{
    struct bench *b = arg;
    const struct stock *s = b->stock;

    if (b->answered == b->asked_count || (b->stop_after > 0 && b->pieces == b->stop_after))
        return;
    {
        uint64_t offset = b->asked[b->answered].offset;
        uint32_t length = b->asked[b->answered].length;
        uint8_t *copy = malloc(length);

        cr_assert(copy != NULL);
        b->answered++;
        b->pieces++;
        if (b->short_pieces && length > 1000)
            length = 1000;
        memcpy(copy, s->bytes + offset, length);
        if (b->lie == (int)b->pieces)
            copy[length / 2] ^= 1;
        if (b->answered == b->asked_count)
            b->answered = b->asked_count = 0;
        fetch_data(b->fetch, s->hash, offset, s->n, copy, length);
        free(copy);
    }
    if (b->answered < b->asked_count)
        loop_timer_set(b->answer, 0);
}

static void start(struct bench *b)
{
    struct fetch_conf conf = {.dir = b->blobs, .budget = b->budget, .ask = ask, .ask_arg = b};

    b->loop = loop_new();
    b->diag = diag_new(4);
    b->answer = loop_timer_new(b->loop, answer, b);
    b->asked_count = b->answered = 0;
    cr_assert_eq(fetch_new(b->loop, &conf, &b->fetch, b->diag), 0, "%s", diag_first(b->diag));
    fetch_link(b->fetch, true);
}

static void stop(struct bench *b)
{
    fetch_free(&b->fetch);
    loop_timer_free(&b->answer);
    loop_free(&b->loop);
    diag_free(&b->diag);
}

static void open_bench(struct bench *b)
{
    memset(b, 0, sizeof(*b));
    b->dir = work_dir_new();
    b->blobs = work_path(b->dir, "blobs");
    start(b);
}

static void close_bench(struct bench *b)
{
    stop(b);
    free(b->blobs);
    work_dir_remove(&b->dir);
}

static void on_got(const struct fetch_result *r, void *arg)
{
    struct bench *b = arg;

    b->code = r->code;
    (void)snprintf(b->path, sizeof(b->path), "%s", r->path == NULL ? "" : r->path);
    (void)snprintf(b->text, sizeof(b->text), "%s", r->text);
    b->done = true;
}

static void wish(struct bench *b, const struct stock *s)
{
    b->stock = s;
    b->done = false;
    b->pieces = 0;
    cr_assert_eq(fetch_get(b->fetch, s->hash, s->n, on_got, b, b->diag), 0, "%s",
                 diag_first(b->diag));
    cr_assert_not(b->done);
}

static void get(struct bench *b, const struct stock *s)
{
    wish(b, s);
    work_until(b->loop, &b->done);
}

static void expect_same(const struct bench *b, const struct stock *s)
{
    FILE *f = fopen(b->path, "r");
    uint8_t *bytes = malloc(s->n + 1);

    cr_assert(f != NULL && bytes != NULL, "%s", b->path);
    cr_expect_eq(fread(bytes, 1, s->n + 1, f), s->n);
    cr_expect_eq(memcmp(bytes, s->bytes, s->n), 0);
    (void)fclose(f);
    free(bytes);
}

static bool stored(const struct bench *b, const struct stock *s)
{
    char path[700];

    (void)snprintf(path, sizeof(path), "%s/%s", b->blobs, s->hex);
    return work_there(path);
}

Test(fetch, sizes_of_all_kinds)
{
    static const size_t size[] = {0,
                                  1,
                                  FETCH_PIECE - 1,
                                  FETCH_PIECE,
                                  FETCH_PIECE + 1,
                                  3 * FETCH_PIECE,
                                  10 * FETCH_PIECE + 77};

    for (size_t i = 0; i < ARRAY_LEN(size); i++) {
        struct stock s;
        struct bench b;

        open_bench(&b);
        make_stock(&s, size[i], 1);
        get(&b, &s);
        cr_expect_eq(b.code, 0, "%zu: %s", size[i], b.text);
        expect_same(&b, &s);
        cr_expect_eq(b.pieces, (size[i] + FETCH_PIECE - 1) / FETCH_PIECE);
        /* The second time it is there. */
        get(&b, &s);
        cr_expect_eq(b.code, 0);
        cr_expect_eq(b.pieces, 0, "nothing was asked for");
        close_bench(&b);
        free(s.bytes);
    }
}

Test(fetch, taken_up_again_after_a_restart)
{
    struct stock s;
    struct bench b;
    uint64_t have, size;

    open_bench(&b);
    make_stock(&s, 9 * FETCH_PIECE + 5, 2);
    b.stop_after = 5;
    wish(&b, &s);
    cr_assert(fetch_progress(b.fetch, &have, &size));
    cr_expect_eq(size, s.n);
    do {
        loop_turn(b.loop, CLOCK_MS);
        cr_assert(fetch_progress(b.fetch, &have, &size));
    } while (have < 5 * FETCH_PIECE);
    stop(&b);
    b.stop_after = 0;
    start(&b);
    get(&b, &s);
    cr_expect_eq(b.code, 0, "%s", b.text);
    cr_expect_eq(b.pieces, 5, "only what was missing: %zu", b.pieces);
    expect_same(&b, &s);
    cr_expect_not(fetch_progress(b.fetch, &have, &size));
    close_bench(&b);
    free(s.bytes);
}

Test(fetch, a_link_that_comes_and_goes)
{
    struct stock s;
    struct bench b;

    open_bench(&b);
    make_stock(&s, 6 * FETCH_PIECE, 3);
    fetch_link(b.fetch, false);
    wish(&b, &s);
    work_turn(b.loop, 50 * CLOCK_MS);
    cr_expect_eq(b.asked_count, 0, "nobody is there to be asked");
    b.stop_after = 2;
    fetch_link(b.fetch, true);
    work_turn(b.loop, 50 * CLOCK_MS);
    cr_expect_eq(b.pieces, 2);
    fetch_link(b.fetch, false);
    b.asked_count = b.answered = 0; /* what was on its way is lost */
    b.stop_after = 0;
    fetch_link(b.fetch, true);
    work_until(b.loop, &b.done);
    cr_expect_eq(b.code, 0, "%s", b.text);
    expect_same(&b, &s);
    close_bench(&b);
    free(s.bytes);
}

Test(fetch, short_pieces_and_strange_ones)
{
    struct stock s;
    struct bench b;

    open_bench(&b);
    make_stock(&s, 5000, 4);
    b.short_pieces = true;
    wish(&b, &s);
    /* Not asked for: ignored. */
    fetch_data(b.fetch, s.hash, 0, s.n, s.bytes, 10);
    cr_assert_eq(b.code, 0);
    loop_turn(b.loop, CLOCK_MS);
    fetch_data(b.fetch, s.hash, 4000, s.n, s.bytes + 4000, 100);
    {
        uint8_t other[32] = {9};

        fetch_data(b.fetch, other, 0, 10, s.bytes, 10);
        fetch_none(b.fetch, other, "gone");
    }
    for (int i = 0; i < 20 && !b.done; i++) {
        work_turn(b.loop, 5 * CLOCK_MS);
        /* A coordinator that sends less than was asked has the rest asked for when the silence
         * is over, or when the link comes anew. */
        fetch_link(b.fetch, true);
    }
    work_until(b.loop, &b.done);
    cr_expect_eq(b.code, 0, "%s", b.text);
    expect_same(&b, &s);
    close_bench(&b);
    free(s.bytes);
}

Test(fetch, what_the_coordinator_does_not_have)
{
    struct stock s;
    struct bench b;

    open_bench(&b);
    make_stock(&s, 5000, 5);
    b.stop_after = 1;
    b.pieces = 1;
    wish(&b, &s);
    b.pieces = 1;
    loop_turn(b.loop, CLOCK_MS);
    loop_turn(b.loop, CLOCK_MS);
    fetch_none(b.fetch, s.hash, "it was deleted");
    work_until(b.loop, &b.done);
    cr_expect_eq(b.code, -ERR_NOTFOUND);
    cr_expect(strstr(b.text, "it was deleted") != NULL, "%s", b.text);
    close_bench(&b);
    free(s.bytes);
}

Test(fetch, false_bytes)
{
    struct stock s;
    struct bench b;

    open_bench(&b);
    make_stock(&s, 3 * FETCH_PIECE, 6);
    b.lie = 2;
    get(&b, &s);
    cr_expect_eq(b.code, -ERR_CHECKSUM);
    cr_expect_not(stored(&b, &s));
    b.lie = 0;
    get(&b, &s);
    cr_expect_eq(b.code, 0, "and from the start again: %s", b.text);
    cr_expect_eq(b.pieces, 3);
    expect_same(&b, &s);
    close_bench(&b);
    free(s.bytes);
}

Test(fetch, a_size_that_is_not_the_announced_one)
{
    struct stock s;
    struct bench b;

    open_bench(&b);
    make_stock(&s, 5000, 7);
    b.stop_after = 1;
    wish(&b, &s);
    b.pieces = 1;
    loop_turn(b.loop, CLOCK_MS);
    loop_turn(b.loop, CLOCK_MS);
    fetch_data(b.fetch, s.hash, 0, 6000, s.bytes, 1000);
    work_until(b.loop, &b.done);
    cr_expect_eq(b.code, -ERR_PROTO);
    close_bench(&b);
    free(s.bytes);
}

Test(fetch, damage_on_the_disk_is_seen_and_mended)
{
    struct stock s;
    struct bench b;

    open_bench(&b);
    make_stock(&s, 2 * FETCH_PIECE, 8);
    get(&b, &s);
    cr_assert_eq(work_sh("printf x | dd of=%s bs=1 seek=70000 conv=notrunc 2>/dev/null", b.path),
                 0);
    get(&b, &s);
    cr_expect_eq(b.code, 0, "%s", b.text);
    cr_expect_eq(b.pieces, 2, "fetched again");
    expect_same(&b, &s);
    /* A damaged part is found out at the end, and does not stay. */
    stop(&b);
    cr_assert_eq(work_sh("cd %s && mv %s %s.part && printf y | dd of=%s.part bs=1 seek=9 "
                         "conv=notrunc 2>/dev/null",
                         b.blobs, s.hex, s.hex, s.hex),
                 0);
    start(&b);
    get(&b, &s);
    cr_expect_eq(b.code, -ERR_CHECKSUM);
    get(&b, &s);
    cr_expect_eq(b.code, 0);
    cr_assert_eq(work_sh("cd %s && truncate -s 999999999 %s", b.blobs, s.hex), 0);
    get(&b, &s);
    cr_expect_eq(b.code, 0, "too long");
    expect_same(&b, &s);
    close_bench(&b);
    free(s.bytes);
}

Test(fetch, the_least_recently_used_go_first)
{
    struct stock s[4];
    struct bench b;

    open_bench(&b);
    stop(&b);
    b.budget = 3 * FETCH_PIECE;
    start(&b);
    for (unsigned i = 0; i < 4; i++)
        make_stock(&s[i], FETCH_PIECE, 10 + i);
    get(&b, &s[0]);
    get(&b, &s[1]);
    get(&b, &s[2]);
    get(&b, &s[0]);
    /* The order outlives a restart. */
    stop(&b);
    start(&b);
    get(&b, &s[3]);
    cr_expect(stored(&b, &s[0]) && !stored(&b, &s[1]) && stored(&b, &s[2]) && stored(&b, &s[3]));
    /* What is in use stays though it is the oldest. */
    fetch_keep(b.fetch, s[2].hash);
    get(&b, &s[1]);
    cr_expect(!stored(&b, &s[0]) && stored(&b, &s[1]) && stored(&b, &s[2]) && stored(&b, &s[3]));
    fetch_keep(b.fetch, NULL);
    /* A smaller budget holds from the start on. */
    stop(&b);
    b.budget = FETCH_PIECE;
    start(&b);
    cr_expect(!stored(&b, &s[0]) && stored(&b, &s[1]) && !stored(&b, &s[2]) && !stored(&b, &s[3]));
    close_bench(&b);
    for (int i = 0; i < 4; i++)
        free(s[i].bytes);
}

Test(fetch, one_wish_at_a_time_and_taken_back)
{
    struct stock s;
    struct bench b;

    open_bench(&b);
    make_stock(&s, 3 * FETCH_PIECE, 20);
    wish(&b, &s);
    cr_expect_eq(fetch_get(b.fetch, s.hash, s.n, on_got, &b, b.diag), -ERR_BUSY);
    fetch_cancel(b.fetch);
    work_turn(b.loop, 30 * CLOCK_MS);
    cr_expect_not(b.done);
    b.asked_count = b.answered = 0;
    get(&b, &s);
    cr_expect_eq(b.code, 0);
    expect_same(&b, &s);
    close_bench(&b);
    free(s.bytes);
}

Test(fetch, strange_files_in_the_folder)
{
    struct stock s;
    struct bench b;

    open_bench(&b);
    make_stock(&s, 1000, 21);
    get(&b, &s);
    stop(&b);
    cr_assert_eq(work_sh("cd %s && touch other ABC index.tmp && mkdir %s.part && echo 'not an "
                         "index' >index && cp %s x",
                         b.blobs,
                         "0000000000000000000000000000000000000000000000000000000000000000", s.hex),
                 0);
    start(&b);
    get(&b, &s);
    cr_expect_eq(b.code, 0);
    cr_expect_eq(b.pieces, 0);
    close_bench(&b);
    free(s.bytes);
}

Test(fetch, a_full_disk_takes_older_archives)
{
    struct stock a, c;
    struct bench b;

    if (!os_is_root())
        return;
    memset(&b, 0, sizeof(b));
    b.dir = work_dir_new();
    b.blobs = work_path(b.dir, "blobs");
    cr_assert_eq(mkdir(b.blobs, 0700), 0);
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", b.blobs, "tmpfs", 0, "size=2m") != 0) {
        free(b.blobs);
        work_dir_remove(&b.dir);
        return;
    }
    start(&b);
    make_stock(&a, 5 * FETCH_PIECE, 30);
    make_stock(&c, 6 * FETCH_PIECE, 31);
    get(&b, &a);
    cr_assert_eq(b.code, 0);
    get(&b, &c);
    cr_expect_eq(b.code, 0, "%s", b.text);
    expect_same(&b, &c);
    cr_expect_not(stored(&b, &a));
    /* With nothing left to give, it says so. */
    fetch_keep(b.fetch, c.hash);
    get(&b, &a);
    cr_expect_eq(b.code, -ERR_FULL);
    cr_expect(strstr(b.text, "the disk is full") != NULL, "%s", b.text);
    stop(&b);
    cr_assert_eq(umount(b.blobs), 0);
    free(b.blobs);
    free(a.bytes);
    free(c.bytes);
    work_dir_remove(&b.dir);
}
