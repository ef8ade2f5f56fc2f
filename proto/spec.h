/* spec.h: the sweep file (makespan-sweep(5)) as records with their places.
 *
 * Owns: the language of the file, its defaults and limits, the parameters, the product of axes, the
 * layers of `per`. Does not own: git, files, hosts, clocks. Everything here is pure: the same text
 * gives the same records, in the same order, on the operator's machine and on the coordinator, so
 * that indices of workloads, expressions and variants may travel between them.
 *
 * The way of a file: spec_parse() -> for each of spec_exprs() someone asks git or packs a folder
 * and calls spec_set_revs() -> spec_resolve() -> spec_variants(), spec_rev_of(), spec_pairs(),
 * spec_settings_for() are final.
 *
 * All strings and arrays that are handed out belong to the spec and live until spec_free(). */
#ifndef MAKESPAN_PROTO_SPEC_H
#define MAKESPAN_PROTO_SPEC_H

#include "common/attr.h"
#include "common/jobs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct diag;
struct spec;

enum {
    SPEC_MAX_WORKLOADS = 64,
    SPEC_MAX_VARIANTS = 1024, /* after axes and ranges are multiplied out */
    SPEC_MAX_PAIRS = 16384,   /* planned comparisons of variants */
    SPEC_MAX_HOSTS = 1024,    /* selectors, and likewise keys of `per` */
    SPEC_MAX_PARAMS = 256,
    SPEC_MAX_ENV = 64, /* variables of one variant, of all its axes together */
    SPEC_MAX_AXES = 8,
    SPEC_MAX_JOBS = 256, /* items of `jobs` */
    SPEC_MAX_LOOKS = 16,
    SPEC_MAX_VALUE = 4096,    /* bytes of a parameter's value, and of NAME=VALUE in `env` */
    SPEC_MAX_PATH = 1023,     /* bytes of a source's path or URL */
    SPEC_MAX_COMMAND = 65536, /* bytes of a command after parameters are put in */
    SPEC_MAX_RUNS = 10000,    /* `until: N` and the last look */
    SPEC_MAX_OBJ = 64,        /* storages of `obj` */
};

/* A place in the file, both from 1; line 0: nothing was written there. */
struct spec_pos {
    unsigned line;
    unsigned column;
};

/* One `--set name=value`. Borrowed for the call of spec_parse(). */
struct spec_set {
    const char *name;
    const char *value;
};

struct spec_param {
    const char *name;
    const char *value; /* after --set */
    bool is_set;       /* the value came from --set */
    struct spec_pos pos;
};

enum spec_source_kind {
    SPEC_SOURCE_GIT,      /* a repository, by path or URL */
    SPEC_SOURCE_DIR,      /* a folder, packed where the operator's command runs */
    SPEC_SOURCE_ARCHIVE,  /* a tar file there */
    SPEC_SOURCE_HOST_DIR, /* each host's own tree, an absolute path: nothing travels */
    SPEC_SOURCE_NONE, /* `source` is not written: the commands run in an empty folder; path is "" */
};

struct spec_source {
    enum spec_source_kind kind;
    const char *path; /* as written */
    const char *rev;  /* git: as written, "HEAD" when absent; else NULL */
    bool dirty;       /* git, local: the work tree with its uncommitted changes */
    bool local; /* read by the operator's command where it runs: dir, archive, and a git path that
                   is neither absolute nor a URL */
    struct spec_pos pos;
};

struct spec_timeouts {
    int64_t setup_ns;
    int64_t reset_ns;
    int64_t run_ns;
    int64_t check_ns;
};

/* Commands are texts for `/bin/sh -c` with the parameters put in; NULL when not given (`run` is
 * always given). */
struct spec_workload {
    uint32_t index;
    const char *name;
    struct spec_source source;
    const char *setup;
    const char *reset;
    const char *run;
    const char *check;
    const char *fingerprint;
    struct spec_timeouts timeout; /* what the workload says, over the defaults; spec_settings_for()
                                     knows `per` too */
    struct spec_pos pos;
    struct spec_pos run_pos;
};

/* A revision or merge base: `b` NULL: the revision `a`; else merge-base(a, b). The texts are no
 * options (no leading "-") and hold no space, control character or any of : ? * [ \ ( ). */
struct spec_rev_end {
    const char *a;
    const char *b;
};

/* What has to be looked up before the variants are final: one distinct (source, revision), or a
 * folder or archive to pack. */
