/* log.c: the daemon's log. Owns the log's descriptor, level and the lines held back: one of the few modules with static state. Writes one line a
 * message by one write(), and allocates nothing. */
#include "common/log.h"

#include "common/clock.h"
#include "common/compat/compat.h"
#include "common/err.h"
#include "common/str.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX 4096
#define LINE_MAX_BYTES 8192
#define HELD_MAX ((size_t)64 * 1024)

static struct {
    int fd;
    bool own_fd;
    bool journal; /* standard error is the journal's socket: it adds time and program, and takes the level from <N> */
    const char *program;
    const char *node;
    enum log_level level;
    uint64_t unwritten; /* lines that could not be written and were not yet told */
    unsigned holding; /* how many hold it back */
    uint64_t held_over; /* lines beyond the room */
    size_t held_len;
    char held[HELD_MAX];
} state = {.fd = STDERR_FILENO, .program = "makespan", .level = LOG_INFO};

const char *const LOG_LEVELS[] = {[LOG_ERROR] = "error", [LOG_WARN] = "warn", [LOG_INFO] = "info", [LOG_DEBUG] = "debug", NULL};

/* Of syslog. */
static const char PRIORITIES[] = {[LOG_ERROR] = '3', [LOG_WARN] = '4', [LOG_INFO] = '6', [LOG_DEBUG] = '7'};

struct line {
    size_t len;
    char text[LINE_MAX_BYTES];
};

