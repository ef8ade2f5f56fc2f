/* submit_test.c: sweep files on their way from the operator's command to a real coordinator:
 * mistakes, settings, sources that are read where the command runs, following. */
#include "coordinator/ctl/submit.h"

#include "common/err.h"
#include "common/fileio.h"
#include "common/str.h"
#include "coordinator/coord.h"
#include "coordinator/ctl/call.h"
#include "coordinator/ctl/ctl.h"
#include "coordinator/ctl/follow.h"
#include "coordinator/ctl/opts.h"
#include "coordinator/ctl/sources.h"
#include "common/mem.h"
#include "common/proc.h"
#include "proto/digest.h"
#include "tests/unit/proto/source_help.h"
#include "tests/unit/whole/house.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct opts_row SET[] = {{"set", 's', "NAME=VALUE", ""}};

struct cast {
    struct house h;
    struct bench bench;
    struct ident p6, ann;
    struct guest *worker, *admin;
    struct ctl ctl;
    struct opts opts;
    struct call *call;
    struct buf out;
};

static void begin(struct cast *c)
{
    memset(c, 0, sizeof(*c));
    bench_open(&c->bench);
    house_init(&c->h);
    house_start(&c->h);
    house_admit(&c->h, ROLE_WORKER, "p6", &c->p6);
    house_admit(&c->h, ROLE_ADMIN, "ann", &c->ann);
    c->worker = house_welcome(&c->h, &c->p6);
    c->admin = house_welcome(&c->h, &c->ann);
    c->opts = (struct opts){.rows = SET, .row_count = 1};
    c->ctl = (struct ctl){.loop = c->h.loop,
                          .program = "makespan",
                          .home = c->h.operator_dir,
                          .address = c->h.address,
                          .diag = diag_new(1000)};
    cr_assert_eq(chdir(c->bench.dir), 0);
}

static void finish(struct cast *c)
{
    cr_assert_eq(chdir("/"), 0);
    call_close(&c->call);
    house_fini(&c->h);
    bench_close(&c->bench);
    ident_free(&c->p6);
    ident_free(&c->ann);
    diag_free(&c->ctl.diag);
    buf_fini(&c->out);
}

static int submit(struct cast *c, const char *action, const char *file)
{
    struct submit s = {.action = action, .file = file, .yes = true};
    buf_reset(&c->out);
    diag_clear(c->ctl.diag);
    return submit_sweep(&c->ctl, &c->opts, &s, &c->call, &c->out);
}

static void write_file(const char *name, const char *text)
{
    cr_assert_eq(file_write_atomic(name, text, strlen(text), 0644), 0);
}

/* All that stands in ctl->diag. */
static const char *said(struct cast *c)
{
    static char text[65536];
    struct buf out = BUF_INIT;
    diag_print(c->ctl.diag, &out);
    str_copy(text, sizeof(text), buf_str(&out));
    buf_fini(&out);
    return text;
}

#define REST "hosts: [p6]\njobs: [1]\nrepeat: {warmup: 0, until: 1}\n"

/* --- mistakes --- */

Test(ctl_submit, ten_mistakes_are_told_at_once_before_anybody_is_asked)
{
    static const char *const places[] = {"s.yaml:2:", "s.yaml:3:",  "s.yaml:4:",  "s.yaml:5:",
                                         "s.yaml:6:", "s.yaml:7:",  "s.yaml:8:",  "s.yaml:9:",
                                         "s.yaml:10:", "s.yaml:11:"};
    struct cast c;
    begin(&c);
    write_file("s.yaml", "sweep: ten\n"
                         "colour: red\n"
                         "workload: {run: make, timeout: {run: soon}}\n"
                         "variants: [{name: a}, {name: a}]\n"
                         "jobs: [0]\n"
                         "tolerance: much\n"
                         "priority: highest\n"
                         "order: random\n"
                         "repeat: {warmup: -1, until: 3}\n"
                         "retry: {invalid: many}\n"
                         "base: z\n"
                         "hosts: [p6]\n");
    cr_expect_eq(submit(&c, "run", "s.yaml"), CTL_USAGE);
    cr_expect_geq(diag_errors(c.ctl.diag), 10);
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        EXPECT_HAS(said(&c), places[i]);
    }
    cr_expect_null(c.call, "nobody was asked");
    cr_expect_eq(submit_check(&c.ctl, &c.opts, "s.yaml"), CTL_USAGE);
    finish(&c);
}

