/* init_test.c: what a new fleet's daemon and operator find where they look for it. */
#include "coordinator/init.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "coordinator/conf.h"
#include "tests/harness/place.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct {
    char dir[256];
    char state[FILE_PATH_MAX], home[FILE_PATH_MAX], config[FILE_PATH_MAX];
    struct coord_conf conf;
    struct init_request request;
    struct diag *diag;
} t;

static void replace(char **member, const char *value)
{
    free(*member);
    *member = strdup(value);
    cr_assert_not_null(*member);
}

static void setup(void)
{
    place_new_dir(t.dir, sizeof t.dir, "init_test");
    cr_assert_eq(file_path(t.state, sizeof t.state, t.dir, "state"), 0);
    cr_assert_eq(file_path(t.home, sizeof t.home, t.dir, "home"), 0);
    cr_assert_eq(file_path(t.config, sizeof t.config, t.dir, "etc/makespand.yaml"), 0);
    cr_assert_eq(coord_conf_load(NULL, &t.conf, NULL), 0);
    replace(&t.conf.dir, t.state);
    t.diag = diag_new(8);
    t.request = (struct init_request){
        .fleet = "lab", .operator_dir = t.home, .operator_name = "ann", .config = t.config, .write_config = true};
}

static void teardown(void)
{
    coord_conf_free(&t.conf);
    diag_free(&t.diag);
    cr_expect_eq(file_remove_tree(t.dir), 0);
}

TestSuite(coord_init, .init = setup, .fini = teardown);

static void expect_address(const char *want)
{
    char path[FILE_PATH_MAX];
    struct buf text = BUF_INIT;

    cr_assert_eq(file_path(path, sizeof path, t.home, "address"), 0);
    cr_assert_eq(file_read_all(path, 1024, &text), 0, "%s", path);
    cr_expect_eq(strncmp(buf_str(&text), want, strlen(want)), 0, "%s", buf_str(&text));
    cr_expect_eq(text.len, strlen(want) + 1);
    buf_fini(&text);
}

/* A fleet for a daemon that listens there. */
static void make(const char *listen)
{
    replace(&t.conf.listen, listen);
    cr_assert_eq(init_fleet(&t.request, &t.conf, t.diag), 0, "%s", diag_first(t.diag));
}

static void expect_refused(int code, const char *part)
{
    cr_expect_eq(init_fleet(&t.request, &t.conf, t.diag), code);
    cr_expect_not_null(strstr(diag_first(t.diag), part), "%s", diag_first(t.diag));
}

Test(coord_init, the_configuration_is_what_the_daemon_was_to_be_given)
{
    struct coord_conf there;

    make("127.0.0.1:7543");
    cr_assert_eq(coord_conf_load(t.config, &there, t.diag), 0, "%s", diag_first(t.diag));
    cr_expect_str_eq(there.listen, "127.0.0.1:7543");
    cr_expect_str_eq(there.dir, t.state);
    coord_conf_free(&there);
    expect_address("127.0.0.1:7543");
}

Test(coord_init, every_address_is_this_machine_for_its_operator)
{
    make(":7543");
    expect_address("127.0.0.1:7543");
}

Test(coord_init, an_ipv6_address_keeps_its_brackets)
{
    make("[fd00::1]:7543");
    expect_address("[fd00::1]:7543");
}

Test(coord_init, all_ipv6_addresses_are_this_machine)
{
    make("[::]:7543");
    expect_address("127.0.0.1:7543");
}

Test(coord_init, an_address_that_is_given_is_taken)
{
    t.request.address = "lab.example:17543";
    make(":0");
    expect_address("lab.example:17543");
}

Test(coord_init, without_the_wish_no_configuration_is_written)
{
    t.request.write_config = false;
    make(":7443");
    cr_expect_not(file_exists(t.config));
    expect_address("127.0.0.1:7443");
}

Test(coord_init, a_port_that_nobody_would_find_is_refused_before_anything_is_made)
{
    replace(&t.conf.listen, ":0");
    expect_refused(-ERR_INVAL, "nobody would find");
    cr_expect_not(file_exists(t.state));
    cr_expect_not(file_exists(t.home));
}

Test(coord_init, an_address_that_is_none_is_refused)
{
    t.request.address = "lab.example";
    expect_refused(-ERR_INVAL, "HOST:PORT");
    cr_expect_not(file_exists(t.state));
}

static void write_there(const char *listen, const char *dir)
{
    char parent[FILE_PATH_MAX];
    struct buf text = BUF_INIT;

    cr_assert_eq(file_path(parent, sizeof parent, t.dir, "etc"), 0);
    cr_assert_eq(file_mkdirs(parent, 0755), 0);
    buf_printf(&text, "# mine\nlisten: \"%s\"\ndir: %s\n", listen, dir);
    cr_assert_eq(file_write_atomic(t.config, text.data, text.len, 0644), 0);
    buf_fini(&text);
}

Test(coord_init, a_configuration_that_says_the_same_stays)
{
    struct buf text = BUF_INIT;

    write_there(":7543", t.state);
    make(":7543");
    cr_assert_eq(file_read_all(t.config, 4096, &text), 0);
    cr_expect_eq(strncmp(buf_str(&text), "# mine\n", 7), 0);
    buf_fini(&text);
}

Test(coord_init, a_configuration_that_says_something_else_is_told_before_anything_is_made)
{
    write_there(":7443", t.state);
    replace(&t.conf.listen, ":7543");
    expect_refused(-ERR_INVAL, "says listen: :7443, not :7543");
    diag_clear(t.diag);
    write_there(":7543", "/elsewhere");
    expect_refused(-ERR_INVAL, "says dir: /elsewhere");
    cr_expect_not(file_exists(t.state));
}

Test(coord_init, a_second_fleet_in_the_folder_changes_nothing)
{
    make(":7543");
    t.request.fleet = "other";
    expect_refused(-ERR_EXISTS, "fleet lab was made here already");
    expect_address("127.0.0.1:7543");
}
