/* parse_cgroup.h: reads where Linux's control groups are and what they allow. Pure; any text is
 * safe. */
#ifndef MAKESPAN_WORKER_OS_PARSE_CGROUP_H
#define MAKESPAN_WORKER_OS_PARSE_CGROUP_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct os_cgroups;

/* From /proc/self/cgroup and /proc/self/mountinfo: the folder of this process's own group in
 * each hierarchy; "" where there is none, or where the group lies outside what is mounted. */
void parse_cgroup_folders(const char *self, const char *mountinfo, struct os_cgroups *out);

/* cpu.max of v2 ("max 100000", "150000 100000"): thousandths of a CPU, -1 for no quota.
 * -ERR_SYNTAX. */
int parse_cgroup_cpu_max(const char *text, int64_t *milli) MUST_CHECK;
/* cpu.cfs_quota_us and cpu.cfs_period_us of v1 (-1: no quota). */
int parse_cgroup_cfs(const char *quota, const char *period, int64_t *milli) MUST_CHECK;
/* "max" or a number, for pids.max, memory.max and memory.limit_in_bytes, whose "no limit" is a
 * number near 2^63: OS_NO_LIMIT. */
int parse_cgroup_max(const char *text, int64_t *value) MUST_CHECK;
/* cpu.stat of v2: user_usec and system_usec. */
int parse_cgroup_cpu_stat(const char *text, int64_t *user_ns, int64_t *sys_ns) MUST_CHECK;
/* cpuacct.usage (exact nanoseconds) and cpuacct.stat (user and system in ticks): the exact sum,
 * divided as the ticks are. */
int parse_cgroup_cpuacct(const char *usage, const char *stat, int64_t *user_ns,
                         int64_t *sys_ns) MUST_CHECK;
/* cgroup.events: whether a process is in it or below. */
int parse_cgroup_populated(const char *text, bool *populated) MUST_CHECK;

/* The type of the file system that holds a path, from mountinfo: the mount of that device number
 * ("8:1") with the longest prefix of the path, or else the longest prefix alone. False when
 * nothing fits. */
bool parse_mount_kind(const char *mountinfo, const char *path, const char *device, char *dst,
                      size_t room);

#endif
