/* estimate.c: how long the cells of a sheet will take, from the newest sweeps of the same name. A
 * cell is known by its host, the names of workload and variant, and its jobs; where only the
 * variant is new, the mean of the others stands for it. */
#include "common/err.h"
#include "common/mem.h"
#include "common/num.h"
#include "coordinator/plan/sheet.h"
#include "coordinator/store/cells.h"
#include "coordinator/store/load.h"
#include "coordinator/store/sweeps.h"

#include <stdlib.h>
#include <string.h>

enum { SWEEPS_BACK = 3 };

/* What one earlier cell took. */
struct past {
    int64_t host;
    int64_t workload; /* index in the sheet */
    int32_t jobs;
    int64_t variant; /* index in the sheet; -1: not in it */
    int age;         /* 0: of the newest sweep */
    int64_t mean_ns; /* of a whole attempt */
};

/* Ids of an earlier sweep and what they are called in the sheet. */
struct name_map {
    int64_t *ids;
    int64_t *indices;
    size_t count;
};

struct estimating {
    struct plan *plan;
    struct sheet *sheet;
    struct past *pasts;
    size_t count;
    size_t room;
    int age;
    struct name_map workloads;
    struct name_map variants;
    struct store_progress progress;
};

static void map_add(struct name_map *map, int64_t id, int64_t index)
{
    map->ids = mem_xrealloc(map->ids, map->count + 1, sizeof(*map->ids));
    map->indices = mem_xrealloc(map->indices, map->count + 1, sizeof(*map->indices));
    map->ids[map->count] = id;
    map->indices[map->count++] = index;
}

static int64_t map_find(const struct name_map *map, int64_t id)
{
    for (size_t i = 0; i < map->count; i++) {
        if (map->ids[i] == id) {
            return map->indices[i];
        }
    }
    return -1;
}

static void map_free(struct name_map *map)
{
    free(map->ids);
    free(map->indices);
    *map = (struct name_map){NULL, NULL, 0};
}

static int map_workload(const struct model_workload *row, void *arg)
{
    struct estimating *e = arg;
    size_t n;
    const struct spec_workload *workloads = spec_workloads(e->sheet->spec, &n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(workloads[i].name, row->name) == 0) {
            map_add(&e->workloads, row->id, (int64_t)i);
        }
    }
    return 0;
}

static int map_variant(const struct model_variant *row, void *arg)
{
    struct estimating *e = arg;
    size_t n;
    const struct spec_variant *variants = spec_variants(e->sheet->spec, &n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(variants[i].name, row->name) == 0) {
            map_add(&e->variants, row->id, (int64_t)i);
        }
    }
    return 0;
}

static const struct store_cell_progress *progress_of(const struct store_progress *p, int64_t cell)
{
    size_t low = 0;
    size_t high = p->cell_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (p->cells[mid].cell < cell) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < p->cell_count && p->cells[low].cell == cell ? &p->cells[low] : NULL;
}

static int add_past(const struct model_cell *cell, void *arg)
{
    struct estimating *e = arg;
    const struct store_cell_progress *p = progress_of(&e->progress, cell->id);
    int64_t workload = map_find(&e->workloads, cell->workload);
    if (p == NULL || p->counted <= 0 || p->span_ns <= 0 || workload < 0) {
        return 0;
    }
    if (e->count == e->room) {
        e->room = e->room == 0 ? 256 : e->room * 2;
        e->pasts = mem_xrealloc(e->pasts, e->room, sizeof(*e->pasts));
    }
    e->pasts[e->count++] = (struct past){cell->host, workload,
                                         cell->jobs, map_find(&e->variants, cell->variant),
                                         e->age,     p->span_ns / p->counted};
    return 0;
}