/* Whether the descriptor is the stream that the service manager names: DEVICE:INODE in JOURNAL_STREAM. */
static bool is_journal(int fd)
{
    const char *named = getenv("JOURNAL_STREAM");
    struct stat st;
    char own[64];
    if (named == NULL || compat_stat(fd, NULL, 0, &st, NULL) != 0) {
        return false;
    }
    snprintf(own, sizeof(own), "%" PRIuMAX ":%" PRIuMAX, (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    return strcmp(own, named) == 0;
}

int log_open(const char *program, const char *path, enum log_level level)
{
    int fd = STDERR_FILENO;
    if (path != NULL) {
        fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0640);
        if (fd < 0) {
            return err_from_errno(errno);
        }
    }
    log_close();
    state.fd = fd;
    state.own_fd = path != NULL;
    state.journal = path == NULL && is_journal(fd);
    state.program = program;
    state.level = level;
    return 0;
}

/* Appends what fits and leaves room for the newline. */
static void put(struct line *line, const char *text, size_t n)
{
    size_t space = sizeof(line->text) - 1 - line->len;
    n = n < space ? n : space;
    memcpy(line->text + line->len, text, n);
    line->len += n;
}

static void put_str(struct line *line, const char *text)
{
    put(line, text, strlen(text));
}

/* Year, month and day of the days since 1970-01-01 in the Gregorian calendar: years that begin in March put the leap day last, and
 * 400 of them have 146097 days. */
static void civil_date(int64_t days, int64_t *year, unsigned *month, unsigned *day)
{
    int64_t shifted = days + 719468; /* days since 0000-03-01 */
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    unsigned in_era = (unsigned)(shifted - era * 146097);
    unsigned year_of_era = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    unsigned in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    unsigned march_month = (5 * in_year + 2) / 153;
    *day = in_year - (153 * march_month + 2) / 5 + 1;
    *month = march_month < 10 ? march_month + 3 : march_month - 9;
    *year = era * 400 + year_of_era + (*month <= 2 ? 1 : 0);
}

static void put_head(struct line *line, enum log_level level)
{
    char head[128];
    if (state.journal) {
        snprintf(head, sizeof(head), "<%c>", PRIORITIES[level]);
        put_str(line, head);
    } else {
        int64_t now_ms = clock_wall_ns() / CLOCK_MS;
        int64_t days = now_ms / (CLOCK_DAY / CLOCK_MS);
        int64_t ms = now_ms % (CLOCK_DAY / CLOCK_MS);
        if (ms < 0) {
            ms += CLOCK_DAY / CLOCK_MS;
            days--;
        }
        int64_t year;
        unsigned month;
        unsigned day;
        unsigned second = (unsigned)(ms / 1000);
        civil_date(days, &year, &month, &day);
        snprintf(head, sizeof(head), "%04" PRId64 "-%02u-%02uT%02u:%02u:%02u.%03uZ %.32s[%ld] ", year, month, day,
                 second / 3600, second / 60 % 60, second % 60, (unsigned)(ms % 1000), state.program, (long)getpid());
        put_str(line, head);
    }
    if (state.node != NULL) {
        put_str(line, state.node);
        put_str(line, " ");
    }
    if (!state.journal) {
        put_str(line, LOG_LEVELS[level]);
        put_str(line, ": ");
    }
}

/* Appends text so that it stays one line and cannot steer a terminal. */
static void put_clean(struct line *line, const char *text, size_t n)
{
    size_t at = 0;
    while (at < n) {
        size_t good = 0;
        while (at + good < n && (unsigned char)text[at + good] >= 0x20 && (unsigned char)text[at + good] < 0x7f) {
            good++;
        }
        put(line, text + at, good);
        at += good;
        if (at == n) {
            break;
        }
        unsigned char c = (unsigned char)text[at];
        size_t len = c < 0xc2 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
        bool c1 = c == 0xc2 && at + 1 < n && (unsigned char)text[at + 1] < 0xa0;
        if (len > 1 && len <= n - at && !c1 && str_is_utf8(text + at, len)) {
            put(line, text + at, len);
            at += len;
        } else {
            char hex[8];
            snprintf(hex, sizeof(hex), c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\x%02x", (unsigned)c);
            put_str(line, hex);
            at++;
        }
    }
}

/* Whether all n bytes went out. A full pipe or disk must not stop a daemon: its lines are counted instead. */
static bool write_all(const char *text, size_t n)
{
    while (n > 0) {
        ssize_t done = write(state.fd, text, n);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return false;
        }
        text += done;
        n -= (size_t)done;
    }
    return true;
}

/* Writes a line that says how many lines are missing and why. */
static bool write_missing(uint64_t count, const char *why)
{
    struct line line = {.len = 0};
    char text[96];
    put_head(&line, LOG_WARN);
    snprintf(text, sizeof(text), "%" PRIu64 " line%s of the log %s\n", count, count == 1 ? "" : "s", why);
    put_str(&line, text);
    return write_all(line.text, line.len);
}

static void write_lines(const char *text, size_t n)
{
    if (state.unwritten > 0 && write_missing(state.unwritten, "could not be written")) {
        state.unwritten = 0;
    }
    if (!write_all(text, n)) {
        for (size_t i = 0; i < n; i++) {
            state.unwritten += text[i] == '\n';
        }
    }
}

static void put_line(enum log_level level, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);

static void put_line(enum log_level level, const char *fmt, va_list ap)
{
    if (level > state.level) {
        return;
    }
    char text[TEXT_MAX];
    struct line line;
    line.len = 0;
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;
    put_head(&line, level);
    put_clean(&line, text, len);
    if (n < 0 || (size_t)n >= sizeof(text) || line.len == sizeof(line.text) - 1) {
        static const char cut[] = " [cut]";
        size_t keep = sizeof(line.text) - sizeof(cut);
        line.len = line.len < keep ? line.len : keep;
        put_str(&line, cut);
    }
    line.text[line.len++] = '\n';
    if (state.holding == 0) {
        write_lines(line.text, line.len);
    } else if (state.held_over > 0 || line.len > sizeof(state.held) - state.held_len) {
        state.held_over++;
    } else {
        memcpy(state.held + state.held_len, line.text, line.len);
        state.held_len += line.len;
    }
}

void log_hold(void)
{
    state.holding++;
}

void log_release(void)
{
    assert(state.holding > 0);
    if (--state.holding > 0) {
        return;
    }
    if (state.held_len > 0) {
        write_lines(state.held, state.held_len);
        state.held_len = 0;
    }
    if (state.held_over > 0) {
        if (!write_missing(state.held_over, "did not fit while it was held")) {
            state.unwritten += state.held_over;
        }
        state.held_over = 0;
    }
}

void log_close(void)
{
    while (state.holding > 0) {
        log_release();
    }
    if (state.own_fd) {
        close(state.fd);
    }
    state.fd = STDERR_FILENO;
    state.own_fd = false;
    state.journal = false;
}

void log_set_level(enum log_level level)
{
    state.level = level;
}

enum log_level log_get_level(void)
{
    return state.level;
}

void log_set_node(const char *node)
{
    state.node = node;
}

void log_error(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    put_line(LOG_ERROR, fmt, ap);
    va_end(ap);
}

void log_warn(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    put_line(LOG_WARN, fmt, ap);
    va_end(ap);
}

void log_info(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    put_line(LOG_INFO, fmt, ap);
    va_end(ap);
}

void log_debug(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    put_line(LOG_DEBUG, fmt, ap);
    va_end(ap);
}
