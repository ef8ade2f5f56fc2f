/* spec_int.h: what the files proto/spec*.c share. Nobody else includes it. */
#ifndef MAKESPAN_PROTO_SPEC_INT_H
#define MAKESPAN_PROTO_SPEC_INT_H

#include "common/attr.h"
#include "proto/spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct mem_arena;
struct yaml_node;

#define SPEC_NO_EXPR UINT32_MAX
#define SPEC_TEXT_MAX 256   /* bytes of a revision, a kernel, and other short texts */
#define SPEC_MAX_HINTS 100  /* mistakes after which no nearest name is searched any more */

enum spec_key {
#define SPEC_KEY(key, word) SPEC_KEY_##key,
#include "proto/spec_keys.def"
#undef SPEC_KEY
    SPEC_KEY_COUNT
};

/* Settings that were written, and where. */
struct spec_layer {
    struct spec_settings values;
    uint64_t written; /* bit 1 << enum spec_key */
    struct spec_pos pos[SPEC_KEY_COUNT];
};

/* A revision, a range or a merge base, taken apart. */
struct spec_rev_text {
    const char *text;
    bool range;
    struct spec_rev_end from;
    struct spec_rev_end to;
};

/* An item of an axis or of `variants`: one factor of the product. */
struct spec_facet {
    const char *name; /* NULL: a range without a name of its own */
    bool has_rev;
    struct spec_rev_text rev;
    struct spec_pos rev_pos;
    const char *kernel;
    struct spec_pos kernel_pos;
    const struct spec_env *env;
    size_t env_count;
    struct spec_storage storage;
    struct spec_pos pos;
};

struct spec_axis {
    const char *name; /* NULL: `variants` */
    const struct spec_facet *facets;
    size_t count;
    struct spec_pos pos;
};

/* A variant before ranges are multiplied out. */
struct spec_draft {
    struct spec_variant variant;
    const char *prefix; /* a range: what stands before the commit in the name, "" for nothing */
    uint32_t *exprs;    /* one a workload; SPEC_NO_EXPR where nothing is looked up */
};

struct spec_found {
    struct spec_rev *revs;
    size_t count;
};

struct spec_compare {
    enum { SPEC_COMPARE_BASE, SPEC_COMPARE_PREVIOUS, SPEC_COMPARE_ALL, SPEC_COMPARE_PAIR } kind;
    const char *base; /* of a named pair */
    const char *head;
    struct spec_pos base_pos;
    struct spec_pos head_pos;
    struct spec_pos pos;
};

struct spec {
    struct mem_arena *arena;
    bool full; /* the arena gave nothing more; checked once at the end of a step */
    bool resolved;
    const char *file;
    const char *name;
    struct spec_param *params;
    bool *param_used;
    size_t param_count;
    struct spec_workload *workloads;
    struct spec_rev_text *own_revs; /* of each workload's source; text NULL where it has none */
    size_t workload_count;
    struct spec_host *hosts;
    size_t host_count;
    struct spec_host *overrides;
    struct spec_layer *override_layers;
    size_t override_count;
    struct spec_layer top;
    struct spec_system system;
    struct spec_draft *drafts;
    size_t draft_count;
    struct spec_expr *exprs;
    struct spec_found *found;
    size_t expr_count;
    struct spec_variant *variants;
    uint32_t *variant_drafts; /* of which draft each variant is */
    size_t variant_count;
    const struct spec_rev **revs; /* variant_count times workload_count */
    const char *base_name;        /* NULL: the first variant */
    struct spec_pos base_pos;
    struct spec_compare *compares;
    size_t compare_count;
    uint32_t base;
    struct spec_pair *pairs;
    size_t pair_count;
};

/* A reading in progress. */
struct spec_ctx {
    struct spec *spec;
    struct diag *diag;
    size_t mistakes; /* real ones */
    size_t refusals; /* "not yet" */
    int code;        /* of the first mistake, negative */
};

/* --- spec_read.c: nodes to values. A function that gives false has said why. `what` is the key's
 * name in messages. --- */
