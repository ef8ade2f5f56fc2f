/* status.c: sweeps and hosts as JSON documents. Reads only; a failure here fails no turn. */
#include "coordinator/plan/status.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/jobs.h"
#include "common/json.h"
#include "common/mem.h"
#include "coordinator/plan/node.h"
#include "coordinator/plan/now.h"
#include "coordinator/plan/tally.h"
#include "coordinator/store/hosts.h"
#include "coordinator/store/sweeps.h"

#include <stdio.h>
#include <string.h>

static json_t *text_or_null(const char *text)
{
    return text != NULL ? json_string(text) : json_null();
}

static json_t *number_or_null(bool has, int64_t n)
{
    return has ? json_integer(n) : json_null();
}

/* Prints and drops the document. */
static int print(json_t *doc, struct buf *out)
{
    int rc = json_print(doc, 2, out);
    buf_add_char(out, '\n');
    json_decref(doc);
    return rc < 0 ? rc : out->err;
}

/* --- sweeps --- */

static const char *priority_word(int priority)
{
    switch (priority) {
    case PRIORITY_GATE:
        return "gate";
    case PRIORITY_IDLE:
        return "idle";
    default:
        return "normal";
    }
}

static void set_sweep(json_t *o, const struct model_sweep *row)
{
    char ref[128];
    snprintf(ref, sizeof(ref), "%s/%lld", row->name, (long long)row->number);
    json_set(o, "id", json_integer(row->id));
    json_set(o, "sweep", json_string(ref));
    json_set(o, "state", text_or_null(model_sweep_word((int)row->state)));
    json_set(o, "priority", json_string(priority_word(row->priority)));
    json_set(o, "file", text_or_null(row->file));
    json_set(o, "submitted_by", text_or_null(row->submitted_by));
    json_set(o, "submitted_wall_ns", json_integer(row->submitted_wall_ns));
    json_set(o, "ended_wall_ns", number_or_null(row->ended_wall_ns != 0, row->ended_wall_ns));
    json_set(o, "end_reason", text_or_null(row->ended_wall_ns != 0 ? row->end_reason : NULL));
    json_set(o, "because", text_or_null(row->end_reason));
}

static int add_sweep(const struct model_sweep *row, void *arg)
{
    json_t *list = arg;
    json_t *o = json_object();
    set_sweep(o, row);
    json_array_append_new(list, o);
    return 0;
}

int plan_status_sweeps(struct plan *plan, struct plan_now now, struct buf *out)
{
    (void)now;
    json_t *doc = json_object();
    json_t *list = json_array();
    int rc = store_sweeps_each(plan->store, NULL, add_sweep, list);
    json_set(doc, "schema", json_integer(1));
    json_set(doc, "sweeps", list);
    if (rc < 0) {
        json_decref(doc);
        return rc;
    }
    return print(doc, out);
}

/* --- one sweep --- */

struct names {
    const char **texts; /* by index of the row */
    int64_t *ids;
    size_t count;
    size_t room;
    struct mem_arena *arena;
};

static int add_name(struct names *n, int64_t id, const char *name)
{
    if (n->count == n->room) {
        size_t room = n->room == 0 ? 64 : n->room * 2;
        const char **texts = mem_arena_array(n->arena, room, sizeof(char *));
        int64_t *ids = mem_arena_array(n->arena, room, sizeof(*ids));
        if (texts == NULL || ids == NULL) {
            return -ERR_NOMEM;
        }
        if (n->count > 0) {
            memcpy(texts, n->texts, n->count * sizeof(char *));
            memcpy(ids, n->ids, n->count * sizeof(*ids));
        }
        n->texts = texts;
        n->ids = ids;
        n->room = room;
    }
    n->texts[n->count] = mem_arena_strdup(n->arena, name);
    n->ids[n->count++] = id;
    return n->texts[n->count - 1] != NULL ? 0 : -ERR_NOMEM;
}

static int name_workload(const struct model_workload *row, void *arg)
{
    return add_name(arg, row->id, row->name);
}

static int name_variant(const struct model_variant *row, void *arg)
{
    return add_name(arg, row->id, row->name);
}

static const char *name_of(const struct names *n, int64_t id)
{
    /* Rows of one sweep stand together: the place is the distance from the first. */
    size_t guess = n->count > 0 && id >= n->ids[0] ? (size_t)(id - n->ids[0]) : 0;
    if (guess < n->count && n->ids[guess] == id) {
        return n->texts[guess];
    }
    for (size_t i = 0; i < n->count; i++) {
        if (n->ids[i] == id) {
            return n->texts[i];
        }
    }
    return "?";
}

struct one_sweep {
    struct plan *plan;
    struct plan_now now;
    struct mem_arena *arena;
    struct model_sweep row;
    struct tally tally;
    struct names workloads;
    struct names variants;
};

