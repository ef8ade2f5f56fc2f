/* words.h: text for people out of bytes of any kind. Pure, but for the reading of an output. */
#ifndef MAKESPAN_WORKER_RUN_WORDS_H
#define MAKESPAN_WORKER_RUN_WORDS_H

#include <stddef.h>

struct buf;
struct output;

/* Copies text so that it fits into `room` bytes, NUL included: cut between characters; control
 * characters and what is no UTF-8 become '?'. Returns dst. */
const char *words_copy(char *dst, size_t room, const char *text);
/* The same for several lines: newlines and tabs stay. */
const char *words_copy_lines(char *dst, size_t room, const char *text);
/* Appends the last bytes (at most `most`, from the start of a line where there is one) of a
 * finished output, escaped into one line. Nothing when it is empty or cannot be read. */
void words_tail(struct buf *out, struct output *output, size_t most);
/* The first of `n` needles that stands in a finished output, as far as it is kept; NULL: none. */
const char *words_find(struct output *output, const char *const *needles, size_t n);

#endif
