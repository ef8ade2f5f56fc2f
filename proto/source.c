/* source.c: the life of one reading of a source: its children, the hash of what they made, the
 * result. What is read how stands in source_files.c and source_git.c. */
#include "proto/source.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/rand.h"
#include "common/str.h"
#include "proto/digest.h"
#include "proto/source_priv.h"

#include <assert.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_NS (INT64_C(30) * 60 * 1000000000)
#define HASH_PIECE ((size_t)1024 * 1024)
#define HASH_TURN 8  /* pieces a turn */
#define SAID_MAX 300 /* bytes of a child's last line in a sentence */

/* --- names and texts --- */

bool source_is_url(const char *text)
{
    if (strstr(text, "://") != NULL) {
        return !str_starts(text, "file://");
    }
    /* HOST:PATH, unless a slash comes first: ./a:b is a path. */
    const char *colon = strchr(text, ':');
    const char *slash = strchr(text, '/');
    return colon != NULL && colon != text && (slash == NULL || colon < slash);
}

/* The password in a URL with the colon before it, and its length; 0 when there is none. What stands
 * before the last @ of the host's part belongs to the user. */
static size_t find_password(const char *path, const char **password)
{
    const char *host = strstr(path, "://");
    if (host == NULL) {
        return 0;
    }
    host += 3;
    const char *at = memrchr(host, '@', strcspn(host, "/"));
    const char *colon = at != NULL ? memchr(host, ':', (size_t)(at - host)) : NULL;
    *password = colon;
    return colon != NULL ? (size_t)(at - colon) : 0;
}

/* Appends a text without the password of the source's URL. */
static void add_without_password(struct buf *out, const char *text, const char *path)
{
    const char *password = NULL;
    size_t n = find_password(path, &password);
    while (*text != '\0') {
        if (n > 0 && strncmp(text, password, n) == 0 && text[n] == '@') {
            text += n;
        }
        buf_add_char(out, *text++);
    }
}

/* The source's name for people. */
static const char *shown_name(struct mem_arena *arena, const char *path)
{
    struct buf name = BUF_INIT;
    add_without_password(&name, path, path);
    const char *copy = mem_arena_strdup(arena, buf_str(&name));
    buf_fini(&name);
    return copy;
}

bool source_child_ok(const struct proc_output *o)
{
    return !o->end.signaled && o->end.exit_status == 0;
}

bool source_child_too_long(const struct source *s, const struct proc_output *o)
{
    return s->spec.size_max != 0 &&
           ((o->end.signaled && o->end.signal == SIGXFSZ) || source_says(o->err, "File too large"));
}

bool source_says(const struct buf *said, const char *word)
{
    return strstr(buf_str(said), word) != NULL;
}

bool source_line(const struct buf *out, size_t *at, char *dst, size_t room)
{
    const char *text = buf_str(out);
    if (*at >= out->len) {
        return false;
    }
    const char *end = strchr(text + *at, '\n');
    size_t n = end != NULL ? (size_t)(end - (text + *at)) : strlen(text + *at);
    if (n >= room) {
        return false;
    }
    memcpy(dst, text + *at, n);
    dst[n] = '\0';
    *at += n + 1;
    return true;
}

void source_warn(struct source *s, const char *text)
{
    s->warning = s->warning == NULL ? mem_arena_strdup(s->arena, text)
                                    : mem_arena_printf(s->arena, "%s; %s", s->warning, text);
}

/* What a child said of its failure, without control characters: its last line, or the last that
 * git calls fatal. */
static void last_line(const struct buf *said, struct buf *out)
{
    const char *line = "";
    size_t n = 0;
    bool fatal = false;
    for (const char *p = buf_str(said); *p != '\0';) {
        size_t len = strcspn(p, "\r\n");
        bool is_fatal = str_starts(p, "fatal: ");
        if (len > 0 && (is_fatal || !fatal)) {
            line = is_fatal ? p + 7 : p;
            n = is_fatal ? len - 7 : len;
            fatal = is_fatal;
        }
        p += len;
        p += strspn(p, "\r\n");
    }
    str_escape(out, line, n < SAID_MAX ? n : SAID_MAX);
}

/* --- the end --- */

static int remove_left(const char *path)
{
    return file_exists(path) ? file_remove(path) : 0;
}

