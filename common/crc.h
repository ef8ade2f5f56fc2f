/* crc.h: CRC-32C (Castagnoli), for records on disk: a torn or damaged one is seen. No protection
 * against anyone who means it. */
#ifndef MAKESPAN_COMMON_CRC_H
#define MAKESPAN_COMMON_CRC_H

#include <stddef.h>
#include <stdint.h>

/* `crc` is 0 for the first piece, and the result so far for each further one. */
uint32_t crc32c(uint32_t crc, const void *data, size_t n);

#endif
