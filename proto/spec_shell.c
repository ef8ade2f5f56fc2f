/* spec_shell.c: commands of the sweep file, with each %{name} put in so that the shell sees its
 * value as part of one word, whatever the value holds.
 *
 * The rule: outside quotes the value is written within single quotes; within double quotes these
 * are closed, the value is written within single quotes, and they are opened again; within single
 * quotes each ' of the value is written '\''. So the value is never read by the shell that gets the
 * command. (A second shell, as in `sh -c '... %{x}'`, reads it: hand it on as an argument.)
 *
 * To know where a parameter stands, the command is followed through quotes, comments, ${...},
 * $(...), $((...)) and backquotes. Where that is not certain, the parameter is refused, never
 * guessed: directly after a backslash or an unquoted $; within ${...}, $((...)) or backquotes; on
 * the lines after the one with <<; after a `case` within $(...), whose patterns hold lone
 * parentheses; after
 * ${...} or $((...)) with quotes in it, and after $'...'. In a comment nothing is put in. */
#include "proto/spec_int.h"

#include "common/buf.h"
#include "common/err.h"
#include "common/str.h"
#include "common/yaml.h"

#include <string.h>

#define DEPTH_MAX 32

enum place { PLACE_COMMAND, PLACE_DOUBLE, PLACE_SUBST };

struct shell {
    struct spec_ctx *ctx;
    struct spec_pos pos;
    const char *start;
    const char *p;
    struct buf *out;
    enum place stack[DEPTH_MAX]; /* stack[0] is PLACE_COMMAND */
    unsigned parens[DEPTH_MAX];  /* PLACE_SUBST: how many are open within it */
    size_t depth;                /* index of the innermost */
    const char *joined;          /* where a substitution ended: what follows goes on with its word */
    const char *lost;            /* NULL: certain where we are; else why not */
    bool here_document;          /* << was seen: from the next line on we are lost */
    bool fine;
};

static void take(struct shell *s, size_t n)
{
    buf_add(s->out, s->p, n);
    s->p += n;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Whether a word of the shell can begin at p. A `)` or ` that ends a substitution ends no word. */
static bool at_word_start(const struct shell *s)
{
    if (s->p == s->joined) {
        return false;
    }
    return s->p == s->start || is_blank(s->p[-1]) || strchr(";&|()<>`", s->p[-1]) != NULL;
}

static void refuse(struct shell *s, const char *why)
{
    spec_mistake(s->ctx, s->pos, ERR_INVAL,
                 "a parameter cannot be put %s; set a shell variable from it before (`x=%%{name}`) "
                 "and use \"$x\" there",
                 why);
    s->fine = false;
}

/* The parameter at p, put into single quotes (`inside` false) or into text that is within them
 * already. */
static void put_param(struct shell *s, bool inside)
{
    const char *end = strchr(s->p, '}');
    if (end == NULL) {
        spec_mistake(s->ctx, s->pos, ERR_INVAL,
                     "`%%{` without its `}`; a plain `%%{` is written `%%%%{`");
        s->fine = false;
        take(s, 2);
        return;
    }
    const char *value = spec_param_value(s->ctx, s->pos, s->p + 2, (size_t)(end - s->p) - 2);
    if (value == NULL) {
        s->fine = false;
    } else if (inside) {
        for (const char *v = value; *v != '\0'; v++) {
            if (*v == '\'') {
                buf_add_str(s->out, "'\\''");
            } else {
                buf_add_char(s->out, *v);
            }
        }
    } else {
        str_shell_quote(s->out, value);
    }
    s->p = end + 1;
}

/* A % of the command's own text or of a parameter: everything but the middle of single quotes. */
static void on_percent(struct shell *s, bool in_double)
{
    if (strncmp(s->p, "%%{", 3) == 0) {
        buf_add_str(s->out, "%{");
        s->p += 3;
        return;
    }
    if (s->p[1] != '{') {
        take(s, 1);
        return;
    }
    if (s->lost != NULL) {
        refuse(s, s->lost);
        take(s, 2);
        return;
    }
    if (s->p != s->start && (s->p[-1] == '\\' || (s->p[-1] == '$' && !in_double))) {
        refuse(s, s->p[-1] == '\\' ? "directly after a backslash" : "directly after a $");
        take(s, 2);
        return;
    }
    if (in_double) {
        buf_add_char(s->out, '"');
    }
    put_param(s, false);
    if (in_double) {
        buf_add_char(s->out, '"');
    }
}

