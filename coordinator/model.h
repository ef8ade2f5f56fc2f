/* model.h: the coordinator's vocabulary: plain rows that travel between its rooms. No behaviour, no store, no wire.
 *
 * Pointers in rows are borrowed: from the store for the time of a callback, or from the arena that the caller gave. Text may be NULL where it says so. */
#ifndef MAKESPAN_COORDINATOR_MODEL_H
#define MAKESPAN_COORDINATOR_MODEL_H

#include "common/vocab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum run_state {
#define RUN_STATE(name, number, word, is_end, sentence) RUN_##name = (number),
#include "coordinator/model.def"
#undef RUN_STATE
};
enum sweep_state {
#define SWEEP_STATE(name, number, word, is_end) SWEEP_##name = (number),
#include "coordinator/model.def"
#undef SWEEP_STATE
};
enum host_state {
#define HOST_STATE(name, number, word) HOST_##name = (number),
#include "coordinator/model.def"
#undef HOST_STATE
};
enum cell_state {
#define CELL_STATE(name, number, word) CELL_##name = (number),
#include "coordinator/model.def"
#undef CELL_STATE
};
enum event_kind {
#define EVENT_KIND(name, number, word) EVENT_##name = (number),
#include "coordinator/model.def"
#undef EVENT_KIND
};

const char *model_run_word(int state);   /* NULL when unknown, as all of these */
const char *model_sweep_word(int state);
const char *model_host_word(int state);
const char *model_cell_word(int state);
const char *model_event_word(int kind);
bool model_run_is_end(int state);
bool model_run_step_ok(int from, int to);
bool model_sweep_is_end(int state);

/* An optional number: absent is not 0. */
struct opt_i64 {
    bool has;
    int64_t v;
};

struct model_fact {
    const char *key;
    const char *value;
};

#define MODEL_HASH 32

/* --- hosts and trust --- */
struct model_host {
    int64_t id;
    const char *name;
    enum host_state state;
    const char *const *classes;
    size_t class_count;
    const char *boot_id;    /* of the last HELLO; NULL: never connected */
    const char *machine_id; /* NULL: unknown */
    const char *key_hash;   /* of its certificate, hex */
    const char *version;    /* of its worker; NULL */
    int64_t cpus_milli;     /* usable CPUs in thousandths; 0: unknown */
    int64_t memory_bytes;   /* 0: unknown */
    uint64_t visit;
    int64_t joined_wall_ns;
    int64_t seen_wall_ns; /* last message; 0: never */
    const struct model_fact *facts; /* only where the reader asks for them */
    size_t fact_count;
};

struct model_cert {
    const char *serial; /* hex */
    enum role role;
    const char *name;
    const char *key_hash;
    int64_t end_s;
    int64_t issued_wall_ns;
    int64_t revoked_wall_ns; /* 0: valid */
};

struct model_token {
    uint8_t id[8];
    uint8_t secret_hash[32];
    enum role role;
    const char *const *classes;
    size_t class_count;
    const char *name; /* NULL: the holder chooses */
    int64_t end_wall_ns;
    int64_t made_wall_ns;
    const char *made_by;
    const char *used_key_hash; /* NULL: not used */
    const char *used_name;     /* NULL: not used */
    const uint8_t *cert;       /* DER of the certificate that it gave; NULL */
    size_t cert_len;
};

/* --- sweeps --- */
enum { SOURCE_ARCHIVE = 1, SOURCE_HOST_DIR = 2, SOURCE_NONE = 3 };
enum { PRIORITY_GATE = 0, PRIORITY_NORMAL = 1, PRIORITY_IDLE = 2 };
enum { ORDER_INTERLEAVE = 0, ORDER_SHUFFLE = 1 };

struct model_sweep {
    int64_t id;
    const char *name;
    int64_t number; /* NAME/number */
    enum sweep_state state;
    int priority;
    uint64_t seed;
    const char *file; /* name of the sweep file */
    const char *text; /* the sweep file; only where the reader asks for it */
    const char *sets; /* --set as JSON object; "{}" */
    const char *base; /* name of the base variant; NULL: none */
    const char *compare; /* as JSON list of words and pairs */
    int64_t tolerance_ppm;
    const char *key;       /* idempotency key; NULL */
    const char *submitted_by;
    int64_t submitted_wall_ns;
    int64_t ended_wall_ns; /* 0: not ended */
    const char *end_reason; /* why it is in its state: ended, paused, or made to go on; NULL */
};

