/* spec_test.c: a whole sweep file: its records, every mistake at once, what is refused as a whole,
 * what is not yet supported. */
#include "proto/spec.h"

#include "common/clock.h"
#include "common/err.h"
#include "tests/unit/proto/spec_help.h"

#include <stdlib.h>

/* The manual's example without what is not yet supported. */
static const char example[] =
    "sweep: vm-locking\n"
    "params: {opt: \"-O2\"}\n"
    "workloads:\n"
    "  - name: buildkernel\n"
    "    source: {git: /srv/git/kernel.git, rev: v6.2}\n"
    "    setup: make -s defconfig\n"
    "    reset: make -s clean\n"
    "    run: make $JFLAG\n"
    "    check: test -s vmlinux\n"
    "    fingerprint: cc --version; make --version\n"
    "    timeout: {setup: 1h, reset: 10m, run: 2h, check: 10m}\n"
    "variants:\n"
    "  - {name: prepatch, rev: 8f3c1d2}\n"
    "  - {name: commit-3, rev: 51be0aa}\n"
    "  - {name: fast, env: {OPT: \"%{opt}\"}}\n"
    "base: prepatch\n"
    "compare: [base, previous]\n"
    "hosts: [\"class:quad-core\", \"any:many-core\", p6]\n"
    "jobs: [none, 1..4, 8, 50%, 100%, 150%, max]\n"
    "tolerance: 2%\n"
    "error: {pass: 5%, blame: 5%}\n"
    "repeat: {warmup: 1, until: 5, policy: main, looks: [5, 8, 12, 18, 27], budget: 8h}\n"
    "order: interleave\n"
    "quiet: {foreign: 2%, for: 10s, within: 10m, else: mark}\n"
    "retry: {invalid: 3, interrupted: 3, failed: 0}\n"
    "caches: keep\n"
    "reboot: never\n"
    "memory: {per_job: 40MB}\n"
    "priority: normal\n"
    "observe: normal\n"
    "ahead: 0\n"
    "machine: {cpus: all, nice: 0, governor: keep, calibrate: true}\n"
    "per: {\"class:p6\": {jobs: [1..20], repeat: {until: 3}, timeout: {run: 6h}}}\n";

static const struct spec_workload *first_workload(const struct spec *spec)
{
    size_t n = 0;
    const struct spec_workload *w = spec_workloads(spec, &n);
    cr_assert(n >= 1);
    return w;
}

Test(spec, reads_the_whole_language)
{
    struct spec *spec = help_read(example, NULL);
    size_t n = 0;
    cr_expect_str_eq(spec_file(spec), "s.yaml");
    cr_expect_str_eq(spec_name(spec), "vm-locking");
    const struct spec_workload *w = first_workload(spec);
    cr_expect_str_eq(w->name, "buildkernel");
    cr_expect(w->source.kind == SPEC_SOURCE_GIT && !w->source.local && !w->source.dirty);
    cr_expect_str_eq(w->source.path, "/srv/git/kernel.git");
    cr_expect_str_eq(w->source.rev, "v6.2");
    cr_expect_str_eq(w->setup, "make -s defconfig");
    cr_expect_str_eq(w->reset, "make -s clean");
    cr_expect_str_eq(w->run, "make $JFLAG");
    cr_expect_str_eq(w->check, "test -s vmlinux");
    cr_expect_str_eq(w->fingerprint, "cc --version; make --version");
    cr_expect(w->timeout.setup_ns == CLOCK_HOUR && w->timeout.check_ns == 10 * CLOCK_MIN);
    cr_expect(w->pos.line == 4 && w->pos.column == 5 && w->run_pos.line == 8 &&
              w->run_pos.column == 10);
    const struct spec_variant *v = spec_variants(spec, &n);
    cr_assert(n == 3);
    cr_expect_str_eq(v[0].name, "prepatch");
    cr_expect_str_eq(v[0].rev, "8f3c1d2");
    cr_expect(v[1].index == 1 && v[1].pos.line == 14 && v[1].pos.column == 5);
    cr_assert(v[2].rev == NULL && v[2].env_count == 1);
    cr_expect_str_eq(v[2].env[0].name, "OPT");
    cr_expect_str_eq(v[2].env[0].value, "-O2");
    const struct spec_host *h = spec_hosts(spec, &n);
    cr_assert(n == 3);
    cr_expect(h[0].kind == SPEC_HOST_CLASS && h[1].kind == SPEC_HOST_ANY &&
              h[2].kind == SPEC_HOST_NAME);
    cr_expect_str_eq(h[0].name, "quad-core");
    cr_expect_str_eq(h[1].name, "many-core");
    cr_expect_str_eq(h[2].name, "p6");
    cr_expect(h[2].pos.line == 18 && h[2].pos.column == 45);
    const struct spec_param *p = spec_params(spec, &n);
    cr_assert(n == 1 && !p[0].is_set);
    cr_expect_str_eq(p[0].value, "-O2");
    cr_expect(!spec_system(spec)->given);
    struct diag *diag = diag_new(4);
    cr_expect(spec_require_hosts(spec, diag) == 0);
    diag_free(&diag);
    spec_free(&spec);
    cr_expect_null(spec);
}