static void on_single_quotes(struct shell *s)
{
    take(s, 1);
    while (*s->p != '\0' && *s->p != '\'') {
        if (strncmp(s->p, "%%{", 3) == 0) {
            buf_add_str(s->out, "%{");
            s->p += 3;
        } else if (s->p[0] == '%' && s->p[1] == '{') {
            if (s->lost != NULL) {
                refuse(s, s->lost);
                take(s, 2);
            } else {
                put_param(s, true);
            }
        } else {
            take(s, 1);
        }
    }
    if (*s->p == '\'') {
        take(s, 1);
    }
}

static void on_comment(struct shell *s)
{
    take(s, strcspn(s->p, "\n"));
}

static void on_backquotes(struct shell *s)
{
    take(s, 1);
    while (*s->p != '\0' && *s->p != '`') {
        if (s->p[0] == '\\' && s->p[1] != '\0') {
            take(s, 2);
        } else if (strncmp(s->p, "%%{", 3) == 0) {
            buf_add_str(s->out, "%{");
            s->p += 3;
        } else if (s->p[0] == '%' && s->p[1] == '{') {
            refuse(s, "within backquotes");
            take(s, 2);
        } else {
            take(s, 1);
        }
    }
    if (*s->p == '`') {
        take(s, 1);
    }
    s->joined = s->p;
}

/* From "${" to its "}". Quotes and commands within are not followed: after them we are lost. */
static void on_brace(struct shell *s)
{
    unsigned open = 1;
    take(s, 2);
    while (*s->p != '\0' && open > 0) {
        if (s->p[0] == '%' && s->p[1] == '{') {
            refuse(s, "within ${...}");
            take(s, 2);
            continue;
        }
        if (s->p[0] == '$' && s->p[1] == '{') {
            open++;
            take(s, 2);
            continue;
        }
        if (strchr("'\"\\`", *s->p) != NULL || (s->p[0] == '$' && s->p[1] == '(')) {
            s->lost = "behind a ${...} with quotes, backslashes or commands in it";
        }
        if (*s->p == '}') {
            open--;
        }
        take(s, 1);
    }
}

/* From "$((" to its "))". */
static void on_arithmetic(struct shell *s)
{
    unsigned open = 2;
    take(s, 3);
    while (*s->p != '\0' && open > 0) {
        if (s->p[0] == '%' && s->p[1] == '{') {
            refuse(s, "within $((...))");
            take(s, 2);
            continue;
        }
        if (strchr("'\"\\`#", *s->p) != NULL || (s->p[0] == '$' && s->p[1] == '{')) {
            s->lost = "behind a $((...)) with quotes or braces in it";
        }
        if (*s->p == '(') {
            open++;
        } else if (*s->p == ')') {
            open--;
        }
        take(s, 1);
    }
    s->joined = s->p;
}

static void enter(struct shell *s, enum place place)
{
    if (s->depth + 1 == DEPTH_MAX) {
        s->lost = "behind quotes and parentheses that are nested more than 30 deep";
        return;
    }
    s->depth++;
    s->stack[s->depth] = place;
    s->parens[s->depth] = 0;
}

static void leave(struct shell *s)
{
    if (s->depth > 0) {
        s->depth--;
    }
}

static void on_dollar(struct shell *s)
{
    if (s->p[1] == '{') {
        on_brace(s);
    } else if (s->p[1] == '(' && s->p[2] == '(') {
        on_arithmetic(s);
    } else if (s->p[1] == '(') {
        take(s, 2);
        enter(s, PLACE_SUBST);
    } else {
        take(s, 1);
    }
}

/* A backslash and what it protects; the beginning of a parameter is left, which then sees the
 * backslash and is refused. */