struct model_workload {
    int64_t id;
    int64_t sweep;
    uint32_t index; /* in the sweep file, from 0 */
    const char *name;
    int source_kind;
    const char *source; /* as written: path or URL; NULL */
    const char *setup;  /* NULL: none, as for all commands but run */
    const char *reset;
    const char *run;
    const char *check;
    const char *fingerprint;
};

struct model_variant {
    int64_t id;
    int64_t sweep;
    uint32_t index;
    const char *name;
    const char *kernel; /* NULL */
    const char *const *env; /* NAME=VALUE */
    size_t env_count;
    const char *storage; /* as JSON; NULL: default */
};

/* What is built: one a workload and variant. */
struct model_input {
    int64_t workload;
    int64_t variant;
    const char *expr;    /* revision as written; "" */
    const char *commit;  /* full hash; "" */
    const char *tree;    /* git's tree hash; "" */
    const char *subject; /* "" */
    bool has_blob;
    uint8_t blob[MODEL_HASH];
    uint64_t size;
    bool dirty;
    const char *host_dir; /* NULL */
};

/* What a sweep does on one host: settings after `per` overrides, and how far the generator is. */
struct model_sweep_host {
    int64_t sweep;
    int64_t host;
    const char *selector; /* as written in hosts: */
    uint64_t seed;
    int order;
    int64_t until_runs; /* measured runs a cell */
    int64_t warmup;     /* warm-ups at the start of a cell */
    int64_t budget_ns;  /* 0: none */
    int64_t retry_invalid, retry_interrupted, retry_failed;
    int64_t settle_timeout_ns;
    int64_t next_block; /* number of the next block to draw; block 0 is the warm-ups */
    int64_t next_slot;
    int64_t used_ns;     /* time of its attempts so far, for the budget and the ETA */
    bool finished;       /* nothing more will be drawn and every run is at its end */
    const char *skipped; /* why nothing is done there; NULL */
    const char *settings; /* every effective setting, as YAML that `per` of a sweep file reads, for people and later versions */
};

struct model_cell {
    int64_t id;
    int64_t sweep;
    int64_t host;
    int64_t workload;
    int64_t variant;
    int32_t jobs;
    enum cell_state state;
    const char *reason; /* of SKIPPED and FAILED; NULL */
    int64_t setup_timeout_ns, reset_timeout_ns, run_timeout_ns, check_timeout_ns;
    const char *fingerprint; /* of its first attempt; NULL */
};

struct model_block {
    int64_t sweep;
    int64_t host;
    int64_t number;
    uint64_t seed;      /* of this block's order */
    int64_t mirror_of;  /* block whose order it mirrors; -1: none */
    int64_t look;       /* planned look that ends with it; 0: none */
    int64_t drawn_wall_ns;
    bool broken; /* by a higher priority: drawn again */
};

struct model_run {
    int64_t id;
    int64_t sweep;
    int64_t host;
    int64_t cell;
    int64_t block;
    int64_t look;
    int64_t slot; /* place in the host's order within the sweep */
    bool warmup;
    enum run_state state;
    int64_t state_wall_ns;  /* since when */
    int64_t expect_wall_ns; /* SENT, RUNNING, AWAY: when it should be over; 0: unknown */
    uint32_t attempts;      /* attempts begun so far: the number of the last */
    uint32_t counted;       /* the attempt that counts; 0: none */
    uint32_t tries_invalid, tries_interrupted, tries_failed; /* used up so far */
    const char *reason;     /* of its state; NULL */
    int64_t replaced_by;    /* run; 0: none */
};