static void free_source(struct source *s)
{
    proc_collect_cancel(&s->child);
    loop_timer_free(&s->timer);
    file_close(&s->out);
    digest_free(&s->digest);
    if (s->scratch[0] != '\0') {
        /* What cannot be removed is found by the next who uses the work folder. */
        int rc = file_remove_tree(s->scratch);
        (void)rc;
    }
    for (size_t i = 0; i < s->count; i++) {
        if (s->revs[i].path != NULL && s->spec.kind != SOURCE_FILE) {
            int rc = remove_left(s->revs[i].path);
            (void)rc;
        }
    }
    s->magic = 0;
    free(s->git.dates);
    free(s->revs);
    mem_arena_free(&s->arena);
    free(s);
}

void source_finish(struct source *s)
{
    struct source_result result = {
        .name = s->shown, .text = "", .warning = s->warning, .revs = s->revs, .count = s->count};
    s->f(&result, s->arg);
    free_source(s);
}

void source_fail(struct source *s, int code, const char *fmt, ...)
{
    struct buf text = BUF_INIT;
    va_list ap;
    buf_printf(&text, "%s: ", s->shown);
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    struct source_result result = {.name = s->shown,
                                   .code = code < 0 ? code : -code,
                                   .text = buf_str(&text),
                                   .warning = s->warning};
    s->f(&result, s->arg);
    buf_fini(&text);
    free_source(s);
}

void source_fail_child(struct source *s, const struct proc_output *o, const char *what)
{
    struct buf line = BUF_INIT;
    int code = source_says(o->err, "No space left") || source_says(o->err, "quota exceeded")
                   ? ERR_FULL
                   : ERR_CHILD;
    last_line(o->err, &line);
    if (o->end.signaled) {
        buf_printf(&line, "%s%s was ended by signal %d", line.len > 0 ? "; " : "", s->program,
                   o->end.signal);
    } else if (line.len == 0) {
        buf_printf(&line, "%s ended with status %d", s->program, o->end.exit_status);
    }
    struct buf said = BUF_INIT;
    add_without_password(&said, buf_str(&line), s->spec.path);
    source_fail(s, code, "%s: %s", what, buf_str(&said));
    buf_fini(&said);
    buf_fini(&line);
}

/* --- children --- */

/* Variables of this process that git and ssh need to reach what the user can reach. */
static const char *const PASSED[] = {"PATH",
                                     "HOME",
                                     "USER",
                                     "LOGNAME",
                                     "XDG_CONFIG_HOME",
                                     "SSH_AUTH_SOCK",
                                     "GIT_SSH_COMMAND",
                                     "GIT_SSL_CAINFO",
                                     "http_proxy",
                                     "https_proxy",
                                     "no_proxy",
                                     "all_proxy",
                                     "HTTPS_PROXY",
                                     "NO_PROXY",
                                     "ALL_PROXY",
                                     "TMPDIR"};

/* Fixed ones: no question is ever asked, no replaced object is read, no program is started for a
 * scheme that we do not know. */
static const char *const FIXED[] = {"LC_ALL=C",
                                    "TZ=UTC",
                                    "GIT_TERMINAL_PROMPT=0",
                                    "GIT_OPTIONAL_LOCKS=0",
                                    "GIT_NO_REPLACE_OBJECTS=1",
                                    "GIT_ATTR_NOSYSTEM=1",
                                    "GIT_ALLOW_PROTOCOL=file:git:http:https:ssh"};

#define ENV_MAX 64

static void make_env(struct source *s, const char *const *more, struct mem_arena *arena,
                     const char *env[ENV_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(PASSED); i++) {
        const char *value = getenv(PASSED[i]);
        if (value != NULL) {
            env[n++] = mem_arena_printf(arena, "%s=%s", PASSED[i], value);
        }
    }
    if (getenv("PATH") == NULL) {
        env[n++] = "PATH=/usr/local/bin:/usr/bin:/bin";
    }
    if (getenv("GIT_SSH_COMMAND") == NULL) {
        env[n++] = "GIT_SSH_COMMAND=ssh -oBatchMode=yes";
    }
    for (size_t i = 0; i < ARRAY_LEN(FIXED); i++) {
        env[n++] = FIXED[i];
    }
    if (s->spec.any_owner) {
        env[n++] = "GIT_CONFIG_COUNT=1";
        env[n++] = "GIT_CONFIG_KEY_0=safe.directory";
        env[n++] = "GIT_CONFIG_VALUE_0=*";
    }
    for (size_t i = 0; more != NULL && more[i] != NULL; i++) {
        assert(n < ENV_MAX - 1);
        env[n++] = more[i];
    }
    env[n] = NULL;
}

