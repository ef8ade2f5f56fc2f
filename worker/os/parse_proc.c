/* parse_proc.c: reads the texts of Linux's /proc. Owns no file and asks nothing. */
#include "worker/os/parse_proc.h"

#include "common/clock.h"
#include "common/err.h"
#include "common/num.h"
#include "common/str.h"
#include "worker/os/os.h"

#include <string.h>

#define KERNEL_THREAD 0x00200000 /* PF_KTHREAD of the flags in /proc/PID/stat */

static const char *skip_blanks(const char *p)
{
    while (*p == ' ' || *p == '\t')
        p++;
    return p;
}

/* Reads digits at *p, moves behind them; -1 when there are none or too many. */
static int64_t take_number(const char **p)
{
    const char *s = skip_blanks(*p);
    size_t n = strspn(s, "0123456789");
    uint64_t v;

    *p = s + n;
    if (n == 0 || num_parse_digits(s, n, &v) != 0 || v > INT64_MAX)
        return -1;
    return (int64_t)v;
}

/* Like take_number() with an optional '-'; what cannot be read is 0. */
static int64_t take_signed(const char **p)
{
    const char *s = skip_blanks(*p);
    bool minus = *s == '-';
    int64_t v;

    *p = s + (minus ? 1 : 0);
    v = take_number(p);
    if (v < 0)
        return 0;
    return minus ? -v : v;
}

static int64_t scaled(int64_t v, int64_t by)
{
    int64_t out;

    if (v < 0 || num_mul_i64(v, by, &out) != 0)
        return -1;
    return out;
}

static const char *next_line(const char *p)
{
    const char *end = strchr(p, '\n');

    return end == NULL ? p + strlen(p) : end + 1;
}

bool parse_proc_number(const char *text, const char *key, int64_t *value)
{
    size_t n = strlen(key);
    const char *p;

    for (p = text; *p != '\0'; p = next_line(p)) {
        const char *v;

        if (strncmp(p, key, n) != 0 || (p[n] != ':' && p[n] != ' ' && p[n] != '\t'))
            continue;
        v = p + n + 1;
        *value = take_number(&v);
        return *value >= 0;
    }
    return false;
}

int parse_proc_stat(const char *text, int64_t hz, struct os_ticks *out)
{
    int64_t column[8]; /* user nice system idle iowait irq softirq steal */
    int64_t tick = hz > 0 ? CLOCK_SEC / hz : 0;
    const char *p = text;
    size_t i;

    while (*p != '\0' && strncmp(p, "cpu ", 4) != 0)
        p = next_line(p);
    if (*p == '\0' || tick == 0)
        return -ERR_SYNTAX;
    p += 4;
    for (i = 0; i < ARRAY_LEN(column); i++)
        column[i] = scaled(take_number(&p), tick);
    for (i = 0; i < 4; i++)
        if (column[i] < 0)
            return -ERR_SYNTAX;
    out->user = column[0] + column[1];
    out->system = column[2];
    out->idle = column[3];
    out->iowait = column[4];
    out->irq = (column[5] < 0 ? 0 : column[5]) + (column[6] < 0 ? 0 : column[6]);
    out->steal = column[7];
    return 0;
}

int parse_proc_meminfo(const char *text, struct os_memory *out)
{
    int64_t total, kb;

    if (!parse_proc_number(text, "MemTotal", &total))
        return -ERR_SYNTAX;
    out->total = scaled(total, 1024);
    if (parse_proc_number(text, "MemAvailable", &kb)) {
        out->available = scaled(kb, 1024);
    } else {
        static const char *const part[] = {"MemFree", "Buffers", "Cached"};
        int64_t sum = 0;
        bool any = false;

        for (size_t i = 0; i < ARRAY_LEN(part); i++) {
            if (parse_proc_number(text, part[i], &kb) && kb <= total) {
                sum += kb;
                any = true;
            }
        }
        out->available = any ? scaled(sum < total ? sum : total, 1024) : -1;
    }
    out->swap_total = parse_proc_number(text, "SwapTotal", &kb) ? scaled(kb, 1024) : -1;
    out->swap_free = parse_proc_number(text, "SwapFree", &kb) ? scaled(kb, 1024) : -1;
    return 0;
}

