/* spec_draft.c: the product of the axes, and the list of what it needs to have looked up. Ranges
 * stay single here: see spec_resolve.c. */
#include "proto/spec_int.h"

#include "common/crc.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"

#include <stdlib.h>
#include <string.h>

#define COMMIT_DIGITS 12
#define NAME_ROOM 64

/* Everything that can be looked up is a source and a text; each gets a small number, so that equal
 * ones are found without a search through all expressions. */
struct lookup {
    uint32_t sources[SPEC_MAX_WORKLOADS]; /* number of each workload's source */
    size_t source_count;
    struct {
        const char *text;
        bool dirty;
    } texts[SPEC_MAX_VARIANTS + SPEC_MAX_WORKLOADS];
    size_t text_count;
    uint32_t *exprs; /* source_count times room for texts: index + 1, or 0 */
};

static size_t text_number(struct lookup *l, const char *text, bool dirty)
{
    for (size_t i = 0; i < l->text_count; i++) {
        if (l->texts[i].dirty == dirty && str_eq(l->texts[i].text, text)) {
            return i;
        }
    }
    l->texts[l->text_count].text = text;
    l->texts[l->text_count].dirty = dirty;
    return l->text_count++;
}

static void number_sources(const struct spec *spec, struct lookup *l)
{
    for (size_t i = 0; i < spec->workload_count; i++) {
        const struct spec_source *s = &spec->workloads[i].source;
        uint32_t number = (uint32_t)l->source_count;
        for (size_t k = 0; k < i; k++) {
            const struct spec_source *other = &spec->workloads[k].source;
            if (other->kind == s->kind && str_eq(other->path, s->path)) {
                number = l->sources[k];
                break;
            }
        }
        l->sources[i] = number;
        l->source_count += number == l->source_count ? 1 : 0;
    }
}

static bool is_looked_up(const struct spec_source *source)
{
    return source->kind != SPEC_SOURCE_HOST_DIR && source->kind != SPEC_SOURCE_NONE;
}

/* The expression for workload w at a revision, made when it is new. The arrays have room for all.
 */
static uint32_t find_or_add(struct spec *spec, struct lookup *l, size_t w,
                            const struct spec_rev_text *rev, size_t text, struct spec_pos pos)
{
    const struct spec_source *source = &spec->workloads[w].source;
    uint32_t *slot = &l->exprs[l->sources[w] * ARRAY_LEN(l->texts) + text];
    if (*slot == 0) {
        struct spec_expr *e = &spec->exprs[spec->expr_count];
        e->index = (uint32_t)spec->expr_count;
        e->source = *source;
        e->source.rev = NULL;
        e->source.dirty = false;
        e->text = l->texts[text].text;
        e->dirty = l->texts[text].dirty;
        e->range = rev->range;
        e->from = rev->from;
        e->to = rev->to;
        e->pos = pos;
        spec->expr_count++;
        *slot = (uint32_t)spec->expr_count;
    }
    return *slot - 1;
}

static bool sets_env(const struct spec_axis *axis, const char *name)
{
    for (size_t i = 0; i < axis->count; i++) {
        for (size_t k = 0; k < axis->facets[i].env_count; k++) {
            if (str_eq(axis->facets[i].env[k].name, name)) {
                return true;
            }
        }
    }
    return false;
}

/* What of a facet another axis sets too, or NULL. */
static const char *conflict_with(const struct spec_axis *axis, const struct spec_facet *f)
{
    for (size_t i = 0; i < axis->count; i++) {
        const struct spec_facet *other = &axis->facets[i];
        if (f->has_rev && other->has_rev) {
            return "rev";
        }
        if (f->kernel != NULL && other->kernel != NULL) {
            return "kernel";
        }
        if (f->storage.given && other->storage.given) {
            return "storage";
        }
    }
    for (size_t k = 0; k < f->env_count; k++) {
        if (sets_env(axis, f->env[k].name)) {
            return f->env[k].name;
        }
    }
    return NULL;
}

