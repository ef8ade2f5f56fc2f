/* join.c: the joining of a host: files in, one question, files out. The question
 * is proto/join.c's. */
#include "worker/join.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/conf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/loop.h"
#include "common/str.h"
#include "proto/join.h"
#include "proto/pki.h"
#include "proto/token.h"
#include "worker/conf.h"
#include "worker/identity.h"
#include "worker/os/os.h"

#include <stdlib.h>
#include <string.h>

#define ANSWER_LIMIT (30 * CLOCK_SEC)

struct joining {
    const struct worker_join *want;
    struct loop *loop;
    struct loop_timer *limit;
    struct buf *said;
    struct diag *diag;
    int code;
    bool answered;
};

/* --- files --- */

static int own_path(const struct worker_join *w, const char *name, char path[FILE_PATH_MAX],
                    struct diag *diag)
{
    int err = file_path(path, FILE_PATH_MAX, w->dir, name);

    return err == 0 ? 0 : diag_error(diag, err, "the name of the folder %s is too long", w->dir);
}

static int get_key(const struct worker_join *w, struct pki_key **key, struct diag *diag)
{
    char path[FILE_PATH_MAX];
    int err = file_mkdirs(w->dir, 0711);

    if (err != 0)
        return diag_error(diag, err,
                          "the folder %s cannot be made: %s; run this as root, or name another "
                          "folder with --dir",
                          w->dir, err_text(err));
    err = own_path(w, IDENTITY_KEY, path, diag);
    if (err != 0)
        return err;
    if (file_exists(path))
        return pki_key_read(path, key, diag);
    err = pki_key_make(key, diag);
    return err == 0 ? pki_key_write(*key, path, diag) : err;
}

static int write_certs(const struct worker_join *w, const struct join_answer *a, struct diag *diag)
{
    char path[FILE_PATH_MAX];
    int err = own_path(w, IDENTITY_AUTHORITY, path, diag);

    if (err == 0)
        err = pki_cert_write(a->authority, path, diag);
    if (err == 0)
        err = own_path(w, IDENTITY_CERT, path, diag);
    return err == 0 ? pki_cert_write(a->cert, path, diag) : err;
}

/* A YAML scalar in single quotes. */
static void add_quoted(struct buf *out, const char *s)
{
    buf_add_char(out, '\'');
    for (; *s != '\0'; s++) {
        if (*s == '\'')
            buf_add_char(out, '\'');
        buf_add_char(out, *s);
    }
    buf_add_str(out, "'\n");
}

static int make_parent(const char *path)
{
    char parent[FILE_PATH_MAX];
    char *slash;

    str_copy(parent, sizeof parent, path);
    slash = strrchr(parent, '/');
    if (slash == NULL || slash == parent)
        return 0;
    *slash = '\0';
    return file_mkdirs(parent, 0755);
}

static int write_config(const struct worker_join *w, const struct join_answer *a, struct diag *diag)
{
    struct buf text = BUF_INIT;
    int err;

    buf_add_str(&text,
                "# Written by makespan-worker join; all options: makespan-worker.yaml(5).\n");
    buf_add_str(&text, "coordinator: ");
    add_quoted(&text, w->address);
    buf_add_str(&text, "name: ");
    add_quoted(&text, a->name);
    buf_add_str(&text, "dir: ");
    add_quoted(&text, w->dir);
    err = make_parent(w->config);
    if (err == 0)
        err = file_write_atomic(w->config, text.data, text.len, 0644);
    buf_fini(&text);
    if (err == 0)
        return 0;
    return diag_error(diag, err,
                      "this host has joined, but %s cannot be written: %s; write it by hand: "
                      "coordinator, name, dir",
                      w->config, err_text(err));
}

/* A configuration that is there stays; what in it does not fit is said. */
static void compare_config(const struct worker_join *w, const struct join_answer *a,
                           struct buf *said)
{
    struct worker_conf conf;
    struct diag *diag = diag_new(8);

    if (worker_conf_load(w->config, &conf, diag) != 0) {
        buf_printf(said, "%s was there already and is not correct:\n", w->config);
        diag_print(diag, said);
    } else {
        if (!str_eq(conf.coordinator, w->address))
            buf_printf(said, "%s was there already; for this fleet it must say: coordinator: %s\n",
                       w->config, w->address);
        if (conf.name != NULL && !str_eq(conf.name, a->name))
            buf_printf(said, "%s was there already; it must say: name: %s\n", w->config, a->name);
        if (!str_eq(conf.dir, w->dir))
            buf_printf(said, "%s was there already; it must say: dir: %s\n", w->config, w->dir);
    }
    worker_conf_free(&conf);
    diag_free(&diag);
}

