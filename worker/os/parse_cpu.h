/* parse_cpu.h: reads what Linux says of its processors. Pure; any text is safe. */
#ifndef MAKESPAN_WORKER_OS_PARSE_CPU_H
#define MAKESPAN_WORKER_OS_PARSE_CPU_H

#include "common/attr.h"

#include <stddef.h>
#include <stdint.h>

/* -1: the text does not say. */
struct parse_cpu {
    int32_t processors; /* logical, online */
    int32_t sockets;
    int32_t cores;   /* of all sockets */
    char model[256]; /* of the first, "" when it has none */
};

/* /proc/cpuinfo, of x86 with and without topology, arm, arm64 and others. An x86 that names no
 * sockets (a Pentium Pro, a kernel without SMP) has one core and one socket a processor. */
void parse_cpu_info(const char *text, struct parse_cpu *out);

/* "0-3,8": how many numbers that is; -1 when it is no such list. */
int32_t parse_cpu_list(const char *text);

/* Sockets and cores from `n` pairs of physical_package_id and core_id, as
 * /sys/devices/system/cpu gives them; a negative id: not known. */
struct parse_cpu_place {
    int64_t package;
    int64_t core;
};
void parse_cpu_places(const struct parse_cpu_place *places, size_t n, int32_t *sockets,
                      int32_t *cores);

#endif
