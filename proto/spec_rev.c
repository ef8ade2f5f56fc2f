/* spec_rev.c: revisions as they are written: REV, A..B, merge-base(A, B). Pure text: whether such a
 * revision exists, git says later.
 *
 * What passes here may be handed to git as an argument: it is no option, no path and no refspec. */
#include "proto/spec_int.h"

#include "common/err.h"
#include "common/mem.h"
#include "common/yaml.h"

#include <string.h>

#define MERGE_BASE "merge-base("

struct rev_reader {
    struct spec_ctx *ctx;
    struct spec_pos pos;
    const char *what;
};

static void mistake(const struct rev_reader *r, const char *text, const char *why)
{
    spec_mistake(r->ctx, r->pos, ERR_INVAL, "%s: `%s`: %s", r->what, spec_show(r->ctx->spec, text),
                 why);
}

static const char *piece(const struct rev_reader *r, const char *text, size_t n)
{
    const char *copy = mem_arena_strndup(r->ctx->spec->arena, text, n);
    r->ctx->spec->full = r->ctx->spec->full || copy == NULL;
    return copy != NULL ? copy : "";
}

static bool is_one_rev(const struct rev_reader *r, const char *text)
{
    if (text[0] == '\0') {
        mistake(r, text, "a revision is missing");
        return false;
    }
    if (text[0] == '-') {
        mistake(r, text, "a revision does not begin with -");
        return false;
    }
    if (strpbrk(text, " :?*[\\()") != NULL) {
        mistake(r, text, "a revision holds no space and none of : ? * [ \\ ( )");
        return false;
    }
    return true;
}

/* One end: a revision or merge-base(a, b). */
static bool read_end(const struct rev_reader *r, const char *text, struct spec_rev_end *out)
{
    size_t n = strlen(text);
    if (strncmp(text, MERGE_BASE, strlen(MERGE_BASE)) != 0) {
        out->a = text;
        out->b = NULL;
        return is_one_rev(r, text);
    }
    const char *comma = strchr(text, ',');
    if (text[n - 1] != ')' || comma == NULL) {
        mistake(r, text, "must be merge-base(A, B)");
        return false;
    }
    const char *a = text + strlen(MERGE_BASE);
    const char *b = comma + 1;
    b += strspn(b, " ");
    out->a = piece(r, a, (size_t)(comma - a));
    out->b = piece(r, b, (size_t)(text + n - 1 - b));
    return is_one_rev(r, out->a) && is_one_rev(r, out->b);
}

bool spec_read_rev(struct spec_ctx *ctx, const struct yaml_node *node, const char *what,
                   bool range_allowed, struct spec_rev_text *out)
{
    *out = (struct spec_rev_text){.text = spec_read_clean(ctx, node, what, SPEC_TEXT_MAX)};
    if (out->text == NULL) {
        return false;
    }
    struct rev_reader r = {ctx, spec_pos_of(node), what};
    const char *dots = strstr(out->text, "..");
    if (dots == NULL) {
        return read_end(&r, out->text, &out->to);
    }
    if (dots[2] == '.') {
        mistake(&r, out->text, "a range has two dots, A..B");
        return false;
    }
    if (!range_allowed) {
        mistake(&r, out->text,
                "a range of commits may only stand in `rev` of a variant or an axis");
        return false;
    }
    if (dots == out->text || dots[2] == '\0' || strstr(dots + 2, "..") != NULL) {
        mistake(&r, out->text, "a range has two ends, A..B");
        return false;
    }
    out->range = true;
    return read_end(&r, piece(&r, out->text, (size_t)(dots - out->text)), &out->from) &&
           read_end(&r, piece(&r, dots + 2, strlen(dots + 2)), &out->to);
}
