/* select.c: which hosts a sweep goes to: class:X, any:X, HOST. */
#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"
#include "coordinator/plan/sheet.h"
#include "coordinator/store/hosts.h"

#include <stdlib.h>
#include <string.h>

struct choosing {
    struct plan *plan;
    struct sheet *sheet;
    struct diag *diag;
    struct model_host *all; /* by name, in the sheet's arena */
    size_t count;
    size_t room;
    const struct spec_host *selector;
};

/* --- the fleet --- */

static int copy_host(const struct model_host *row, void *arg)
{
    struct choosing *c = arg;
    struct mem_arena *arena = c->sheet->arena;
    if (c->count == c->room) {
        return -ERR_LIMIT; /* counted before, and nothing was added meanwhile */
    }
    struct model_host *copy = &c->all[c->count];
    const char **classes = mem_arena_array(arena, row->class_count + 1, sizeof(char *));
    *copy = *row;
    copy->name = mem_arena_strdup(arena, row->name);
    copy->boot_id = row->boot_id != NULL ? mem_arena_strdup(arena, row->boot_id) : NULL;
    copy->machine_id = copy->key_hash = copy->version = NULL;
    if (classes == NULL || copy->name == NULL || (row->boot_id != NULL && copy->boot_id == NULL)) {
        return -ERR_NOMEM;
    }
    for (size_t i = 0; i < row->class_count; i++) {
        classes[i] = mem_arena_strdup(arena, row->classes[i]);
        if (classes[i] == NULL) {
            return -ERR_NOMEM;
        }
    }
    copy->classes = classes;
    c->count++;
    return 0;
}

static int count_host(const struct model_host *row, void *arg)
{
    struct choosing *c = arg;
    (void)row;
    c->room++;
    return 0;
}

static int read_fleet(struct choosing *c)
{
    int rc = store_hosts_each(c->plan->store, count_host, c);
    if (rc == 0) {
        c->all = mem_arena_array(c->sheet->arena, c->room + 1, sizeof(*c->all));
        c->sheet->hosts = mem_arena_array(c->sheet->arena, c->room + 1, sizeof(struct sheet_host));
        rc = c->all != NULL && c->sheet->hosts != NULL
                 ? store_hosts_each(c->plan->store, copy_host, c)
                 : -ERR_NOMEM;
    }
    return rc < 0 ? plan_fail(c->plan, rc) : 0;
}