Test(ctl_submit, a_file_that_is_none_and_one_that_is_too_long)
{
    struct cast c;
    begin(&c);
    cr_expect_eq(submit(&c, "check", "nix.yaml"), CTL_USAGE);
    EXPECT_HAS(said(&c), "nix.yaml cannot be read");
    cr_expect_eq(submit(&c, "check", "."), CTL_USAGE);
    struct buf text = BUF_INIT;
    buf_add_str(&text, "sweep: t\nworkload: {run: make}\nvariants: [{name: a}]\n" REST);
    while (text.len <= 2 * 1024 * 1024) {
        buf_add_str(&text, "# a comment that makes it longer and longer\n");
    }
    write_file("long.yaml", buf_str(&text));
    cr_expect_eq(submit(&c, "check", "long.yaml"), CTL_USAGE);
    EXPECT_HAS(said(&c), "long.yaml: a sweep file has at most 1 MiB");
    cr_expect_null(c.call);
    buf_fini(&text);
    finish(&c);
}

/* In one request while it fits there, in pieces before it up to the limit. */
Test(ctl_submit, a_file_that_fills_its_limit_is_taken)
{
    struct cast c;
    begin(&c);
    for (size_t size = 700 * 1024; size <= 1024 * 1024; size += 108 * 1024) {
        struct buf text = BUF_INIT;
        buf_add_str(&text, "sweep: t\nworkload: {run: make}\nvariants: [{name: a}]\n" REST);
        while (text.len + 9 <= size) {
            buf_add_str(&text, "# longer\n");
        }
        write_file("big.yaml", buf_str(&text));
        cr_expect_eq(submit(&c, "check", "big.yaml"), 0, "%zu: %s", size, said(&c));
        buf_fini(&text);
    }
    /* Exactly 1 MiB, to its last line. */
    struct buf text = BUF_INIT;
    buf_add_str(&text, "sweep: big\nworkload: {run: make}\nvariants: [{name: a}]\n");
    while (text.len + 9 + strlen(REST) <= 1024 * 1024) {
        buf_add_str(&text, "# longer\n");
    }
    while (text.len + strlen(REST) < 1024 * 1024) {
        buf_add_str(&text, "\n");
    }
    buf_add_str(&text, REST);
    cr_assert_eq(text.len, 1024 * 1024);
    write_file("big.yaml", buf_str(&text));
    cr_expect_eq(submit(&c, "run", "big.yaml"), 0, "%s", said(&c));
    cr_expect_str_eq(buf_str(&c.out), "big/1\n");
    HOUSE_WAIT(&c.h, guest_count(c.worker, MSG_ASSIGN) > 0);
    /* A mistake in its last line is found where it is, by the coordinator too. */
    cr_assert_eq(buf_str(&text)[text.len - 3], '1');
    text.data[text.len - 3] = 'x';
    write_file("big.yaml", buf_str(&text));
    cr_expect_eq(submit(&c, "run", "big.yaml"), CTL_USAGE);
    EXPECT_HAS(said(&c), "big.yaml:");
    buf_fini(&text);
    finish(&c);
}

static void send_part(struct cast *c, uint32_t call, uint64_t offset, const char *text)
{
    struct msg m = {.type = MSG_SWEEP_PART};
    m.u.sweep_part.call = call;
    m.u.sweep_part.offset = offset;
    m.u.sweep_part.bytes = (struct msg_bytes){(const uint8_t *)text, strlen(text)};
    cr_assert_eq(guest_send(c->admin, &m), 0);
}