int parse_proc_vmstat(const char *text, struct os_paging *out)
{
    out->swap_in = -1;
    out->swap_out = -1;
    if (!parse_proc_number(text, "pswpin", &out->swap_in) ||
        !parse_proc_number(text, "pswpout", &out->swap_out))
        return -ERR_SYNTAX;
    return 0;
}

/* "1.15" in thousandths, -1 when it is none. */
static int64_t take_milli(const char **p)
{
    int64_t whole = take_number(p), milli = 0;
    int64_t weight = 100;

    if (whole < 0 || whole > INT64_MAX / 1000 - 1 || **p != '.')
        return -1;
    for ((*p)++; **p >= '0' && **p <= '9'; (*p)++) {
        milli += (**p - '0') * weight;
        weight /= 10;
    }
    return whole * 1000 + milli;
}

int parse_proc_loadavg(const char *text, struct os_load *out)
{
    const char *p = text;
    size_t i;

    for (i = 0; i < 3; i++) {
        out->milli[i] = take_milli(&p);
        if (out->milli[i] < 0)
            return -ERR_SYNTAX;
    }
    out->running = take_number(&p);
    if (*p != '/')
        out->running = -1;
    return 0;
}

int parse_proc_pressure(const char *text, int64_t *some_ns)
{
    static const char key[] = "total=";
    const char *p, *line = text;

    while (*line != '\0' && strncmp(line, "some ", 5) != 0)
        line = next_line(line);
    p = strstr(line, key);
    if (*line == '\0' || p == NULL || p >= next_line(line))
        return -ERR_SYNTAX;
    p += sizeof(key) - 1;
    *some_ns = scaled(take_number(&p), 1000);
    return *some_ns < 0 ? -ERR_SYNTAX : 0;
}

int parse_proc_pid_stat(const char *text, int64_t hz, struct os_proc *out)
{
    const char *open = strchr(text, '('), *close = strrchr(text, ')'), *p = text;
    int64_t tick = hz > 0 ? CLOCK_SEC / hz : 0;
    int64_t field[20]; /* from the fourth of the line, ppid, on: its number less 4 */
    size_t n;
    char state;

    memset(out, 0, sizeof(*out));
    out->pid = take_number(&p);
    if (open == NULL || close == NULL || close < open || out->pid < 0 || tick == 0)
        return -ERR_SYNTAX;
    n = (size_t)(close - open - 1);
    if (n >= sizeof(out->name))
        n = sizeof(out->name) - 1;
    memcpy(out->name, open + 1, n);
    p = skip_blanks(close + 1);
    state = *p;
    if (state == '\0')
        return -ERR_SYNTAX;
    p++;
    for (size_t i = 0; i < ARRAY_LEN(field); i++) {
        p = skip_blanks(p);
        if (*p == '\0' || *p == '\n')
            return -ERR_SYNTAX;
        field[i] = take_signed(&p);
    }
    out->ppid = field[0];
    out->pgid = field[1];
    out->sid = field[2];
    out->kernel = (field[5] & KERNEL_THREAD) != 0;
    /* A process whose first thread ended is shown as a zombie while the others work on. */
    out->zombie = (state == 'Z' || state == 'X' || state == 'x') && field[16] <= 1;
    out->cpu_ns = scaled(field[10], tick) + scaled(field[11], tick);
    out->start = field[18];
    return 0;
}

bool parse_proc_status_is_of(const char *text, uint32_t uid)
{
    const char *p;

    for (p = text; *p != '\0'; p = next_line(p)) {
        if (strncmp(p, "Uid:", 4) != 0)
            continue;
        p += 4;
        for (int i = 0; i < 3; i++) /* real, effective, saved; the fourth is of the file system */
            if (take_number(&p) == (int64_t)uid)
                return true;
        return false;
    }
    return false;
}

bool parse_proc_environ_has(const char *block, size_t n, const char *name_value)
{
    size_t len = strlen(name_value), at = 0;

    while (at < n) {
        const char *end = memchr(block + at, '\0', n - at);
        size_t size = end == NULL ? n - at : (size_t)(end - (block + at));

        if (size == len && memcmp(block + at, name_value, len) == 0)
            return true;
        at += size + 1;
    }
    return false;
}