Test(spec, a_short_file_has_the_defaults)
{
    struct spec *spec = help_read("sweep: s\nworkload: {run: make}\n", NULL);
    size_t n = 0;
    const struct spec_workload *w = first_workload(spec);
    cr_expect_str_eq(w->name, "s", "a single workload is called as the sweep");
    cr_expect(w->source.kind == SPEC_SOURCE_NONE && w->setup == NULL && w->check == NULL);
    cr_expect(w->timeout.setup_ns == CLOCK_HOUR && w->timeout.reset_ns == 10 * CLOCK_MIN &&
              w->timeout.run_ns == 2 * CLOCK_HOUR && w->timeout.check_ns == 10 * CLOCK_MIN);
    const struct spec_variant *v = spec_variants(spec, &n);
    cr_assert(n == 1);
    cr_expect_str_eq(v[0].name, "default");
    (void)spec_exprs(spec, &n);
    cr_expect(n == 0);
    (void)spec_hosts(spec, &n);
    cr_expect(n == 0);
    struct diag *diag = diag_new(4);
    cr_expect(spec_require_hosts(spec, diag) == -ERR_INVAL);
    cr_expect_str_eq(diag_first(diag), "`hosts` is missing: on which hosts?");
    diag_free(&diag);
    struct spec_settings s;
    spec_settings_for(spec, "h", NULL, 0, 0, &s);
    cr_expect(s.job_count == 1 && s.jobs[0].kind == JOBS_ITEM_NONE);
    cr_expect(s.tolerance_ppm == 20000 && s.error_pass_ppm == 50000 && s.error_blame_ppm == 50000);
    cr_expect(s.repeat.until == SPEC_UNTIL_RUNS && s.repeat.runs == 3 && s.repeat.warmup == 1 &&
              s.repeat.budget_ns == 0);
    cr_assert(s.repeat.look_count == 5 && s.repeat.looks[4] == 27);
    cr_expect(s.order == SPEC_ORDER_INTERLEAVE && !s.seed_given &&
              s.priority == SPEC_PRIORITY_NORMAL);
    cr_expect(s.retry.invalid == 3 && s.retry.interrupted == 3 && s.retry.failed == 0 &&
              s.memory_per_job == 0);
    spec_free(&spec);
}