static void put_rest(struct cast *c, uint32_t call, const char *text, struct answer *out)
{
    struct msg m = {.type = MSG_SWEEP_PUT};
    m.u.sweep_put.call = call;
    m.u.sweep_put.action = "check";
    m.u.sweep_put.file = "p.yaml";
    m.u.sweep_put.format = "text";
    m.u.sweep_put.text = (struct msg_bytes){(const uint8_t *)text, strlen(text)};
    guest_ask(c->admin, call, &m, out);
}

Test(ctl_submit, pieces_that_make_no_file)
{
    struct cast c;
    struct answer a;
    begin(&c);
    static const char first[] = "sweep: p\nworkload: {run: make}\nvariants: [{name: a}]\n";
    uint32_t call = guest_call(c.admin);
    send_part(&c, call, 0, first);
    put_rest(&c, call, REST, &a);
    cr_expect_eq(a.exit, 0, "a rest in the request itself: %s", buf_str(&a.talk));
    answer_free(&a);
    call = guest_call(c.admin);
    send_part(&c, call, 0, first);
    send_part(&c, call, 3, REST);
    put_rest(&c, call, "", &a);
    cr_expect_neq(a.exit, 0);
    EXPECT_HAS(buf_str(&a.talk), "p.yaml: its pieces did not come in their order");
    answer_free(&a);
    call = guest_call(c.admin);
    char *much = mem_xzalloc(256 * 1024 + 1);
    memset(much, '#', 256 * 1024);
    for (uint64_t i = 0; i < 5; i++) {
        send_part(&c, call, i * 256 * 1024, much);
    }
    put_rest(&c, call, REST, &a);
    cr_expect_neq(a.exit, 0);
    EXPECT_HAS(buf_str(&a.talk), "p.yaml: a sweep file has at most 1 MiB");
    answer_free(&a);
    /* Those of another request are not in the way. */
    send_part(&c, guest_call(c.admin), 0, "nonsense: [");
    guest_put(c.admin, "check", "sweep: p\nworkload: {run: make}\nvariants: [{name: a}]\n" REST, &a);
    cr_expect_eq(a.exit, 0, "%s", buf_str(&a.talk));
    answer_free(&a);
    free(much);
    finish(&c);
}

Test(ctl_submit, settings_replace_parameters)
{
    struct cast c;
    begin(&c);
    write_file("s.yaml", "sweep: t\nparams: {opt: -O2}\nworkload: {run: \"make O=%{opt}\"}\n"
                         "variants: [{name: a}]\n" REST);
    c.opts.values[0].value = "opt";
    c.opts.value_count = 1;
    cr_expect_eq(submit(&c, "run", "s.yaml"), CTL_USAGE);
    EXPECT_HAS(said(&c), "--set opt: it is written as NAME=VALUE");
    c.opts.values[0].value = "nix=1";
    cr_expect_eq(submit(&c, "run", "s.yaml"), CTL_USAGE);
    EXPECT_HAS(said(&c), "nix");
    c.opts.values[0].value = "opt=-O0";
    cr_assert_eq(submit(&c, "run", "s.yaml"), 0, "%s", said(&c));
    cr_expect_str_eq(buf_str(&c.out), "t/1\n");
    HOUSE_WAIT(&c.h, guest_count(c.worker, MSG_ASSIGN) > 0);
    EXPECT_HAS(guest_got(c.worker, MSG_ASSIGN, 0)->u.assign.command, "-O0");
    finish(&c);
}

/* --- sources --- */