/* --- attempts --- */
struct model_attempt {
    int64_t run;
    uint32_t attempt;
    int64_t cell; /* with sweep and host through the cell */
    enum outcome outcome; /* as it counts: SUPERSEDED when another was first */
    enum outcome reported; /* as the worker said */
    enum phase phase;
    enum ending ending;
    struct opt_i64 exit_status, signal;
    const char *text;
    bool warmup, fresh_tree, late, out_of_order;
    struct opt_i64 real_ns, user_ns, sys_ns;
    enum cpu_way cpu_way;
    struct opt_i64 wait_user_ns, wait_sys_ns;
    struct opt_i64 max_rss_bytes, tree_peak_bytes, minor_faults, major_faults, voluntary_switches, involuntary_switches, read_bytes,
        write_bytes;
    struct opt_i64 observer_ns, foreign_ns, start_wall_ns;
    int64_t begin_wall_ns, end_wall_ns;
    struct opt_i64 setup_ns, reset_ns, settle_ns, check_ns;
    const char *boot_id;
    uint64_t visit;
    const char *tree_key;    /* NULL */
    const char *blob_seen;   /* hex; NULL */
    const char *tree_seen;   /* NULL */
    const char *fingerprint; /* NULL */
    const char *fingerprint_text; /* NULL */
    struct opt_i64 calibrate_before_ns, calibrate_after_ns;
    const char *kernel_seen; /* NULL */
    struct opt_i64 cpus_milli;
    int32_t jobs;
    const char *worker_version;
    const char *dropped_env; /* names, separated by spaces; NULL */
    struct opt_i64 output_bytes;
    int64_t stored_wall_ns;
    uint32_t next_seq;  /* records stored so far */
    uint32_t count;     /* records in all; 0: END has not come */
    bool whole;         /* END and all before it are stored */
};

struct model_mark {
    int64_t run;
    uint32_t attempt;
    enum mark mark;
    bool invalid;
    const char *text;
};

struct model_attempt_fact {
    int64_t run;
    uint32_t attempt;
    const char *key;
    const char *value;
};

struct model_point {
    int64_t at_ns;
    uint32_t what;
    int64_t value;
};

struct model_event {
    int64_t id;
    int64_t wall_ns;
    enum event_kind kind;
    int64_t sweep; /* 0: none, as for host and run */
    int64_t host;
    int64_t run;
    const char *who; /* operator or host; NULL */
    const char *text;
};

struct model_comparison {
    int64_t id;
    int64_t sweep;
    int64_t host;
    int64_t workload;
    int32_t jobs;
    int64_t base;
    int64_t head;
    int64_t look;
    int64_t n_base, n_head;
    bool has_ratio;
    double ratio, low, high;
    const char *verdict;
    bool open;
    const char *because; /* why it closed; NULL */
    bool stale;
    int64_t wall_ns;
};

struct model_retraction {
    int64_t id;
    int64_t sweep;
    int64_t cell;    /* 0: all */
    int64_t run;     /* 0: all */
    uint32_t attempt; /* 0: all */
    const char *because;
    const char *who;
    int64_t wall_ns;
};

/* Everything of one sweep that a report, a comparison or an export reads: arrays in one arena; ids refer into them. */
struct model_sweep_data {
    struct model_sweep sweep;
    const struct model_sweep_host *sweep_hosts;
    size_t sweep_host_count;
    const struct model_host *hosts;
    size_t host_count;
    const struct model_workload *workloads; /* by index */
    size_t workload_count;
    const struct model_variant *variants; /* by index */
    size_t variant_count;
    const struct model_input *inputs;
    size_t input_count;
    const struct model_cell *cells; /* by host, workload, jobs, variant */
    size_t cell_count;
    const struct model_run *runs; /* by host, slot */
    size_t run_count;
    const struct model_attempt *attempts; /* whole ones, by run, attempt */
    size_t attempt_count;
    const struct model_mark *marks; /* by run, attempt */
    size_t mark_count;
    const struct model_attempt_fact *facts; /* by run, attempt */
    size_t fact_count;
    const struct model_retraction *retractions;
    size_t retraction_count;
};

/* The host of that id, or NULL. */
const struct model_host *model_find_host(const struct model_sweep_data *data, int64_t id);

#endif
