/* hosts.h: rows of hosts, their classes and facts. See store.h for what holds for all functions. */
#ifndef MAKESPAN_COORDINATOR_STORE_HOSTS_H
#define MAKESPAN_COORDINATOR_STORE_HOSTS_H

#include "common/attr.h"
#include "coordinator/model.h"

#include <stddef.h>
#include <stdint.h>

struct mem_arena;
struct store;

/* Takes everything but id and facts; -ERR_EXISTS when the name or the key is taken. */
int store_host_insert(struct store *store, const struct model_host *host, int64_t *id) MUST_CHECK;
/* Without facts, as the two below. */
int store_host_get(struct store *store, int64_t id, struct mem_arena *arena,
                   struct model_host *out) MUST_CHECK;
int store_host_by_name(struct store *store, const char *name, struct mem_arena *arena,
                       struct model_host *out) MUST_CHECK;
int store_host_by_key(struct store *store, const char *key_hash, struct mem_arena *arena,
                      struct model_host *out) MUST_CHECK;
typedef int store_host_f(const struct model_host *host, void *arg);
/* By name, without facts. */
int store_hosts_each(struct store *store, store_host_f *f, void *arg) MUST_CHECK;

int store_host_set_state(struct store *store, int64_t id, enum host_state state) MUST_CHECK;
/* The host joined again with a new key. */
int store_host_set_key(struct store *store, int64_t id, const char *key_hash,
                       int64_t joined_wall_ns) MUST_CHECK;
/* Having it already is fine. */
int store_host_add_class(struct store *store, int64_t id, const char *name) MUST_CHECK;
/* -ERR_NOTFOUND when it has no such class. */
int store_host_remove_class(struct store *store, int64_t id, const char *name) MUST_CHECK;
/* A sign of life. boot_id NULL: it and the visit stay as they are. */
int store_host_seen(struct store *store, int64_t id, int64_t wall_ns, const char *boot_id,
                    uint64_t visit) MUST_CHECK;
/* From HELLO; a NULL stays as it is. */
int store_host_set_identity(struct store *store, int64_t id, const char *machine_id,
                            const char *version) MUST_CHECK;
int store_host_set_capacity(struct store *store, int64_t id, int64_t cpus_milli,
                            int64_t memory_bytes) MUST_CHECK;
/* Replaces all facts of the host. Keys are distinct. */
int store_host_set_facts(struct store *store, int64_t id, const struct model_fact *facts,
                         size_t count) MUST_CHECK;
/* Facts by key; *facts NULL and *count 0 when there are none. */
int store_host_facts(struct store *store, int64_t id, struct mem_arena *arena,
                     const struct model_fact **facts, size_t *count) MUST_CHECK;

#endif
