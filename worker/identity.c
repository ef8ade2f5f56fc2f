/* identity.c: reads what joining wrote. */
#include "worker/identity.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/str.h"
#include "common/version.h"
#include "proto/pki.h"
#include "proto/tls.h"

#include <string.h>

int64_t identity_now_s(const struct identity *identity)
{
    int64_t now = clock_wall_ns() / CLOCK_SEC;

    if (identity->heard_s > now)
        now = identity->heard_s;
    return version_build_date_s() > now ? version_build_date_s() : now;
}

static int64_t now_s(void *arg)
{
    return identity_now_s(arg);
}

struct files {
    struct pki_key *key;
    struct pki_cert *cert;
    struct pki_cert *authority;
};

static int read_files(const char *dir, struct files *files, struct diag *diag)
{
    char key[FILE_PATH_MAX], cert[FILE_PATH_MAX], authority[FILE_PATH_MAX];
    int err = file_path(key, sizeof key, dir, IDENTITY_KEY);

    if (err == 0)
        err = file_path(cert, sizeof cert, dir, IDENTITY_CERT);
    if (err == 0)
        err = file_path(authority, sizeof authority, dir, IDENTITY_AUTHORITY);
    if (err != 0)
        return diag_error(diag, err, "the name of the folder %s is too long", dir);
    if (!file_exists(key) || !file_exists(cert) || !file_exists(authority))
        return diag_error(
            diag, ERR_NOTFOUND,
            "this host has not joined a fleet (%s holds no certificate): have a token "
            "made by `makespan token create --role worker`, then run "
            "`makespan-worker join HOST:PORT TOKEN`",
            dir);
    err = pki_key_read(key, &files->key, diag);
    if (err == 0)
        err = pki_cert_read(cert, &files->cert, diag);
    return err == 0 ? pki_cert_read(authority, &files->authority, diag) : err;
}

int identity_load(const char *dir, struct identity *out, struct diag *diag)
{
    struct files files = {NULL, NULL, NULL};
    struct pki_id id;
    int err;

    memset(out, 0, sizeof *out);
    err = read_files(dir, &files, diag);
    if (err == 0)
        err = pki_cert_id(files.cert, &id, diag);
    if (err == 0 && id.role != ROLE_WORKER)
        err = diag_error(diag, ERR_CONFLICT, "the certificate in %s is of a %s, not of a worker",
                         dir, vocab_role((int)id.role));
    if (err == 0) {
        struct tls_client_config config = {.key = files.key,
                                           .cert = files.cert,
                                           .authority = files.authority,
                                           .now_s = now_s,
                                           .arg = out,
                                           .late_clock_ok = true};

        str_copy(out->name, sizeof out->name, id.name);
        str_copy(out->fleet, sizeof out->fleet, id.fleet);
        out->cert_end_s = id.end_s;
        err = tls_new_client(&config, &out->tls, diag);
    }
    pki_cert_free(&files.authority);
    pki_cert_free(&files.cert);
    pki_key_free(&files.key);
    return err;
}

void identity_fini(struct identity *identity)
{
    tls_free(&identity->tls);
}