/* Pulls the archive of the first assignment and lists or prints what is in it. */
static const char *archive(struct cast *c, const char *tar)
{
    const struct msg_assign *a;
    struct buf all = BUF_INIT;
    uint8_t hash[32];
    HOUSE_WAIT(&c->h, guest_count(c->worker, MSG_ASSIGN) > 0);
    a = &guest_got(c->worker, MSG_ASSIGN, 0)->u.assign;
    cr_assert_eq(a->source_kind, 1);
    cr_assert_eq(a->blob.len, 32);
    while (all.len < a->blob_size) {
        struct msg m = {.type = MSG_BLOB_GET};
        size_t n = guest_count(c->worker, MSG_BLOB_DATA);
        m.u.blob_get.hash = a->blob;
        m.u.blob_get.offset = all.len;
        m.u.blob_get.length = 100000;
        cr_assert_eq(guest_send(c->worker, &m), 0);
        HOUSE_WAIT(&c->h, guest_count(c->worker, MSG_BLOB_DATA) > n);
        const struct msg_bytes *b = &guest_got(c->worker, MSG_BLOB_DATA, n)->u.blob_data.bytes;
        cr_assert_gt(b->len, 0);
        buf_add(&all, b->data, b->len);
    }
    digest_sha256(all.data, all.len, hash);
    cr_expect_eq(memcmp(hash, a->blob.data, 32), 0);
    cr_assert_eq(file_write_atomic(at(&c->bench, "got"), all.data, all.len, 0644), 0);
    buf_fini(&all);
    return sh(&c->bench, "%s", tar);
}

static void expect_no_rest(struct cast *c)
{
    cr_expect_str_eq(sh(&c->bench, "ls -A tmp"), "", "the command's own folder is gone");
}

static void own_tmp(struct cast *c)
{
    sh(&c->bench, "mkdir tmp");
    cr_assert_eq(setenv("TMPDIR", at(&c->bench, "tmp"), 1), 0);
}

Test(ctl_sources, a_repository_here)
{
    struct cast c;
    begin(&c);
    own_tmp(&c);
    sh(&c.bench, REPO);
    cr_assert_eq(chdir("r"), 0);
    write_file("s.yaml", "sweep: t\nworkload: {source: {git: .}, run: make}\n"
                         "variants: [{name: a, rev: v1}]\n" REST);
    cr_assert_eq(submit(&c, "check", "s.yaml"), 0, "%s", said(&c));
    cr_assert_eq(submit(&c, "plan", "s.yaml"), 0, "%s", said(&c));
    EXPECT_HAS(buf_str(&c.out), "disk: 1 archive of ");
    cr_assert_eq(submit(&c, "run", "s.yaml"), 0, "%s", said(&c));
    cr_expect_str_eq(archive(&c, "tar -xOf got a"), "one");
    const struct msg_assign *a = &guest_got(c.worker, MSG_ASSIGN, 0)->u.assign;
    cr_expect_str_eq(a->rev, sh(&c.bench, "git -C r rev-parse v1"));
    expect_no_rest(&c);
    write_file("s.yaml", "sweep: t\nworkload: {source: {git: .}, run: make}\n"
                         "variants: [{name: a, rev: v9}]\n" REST);
    cr_expect_eq(submit(&c, "run", "s.yaml"), CTL_USAGE);
    EXPECT_HAS(said(&c), "s.yaml:3:");
    EXPECT_HAS(said(&c), "v9");
    expect_no_rest(&c);
    finish(&c);
}

Test(ctl_sources, uncommitted_changes_when_asked_for)
{
    struct cast c;
    begin(&c);
    own_tmp(&c);
    sh(&c.bench, REPO);
    sh(&c.bench, "echo changed >r/a");
    cr_assert_eq(chdir("r"), 0);
    write_file("../s.yaml", "sweep: t\nworkload: {source: {git: ., dirty: true}, run: make}\n"
                            "variants: [{name: a}]\n" REST);
    cr_assert_eq(submit(&c, "run", "../s.yaml"), 0, "%s", said(&c));
    cr_expect_str_eq(archive(&c, "tar -xOf got a"), "changed");
    expect_no_rest(&c);
    finish(&c);
}