/* --- the answer --- */

static void take_answer(struct joining *j, const struct join_answer *a)
{
    const struct worker_join *w = j->want;

    j->code = write_certs(w, a, j->diag);
    if (j->code != 0)
        return;
    buf_printf(j->said, "joined fleet %s as %s: key and certificate are in %s\n", a->fleet, a->name,
               w->dir);
    if (w->name != NULL && !str_eq(w->name, a->name))
        buf_printf(j->said, "warning: not as %s: the name was chosen when the token was made\n", w->name);
    for (size_t i = 0; i < a->warning_count; i++)
        buf_printf(j->said, "warning: %s\n", a->warnings[i]);
    if (file_exists(w->config))
        compare_config(w, a, j->said);
    else
        j->code = write_config(w, a, j->diag);
    if (j->code == 0)
        buf_printf(j->said,
                   "next: look through %s (run_as above all), then start `makespan-worker -c %s`\n"
                   "a worker that runs already has to be started anew\n",
                   w->config, w->config);
}

static void on_answer(const struct join_answer *answer, void *arg)
{
    struct joining *j = arg;

    const char *address = j->want->address;
    const char *hint = answer->code != -ERR_UNREACH
                           ? ""
                           : "; is the coordinator running there, and its port open to this host?";

    j->answered = true;
    if (answer->code == 0)
        take_answer(j, answer);
    else if (str_starts(answer->text, address))
        j->code = diag_error(j->diag, answer->code, "%s%s", answer->text, hint);
    else
        j->code = diag_error(j->diag, answer->code, "%s: %s%s", address, answer->text, hint);
    loop_stop(j->loop);
}

static void on_limit(void *arg)
{
    struct joining *j = arg;

    j->code = diag_error(j->diag, ERR_TIMEOUT,
                         "%s: no answer came within 30 s: is this the "
                         "coordinator, and is it well?",
                         j->want->address);
    loop_stop(j->loop);
}

static int ask(struct joining *j, const struct join_request *request)
{
    struct join *join = NULL;
    int err = join_start(j->loop, request, on_answer, j, &join, j->diag);

    if (err != 0)
        return err;
    loop_timer_set(j->limit, ANSWER_LIMIT);
    loop_run(j->loop);
    if (!j->answered)
        join_cancel(&join);
    return j->code;
}

static int run(struct joining *j, const struct token *token, const char *name,
               const struct os_ident *ident)
{
    struct pki_key *key = NULL;
    int err = get_key(j->want, &key, j->diag);

    if (err == 0) {
        struct join_request request = {.address = j->want->address,
                                       .token = token,
                                       .key = key,
                                       .role = ROLE_WORKER,
                                       .name = name,
                                       .machine_id =
                                           ident->machine_id[0] == '\0' ? NULL : ident->machine_id,
                                       .late_clock_ok = true};

        j->loop = loop_new();
        if (j->loop == NULL) {
            err = diag_error(j->diag, ERR_SYS, "the system gives no event loop");
        } else {
            j->limit = loop_timer_new(j->loop, on_limit, j);
            err = ask(j, &request);
            loop_timer_free(&j->limit);
        }
        loop_free(&j->loop);
    }
    pki_key_free(&key);
    return err;
}

static int choose_name(const struct worker_join *w, const struct os_ident *ident, char name[65],
                       struct diag *diag)
{
    const char *from = w->name != NULL ? w->name : ident->hostname;
    size_t n = w->name != NULL ? strlen(from) : strcspn(from, ".");

    if (n < 65) {
        memcpy(name, from, n);
        name[n] = '\0';
    }
    if (n < 65 && str_is_name(name))
        return 0;
    return diag_error(
        diag, ERR_INVAL,
        "%s%s is no name for a host: choose one of letters, digits and . _ + , = - (at "
        "most 64) with --name",
        w->name == NULL ? "this host is called " : "", from);
}

int worker_join(const struct worker_join *join, struct buf *said, struct diag *diag)
{
    struct joining j = {.want = join, .said = said, .diag = diag};
    struct os_ident ident;
    struct token token;
    char name[65];
    int err = token_parse(join->token, &token, diag);

    if (err != 0)
        return err;
    if (os_ident(&ident) != 0)
        memset(&ident, 0, sizeof ident);
    err = choose_name(join, &ident, name, diag);
    if (err == 0)
        err = run(&j, &token, name, &ident);
    token_wipe(&token);
    return err;
}
