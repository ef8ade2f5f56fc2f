/* facts.h: what is to be known of a host, as a list of key and value: for HELLO and for people.
 *
 * Keys: cpus.online cpus.affinity cpus.quota (thousandths, absent without one) cpus.usable
 * cpus.usable_milli cpus.sockets cpus.cores cpus.threads cpus.numa cpus.model memory.total
 * memory.available swap.total (bytes) os.name os.release os.version os.machine os.system kernel
 * boot.id machine.id clock.source compiler limit.processes limit.files limit.stack limit.core
 * limit.pids limit.memory ("unlimited" or a number) cgroup workdir.fs worker.version. What is
 * unknown is absent. OMP_* and other variables are never asked. */
#ifndef MAKESPAN_WORKER_OS_FACTS_H
#define MAKESPAN_WORKER_OS_FACTS_H

#include "common/attr.h"

#include <stddef.h>

struct os_cpus;
struct os_ident;
struct os_limits;
struct os_memory;

#define FACT_KEY_MAX 64
#define FACT_VALUE_MAX 1024
#define FACTS_MAX 512

struct fact {
    char *key;   /* at most FACT_KEY_MAX bytes; owned */
    char *value; /* at most FACT_VALUE_MAX bytes of UTF-8; owned */
};

struct facts {
    struct fact *list;
    size_t count; /* at most FACTS_MAX */
    size_t room;
};

#define FACTS_INIT                                                                                 \
    {                                                                                              \
        NULL, 0, 0                                                                                 \
    }

void facts_fini(struct facts *facts); /* leaves an empty list */
/* Adds or replaces; a value that is too long is cut, bytes that are not UTF-8 and control
 * characters become '?'. An empty value is not added. A full list: -ERR_LIMIT. */
int facts_set(struct facts *facts, const char *key, const char *value);
int facts_printf(struct facts *facts, const char *key, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* NULL when there is none. */
const char *facts_get(const struct facts *facts, const char *key);

/* Where the answers come from: pure. Members may be NULL: their facts are absent. */
struct facts_from {
    const struct os_cpus *cpus;
    const struct os_memory *memory;
    const struct os_ident *ident;
    const struct os_limits *limits;
    const char *compiler; /* first line of `cc --version` */
    const char *cgroup;   /* confine_way_text() */
    const char *workdir_fs;
    const char *version; /* of the worker */
};
void facts_build(struct facts *facts, const struct facts_from *from);

/* Asks os.h everything and builds. `compiler`, `cgroup`, `version` as above. */
void os_facts(struct facts *facts, const char *workdir, const char *compiler, const char *cgroup,
              const char *version);

#endif
