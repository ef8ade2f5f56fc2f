/* worker.yaml: what is read, what is printed, and what a host may be asked to do. */
#include "worker/conf.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "tests/unit/worker/run/records.h"
#include "worker/os/confine.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static char dir[FILE_PATH_MAX], path[FILE_PATH_MAX];
static struct worker_conf conf;
static struct diag *diag;

static void set_up(void)
{
    records_dir(dir);
    cr_assert_eq(file_path(path, sizeof path, dir, "worker.yaml"), 0);
    diag = diag_new(16);
}

static void tear_down(void)
{
    worker_conf_free(&conf);
    diag_free(&diag);
    cr_assert_eq(file_remove_tree(dir), 0);
}

TestSuite(worker_conf, .init = set_up, .fini = tear_down);

static int load(const char *text)
{
    worker_conf_free(&conf);
    diag_clear(diag);
    records_write(path, (const uint8_t *)text, strlen(text));
    return worker_conf_load(path, &conf, diag);
}

Test(worker_conf, has_defaults)
{
    cr_assert_eq(worker_conf_load(NULL, &conf, diag), 0);
    cr_assert_null(conf.coordinator);
    cr_assert_null(conf.run_as);
    cr_assert_str_eq(conf.dir, WORKER_DIR);
    cr_assert_not(conf.run_as_alone);
    cr_assert_eq(conf.beat_ns, 30 * CLOCK_SEC);
    cr_assert_eq(conf.allow_host_dir.count, 0u);
    cr_assert_eq(worker_conf_confine(&conf), (unsigned)CONFINE_ALL);
}

Test(worker_conf, reads_everything)
{
    cr_assert_eq(load("coordinator: 'bench:7443'\nname: p6\ndir: /srv/w\nrun_as: builder\n"
                      "run_as_alone: yes\npath: /bin\nconfine: cgroup1\n"
                      "disk: {trees: 1GiB, archives: 2GiB}\n"
                      "allow: {host_dir: [/usr/src, /home/x], jobs: 8, time: 1h}\n"
                      "beat: 10s\nlog: {file: /var/log/w, level: debug}\n"),
                 0, "%s", diag_first(diag));
    cr_assert_str_eq(conf.coordinator, "bench:7443");
    cr_assert_str_eq(conf.run_as, "builder");
    cr_assert(conf.run_as_alone);
    cr_assert_eq(worker_conf_confine(&conf), (unsigned)CONFINE_V1);
    cr_assert_eq(conf.disk_trees, INT64_C(1) << 30);
    cr_assert_eq(conf.disk_archives, INT64_C(2) << 30);
    cr_assert_eq(conf.allow_host_dir.count, 2u);
    cr_assert_eq(conf.allow_jobs, 8);
    cr_assert_eq(conf.allow_time_ns, CLOCK_HOUR);
}

Test(worker_conf, says_all_mistakes)
{
    struct buf text = BUF_INIT;

    cr_assert_lt(load("coordinater: x\nbeat: 1\ndir: relative\nallow: {jobs: -1}\n"), 0);
    cr_assert_eq(diag_errors(diag), 4u);
    diag_print(diag, &text);
    cr_assert_not_null(strstr(buf_str(&text), "worker.yaml:1:"));
    cr_assert_not_null(strstr(buf_str(&text), "coordinator"), "the nearest name");
    buf_fini(&text);
    cr_assert_lt(load("name: 'no name'\n"), 0);
    cr_assert_lt(load("allow: {host_dir: [/a/../b]}\n"), 0);
    cr_assert_lt(load("allow: {host_dir: [usr/src]}\n"), 0);
    cr_assert_lt(load("path: ''\n"), 0);
    worker_conf_free(&conf);
    cr_assert_eq(worker_conf_load("/nonexistent/worker.yaml", &conf, diag), -ERR_NOTFOUND);
}

Test(worker_conf, prints_what_it_reads)
{
    struct worker_conf other;
    struct buf text = BUF_INIT;
    struct buf again = BUF_INIT;
    size_t n;
    const struct conf_row *rows = worker_conf_rows(&n);

    cr_assert_eq(load("coordinator: '[::1]:7443'\nallow: {host_dir: [/usr/src]}\n"), 0);
    conf_print(rows, n, &conf, &text);
    records_write(path, text.data, text.len);
    cr_assert_eq(worker_conf_load(path, &other, diag), 0, "%s", diag_first(diag));
    conf_print(rows, n, &other, &again);
    cr_assert_str_eq(buf_str(&text), buf_str(&again));
    cr_assert_eq(other.beat_ns, 30 * CLOCK_SEC, "what a file does not say has its default");
    worker_conf_free(&other);
    buf_fini(&text);
    buf_fini(&again);
}

