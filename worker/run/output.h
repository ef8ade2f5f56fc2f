/* output.h: what a command prints: a file that it writes itself, of which the head and the tail
 * are kept.
 *
 * The worker makes the file and hands out a descriptor for append; the command writes without
 * passing through the worker. output_check(), called now and then, gives the middle of a long
 * output back to the disk: by a hole, or, where files have none, by moving the tail into memory
 * and cutting the file behind the head. The first 16 bytes of the file are the worker's own
 * mark: a command that truncates its log (as `> /dev/stdout` does) destroys it, and that is seen
 * however quickly it is done. */
#ifndef MAKESPAN_WORKER_RUN_OUTPUT_H
#define MAKESPAN_WORKER_RUN_OUTPUT_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct output;

#define OUTPUT_HEAD (1024 * 1024)
#define OUTPUT_TAIL (64 * 1024)
#define OUTPUT_PIECE (256 * 1024)

struct output_opts {
    const char *path; /* made anew; an older file of the name is replaced */
    uint64_t head;    /* bytes kept from the start; 0: OUTPUT_HEAD */
    uint64_t tail;    /* bytes kept from the end; 0: OUTPUT_TAIL */
    bool no_holes;    /* as if files had no holes: for tests */
    bool set_user;    /* the file belongs to uid, so that /dev/stdout can be opened again */
    uint32_t uid;
    uint32_t gid;
};

int output_new(const struct output_opts *opts, struct output **out, struct diag *diag) MUST_CHECK;
/* Closes; the file stays. NULL inside is fine. */
void output_free(struct output **output);
/* The same, and the file goes too: what is to be kept of it was read. NULL inside is fine. */
void output_remove(struct output **output);
/* For proc_spec.out_fd and err_fd: opened for append. */
int output_fd(const struct output *output);

/* Looks at the size and cuts the middle when it is worth it. Allocates nothing. Returns the
 * nanoseconds until it wants to be called again, from 50 ms for a fast writer to 1 s. */
int64_t output_check(struct output *output);
/* Bytes of the file at the last look. */
uint64_t output_seen(const struct output *output);
/* The last look, when nobody writes any more: reads what is needed for the pieces. 0 or negative
 * with text in diag. */
int output_finish(struct output *output, struct diag *diag) MUST_CHECK;

/* After output_finish(). Bytes that were printed, those that were cut included. */
uint64_t output_total(const struct output *output);
bool output_was_cut(const struct output *output);       /* there is a gap between head and tail */
bool output_was_truncated(const struct output *output); /* by the command itself */
/* False when the tail went through memory: bytes written just when the file was cut may be
 * missing from count and tail. */
bool output_is_exact(const struct output *output);
/* Piece by piece: begins with *cursor = 0. Gives up to OUTPUT_PIECE bytes as they are, their
 * place in the whole output, and moves the cursor. 1: a piece; 0: no more; negative: the file
 * could not be read. The bytes are valid until the next call. */
int output_piece(struct output *output, uint64_t *cursor, uint64_t *offset, const uint8_t **bytes,
                 size_t *n);
/* The last line of the output that is not empty, ended by a newline or not, with escapes for
 * what is no printable UTF-8; "" when there is none. */
void output_last_line(struct output *output, char *dst, size_t room);

#endif