static const char *host_name(const struct one_sweep *s, int64_t id)
{
    const struct plan_host *host = plan_find_host(s->plan, id);
    if (host != NULL) {
        return host->name;
    }
    struct model_host row;
    return store_host_get(s->plan->store, id, s->arena, &row) == 0 ? row.name : "?";
}

static int host_json(struct one_sweep *s, const struct tally_host *h, json_t **out)
{
    const struct plan_host *host = plan_find_host(s->plan, h->row.host);
    const struct plan_node *node = plan_find_node(s->plan, s->row.id, h->row.host);
    json_t *o = json_object();
    json_t *now = NULL;
    const char *lost = NULL;
    int rc = 0;
    *out = o;
    json_set(o, "host", json_string(host_name(s, h->row.host)));
    json_set(o, "selector", text_or_null(h->row.selector));
    json_set(o, "skipped", text_or_null(h->row.skipped));
    json_set(o, "finished", json_boolean(h->row.finished));
    json_set(o, "wanted", json_integer(h->wanted));
    json_set(o, "have", json_integer(h->have));
    json_set(o, "warmups_wanted", json_integer(h->warm_wanted));
    json_set(o, "warmups_have", json_integer(h->warm_have));
    json_set(o, "failed", json_integer(h->failed));
    json_set(o, "no_data", json_integer(h->no_data));
    json_set(o, "cancelled", json_integer(h->cancelled));
    json_set(o, "over_budget", json_integer(h->over_budget));
    json_set(o, "skipped_runs", json_integer(h->skipped_runs));
    json_set(o, "used_ns", json_integer(h->row.used_ns));
    json_set(o, "mean_ns", number_or_null(h->has_mean, h->mean_ns));
    json_set(o, "eta_ns", number_or_null(h->has_eta, h->eta_ns));
    json_set(o, "wait", node != NULL ? now_wait(s->plan, s->now, node) : json_null());
    if (h->no_data > 0) {
        rc = plan_node_lost(s->plan, &h->row, s->arena, &lost);
    }
    json_set(o, "lost", text_or_null(lost));
    if (rc == 0 && host != NULL) {
        rc = now_flights(s->plan, s->now, host, s->row.id, &now);
    }
    json_set(o, "now", now != NULL ? now : json_array());
    return rc;
}

static json_t *cell_json(struct one_sweep *s, const struct tally_cell *c, const char *host)
{
    char jobs[16];
    json_t *o = json_object();
    json_set(o, "host", json_string(host));
    json_set(o, "workload", json_string(name_of(&s->workloads, c->workload)));
    json_set(o, "variant", json_string(name_of(&s->variants, c->variant)));
    json_set(o, "jobs", json_string(jobs_text(jobs, sizeof(jobs), c->jobs)));
    json_set(o, "state", text_or_null(model_cell_word((int)c->state)));
    json_set(o, "reason", text_or_null(c->reason));
    json_set(o, "wanted", json_integer(c->wanted));
    json_set(o, "have", json_integer(c->have));
    json_set(o, "failed", json_integer(c->failed));
    json_set(o, "invalid", json_integer(c->invalid));
    json_set(o, "real_mean_ns",
             number_or_null(c->measured > 0, c->measured > 0 ? c->real_sum_ns / c->measured : 0));
    return o;
}

static int fill_sweep(struct one_sweep *s, json_t *doc)
{
    json_t *hosts = json_array();
    json_t *cells = json_array();
    int rc = 0;
    json_set(doc, "schema", json_integer(1));
    set_sweep(doc, &s->row);
    json_set(doc, "wanted", json_integer(s->tally.wanted));
    json_set(doc, "have", json_integer(s->tally.have));
    json_set(doc, "failed", json_integer(s->tally.failed));
    json_set(doc, "eta_ns", number_or_null(s->tally.has_eta, s->tally.eta_ns));
    for (size_t i = 0; rc == 0 && i < s->tally.host_count; i++) {
        json_t *o;
        rc = host_json(s, &s->tally.hosts[i], &o);
        json_array_append_new(hosts, o);
    }
    int64_t last = 0;
    const char *host = "?";
    for (size_t i = 0; i < s->tally.cell_count; i++) {
        const struct tally_cell *c = &s->tally.cells[i];
        if (i == 0 || c->host != last) {
            host = host_name(s, c->host);
            last = c->host;
        }
        json_array_append_new(cells, cell_json(s, c, host));
    }
    json_set(doc, "hosts", hosts);
    json_set(doc, "cells", cells);
    return rc;
}

static int read_sweep(struct one_sweep *s)
{
    s->workloads.arena = s->variants.arena = s->arena;
    int rc = tally_read(s->plan, &s->row, s->arena, &s->tally);
    if (rc == 0) {
        rc = store_workloads_each(s->plan->store, s->row.id, name_workload, &s->workloads);
    }
    if (rc == 0) {
        rc = store_variants_each(s->plan->store, s->row.id, name_variant, &s->variants);
    }
    return rc;
}

