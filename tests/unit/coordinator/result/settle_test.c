/* Which outcome a whole attempt gets: the table of ingest.h, row by row. */
#include "coordinator/result/settle.h"

#include <criterion/criterion.h>
#include <string.h>

struct row {
    const char *what;
    enum outcome reported;
    bool warm;
    enum run_state state;
    uint32_t attempts, counted;
    bool invalid_mark;
    int32_t jobs;
    enum outcome want;
    bool late;
};

/* The attempt is number 1 of its run, with two jobs asked for. */
static const struct row rows[] = {
    {"clean", OUTCOME_OK, false, RUN_RUNNING, 1, 0, false, 2, OUTCOME_OK, false},
    {"clean, never said TAKEN", OUTCOME_OK, false, RUN_SENT, 1, 0, false, 2, OUTCOME_OK, false},
    {"given up", OUTCOME_OK, false, RUN_QUEUED, 1, 0, false, 2, OUTCOME_OK, true},
    {"the host was lost", OUTCOME_OK, false, RUN_NODATA, 1, 0, false, 2, OUTCOME_OK, true},
    {"a second is under way", OUTCOME_OK, false, RUN_RUNNING, 2, 0, false, 2, OUTCOME_OK, true},
    {"tries were used up", OUTCOME_OK, false, RUN_DONE, 2, 0, false, 2, OUTCOME_OK, true},
    {"another counts", OUTCOME_OK, false, RUN_DONE, 2, 2, false, 2, OUTCOME_SUPERSEDED, true},
    {"replaced", OUTCOME_OK, false, RUN_REPLACED, 1, 0, false, 2, OUTCOME_SUPERSEDED, true},
    {"skipped", OUTCOME_OK, false, RUN_SKIPPED, 1, 0, false, 2, OUTCOME_SUPERSEDED, true},
    {"cancelled", OUTCOME_OK, false, RUN_CANCELLED, 1, 0, false, 2, OUTCOME_CANCELLED, true},
    {"cancelled warm-up", OUTCOME_OK, true, RUN_CANCELLED, 1, 0, false, 2, OUTCOME_OK, true},
    {"warm-up", OUTCOME_OK, true, RUN_RUNNING, 1, 0, false, 2, OUTCOME_OK, false},
    {"mark", OUTCOME_OK, false, RUN_RUNNING, 1, 0, true, 2, OUTCOME_INVALID, false},
    {"mark on a warm-up", OUTCOME_OK, true, RUN_RUNNING, 1, 0, true, 2, OUTCOME_INVALID, false},
    {"jobs", OUTCOME_OK, false, RUN_RUNNING, 1, 0, false, 4, OUTCOME_INVALID, false},
    {"jobs none is not 1", OUTCOME_OK, false, RUN_RUNNING, 1, 0, false, 0, OUTCOME_INVALID, false},
    {"failed", OUTCOME_FAILED, false, RUN_RUNNING, 1, 0, true, 2, OUTCOME_FAILED, false},
    {"interrupted", OUTCOME_INTERRUPTED, false, RUN_QUEUED, 1, 0, false, 2, OUTCOME_INTERRUPTED,
     true},
    {"invalid", OUTCOME_INVALID, false, RUN_RUNNING, 1, 0, false, 2, OUTCOME_INVALID, false},
    {"cancelled by us", OUTCOME_CANCELLED, false, RUN_CANCELLED, 1, 0, false, 2, OUTCOME_CANCELLED,
     true},
};

Test(settle, gives_each_attempt_its_outcome)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *r = &rows[i];
        struct model_attempt a = {.attempt = 1,
                                  .reported = r->reported,
                                  .warmup = r->warm,
                                  .jobs = r->jobs,
                                  .real_ns = {true, 5}};
        struct model_run run = {.state = r->state, .attempts = r->attempts, .counted = r->counted};
        struct model_cell cell = {.jobs = 2};
        struct model_input input = {.has_blob = false};
        struct settle_input in = {&a, &run, &cell, &input, r->invalid_mark, false};
        struct settle_result out;
        settle_attempt(&in, &out);
        cr_expect_eq(out.outcome, r->want, "%s: %s", r->what, vocab_outcome((int)out.outcome));
        cr_expect_eq(out.late, r->late, "%s", r->what);
        cr_expect_eq(out.cancelled_late, r->reported == OUTCOME_OK && r->want == OUTCOME_CANCELLED,
                     "%s", r->what);
    }
}

Test(settle, compares_the_archive_that_was_built)
{
    struct model_attempt a = {.attempt = 1, .reported = OUTCOME_OK, .real_ns = {true, 5}};
    struct model_run run = {.state = RUN_RUNNING, .attempts = 1};
    struct model_cell cell = {.jobs = 0};
    struct model_input input = {.has_blob = true};
    struct settle_input in = {&a, &run, &cell, &input, false, false};
    struct settle_result out;
    memset(input.blob, 0xab, sizeof(input.blob));
    a.blob_seen = "abababababababababababababababababababababababababababababababab";
    settle_attempt(&in, &out);
    cr_assert_eq(out.outcome, OUTCOME_OK);
    a.blob_seen = "abababababababababababababababababababababababababababababababac";
    settle_attempt(&in, &out);
    cr_assert_eq(out.outcome, OUTCOME_INVALID);
    cr_assert_str_eq(out.wrong, "another archive was unpacked than the one that was sent");
}

Test(settle, a_toolchain_mark_of_the_worker_is_not_doubled)
{
    struct model_attempt a = {
        .attempt = 1, .reported = OUTCOME_OK, .real_ns = {true, 5}, .fingerprint = "x"};
    struct model_run run = {.state = RUN_RUNNING, .attempts = 1};
    struct model_cell cell = {.fingerprint = "y"};
    struct model_input input = {.has_blob = false};
    struct settle_input in = {&a, &run, &cell, &input, false, false};
    struct settle_result out;
    settle_attempt(&in, &out);
    cr_assert(out.toolchain);
    cr_assert_eq(out.outcome, OUTCOME_INVALID);
    in.invalid_mark = in.fingerprint_mark = true;
    settle_attempt(&in, &out);
    cr_assert(!out.toolchain);
    cr_assert_eq(out.outcome, OUTCOME_INVALID);
}

Test(settle, drops_numbers_that_cannot_be)
{
    struct model_attempt a = {.real_ns = {true, -1},
                              .user_ns = {true, 0},
                              .sys_ns = {true, 4},
                              .output_bytes = {true, -7},
                              .exit_status = {true, 1}};
    settle_clean(&a);
    cr_assert(!a.real_ns.has && a.real_ns.v == 0);
    cr_assert(a.user_ns.has, "0 is a number");
    cr_assert(a.sys_ns.has);
    cr_assert(!a.output_bytes.has);
    cr_assert(a.exit_status.has);
}
