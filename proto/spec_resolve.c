/* spec_resolve.c: from drafts and looked-up revisions to the final variants; `base`, `compare` and
 * the planned pairs. */
#include "proto/spec_int.h"

#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/yaml.h"

#include <stdlib.h>
#include <string.h>

#define COMMIT_DIGITS 12

/* --- base and compare as written --- */

static void read_pair(struct spec_ctx *ctx, const struct yaml_node *node, struct spec_compare *out)
{
    static const char *const keys[] = {"base", "head"};
    out->kind = SPEC_COMPARE_PAIR;
    if (!spec_read_map(ctx, node, "compare", keys, ARRAY_LEN(keys))) {
        return;
    }
    const struct yaml_node *base = yaml_get(node, "base");
    const struct yaml_node *head = yaml_get(node, "head");
    if (base == NULL || head == NULL) {
        spec_mistake(ctx, spec_pos_of(node), ERR_NOTFOUND, "compare: a pair is {base: A, head: B}");
        return;
    }
    out->base = spec_read_name(ctx, base, "compare.base");
    out->head = spec_read_name(ctx, head, "compare.head");
    out->base_pos = spec_pos_of(base);
    out->head_pos = spec_pos_of(head);
    if (out->base != NULL && str_eq(out->base, out->head)) {
        spec_mistake(ctx, out->head_pos, ERR_INVAL, "compare: `%s` is compared with itself",
                     out->head);
        out->base = NULL;
    }
}

static void read_compare(struct spec_ctx *ctx, const struct yaml_node *node)
{
    static const char *const words[] = {"base", "previous", "all"};
    struct spec *spec = ctx->spec;
    const struct yaml_node *one = node;
    size_t n = 1;
    const struct yaml_node *const *items = &one;
    if (node->kind != YAML_MAP) {
        items = spec_read_list(ctx, node, "compare", SPEC_MAX_HOSTS, &one, &n);
    }
    spec->compares = items != NULL ? spec_alloc(spec, n, sizeof(*spec->compares)) : NULL;
    if (spec->compares == NULL) {
        return;
    }
    spec->compare_count = n;
    for (size_t i = 0; i < n; i++) {
        struct spec_compare *c = &spec->compares[i];
        int word = 0;
        c->pos = spec_pos_of(items[i]);
        if (items[i]->kind == YAML_MAP) {
            read_pair(ctx, items[i], c);
        } else if (spec_read_word(ctx, items[i], "compare", words, ARRAY_LEN(words), &word)) {
            c->kind = word == 0   ? SPEC_COMPARE_BASE
                      : word == 1 ? SPEC_COMPARE_PREVIOUS
                                  : SPEC_COMPARE_ALL;
        }
    }
}

void spec_read_base(struct spec_ctx *ctx, const struct yaml_node *base,
                    const struct yaml_node *compare)
{
    struct spec *spec = ctx->spec;
    if (base != NULL) {
        spec->base_name = spec_read_name(ctx, base, "base");
        spec->base_pos = spec_pos_of(base);
    }
    if (compare != NULL) {
        read_compare(ctx, compare);
        return;
    }
    spec->compares = spec_alloc(spec, 1, sizeof(*spec->compares));
    spec->compare_count = spec->compares != NULL ? 1 : 0;
}

/* The variant of that name, or variant_count. */
static size_t find_variant(const struct spec *spec, const char *name)
{
    size_t i = 0;
    while (i < spec->variant_count && !str_eq(spec->variants[i].name, name)) {
        i++;
    }
    return i;
}

static void check_name(struct spec_ctx *ctx, const char *what, const char *name,
                       struct spec_pos pos)
{
    const struct spec *spec = ctx->spec;
    if (name == NULL || find_variant(spec, name) < spec->variant_count) {
        return;
    }
    const char **names = mem_xarray(spec->variant_count, sizeof(*names));
    for (size_t i = 0; i < spec->variant_count; i++) {
        names[i] = spec->variants[i].name;
    }
    const char *near =
        ctx->mistakes < SPEC_MAX_HINTS ? str_nearest(name, names, spec->variant_count) : NULL;
    if (near != NULL) {
        spec_mistake(ctx, pos, ERR_NOTFOUND, "%s: there is no variant `%s`; did you mean `%s`?",
                     what, name, near);
    } else {
        spec_mistake(ctx, pos, ERR_NOTFOUND, "%s: there is no variant `%s`", what, name);
    }
    free(names);
}

