/* home.c: reads and writes the operator's configuration directory. */
#include "coordinator/ctl/home.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "proto/pki.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_ADDRESS "127.0.0.1:7443"

int home_find(char *dst, size_t room, struct diag *diag)
{
    const char *own = getenv("MAKESPAN_HOME");
    const char *xdg = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    int n;

    if (own != NULL && own[0] != '\0')
        n = snprintf(dst, room, "%s", own);
    else if (xdg != NULL && xdg[0] == '/')
        n = snprintf(dst, room, "%s/makespan", xdg);
    else if (home != NULL && home[0] == '/')
        n = snprintf(dst, room, "%s/.config/makespan", home);
    else
        return diag_error(diag, ERR_NOTFOUND, "no configuration directory: set MAKESPAN_HOME or HOME");
    return n < 0 || (size_t)n >= room ? diag_error(diag, ERR_LIMIT, "the name of the configuration directory is too long") : 0;
}

int home_read_identity(const char *home, struct home_identity *out, struct diag *diag)
{
    char key[FILE_PATH_MAX], cert[FILE_PATH_MAX], authority[FILE_PATH_MAX];
    int err;

    memset(out, 0, sizeof *out);
    if (file_path(key, sizeof key, home, "operator.key") != 0 || file_path(cert, sizeof cert, home, "operator.crt") != 0 ||
        file_path(authority, sizeof authority, home, "ca.crt") != 0)
        return diag_error(diag, ERR_LIMIT, "the name of the folder %s is too long", home);
    if (!file_exists(key) || !file_exists(cert) || !file_exists(authority))
        return diag_error(diag, ERR_NOTFOUND,
                          "there is no identity in %s: `makespan init` makes a fleet, `makespan login HOST:PORT TOKEN` joins one as an operator",
                          home);
    if ((err = pki_key_read(key, &out->key, diag)) != 0 || (err = pki_cert_read(cert, &out->cert, diag)) != 0 ||
        (err = pki_cert_read(authority, &out->authority, diag)) != 0)
        home_free_identity(out);
    if (err == 0 && !pki_cert_is_of_key(out->cert, out->key)) {
        home_free_identity(out);
        err = diag_error(diag, ERR_CORRUPT, "%s: operator.key and operator.crt do not belong together: `makespan login --force HOST:PORT TOKEN` makes a new identity",
                         home);
    }
    return err;
}

void home_free_identity(struct home_identity *id)
{
    pki_key_free(&id->key);
    pki_cert_free(&id->cert);
    pki_cert_free(&id->authority);
}

int home_read_address(const char *home, char *dst, size_t room, struct diag *diag)
{
    char path[FILE_PATH_MAX];
    struct buf text = BUF_INIT;
    int err = file_path(path, sizeof path, home, "address");

    snprintf(dst, room, "%s", DEFAULT_ADDRESS);
    if (err != 0 || !file_exists(path))
        return 0;
    err = file_read_all(path, 1024, &text);
    if (err != 0) {
        diag_error(diag, err, "%s cannot be read: %s", path, err_text(err));
    } else {
        size_t n = strcspn(buf_str(&text), "\r\n");

        snprintf(dst, room, "%.*s", (int)n, buf_str(&text));
    }
    buf_fini(&text);
    return err;
}

int home_write_address(const char *home, const char *address, struct diag *diag)
{
    char path[FILE_PATH_MAX];
    struct buf text = BUF_INIT;
    int err = file_path(path, sizeof path, home, "address");

    buf_printf(&text, "%s\n", address);
    if (err == 0)
        err = file_write_atomic(path, text.data, text.len, 0644);
    buf_fini(&text);
    return err == 0 ? 0 : diag_error(diag, err, "%s/address cannot be written: %s", home, err_text(err));
}
