/* spec_settings_test.c: limits of every setting, layers of `per`, and the printed form that is read
 * back. */
#include "proto/spec.h"

#include "common/clock.h"
#include "common/err.h"
#include "tests/unit/proto/spec_help.h"

static struct spec *read_sweep(const char *lines)
{
    char text[8192];
    return help_read(help_sweep(text, sizeof(text), lines), NULL);
}

static struct spec_settings settings_of(const struct spec *spec, const char *host,
                                        const char *class_a, const char *class_b)
{
    const char *classes[2];
    size_t n = 0;
    struct spec_settings s;
    if (class_a != NULL) {
        classes[n++] = class_a;
    }
    if (class_b != NULL) {
        classes[n++] = class_b;
    }
    spec_settings_for(spec, host, classes, n, 0, &s);
    return s;
}

Test(spec_settings, are_read)
{
    struct spec *spec =
        read_sweep("jobs: [none, 1..4, 8, 50%, max]\n"
                   "tolerance: 1.5%\n"
                   "error: {pass: 1%, blame: 2%}\n"
                   "repeat: {warmup: 0, until: 7, policy: main, looks: [2, 4], budget: 8h}\n"
                   "order: {by: shuffle, seed: 18446744073709551615}\n"
                   "retry: {invalid: 1, interrupted: 2, failed: 3}\n"
                   "memory: {per_job: 40MB}\n"
                   "priority: idle\n");
    struct spec_settings s = settings_of(spec, "h", NULL, NULL);
    cr_assert(s.job_count == 5);
    cr_expect(s.jobs[1].first == 1 && s.jobs[1].last == 4 && s.jobs[3].share_ppm == 500000 &&
              s.jobs[4].kind == JOBS_ITEM_MAX);
    cr_expect(s.tolerance_ppm == 15000 && s.error_pass_ppm == 10000 && s.error_blame_ppm == 20000);
    cr_expect(s.repeat.warmup == 0 && s.repeat.until == SPEC_UNTIL_RUNS && s.repeat.runs == 7 &&
              s.repeat.budget_ns == 8 * CLOCK_HOUR);
    cr_expect_str_eq(s.repeat.policy, "main");
    cr_assert(s.repeat.look_count == 2 && s.repeat.looks[0] == 2 && s.repeat.looks[1] == 4);
    cr_expect(s.order == SPEC_ORDER_SHUFFLE && s.seed_given && s.seed == UINT64_MAX);
    cr_expect(s.retry.invalid == 1 && s.retry.interrupted == 2 && s.retry.failed == 3);
    cr_expect(s.memory_per_job == 40000000 && s.priority == SPEC_PRIORITY_IDLE);
    spec_free(&spec);
    spec = read_sweep("error: 10%\njobs: 4\norder: shuffle\n");
    s = settings_of(spec, "h", NULL, NULL);
    cr_expect(s.error_pass_ppm == 100000 && s.error_blame_ppm == 100000, "one number sets both");
    cr_expect(s.job_count == 1 && s.jobs[0].first == 4);
    cr_expect(s.order == SPEC_ORDER_SHUFFLE && !s.seed_given);
    spec_free(&spec);
}