void spec_check_names(struct spec_ctx *ctx)
{
    const struct spec *spec = ctx->spec;
    check_name(ctx, "base", spec->base_name, spec->base_pos);
    for (size_t i = 0; i < spec->compare_count; i++) {
        const struct spec_compare *c = &spec->compares[i];
        if (c->kind == SPEC_COMPARE_PAIR && c->base != NULL) {
            check_name(ctx, "compare", c->base, c->base_pos);
            check_name(ctx, "compare", c->head, c->head_pos);
        }
    }
}

/* --- what was looked up --- */

static bool is_hex(const char *s, size_t n)
{
    return strlen(s) == n && strspn(s, "0123456789abcdef") == n;
}

static bool is_hash(const char *s)
{
    return is_hex(s, 40) || is_hex(s, 64);
}

static bool is_sound(const struct spec_expr *e, const struct spec_rev *r)
{
    if (memchr(r->commit, 0, sizeof(r->commit)) == NULL ||
        memchr(r->tree, 0, sizeof(r->tree)) == NULL ||
        memchr(r->blob, 0, sizeof(r->blob)) == NULL) {
        return false;
    }
    bool names = e->source.kind == SPEC_SOURCE_GIT ? is_hash(r->commit) && is_hash(r->tree)
                                                   : r->commit[0] == '\0' && r->tree[0] == '\0';
    return names && (r->blob[0] == '\0' || is_hex(r->blob, 64)) && r->size >= 0;
}

static int fail(const struct spec *spec, struct diag *diag, struct spec_pos pos, int code,
                const char *what, const char *text)
{
    return diag_error_at(diag, code, spec->file, pos.line, pos.column, "%s%s%s", what,
                         what[0] != '\0' ? ": " : "", text);
}

int spec_set_revs(struct spec *spec, size_t index, const struct spec_rev *revs, size_t n,
                  struct diag *diag)
{
    if (spec->resolved || index >= spec->expr_count) {
        return diag_error(diag, ERR_STATE, "%s: no revision is to be looked up any more",
                          spec->file);
    }
    const struct spec_expr *e = &spec->exprs[index];
    const char *what = e->text != NULL ? e->text : e->source.path;
    if (n == 0) {
        return fail(spec, diag, e->pos, ERR_INVAL, what,
                    e->range ? "the range holds no commit" : "there is no such revision");
    }
    if (n > (e->range ? (size_t)SPEC_MAX_VARIANTS : 1)) {
        return fail(spec, diag, e->pos, ERR_INVAL, what,
                    e->range ? "the range holds more than 1024 commits"
                             : "that is more than one revision");
    }
    struct spec_rev *copy = spec_alloc(spec, n, sizeof(*copy));
    for (size_t i = 0; copy != NULL && i < n; i++) {
        if (!is_sound(e, &revs[i])) {
            return fail(spec, diag, e->pos, ERR_INVAL, what,
                        "what was looked up is not a commit and its tree");
        }
        copy[i] = revs[i];
        copy[i].subject = spec_copy(spec, revs[i].subject != NULL ? revs[i].subject : "");
    }
    if (spec->full) {
        return fail(spec, diag, e->pos, ERR_LIMIT, what, "too much data");
    }
    spec->found[index].revs = copy;
    spec->found[index].count = n;
    return 0;
}

int spec_find_expr(const struct spec *spec, size_t workload, const char *text, bool dirty,
                   size_t *index)
{
    if (workload >= spec->workload_count) {
        return -ERR_NOTFOUND;
    }
    const struct spec_source *s = &spec->workloads[workload].source;
    const char *wanted = text != NULL ? text : "";
    for (size_t i = 0; i < spec->expr_count; i++) {
        const struct spec_expr *e = &spec->exprs[i];
        if (e->source.kind == s->kind && str_eq(e->source.path, s->path) && e->dirty == dirty &&
            str_eq(e->text != NULL ? e->text : "", wanted)) {
            *index = i;
            return 0;
        }
    }
    return -ERR_NOTFOUND;
}

/* --- the variants --- */

