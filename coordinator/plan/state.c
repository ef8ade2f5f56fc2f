/* state.c: the lists of the planner: hosts, open sweeps, nodes, flights, messages. Reads no rows
 * and decides nothing. */
#include "coordinator/plan/state.h"

#include "common/buf.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"
#include "coordinator/plan/order.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int plan_fail(struct plan *plan, int code)
{
    assert(code < 0);
    if (plan->failed == 0) {
        plan->failed = code;
    }
    return code;
}

struct mem_arena *plan_scratch(struct plan *plan)
{
    if (plan->scratch == NULL) {
        plan->scratch = mem_arena_new(0);
    }
    return plan->scratch;
}

void plan_scratch_drop(struct plan *plan)
{
    mem_arena_free(&plan->scratch);
}

/* The list with room for one more of `size` bytes. */
static void *grown(void *list, size_t *room, size_t count, size_t size)
{
    if (count < *room) {
        return list;
    }
    *room = *room == 0 ? 8 : *room * 2;
    return mem_xrealloc(list, *room, size);
}

/* --- hosts --- */

static size_t host_place(const struct plan *plan, int64_t id)
{
    size_t low = 0;
    size_t high = plan->host_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (plan->hosts[mid]->id < id) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

struct plan_host *plan_find_host(const struct plan *plan, int64_t id)
{
    size_t i = host_place(plan, id);
    return i < plan->host_count && plan->hosts[i]->id == id ? plan->hosts[i] : NULL;
}

struct plan_host *plan_find_host_by_name(const struct plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->host_count; i++) {
        if (strcmp(plan->hosts[i]->name, name) == 0) {
            return plan->hosts[i];
        }
    }
    return NULL;
}

static void replace_text(char **dst, const char *src)
{
    char *copy = src != NULL ? mem_xstrdup(src) : NULL;
    free(*dst);
    *dst = copy;
}

void plan_set_machine(struct plan *plan, struct plan_host *host, const char *boot_id)
{
    replace_text(&host->boot_id, boot_id);
    host->machine = 0;
    if (boot_id == NULL) {
        return;
    }
    for (size_t i = 0; i < plan->host_count; i++) {
        const struct plan_host *other = plan->hosts[i];
        if (other != host && other->machine != 0 && strcmp(other->boot_id, boot_id) == 0) {
            host->machine = other->machine;
            return;
        }
    }
    host->machine = ++plan->last_machine;
}

struct plan_host *plan_keep_host(struct plan *plan, const struct model_host *row,
                                 struct plan_now now)
{
    struct plan_host *host = plan_find_host(plan, row->id);
    if (host == NULL) {
        host = mem_xzalloc(sizeof(*host));
        host->id = row->id;
        host->link_mono_ns = now.mono_ns;
        host->heard_mono_ns = now.mono_ns;
        host->stuck_mono_ns = now.mono_ns;
        plan->hosts =
            grown(plan->hosts, &plan->host_room, plan->host_count, sizeof(struct plan_host *));
        size_t at = host_place(plan, row->id);
        memmove(&plan->hosts[at + 1], &plan->hosts[at],
                (plan->host_count - at) * sizeof(struct plan_host *));
        plan->hosts[at] = host;
        plan->host_count++;
    }
    replace_text(&host->name, row->name);
    replace_text(&host->machine_id, row->machine_id);
    host->state = row->state;
    if (!str_eq(host->boot_id, row->boot_id)) {
        plan_set_machine(plan, host, row->boot_id);
    }
    return host;
}

void plan_drop_hosts(struct plan *plan)
{
    for (size_t i = 0; i < plan->host_count; i++) {
        struct plan_host *host = plan->hosts[i];
        assert(host->node_count == 0);
        free(host->name);
        free(host->boot_id);
        free(host->machine_id);
        free(host->flights);
        free(host->nodes);
        free(host);
    }
    free(plan->hosts);
    plan->hosts = NULL;
    plan->host_count = plan->host_room = 0;
}

/* --- sweeps --- */

struct plan_sweep *plan_find_sweep(const struct plan *plan, int64_t id)
{
    for (size_t i = 0; i < plan->sweep_count; i++) {
        if (plan->sweeps[i]->id == id) {
            return plan->sweeps[i];
        }
    }
    return NULL;
}

struct plan_sweep *plan_add_sweep(struct plan *plan, const struct model_sweep *row,
                                  struct plan_now now)
{
    struct plan_sweep *sweep = mem_xzalloc(sizeof(*sweep));
    sweep->id = row->id;
    sweep->ref = mem_xasprintf("%s/%lld", row->name, (long long)row->number);
    sweep->state = row->state;
    sweep->priority = row->priority;
    sweep->since_mono_ns = now.mono_ns;
    plan->sweeps =
        grown(plan->sweeps, &plan->sweep_room, plan->sweep_count, sizeof(struct plan_sweep *));
    plan->sweeps[plan->sweep_count++] = sweep;
    return sweep;
}

void plan_drop_sweep(struct plan *plan, struct plan_sweep *sweep)
{
    assert(sweep->open_nodes == 0);
    for (size_t i = 0; i < plan->sweep_count; i++) {
        if (plan->sweeps[i] == sweep) {
            memmove(&plan->sweeps[i], &plan->sweeps[i + 1],
                    (plan->sweep_count - i - 1) * sizeof(struct plan_sweep *));
            plan->sweep_count--;
            break;
        }
    }
    free(sweep->ref);
    free(sweep);
}