Test(ctl_sources, a_folder_and_an_archive_here)
{
    struct cast c;
    begin(&c);
    own_tmp(&c);
    sh(&c.bench, "mkdir -p d/sub && echo text >d/sub/f && tar -cf a.tar -C d sub");
    write_file("s.yaml", "sweep: t\nworkload: {source: {dir: d}, run: make}\n"
                         "variants: [{name: a}]\n" REST);
    cr_assert_eq(submit(&c, "run", "s.yaml"), 0, "%s", said(&c));
    cr_expect_str_eq(archive(&c, "tar -xOf got sub/f || tar -xOf got ./sub/f"), "text");
    guest_make(c.worker, 0);
    HOUSE_WAIT(&c.h, guest_sees(c.admin, "t", "\"state\": \"done\""));
    guest_forget(c.worker);
    write_file("s.yaml", "sweep: u\nworkload: {source: {archive: a.tar}, run: make}\n"
                         "variants: [{name: a}]\n" REST);
    cr_assert_eq(submit(&c, "run", "s.yaml"), 0, "%s", said(&c));
    cr_expect_str_eq(archive(&c, "cmp got a.tar && echo same"), "same");
    cr_assert_eq(submit(&c, "run", "s.yaml"), 0, "what is there is not sent again: %s", said(&c));
    cr_expect_str_eq(buf_str(&c.out), "u/2\n");
    write_file("s.yaml", "sweep: v\nworkload: {source: {archive: nix.tar}, run: make}\n"
                         "variants: [{name: a}]\n" REST);
    cr_expect_eq(submit(&c, "run", "s.yaml"), CTL_USAGE);
    EXPECT_HAS(said(&c), "s.yaml:2:");
    EXPECT_HAS(said(&c), "nix.tar");
    expect_no_rest(&c);
    finish(&c);
}

Test(ctl_sources, a_coordinator_that_is_full_takes_no_archive)
{
    struct cast c;
    begin(&c);
    own_tmp(&c);
    sh(&c.bench, "mkdir -p d && echo text >d/f");
    write_file("s.yaml", "sweep: t\nworkload: {source: {dir: d}, run: make}\n"
                         "variants: [{name: a}]\n" REST);
    house_fill_disk(true);
    cr_expect_eq(submit(&c, "run", "s.yaml"), CTL_INFRASTRUCTURE);
    house_fill_disk(false);
    HOUSE_WAIT(&c.h, !coord_is_stuck(c.h.coord));
    cr_expect_eq(submit(&c, "run", "s.yaml"), 0, "%s", said(&c));
    expect_no_rest(&c);
    finish(&c);
}

static void hit_ctrl_c(void *arg)
{
    (void)arg;
    raise(SIGINT);
}

Test(ctl_sources, ctrl_c_ends_what_was_begun_and_leaves_nothing)
{
    struct cast c;
    begin(&c);
    own_tmp(&c);
    sh(&c.bench, "mkdir d && dd if=/dev/zero of=d/f bs=1M count=16 2>/dev/null");
    write_file("s.yaml", "sweep: t\nworkload: {source: {dir: d}, run: make}\n"
                         "variants: [{name: a}]\n" REST);
    cr_assert_eq(call_open(&c.ctl, &c.call), 0);
    struct loop_timer *timer = loop_timer_new(c.h.loop, hit_ctrl_c, &c);
    cr_assert_neq(signal(SIGINT, SIG_IGN), SIG_ERR); /* one that comes too late */
    for (int i = 0; i < 8; i++) { /* while it is packed, and while it is sent */
        loop_timer_set(timer, i * 20 * CLOCK_MS);
        int status = submit(&c, "run", "s.yaml");
        cr_assert(status == CTL_UNDECIDED || (i > 0 && status == 0), "%d: %s", status, said(&c));
        if (status == CTL_UNDECIDED) {
            EXPECT_HAS(said(&c), "interrupted: nothing was submitted");
            cr_expect_eq(c.out.len, 0);
        } else {
            loop_timer_clear(timer);
            cr_expect_gt(c.out.len, 0);
        }
        expect_no_rest(&c);
        call_close(&c.call);
    }
    loop_timer_free(&timer);
    finish(&c);
}

/* --- following --- */

static int follow(struct cast *c, const char *sweep, char *text, size_t room)
{
    FILE *to = tmpfile();
    cr_assert_not_null(to);
    diag_clear(c->ctl.diag);
    int status = follow_sweep(&c->ctl, &c->call, sweep, to, false);
    rewind(to);
    size_t n = fread(text, 1, room - 1, to);
    text[n] = '\0';
    fclose(to);
    return status;
}