static void on_child(const struct proc_output *o, void *arg)
{
    struct source *s;
    char text[32];
    CAST_OBJ(s, arg, SOURCE_MAGIC);
    loop_doing(s->loop, "reading a source");
    s->child = NULL;
    file_close(&s->out);
    if (o->end.exec_failed) {
        source_fail(s, ERR_CHILD, "%s cannot be started: is it installed?", s->program);
    } else if (o->timed_out) {
        source_fail(s, ERR_TIMEOUT, "%s took longer than %s", s->program,
                    num_duration_text(text, sizeof(text), s->spec.timeout_ns));
    } else if (o->truncated) {
        source_fail(s, ERR_LIMIT, "%s said more than could be", s->program);
    } else {
        s->next(s, o);
    }
}

void source_run(struct source *s, const char *const *argv, const char *const *env, size_t out_max,
                source_step_f *next)
{
    struct mem_arena *arena = mem_arena_new(0);
    struct diag *diag = diag_new(1);
    const char *all[ENV_MAX];
    struct proc_spec spec = PROC_SPEC_INIT;
    int rc = 0;
    s->program = argv[0];
    s->next = next;
    make_env(s, env, arena, all);
    spec.argv = argv;
    spec.env = all;
    if (out_max == 0) {
        rc = file_open(s->archive, FILE_WRITE | FILE_CREATE | FILE_TRUNC, 0600, &s->out);
        if (rc == 0) {
            spec.out_fd = file_fd(s->out);
            spec.file_size_limit = s->spec.size_max;
        } else {
            rc = diag_error(diag, rc, "%s cannot be written: %s", s->archive, err_text(rc));
        }
    }
    if (rc == 0) {
        rc =
            proc_collect(s->loop, &spec, out_max, s->spec.timeout_ns, on_child, s, &s->child, diag);
    }
    mem_arena_free(&arena);
    if (rc < 0) {
        source_fail(s, rc == -ERR_NOTFOUND ? ERR_CHILD : rc, "%s", diag_first(diag));
    }
    diag_free(&diag);
}

/* --- hashing --- */

static void on_hash(void *arg)
{
    struct source *s;
    CAST_OBJ(s, arg, SOURCE_MAGIC);
    struct source_rev *rev = &s->revs[s->at];
    uint8_t *piece = mem_xzalloc(HASH_PIECE);
    size_t got = HASH_PIECE;
    int rc = 0;
    loop_doing(s->loop, "hashing an archive");
    for (int i = 0; i < HASH_TURN && rc == 0 && got == HASH_PIECE; i++) {
        rc = file_read_at(s->out, s->hashed, piece, HASH_PIECE, &got);
        if (rc == 0) {
            digest_add(s->digest, piece, got);
            s->hashed += got;
        }
    }
    free(piece);
    if (rc == 0 && s->spec.kind != SOURCE_FILE) {
        rc = file_sync(s->out); /* a bit each turn, so that no turn waits for all of it */
    }
    if (rc < 0) {
        source_fail(s, rc, "the archive cannot be read: %s", err_text(rc));
    } else if (s->spec.size_max != 0 && s->hashed > s->spec.size_max) {
        char text[32];
        source_fail(s, ERR_LIMIT, "the archive is longer than %s",
                    num_size_text(text, sizeof(text), s->spec.size_max));
    } else if (got == HASH_PIECE) {
        loop_timer_set(s->timer, 0);
    } else {
        file_close(&s->out);
        digest_end(s->digest, rev->hash);
        rev->size = s->hashed;
        s->then(s);
    }
}

void source_hash(struct source *s, const char *path, source_hashed_f *then)
{
    int rc = file_open(path, FILE_READ, 0, &s->out);
    if (rc < 0) {
        source_fail(s, rc, "it cannot be read: %s", err_text(rc));
        return;
    }
    if (s->digest == NULL) {
        s->digest = digest_new(DIGEST_SHA256);
    }
    digest_restart(s->digest, DIGEST_SHA256);
    s->hashed = 0;
    s->then = then;
    loop_timer_free(&s->timer);
    s->timer = loop_timer_new(s->loop, on_hash, s);
    loop_timer_set(s->timer, 0);
}

