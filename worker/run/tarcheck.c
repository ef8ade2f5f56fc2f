/* tarcheck.c: reads a tar archive as it comes and says whether it may be unpacked.
 *
 *     HEADER   a block of 512 bytes is being collected
 *     META     the data of a header that speaks of the next entry (pax, GNU's long names) is
 *              being collected
 *     SKIP     the data of a file is passed over
 *     PAD      the rest of its last block
 *     TAIL     behind the end: zeros alone */
#include "worker/run/tarcheck.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "worker/run/tarlinks.h"
#include "worker/run/tarname.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 512
#define META_MAX (1024 * 1024)
#define SET_ID 06000u

enum state { HEADER, META, SKIP, PAD, TAIL };

/* What the headers before an entry say of it. */
struct saying {
    char *path; /* pax */
    size_t path_len;
    char *link;
    size_t link_len;
    char *gnu_path;
    char *gnu_link;
    bool has_size;
    uint64_t size;
};

struct tarcheck {
    struct tarcheck_limits limits;
    struct tarlinks *links;
    enum state state;
    int code; /* of the first refusal; kept */
    char *text;
    uint8_t block[BLOCK];
    size_t have;   /* bytes in block */
    uint64_t left; /* of META or SKIP */
    size_t pad;
    char meta_kind;
    struct buf meta;
    struct saying next;
    bool zero_block; /* the block before was zeros */
    uint64_t entries;
    uint64_t bytes;
};

static void forget(struct saying *s)
{
    free(s->path);
    free(s->link);
    free(s->gnu_path);
    free(s->gnu_link);
    memset(s, 0, sizeof(*s));
}

struct tarcheck *tarcheck_new(const struct tarcheck_limits *limits)
{
    struct tarcheck *t = mem_xzalloc(sizeof(*t));

    t->limits = *limits;
    t->links = tarlinks_new();
    buf_init(&t->meta, META_MAX);
    return t;
}

void tarcheck_free(struct tarcheck **check)
{
    struct tarcheck *t = *check;

    if (t == NULL)
        return;
    forget(&t->next);
    buf_fini(&t->meta);
    tarlinks_free(&t->links);
    free(t->text);
    free(t);
    *check = NULL;
}

/* Refuses for good; `name` of n bytes is the entry's, or NULL. */
static int refuse(struct tarcheck *t, int code, const char *name, size_t n, const char *why)
{
    struct buf text = BUF_INIT;

    if (name != NULL) {
        buf_add_str(&text, "`");
        str_escape(&text, name, n < 200 ? n : 200);
        buf_add_str(&text, n < 200 ? "` " : "…` ");
    }
    buf_add_str(&text, why);
    t->code = -code;
    t->text = mem_xstrdup(buf_str(&text));
    buf_fini(&text);
    return t->code;
}

static int damaged(struct tarcheck *t, const char *why)
{
    return refuse(t, ERR_CORRUPT, NULL, 0, why);
}

/* --- fields of a header --- */

/* A number: octal digits among blanks, or GNU's binary form. */
static bool number(const uint8_t *p, size_t n, uint64_t *out)
{
    uint64_t v = 0;
    size_t i = 0;

    if ((p[0] & 0x80) != 0) {
        if (p[0] != 0x80)
            return false; /* negative, or beyond 2^63 at any length */
        for (i = 1; i < n; i++) {
            if (v >> 55 != 0)
                return false;
            v = v << 8 | p[i];
        }
        *out = v;
        return true;
    }
    while (i < n && p[i] == ' ')
        i++;
    for (; i < n && p[i] >= '0' && p[i] <= '7'; i++) {
        if (v >> 60 != 0)
            return false;
        v = v << 3 | (uint64_t)(p[i] - '0');
    }
    for (; i < n; i++)
        if (p[i] != ' ' && p[i] != '\0')
            return false;
    *out = v;
    return true;
}

