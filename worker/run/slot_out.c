/* slot_out.c: FLUSH: what is known of the attempt becomes records in the spool: RESULT, MARKs,
 * SAMPLES, OUTPUT, END. Everything is written from memory, as often as it takes. */
#include "common/clock.h"
#include "common/err.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/version.h"
#include "worker/os/os.h"
#include "worker/run/journal.h"
#include "worker/run/meter.h"
#include "worker/run/output.h"
#include "worker/run/slot_int.h"
#include "worker/run/spool.h"
#include "worker/run/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AGAIN (5 * CLOCK_SEC)
#define POINTS_A_RECORD 1024
#define TEXT_MAX 4096
#define MARK_TEXT_MAX 1024
#define BLOCK_BYTES 512 /* of getrusage()'s block operations */

/* --- RESULT --- */

#define SET(r, member, known, v)                                                                   \
    do {                                                                                           \
        (r)->has_##member = (known);                                                               \
        (r)->member = (known) ? (v) : 0;                                                           \
    } while (0)
#define SET_NATURAL(r, member, v) SET(r, member, (v) >= 0, v)

static void fill_times(const struct slot_attempt *at, struct msg_result *r)
{
    SET_NATURAL(r, setup_ns, at->setup_ns);
    SET_NATURAL(r, reset_ns, at->reset_ns);
    SET_NATURAL(r, settle_ns, at->settle_ns);
    SET_NATURAL(r, check_ns, at->check_ns);
}

static void fill_run(const struct slot_attempt *at, struct msg_result *r)
{
    const struct step_result *s = &at->result.step;

    r->cpu_way = (uint32_t)s->usage.way;
    SET_NATURAL(r, real_ns, s->real_ns);
    SET_NATURAL(r, user_ns, s->usage.user_ns);
    SET_NATURAL(r, sys_ns, s->usage.sys_ns);
    SET_NATURAL(r, wait_user_ns, s->wait.user_ns);
    SET_NATURAL(r, wait_sys_ns, s->wait.sys_ns);
    SET_NATURAL(r, max_rss_bytes, s->wait.max_rss_bytes);
    SET_NATURAL(r, tree_peak_bytes, s->usage.peak_bytes);
    SET_NATURAL(r, minor_faults, s->wait.minor_faults);
    SET_NATURAL(r, major_faults, s->wait.major_faults);
    SET_NATURAL(r, voluntary_switches, s->wait.voluntary_switches);
    SET_NATURAL(r, involuntary_switches, s->wait.involuntary_switches);
    SET_NATURAL(r, read_bytes, s->wait.block_in * BLOCK_BYTES);
    SET_NATURAL(r, write_bytes, s->wait.block_out * BLOCK_BYTES);
    SET_NATURAL(r, observer_ns, at->result.observer_ns);
    SET_NATURAL(r, foreign_ns, at->result.foreign_ns);
    SET(r, start_wall_ns, true, s->start_wall_ns);
    if (at->output[CMD_RUN] != NULL)
        SET(r, output_bytes, true, output_total(at->output[CMD_RUN]));
}

static void fill_tree(const struct slot_attempt *at, struct msg_result *r)
{
    r->fresh_tree = at->fresh;
    r->tree_key = at->key[0] == '\0' ? NULL : at->key;
    r->tree_seen = at->tree_seen[0] == '\0' ? NULL : at->tree_seen;
    r->has_blob_seen = at->has_blob_seen;
    if (at->has_blob_seen)
        r->blob_seen = (struct msg_bytes){.data = at->blob_seen, .len = sizeof at->blob_seen};
    r->fingerprint = at->fingerprint[0] == '\0' ? NULL : at->fingerprint;
    r->fingerprint_text = at->fingerprint_text;
}