static void start_sweep(struct cast *c)
{
    write_file("s.yaml", "sweep: t\nworkload: {run: make}\nvariants: [{name: a}]\nhosts: [p6]\n"
                         "jobs: [1]\nrepeat: {warmup: 0, until: 3}\n");
    cr_assert_eq(submit(c, "run", "s.yaml"), 0, "%s", said(c));
}

/* The worker plays from now on, what it has by now included. */
static void play(void *arg)
{
    struct cast *c = arg;
    const struct msg *m = guest_got(c->worker, MSG_ASSIGN, 0);
    c->worker->plays = true;
    if (m != NULL) {
        guest_taken(c->worker, &m->u.assign);
        guest_result(c->worker, &m->u.assign, CLOCK_SEC);
        guest_end(c->worker, &m->u.assign);
        guest_ready(c->worker, 1);
    }
}

Test(ctl_follow, lines_until_the_end)
{
    struct cast c;
    char text[16384];
    begin(&c);
    start_sweep(&c);
    struct loop_timer *timer = loop_timer_new(c.h.loop, play, &c);
    loop_timer_set(timer, 100 * CLOCK_MS);
    cr_expect_eq(follow(&c, "t", text, sizeof(text)), CTL_DONE, "%s", said(&c));
    EXPECT_HAS(text, "t/1: active, 0 of 3 runs");
    EXPECT_HAS(text, "t/1: done, 3 of 3 runs");
    EXPECT_HAS(text, "sweep-ended: ");
    cr_expect_null(strchr(text, '\033'), "no terminal, no control sequences");
    loop_timer_free(&timer);
    finish(&c);
}

Test(ctl_follow, an_unknown_sweep)
{
    struct cast c;
    char text[256];
    begin(&c);
    cr_assert_eq(call_open(&c.ctl, &c.call), 0);
    cr_expect_eq(follow(&c, "nix", text, sizeof(text)), CTL_USAGE);
    cr_expect_str_eq(text, "");
    finish(&c);
}

Test(ctl_follow, ctrl_c_ends_the_view_and_not_the_sweep)
{
    struct cast c;
    char text[4096];
    begin(&c);
    start_sweep(&c);
    struct loop_timer *timer = loop_timer_new(c.h.loop, hit_ctrl_c, &c);
    loop_timer_set(timer, 100 * CLOCK_MS);
    cr_expect_eq(follow(&c, "t", text, sizeof(text)), CTL_UNDECIDED);
    cr_expect(guest_sees(c.admin, "t", "\"state\": \"active\""));
    loop_timer_free(&timer);
    finish(&c);
}

static void restart(void *arg)
{
    struct cast *c = arg;
    char *listen = c->h.conf.listen;
    c->h.conf.listen = mem_xstrdup(c->h.address); /* the same port again */
    house_stop(&c->h);
    house_start(&c->h);
    free(listen);
    guest_leave(c->worker);
    c->worker = house_guest(&c->h, &c->p6);
}

Test(ctl_follow, goes_on_when_the_coordinator_is_back)
{
    struct cast c;
    char text[16384];
    begin(&c);
    start_sweep(&c);
    struct loop_timer *timer = loop_timer_new(c.h.loop, restart, &c);
    loop_timer_set(timer, 200 * CLOCK_MS);
    struct loop_timer *end = loop_timer_new(c.h.loop, hit_ctrl_c, &c);
    loop_timer_set(end, 4 * CLOCK_SEC);
    cr_expect_eq(follow(&c, "t", text, sizeof(text)), CTL_UNDECIDED, "%s", said(&c));
    cr_expect_not_null(c.call, "it is connected again");
    EXPECT_HAS(text, "t/1: active, 0 of 3 runs");
    loop_timer_free(&timer);
    loop_timer_free(&end);
    c.admin = house_welcome(&c.h, &c.ann);
    cr_expect(guest_sees(c.admin, "t", "\"state\": \"active\""));
    finish(&c);
}