static bool check_conflicts(struct spec_ctx *ctx, const struct spec_axis *axes, size_t n)
{
    bool fine = true;
    for (size_t i = 1; i < n; i++) {
        for (size_t k = 0; k < i; k++) {
            const char *what = NULL;
            for (size_t f = 0; f < axes[i].count && what == NULL; f++) {
                what = conflict_with(&axes[k], &axes[i].facets[f]);
                if (what != NULL) {
                    spec_mistake(ctx, axes[i].facets[f].pos, ERR_CONFLICT,
                                 "`%s` is set by `%s` too, and both are multiplied", what,
                                 axes[k].name);
                    fine = false;
                }
            }
        }
    }
    return fine;
}

/* A revision needs git in every workload; a range one repository for all. */
static bool check_rev(struct spec_ctx *ctx, const struct lookup *l, const struct spec_facet *f)
{
    const struct spec *spec = ctx->spec;
    for (size_t w = 0; w < spec->workload_count; w++) {
        if (spec->workloads[w].source.kind != SPEC_SOURCE_GIT) {
            spec_mistake(ctx, f->rev_pos, ERR_INVAL,
                         "rev: the workload in line %u has no git source",
                         spec->workloads[w].pos.line);
            return false;
        }
        if (f->rev.range && l->sources[w] != l->sources[0]) {
            spec_mistake(ctx, f->rev_pos, ERR_INVAL,
                         "rev: a range needs the same git source in all workloads");
            return false;
        }
    }
    return true;
}

static bool check_facets(struct spec_ctx *ctx, const struct lookup *l, const struct spec_axis *axes,
                         size_t n)
{
    bool fine = true;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < axes[i].count; k++) {
            const struct spec_facet *f = &axes[i].facets[k];
            if (f->has_rev) {
                fine = check_rev(ctx, l, f) && fine;
            }
            if (f->kernel != NULL && !ctx->spec->system.given) {
                spec_mistake(ctx, f->kernel_pos, ERR_INVAL,
                             "kernel: there is no `system` that says how a kernel is booted");
                fine = false;
            }
        }
    }
    return fine;
}

static int compare_env(const void *a, const void *b)
{
    const struct spec_env *x = a;
    const struct spec_env *y = b;
    return strcmp(x->name, y->name);
}

/* The variables of all facets, by name. */
static void join_env(struct spec *spec, const struct spec_facet *const *facets, size_t n,
                     struct spec_variant *out)
{
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        total += facets[i]->env_count;
    }
    struct spec_env *env = total > 0 ? spec_alloc(spec, total, sizeof(*env)) : NULL;
    if (env == NULL) {
        return;
    }
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t e = 0; e < facets[i]->env_count; e++) {
            env[k++] = facets[i]->env[e];
        }
    }
    qsort(env, total, sizeof(*env), compare_env);
    out->env = env;
    out->env_count = total;
}

/* Appends to a name of at most room - 1 bytes; what does not fit shows as a name that is too long.
 */
static void append(char *dst, size_t room, const char *text)
{
    size_t n = strlen(dst);
    if (n > 0) {
        str_copy(dst + n, room - n, ",");
        n = strlen(dst);
    }
    str_copy(dst + n, room - n, text);
}

/* Fills the draft from one facet of each axis. False when its name would be too long. */
static bool make_draft(struct spec *spec, const struct spec_facet *const *facets, size_t n,
                       struct spec_draft *d)
{
    char name[NAME_ROOM * (SPEC_MAX_AXES + 2)] = "";
    const struct spec_facet *ranged = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct spec_facet *f = facets[i];
        if (f->name != NULL) {
            append(name, sizeof(name), f->name);
        }
        if (f->has_rev) {
            d->variant.rev = f->rev.text;
            d->variant.range = f->rev.range;
            ranged = f->rev.range ? f : ranged;
        }
        d->variant.kernel = f->kernel != NULL ? f->kernel : d->variant.kernel;
        d->variant.storage = f->storage.given ? f->storage : d->variant.storage;
        d->variant.pos = f->pos;
    }
    join_env(spec, facets, n, &d->variant);
    if (ranged == NULL) {
        d->variant.name = spec_copy(spec, name);
        return str_is_name(name);
    }
    d->prefix = spec_copy(spec, name);
    d->variant.name = name[0] != '\0'
                          ? mem_arena_printf(spec->arena, "%s,%s", name, ranged->rev.text)
                          : ranged->rev.text;
    if (d->variant.name == NULL) {
        spec->full = true;
        d->variant.name = "";
    }
    return strlen(name) + 1 + COMMIT_DIGITS <= NAME_ROOM;
}