static bool checksum_fits(const uint8_t *b)
{
    uint64_t want;
    uint64_t sum = 0;

    for (size_t i = 0; i < BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : b[i];
    return number(b + 148, 8, &want) && want == sum;
}

static size_t text_len(const uint8_t *p, size_t n)
{
    const uint8_t *end = memchr(p, '\0', n);

    return end == NULL ? n : (size_t)(end - p);
}

/* The name in the header itself: ustar's prefix, a slash, the name. */
static size_t header_name(const uint8_t *b, char dst[512])
{
    size_t n = 0, name = text_len(b, 100),
           prefix = memcmp(b + 257, "ustar\0", 6) == 0 ? text_len(b + 345, 155) : 0;

    if (prefix > 0) {
        memcpy(dst, b + 345, prefix);
        n = prefix;
        dst[n++] = '/';
    }
    memcpy(dst + n, b, name);
    return n + name;
}

/* --- headers that speak of the next entry --- */

static bool key_is(const char *key, size_t n, const char *name)
{
    return strlen(name) == n && memcmp(key, name, n) == 0;
}

/* One record "KEY=VALUE" of a pax header. */
static int pax_record(struct tarcheck *t, const char *key, size_t key_len, const char *value,
                      size_t value_len)
{
    struct saying *s = &t->next;
    bool path = key_is(key, key_len, "path"), link = key_is(key, key_len, "linkpath"),
         size = key_is(key, key_len, "size");

    if (key_len >= 11 && memcmp(key, "GNU.sparse.", 11) == 0)
        return refuse(t, ERR_DENIED, NULL, 0, "it holds a sparse file");
    if (!path && !link && !size)
        return 0;
    if (t->meta_kind == 'g')
        return refuse(t, ERR_DENIED, NULL, 0, "a header for all entries names one of them");
    if (size) {
        if (num_parse_digits(value, value_len, &s->size) != 0 || s->has_size)
            return damaged(t, "the size in a pax header is no number, or stands twice");
        s->has_size = true;
        return 0;
    }
    if ((path ? s->path : s->link) != NULL)
        return refuse(t, ERR_DENIED, NULL, 0, "an entry is named twice");
    if (memchr(value, '\0', value_len) != NULL || value_len == 0)
        return refuse(t, ERR_DENIED, NULL, 0,
                      "a name in a pax header is empty or holds a NUL byte");
    if (path) {
        s->path = mem_xstrndup(value, value_len);
        s->path_len = value_len;
    } else {
        s->link = mem_xstrndup(value, value_len);
        s->link_len = value_len;
    }
    return 0;
}

/* "LENGTH KEY=VALUE\n" …: the length counts itself. */
static int pax_header(struct tarcheck *t)
{
    const char *p = buf_str(&t->meta), *end = p + t->meta.len;

    while (p < end) {
        size_t digits = 0, head;
        uint64_t len;
        const char *eq;
        int r;

        while (p + digits < end && p[digits] >= '0' && p[digits] <= '9')
            digits++;
        if (digits == 0 || digits > 8 || num_parse_digits(p, digits, &len) != 0 ||
            len > (uint64_t)(end - p) || len < digits + 3 || p[digits] != ' ' || p[len - 1] != '\n')
            return damaged(t, "a pax header is damaged");
        head = digits + 1;
        eq = memchr(p + head, '=', (size_t)len - head - 1);
        if (eq == NULL)
            return damaged(t, "a pax header is damaged");
        r = pax_record(t, p + head, (size_t)(eq - (p + head)), eq + 1,
                       (size_t)((p + len - 1) - (eq + 1)));
        if (r != 0)
            return r;
        p += len;
    }
    return 0;
}

static int meta_whole(struct tarcheck *t)
{
    char **name;

    if (t->meta_kind == 'x' || t->meta_kind == 'g')
        return pax_header(t);
    name = t->meta_kind == 'L' ? &t->next.gnu_path : &t->next.gnu_link;
    if (*name != NULL)
        return refuse(t, ERR_DENIED, NULL, 0, "an entry is named twice");
    *name = mem_xstrdup(buf_str(&t->meta));
    return 0;
}

/* --- entries --- */

static int bad_kind(struct tarcheck *t, char kind, const char *name, size_t n)
{
    switch (kind) {
    case '3':
    case '4':
        return refuse(t, ERR_DENIED, name, n, "is a device");
    case '6':
        return refuse(t, ERR_DENIED, name, n, "is a fifo");
    case 'S':
        return refuse(t, ERR_DENIED, name, n, "is a sparse file");
    default:
        return refuse(t, ERR_DENIED, name, n, "is of a kind that is not understood");
    }
}

static int symbolic_link(struct tarcheck *t, const char *path, const char *target, size_t n,
                         const char *name, size_t name_len)
{
    bool later;
    const char *why = path[0] == '\0' ? "is a link in place of the folder itself"
                                      : tarname_link(path, target, n, &later);
    char *copy;
    int r;

    if (why != NULL)
        return refuse(t, ERR_DENIED, name, name_len, why);
    copy = mem_xstrndup(target, n);
    r = tarlinks_add(t->links, path, later ? copy : NULL);
    free(copy);
    return r == 0 ? 0 : refuse(t, ERR_LIMIT, NULL, 0, "it holds too many links");
}

static int hard_link(struct tarcheck *t, const char *target, size_t n, const char *name,
                     size_t name_len)
{
    char *plain = mem_xzalloc(TARNAME_MAX);
    bool bad = tarname_clean(target, n, plain) != NULL || plain[0] == '\0' ||
               tarlinks_has(t->links, plain) || tarlinks_above(t->links, plain);

    free(plain);
    return bad ? refuse(t, ERR_DENIED, name, name_len,
                        "is a hard link that leaves the archive or leads to a link")
               : 0;
}

/* Checks name, kind and size of the entry whose header is in t->block, and begins to pass over
 * its data. */
static int entry(struct tarcheck *t, char kind, uint64_t size)
{
    const struct saying *s = &t->next;
    char own[512], plain[TARNAME_MAX];
    const char *name, *target, *why;
    size_t n, target_len;
    uint64_t mode;

    if ((s->path != NULL && s->gnu_path != NULL) || (s->link != NULL && s->gnu_link != NULL))
        return refuse(t, ERR_DENIED, NULL, 0, "an entry is named twice");
    name = s->path != NULL ? s->path : s->gnu_path != NULL ? s->gnu_path : own;
    n = s->path != NULL       ? s->path_len
        : s->gnu_path != NULL ? strlen(s->gnu_path)
                              : header_name(t->block, own);
    target = s->link != NULL       ? s->link
             : s->gnu_link != NULL ? s->gnu_link
                                   : (const char *)t->block + 157;
    target_len = s->link != NULL       ? s->link_len
                 : s->gnu_link != NULL ? strlen(s->gnu_link)
                                       : text_len(t->block + 157, 100);
    why = tarname_clean(name, n, plain);
    if (why != NULL)
        return refuse(t, ERR_DENIED, name, n, why);
    if (tarlinks_above(t->links, plain))
        return refuse(t, ERR_DENIED, name, n, "lies below a link");
    if (s->has_size) {
        if (s->size != size && (size != 0 || s->size <= UINT64_C(077777777777)))
            return refuse(t, ERR_DENIED, name, n, "has two sizes");
        size = s->size;
    }
    if (kind == '\0' || kind == '7')
        kind = n > 0 && name[n - 1] == '/' ? '5' : '0';
    if (strchr("0125", kind) == NULL)
        return bad_kind(t, kind, name, n);
    if (kind != '0' && size != 0)
        return refuse(t, ERR_DENIED, name, n, "has data, which entries of its kind have not");
    if (kind != '5' && plain[0] == '\0')
        return refuse(t, ERR_DENIED, name, n, "stands in place of the folder itself");
    if (!number(t->block + 100, 8, &mode))
        return damaged(t, "the mode of an entry is no number");
    if ((kind == '0' || kind == '1') && (mode & SET_ID) != 0)
        return refuse(t, ERR_DENIED, name, n, "has a set-id bit");
    t->entries++;
    if (t->limits.entries > 0 && t->entries > t->limits.entries)
        return refuse(t, ERR_LIMIT, NULL, 0, "it has too many entries");
    if (size > UINT64_MAX / 2 || (t->limits.bytes > 0 && size > t->limits.bytes - t->bytes))
        return refuse(t, ERR_LIMIT, name, n, "makes the archive too large");
    t->bytes += size;
    t->left = size;
    t->pad = (size_t)((BLOCK - size % BLOCK) % BLOCK);
    t->state = SKIP;
    if (kind == '2')
        return symbolic_link(t, plain, target, target_len, name, n);
    return kind == '1' ? hard_link(t, target, target_len, name, n) : 0;
}

static bool all_zero(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != 0)
            return false;
    return true;
}