Test(spec_settings, limits)
{
    static const struct {
        const char *line;
        const char *message;
    } table[] = {
        {"jobs: []", "7: jobs: the list is empty"},
        {"jobs: 0", "7: jobs: `0`: 0 is not a job count; `none` hands the build no flag at all"},
        {"jobs: [-3]", "8: jobs: `-3`: a job count is not negative"},
        {"jobs: [1..]", "8: jobs: `1..`: a range needs both its ends"},
        {"jobs: [5..1]", "8: jobs: `5..1`: the range falls: its first number is the larger one"},
        {"jobs: [1..1000000]", "8: jobs: `1..1000000`: a job count is at most 4096"},
        {"jobs: [[1]]", "8: jobs: must be plain text, not a list"},
        {"jobs: {a: 1}", "7: jobs: must be a list, as [a, b]"},
        {"tolerance: 2", "12: tolerance: `2` is not a percentage: a number and %, as 2%"},
        {"tolerance: 0%", "12: tolerance: must be from 0.1% to 100%"},
        {"tolerance: 101%", "12: tolerance: must be from 0.1% to 100%"},
        {"error: 51%", "8: error: must be from 0.1% to 50%"},
        {"error: {pass: 0%}", "15: error.pass: must be from 0.1% to 50%"},
        {"error: {blame: x}", "16: error.blame: `x` is not a percentage: a number and %, as 2%"},
        {"error: {power: 5%}", "9: unknown key `power` in error"},
        {"repeat: 3", "9: repeat: must be a map, as {warmup: ...}"},
        {"repeat: {warmup: 101}", "18: repeat.warmup: must be from 0 to 100"},
        {"repeat: {warmup: -1}", "18: repeat.warmup: `-1` is not a whole number from 0 to 100"},
        {"repeat: {until: 0}", "17: repeat.until: the number of runs must be from 1 to 10000"},
        {"repeat: {until: 10001}", "17: repeat.until: the number of runs must be from 1 to 10000"},
        {"repeat: {until: dawn}",
         "17: repeat.until: `dawn` is not verdict, gate, precision or a number of runs"},
        {"repeat: {policy: a b}",
         "18: repeat.policy: `a b` is not a name: 1 to 64 of A-Z a-z 0-9 . _ + , = -"},
        {"repeat: {looks: [5, 5]}", "21: repeat.looks: 5 does not rise above 5"},
        {"repeat: {looks: [5, 8, 7]}", "24: repeat.looks: 7 does not rise above 8"},
        {"repeat: {looks: [1, 2]}", "18: repeat.looks: must be from 2 to 10000"},
        {"repeat: {looks: [2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18]}",
         "17: repeat.looks: more than 16 items"},
        {"repeat: {budget: 8}",
         "18: repeat.budget: `8` is not a duration: a number and a unit, as 30s or 1h30m"},
        {"repeat: {budget: 1s}", "18: repeat.budget: must be from 1m to 365d"},
        {"order: random", "8: order: `random` is not one of interleave, shuffle"},
        {"order: {seed: -1}", "15: order.seed: must be a whole number below 2^64"},
        {"order: {seed: 18446744073709551616}",
         "15: order.seed: must be a whole number below 2^64"},
        {"quiet: {foreign: 101%}", "18: quiet.foreign: must be from 0% to 100%"},
        {"quiet: {for: 2d}", "14: quiet.for: must be from 0s to 1d"},
        {"quiet: {within: soon}",
         "17: quiet.within: `soon` is not a duration: a number and a unit, as 30s or 1h30m"},
        {"quiet: {else: stop}", "15: quiet.else: `stop` is not one of mark, skip, fail"},
        {"quiet: {elese: mark}", "9: unknown key `elese` in quiet; did you mean `else`?"},
        {"retry: {invalid: 101}", "18: retry.invalid: must be from 0 to 100"},
        {"retry: {failed: many}", "17: retry.failed: `many` is not a whole number from 0 to 100"},
        {"caches: flush", "9: caches: `flush` is not one of keep, drop"},
        {"reboot: always", "9: reboot: `always` is not one of never, variant, run"},
        {"memory: {per_job: 40}",
         "19: memory.per_job: `40` is not a size: a number and a unit, as 40MB or 2GiB"},
        {"memory: {per_job: 0}", "19: memory.per_job: must be from 1B to 1024TiB"},
        {"memory: 40MB", "9: memory: must be a map, as {per_job: ...}"},
        {"priority: high", "11: priority: `high` is not one of gate, normal, idle"},
        {"observe: never", "10: observe: `never` is not one of normal, silent"},
        {"ahead: 31d", "8: ahead: must be from 0s to 30d"},
        {"machine: {cpus: \"3-1\"}", "17: machine.cpus: `3-1` is not `all` or a list as 0-3,8"},
        {"machine: {cpus: \"1,\"}", "17: machine.cpus: `1,` is not `all` or a list as 0-3,8"},
        {"machine: {cpus: 4096}", "17: machine.cpus: `4096` is not `all` or a list as 0-3,8"},
        {"machine: {nice: 20}", "17: machine.nice: must be a whole number from -20 to 19"},
        {"machine: {governor: \"a b\"}",
         "21: machine.governor: `a b` is not a name: 1 to 64 of A-Z a-z 0-9 . _ + , = -"},
        {"machine: {calibrate: 1}", "22: machine.calibrate: must be true or false"},
        {"per: {}", "6: per: must be a map, as {\"class:NAME\": {...}, HOST: {...}}"},
        {"per: {h: {}}", "10: per: the map is empty"},
        {"per: {h: x}", "10: per: must be a map, as {jobs: ...}"},
        {"per: {\"any:x\": {jobs: 1}}", "7: per: write class:x; any: is for `hosts` only"},
        {"per: {\"class:\": {jobs: 1}}", "7: per: `class:` is not a host, class:NAME or any:NAME "
                                         "(A-Z a-z 0-9 . _ + , = - in names)"},
        {"per: {h: {hosts: [a]}}", "11: unknown key `hosts` in per"},
        {"per: {h: {jbos: 1}}", "11: unknown key `jbos` in per; did you mean `jobs`?"},
        {"per: {h: {timeout: {run: 5}}}",
         "26: timeout.run: `5` is not a duration: a number and a unit, as 30s or 1h30m"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char lines[512];
        char text[1024];
        char expected[512];
        snprintf(lines, sizeof(lines), "%s\n", table[i].line);
        snprintf(expected, sizeof(expected), "s.yaml:3:%s\n", table[i].message);
        HELP_EXPECT_MESSAGES(help_sweep(text, sizeof(text), lines), expected);
    }
}

Test(spec_settings, per_lies_over_the_top_class_by_class_then_host)
{
    struct spec *spec =
        help_read("sweep: s\n"
                  "workloads:\n"
                  "  - {name: a, run: make $JFLAG, timeout: {run: 3h, check: 1m}}\n"
                  "  - {name: b, run: make $JFLAG}\n"
                  "jobs: [1, 2]\n"
                  "tolerance: 3%\n"
                  "repeat: {until: 5, warmup: 2}\n"
                  "per:\n"
                  "  slow: {jobs: [none], timeout: {setup: 5h}, tolerance: 6%}\n"
                  "  \"class:p6\": {repeat: {until: 3}, timeout: {run: 6h}, tolerance: 4%}\n"
                  "  \"class:old\": {tolerance: 5%, error: 1%}\n",
                  NULL);
    size_t n = 0;
    const struct spec_host *o = spec_overrides(spec, &n);
    cr_assert(n == 3 && o[0].kind == SPEC_HOST_NAME && o[1].kind == SPEC_HOST_CLASS);
    struct spec_settings s = settings_of(spec, "fast", NULL, NULL);
    cr_expect(s.job_count == 2 && s.tolerance_ppm == 30000 && s.repeat.runs == 5 &&
              s.repeat.warmup == 2);
    cr_expect(s.timeout.run_ns == 3 * CLOCK_HOUR && s.timeout.check_ns == CLOCK_MIN &&
              s.timeout.setup_ns == CLOCK_HOUR);
    s = settings_of(spec, "fast", "p6", NULL);
    cr_expect(s.job_count == 2 && s.tolerance_ppm == 40000 && s.repeat.runs == 3 &&
                  s.repeat.warmup == 2,
              "fields not written stay");
    cr_expect(s.timeout.run_ns == 6 * CLOCK_HOUR && s.timeout.check_ns == CLOCK_MIN);
    s = settings_of(spec, "fast", "old", "p6");
    cr_expect(s.tolerance_ppm == 50000 && s.error_pass_ppm == 10000 && s.repeat.runs == 3,
              "the order of the file, not of the classes");
    s = settings_of(spec, "slow", "p6", NULL);
    cr_expect(s.job_count == 1 && s.jobs[0].kind == JOBS_ITEM_NONE && s.tolerance_ppm == 60000,
              "the host after its classes");
    cr_expect(s.timeout.setup_ns == 5 * CLOCK_HOUR && s.timeout.run_ns == 6 * CLOCK_HOUR);
    s = settings_of(spec, "p6", "slow", NULL);
    cr_expect(s.job_count == 2 && s.tolerance_ppm == 30000,
              "a host is no class and a class no host");
    spec_settings_for(spec, "h", NULL, 0, 1, &s);
    cr_expect(s.timeout.run_ns == 2 * CLOCK_HOUR && s.timeout.check_ns == 10 * CLOCK_MIN);
    spec_free(&spec);
}

Test(spec_settings, without_until_three_runs_are_made)
{
    struct spec *spec = read_sweep("repeat: {warmup: 2}\nper: {h: {repeat: {until: 9}}}\n");
    struct spec_settings s = settings_of(spec, "other", NULL, NULL);
    cr_expect(s.repeat.until == SPEC_UNTIL_RUNS && s.repeat.runs == 3 && s.repeat.warmup == 2);
    s = settings_of(spec, "h", NULL, NULL);
    cr_expect(s.repeat.until == SPEC_UNTIL_RUNS && s.repeat.runs == 9 && s.repeat.warmup == 2);
    spec_free(&spec);
}

Test(spec_settings, the_printed_form_is_complete)
{
    struct spec *spec =
        read_sweep("jobs: [none, 1..20, 2..16/2, 3, 12.5%, max]\nmemory: {per_job: 1536KiB}\n"
                   "repeat: {policy: main, budget: 90m}\norder: {by: shuffle, seed: 5}\n");
    struct spec_settings s = settings_of(spec, "h", NULL, NULL);
    struct buf out = BUF_INIT;
    spec_print_settings(&s, &out);
    cr_expect_str_eq(buf_str(&out),
                     "jobs: [none, 1..20, 2..16/2, 3, 12.5%, max]\n"
                     "tolerance: 2%\n"
                     "error: {pass: 5%, blame: 5%}\n"
                     "repeat: {warmup: 1, until: 3, policy: \"main\", looks: [5, 8, 12, 18, 27], "
                     "budget: 1h30m}\n"
                     "order: {by: shuffle, seed: 5}\n"
                     "quiet: {foreign: 2%, for: 10s, within: 10m, else: mark}\n"
                     "retry: {invalid: 3, interrupted: 3, failed: 0}\n"
                     "caches: keep\n"
                     "reboot: never\n"
                     "memory: {per_job: 1536KiB}\n"
                     "priority: normal\n"
                     "observe: normal\n"
                     "ahead: 0s\n"
                     "machine: {cpus: \"all\", nice: 0, governor: \"keep\", calibrate: true}\n"
                     "timeout: {setup: 1h, reset: 10m, run: 2h, check: 10m}\n",
                     "%s", buf_str(&out));
    buf_fini(&out);
    spec_free(&spec);
}

Test(spec_settings, what_is_printed_is_read_back)
{
    static const char *const tops[] = {
        "",
        "jobs: [max, 4096, 1..3/2, 7..7/2, 0.0001%, 1000%]\ntolerance: 0.1001%\nerror: {pass: 49.9999%, "
        "blame: 0.1%}\n",
        "repeat: {warmup: 0, until: 10000, looks: [2, 10000], budget: 61s}\nmemory: {per_job: "
        "1TB}\npriority: gate\n",
        "order: {seed: 0}\nretry: {invalid: 0, interrupted: 100, failed: 7}\nmemory: {per_job: "
        "3B}\n",
        "repeat: {policy: \"a,b=c\"}\nmemory: {per_job: 4096MiB}\nper: {h: {timeout: {setup: 1ms, "
        "reset: 1h2m3.5s, run: 30d, check: 1.000001s}}}\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(tops); i++) {
        struct buf first = BUF_INIT;
        struct buf again = BUF_INIT;
        struct buf lines = BUF_INIT;
        struct spec *a = read_sweep(tops[i]);
        struct spec_settings s = settings_of(a, "h", NULL, NULL);
        spec_print_settings(&s, &first);
        buf_add_str(&lines, "per:\n  other:\n    ");
        for (const char *p = buf_str(&first); *p != '\0'; p++) {
            buf_add_char(&lines, *p);
            if (*p == '\n' && p[1] != '\0') {
                buf_add_str(&lines, "    ");
            }
        }
        struct spec *b = read_sweep(buf_str(&lines));
        s = settings_of(b, "other", NULL, NULL);
        spec_print_settings(&s, &again);
        cr_expect_str_eq(buf_str(&again), buf_str(&first));
        buf_fini(&first);
        buf_fini(&again);
        buf_fini(&lines);
        spec_free(&a);
        spec_free(&b);
    }
}
