/* cmd_login.c: login: an operator's key is made here, a token brings its certificate. */
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/loop.h"
#include "common/str.h"
#include "coordinator/ctl/cmds.h"
#include "coordinator/ctl/home.h"
#include "proto/join.h"
#include "proto/pki.h"
#include "proto/token.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct login {
    struct ctl *ctl;
    const char *address;
    const char *name; /* what --name says; NULL */
    bool done;
    int status;
};

static int path_in(const struct ctl *ctl, char *dst, size_t room, const char *name)
{
    return file_path(dst, room, ctl->home, name) == 0 ? 0 : diag_error(ctl->diag, ERR_LIMIT, "the name of the folder %s is too long", ctl->home);
}

/* Until the certificate is there the new key waits beside the identity that it may replace: a login that fails leaves that as it is. */
#define WAITING_KEY "operator.key.new"

static int write_identity(struct login *l, const struct join_answer *answer)
{
    struct ctl *ctl = l->ctl;
    char waiting[FILE_PATH_MAX], key[FILE_PATH_MAX], cert[FILE_PATH_MAX], authority[FILE_PATH_MAX];
    int err;

    if ((err = path_in(ctl, waiting, sizeof waiting, WAITING_KEY)) != 0 || (err = path_in(ctl, key, sizeof key, "operator.key")) != 0 ||
        (err = path_in(ctl, cert, sizeof cert, "operator.crt")) != 0 || (err = path_in(ctl, authority, sizeof authority, "ca.crt")) != 0 ||
        (err = pki_cert_write(answer->authority, authority, ctl->diag)) != 0 || (err = pki_cert_write(answer->cert, cert, ctl->diag)) != 0)
        return err;
    if ((err = file_rename(waiting, key)) != 0)
        return diag_error(ctl->diag, err, "%s cannot be renamed to operator.key: %s", waiting, err_text(err));
    if ((err = home_write_address(ctl->home, l->address, ctl->diag)) != 0)
        return err;
    if (l->name != NULL && !str_eq(l->name, answer->name))
        diag_warn(ctl->diag, "not as %s: the name was chosen when the token was made", l->name);
    fprintf(stderr, "%s is an operator of fleet %s now; the identity is in %s\n", answer->name, answer->fleet, ctl->home);
    return 0;
}

static void on_answer(const struct join_answer *answer, void *arg)
{
    struct login *l = arg;

    l->done = true;
    for (size_t i = 0; i < answer->warning_count; i++)
        diag_warn(l->ctl->diag, "%s", answer->warnings[i]);
    if (answer->code != 0) {
        diag_error(l->ctl->diag, answer->code, "%s: %s", l->address, answer->text);
        l->status = answer->code == -ERR_UNREACH ? CTL_INFRASTRUCTURE : CTL_USAGE;
    } else {
        l->status = write_identity(l, answer) == 0 ? CTL_DONE : CTL_INFRASTRUCTURE;
    }
}

/* The key of a login that did not come to its end (a token is good for one key), or a new one. */
static int take_key(struct ctl *ctl, bool force, struct pki_key **key)
{
    char path[FILE_PATH_MAX], cert[FILE_PATH_MAX];
    int err;

    if ((err = path_in(ctl, path, sizeof path, WAITING_KEY)) != 0 || (err = path_in(ctl, cert, sizeof cert, "operator.crt")) != 0)
        return err;
    if (file_exists(cert) && !force)
        return diag_error(ctl->diag, ERR_EXISTS,
                          "there is an identity in %s already: --force replaces it, MAKESPAN_HOME names another folder", ctl->home);
    if (file_exists(path))
        return pki_key_read(path, key, ctl->diag);
    if ((err = file_mkdirs(ctl->home, 0700)) != 0)
        return diag_error(ctl->diag, err, "the folder %s cannot be made: %s", ctl->home, err_text(err));
    if ((err = pki_key_make(key, ctl->diag)) != 0)
        return err;
    return pki_key_write(*key, path, ctl->diag);
}

static const char *own_name(const struct opts *opts)
{
    const char *name = opts_get(opts, "name");
    const struct passwd *pw = name == NULL ? getpwuid(geteuid()) : NULL;

    if (name != NULL)
        return name;
    return pw != NULL && str_is_name(pw->pw_name) ? pw->pw_name : "operator";
}

static int join(struct ctl *ctl, const struct opts *opts, const struct token *token, const struct pki_key *key)
{
    struct login l = {.ctl = ctl, .address = opts->args[0], .name = opts_get(opts, "name"), .status = CTL_INFRASTRUCTURE};
    struct join_request request = {.address = l.address, .token = token, .key = key, .role = ROLE_VIEWER, .name = own_name(opts)};
    struct join *j;

    if (join_start(ctl->loop, &request, on_answer, &l, &j, ctl->diag) != 0)
        return CTL_USAGE;
    while (!l.done)
        loop_turn(ctl->loop, CLOCK_SEC);
    return l.status;
}

int cmd_login(struct ctl *ctl, const struct opts *opts)
{
    struct token token;
    struct pki_key *key = NULL;
    int status = CTL_USAGE;
    int err = token_parse(opts->args[1], &token, ctl->diag);

    if (err == 0) {
        err = take_key(ctl, opts_has(opts, "force"), &key);
        status = err == 0 ? join(ctl, opts, &token, key) : ctl_exit_of(err);
    }
    token_wipe(&token);
    pki_key_free(&key);
    return status;
}