struct spec_pos spec_pos_of(const struct yaml_node *node);
void spec_mistake(struct spec_ctx *ctx, struct spec_pos pos, int code, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
void spec_warning(struct spec_ctx *ctx, struct spec_pos pos, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* Zeroed memory of the spec; when there is no more, a mistake is noted and NULL comes back. */
void *spec_alloc(struct spec *spec, size_t count, size_t size);
const char *spec_copy(struct spec *spec,
                      const char *text); /* never NULL: "" when there is no more memory */
/* A text as a message may show it: short, without control characters. */
const char *spec_show(struct spec *spec, const char *text);
/* Printable UTF-8 without control characters, at most max bytes, not empty. */
bool spec_is_clean(const char *text, size_t max);
/* Checks that the node is a map of some of the keys; says every unknown key with the nearest known
 * one. False when it is no map. */
bool spec_read_map(struct spec_ctx *ctx, const struct yaml_node *node, const char *what,
                   const char *const *keys, size_t n);
/* The items of a list of 1 to max items; one scalar alone is a list of itself. *one is where that
 * item is kept. NULL on a mistake. */
const struct yaml_node *const *spec_read_list(struct spec_ctx *ctx, const struct yaml_node *node,
                                              const char *what, size_t max,
                                              const struct yaml_node **one, size_t *n);
/* The scalar's own text, not copied; not empty; `%{` in it is a mistake. NULL on a mistake. */
const char *spec_read_text(struct spec_ctx *ctx, const struct yaml_node *node, const char *what);
/* Likewise, and printable, at most max bytes, copied. */
const char *spec_read_clean(struct spec_ctx *ctx, const struct yaml_node *node, const char *what,
                            size_t max);
const char *spec_read_name(struct spec_ctx *ctx, const struct yaml_node *node, const char *what);
bool spec_read_duration(struct spec_ctx *ctx, const struct yaml_node *node, const char *what,
                        int64_t min, int64_t max, int64_t *out);
bool spec_read_percent(struct spec_ctx *ctx, const struct yaml_node *node, const char *what,
                       int64_t min, int64_t max, int64_t *out);
bool spec_read_size(struct spec_ctx *ctx, const struct yaml_node *node, const char *what,
                    int64_t *out);
bool spec_read_u32(struct spec_ctx *ctx, const struct yaml_node *node, const char *what,
                   uint32_t min, uint32_t max, uint32_t *out);
bool spec_read_bool(struct spec_ctx *ctx, const struct yaml_node *node, const char *what,
                    bool *out);
bool spec_read_word(struct spec_ctx *ctx, const struct yaml_node *node, const char *what,
                    const char *const *words, size_t n, int *out);

/* --- spec_param.c: `params`, --set, and what %{name} stands for --- */
void spec_read_params(struct spec_ctx *ctx, const struct yaml_node *node,
                      const struct spec_set *sets, size_t set_count);
void spec_warn_unused_params(struct spec_ctx *ctx);
/* The value of the parameter that is named by n bytes, or NULL after saying that there is none. */
const char *spec_param_value(struct spec_ctx *ctx, struct spec_pos pos, const char *name, size_t n);
/* A value of `env` with the parameters put in as they are. NULL on a mistake. */
const char *spec_read_value(struct spec_ctx *ctx, const struct yaml_node *node, const char *what);

/* --- spec_shell.c: commands, with parameters quoted for the shell --- */
const char *spec_read_command(struct spec_ctx *ctx, const struct yaml_node *node, const char *what);

/* --- spec_rev.c: revisions as written --- */
bool spec_read_rev(struct spec_ctx *ctx, const struct yaml_node *node, const char *what,
                   bool range_allowed, struct spec_rev_text *out);

/* --- spec_workload.c --- */
void spec_read_workloads(struct spec_ctx *ctx, const struct yaml_node *many,
                         const struct yaml_node *single);
void spec_read_system(struct spec_ctx *ctx, const struct yaml_node *node);
/* A warning for each `run` that hands no job count on though more than one is asked for. */
void spec_warn_jobs(struct spec_ctx *ctx);

/* --- spec_facet.c: the items of `variants` and `axes` --- */
/* Gives the axes, `variants` last; at least one, or 0 on a mistake. */
size_t spec_read_axes(struct spec_ctx *ctx, const struct yaml_node *axes,
                      const struct yaml_node *variants, struct spec_axis out[SPEC_MAX_AXES + 1]);

/* --- spec_draft.c: the product, and what it needs to have looked up --- */
void spec_make_drafts(struct spec_ctx *ctx, const struct spec_axis *axes, size_t n);
bool spec_has_ranges(const struct spec *spec);
/* Whether two variants have the same kernel, environment and storage. */
bool spec_same_surroundings(const struct spec_variant *a, const struct spec_variant *b);
/* A number that is the same where those are: each variant is compared with every other, and most
 * differ only in their last variable. */
uint32_t spec_sum_surroundings(const struct spec_variant *v);

/* --- spec_resolve.c: after the look-ups; base and pairs --- */
void spec_read_base(struct spec_ctx *ctx, const struct yaml_node *base,
                    const struct yaml_node *compare);
/* The variants as they stand before the look-ups. */
void spec_preview_variants(struct spec *spec);
/* Says where `base` or a pair names no variant; to be asked when no range is open. */
void spec_check_names(struct spec_ctx *ctx);

/* --- spec_settings.c --- */
/* The keys that may stand at the top and in `per`, NULL behind the last; the last one, `timeout`,
 * in `per` only. */
const char *spec_setting_word(size_t index);
#define SPEC_SETTINGS_MAX 32
/* A key that is none of them is left alone. */
void spec_read_setting(struct spec_ctx *ctx, const char *key, const struct yaml_node *value,
                       struct spec_layer *layer);
void spec_read_timeout(struct spec_ctx *ctx, const struct yaml_node *node,
                       struct spec_layer *layer);
/* Copies what the layer wrote. */
void spec_layer_apply(const struct spec_layer *layer, struct spec_settings *out);
void spec_settings_defaults(struct spec_settings *out);

/* --- spec_host.c: `hosts`, `per` --- */
void spec_read_hosts(struct spec_ctx *ctx, const struct yaml_node *node);
void spec_read_per(struct spec_ctx *ctx, const struct yaml_node *node);

/* --- spec_notyet.c: what is read and checked, but not carried out yet --- */
void spec_notyet_layer(struct spec_ctx *ctx, const struct spec_layer *layer);
void spec_notyet_storage(struct spec_ctx *ctx, struct spec_pos pos);
void spec_notyet_system(struct spec_ctx *ctx, struct spec_pos pos);
/* What holds today where `until` is not written in any layer. */
void spec_notyet_until(struct spec_settings *out);

#endif
