/* conf_test.c: schema rows: defaults, every type, all mistakes at once, printing that is read back.
 */
#include "common/conf.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "tests/harness/place.h"

#include <criterion/criterion.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct demo {
    char *listen;
    char *name;
    char *state;
    bool strict;
    int64_t workers;
    int64_t samples_ns;
    int64_t output_ns;
    int64_t room;
    int64_t share;
    int level;
    struct conf_list path;
    struct conf_map labels;
    char *deep;
    char *deep_unset;
    int64_t old;
};

static const char *const levels[] = {"quiet", "normal", "loud", NULL};

#define AT(member) offsetof(struct demo, member)

static const struct conf_row rows[] = {
    {"listen", CONF_STR, AT(listen), ":7443", 0, 0, NULL, false, false, "address and port"},
    {"name", CONF_STR, AT(name), NULL, 0, 0, NULL, false, false, "what it is called"},
    {"state", CONF_PATH, AT(state), "/var/lib/demo", 0, 0, NULL, false, false,
     "folder of the state"},
    {"strict", CONF_BOOL, AT(strict), "yes", 0, 0, NULL, false, false, "refuse what is odd"},
    {"workers", CONF_INT, AT(workers), "4", 1, 500, NULL, false, false, "how many"},
    {"keep.samples", CONF_DURATION, AT(samples_ns), "90d", CLOCK_HOUR, 3650 * CLOCK_DAY, NULL,
     false, false, "how long samples stay"},
    {"keep.output", CONF_DURATION, AT(output_ns), "30d", 0, 0, NULL, false, false,
     "how long output stays"},
    {"room", CONF_SIZE, AT(room), "2GiB", 1000, INT64_C(1) << 50, NULL, false, false,
     "bytes on disk"},
    {"share", CONF_PERCENT, AT(share), "2.5%", 0, 1000000, NULL, false, false, "of the CPUs"},
    {"level", CONF_ENUM, AT(level), "normal", 0, 0, levels, false, false, "how much is said"},
    {"path", CONF_LIST, AT(path), "[/usr/bin, /bin]", 0, 0, NULL, false, false,
     "where programs are"},
    {"labels", CONF_MAP, AT(labels), "{a: b}", 0, 0, NULL, false, false, "names and values"},
    {"one.two.deep", CONF_STR, AT(deep), "x y", 0, 0, NULL, false, false, "below two maps"},
    {"one.three.unset", CONF_STR, AT(deep_unset), NULL, 0, 0, NULL, false, false, "below another"},
    {"old", CONF_INT, AT(old), NULL, 0, 0, NULL, false, true, "no longer used"},
};
#define ROWS rows, ARRAY_LEN(rows)

static int parse(const char *text, struct demo *out, struct diag *diag)
{
    conf_defaults(ROWS, out);
    return conf_parse(ROWS, "d.conf", text, strlen(text), out, diag);
}

/* All messages of a text. */
static void messages(const char *text, struct buf *out)
{
    struct demo demo;
    struct diag *diag = diag_new(64);
    (void)!parse(text, &demo, diag);
    diag_print(diag, out);
    conf_free(ROWS, &demo);
    diag_free(&diag);
}

Test(conf, an_empty_file_gives_the_defaults)
{
    static const char *const texts[] = {"", "# nothing\n\n", "---\n# still nothing\n", "   \n"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct demo d;
        struct diag *diag = diag_new(8);
        cr_assert(parse(texts[i], &d, diag) == 0, "%s: %s", texts[i], diag_first(diag));
        cr_expect(diag_count(diag) == 0);
        cr_expect_str_eq(d.listen, ":7443");
        cr_expect_null(d.name);
        cr_expect_str_eq(d.state, "/var/lib/demo");
        cr_expect(d.strict && d.workers == 4 && d.samples_ns == 90 * CLOCK_DAY &&
                  d.room == INT64_C(2) << 30);
        cr_expect(d.share == 25000 && d.level == 1 && d.old == 0);
        cr_assert(d.path.count == 2 && d.labels.count == 1);
        cr_expect_str_eq(d.path.items[1], "/bin");
        cr_expect_str_eq(d.labels.keys[0], "a");
        cr_expect_str_eq(d.labels.values[0], "b");
        conf_free(ROWS, &d);
        cr_expect_null(d.listen);
        diag_free(&diag);
    }
}