void spec_preview_variants(struct spec *spec)
{
    spec->variants = spec_alloc(spec, spec->draft_count, sizeof(*spec->variants));
    if (spec->variants == NULL) {
        return;
    }
    spec->variant_count = spec->draft_count;
    for (size_t i = 0; i < spec->draft_count; i++) {
        spec->variants[i] = spec->drafts[i].variant;
    }
}

/* Into how many variants a draft unfolds. */
static size_t unfolds(const struct spec *spec, const struct spec_draft *d)
{
    return d->variant.range ? spec->found[d->exprs[0]].count : 1;
}

static void unfold(struct spec *spec, size_t draft, size_t commit, size_t at)
{
    const struct spec_draft *d = &spec->drafts[draft];
    struct spec_variant *v = &spec->variants[at];
    *v = d->variant;
    v->index = (uint32_t)at;
    v->range = false;
    spec->variant_drafts[at] = (uint32_t)draft;
    for (size_t w = 0; w < spec->workload_count; w++) {
        const struct spec_rev **to = &spec->revs[at * spec->workload_count + w];
        *to = d->exprs[w] == SPEC_NO_EXPR ? NULL : &spec->found[d->exprs[w]].revs[commit];
    }
    if (d->variant.range) {
        const char *hash = spec->found[d->exprs[0]].revs[commit].commit;
        v->rev = hash;
        v->name = mem_arena_printf(spec->arena, "%s%s%.*s", d->prefix,
                                   d->prefix[0] != '\0' ? "," : "", COMMIT_DIGITS, hash);
        spec->full = spec->full || v->name == NULL;
        v->name = v->name != NULL ? v->name : "";
    }
}

static void make_variants(struct spec_ctx *ctx)
{
    struct spec *spec = ctx->spec;
    size_t total = 0;
    for (size_t i = 0; i < spec->draft_count; i++) {
        total += unfolds(spec, &spec->drafts[i]);
        if (total > SPEC_MAX_VARIANTS) {
            spec_mistake(ctx, spec->drafts[i].variant.pos, ERR_LIMIT,
                         "the ranges make more than %d variants", SPEC_MAX_VARIANTS);
            return;
        }
    }
    spec->variants = spec_alloc(spec, total, sizeof(*spec->variants));
    spec->variant_drafts = spec_alloc(spec, total, sizeof(*spec->variant_drafts));
    spec->revs = spec_alloc(spec, total * spec->workload_count, sizeof(*spec->revs));
    spec->variant_count = 0;
    for (size_t i = 0; i < spec->draft_count && !spec->full; i++) {
        for (size_t k = 0; k < unfolds(spec, &spec->drafts[i]); k++) {
            unfold(spec, i, k, spec->variant_count);
            spec->variant_count++;
        }
    }
}

static bool same_revs(const struct spec *spec, size_t a, size_t b)
{
    for (size_t w = 0; w < spec->workload_count; w++) {
        const struct spec_rev *x = spec->revs[a * spec->workload_count + w];
        const struct spec_rev *y = spec->revs[b * spec->workload_count + w];
        if (x != y &&
            (x == NULL || y == NULL || x->dirty != y->dirty || !str_eq(x->commit, y->commit))) {
            return false;
        }
    }
    return true;
}

/* Whether they were the same before anything was looked up, and this was said then. */
static bool same_drafts(const struct spec *spec, size_t a, size_t b)
{
    const struct spec_draft *x = &spec->drafts[spec->variant_drafts[a]];
    const struct spec_draft *y = &spec->drafts[spec->variant_drafts[b]];
    return memcmp(x->exprs, y->exprs, spec->workload_count * sizeof(*x->exprs)) == 0;
}

static void check_variants(struct spec_ctx *ctx)
{
    const struct spec *spec = ctx->spec;
    uint32_t *sums = mem_xarray(spec->variant_count, sizeof(*sums));
    for (size_t i = 0; i < spec->variant_count; i++) {
        sums[i] = spec_sum_surroundings(&spec->variants[i]);
    }
    for (size_t i = 1; i < spec->variant_count; i++) {
        const struct spec_variant *v = &spec->variants[i];
        for (size_t k = 0; k < i; k++) {
            const struct spec_variant *other = &spec->variants[k];
            if (str_eq(v->name, other->name)) {
                spec_mistake(ctx, v->pos, ERR_EXISTS,
                             "the variant `%s` comes about twice; see line %u", v->name,
                             other->pos.line);
                break;
            }
            if (sums[i] == sums[k] && same_revs(spec, i, k) && spec_same_surroundings(v, other) &&
                !same_drafts(spec, i, k)) {
                spec_warning(ctx, v->pos,
                             "the variants `%s` and `%s` do not differ: both are commit %.12s",
                             other->name, v->name, spec->revs[i * spec->workload_count]->commit);
                break;
            }
        }
    }
    free(sums);
}