static int add_sweep(const struct model_sweep *row, void *arg)
{
    struct estimating *e = arg;
    struct mem_arena *arena = mem_arena_new(0);
    int rc = store_workloads_each(e->plan->store, row->id, map_workload, e);
    if (rc == 0) {
        rc = store_variants_each(e->plan->store, row->id, map_variant, e);
    }
    if (rc == 0) {
        rc = store_progress(e->plan->store, row->id, arena, &e->progress);
    }
    if (rc == 0) {
        rc = store_cells_each(e->plan->store, row->id, 0, add_past, e);
    }
    map_free(&e->workloads);
    map_free(&e->variants);
    mem_arena_free(&arena);
    e->age++;
    return rc;
}

static int compare_keys(const struct past *a, const struct past *b)
{
    if (a->host != b->host) {
        return a->host < b->host ? -1 : 1;
    }
    if (a->workload != b->workload) {
        return a->workload < b->workload ? -1 : 1;
    }
    return a->jobs < b->jobs ? -1 : a->jobs > b->jobs;
}

static int compare_pasts(const void *pa, const void *pb)
{
    const struct past *a = pa;
    const struct past *b = pb;
    int c = compare_keys(a, b);
    return c != 0 ? c : a->age < b->age ? -1 : a->age > b->age;
}

/* The mean time of an attempt of a cell, 0 when nothing like it was measured. */
static int64_t mean_of(const struct estimating *e, const struct past *key)
{
    size_t low = 0;
    size_t high = e->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (compare_keys(&e->pasts[mid], key) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    int64_t sum = 0;
    int64_t n = 0;
    for (size_t i = low; i < e->count && compare_keys(&e->pasts[i], key) == 0; i++) {
        if (e->pasts[i].variant == key->variant) {
            return e->pasts[i].mean_ns; /* the newest comes first */
        }
        if (num_add_i64(sum, e->pasts[i].mean_ns, &sum) == 0) {
            n++;
        }
    }
    return n > 0 ? sum / n : 0;
}

static void estimate_host(const struct estimating *e, struct sheet_host *h)
{
    size_t workloads;
    size_t variants;
    int64_t sum = 0;
    int64_t times = (int64_t)h->settings.repeat.runs + h->settings.repeat.warmup;
    spec_workloads(e->sheet->spec, &workloads);
    spec_variants(e->sheet->spec, &variants);
    for (size_t w = 0; w < workloads; w++) {
        for (size_t p = 0; p < h->point_count; p++) {
            for (size_t v = 0; h->points[p].skip == NULL && v < variants; v++) {
                struct past key = {h->row.id, (int64_t)w, h->points[p].jobs, (int64_t)v, 0, 0};
                int64_t mean = mean_of(e, &key);
                int64_t span;
                if (mean <= 0 || num_mul_i64(mean, times, &span) < 0 ||
                    num_add_i64(sum, span, &sum) < 0) {
                    return; /* one is unknown: so is the sum */
                }
            }
        }
    }
    h->known = h->cells > 0;
    h->expected_ns = sum;
}

int sheet_estimate(struct plan *plan, struct sheet *sheet)
{
    struct estimating e = {.plan = plan, .sheet = sheet};
    struct store_sweep_filter filter = {.name = spec_name(sheet->spec), .limit = SWEEPS_BACK};
    int rc = store_sweeps_each(plan->store, &filter, add_sweep, &e);
    if (rc == 0 && e.count > 0) {
        qsort(e.pasts, e.count, sizeof(*e.pasts), compare_pasts);
        for (size_t i = 0; i < sheet->host_count; i++) {
            estimate_host(&e, &sheet->hosts[i]);
        }
    }
    free(e.pasts);
    return rc < 0 ? plan_fail(plan, rc) : 0;
}

int64_t sheet_longest(const struct sheet *sheet)
{
    int64_t longest = 0;
    for (size_t i = 0; i < sheet->host_count; i++) {
        const struct sheet_host *h = &sheet->hosts[i];
        int64_t budget = h->settings.repeat.budget_ns;
        int64_t span = h->known ? h->expected_ns : 0;
        if (budget > 0 && budget < span) {
            span = budget;
        }
        longest = span > longest ? span : longest;
    }
    return longest;
}