static bool has_class(const struct model_host *host, const char *name)
{
    for (size_t i = 0; i < host->class_count; i++) {
        if (strcmp(host->classes[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static bool was_seen(const struct model_host *host)
{
    return host->cpus_milli > 0;
}

/* --- mistakes --- */

static void mistake(struct choosing *c, int code, const char *text)
{
    diag_error_at(c->diag, code, spec_file(c->sheet->spec), c->selector->pos.line,
                  c->selector->pos.column, "%s", text);
}

static void hint(struct choosing *c, const char *what, const char *near, const char *rest)
{
    char *text = near != NULL
                     ? mem_xasprintf("%s `%s`; did you mean `%s`?", what, c->selector->name, near)
                     : mem_xasprintf("%s `%s`%s", what, c->selector->name, rest);
    mistake(c, ERR_NOTFOUND, text);
    free(text);
}

/* The nearest name of a host, or of a class of one. */
static const char *nearest(struct choosing *c, bool classes)
{
    size_t n = 0;
    for (size_t i = 0; i < c->count; i++) {
        n += classes ? c->all[i].class_count : 1;
    }
    const char **names = mem_xarray(n + 1, sizeof(char *));
    n = 0;
    for (size_t i = 0; i < c->count; i++) {
        if (c->all[i].state == HOST_REVOKED) {
            continue;
        }
        for (size_t k = 0; classes && k < c->all[i].class_count; k++) {
            names[n++] = c->all[i].classes[k];
        }
        if (!classes) {
            names[n++] = c->all[i].name;
        }
    }
    const char *near = str_nearest(c->selector->name, names, n);
    free(names);
    return near;
}

/* --- choosing --- */

static bool is_chosen(const struct choosing *c, const struct model_host *host)
{
    for (size_t i = 0; i < c->sheet->host_count; i++) {
        if (c->sheet->hosts[i].row.id == host->id) {
            return true;
        }
    }
    return false;
}

static const char *selector_text(struct choosing *c)
{
    static const char *const prefix[] = {
        [SPEC_HOST_NAME] = "", [SPEC_HOST_CLASS] = "class:", [SPEC_HOST_ANY] = "any:"};
    return mem_arena_printf(c->sheet->arena, "%s%s", prefix[c->selector->kind], c->selector->name);
}

static void choose(struct choosing *c, const struct model_host *host)
{
    if (is_chosen(c, host)) {
        return;
    }
    struct sheet_host *h = &c->sheet->hosts[c->sheet->host_count++];
    h->row = *host;
    h->selector = selector_text(c);
    h->pos = c->selector->pos;
    if (!was_seen(host)) {
        h->skipped = "it has never connected: its processors are not known";
    }
    if (host->state == HOST_DRAINED) {
        diag_warn_at(c->diag, spec_file(c->sheet->spec), c->selector->pos.line,
                     c->selector->pos.column,
                     "host `%s` is drained: its runs wait for `makespan host resume %s`",
                     host->name, host->name);
    }
}

static void choose_name(struct choosing *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const struct model_host *host = &c->all[i];
        if (strcmp(host->name, c->selector->name) != 0) {
            continue;
        }
        if (host->state == HOST_REVOKED) {
            hint(c, "host", NULL, " was revoked");
        } else if (!was_seen(host)) {
            hint(c, "host", NULL,
                 " has never connected, so its processors are not known: start makespan-worker "
                 "there first");
        } else {
            choose(c, host);
        }
        return;
    }
    hint(c, "there is no host", nearest(c, false), ": `makespan host list` shows them");
}

/* How well a host suits `any`: lower is better. */
static int rank(const struct choosing *c, const struct model_host *host)
{
    const struct plan_host *live = plan_find_host(c->plan, host->id);
    bool up = live != NULL && live->up;
    bool idle = up && live->node_count == 0 && live->flight_count == 0;
    int r = idle ? 0 : up ? 1 : 2;
    if (host->state == HOST_DRAINED) {
        r += 4;
    }
    return is_chosen(c, host) ? r + 8 : r; /* a host that is in the sweep anyhow comes last */
}

static void choose_class(struct choosing *c)
{
    const struct model_host *best = NULL;
    size_t members = 0;
    size_t seen = 0;
    for (size_t i = 0; i < c->count; i++) {
        const struct model_host *host = &c->all[i];
        if (host->state == HOST_REVOKED || !has_class(host, c->selector->name)) {
            continue;
        }
        members++;
        seen += was_seen(host);
        if (was_seen(host) && (best == NULL || rank(c, host) < rank(c, best))) {
            best = host;
        }
    }
    if (members == 0) {
        hint(c, "no host has the class", nearest(c, true),
             ": `makespan host label HOST CLASS` gives it one");
        return;
    }
    if (seen == 0) {
        hint(c, "no host of the class", NULL,
             " has ever connected, so their processors are not known: start makespan-worker there "
             "first");
        return;
    }
    if (c->selector->kind == SPEC_HOST_ANY) {
        choose(c, best);
        return;
    }
    for (size_t i = 0; i < c->count; i++) {
        const struct model_host *host = &c->all[i];
        if (host->state != HOST_REVOKED && has_class(host, c->selector->name)) {
            choose(c, host);
        }
    }
}

static void choose_selector(struct choosing *c)
{
    if (c->selector->kind == SPEC_HOST_NAME) {
        choose_name(c);
    } else {
        choose_class(c);
    }
}

int sheet_select(struct plan *plan, struct sheet *sheet, struct diag *diag)
{
    struct choosing c = {.plan = plan, .sheet = sheet, .diag = diag};
    size_t errors = diag_errors(diag);
    int rc = read_fleet(&c);
    if (rc < 0) {
        return rc;
    }
    if (sheet->host != NULL) {
        struct spec_host only = {.kind = SPEC_HOST_NAME, .name = sheet->host};
        c.selector = &only;
        choose_selector(&c);
    } else {
        size_t n;
        const struct spec_host *selectors = spec_hosts(sheet->spec, &n);
        for (size_t i = 0; i < n; i++) {
            c.selector = &selectors[i];
            choose_selector(&c);
        }
    }
    return diag_errors(diag) > errors ? -ERR_INVAL : 0;
}
