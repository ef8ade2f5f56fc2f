/* follow.c: WATCH and what is drawn of it. Owns the picture on the terminal. */
#include "coordinator/ctl/follow.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/json.h"
#include "common/loop.h"
#include "common/str.h"
#include "coordinator/ctl/call.h"
#include "coordinator/ctl/ctl.h"
#include "coordinator/ctl/out.h"
#include "coordinator/ctl/progress.h"
#include "proto/msg.h"

#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Without a terminal, a line at least this often. */
#define SAY_EVERY CLOCK_MIN

/* How long a lost coordinator is waited for. */
#define RECONNECT_FOR (10 * CLOCK_MIN)

struct follow {
    struct ctl *ctl;
    struct call *call;
    FILE *to;
    bool terminal;
    size_t drawn; /* lines of the picture on the terminal */
    struct buf text;
    json_t *status; /* the last one */
    char last_numbers[256];
    int64_t said_ns; /* when the last line was written */
    char name[96]; /* NAME/N: NAME alone may come to mean another sweep */
    bool interrupted;
    bool ended; /* an event said so */
    bool mortal;
};

static size_t width_of(FILE *to)
{
    struct winsize size;

    if (ioctl(fileno(to), TIOCGWINSZ, &size) == 0 && size.ws_col > 20)
        return size.ws_col;
    return 80;
}

static void draw(struct follow *f)
{
    struct buf out = BUF_INIT;

    if (f->drawn > 0)
        buf_printf(&out, "\033[%zuA\033[J", f->drawn);
    f->drawn = progress_picture(f->status, width_of(f->to), &out);
    fputs(buf_str(&out), f->to);
    fflush(f->to);
    buf_fini(&out);
}

/* Without a terminal: a line when the numbers changed, and now and then of what is waited for. */
static void say(struct follow *f)
{
    struct buf out = BUF_INIT;
    struct buf numbers = BUF_INIT;

    progress_numbers(f->status, &numbers);
    if (strcmp(buf_str(&numbers), f->last_numbers) != 0 || clock_mono_ns() - f->said_ns >= SAY_EVERY) {
        f->said_ns = clock_mono_ns();
        str_copy(f->last_numbers, sizeof f->last_numbers, buf_str(&numbers));
        progress_line(f->status, &out);
        fputs(buf_str(&out), f->to);
        fflush(f->to);
    }
    buf_fini(&numbers);
    buf_fini(&out);
}

static void on_status(struct follow *f, json_t *status)
{
    json_decref(f->status);
    f->status = json_incref(status);
    str_copy(f->name, sizeof f->name, json_str(status, "sweep", f->name));
    if (f->terminal)
        draw(f);
    else
        say(f);
}

/* Events that a person wants to see as they come; the rest shows in the numbers. */
static void on_event(struct follow *f, const json_t *event)
{
    static const char *const SHOWN[] = {"host-up", "host-down", "sweep-changed", "sweep-ended", "cell-closed", "refused", "store"};
    struct buf line = BUF_INIT;
    const char *kind = json_str(event, "kind", "");
    const char *text = json_str(event, "text", "");
    const char *who = json_str(event, "who", NULL);
    bool ended = strcmp(kind, "sweep-ended") == 0;
    bool shown = false;

    if (f->ended && strcmp(kind, "sweep-changed") == 0) /* the cancel that was its end */
        return;
    f->ended = f->ended || ended;
    for (size_t i = 0; i < ARRAY_LEN(SHOWN); i++)
        shown = shown || strcmp(kind, SHOWN[i]) == 0;
    if (!shown)
        return;
    buf_printf(&line, "%s: ", kind);
    str_escape(&line, text, strlen(text));
    if (who != NULL && !ended) /* the reason of an end names who ended it */
        buf_printf(&line, " (%s)", who);
    if (f->drawn > 0)
        fprintf(f->to, "\033[%zuA\033[J", f->drawn);
    f->drawn = 0;
    fprintf(f->to, "%s\n", buf_str(&line));
    fflush(f->to);
    if (f->terminal && f->status != NULL)
        draw(f);
    buf_fini(&line);
}

