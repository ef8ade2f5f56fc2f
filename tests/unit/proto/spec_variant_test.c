/* spec_variant_test.c: variants, axes and their product, what has to be looked up, ranges, base and
 * pairs. */
#include "proto/spec.h"

#include "common/err.h"
#include "tests/unit/proto/spec_help.h"

/* "name=rev" of every variant, separated by spaces. */
static const char *names(const struct spec *spec, char *dst, size_t room)
{
    size_t n = 0;
    const struct spec_variant *v = spec_variants(spec, &n);
    dst[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(dst);
        cr_expect(v[i].index == i);
        snprintf(dst + len, room - len, "%s%s", i == 0 ? "" : " ", v[i].name);
    }
    return dst;
}

static const char *pairs(const struct spec *spec, char *dst, size_t room)
{
    size_t n = 0;
    const struct spec_pair *p = spec_pairs(spec, &n);
    dst[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(dst);
        snprintf(dst + len, room - len, "%s%u:%u", i == 0 ? "" : " ", p[i].base, p[i].head);
    }
    return dst;
}

static struct spec *read_sweep(const char *lines)
{
    char text[4096];
    return help_read(help_sweep(text, sizeof(text), lines), NULL);
}

static void expect_messages(const char *lines, const char *expected)
{
    char text[4096];
    HELP_EXPECT_MESSAGES(help_sweep(text, sizeof(text), lines), expected);
}

