/* tree_key.c: what makes two prepared trees the same. Pure. */
#include "worker/run/tree_int.h"

#include "common/str.h"
#include "proto/digest.h"

#include <stdio.h>
#include <string.h>

/* Each part with its name and its length: no two different lists give the same bytes. */
static void add(struct digest *d, const char *name, const void *value, size_t n)
{
    char head[64];
    int len = snprintf(head, sizeof(head), "%s %zu:", name, n);

    digest_add(d, head, (size_t)len);
    digest_add(d, value, n);
}

static void add_text(struct digest *d, const char *name, const char *value)
{
    add(d, name, value == NULL ? "" : value, value == NULL ? 0 : strlen(value));
}

void tree_key(const struct trees *trees, const struct tree_want *want, const char *says,
              char key[65])
{
    struct digest *d = digest_new(DIGEST_SHA256);
    uint8_t hash[DIGEST_MAX];
    char user[64] = "";

    switch (want->source) {
    case TREE_ARCHIVE:
        add(d, "archive", want->blob, 32);
        break;
    case TREE_HOST_DIR:
        add_text(d, "folder", want->host_dir);
        add_text(d, "says", says);
        break;
    case TREE_NONE:
        add_text(d, "none", "");
        break;
    }
    if (trees->set_user)
        (void)snprintf(user, sizeof(user), "%lu:%lu", (unsigned long)trees->uid,
                       (unsigned long)trees->gid);
    add_text(d, "user", user);
    add_text(d, "setup", want->setup);
    for (size_t i = 0; i < want->setup_env_count; i++)
        add_text(d, "env", want->setup_env[i]);
    add_text(d, "storage", want->storage);
    add_text(d, "fingerprint", want->fingerprint);
    (void)digest_end(d, hash);
    digest_free(&d);
    str_hex(key, hash, 32);
}
