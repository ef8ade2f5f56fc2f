/* parse_text.h: reads small text files of a system: os-release, passwd, one-line files. Pure;
 * any text is safe. */
#ifndef MAKESPAN_WORKER_OS_PARSE_TEXT_H
#define MAKESPAN_WORKER_OS_PARSE_TEXT_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct os_user;

/* The value of KEY= in an os-release file, its quotes and backslashes undone; false when it is
 * not there or empty. */
bool parse_release(const char *text, const char *key, char *dst, size_t room);
/* The user of that name in a passwd file. */
bool parse_passwd(const char *text, const char *name, struct os_user *out);
/* The group of the user of that number in a passwd file. */
bool parse_passwd_gid(const char *text, uint32_t uid, uint32_t *gid);
/* The first line of a text without the blanks around it; returns its length. */
size_t parse_line(const char *text, char *dst, size_t room);

#endif