int plan_status_sweep(struct plan *plan, struct plan_now now, const char *sweep, struct buf *out,
                      struct diag *diag)
{
    struct one_sweep s = {.plan = plan, .now = now, .arena = mem_arena_new(0)};
    json_t *doc = json_object();
    int rc = store_sweep_find(plan->store, sweep, s.arena, &s.row);
    if (rc == -ERR_NOTFOUND) {
        diag_error(diag, rc, "there is no sweep `%s`: `makespan sweep list` shows them", sweep);
    }
    if (rc == 0) {
        rc = read_sweep(&s);
    }
    if (rc == 0) {
        rc = fill_sweep(&s, doc);
    }
    if (rc == 0) {
        rc = print(json_incref(doc), out);
    }
    json_decref(doc);
    mem_arena_free(&s.arena);
    return rc;
}

/* --- hosts --- */

struct host_list {
    struct plan *plan;
    struct plan_now now;
    const char *name; /* NULL: all */
    json_t *list;
};

static int set_facts(struct host_list *l, int64_t id, json_t *o)
{
    struct mem_arena *arena = mem_arena_new(0);
    const struct model_fact *facts;
    size_t n;
    json_t *object = json_object();
    int rc = store_host_facts(l->plan->store, id, arena, &facts, &n);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        json_set(object, facts[i].key, text_or_null(facts[i].value));
    }
    json_set(o, "facts", object);
    mem_arena_free(&arena);
    return rc;
}

static void set_host(json_t *o, const struct model_host *row)
{
    json_t *classes = json_array();
    for (size_t i = 0; i < row->class_count; i++) {
        json_array_append_new(classes, json_string(row->classes[i]));
    }
    json_set(o, "id", json_integer(row->id));
    json_set(o, "host", json_string(row->name));
    json_set(o, "state", text_or_null(model_host_word((int)row->state)));
    json_set(o, "classes", classes);
    json_set(o, "cpus",
             row->cpus_milli > 0 ? json_real((double)row->cpus_milli / 1000) : json_null());
    json_set(o, "memory_bytes", number_or_null(row->memory_bytes > 0, row->memory_bytes));
    json_set(o, "boot_id", text_or_null(row->boot_id));
    json_set(o, "machine_id", text_or_null(row->machine_id));
    json_set(o, "version", text_or_null(row->version));
    json_set(o, "joined_wall_ns", json_integer(row->joined_wall_ns));
    json_set(o, "seen_wall_ns", number_or_null(row->seen_wall_ns != 0, row->seen_wall_ns));
}

static int add_host(const struct model_host *row, void *arg)
{
    struct host_list *l = arg;
    if (l->name != NULL && strcmp(l->name, row->name) != 0) {
        return 0;
    }
    const struct plan_host *host = plan_find_host(l->plan, row->id);
    json_t *o = json_object();
    json_t *now = NULL;
    int rc = 0;
    json_array_append_new(l->list, o);
    set_host(o, row);
    bool up = host != NULL && host->up;
    json_set(o, "link", json_string(up ? "up" : row->boot_id != NULL ? "down" : "never"));
    json_set(o, "link_age_ns",
             number_or_null(host != NULL && (up || row->boot_id != NULL),
                            host != NULL ? l->now.mono_ns - host->link_mono_ns : 0));
    bool full = up && host->no_room[0] != '\0';
    json_set(o, "room", json_integer(up ? host->room : 0));
    json_set(o, "no_room", text_or_null(full ? host->no_room : NULL));
    json_set(o, "no_room_age_ns",
             number_or_null(full, full ? l->now.mono_ns - host->no_room_mono_ns : 0));
    if (host != NULL) {
        rc = now_flights(l->plan, l->now, host, 0, &now);
    }
    json_set(o, "now", now != NULL ? now : json_array());
    return rc == 0 && l->name != NULL ? set_facts(l, row->id, o) : rc;
}

int plan_status_hosts(struct plan *plan, struct plan_now now, const char *name, struct buf *out,
                      struct diag *diag)
{
    struct host_list l = {plan, now, name, json_array()};
    json_t *doc = json_object();
    int rc = store_hosts_each(plan->store, add_host, &l);
    if (rc == 0 && name != NULL && json_array_size(l.list) == 0) {
        rc = diag_error(diag, ERR_NOTFOUND,
                        "there is no host `%s`: `makespan host list` shows them", name);
    }
    json_set(doc, "schema", json_integer(1));
    json_set(doc, "hosts", l.list);
    if (rc < 0) {
        json_decref(doc);
        return rc;
    }
    return print(doc, out);
}
