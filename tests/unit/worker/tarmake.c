/* tarmake.c: makes tar archives by hand. */
#include "tests/unit/worker/tarmake.h"

#include "common/buf.h"

#include <stdio.h>
#include <string.h>

static void pad(struct buf *out, size_t n)
{
    static const char zeros[1024];

    buf_add(out, zeros, n);
}

void tarmake_sum(unsigned char *p)
{
    unsigned sum = 0;
    char text[16];

    memset(p + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += p[i];
    (void)snprintf(text, sizeof(text), "%06o", sum);
    memcpy(p + 148, text, 7);
    p[155] = ' ';
}

void tarmake_header(struct buf *out, char kind, const char *name, unsigned mode, const char *link,
                    unsigned long long size)
{
    unsigned char block[512] = {0};
    char text[32];
    size_t n = strlen(name);

    memcpy(block, name, n < 100 ? n : 100);
    (void)snprintf(text, sizeof(text), "%07o", mode);
    memcpy(block + 100, text, 8);
    memcpy(block + 108, "0000000", 8);
    memcpy(block + 116, "0000000", 8);
    (void)snprintf(text, sizeof(text), "%011llo", size);
    memcpy(block + 124, text, 12);
    memcpy(block + 136, "14371573642", 12);
    block[156] = (unsigned char)kind;
    if (link != NULL) {
        n = strlen(link);
        memcpy(block + 157, link, n < 100 ? n : 100);
    }
    memcpy(block + 257,
           "ustar\0"
           "00",
           8);
    tarmake_sum(block);
    buf_add(out, block, sizeof(block));
}

void tarmake_entry(struct buf *out, char kind, const char *name, unsigned mode, const char *link,
                   const void *data, size_t n)
{
    tarmake_header(out, kind, name, mode, link, n);
    buf_add(out, data, n);
    pad(out, (512 - n % 512) % 512);
}

void tarmake_pax(struct buf *out, char kind, const char *key, const char *value)
{
    char record[8192];
    size_t body = strlen(key) + strlen(value) + 3, total = body + 1;
    int digits = 1;

    /* The length counts its own digits. */
    for (;;) {
        char text[16];
        int have;

        total = body + (size_t)digits;
        have = snprintf(text, sizeof(text), "%zu", total);
        if (have == digits)
            break;
        digits = have;
    }
    (void)snprintf(record, sizeof(record), "%zu %s=%s\n", total, key, value);
    tarmake_entry(out, kind, "pax", 0644, NULL, record, strlen(record));
}

void tarmake_long(struct buf *out, char kind, const char *text)
{
    tarmake_entry(out, kind, "././@LongLink", 0644, NULL, text, strlen(text) + 1);
}

void tarmake_end(struct buf *out)
{
    pad(out, 1024);
}