Test(spec, ten_mistakes_give_ten_lines)
{
    static const char text[] =
        "sweep: bad name\n" /* 1 */
        "workloads:\n"
        "  - {name: a, source: {git: /r}, run: make $JFLAG, timeout: {run: 90}}\n" /* 2 */
        "  - {name: a, source: {git: /r}, rnu: make, run: x $JOBS}\n"              /* 3, 4 */
        "variants:\n"
        "  - {name: old, rev: a}\n"
        "  - {name: new, rev: b}\n"
        "base: odl\n"                                /* 5 */
        "compare: [base, {base: old, head: none}]\n" /* 6 */
        "hosts: []\n"                                /* 7 */
        "jobs: [1, 5..1, 08]\n"                      /* 8, 9 */
        "tolerance: 200%\n";                         /* 10 */
    HELP_EXPECT_MESSAGES(
        text,
        "s.yaml:1:8: sweep: `bad name` is not a name: 1 to 64 of A-Z a-z 0-9 . _ + , = -\n"
        "s.yaml:3:67: timeout.run: `90` is not a duration: a number and a unit, as 30s or 1h30m\n"
        "s.yaml:4:5: the workload `a` was given before, in line 3\n"
        "s.yaml:4:34: unknown key `rnu` in workloads; did you mean `run`?\n"
        "s.yaml:8:7: base: there is no variant `odl`; did you mean `old`?\n"
        "s.yaml:9:35: compare: there is no variant `none`\n"
        "s.yaml:10:8: hosts: the list is empty\n"
        "s.yaml:11:11: jobs: `5..1`: the range falls: its first number is the larger one\n"
        "s.yaml:11:17: jobs: `08`: not a job count: none, max, a number from 1 to 4096, a range as "
        "1..8 or "
        "2..16/2, or a share as 50%\n"
        "s.yaml:12:12: tolerance: must be from 0.1% to 100%\n");
}

