/* records.c: messages and folders for tests. */
#include "tests/unit/worker/run/records.h"

#include "common/buf.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"
#include "worker/run/spool.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void records_dir(char path[FILE_PATH_MAX])
{
    const char *tmp = getenv("TMPDIR");

    snprintf(path, FILE_PATH_MAX, "%s/worker-XXXXXX", tmp == NULL ? "/tmp" : tmp);
    cr_assert_not_null(mkdtemp(path));
}

struct search {
    const char *start;
    size_t count;
    char name[256];
};

static int look(const char *name, void *arg)
{
    struct search *s = arg;

    if (str_starts(name, s->start)) {
        s->count++;
        str_copy(s->name, sizeof s->name, name);
    }
    return 0;
}

size_t records_names(const char *dir, const char *start)
{
    struct search s = {.start = start};

    cr_assert_eq(file_list(dir, look, &s), 0);
    return s.count;
}

void records_file(const char *dir, const char *start, char path[FILE_PATH_MAX])
{
    struct search s = {.start = start};

    cr_assert_eq(file_list(dir, look, &s), 0);
    cr_assert_eq(s.count, 1, "%zu files in %s begin with %s", s.count, dir, start);
    cr_assert_eq(file_path(path, FILE_PATH_MAX, dir, s.name), 0);
}

size_t records_read(const char *path, uint8_t *bytes, size_t room)
{
    struct buf b = BUF_INIT;
    size_t n;

    cr_assert_eq(file_read_all(path, room, &b), 0);
    n = b.len;
    memcpy(bytes, b.data, n);
    buf_fini(&b);
    return n;
}

void records_write(const char *path, const uint8_t *bytes, size_t n)
{
    struct file *file = NULL;

    cr_assert_eq(file_open(path, FILE_WRITE | FILE_CREATE | FILE_TRUNC, 0600, &file), 0);
    cr_assert_eq(file_write_at(file, 0, bytes, n), 0);
    file_close(&file);
}

struct msg records_assign(uint64_t run, uint32_t attempt)
{
    struct msg m = {.type = MSG_ASSIGN};
    struct msg_assign *a = &m.u.assign;

    a->run = run;
    a->attempt = attempt;
    a->sweep = "test/1";
    a->workload = "work";
    a->variant = "plain";
    a->jobs = 2;
    a->source_kind = 3;
    a->command = "true";
    a->setup_timeout_ns = a->reset_timeout_ns = a->run_timeout_ns = a->check_timeout_ns =
        a->settle_timeout_ns = INT64_C(20000000000);
    return m;
}

struct msg records_result(uint64_t run, uint32_t attempt, uint32_t seq, enum outcome outcome)
{
    struct msg m = {.type = MSG_RESULT};
    struct msg_result *r = &m.u.result;

    r->run = run;
    r->attempt = attempt;
    r->seq = seq;
    r->outcome = (uint32_t)outcome;
    r->phase = PHASE_CHECK;
    r->text = "";
    r->boot_id = "boot";
    r->worker_version = "0";
    r->has_real_ns = true;
    r->real_ns = 1;
    return m;
}

struct msg records_mark(uint64_t run, uint32_t attempt, uint32_t seq)
{
    struct msg m = {.type = MSG_MARK};

    m.u.mark.run = run;
    m.u.mark.attempt = attempt;
    m.u.mark.seq = seq;
    m.u.mark.mark = MARK_LOAD;
    m.u.mark.text = "some";
    return m;
}

struct msg records_output(uint64_t run, uint32_t attempt, uint32_t seq, const void *bytes, size_t n)
{
    struct msg m = {.type = MSG_OUTPUT};

    m.u.output.run = run;
    m.u.output.attempt = attempt;
    m.u.output.seq = seq;
    m.u.output.phase = PHASE_MEASURE;
    m.u.output.bytes = (struct msg_bytes){.data = bytes, .len = n};
    m.u.output.total = n;
    return m;
}

struct msg records_end(uint64_t run, uint32_t attempt, uint32_t seq)
{
    struct msg m = {.type = MSG_END};

    m.u.end.run = run;
    m.u.end.attempt = attempt;
    m.u.end.seq = seq;
    m.u.end.count = seq + 1;
    return m;
}

void records_spool(struct spool *spool, uint64_t run, uint32_t attempt, size_t outputs, size_t n)
{
    uint8_t *bytes = mem_xarray(n + 1, 1);
    struct msg m = records_result(run, attempt, 0, OUTCOME_OK);

    cr_assert_eq(spool_begin(spool, run, attempt), 0);
    cr_assert_eq(spool_add(spool, &m), 0);
    memset(bytes, 'x', n);
    for (size_t i = 0; i < outputs; i++) {
        m = records_output(run, attempt, spool_next_seq(spool), bytes, n);
        cr_assert_eq(spool_add(spool, &m), 0);
    }
    m = records_end(run, attempt, spool_next_seq(spool));
    cr_assert_eq(spool_add(spool, &m), 0);
    cr_assert_eq(spool_commit(spool), 0);
    free(bytes);
}