/* --- the planned comparisons --- */

struct pairs {
    struct spec *spec;
    bool *seen; /* variant_count squared */
    size_t room;
    bool full;
};

static void add_pair(struct pairs *p, size_t base, size_t head)
{
    struct spec *spec = p->spec;
    size_t n = spec->variant_count;
    if (base == head || p->seen[base * n + head] || p->seen[head * n + base]) {
        return;
    }
    if (spec->pair_count == SPEC_MAX_PAIRS) {
        p->full = true;
        return;
    }
    if (spec->pair_count == p->room) {
        p->room = p->room == 0 ? 64 : p->room * 2;
        spec->pairs = mem_xrealloc(spec->pairs, p->room, sizeof(*spec->pairs));
    }
    p->seen[base * n + head] = true;
    spec->pairs[spec->pair_count] = (struct spec_pair){(uint32_t)base, (uint32_t)head};
    spec->pair_count++;
}

static void add_compare(struct pairs *p, const struct spec_compare *c)
{
    const struct spec *spec = p->spec;
    size_t n = spec->variant_count;
    switch (c->kind) {
    case SPEC_COMPARE_BASE:
        for (size_t i = 0; i < n; i++) {
            add_pair(p, spec->base, i);
        }
        break;
    case SPEC_COMPARE_PREVIOUS:
        for (size_t i = 1; i < n; i++) {
            add_pair(p, i - 1, i);
        }
        break;
    case SPEC_COMPARE_ALL:
        for (size_t i = 0; i < n && !p->full; i++) {
            for (size_t k = i + 1; k < n && !p->full; k++) {
                add_pair(p, i, k);
            }
        }
        break;
    case SPEC_COMPARE_PAIR:
        add_pair(p, find_variant(spec, c->base), find_variant(spec, c->head));
        break;
    }
}

static void make_pairs(struct spec_ctx *ctx)
{
    struct spec *spec = ctx->spec;
    struct pairs p = {.spec = spec,
                      .seen = mem_xarray(spec->variant_count * spec->variant_count, sizeof(bool))};
    for (size_t i = 0; i < spec->compare_count; i++) {
        add_compare(&p, &spec->compares[i]);
        if (p.full) {
            spec_mistake(ctx, spec->compares[i].pos, ERR_LIMIT,
                         "compare: more than %d comparisons of variants", SPEC_MAX_PAIRS);
            break;
        }
    }
    free(p.seen);
}

int spec_resolve(struct spec *spec, struct diag *diag)
{
    struct spec_ctx ctx = {.spec = spec, .diag = diag};
    if (spec->resolved) {
        return diag_error(diag, ERR_STATE, "%s: the revisions are settled already", spec->file);
    }
    for (size_t i = 0; i < spec->expr_count; i++) {
        if (spec->found[i].count == 0) {
            const struct spec_expr *e = &spec->exprs[i];
            spec_mistake(&ctx, e->pos, ERR_STATE, "`%s` was not looked up",
                         spec_show(spec, e->text != NULL ? e->text : e->source.path));
        }
    }
    if (ctx.mistakes == 0) {
        make_variants(&ctx);
    }
    if (spec->full) {
        spec_mistake(&ctx, (struct spec_pos){1, 1}, ERR_LIMIT, "too much data");
    }
    if (ctx.mistakes == 0) {
        check_variants(&ctx);
        spec_check_names(&ctx);
    }
    if (ctx.mistakes == 0) {
        spec->base = spec->base_name != NULL ? (uint32_t)find_variant(spec, spec->base_name) : 0;
        make_pairs(&ctx);
    }
    spec->resolved = ctx.mistakes == 0;
    return ctx.code;
}