struct spec_expr {
    uint32_t index;
    struct spec_source source; /* its path, kind and local; `rev` is not used here */
    const char *text;          /* the revision as written; NULL for a folder or an archive */
    bool range; /* from..to: every commit that is reachable from `to` and not from `from` */
    bool dirty; /* the work tree over HEAD */
    struct spec_rev_end from; /* range only */
    struct spec_rev_end to;   /* git */
    struct spec_pos pos;      /* of its first use */
};

/* What a look-up gave. */
struct spec_rev {
    char commit[65];     /* full hash in lower-case hex; "" for a folder or an archive */
    char tree[65];       /* likewise */
    char blob[65];       /* SHA-256 of the archive in hex; "" while it is not made */
    int64_t size;        /* bytes of the archive */
    bool dirty;          /* uncommitted changes are in the archive */
    const char *subject; /* first line of the commit's message, or "" */
};

struct spec_env {
    const char *name;
    const char *value; /* parameters put in */
};

/* Where src or obj lies. kind SPEC_PLACE_DISK (not written): the worker's own work directory. */
struct spec_place {
    enum { SPEC_PLACE_DISK, SPEC_PLACE_TMPFS } kind;
    uint32_t count; /* obj: OBJ1 to OBJn; 1 otherwise */
    int64_t size;   /* bytes of each; 0: the system's default */
};

struct spec_storage {
    bool given;
    struct spec_place src;
    struct spec_place obj;
    struct spec_pos pos;
};

struct spec_variant {
    uint32_t index;
    const char *name;   /* a range that is not resolved yet: its prefix and the text of the range;
                           unique in any case */
    const char *rev;    /* its own revision as written, or NULL: the workload's */
    bool range;         /* `rev` is a range that is not resolved yet */
    const char *kernel; /* the kernel that runs, as written, or NULL */
    const struct spec_env *env;
    size_t env_count;
    struct spec_storage storage;
    struct spec_pos pos;
};

/* A planned comparison, by indices of variants. */
struct spec_pair {
    uint32_t base;
    uint32_t head;
};

/* One of `hosts`, or a key of `per` (there never SPEC_HOST_ANY). */
struct spec_host {
    enum spec_host_kind { SPEC_HOST_NAME, SPEC_HOST_CLASS, SPEC_HOST_ANY } kind;
    const char *name; /* of the host or the class */
    struct spec_pos pos;
};

/* Only for kernels under test. Members are NULL when not given. */
struct spec_system {
    bool given;
    const char *install;
    const char *boot;
    const char *expect;
    const char *build;
    const char *build_on;
    struct spec_pos pos;
};

enum spec_until { SPEC_UNTIL_VERDICT, SPEC_UNTIL_GATE, SPEC_UNTIL_PRECISION, SPEC_UNTIL_RUNS };
enum spec_order { SPEC_ORDER_INTERLEAVE, SPEC_ORDER_SHUFFLE };
enum spec_else { SPEC_ELSE_MARK, SPEC_ELSE_SKIP, SPEC_ELSE_FAIL };
enum spec_caches { SPEC_CACHES_KEEP, SPEC_CACHES_DROP };
enum spec_reboot { SPEC_REBOOT_NEVER, SPEC_REBOOT_VARIANT, SPEC_REBOOT_RUN };
enum spec_priority { SPEC_PRIORITY_GATE, SPEC_PRIORITY_NORMAL, SPEC_PRIORITY_IDLE };
enum spec_observe { SPEC_OBSERVE_NORMAL, SPEC_OBSERVE_SILENT };

struct spec_repeat {
    uint32_t warmup; /* per cell */
    enum spec_until until;
    uint32_t runs;         /* SPEC_UNTIL_RUNS: counted runs of a cell */
    const char *policy;    /* NULL when not given */
    const uint32_t *looks; /* rising, runs a side */
    size_t look_count;
    int64_t budget_ns; /* of one host; 0: none */
};

struct spec_quiet {
    int64_t foreign_ppm;
    int64_t for_ns;
    int64_t within_ns;
    enum spec_else otherwise;
};

struct spec_retry {
    uint32_t invalid;
    uint32_t interrupted;
    uint32_t failed;
};

struct spec_machine {
    const char *cpus; /* a list as "0-3,8", or NULL: all */
    int32_t nice;
    const char *governor; /* NULL: kept */
    bool calibrate;
};

/* What holds for one host (and workload, for the timeouts): the defaults, what the file says, its
 * classes' overrides, its own. */