/* Whom and what it is of, and which program says so. `text` and `kernel` are room for texts. */
static void fill_frame(const struct slot *slot, struct msg_result *r, char text[TEXT_MAX + 1],
                       char kernel[257])
{
    const struct slot_attempt *at = &slot->at;
    const struct msg_assign *a = at->a;

    r->run = a->run;
    r->attempt = a->attempt;
    r->outcome = (uint32_t)at->outcome;
    r->phase = (uint32_t)at->end_phase;
    r->ending = (uint32_t)at->ending;
    SET_NATURAL(r, exit_status, (int64_t)at->exit_status);
    SET(r, signal, at->signal > 0, (int64_t)at->signal);
    r->text = words_copy(text, TEXT_MAX + 1, buf_str(&at->text));
    r->warmup = a->warmup || (at->fresh && a->has_fresh_warmup && a->fresh_warmup);
    r->begin_wall_ns = at->begin_wall_ns;
    r->end_wall_ns = clock_wall_ns();
    r->boot_id = slot->conf.boot_id;
    r->visit = journal_visit(slot->conf.journal);
    r->kernel_seen = words_copy(kernel, 257, slot->conf.kernel);
    SET(r, cpus_milli, true, os_cpus_usable_milli(&at->cpus));
    r->jobs = a->jobs;
    r->worker_version = version_text();
    r->dropped_env = (const char *const *)at->dropped;
    r->dropped_env_count = at->dropped_count;
}

static int write_result(struct slot *slot)
{
    const struct slot_attempt *at = &slot->at;
    struct msg m = {.type = MSG_RESULT};
    struct msg_result *r = &m.u.result;
    struct rec_fact *facts = mem_xarray(at->told.count + 1, sizeof *facts);
    char *text = mem_xarray(TEXT_MAX + 1, 1);
    char kernel[257];
    int err;

    fill_frame(slot, r, text, kernel);
    fill_times(at, r);
    fill_tree(at, r);
    if (at->measured)
        fill_run(at, r);
    for (size_t i = 0; i < at->told.count; i++)
        facts[i] = (struct rec_fact){.key = at->told.list[i].key, .value = at->told.list[i].value};
    r->facts = facts;
    r->facts_count = at->told.count;
    r->seq = spool_next_seq(slot->conf.spool);
    err = spool_add(slot->conf.spool, &m);
    free(text);
    free(facts);
    return err;
}

/* --- the others --- */

static int write_mark(struct spool *spool, const struct msg_assign *a, enum mark mark, bool invalid,
                      const char *text)
{
    struct msg m = {.type = MSG_MARK};
    char plain[MARK_TEXT_MAX + 1];

    m.u.mark.run = a->run;
    m.u.mark.attempt = a->attempt;
    m.u.mark.seq = spool_next_seq(spool);
    m.u.mark.mark = (uint32_t)mark;
    m.u.mark.invalid = invalid;
    m.u.mark.text = words_copy(plain, sizeof plain, text);
    return spool_add(spool, &m);
}

static int write_marks(struct slot *slot)
{
    const struct marks *marks = &slot->at.marks;
    int err = 0;

    for (size_t i = 0; err == 0 && i < marks->count; i++)
        err = write_mark(slot->conf.spool, slot->at.a, marks->list[i].mark, marks->list[i].invalid,
                         marks->list[i].text);
    return err;
}

static int write_samples(struct slot *slot)
{
    const struct msg_assign *a = slot->at.a;
    size_t n = slot->at.measured ? meter_count(slot->meter) : 0;
    struct rec_point *points = mem_xarray(POINTS_A_RECORD, sizeof *points);
    int err = 0;

    for (size_t done = 0; err == 0 && done < n;) {
        struct msg m = {.type = MSG_SAMPLES};
        size_t count = n - done < POINTS_A_RECORD ? n - done : POINTS_A_RECORD;

        for (size_t i = 0; i < count; i++) {
            struct meter_point p;

            meter_get(slot->meter, done + i, &p);
            points[i] =
                (struct rec_point){.at_ns = p.at_ns, .what = (uint32_t)p.what, .value = p.value};
        }
        m.u.samples.run = a->run;
        m.u.samples.attempt = a->attempt;
        m.u.samples.seq = spool_next_seq(slot->conf.spool);
        m.u.samples.points = points;
        m.u.samples.points_count = count;
        err = spool_add(slot->conf.spool, &m);
        done += count;
    }
    free(points);
    return err;
}

static enum phase phase_of(enum slot_cmd cmd)
{
    switch (cmd) {
    case CMD_FINGERPRINT:
        return PHASE_FETCH;
    case CMD_SETUP:
        return PHASE_SETUP;
    case CMD_RESET:
        return PHASE_RESET;
    case CMD_RUN:
        return PHASE_MEASURE;
    default:
        return PHASE_CHECK;
    }
}