bool source_keep(struct source *s)
{
    char name[80];
    char path[FILE_PATH_MAX];
    struct source_rev *rev = &s->revs[s->at];
    rev->has_archive = true;
    for (size_t i = 0; i < s->at; i++) {
        if (s->revs[i].has_archive && memcmp(s->revs[i].hash, rev->hash, SOURCE_HASH) == 0) {
            return true; /* it stands already */
        }
    }
    str_hex(name, rev->hash, SOURCE_HASH);
    snprintf(name + 2 * SOURCE_HASH, sizeof(name) - 2 * SOURCE_HASH, ".tar");
    int rc = file_path(path, sizeof(path), s->spec.work, name);
    if (rc == 0) {
        rc = file_rename(s->archive, path);
    }
    if (rc < 0) {
        source_fail(s, rc, "the archive cannot be kept in %s: %s", s->spec.work, err_text(rc));
        return false;
    }
    rev->path = mem_arena_strdup(s->arena, path);
    return true;
}

/* --- the beginning --- */

static void on_begin(void *arg)
{
    struct source *s;
    CAST_OBJ(s, arg, SOURCE_MAGIC);
    loop_doing(s->loop, "reading a source");
    if (s->spec.kind == SOURCE_GIT) {
        source_git_begin(s);
    } else {
        source_files_begin(s);
    }
}

static struct source_end copy_end(struct mem_arena *arena, struct source_end end)
{
    return (struct source_end){end.a != NULL ? mem_arena_strdup(arena, end.a) : NULL,
                               end.b != NULL ? mem_arena_strdup(arena, end.b) : NULL};
}

/* A folder of its own within the work folder. */
static int make_scratch(struct source *s, struct diag *diag)
{
    char name[40];
    uint8_t random[8];
    char path[FILE_PATH_MAX];
    memcpy(name, "source-", 7);
    rand_bytes(random, sizeof(random));
    str_hex(name + 7, random, sizeof(random));
    int rc = file_path(path, sizeof(path), s->spec.work, name);
    if (rc == 0) {
        rc = file_mkdirs(path, 0700);
    }
    if (rc == 0) {
        str_copy(s->scratch, sizeof(s->scratch), path);
        rc = file_path(s->archive, sizeof(s->archive), path, "archive.tar");
    }
    return rc < 0 ? diag_error(diag, rc, "the folder %s cannot be used: %s", s->spec.work,
                               err_text(rc))
                  : 0;
}

int source_start(struct loop *loop, const struct source_spec *spec, source_f *f, void *arg,
                 struct source **out, struct diag *diag)
{
    *out = NULL;
    struct source *s = mem_xzalloc(sizeof(*s));
    s->magic = SOURCE_MAGIC;
    s->loop = loop;
    s->f = f;
    s->arg = arg;
    s->arena = mem_arena_new(0);
    s->spec = *spec;
    s->spec.path = mem_arena_strdup(s->arena, spec->path);
    s->spec.work = mem_arena_strdup(s->arena, spec->work);
    s->spec.mirrors = spec->mirrors != NULL ? mem_arena_strdup(s->arena, spec->mirrors) : NULL;
    s->spec.expr.from = copy_end(s->arena, spec->expr.from);
    s->spec.expr.to = copy_end(s->arena, spec->expr.to);
    s->spec.rev_max =
        spec->rev_max != 0 && spec->rev_max < SOURCE_REV_MAX ? spec->rev_max : SOURCE_REV_MAX;
    s->spec.timeout_ns = spec->timeout_ns != 0 ? spec->timeout_ns : TIMEOUT_NS;
    s->shown = shown_name(s->arena, spec->path);
    int rc = make_scratch(s, diag);
    if (rc < 0) {
        free_source(s);
        return rc;
    }
    s->timer = loop_timer_new(loop, on_begin, s);
    loop_timer_set(s->timer, 0);
    *out = s;
    return 0;
}

void source_cancel(struct source **source)
{
    if (*source == NULL) {
        return;
    }
    assert((*source)->magic == SOURCE_MAGIC);
    free_source(*source);
    *source = NULL;
}