static void find_exprs(struct spec *spec, struct lookup *l, const struct spec_facet *const *facets,
                       size_t n, struct spec_draft *d)
{
    const struct spec_facet *with_rev = NULL;
    for (size_t i = 0; i < n; i++) {
        with_rev = facets[i]->has_rev ? facets[i] : with_rev;
    }
    size_t text = with_rev != NULL ? text_number(l, with_rev->rev.text, false) : 0;
    for (size_t w = 0; w < spec->workload_count; w++) {
        const struct spec_source *source = &spec->workloads[w].source;
        if (!is_looked_up(source)) {
            d->exprs[w] = SPEC_NO_EXPR;
        } else if (with_rev != NULL) {
            d->exprs[w] = find_or_add(spec, l, w, &with_rev->rev, text, with_rev->rev_pos);
        } else {
            const struct spec_rev_text *own = &spec->own_revs[w];
            d->exprs[w] =
                find_or_add(spec, l, w, own, text_number(l, own->text, source->dirty), source->pos);
        }
    }
}

bool spec_same_surroundings(const struct spec_variant *a, const struct spec_variant *b)
{
    if (!str_eq(a->kernel, b->kernel) || a->env_count != b->env_count ||
        a->storage.given != b->storage.given) {
        return false;
    }
    const struct spec_place *p[] = {&a->storage.src, &a->storage.obj};
    const struct spec_place *q[] = {&b->storage.src, &b->storage.obj};
    for (size_t i = 0; a->storage.given && i < ARRAY_LEN(p); i++) {
        if (p[i]->kind != q[i]->kind || p[i]->count != q[i]->count || p[i]->size != q[i]->size) {
            return false;
        }
    }
    for (size_t i = 0; i < a->env_count; i++) {
        if (!str_eq(a->env[i].name, b->env[i].name) || !str_eq(a->env[i].value, b->env[i].value)) {
            return false;
        }
    }
    return true;
}

uint32_t spec_sum_surroundings(const struct spec_variant *v)
{
    uint32_t sum = v->kernel != NULL ? crc32c(0, v->kernel, strlen(v->kernel)) : 0;
    for (size_t i = 0; i < v->env_count; i++) {
        sum = crc32c(sum, v->env[i].name, strlen(v->env[i].name) + 1);
        sum = crc32c(sum, v->env[i].value, strlen(v->env[i].value) + 1);
    }
    return sum;
}

/* Names that came about twice by joining, and variants that are the same. */
static void check_drafts(struct spec_ctx *ctx)
{
    const struct spec *spec = ctx->spec;
    size_t row = spec->workload_count * sizeof(uint32_t);
    uint32_t *sums = mem_xarray(spec->draft_count, sizeof(*sums));
    for (size_t i = 0; i < spec->draft_count; i++) {
        sums[i] = spec_sum_surroundings(&spec->drafts[i].variant);
    }
    for (size_t i = 1; i < spec->draft_count; i++) {
        const struct spec_variant *v = &spec->drafts[i].variant;
        for (size_t k = 0; k < i; k++) {
            const struct spec_variant *other = &spec->drafts[k].variant;
            if (str_eq(v->name, other->name)) {
                spec_mistake(ctx, v->pos, ERR_EXISTS,
                             "the variant `%s` comes about twice; see line %u", v->name,
                             other->pos.line);
                break;
            }
            if (sums[i] == sums[k] &&
                memcmp(spec->drafts[i].exprs, spec->drafts[k].exprs, row) == 0 &&
                spec_same_surroundings(v, other)) {
                spec_warning(ctx, v->pos, "the variants `%s` and `%s` do not differ", other->name,
                             v->name);
                break;
            }
        }
    }
    free(sums);
}