static int write_output(struct slot *slot, enum slot_cmd cmd)
{
    struct output *o = slot->at.output[cmd];
    const uint8_t *bytes;
    uint64_t cursor = 0, offset;
    size_t n;
    int err = 0, more;

    while (err == 0 && (more = output_piece(o, &cursor, &offset, &bytes, &n)) != 0) {
        struct msg m = {.type = MSG_OUTPUT};

        if (more < 0) {
            log_error("the output of %s cannot be read: %s", slot_cmd_word(cmd), err_text(more));
            return 0;
        }
        m.u.output.run = slot->at.a->run;
        m.u.output.attempt = slot->at.a->attempt;
        m.u.output.seq = spool_next_seq(slot->conf.spool);
        m.u.output.phase = (uint32_t)phase_of(cmd);
        m.u.output.offset = offset;
        m.u.output.bytes = (struct msg_bytes){.data = bytes, .len = n};
        m.u.output.total = output_total(o);
        err = spool_add(slot->conf.spool, &m);
    }
    return err;
}

/* What may be left out when the disk is full; a mark says so. */
static int write_bulk(struct slot *slot)
{
    int err = write_samples(slot);

    for (int cmd = CMD_COUNT - 1; err == 0 && cmd >= 0; cmd--)
        if (slot->at.ended[cmd])
            err = write_output(slot, (enum slot_cmd)cmd);
    if (err != -ERR_FULL)
        return err;
    return write_mark(slot->conf.spool, slot->at.a, MARK_OUTPUT_CUT, false,
                      "the disk of the worker was full: samples and output were left out");
}

static int write_end(struct spool *spool, const struct msg_assign *a)
{
    struct msg m = {.type = MSG_END};
    int err;

    m.u.end.run = a->run;
    m.u.end.attempt = a->attempt;
    m.u.end.seq = spool_next_seq(spool);
    m.u.end.count = m.u.end.seq + 1;
    err = spool_add(spool, &m);
    return err == 0 ? spool_commit(spool) : err;
}

static int write_all(struct slot *slot)
{
    int err = spool_begin(slot->conf.spool, slot->at.a->run, slot->at.a->attempt);

    if (err == 0)
        err = write_result(slot);
    if (err == 0)
        err = write_marks(slot);
    if (err == 0)
        err = write_bulk(slot);
    return err == 0 ? write_end(slot->conf.spool, slot->at.a) : err;
}

void slot_flush(struct slot *slot)
{
    char text[257], disk[220];
    int err = write_all(slot);

    if (err == 0) {
        slot_finish(slot, true);
        return;
    }
    if (err == -ERR_FULL)
        slot_disk_text(spool_dir(slot->conf.spool), disk, sizeof disk);
    else
        str_copy(disk, sizeof disk, spool_dir(slot->conf.spool));
    (void)snprintf(text, sizeof text, "the result waits to be written, %s: %s", err_text(err), disk);
    log_error("run %" PRIu64 ": %s", slot->at.a->run, text);
    slot->ops.state(slot->at.a->run, slot->at.a->attempt, PHASE_FLUSH, text, slot->arg);
    loop_timer_set(slot->again, AGAIN);
}

/* --- an attempt that an earlier start left --- */

int slot_report_interrupted(struct spool *spool, const struct journal_running *left,
                            const char *boot_id)
{
    const struct msg_assign *a = left->assign;
    struct msg m = {.type = MSG_RESULT};
    struct msg_result *r = &m.u.result;
    bool same_boot = strcmp(left->boot_id, boot_id) == 0;
    char text[256];
    int err;

    if (spool_find(spool, a->run, a->attempt, 0) < spool_count(spool))
        return 0;
    snprintf(text, sizeof text, "%s while the attempt was in phase %s",
             same_boot ? "the worker ended without a word (it was killed, or crashed)"
                       : "the machine was started anew",
             vocab_phase((int)left->phase));
    r->run = a->run;
    r->attempt = a->attempt;
    r->outcome = OUTCOME_INTERRUPTED;
    r->phase = (uint32_t)left->phase;
    r->ending = ENDING_NONE;
    r->text = text;
    r->warmup = a->warmup;
    r->fresh_tree = left->fresh_tree;
    r->cpu_way = CPU_WAY_NONE;
    r->begin_wall_ns = left->begin_wall_ns;
    r->end_wall_ns = clock_wall_ns();
    r->boot_id = left->boot_id;
    r->visit = left->visit;
    r->jobs = a->jobs;
    r->worker_version = version_text();
    err = spool_begin(spool, a->run, a->attempt);
    if (err == 0)
        err = spool_add(spool, &m);
    return err == 0 ? write_end(spool, a) : err;
}
