/* facts.c: what is to be known of a host, as keys and values. Owns the list and the spelling of
 * values, asks only in os_facts(). */
#include "worker/os/facts.h"

#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"
#include "worker/os/os.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void facts_fini(struct facts *facts)
{
    for (size_t i = 0; i < facts->count; i++) {
        free(facts->list[i].key);
        free(facts->list[i].value);
    }
    free(facts->list);
    *facts = (struct facts)FACTS_INIT;
}

/* A copy of at most max bytes in which each byte that is no UTF-8 and each control character is
 * '?'. */
static char *clean(const char *s, size_t max)
{
    size_t n = strlen(s), at = 0;
    char *copy = mem_xstrndup(s, n < max ? n : max);

    n = strlen(copy);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)copy[i] < 0x20 || copy[i] == 0x7f)
            copy[i] = '?';
    /* A character that the cut went through falls away whole; any other bad byte is replaced. */
    while ((at += str_utf8_bad(copy + at, n - at)) < n) {
        if (n == max && n - at < 4 && strlen(s) > max) {
            copy[at] = '\0';
            break;
        }
        copy[at] = '?';
    }
    return copy;
}

int facts_set(struct facts *facts, const char *key, const char *value)
{
    size_t i;

    if (value[0] == '\0' || key[0] == '\0')
        return 0;
    for (i = 0; i < facts->count; i++)
        if (strcmp(facts->list[i].key, key) == 0)
            break;
    if (i < facts->count) {
        free(facts->list[i].value);
        facts->list[i].value = clean(value, FACT_VALUE_MAX);
        return 0;
    }
    if (facts->count == FACTS_MAX)
        return -ERR_LIMIT;
    if (facts->count == facts->room) {
        facts->room = facts->room == 0 ? 32 : facts->room * 2;
        facts->list = mem_xrealloc(facts->list, facts->room, sizeof(*facts->list));
    }
    facts->list[facts->count].key = clean(key, FACT_KEY_MAX);
    facts->list[facts->count].value = clean(value, FACT_VALUE_MAX);
    facts->count++;
    return 0;
}

int facts_printf(struct facts *facts, const char *key, const char *fmt, ...)
{
    char value[FACT_VALUE_MAX + 1];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(value, sizeof(value), fmt, ap);
    va_end(ap);
    return facts_set(facts, key, value);
}

const char *facts_get(const struct facts *facts, const char *key)
{
    for (size_t i = 0; i < facts->count; i++)
        if (strcmp(facts->list[i].key, key) == 0)
            return facts->list[i].value;
    return NULL;
}

static void put(struct facts *facts, const char *key, const char *value)
{
    /* The keys of this file are far fewer than FACTS_MAX; a list that the caller filled may be
     * full, and then its own facts stay. */
    (void)facts_set(facts, key, value);
}

/* Unknown numbers are absent. */
static void put_number(struct facts *facts, const char *key, int64_t value)
{
    char text[32];

    if (value < 0)
        return;
    (void)snprintf(text, sizeof(text), "%" PRId64, value);
    put(facts, key, text);
}

static void put_limit(struct facts *facts, const char *key, int64_t value)
{
    if (value == OS_NO_LIMIT)
        put(facts, key, "unlimited");
    else
        put_number(facts, key, value);
}

static void put_text(struct facts *facts, const char *key, const char *value)
{
    if (value != NULL)
        put(facts, key, value);
}

void facts_build(struct facts *facts, const struct facts_from *from)
{
    if (from->cpus != NULL) {
        const struct os_cpus *c = from->cpus;

        put_number(facts, "cpus.online", c->online);
        put_number(facts, "cpus.affinity", c->affinity);
        put_number(facts, "cpus.quota", c->quota_milli);
        put_number(facts, "cpus.usable", os_cpus_usable(c));
        put_number(facts, "cpus.usable_milli", os_cpus_usable_milli(c));
        put_number(facts, "cpus.sockets", c->sockets);
        put_number(facts, "cpus.cores", c->cores);
        put_number(facts, "cpus.threads", c->threads);
        put_number(facts, "cpus.numa", c->numa);
        put(facts, "cpus.model", c->model);
    }
    if (from->memory != NULL) {
        put_number(facts, "memory.total", from->memory->total);
        put_number(facts, "memory.available", from->memory->available);
        put_number(facts, "swap.total", from->memory->swap_total);
    }
    if (from->ident != NULL) {
        const struct os_ident *i = from->ident;

        put(facts, "os.name", i->name);
        put(facts, "os.release", i->release);
        put(facts, "os.version", i->version);
        put(facts, "os.machine", i->machine);
        put(facts, "os.system", i->system);
        put(facts, "kernel", i->kernel);
        put(facts, "boot.id", i->boot_id);
        put(facts, "machine.id", i->machine_id);
        put(facts, "clock.source", i->clock_source);
    }
    if (from->limits != NULL) {
        put_limit(facts, "limit.processes", from->limits->processes);
        put_limit(facts, "limit.files", from->limits->files);
        put_limit(facts, "limit.stack", from->limits->stack);
        put_limit(facts, "limit.core", from->limits->core);
        put_limit(facts, "limit.pids", from->limits->pids);
        put_limit(facts, "limit.memory", from->limits->memory);
    }
    put_text(facts, "compiler", from->compiler);
    put_text(facts, "cgroup", from->cgroup);
    put_text(facts, "workdir.fs", from->workdir_fs);
    put_text(facts, "worker.version", from->version);
}

void os_facts(struct facts *facts, const char *workdir, const char *compiler, const char *cgroup,
              const char *version)
{
    struct os_cpus cpus;
    struct os_memory memory;
    struct os_ident ident;
    struct os_limits limits;
    char fs[64];
    struct facts_from from = {.compiler = compiler, .cgroup = cgroup, .version = version};

    if (os_cpus(&cpus) == 0)
        from.cpus = &cpus;
    if (os_memory(&memory) == 0)
        from.memory = &memory;
    if (os_ident(&ident) == 0)
        from.ident = &ident;
    if (os_limits(&limits) == 0)
        from.limits = &limits;
    if (workdir != NULL && os_fs_kind(workdir, fs, sizeof(fs)) == 0)
        from.workdir_fs = fs;
    facts_build(facts, &from);
}