static size_t product(const struct spec_axis *axes, size_t n)
{
    size_t total = 1;
    for (size_t i = 0; i < n && total <= SPEC_MAX_VARIANTS; i++) {
        total *= axes[i].count;
    }
    return total;
}

static bool make_room(struct spec *spec, struct lookup *l, const struct spec_axis *axes, size_t n,
                      size_t total)
{
    size_t texts = 0;
    for (size_t i = 0; i < n; i++) {
        texts += axes[i].count;
    }
    size_t most = (texts + spec->workload_count) * l->source_count;
    spec->drafts = spec_alloc(spec, total, sizeof(*spec->drafts));
    spec->exprs = spec_alloc(spec, most, sizeof(*spec->exprs));
    l->exprs = spec_alloc(spec, l->source_count * ARRAY_LEN(l->texts), sizeof(*l->exprs));
    return !spec->full;
}

static void multiply(struct spec_ctx *ctx, struct lookup *l, const struct spec_axis *axes, size_t n,
                     size_t total)
{
    struct spec *spec = ctx->spec;
    bool too_long = false;
    bool too_many = false;
    for (size_t i = 0; i < total && !spec->full; i++) {
        const struct spec_facet *facets[SPEC_MAX_AXES + 1];
        size_t rest = i;
        for (size_t a = n; a-- > 0;) {
            facets[a] = &axes[a].facets[rest % axes[a].count];
            rest /= axes[a].count;
        }
        struct spec_draft *d = &spec->drafts[spec->draft_count];
        d->exprs = spec_alloc(spec, spec->workload_count, sizeof(*d->exprs));
        if (d->exprs == NULL) {
            return;
        }
        if (!make_draft(spec, facets, n, d) && !too_long) {
            spec_mistake(ctx, d->variant.pos, ERR_LIMIT,
                         "the variant's name `%s` would be longer than %d bytes",
                         spec_show(spec, d->variant.name), NAME_ROOM);
            too_long = true;
        }
        if (d->variant.env_count > SPEC_MAX_ENV && !too_many) {
            spec_mistake(ctx, d->variant.pos, ERR_LIMIT,
                         "the variant `%s` has more than %d variables",
                         spec_show(spec, d->variant.name), SPEC_MAX_ENV);
            too_many = true;
        }
        d->variant.index = (uint32_t)spec->draft_count;
        find_exprs(spec, l, facets, n, d);
        spec->draft_count++;
    }
}

void spec_make_drafts(struct spec_ctx *ctx, const struct spec_axis *axes, size_t n)
{
    struct spec *spec = ctx->spec;
    struct lookup *l = mem_xzalloc(sizeof(*l));
    size_t total = product(axes, n);
    number_sources(spec, l);
    bool fine = check_conflicts(ctx, axes, n);
    fine = check_facets(ctx, l, axes, n) && fine;
    if (total > SPEC_MAX_VARIANTS) {
        spec_mistake(ctx, axes[0].pos, ERR_LIMIT, "the axes make more than %d variants",
                     SPEC_MAX_VARIANTS);
        fine = false;
    }
    if (fine && make_room(spec, l, axes, n, total)) {
        multiply(ctx, l, axes, n, total);
        check_drafts(ctx);
        spec->found = spec_alloc(spec, spec->expr_count, sizeof(*spec->found));
    }
    free(l);
}

bool spec_has_ranges(const struct spec *spec)
{
    for (size_t i = 0; i < spec->draft_count; i++) {
        if (spec->drafts[i].variant.range) {
            return true;
        }
    }
    return false;
}