/* --- nodes --- */

struct plan_node *plan_find_node(const struct plan *plan, int64_t sweep, int64_t host)
{
    const struct plan_host *h = plan_find_host(plan, host);
    for (size_t i = 0; h != NULL && i < h->node_count; i++) {
        if (h->nodes[i]->sweep->id == sweep) {
            return h->nodes[i];
        }
    }
    return NULL;
}

void plan_drop_node(struct plan *plan, struct plan_node *node)
{
    (void)plan;
    struct plan_host *host = node->host;
    for (size_t i = 0; i < host->node_count; i++) {
        if (host->nodes[i] == node) {
            memmove(&host->nodes[i], &host->nodes[i + 1],
                    (host->node_count - i - 1) * sizeof(struct plan_node *));
            host->node_count--;
            node->sweep->open_nodes--;
            break;
        }
    }
    order_free(&node->order);
    free(node->cells);
    free(node);
}

struct plan_cell *plan_find_cell(const struct plan_node *node, int64_t id)
{
    size_t low = 0;
    size_t high = node->cell_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (node->cells[mid].id < id) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < node->cell_count && node->cells[low].id == id ? &node->cells[low] : NULL;
}

void plan_set_cell_open(struct plan_node *node, int64_t id, bool open)
{
    struct plan_cell *cell = plan_find_cell(node, id);
    if (cell != NULL && cell->open != open) {
        cell->open = open;
        node->open_cells += open ? 1 : (size_t)-1;
    }
}

int64_t plan_node_index(const struct plan_node *node)
{
    return node->row.next_block - node->broken;
}

bool plan_node_in_block(const struct plan_node *node)
{
    return node->queued > 0 && node->top_slot >= node->block_slot;
}

bool plan_over_budget(const struct model_sweep_host *row)
{
    return row->budget_ns > 0 && row->used_ns >= row->budget_ns;
}

bool plan_node_exhausted(const struct plan_node *node)
{
    return node->open_cells == 0 || plan_node_index(node) > node->row.until_runs ||
           plan_over_budget(&node->row);
}

/* --- flights --- */

struct plan_flight *plan_find_flight(const struct plan_host *host, int64_t run, uint32_t attempt)
{
    for (size_t i = 0; i < host->flight_count; i++) {
        if (host->flights[i].run == run && host->flights[i].attempt == attempt) {
            return &host->flights[i];
        }
    }
    return NULL;
}

struct plan_flight *plan_add_flight(struct plan_host *host, int64_t run, uint32_t attempt,
                                    struct plan_now now)
{
    host->flights =
        grown(host->flights, &host->flight_room, host->flight_count, sizeof(struct plan_flight));
    struct plan_flight *flight = &host->flights[host->flight_count++];
    memset(flight, 0, sizeof(*flight));
    flight->run = run;
    flight->attempt = attempt;
    flight->since_mono_ns = now.mono_ns;
    flight->due_mono_ns = PLAN_NEVER;
    return flight;
}

void plan_remove_flight(struct plan_host *host, struct plan_flight *flight)
{
    size_t at = (size_t)(flight - host->flights);
    assert(at < host->flight_count);
    memmove(flight, flight + 1, (host->flight_count - at - 1) * sizeof(*flight));
    host->flight_count--;
}

struct plan_flight *plan_head_flight(const struct plan_host *host)
{
    for (size_t i = 0; i < host->flight_count; i++) {
        if (host->flights[i].state != FLIGHT_SPOOLED) {
            return &host->flights[i];
        }
    }
    return NULL;
}

size_t plan_count_flights(const struct plan_host *host)
{
    size_t n = 0;
    for (size_t i = 0; i < host->flight_count; i++) {
        n += host->flights[i].state != FLIGHT_SPOOLED;
    }
    return n;
}

/* --- messages and events --- */

void plan_add_message(struct plan *plan, enum plan_message_kind kind, int64_t host, int64_t run,
                      uint32_t attempt, const char *text)
{
    plan->messages = grown(plan->messages, &plan->message_room, plan->message_count,
                           sizeof(struct plan_message));
    struct plan_message *m = &plan->messages[plan->message_count++];
    *m = (struct plan_message){kind, host, run, attempt, text != NULL ? mem_xstrdup(text) : NULL};
}

void plan_drop_messages(struct plan *plan)
{
    for (size_t i = 0; i < plan->message_count; i++) {
        free(plan->messages[i].text);
    }
    plan->message_count = 0;
}

int plan_event(struct plan *plan, struct plan_now now, enum event_kind kind, int64_t sweep,
               int64_t host, int64_t run, const char *who, const char *fmt, ...)
{
    struct buf text = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    struct model_event event = {.wall_ns = now.wall_ns,
                                .kind = kind,
                                .sweep = sweep,
                                .host = host,
                                .run = run,
                                .who = who,
                                .text = buf_str(&text)};
    int rc = plan->ops->event(plan->arg, &event);
    buf_fini(&text);
    return rc < 0 ? plan_fail(plan, rc) : 0;
}
