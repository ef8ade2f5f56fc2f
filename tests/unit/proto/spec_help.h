/* spec_help.h: what the tests of the sweep file share: reading a text and the messages that came of
 * it. */
#ifndef MAKESPAN_TESTS_UNIT_PROTO_SPEC_HELP_H
#define MAKESPAN_TESTS_UNIT_PROTO_SPEC_HELP_H

#include "common/buf.h"
#include "common/diag.h"
#include "proto/spec.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

/* The text read, or NULL; all messages, in order of place, in *messages when it is not NULL. */
static inline struct spec *help_read(const char *text, struct buf *messages)
{
    struct diag *diag = diag_new(256);
    struct spec *spec = NULL;
    int rc = spec_parse("s.yaml", text, strlen(text), NULL, 0, &spec, diag);
    cr_assert((rc == 0) == (spec != NULL), "code %d and a spec that is %s there", rc,
              spec != NULL ? "" : "not");
    cr_assert((rc == 0) == (diag_errors(diag) == 0), "code %d and %zu errors", rc,
              diag_errors(diag));
    if (messages != NULL) {
        buf_reset(messages);
        diag_print(diag, messages);
    } else {
        struct buf shown = BUF_INIT;
        diag_print(diag, &shown);
        cr_assert(spec != NULL, "refused:\n%s", buf_str(&shown));
        buf_fini(&shown);
    }
    diag_free(&diag);
    return spec;
}

/* A whole sweep around some lines. */
static inline const char *help_sweep(char *dst, size_t room, const char *lines)
{
    snprintf(dst, room, "sweep: s\nworkload: {source: {git: /r}, run: make $JFLAG}\n%s", lines);
    return dst;
}

/* The messages that a text gives, exactly. */
#define HELP_EXPECT_MESSAGES(text, expected)                                                       \
    do {                                                                                           \
        struct buf help_messages = BUF_INIT;                                                       \
        struct spec *help_spec = help_read(text, &help_messages);                                  \
        cr_expect_str_eq(buf_str(&help_messages), expected, "for\n%s\ngot\n%s\nnot\n%s", text,     \
                         buf_str(&help_messages), expected);                                       \
        spec_free(&help_spec);                                                                     \
        buf_fini(&help_messages);                                                                  \
    } while (0)

/* Sets a made-up revision for every expression and resolves. `commits` is how many each range
 * holds. */
static inline int help_resolve(struct spec *spec, size_t commits, struct buf *messages)
{
    size_t n = 0;
    const struct spec_expr *exprs = spec_exprs(spec, &n);
    struct diag *diag = diag_new(64);
    for (size_t i = 0; i < n; i++) {
        static struct spec_rev revs[2048];
        size_t count = exprs[i].range ? commits : 1;
        for (size_t k = 0; k < count; k++) {
            revs[k] = (struct spec_rev){.size = 10, .subject = "subject"};
            if (exprs[i].source.kind == SPEC_SOURCE_GIT) {
                snprintf(revs[k].commit, sizeof(revs[k].commit), "%04zx%036zx", i * 2048 + k,
                         (size_t)0);
                snprintf(revs[k].tree, sizeof(revs[k].tree), "%040zx", i);
            }
            snprintf(revs[k].blob, sizeof(revs[k].blob), "%064zx", i);
        }
        int rc = spec_set_revs(spec, i, revs, count, diag);
        cr_assert(rc == 0, "%s", diag_first(diag));
    }
    int rc = spec_resolve(spec, diag);
    if (messages != NULL) {
        buf_reset(messages);
        diag_print(diag, messages);
    } else {
        cr_assert(rc == 0, "%s", diag_first(diag));
    }
    diag_free(&diag);
    return rc;
}

#endif