static void on_backslash(struct shell *s)
{
    take(s, s->p[1] != '\0' && s->p[1] != '%' ? 2 : 1);
}

static void step_double(struct shell *s)
{
    switch (*s->p) {
    case '"':
        take(s, 1);
        leave(s);
        break;
    case '\\':
        on_backslash(s);
        break;
    case '$':
        on_dollar(s);
        break;
    case '`':
        on_backquotes(s);
        break;
    case '%':
        on_percent(s, true);
        break;
    default:
        take(s, 1);
        break;
    }
}

static void on_paren(struct shell *s)
{
    bool subst = s->stack[s->depth] == PLACE_SUBST;
    char c = *s->p;
    take(s, 1);
    if (!subst) {
        return;
    }
    if (c == '(') {
        s->parens[s->depth]++;
    } else if (s->parens[s->depth] > 0) {
        s->parens[s->depth]--;
    } else {
        leave(s);
        s->joined = s->p;
    }
}

/* A plain character, which may be the beginning of a word that matters. */
static void on_other(struct shell *s)
{
    if (s->p[0] == '<' && s->p[1] == '<') {
        s->here_document = true;
        take(s, 2);
        return;
    }
    if (*s->p == '\n' && s->here_document) {
        s->lost = "on a line after a here-document begins";
    }
    if (s->stack[s->depth] == PLACE_SUBST && at_word_start(s) && strncmp(s->p, "case", 4) == 0 &&
        !is_word_char(s->p[4])) {
        s->lost = "behind a `case` within $(...)";
    }
    take(s, 1);
}

static void step_command(struct shell *s)
{
    switch (*s->p) {
    case '\'':
        on_single_quotes(s);
        break;
    case '"':
        take(s, 1);
        enter(s, PLACE_DOUBLE);
        break;
    case '\\':
        on_backslash(s);
        if (*s->p == '#') {
            s->lost = "behind a backslash, a character and a #";
        }
        break;
    case '$':
        if (s->p[1] == '\'') {
            s->lost = "behind $'...', which not every shell understands";
        }
        on_dollar(s);
        break;
    case '`':
        on_backquotes(s);
        break;
    case '%':
        on_percent(s, false);
        break;
    case '(':
    case ')':
        on_paren(s);
        break;
    case '#':
        if (at_word_start(s)) {
            on_comment(s);
        } else {
            take(s, 1);
        }
        break;
    default:
        on_other(s);
        break;
    }
}

static void walk(struct shell *s)
{
    while (*s->p != '\0') {
        if (s->stack[s->depth] == PLACE_DOUBLE) {
            step_double(s);
        } else {
            step_command(s);
        }
    }
}

const char *spec_read_command(struct spec_ctx *ctx, const struct yaml_node *node, const char *what)
{
    struct spec_pos pos = spec_pos_of(node);
    if (node->kind != YAML_SCALAR || node->text[0] == '\0') {
        spec_mistake(ctx, pos, ERR_INVAL, "%s: must be a command for /bin/sh", what);
        return NULL;
    }
    size_t n = strlen(node->text);
    if (n > SPEC_MAX_COMMAND) {
        spec_mistake(ctx, pos, ERR_LIMIT, "%s: the command is longer than %d bytes", what,
                     SPEC_MAX_COMMAND);
        return NULL;
    }
    if (strspn(node->text, " \t\r\n") == n) {
        spec_mistake(ctx, pos, ERR_INVAL, "%s: the command is blank", what);
        return NULL;
    }
    struct buf out;
    buf_init(&out, SPEC_MAX_COMMAND);
    struct shell s = {
        .ctx = ctx, .pos = pos, .start = node->text, .p = node->text, .out = &out, .fine = true};
    walk(&s);
    const char *copy = NULL;
    if (s.fine && out.err < 0) {
        spec_mistake(ctx, pos, ERR_LIMIT,
                     "%s: the command with its parameters is longer than %d bytes", what,
                     SPEC_MAX_COMMAND);
    } else if (s.fine) {
        copy = spec_copy(ctx->spec, buf_str(&out));
    }
    buf_fini(&out);
    return copy;
}
