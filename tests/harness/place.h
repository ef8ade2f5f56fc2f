/* place.h: where a test makes files: in the folder of its own that the runner names in TMPDIR and removes. */
#ifndef MAKESPAN_TESTS_HARNESS_PLACE_H
#define MAKESPAN_TESTS_HARNESS_PLACE_H

#include <stddef.h>

/* A pattern for mkstemp() and mkdtemp(), "TMPDIR/NAME.XXXXXX" (below /tmp where TMPDIR is not set), into path; fails the test
 * when its size bytes are too few. */
void place_pattern(char *path, size_t size, const char *name);
/* A new folder by that pattern, its path into path. */
void place_new_dir(char *path, size_t size, const char *name);

#endif