Test(spec_variant, axes_multiply_in_the_order_of_the_file)
{
    static const struct {
        const char *lines;
        const char *names;
    } table[] = {
        {"axes: {sched: [4bsd, ule], rev: [a, b]}\n", "4bsd,a 4bsd,b ule,a ule,b"},
        {"axes: {rev: [a, b], sched: [4bsd, ule]}\n", "a,4bsd a,ule b,4bsd b,ule"},
        {"axes: {x: [1, 2, 3]}\nvariants: [{name: p}, {name: q, env: {Y: z}}]\n",
         "1,p 1,q 2,p 2,q 3,p 3,q"},
        {"axes: {cc: [{name: gcc, env: {CC: gcc -O2}}, {name: clang, env: {CC: clang}}], rev: "
         "v1}\n",
         "gcc,v1 clang,v1"},
        {"variants: [{rev: 0123}, {rev: 1e3}]\n", "0123 1e3"},
        {"", "default"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char text[512];
        struct spec *spec = read_sweep(table[i].lines);
        cr_expect_str_eq(names(spec, text, sizeof(text)), table[i].names, "%s gave %s",
                         table[i].lines, text);
        spec_free(&spec);
    }
}

Test(spec_variant, an_axis_sets_what_it_is_called)
{
    struct spec *spec = read_sweep(
        "axes: {sched: [4bsd, ule], rev: [a, b], cc: [{name: g, env: {CC: gcc, A: \"1\"}}]}\n");
    size_t n = 0;
    const struct spec_variant *v = spec_variants(spec, &n);
    cr_assert(n == 4);
    cr_expect_str_eq(v[2].rev, "a");
    cr_assert(v[2].env_count == 3);
    cr_expect_str_eq(v[2].env[0].name, "A");
    cr_expect_str_eq(v[2].env[1].name, "CC");
    cr_expect_str_eq(v[2].env[1].value, "gcc");
    cr_expect_str_eq(v[2].env[2].name, "sched");
    cr_expect_str_eq(v[2].env[2].value, "ule");
    spec_free(&spec);
}

Test(spec_variant, says_mistakes_in_variants)
{
    expect_messages("variants: []\n", "s.yaml:3:11: variants: the list is empty\n");
    expect_messages("variants: [a]\n", "s.yaml:3:12: variants: must be a map, as {name: ...}\n");
    expect_messages("variants: [{name: a b}, {nmae: c}, {rev: a/b}, {env: {A: 1}}, {}]\n",
                    "s.yaml:3:19: name: `a b` is not a name: 1 to 64 of A-Z a-z 0-9 . _ + , = -\n"
                    "s.yaml:3:25: the variant has no `name`\n"
                    "s.yaml:3:26: unknown key `nmae` in variants; did you mean `name`?\n"
                    "s.yaml:3:36: `a/b` is no name for a variant; give it one with `name`\n"
                    "s.yaml:3:48: the variant has no `name`\n"
                    "s.yaml:3:63: variants: the map is empty\n");
    expect_messages("variants: [{name: a}, {name: b, env: {X: \"1\"}}, {name: a}]\n",
                    "s.yaml:3:49: the variant `a` was given before, in line 3\n");
    expect_messages("variants: [{name: a}, {name: b, env: {X: \"1\"}}, {name: a}]\nbase: c\n",
                    "s.yaml:3:49: the variant `a` was given before, in line 3\n"
                    "s.yaml:4:7: base: there is no variant `c`\n");
    expect_messages(
        "variants: [{name: a, env: {1A: x, JOBS: y, OBJ12: z, OBJX: fine, B: [c], SRC: s}}]\n",
        "s.yaml:3:28: env: `1A` is not a name of an environment variable\n"
        "s.yaml:3:35: env: `JOBS` is set for every command and cannot be chosen\n"
        "s.yaml:3:44: env: `OBJ12` is set for every command and cannot be chosen\n"
        "s.yaml:3:69: env: must be plain text\n"
        "s.yaml:3:74: env: `SRC` is set for every command and cannot be chosen\n");
    expect_messages("variants: [{name: a, kernel: v1}]\n",
                    "s.yaml:3:30: kernel: there is no `system` that says how a kernel is booted\n");
    expect_messages("variants: [{name: a, rev: a...b}, {name: b, rev: a..}, {name: c, rev: "
                    "a..b..c}, {name: d, rev: ..b}]\n",
                    "s.yaml:3:27: rev: `a...b`: a range has two dots, A..B\n"
                    "s.yaml:3:50: rev: `a..`: a range has two ends, A..B\n"
                    "s.yaml:3:71: rev: `a..b..c`: a range has two ends, A..B\n"
                    "s.yaml:3:96: rev: `..b`: a range has two ends, A..B\n");
    expect_messages(
        "variants: [{name: a, storage: {src: {tmpfs: 2}, obj: {tmpfs: 0, size: 5}, tmp: x}}]\n",
        "s.yaml:3:31: storage: not yet supported\n"
        "s.yaml:3:45: storage.src: must be 1\n"
        "s.yaml:3:62: storage.obj: must be from 1 to 64\n"
        "s.yaml:3:71: storage.obj: `5` is not a size: a number and a unit, as 40MB or 2GiB\n"
        "s.yaml:3:75: unknown key `tmp` in storage\n");
}

Test(spec_variant, says_mistakes_in_axes)
{
    expect_messages("axes: []\n",
                    "s.yaml:3:7: axes: must be a map of 1 to 8 lists, as {rev: [a, b]}\n");
    expect_messages("axes: {x: []}\n", "s.yaml:3:11: axes: the list is empty\n");
    expect_messages("axes: {x: [a, b, a]}\n",
                    "s.yaml:3:18: the value `a` was given before, in line 3\n");
    expect_messages(
        "axes: {x-y: [a, b], JOBS: [1], storage: [tmpfs]}\n",
        "s.yaml:3:8: axes: `x-y` is not a name of an environment variable\n"
        "s.yaml:3:21: axes: `JOBS` is set for every command and cannot be chosen\n"
        "s.yaml:3:32: axes: the items of `storage` must be maps, as {name: NAME, env: {...}}\n");
    expect_messages(
        "axes: {x: [a b]}\n",
        "s.yaml:3:12: axes: `a b` is no name for a variant; write {name: NAME, env: {x: ...}}\n");
    expect_messages("axes: {rev: [a], x: [{name: b, rev: c}]}\n",
                    "s.yaml:3:22: `rev` is set by `rev` too, and both are multiplied\n");
    expect_messages("axes: {x: [a]}\nvariants: [{name: b}, {name: c, env: {x: d}}]\n",
                    "s.yaml:4:23: `x` is set by `x` too, and both are multiplied\n");
    expect_messages("axes: {x: [\"a,b\", a], y: [c, \"b,c\"]}\n",
                    "s.yaml:3:30: the variant `a,b,c` comes about twice; see line 3\n");
    expect_messages(
        "axes: {x: [a123456789012345678901234567890], y: [b12345678901234567890123456789012]}\n",
        "s.yaml:3:50: the variant's name "
        "`a123456789012345678901234567890,b123456789012345678901234567...` would be longer than 64 "
        "bytes\n");
}

Test(spec_variant, limits_the_product)
{
    char lines[8192] = "axes:\n";
    for (int a = 0; a < 2; a++) {
        size_t len = strlen(lines);
        snprintf(lines + len, sizeof(lines) - len, "  %c: [", 'x' + a);
        for (int i = 0; i < 33; i++) {
            len = strlen(lines);
            snprintf(lines + len, sizeof(lines) - len, "%s%d", i == 0 ? "" : ", ", i);
        }
        len = strlen(lines);
        snprintf(lines + len, sizeof(lines) - len, "]\n");
    }
    char text[9000];
    HELP_EXPECT_MESSAGES(help_sweep(text, sizeof(text), lines),
                         "s.yaml:4:6: the axes make more than 1024 variants\n");
}

Test(spec_variant, warns_of_variants_that_do_not_differ)
{
    expect_messages("variants: [{name: a, rev: v1}, {name: b, rev: v2}, {name: c, rev: v1}]\n",
                    "s.yaml:3:52: warning: the variants `a` and `c` do not differ\n");
    expect_messages("variants: [{name: a, env: {X: \"1\", Y: \"2\"}}, {name: b, env: {Y: \"2\", X: "
                    "\"1\"}}, {name: c, env: {X: \"1\"}}]\n",
                    "s.yaml:3:46: warning: the variants `a` and `b` do not differ\n");
    struct spec *spec = read_sweep("variants: [{name: a, rev: v1}, {name: b, rev: tag}]\n");
    struct diag *diag = diag_new(8);
    struct spec_rev rev = {.subject = NULL};
    memset(rev.commit, 'a', 40);
    memset(rev.tree, 'b', 40);
    cr_expect(spec_set_revs(spec, 0, &rev, 1, diag) == 0);
    cr_expect(spec_set_revs(spec, 1, &rev, 1, diag) == 0);
    cr_expect(spec_resolve(spec, diag) == 0);
    cr_assert(diag_count(diag) == 1 && diag_get(diag, 0)->level == DIAG_WARNING);
    cr_expect_str_eq(diag_get(diag, 0)->text,
                     "the variants `a` and `b` do not differ: both are commit aaaaaaaaaaaa");
    cr_expect_str_eq(spec_rev_of(spec, 0, 0)->subject, "");
    diag_free(&diag);
    spec_free(&spec);
}

Test(spec_variant, lists_each_look_up_once)
{
    struct spec *spec = help_read("sweep: s\n"
                                  "workloads:\n"
                                  "  - {name: a, source: {git: /r, rev: v1}, run: x}\n"
                                  "  - {name: b, source: {git: /r}, run: x}\n"
                                  "  - {name: c, source: {git: ., dirty: true}, run: x}\n"
                                  "variants: [{name: old}, {name: new, rev: \"merge-base(v1, "
                                  "HEAD)\"}, {name: two, rev: v1}, {name: head, rev: HEAD}]\n",
                                  NULL);
    static const struct {
        const char *path;
        const char *text;
        bool dirty;
        unsigned line;
    } expected[] = {
        {"/r", "v1", false, 3},
        {"/r", "HEAD", false, 4},
        {".", "HEAD", true, 5},
        {"/r", "merge-base(v1, HEAD)", false, 6},
        {".", "merge-base(v1, HEAD)", false, 6},
        {".", "v1", false, 6},
        {".", "HEAD", false, 6},
    };
    size_t n = 0;
    const struct spec_expr *e = spec_exprs(spec, &n);
    cr_assert(n == ARRAY_LEN(expected), "%zu", n);
    for (size_t i = 0; i < n; i++) {
        size_t found = 77;
        cr_expect(e[i].index == i && !e[i].range);
        cr_expect_str_eq(e[i].source.path, expected[i].path);
        cr_expect_str_eq(e[i].text, expected[i].text);
        cr_expect(e[i].dirty == expected[i].dirty && e[i].pos.line == expected[i].line, "row %zu",
                  i);
        cr_expect(spec_find_expr(spec, expected[i].path[0] == '.' ? 2 : 0, expected[i].text,
                                 expected[i].dirty, &found) == 0 &&
                  found == i);
    }
    cr_expect_str_eq(e[3].to.a, "v1");
    cr_expect_str_eq(e[3].to.b, "HEAD");
    cr_expect(e[0].to.b == NULL && e[2].source.local);
    size_t index = 0;
    cr_expect(spec_find_expr(spec, 0, "v9", false, &index) == -ERR_NOTFOUND);
    cr_expect(spec_find_expr(spec, 9, "v1", false, &index) == -ERR_NOTFOUND);
    cr_expect(help_resolve(spec, 1, NULL) == 0);
    cr_expect(spec_rev_of(spec, 0, 0) == spec_rev_of(spec, 2, 1), "the same source and revision");
    cr_expect(spec_rev_of(spec, 0, 2) != spec_rev_of(spec, 3, 2), "the dirty tree is not HEAD");
    spec_free(&spec);
}

Test(spec_variant, other_sources_are_packed_or_left_alone)
{
    struct spec *spec = help_read("sweep: s\n"
                                  "workloads:\n"
                                  "  - {name: a, source: {dir: src}, run: x}\n"
                                  "  - {name: b, source: {archive: x.tar}, run: x}\n"
                                  "  - {name: c, source: {host_dir: /usr/src}, run: x}\n"
                                  "  - {name: d, run: x}\n"
                                  "  - {name: e, source: {dir: src}, run: x}\n",
                                  NULL);
    size_t n = 0;
    const struct spec_expr *e = spec_exprs(spec, &n);
    cr_assert(n == 2 && e[0].text == NULL && e[0].source.kind == SPEC_SOURCE_DIR &&
              e[1].source.kind == SPEC_SOURCE_ARCHIVE);
    size_t index = 7;
    cr_expect(spec_find_expr(spec, 4, "", false, &index) == 0 && index == 0);
    cr_expect(help_resolve(spec, 1, NULL) == 0);
    cr_expect(spec_rev_of(spec, 0, 0) != NULL &&
              spec_rev_of(spec, 0, 0) == spec_rev_of(spec, 0, 4));
    cr_expect_str_eq(spec_rev_of(spec, 0, 0)->commit, "");
    cr_expect(spec_rev_of(spec, 0, 2) == NULL && spec_rev_of(spec, 0, 3) == NULL);
    cr_expect(spec_rev_of(spec, 1, 0) == NULL && spec_rev_of(spec, 0, 5) == NULL);
    spec_free(&spec);
    HELP_EXPECT_MESSAGES(
        "sweep: s\nworkload: {source: {dir: src}, run: x}\nvariants: [{name: a, rev: v1}]\n",
        "s.yaml:3:27: rev: the workload in line 2 has no git source\n");
    HELP_EXPECT_MESSAGES(
        "sweep: s\n"
        "workloads: [{name: a, source: {git: /r}, run: x}, {name: b, source: {git: /q}, run: x}]\n"
        "variants: [{name: a, rev: v1}, {rev: v1..v2}]\n",
        "s.yaml:3:38: rev: a range needs the same git source in all workloads\n");
}

Test(spec_variant, a_range_unfolds_into_a_variant_a_commit)
{
    struct spec *spec = read_sweep(
        "axes: {sched: [4bsd, ule], rev: [v0, \"merge-base(v0, topic)..topic\"]}\nbase: 4bsd,v0\n");
    char text[512];
    size_t n = 0;
    const struct spec_expr *e = spec_exprs(spec, &n);
    cr_assert(n == 2 && e[1].range);
    cr_expect_str_eq(e[1].from.a, "v0");
    cr_expect_str_eq(e[1].from.b, "topic");
    cr_expect_str_eq(e[1].to.a, "topic");
    cr_expect_null(e[1].to.b);
    cr_expect_str_eq(
        names(spec, text, sizeof(text)),
        "4bsd,v0 4bsd,merge-base(v0, topic)..topic ule,v0 ule,merge-base(v0, topic)..topic");
    cr_expect(!spec_is_resolved(spec));
    cr_expect_null(spec_rev_of(spec, 0, 0));
    cr_expect(help_resolve(spec, 3, NULL) == 0);
    cr_expect(spec_is_resolved(spec));
    cr_expect_str_eq(names(spec, text, sizeof(text)),
                     "4bsd,v0 4bsd,080000000000 4bsd,080100000000 4bsd,080200000000 ule,v0 "
                     "ule,080000000000 ule,080100000000 ule,080200000000",
                     "%s", text);
    const struct spec_variant *v = spec_variants(spec, &n);
    cr_expect(!v[1].range && strlen(v[1].rev) == 40 && v[1].env_count == 1);
    cr_expect_str_eq(spec_rev_of(spec, 2, 0)->commit, v[2].rev);
    cr_expect(spec_base(spec) == 0);
    cr_expect_str_eq(pairs(spec, text, sizeof(text)), "0:1 0:2 0:3 0:4 0:5 0:6 0:7");
    spec_free(&spec);
}

Test(spec_variant, names_are_checked_when_ranges_are_known)
{
    char text[1024];
    struct buf out = BUF_INIT;
    struct spec *spec = read_sweep("variants: [{rev: a..b}]\nbase: 000200000000\n");
    cr_expect(help_resolve(spec, 3, NULL) == 0);
    cr_expect(spec_base(spec) == 2);
    cr_expect_str_eq(pairs(spec, text, sizeof(text)), "2:0 2:1");
    spec_free(&spec);
    spec = read_sweep("variants: [{name: t, rev: a..b}]\nbase: t,00020000000x\ncompare: [{base: "
                      "nix, head: \"t,000000000000\"}]\n");
    cr_expect(help_resolve(spec, 3, &out) == -ERR_NOTFOUND);
    cr_expect_str_eq(
        buf_str(&out),
        "s.yaml:4:7: base: there is no variant `t,00020000000x`; did you mean `t,000200000000`?\n"
        "s.yaml:5:18: compare: there is no variant `nix`\n",
        "%s", buf_str(&out));
    cr_expect(!spec_is_resolved(spec));
    spec_free(&spec);
    spec = read_sweep("variants: [{rev: a..b}, {rev: a..c}]\n");
    struct diag *diag = diag_new(8);
    struct spec_rev rev = {.subject = ""};
    memset(rev.commit, 'a', 40);
    memset(rev.tree, 'b', 40);
    cr_assert(spec_set_revs(spec, 0, &rev, 1, diag) == 0);
    cr_assert(spec_set_revs(spec, 1, &rev, 1, diag) == 0);
    cr_expect(spec_resolve(spec, diag) == -ERR_EXISTS);
    cr_expect_str_eq(diag_first(diag), "the variant `aaaaaaaaaaaa` comes about twice; see line 3");
    diag_free(&diag);
    spec_free(&spec);
    spec = read_sweep("variants: [{rev: a..b}, {name: x, rev: a}]\n");
    cr_expect(help_resolve(spec, 1024, &out) == -ERR_LIMIT);
    cr_expect_str_eq(buf_str(&out), "s.yaml:3:25: the ranges make more than 1024 variants\n", "%s",
                     buf_str(&out));
    spec_free(&spec);
    buf_fini(&out);
}

Test(spec_variant, what_was_looked_up_is_checked)
{
    struct spec *spec = read_sweep("variants: [{name: a, rev: v1}, {name: r, rev: a..b}]\n");
    static struct spec_rev many[1025];
    struct diag *diag = diag_new(32);
    struct spec_rev rev = {.subject = "s"};
    for (size_t i = 0; i < ARRAY_LEN(many); i++) {
        snprintf(many[i].commit, sizeof(many[i].commit), "%012zx%028d", i, 0);
        snprintf(many[i].tree, sizeof(many[i].tree), "%040zx", i);
    }
    cr_expect(spec_resolve(spec, diag) == -ERR_STATE);
    cr_expect(diag_errors(diag) == 2);
    cr_expect_str_eq(diag_first(diag), "`v1` was not looked up");
    diag_clear(diag);
    cr_expect(spec_set_revs(spec, 0, &rev, 1, diag) == -ERR_INVAL, "no commit");
    snprintf(rev.commit, sizeof(rev.commit), "%040d", 1);
    cr_expect(spec_set_revs(spec, 0, &rev, 1, diag) == -ERR_INVAL, "no tree");
    snprintf(rev.tree, sizeof(rev.tree), "%039d", 1);
    cr_expect(spec_set_revs(spec, 0, &rev, 1, diag) == -ERR_INVAL, "a short tree");
    snprintf(rev.tree, sizeof(rev.tree), "%064d", 1);
    snprintf(rev.blob, sizeof(rev.blob), "%040d", 1);
    cr_expect(spec_set_revs(spec, 0, &rev, 1, diag) == -ERR_INVAL, "a short archive hash");
    snprintf(rev.blob, sizeof(rev.blob), "%064d", 1);
    cr_expect(spec_set_revs(spec, 0, &rev, 0, diag) == -ERR_INVAL);
    cr_expect(spec_set_revs(spec, 0, many, 2, diag) == -ERR_INVAL);
    cr_expect(spec_set_revs(spec, 1, many, 0, diag) == -ERR_INVAL);
    cr_expect(spec_set_revs(spec, 1, many, 1025, diag) == -ERR_INVAL);
    cr_expect(spec_set_revs(spec, 2, many, 1, diag) == -ERR_STATE);
    cr_expect(diag_errors(diag) == 9);
    cr_expect_str_eq(diag_get(diag, 6)->text, "a..b: the range holds no commit");
    cr_expect(diag_get(diag, 6)->line == 3 && diag_get(diag, 6)->column == 47, "%u",
              diag_get(diag, 6)->column);
    cr_expect(spec_set_revs(spec, 0, &rev, 1, diag) == 0);
    cr_expect(spec_set_revs(spec, 1, many, 1023, diag) == 0);
    cr_expect(spec_resolve(spec, diag) == 0);
    cr_expect(spec_set_revs(spec, 0, &rev, 1, diag) == -ERR_STATE);
    cr_expect(spec_resolve(spec, diag) == -ERR_STATE);
    cr_expect_str_eq(spec_rev_of(spec, 0, 0)->blob, rev.blob);
    diag_free(&diag);
    spec_free(&spec);
}

Test(spec_variant, plans_pairs)
{
    static const struct {
        const char *lines;
        const char *pairs;
    } table[] = {
        {"", "0:1 0:2 0:3"},
        {"base: c\n", "2:0 2:1 2:3"},
        {"compare: previous\n", "0:1 1:2 2:3"},
        {"compare: [base, previous]\n", "0:1 0:2 0:3 1:2 2:3"},
        {"compare: all\n", "0:1 0:2 0:3 1:2 1:3 2:3"},
        {"compare: [{base: d, head: b}]\n", "3:1"},
        {"compare: {base: d, head: b}\n", "3:1"},
        {"compare: [{base: b, head: a}, base]\n", "1:0 0:2 0:3"},
        {"base: d\ncompare: [base, all]\n", "3:0 3:1 3:2 0:1 0:2 1:2"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char lines[512];
        char text[512];
        snprintf(lines, sizeof(lines), "axes: {x: [a, b, c, d]}\n%s", table[i].lines);
        struct spec *spec = read_sweep(lines);
        cr_expect(help_resolve(spec, 1, NULL) == 0);
        cr_expect_str_eq(pairs(spec, text, sizeof(text)), table[i].pairs, "%s gave %s",
                         table[i].lines, text);
        spec_free(&spec);
    }
    expect_messages("variants: [{name: a}, {name: b, env: {X: y}}]\ncompare: [bsae, {base: a}, "
                    "{base: a, head: a}, {base: b, head: c}]\nbase: [a]\n",
                    "s.yaml:4:11: compare: `bsae` is not one of base, previous, all\n"
                    "s.yaml:4:17: compare: a pair is {base: A, head: B}\n"
                    "s.yaml:4:44: compare: `a` is compared with itself\n"
                    "s.yaml:4:64: compare: there is no variant `c`\n"
                    "s.yaml:5:7: base: must be plain text, not a list\n");
    struct buf out = BUF_INIT;
    struct spec *spec = read_sweep("variants: [{rev: a..b}]\ncompare: [base, all]\n");
    cr_expect(help_resolve(spec, 200, &out) == -ERR_LIMIT);
    cr_expect_str_eq(buf_str(&out),
                     "s.yaml:4:17: compare: more than 16384 comparisons of variants\n", "%s",
                     buf_str(&out));
    spec_free(&spec);
    spec = read_sweep("variants: [{rev: a..b}]\n");
    size_t n = 0;
    cr_expect(help_resolve(spec, 1024, NULL) == 0);
    (void)spec_pairs(spec, &n);
    cr_expect(n == 1023);
    spec_free(&spec);
    buf_fini(&out);
}

/* Each search looks at every variant; a file may name wrong ones by the thousand. */
Test(spec_variant, nearest_names_are_searched_for_the_first_mistakes_only)
{
    struct buf text = BUF_INIT;
    struct buf messages = BUF_INIT;
    size_t hints = 0;
    buf_add_str(&text, "sweep: s\nworkload: {run: x}\nvariants: [{name: first, env: {A: a}}, {name: "
                       "second, env: {A: b}}]\ncompare:\n");
    for (int i = 0; i < 120; i++) {
        buf_add_str(&text, "- {base: first, head: secnd}\n");
    }
    struct spec *spec = help_read(buf_str(&text), &messages);
    cr_expect_null(spec);
    for (const char *p = buf_str(&messages); (p = strstr(p, "did you mean `second`?")) != NULL; p++) {
        hints++;
    }
    cr_expect_eq(hints, 100, "%zu", hints);
    cr_expect_not_null(strstr(buf_str(&messages), "s.yaml:124:23: compare: there is no variant `secnd`\n"));
    spec_free(&spec);
    buf_fini(&text);
    buf_fini(&messages);
}