static void on_line(struct follow *f, const char *line, size_t n)
{
    json_t *doc = json_parse("an event", line, n, NULL);

    if (doc == NULL)
        return;
    if (strcmp(json_str(doc, "type", ""), "status") == 0)
        on_status(f, json_object_get(doc, "status"));
    else
        on_event(f, doc);
    json_decref(doc);
}

static bool on_piece(const char *kind, const void *bytes, size_t n, void *arg)
{
    struct follow *f = arg;
    const char *end;

    (void)kind;
    buf_add(&f->text, bytes, n);
    while (f->text.len > 0 && (end = memchr(f->text.data, '\n', f->text.len)) != NULL) {
        size_t len = (size_t)(end - (const char *)f->text.data);

        on_line(f, (const char *)f->text.data, len);
        buf_consume(&f->text, len + 1);
    }
    return true;
}

static void on_interrupt(int number, void *arg)
{
    struct follow *f = arg;

    (void)number;
    f->interrupted = true;
    if (f->call != NULL)
        call_interrupt(f->call);
}

static int watch_once(struct follow *f, bool *lost)
{
    struct msg m = {.type = MSG_WATCH};
    struct call_answer answer;
    int status;

    m.u.watch.call = call_number(f->call);
    m.u.watch.sweep = f->name;
    buf_reset(&f->text);
    status = call_ask(f->call, m.u.watch.call, &m, on_piece, f, &answer);
    *lost = answer.lost;
    return status;
}

/* Dials until the coordinator is back. */
static int reconnect(struct follow *f)
{
    int64_t end = clock_mono_ns() + RECONNECT_FOR;
    int64_t pause = CLOCK_SEC;
    struct buf why = BUF_INIT;

    str_escape(&why, diag_first(f->ctl->diag), strlen(diag_first(f->ctl->diag)));
    fprintf(stderr, "%s; trying again\n", buf_str(&why));
    buf_fini(&why);
    call_close(&f->call);
    f->drawn = 0;
    while (!f->interrupted && clock_mono_ns() < end) {
        int64_t until = clock_mono_ns() + pause;

        while (!f->interrupted && clock_mono_ns() < until)
            loop_turn(f->ctl->loop, 100 * CLOCK_MS);
        diag_clear(f->ctl->diag);
        if (call_open(f->ctl, &f->call) == 0)
            return 0;
        pause = pause < 10 * CLOCK_SEC ? pause * 2 : pause;
    }
    return CTL_INFRASTRUCTURE;
}

static int follow(struct follow *f)
{
    bool lost = false;
    int status = watch_once(f, &lost);

    while (lost && !f->interrupted) {
        status = reconnect(f);
        if (status != 0)
            return f->interrupted ? CTL_UNDECIDED : status;
        status = watch_once(f, &lost);
    }
    if (f->interrupted) {
        if (!f->mortal)
            fprintf(stderr, "the view has ended; the sweep goes on (makespan watch %s, makespan sweep cancel %s)\n", f->name, f->name);
        return CTL_UNDECIDED;
    }
    if (status != 0)
        return status;
    return f->status == NULL ? CTL_INFRASTRUCTURE : progress_exit(f->status);
}

int follow_sweep(struct ctl *ctl, struct call **call, const char *sweep, FILE *to, bool mortal)
{
    struct follow f = {.ctl = ctl, .call = *call, .to = to, .mortal = mortal, .terminal = isatty(fileno(to)) != 0, .text = BUF_INIT};
    struct loop_signal *intr = loop_signal_new(ctl->loop, SIGINT, on_interrupt, &f);
    struct loop_signal *term = loop_signal_new(ctl->loop, SIGTERM, on_interrupt, &f);
    struct loop_signal *hup = NULL;
    struct sigaction before;
    int status;

    /* A sweep that ends with its view ends in order when the terminal goes, but not under nohup(1). */
    if (mortal && sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        hup = loop_signal_new(ctl->loop, SIGHUP, on_interrupt, &f);

    str_copy(f.name, sizeof f.name, sweep);
    status = follow(&f);
    loop_signal_free(&hup);
    loop_signal_free(&term);
    loop_signal_free(&intr);
    json_decref(f.status);
    buf_fini(&f.text);
    *call = f.call;
    return status;
}
