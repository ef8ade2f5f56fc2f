/* home_test.c: where the operator's identity and the coordinator's address are. */
#include "coordinator/ctl/home.h"

#include "common/diag.h"
#include "common/err.h"
#include "proto/pki.h"
#include "tests/harness/place.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char dir[256];
static struct diag *diag;

static void setup(void)
{
    place_new_dir(dir, sizeof(dir), "makespan-home");
    diag = diag_new(4);
}

static void teardown(void)
{
    diag_free(&diag);
    cr_expect_eq(file_remove_tree(dir), 0);
}

TestSuite(ctl_home, .init = setup, .fini = teardown);

Test(ctl_home, is_found_by_the_environment)
{
    char path[FILE_PATH_MAX];
    char small[8];
    setenv("MAKESPAN_HOME", "/a/b", 1);
    setenv("XDG_CONFIG_HOME", "/xdg", 1);
    setenv("HOME", "/home/ann", 1);
    cr_assert_eq(home_find(path, sizeof(path), diag), 0);
    cr_expect_str_eq(path, "/a/b");
    setenv("MAKESPAN_HOME", "", 1);
    cr_assert_eq(home_find(path, sizeof(path), diag), 0);
    cr_expect_str_eq(path, "/xdg/makespan");
    setenv("XDG_CONFIG_HOME", "relative", 1);
    cr_assert_eq(home_find(path, sizeof(path), diag), 0);
    cr_expect_str_eq(path, "/home/ann/.config/makespan");
    cr_expect_eq(home_find(small, sizeof(small), diag), -ERR_LIMIT);
    unsetenv("HOME");
    cr_expect_eq(home_find(path, sizeof(path), diag), -ERR_NOTFOUND);
    cr_expect_not_null(strstr(diag_first(diag), "too long"));
}

Test(ctl_home, without_an_identity_it_says_how_to_get_one)
{
    struct home_identity id;
    cr_expect_eq(home_read_identity(dir, &id, diag), -ERR_NOTFOUND);
    cr_expect_not_null(strstr(diag_first(diag), dir));
    cr_expect_not_null(strstr(diag_first(diag), "`makespan init` makes a fleet"));
    cr_expect_not_null(strstr(diag_first(diag), "`makespan login HOST:PORT TOKEN`"));
}

Test(ctl_home, a_certificate_of_another_key_says_what_to_do)
{
    struct home_identity id;
    struct pki_key *key, *other;
    struct pki_cert *cert;
    char path[FILE_PATH_MAX];
    cr_assert_eq(pki_key_make(&key, NULL), 0);
    cr_assert_eq(pki_key_make(&other, NULL), 0);
    cr_assert_eq(pki_authority_make(key, "lab", 1796040000, &cert, NULL), 0);
    cr_assert_eq(file_path(path, sizeof(path), dir, "ca.crt"), 0);
    cr_assert_eq(pki_cert_write(cert, path, NULL), 0);
    cr_assert_eq(file_path(path, sizeof(path), dir, "operator.crt"), 0);
    cr_assert_eq(pki_cert_write(cert, path, NULL), 0);
    cr_assert_eq(file_path(path, sizeof(path), dir, "operator.key"), 0);
    cr_assert_eq(pki_key_write(other, path, NULL), 0);
    cr_expect_eq(home_read_identity(dir, &id, diag), -ERR_CORRUPT);
    cr_expect_not_null(strstr(diag_first(diag), "do not belong together"));
    cr_expect_not_null(strstr(diag_first(diag), "makespan login --force"));
    cr_expect(id.key == NULL && id.cert == NULL && id.authority == NULL);
    pki_key_free(&key);
    pki_key_free(&other);
    pki_cert_free(&cert);
}

Test(ctl_home, a_key_that_others_may_read_is_refused)
{
    struct home_identity id;
    struct pki_key *key;
    struct pki_cert *cert;
    char path[FILE_PATH_MAX];
    cr_assert_eq(pki_key_make(&key, NULL), 0);
    cr_assert_eq(pki_authority_make(key, "lab", 1796040000, &cert, NULL), 0);
    cr_assert_eq(file_path(path, sizeof(path), dir, "ca.crt"), 0);
    cr_assert_eq(pki_cert_write(cert, path, NULL), 0);
    cr_assert_eq(file_path(path, sizeof(path), dir, "operator.crt"), 0);
    cr_assert_eq(pki_cert_write(cert, path, NULL), 0);
    cr_assert_eq(file_path(path, sizeof(path), dir, "operator.key"), 0);
    cr_assert_eq(pki_key_write(key, path, NULL), 0);
    cr_assert_eq(home_read_identity(dir, &id, diag), 0, "%s", diag_first(diag));
    cr_expect(id.key != NULL && id.cert != NULL && id.authority != NULL);
    home_free_identity(&id);
    cr_assert_eq(chmod(path, 0644), 0);
    cr_expect_eq(home_read_identity(dir, &id, diag), -ERR_DENIED);
    cr_expect_not_null(strstr(diag_first(diag), "operator.key"));
    pki_key_free(&key);
    pki_cert_free(&cert);
}

Test(ctl_home, remembers_the_coordinators_address)
{
    char address[64];
    cr_assert_eq(home_read_address(dir, address, sizeof(address), diag), 0);
    cr_expect_str_eq(address, "127.0.0.1:7443");
    cr_assert_eq(home_write_address(dir, "bench.example.org:7000", diag), 0);
    cr_assert_eq(home_read_address(dir, address, sizeof(address), diag), 0);
    cr_expect_str_eq(address, "bench.example.org:7000");
    cr_expect_lt(home_write_address("/nonexistent", "x:1", diag), 0);
    cr_expect_not_null(strstr(diag_first(diag), "/nonexistent/address cannot be written"));
}