Test(spec, a_broken_file_gives_one_line)
{
    static const struct {
        const char *text;
        size_t n;
        const char *message;
    } table[] = {
        {"sweep: s\nworkload: {run: make\njobs: [1]\n", 39, "s.yaml:3:5: "},
        {"sweep: s\nworkload: {run: ma\0ke}\n", 32, "s.yaml:2:19: a NUL byte is not allowed"},
        {"sweep: s\nworkload: {run: ma\xffke}\n", 32, "s.yaml:2:19: the file is not UTF-8"},
        {"sweep: s\nworkload: &w {run: make}\nper: *w\n", 41,
         "s.yaml:2:11: anchors and aliases are not allowed"},
        {"", 0, "s.yaml:1:1: the file is empty"},
        {"- a\n", 4, "s.yaml:1:1: a sweep file is a map that begins with `sweep: NAME`"},
        {"{}\n", 3, "s.yaml:1:1: a sweep file is a map that begins with `sweep: NAME`"},
        {"just text\n", 10, "s.yaml:1:1: a sweep file is a map that begins with `sweep: NAME`"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct diag *diag = diag_new(8);
        struct buf out = BUF_INIT;
        struct spec *spec = NULL;
        cr_expect(spec_parse("s.yaml", table[i].text, table[i].n, NULL, 0, &spec, diag) < 0);
        cr_expect_null(spec);
        cr_expect(diag_count(diag) == 1, "row %zu: %zu messages", i, diag_count(diag));
        diag_print(diag, &out);
        cr_expect(strncmp(buf_str(&out), table[i].message, strlen(table[i].message)) == 0,
                  "row %zu: %s", i, buf_str(&out));
        buf_fini(&out);
        diag_free(&diag);
    }
}

Test(spec, two_mebibytes_are_refused)
{
    size_t n = 2 * 1024 * 1024;
    char *text = malloc(n);
    cr_assert_not_null(text);
    memset(text, '#', n);
    memcpy(text, "sweep: s\n", 9);
    struct diag *diag = diag_new(8);
    struct spec *spec = NULL;
    cr_expect(spec_parse("s.yaml", text, n, NULL, 0, &spec, diag) < 0);
    cr_expect(diag_count(diag) == 1);
    cr_expect_str_eq(diag_first(diag), "the file is larger than 1 MiB (2097152 bytes)");
    diag_free(&diag);
    free(text);
}

Test(spec, says_what_is_not_yet_supported)
{
    static const struct {
        const char *line;
        const char *message;
    } table[] = {
        {"repeat: {until: verdict}\n",
         "s.yaml:3:17: repeat.until other than a number of runs: not yet supported\n"},
        {"repeat: {until: precision}\n",
         "s.yaml:3:17: repeat.until other than a number of runs: not yet supported\n"},
        {"repeat: {until: gate, policy: main}\n",
         "s.yaml:3:17: repeat.until other than a number of runs: not yet supported\n"},
        {"quiet: {foreign: 3%}\n", "s.yaml:3:18: quiet other than {foreign: 2%, for: 10s, within: "
                                   "10m, else: mark}: not yet supported\n"},
        {"quiet: {else: fail}\n", "s.yaml:3:15: quiet other than {foreign: 2%, for: 10s, within: "
                                  "10m, else: mark}: not yet supported\n"},
        {"caches: drop\n", "s.yaml:3:9: caches other than keep: not yet supported\n"},
        {"reboot: variant\n", "s.yaml:3:9: reboot other than never: not yet supported\n"},
        {"observe: silent\n", "s.yaml:3:10: observe other than normal: not yet supported\n"},
        {"ahead: 2h\n", "s.yaml:3:8: ahead other than 0: not yet supported\n"},
        {"machine: {cpus: \"0-3,8\"}\n",
         "s.yaml:3:17: machine.cpus other than all: not yet supported\n"},
        {"machine: {nice: -5}\n", "s.yaml:3:17: machine.nice other than 0: not yet supported\n"},
        {"machine: {governor: performance}\n",
         "s.yaml:3:21: machine.governor other than keep: not yet supported\n"},
        {"machine: {calibrate: false}\n",
         "s.yaml:3:22: machine.calibrate other than true: not yet supported\n"},
        {"per: {h: {caches: drop}}\n", "s.yaml:3:19: caches other than keep: not yet supported\n"},
        {"variants: [{name: a, storage: {src: tmpfs, obj: {tmpfs: 8, size: 256MB}}}]\n",
         "s.yaml:3:31: storage: not yet supported\n"},
        {"system: {boot: b, expect: e}\n", "s.yaml:3:9: system: not yet supported\n"},
        /* a mistake within them is still a mistake, and says so first */
        {"caches: burn\n", "s.yaml:3:9: caches: `burn` is not one of keep, drop\n"},
        {"repeat: {until: gate}\n",
         "s.yaml:3:17: repeat.until: gate needs `policy`\n"
         "s.yaml:3:17: repeat.until other than a number of runs: not yet supported\n"},
        {"ahead: 2\n",
         "s.yaml:3:8: ahead: `2` is not a duration: a number and a unit, as 30s or 1h30m\n"},
        {"system: {install: i}\n", "s.yaml:3:9: system: `boot` and `expect` are needed\n"
                                   "s.yaml:3:9: system: not yet supported\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char text[1024];
        HELP_EXPECT_MESSAGES(help_sweep(text, sizeof(text), table[i].line), table[i].message);
    }
}

Test(spec, only_what_is_not_yet_supported_has_its_own_code)
{
    static const struct {
        const char *line;
        int code;
    } table[] = {{"caches: drop\n", ERR_NOTYET},
                 {"caches: drop\njobs: 0\n", ERR_RANGE},
                 {"jobs: [x]\n", ERR_INVAL},
                 {"caches: keep\n", 0}};
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char text[1024];
        struct spec *spec = NULL;
        help_sweep(text, sizeof(text), table[i].line);
        cr_expect(spec_parse("s", text, strlen(text), NULL, 0, &spec, NULL) == -table[i].code, "%s",
                  table[i].line);
        spec_free(&spec);
    }
}

Test(spec, the_example_with_kernels_is_only_not_yet_supported)
{
    HELP_EXPECT_MESSAGES(
        "sweep: vm-locking\n"
        "workloads:\n"
        "  - name: buildkernel\n"
        "    source: {git: /srv/git/kernel.git, rev: v6.2}\n"
        "    run: make $JFLAG\n"
        "system: {install: \"sh /root/mk $KERNEL\", boot: \"sh /root/once $KERNEL\", expect: "
        "\"g$KERNEL_SHORT\", build: make, build_on: p7}\n"
        "variants:\n"
        "  - {name: prepatch, kernel: 8f3c1d2}\n"
        "  - {name: commit-3, kernel: 51be0aa}\n"
        "  - {name: ram, kernel: 51be0aa, storage: {src: tmpfs, obj: {tmpfs: 8, size: 256MB}}}\n"
        "base: prepatch\n"
        "repeat: {warmup: 1, until: gate, policy: main, looks: [5, 8, 12, 18, 27], budget: 8h}\n",
        "s.yaml:6:9: system: not yet supported\n"
        "s.yaml:10:43: storage: not yet supported\n"
        "s.yaml:12:28: repeat.until other than a number of runs: not yet supported\n");
}

Test(spec, checks_sources)
{
    static const struct {
        const char *source;
        const char *message;
    } table[] = {
        {"{git: .}", ""},
        {"{git: ., dirty: true}", ""},
        {"{git: ../x, rev: v1}", ""},
        {"{git: \"ssh://host/x\", rev: \"merge-base(main, topic)\"}", ""},
        {"{dir: src}", ""},
        {"{archive: /tmp/x.tar}", ""},
        {"{host_dir: /usr/src}", ""},
        {"{}", "2:20: source: the map is empty"},
        {".", "2:20: source: must be a map, as {git: ...}"},
        {"{rev: v1}", "2:20: source: one of git, dir, archive, host_dir is needed"},
        {"{git: ., dir: x}", "2:34: source: only one of git, dir, archive, host_dir"},
        {"{gti: .}", "2:21: unknown key `gti` in source; did you mean `git`?\ns.yaml:2:20: source: "
                     "one of git, dir, archive, host_dir is needed"},
        {"{git: /r, dirty: true}", "2:37: source.dirty: only a work tree where this command runs "
                                   "has uncommitted changes: `git: .` or a relative path"},
        {"{git: \"h:r\", dirty: true}",
         "2:40: source.dirty: only a work tree where this command runs has uncommitted changes: "
         "`git: .` or a relative path"},
        {"{git: ., rev: v1, dirty: true}",
         "2:45: source.dirty: the work tree cannot also be at a `rev`"},
        {"{git: ., dirty: perhaps}", "2:36: source.dirty: must be true or false"},
        {"{dir: x, rev: v1}", "2:34: source.rev: only a git source has it"},
        {"{host_dir: src}", "2:31: host_dir: must be an absolute path"},
        {"{git: -x}", "2:26: git: `-x`: a path does not begin with -"},
        {"{git: \"~/x\"}", "2:26: git: `~/x`: ~ is not understood; write the folder out"},
        {"{git: \"ext::sh -c x\"}",
         "2:26: git: `ext::sh -c x`: git's remote helpers (NAME::...) are not used"},
        {"{git: \"a\\nb\"}", "2:26: git: line breaks and control characters are not allowed"},
        {"{git: \"\"}", "2:26: git: is empty"},
        {"{git: \"%{p}\"}", "2:26: git: parameters are put into commands and `env` only"},
        {"{git: ., rev: a..b}", "2:34: source.rev: `a..b`: a range of commits may only stand in "
                                "`rev` of a variant or an axis"},
        {"{git: ., rev: --all}", "2:34: source.rev: `--all`: a revision does not begin with -"},
        {"{git: ., rev: \"HEAD:x\"}",
         "2:34: source.rev: `HEAD:x`: a revision holds no space and none of : ? * [ \\ ( )"},
        {"{git: ., rev: \"a b\"}",
         "2:34: source.rev: `a b`: a revision holds no space and none of : ? * [ \\ ( )"},
        {"{git: ., rev: \"merge-base(a)\"}",
         "2:34: source.rev: `merge-base(a)`: must be merge-base(A, B)"},
        {"{git: ., rev: \"merge-base(a, -b)\"}",
         "2:34: source.rev: `-b`: a revision does not begin with -"},
        {"{git: ., rev: \"merge-base(a, )\"}", "2:34: source.rev: ``: a revision is missing"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char text[512];
        char expected[512] = "";
        snprintf(text, sizeof(text), "sweep: s\nworkload: {source: %s, run: make $JFLAG}\n",
                 table[i].source);
        if (table[i].message[0] != '\0') {
            snprintf(expected, sizeof(expected), "s.yaml:%s\n", table[i].message);
        }
        struct buf out = BUF_INIT;
        struct spec *spec = help_read(text, &out);
        if (strstr(expected, "gti") != NULL) {
            cr_expect(strstr(buf_str(&out), "did you mean `git`") != NULL &&
                      strstr(buf_str(&out), "is needed") != NULL);
        } else {
            cr_expect_str_eq(buf_str(&out), expected, "%s gave %s", table[i].source, buf_str(&out));
        }
        spec_free(&spec);
        buf_fini(&out);
    }
}

Test(spec, knows_what_is_read_where_the_command_runs)
{
    static const struct {
        const char *source;
        bool local;
    } table[] = {{"git: .", true},
                 {"git: sub/repo", true},
                 {"git: ../x", true},
                 {"git: /srv/x.git", false},
                 {"git: host:x.git", false},
                 {"git: \"https://h/x\"", false},
                 {"git: ./a:b", true},
                 {"git: u@h:x", false},
                 {"dir: /usr/src", true},
                 {"archive: a.tar.gz", true},
                 {"host_dir: /usr/src", false}};
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char text[512];
        snprintf(text, sizeof(text), "sweep: s\nworkload: {source: {%s}, run: make}\n",
                 table[i].source);
        struct spec *spec = help_read(text, NULL);
        cr_expect(first_workload(spec)->source.local == table[i].local, "%s", table[i].source);
        spec_free(&spec);
    }
}

Test(spec, warns_when_the_job_count_is_not_handed_on)
{
    static const struct {
        const char *run;
        const char *jobs;
        bool warns;
    } table[] = {
        {"make -j$NPROC", "[1, 2]", true},
        {"make", "[1..4]", true},
        {"make", "[4]", false},
        {"make $JFLAG", "[1, 2]", false},
        {"make -j$JOBS", "[1, 2]", false},
        {"make -j${JOBS:-1}", "[1, 2]", false},
        {"make ${JFLAG}", "[none, 1]", false},
        {"make -j$JOBSX", "[1, 2]", true},
        {"make ${JOBS_N}", "[1, 2]", true},
        {"echo $X; make $JOBS", "[1, 2]", false},
        {"make JFLAG", "[50%, max]", true},
        {"make", "[3..3]", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char text[512];
        snprintf(text, sizeof(text), "sweep: s\nworkload: {run: \"%s\"}\njobs: %s\n", table[i].run,
                 table[i].jobs);
        HELP_EXPECT_MESSAGES(
            text,
            table[i].warns
                ? "s.yaml:2:17: warning: run: neither $JOBS nor $JFLAG occurs in it, though `jobs` "
                  "asks for more than one job count\n"
                : "");
    }
    HELP_EXPECT_MESSAGES("sweep: s\nworkload: {run: make}\njobs: 4\nper: {h: {jobs: [1, 2]}}\n",
                         "s.yaml:2:17: warning: run: neither $JOBS nor $JFLAG occurs in it, though "
                         "`jobs` asks for more than one job count\n");
}

Test(spec, checks_workloads)
{
    HELP_EXPECT_MESSAGES("sweep: s\n", "s.yaml:1:1: `workloads` is missing\n");
    HELP_EXPECT_MESSAGES("workload: {run: x}\n", "s.yaml:1:1: `sweep`, the name, is missing\n");
    HELP_EXPECT_MESSAGES("sweep: s\nworkload: {run: x}\nworkloads: [{name: a, run: x}]\n",
                         "s.yaml:2:11: either `workloads` or `workload`, not both\n");
    HELP_EXPECT_MESSAGES("sweep: s\nworkloads: []\n",
                         "s.yaml:2:12: workloads: the list is empty\n");
    HELP_EXPECT_MESSAGES("sweep: s\nworkloads: x\n",
                         "s.yaml:2:12: workloads: must be a list of maps\n");
    HELP_EXPECT_MESSAGES("sweep: s\nworkloads: [x]\n",
                         "s.yaml:2:13: workloads: must be a map, as {name: ...}\n");
    HELP_EXPECT_MESSAGES("sweep: s\nworkloads: [{name: a}, {run: x}]\n",
                         "s.yaml:2:13: the workload has no `run`\n"
                         "s.yaml:2:24: the workload has no `name`\n");
    HELP_EXPECT_MESSAGES("sweep: s\nworkload: {run: [a], setup: \" \", check: \"\"}\n",
                         "s.yaml:2:17: run: must be a command for /bin/sh\n"
                         "s.yaml:2:29: setup: the command is blank\n"
                         "s.yaml:2:41: check: must be a command for /bin/sh\n");
    HELP_EXPECT_MESSAGES("sweep: s\nworkload: {run: x, timeout: {run: 0, setup: 31d, chekc: "
                         "1s}}\ntimeout: {run: 1h}\n",
                         "s.yaml:2:35: timeout.run: must be from 1ms to 30d\n"
                         "s.yaml:2:45: timeout.setup: must be from 1ms to 30d\n"
                         "s.yaml:2:50: unknown key `chekc` in timeout; did you mean `check`?\n"
                         "s.yaml:3:10: timeout: belongs into a workload or into `per`\n");
}

Test(spec, checks_hosts_and_the_top)
{
    char text[1024];
    HELP_EXPECT_MESSAGES(
        help_sweep(text, sizeof(text),
                   "hosts: [a, \"class:b\", a, \"class:\", \"x y\", \"any:b\", \"host:x\"]\n"),
        "s.yaml:3:23: hosts: `a` was given before, in line 3\n"
        "s.yaml:3:26: hosts: `class:` is not a host, class:NAME or any:NAME (A-Z a-z 0-9 . _ + , = "
        "- in names)\n"
        "s.yaml:3:36: hosts: `x y` is not a host, class:NAME or any:NAME (A-Z a-z 0-9 . _ + , = - "
        "in names)\n"
        "s.yaml:3:52: hosts: `host:x` is not a host, class:NAME or any:NAME (A-Z a-z 0-9 . _ + , = "
        "- in names)\n");
    HELP_EXPECT_MESSAGES(help_sweep(text, sizeof(text), "hosts: {a: b}\n"),
                         "s.yaml:3:8: hosts: must be a list, as [a, b]\n");
    HELP_EXPECT_MESSAGES(help_sweep(text, sizeof(text), "tolerence: 2%\nxyzzy: 1\n"),
                         "s.yaml:3:1: unknown key `tolerence`; did you mean `tolerance`?\n"
                         "s.yaml:4:1: unknown key `xyzzy`\n");
    struct spec *spec = help_read(help_sweep(text, sizeof(text), "hosts: p6\n"), NULL);
    size_t n = 0;
    (void)spec_hosts(spec, &n);
    cr_expect(n == 1);
    spec_free(&spec);
}

Test(spec, messages_stay_one_short_line)
{
    /* cut at 60 bytes, which may be within a letter: 57, 58 and 59 plain bytes before the letters
     * of two bytes */
    static const char *const shown[] = {"\xc3\xa9", "\xc3\xa9", ""};
    for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
        char plain[64];
        char line[256];
        char text[1024];
        char expected[512];
        snprintf(plain, sizeof(plain), "%.*s", (int)(48 + i),
                 "1234567890123456789012345678901234567890123456789012345");
        snprintf(line, sizeof(line),
                 "base: \"a\\nb\\x1b[31m %s\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\"\n", plain);
        snprintf(expected, sizeof(expected),
                 "s.yaml:3:7: base: `a b [31m %s%s...` is not a name: 1 to 64 of A-Z a-z 0-9 . _ + "
                 ", = -\n",
                 plain, shown[i]);
        HELP_EXPECT_MESSAGES(help_sweep(text, sizeof(text), line), expected);
    }
}

/* What a message quotes steers no terminal, also not by the control characters above ASCII. */
Test(spec, messages_show_no_control_characters)
{
    HELP_EXPECT_MESSAGES("sweep: s\nworkload: {run: x, \"a\\e\\x9b\\u0085\\xa0b\": y}\n",
                         "s.yaml:2:20: unknown key `a     \xc2\xa0" "b` in workload\n");
}