/* The manual and the example know every option, and the example is correct. */
Test(worker_conf, is_described)
{
    struct buf manual = BUF_INIT;
    struct buf example = BUF_INIT;
    size_t n;
    const struct conf_row *rows = worker_conf_rows(&n);

    cr_assert_eq(file_read_all("deploy/man/makespan-worker.yaml.5", 1 << 20, &manual), 0);
    cr_assert_eq(file_read_all("deploy/examples/worker.yaml", 1 << 20, &example), 0);
    for (size_t i = 0; i < n; i++) {
        const char *last = strrchr(rows[i].name, '.');
        char text[128];

        snprintf(text, sizeof text, "\n.It Cm %s\n", rows[i].name);
        cr_expect(strstr(buf_str(&manual), text) != NULL, "the manual lacks %s", rows[i].name);
        snprintf(text, sizeof text, "%s:", last == NULL ? rows[i].name : last + 1);
        cr_expect(strstr(buf_str(&example), text) != NULL, "the example lacks %s", rows[i].name);
    }
    cr_assert_eq(worker_conf_load("deploy/examples/worker.yaml", &conf, diag), 0, "%s",
                 diag_first(diag));
    cr_assert_eq(conf.allow_time_ns, 6 * CLOCK_HOUR);
    buf_fini(&manual);
    buf_fini(&example);
}

/* --- what may be asked --- */

static const char *refusal(const struct msg *m)
{
    int err;

    diag_clear(diag);
    err = worker_conf_allows(&conf, &m->u.assign, diag);
    cr_assert(err == 0 || err == -ERR_DENIED);
    cr_assert_eq(err == 0, diag_count(diag) == 0);
    return diag_first(diag);
}

static const char *refusal_of_dir(const char *host_dir)
{
    struct msg m = records_assign(1, 1);

    m.u.assign.source_kind = 2;
    m.u.assign.host_dir = host_dir;
    return refusal(&m);
}

Test(worker_conf, lets_builds_only_into_named_folders)
{
    cr_assert_eq(load(""), 0);
    cr_assert_not_null(strstr(refusal_of_dir("/usr/src/linux"), "allow.host_dir"));
    cr_assert_eq(load("allow: {host_dir: [/usr/src/, /srv]}\n"), 0);
    cr_assert_str_eq(refusal_of_dir("/usr/src/linux"), "");
    cr_assert_str_eq(refusal_of_dir("/usr/src"), "");
    cr_assert_str_eq(refusal_of_dir("/srv/a/b"), "");
    cr_assert_str_neq(refusal_of_dir("/usr/srcs"), "");
    cr_assert_str_neq(refusal_of_dir("/usr"), "");
    cr_assert_str_neq(refusal_of_dir("/usr/src/../../etc"), "");
    cr_assert_str_neq(refusal_of_dir("/usr/src/./x"), "");
    cr_assert_str_neq(refusal_of_dir("usr/src"), "");
    cr_assert_str_neq(refusal_of_dir(NULL), "");
    cr_assert_eq(load("allow: {host_dir: [/]}\n"), 0);
    cr_assert_str_eq(refusal_of_dir("/anything"), "");
}

Test(worker_conf, keeps_to_its_limits)
{
    struct msg m = records_assign(1, 1);

    cr_assert_eq(load("allow: {jobs: 4, time: 1m}\n"), 0);
    cr_assert_str_eq(refusal(&m), "");
    m.u.assign.jobs = 4;
    cr_assert_str_eq(refusal(&m), "");
    m.u.assign.jobs = 0;
    cr_assert_str_eq(refusal(&m), "");
    m.u.assign.jobs = 5;
    cr_assert_not_null(strstr(refusal(&m), "allow.jobs"));
    m.u.assign.jobs = -1;
    cr_assert_not_null(strstr(refusal(&m), "allow.jobs"));
    m.u.assign.jobs = 1;
    m.u.assign.run_timeout_ns = 2 * CLOCK_MIN;
    cr_assert_not_null(strstr(refusal(&m), "allow.time"));
    m.u.assign.run_timeout_ns = CLOCK_MIN;
    m.u.assign.settle_timeout_ns = CLOCK_HOUR;
    cr_assert_str_eq(refusal(&m), "", "waiting is no work");
}

Test(worker_conf, refuses_what_cannot_be_meant)
{
    struct msg good = records_assign(1, 1);
    struct msg m;

    cr_assert_eq(load(""), 0);
    for (int i = 0; i < 8; i++) {
        m = good;
        switch (i) {
        case 0:
            m.u.assign.jobs = 4097;
            break;
        case 1:
            m.u.assign.jobs = -2;
            break;
        case 2:
            m.u.assign.command = "";
            break;
        case 3:
            m.u.assign.run_timeout_ns = 0;
            break;
        case 4:
            m.u.assign.check_timeout_ns = INT64_MAX;
            break;
        case 5:
            m.u.assign.source_kind = 4;
            break;
        case 6:
            m.u.assign.source_kind = 1; /* an archive without a hash */
            break;
        default:
            m.u.assign.settle_timeout_ns = -1;
            break;
        }
        cr_assert_str_neq(refusal(&m), "", "case %d", i);
    }
    cr_assert_str_eq(refusal(&good), "");
}
