/* render.c: what the renderers of text share: titles, padding, numbers, the lines below a table. Owns nothing. */
#include "coordinator/verdict/render.h"

#include "common/buf.h"
#include "common/str.h"
#include "coordinator/verdict/report.h"

#include <stdio.h>
#include <string.h>

void render_title(const struct report *report, struct buf *out)
{
    const struct model_sweep *s = &report->data->sweep;
    const char *word = model_sweep_word((int)s->state);

    buf_printf(out, "%s/%lld", s->name, (long long)s->number);
    if (report->provisional || s->state != SWEEP_DONE || report->done < report->planned)
        buf_printf(out, " (%s%s, %zu of %zu runs counted)", report->provisional ? "provisional: " : "", word == NULL ? "unknown" : word,
                   report->done, report->planned);
}

const char *render_number(char *dst, size_t room, int has, double value, int decimals)
{
    if (has)
        snprintf(dst, room, "%.*f", decimals, value);
    else
        snprintf(dst, room, "-");
    return dst;
}

const char *render_marks(char *dst, size_t room, const struct report_cell *cell)
{
    size_t at = 0;

    dst[0] = '\0';
    for (size_t i = 0; i < cell->mark_count && at + 16 < room; i++)
        at += (size_t)snprintf(dst + at, room - at, "%s%zu", i == 0 ? " [" : ",", cell->marks[i].note);
    if (at > 0 && at + 2 < room)
        snprintf(dst + at, room - at, "]");
    return dst;
}

void render_pad(struct buf *out, const char *s, size_t width, int right)
{
    size_t columns = str_columns(s);

    for (size_t i = columns; right && i < width; i++)
        buf_add_char(out, ' ');
    buf_add_str(out, s);
    for (size_t i = columns; !right && i < width; i++)
        buf_add_char(out, ' ');
}

int render_many_workloads(const struct report *report)
{
    return report->data->workload_count > 1;
}

/* Begins a new line without leaving blanks at the end of the old one. */
static void break_line(struct buf *out, const char *hang)
{
    while (out->len > 0 && out->data[out->len - 1] == ' ')
        out->data[--out->len] = '\0';
    buf_add_char(out, '\n');
    buf_add_str(out, hang);
}

/* Appends text broken at spaces so that no line is longer than width; later lines begin with `hang`. A word that is longer than a line is broken. */
static void wrap(struct buf *out, const char *text, size_t column, size_t width, const char *hang)
{
    const char *p = text;

    while (*p != '\0') {
        size_t word = strcspn(p, " ");
        size_t gap = strspn(p + word, " ");

        if (width > 0 && column > strlen(hang) && column + word > width) {
            break_line(out, hang);
            column = strlen(hang);
        }
        while (width > 0 && column + word > width) {
            size_t part = width > column ? width - column : 1;

            while (part < word && ((unsigned char)p[part] & 0xC0) == 0x80)
                part++;
            if (part >= word)
                break;
            buf_add(out, p, part);
            break_line(out, hang);
            column = strlen(hang);
            p += part;
            word -= part;
        }
        buf_add(out, p, word);
        column += word;
        p += word + gap;
        if (*p != '\0' && (width == 0 || column + 1 + strcspn(p, " ") <= width)) {
            buf_add_char(out, ' ');
            column++;
        } else if (*p != '\0') {
            break_line(out, hang);
            column = strlen(hang);
        }
    }
    break_line(out, "");
}

void render_below(const struct report *report, const char *indent, size_t width, struct buf *out)
{
    struct buf safe = BUF_INIT;
    char hang[64];
    char head[64];

    snprintf(hang, sizeof hang, "%s    ", indent);
    for (size_t i = 0; i < report->line_count; i++) {
        const struct report_line *line = &report->lines[i];

        buf_reset(&safe);
        str_show(&safe, line->text, strlen(line->text));
        snprintf(head, sizeof head, "%s%s: ", indent, line->kind);
        buf_add_str(out, head);
        wrap(out, buf_str(&safe), strlen(head), width, hang);
    }
    for (size_t i = 0; i < report->note_count; i++) {
        const struct report_note *note = &report->notes[i];
        const char *sentence = vocab_mark_sentence((int)note->mark);

        buf_reset(&safe);
        buf_printf(&safe, "%s: %s", vocab_mark((int)note->mark), sentence);
        buf_printf(&safe, " (%zu run%s)", note->attempts, note->attempts == 1 ? "" : "s");
        if (note->text != NULL && note->text[0] != '\0') {
            buf_add_str(&safe, ", first: ");
            str_show(&safe, note->text, strlen(note->text));
        }
        snprintf(head, sizeof head, "%s[%zu] ", indent, i + 1);
        buf_add_str(out, head);
        wrap(out, buf_str(&safe), strlen(head), width, hang);
    }
    buf_fini(&safe);
}
