/* tarmake.h: makes tar archives by hand, with whatever is wrong in them. */
#ifndef MAKESPAN_TESTS_UNIT_WORKER_TARMAKE_H
#define MAKESPAN_TESTS_UNIT_WORKER_TARMAKE_H

#include <stddef.h>

struct buf;

/* One header and its data, padded. `mode` octal as a number; link may be NULL. The header is
 * ustar's. */
void tarmake_entry(struct buf *out, char kind, const char *name, unsigned mode, const char *link,
                   const void *data, size_t n);
/* A header alone that claims `size` bytes. */
void tarmake_header(struct buf *out, char kind, const char *name, unsigned mode, const char *link,
                    unsigned long long size);
/* A pax header ('x' or 'g') with one record. */
void tarmake_pax(struct buf *out, char kind, const char *key, const char *value);
/* GNU's long name ('L') or long link ('K'). */
void tarmake_long(struct buf *out, char kind, const char *text);
/* Two blocks of zeros. */
void tarmake_end(struct buf *out);
/* Writes the checksum of the header at p anew. */
void tarmake_sum(unsigned char *p);

#endif