Test(conf, reads_every_type)
{
    struct demo d;
    struct diag *diag = diag_new(8);
    int rc =
        parse("listen: \"[::1]:1\"\nname: x\nstate: /s\nstrict: off\nworkers: 500\n"
              "keep: {samples: 1h30m, output: 0}\nroom: 300MB\nshare: 0.5%\nlevel: loud\npath: []\n"
              "labels: {k: v, l: \"\"}\none:\n  two: {deep: z}\n  three: {unset: q}\n",
              &d, diag);
    cr_assert(rc == 0, "%s", diag_first(diag));
    cr_expect_str_eq(d.listen, "[::1]:1");
    cr_expect_str_eq(d.name, "x");
    cr_expect_str_eq(d.state, "/s");
    cr_expect(!d.strict && d.workers == 500 && d.samples_ns == 90 * CLOCK_MIN && d.output_ns == 0);
    cr_expect(d.room == 300000000 && d.share == 5000 && d.level == 2 && d.path.count == 0);
    cr_assert(d.labels.count == 2);
    cr_expect_str_eq(d.labels.values[1], "");
    cr_expect_str_eq(d.deep, "z");
    cr_expect_str_eq(d.deep_unset, "q");
    conf_free(ROWS, &d);
    diag_free(&diag);
}

Test(conf, says_all_mistakes_at_once)
{
    struct buf out = BUF_INIT;
    messages(
        "lisen: x\nstate: relative\nstrict: maybe\nworkers: 501\nkeep:\n  smaples: 3d\n  output: "
        "30\nroom: 1 X\n"
        "share: 200%\nlevel: silent\npath: /bin\nlabels: [a]\none: 5\nname: [a]\nworker: {a: b}\n",
        &out);
    cr_expect_str_eq(
        buf_str(&out),
        "d.conf:1:1: unknown option `lisen`; did you mean `listen`?\n"
        "d.conf:2:8: state: must be an absolute path\n"
        "d.conf:3:9: strict: must be yes or no\n"
        "d.conf:4:10: workers: must be from 1 to 500\n"
        "d.conf:6:3: unknown option `keep.smaples`; did you mean `samples`?\n"
        "d.conf:7:11: keep.output: not a duration: a number and a unit, as 30s or 1h30m\n"
        "d.conf:8:7: room: not a size: a number and a unit, as 300MB or 2GiB\n"
        "d.conf:9:8: share: must be from 0% to 100%\n"
        "d.conf:10:8: level: must be one of quiet, normal, loud\n"
        "d.conf:11:7: path: must be a list, as [a, b]\n"
        "d.conf:12:9: labels: must be a map, as {a: b}\n"
        "d.conf:13:6: one: must be a map\n"
        "d.conf:14:7: name: must be plain text, not a list or a map\n"
        "d.conf:15:1: unknown option `worker`; did you mean `workers`?\n",
        "%s", buf_str(&out));
    buf_fini(&out);
}

Test(conf, says_where_within_lists_and_maps)
{
    struct buf out = BUF_INIT;
    messages(
        "path: [a, [b]]\nlabels: {a: {b: c}}\nkeep: {samples: 1m}\nworkers: 99999999999999999999\n",
        &out);
    cr_expect_str_eq(buf_str(&out),
                     "d.conf:1:11: path: the items of this list must be plain text\n"
                     "d.conf:2:13: labels: the values of this map must be plain text\n"
                     "d.conf:3:17: keep.samples: must be from 1h to 3650d\n"
                     "d.conf:4:10: workers: must be from 1 to 500\n",
                     "%s", buf_str(&out));
    buf_fini(&out);
}

Test(conf, a_refused_value_leaves_the_default)
{
    struct demo d;
    struct diag *diag = diag_new(8);
    cr_expect(parse("workers: none\nstate: x\npath: [[a]]\n", &d, diag) < 0);
    cr_expect(diag_errors(diag) == 3);
    cr_expect(d.workers == 4);
    cr_expect_str_eq(d.state, "/var/lib/demo");
    cr_expect(d.path.count == 2);
    conf_free(ROWS, &d);
    diag_free(&diag);
}

Test(conf, warns_of_what_is_obsolete)
{
    struct buf out = BUF_INIT;
    messages("old: 5\n", &out);
    cr_expect_str_eq(buf_str(&out), "d.conf:1:1: warning: old is obsolete\n", "%s", buf_str(&out));
    buf_fini(&out);
}

Test(conf, asks_for_what_is_required)
{
    static const struct conf_row needed[] = {
        {"listen", CONF_STR, AT(listen), NULL, 0, 0, NULL, true, false, "address and port"}};
    struct demo d;
    struct diag *diag = diag_new(8);
    conf_defaults(needed, 1, &d);
    cr_expect(conf_parse(needed, 1, "d.conf", "", 0, &d, diag) == -ERR_NOTFOUND);
    cr_expect_str_eq(diag_first(diag), "listen is missing: address and port");
    conf_free(needed, 1, &d);
    diag_free(&diag);
}