static int header(struct tarcheck *t)
{
    const uint8_t *b = t->block;
    uint64_t size;
    char kind = (char)b[156];
    int r;

    if (all_zero(b, BLOCK)) {
        if (t->zero_block)
            t->state = TAIL;
        t->zero_block = true;
        return 0;
    }
    if (t->zero_block)
        return refuse(t, ERR_DENIED, NULL, 0, "it has entries behind a mark of its end");
    if (!checksum_fits(b))
        return damaged(t, t->entries == 0 ? "it is no tar archive, or damaged"
                                          : "the checksum of a header is wrong");
    if (!number(b + 124, 12, &size))
        return damaged(t, "the size of an entry is no number");
    if (kind == 'X')
        kind = 'x';
    if (strchr("xgLK", kind) != NULL && kind != '\0') {
        if (size > META_MAX)
            return refuse(t, ERR_LIMIT, NULL, 0, "a header of it is too large");
        t->meta_kind = kind;
        buf_reset(&t->meta);
        t->left = size;
        t->pad = (size_t)((BLOCK - size % BLOCK) % BLOCK);
        t->state = META;
        return 0;
    }
    r = entry(t, kind, size);
    forget(&t->next);
    return r;
}

int tarcheck_feed(struct tarcheck *check, const void *bytes, size_t n, struct diag *diag)
{
    struct tarcheck *t = check;
    const uint8_t *p = bytes, *end = p + n;
    size_t take;

    while (t->code == 0) {
        /* What needs no byte to go on. */
        if ((t->state == META || t->state == SKIP) && t->left == 0) {
            if (t->state == META && meta_whole(t) != 0)
                break;
            t->state = PAD;
        }
        if (t->state == PAD && t->pad == 0) {
            t->state = HEADER;
            t->have = 0;
        }
        if (p == end)
            break;
        take = (size_t)(end - p);
        switch (t->state) {
        case HEADER:
            if (take > BLOCK - t->have)
                take = BLOCK - t->have;
            memcpy(t->block + t->have, p, take);
            t->have += take;
            if (t->have == BLOCK) {
                t->have = 0;
                if (header(t) != 0)
                    take = 0;
            }
            break;
        case META:
            if (take > t->left)
                take = (size_t)t->left;
            buf_add(&t->meta, p, take);
            t->left -= take;
            break;
        case SKIP:
            if (take > t->left)
                take = (size_t)t->left;
            t->left -= take;
            break;
        case PAD:
            if (take > t->pad)
                take = t->pad;
            t->pad -= take;
            break;
        case TAIL:
            if (!all_zero(p, take))
                (void)refuse(t, ERR_DENIED, NULL, 0, "it has data behind its end");
            break;
        }
        p += take;
    }
    return t->code == 0 ? 0 : diag_error(diag, t->code, "%s", t->text);
}

int tarcheck_end(struct tarcheck *check, struct diag *diag)
{
    struct tarcheck *t = check;
    const char *path, *why;

    if (t->code == 0 && t->state != TAIL)
        (void)damaged(t, "it ends too early");
    if (t->code == 0 && (t->next.path != NULL || t->next.link != NULL || t->next.gnu_path != NULL ||
                         t->next.gnu_link != NULL))
        (void)damaged(t, "it ends behind a header that speaks of an entry");
    if (t->code == 0 && (why = tarlinks_judge(t->links, &path)) != NULL)
        (void)refuse(t, ERR_DENIED, path, strlen(path), why);
    return t->code == 0 ? 0 : diag_error(diag, t->code, "%s", t->text);
}

uint64_t tarcheck_entries(const struct tarcheck *check)
{
    return check->entries;
}

uint64_t tarcheck_bytes(const struct tarcheck *check)
{
    return check->bytes;
}