struct spec_settings {
    const struct jobs_item *jobs; /* at least one; jobs_points() makes the points of a host */
    size_t job_count;
    int64_t tolerance_ppm;
    int64_t error_pass_ppm;
    int64_t error_blame_ppm;
    struct spec_repeat repeat;
    enum spec_order order;
    bool seed_given;
    uint64_t seed;
    struct spec_quiet quiet;
    struct spec_retry retry;
    enum spec_caches caches;
    enum spec_reboot reboot;
    int64_t memory_per_job; /* bytes; 0: not limited */
    enum spec_priority priority;
    enum spec_observe observe;
    int64_t ahead_ns;
    struct spec_machine machine;
    struct spec_timeouts timeout;
};

/* Reads a sweep file. `file` names it in messages; `text` of n bytes (at most 1 MiB) and the sets
 * are borrowed for the call. Every mistake of meaning goes to diag as file:line:column, all at
 * once; a syntax error ends the reading. 0 and *out (warnings may be in diag), or a negative code
 * and *out NULL. What later releases will understand and this one does not is -ERR_NOTYET. A file
 * without `hosts` is fine here: see spec_require_hosts(). */
int spec_parse(const char *file, const void *text, size_t n, const struct spec_set *sets,
               size_t set_count, struct spec **out, struct diag *diag) MUST_CHECK;
void spec_free(struct spec **spec); /* NULL inside is fine */

const char *spec_file(const struct spec *spec);
const char *spec_name(const struct spec *spec); /* of the sweep */
const struct spec_param *spec_params(const struct spec *spec, size_t *n);
const struct spec_workload *spec_workloads(const struct spec *spec, size_t *n); /* at least one */
const struct spec_host *spec_hosts(const struct spec *spec, size_t *n);
const struct spec_host *spec_overrides(const struct spec *spec,
                                       size_t *n); /* the keys of `per`, in the order of the file */
const struct spec_system *spec_system(const struct spec *spec);
/* 0, or -ERR_INVAL with a located message when the file names no hosts (`makespan local` does not
 * ask). */
int spec_require_hosts(const struct spec *spec, struct diag *diag) MUST_CHECK;

/* What must be looked up, each once; index i of the array is the index for spec_set_revs().
 * host_dir and no source need no look-up. */
const struct spec_expr *spec_exprs(const struct spec *spec, size_t *n);
/* The index of what this workload's source and the revision `text` (NULL or "" for a folder or an
 * archive) stand for; -ERR_NOTFOUND when the sweep does not use it. */
int spec_find_expr(const struct spec *spec, size_t workload, const char *text, bool dirty,
                   size_t *index) MUST_CHECK;
/* Gives back what expression `index` stands for: one revision, or for a range every commit from the
 * oldest to the newest (1 to SPEC_MAX_VARIANTS). Copied. May be called again until spec_resolve().
 * 0; -ERR_INVAL for a number of revisions or a hash that cannot be, with text at the expression's
 * place in diag; -ERR_STATE after spec_resolve(). */
int spec_set_revs(struct spec *spec, size_t index, const struct spec_rev *revs, size_t n,
                  struct diag *diag) MUST_CHECK;
/* Multiplies the ranges out (a variant a commit, named by 12 hex digits behind the names of the
 * other axes) and checks names, `base` and pairs. Once, after all expressions are set. 0 or a
 * negative code with located text in diag; then the spec is only good for spec_free(). */
int spec_resolve(struct spec *spec, struct diag *diag) MUST_CHECK;
bool spec_is_resolved(const struct spec *spec);

/* The variants in the order of the file; the first axis changes slowest. Before spec_resolve() each
 * range stands as one. */
const struct spec_variant *spec_variants(const struct spec *spec, size_t *n); /* at least one */
/* The index of the base variant: `base`, or the first. After spec_resolve(). */
uint32_t spec_base(const struct spec *spec);
/* The planned comparisons, each pair of variants once, in the order of `compare`. After
 * spec_resolve(). */
const struct spec_pair *spec_pairs(const struct spec *spec, size_t *n);
/* What this variant of this workload is built from: its revision, else the workload's. NULL for
 * host_dir, without a source, and before spec_resolve(). */
const struct spec_rev *spec_rev_of(const struct spec *spec, size_t variant, size_t workload);

/* What holds on a host of that name with these classes (an override by class applies in the order
 * of the file, one by name after them). `workload` picks the timeouts. Pointers in *out belong to
 * the spec. */
void spec_settings_for(const struct spec *spec, const char *host, const char *const *classes,
                       size_t class_count, size_t workload, struct spec_settings *out);
/* Appends the effective settings as YAML in a fixed order and spelling: equal settings give equal
 * text. */
void spec_print_settings(const struct spec_settings *settings, struct buf *out);

#endif