Test(conf, a_syntax_error_and_a_wrong_root_are_one_message)
{
    struct buf out = BUF_INIT;
    messages("a: [", &out);
    messages("- a\n", &out);
    cr_expect(strncmp(buf_str(&out), "d.conf:2:1: syntax error: ", 26) == 0, "%s", buf_str(&out));
    cr_expect_not_null(
        strstr(buf_str(&out), "\nd.conf:1:1: options are written as `name: value`\n"));
    buf_fini(&out);
}

Test(conf, what_it_prints_it_reads)
{
    struct demo a;
    struct demo b;
    struct diag *diag = diag_new(8);
    struct buf first = BUF_INIT;
    struct buf second = BUF_INIT;
    int rc = parse("listen: \" #: odd\\t\\\"\\\\ \\x85\\u2028\\uFEFF\\x9b \xc3\xa9\"\nname: \"yes, "
                   "[no]\"\nroom: 1073741825B\nshare: 0.0001%\n"
                   "keep: {samples: 26h3m, output: 1ns}\npath: [\"a,b\", \"\", \"- x\", "
                   "\"{\"]\nlabels: {\"a b\": \"c: d\"}\n",
                   &a, diag);
    cr_assert(rc == 0, "%s", diag_first(diag));
    conf_print(ROWS, &a, &first);
    rc = parse(buf_str(&first), &b, diag);
    cr_assert(rc == 0, "%s\n%s", diag_first(diag), buf_str(&first));
    conf_print(ROWS, &b, &second);
    cr_expect_str_eq(buf_str(&second), buf_str(&first));
    cr_expect_str_eq(b.listen, a.listen);
    cr_expect_str_eq(b.path.items[0], "a,b");
    cr_expect(b.room == 1073741825 && b.output_ns == 1 && b.share == 1);
    cr_expect_null(b.deep_unset);
    conf_free(ROWS, &a);
    conf_free(ROWS, &b);
    buf_fini(&first);
    buf_fini(&second);
    diag_free(&diag);
}

Test(conf, prints_units_and_help)
{
    struct demo d;
    struct buf out = BUF_INIT;
    conf_defaults(ROWS, &d);
    conf_print(ROWS, &d, &out);
    cr_expect_str_eq(buf_str(&out),
                     "listen: \":7443\"  # address and port\n"
                     "# name: (unset)  # what it is called\n"
                     "state: /var/lib/demo  # folder of the state\n"
                     "strict: yes  # refuse what is odd\n"
                     "workers: 4  # how many\n"
                     "keep:\n"
                     "  samples: 90d  # how long samples stay\n"
                     "  output: 30d  # how long output stays\n"
                     "room: 2GiB  # bytes on disk\n"
                     "share: 2.5%  # of the CPUs\n"
                     "level: normal  # how much is said\n"
                     "path: [/usr/bin, /bin]  # where programs are\n"
                     "labels: {a: b}  # names and values\n"
                     "one:\n"
                     "  two:\n"
                     "    deep: \"x y\"  # below two maps\n"
                     "  # three:\n"
                     "    # unset: (unset)  # below another\n",
                     "%s", buf_str(&out));
    buf_fini(&out);
    conf_free(ROWS, &d);
}

Test(conf, loads_a_file_and_says_when_there_is_none)
{
    char path[256];
    place_pattern(path, sizeof(path), "makespan-conf");
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    static const char text[] = "workers: 7\nnmae: x\n";
    cr_assert(write(fd, text, sizeof(text) - 1) == (ssize_t)(sizeof(text) - 1));
    close(fd);
    struct demo d;
    struct diag *diag = diag_new(8);
    conf_defaults(ROWS, &d);
    cr_expect(conf_load(ROWS, path, &d, diag) == -ERR_NOTFOUND);
    cr_expect(d.workers == 7);
    cr_assert(diag_count(diag) == 1);
    cr_expect_str_eq(diag_get(diag, 0)->file, path);
    cr_assert(unlink(path) == 0);
    diag_clear(diag);
    cr_expect(conf_load(ROWS, path, &d, diag) == -ERR_NOTFOUND);
    cr_expect(strstr(diag_first(diag), path) != NULL &&
                  strstr(diag_first(diag), "not found") != NULL,
              "%s", diag_first(diag));
    conf_free(ROWS, &d);
    diag_free(&diag);
}
