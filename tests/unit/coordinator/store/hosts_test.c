/* hosts_test.c: rows of hosts, their classes and facts. */
#include "coordinator/store/hosts.h"

#include "common/err.h"
#include "coordinator/store/store.h"
#include "tests/unit/coordinator/store/store_help.h"

#include <criterion/criterion.h>

#include <string.h>

Test(hosts, come_back_as_they_were_stored)
{
    struct box box;
    const char *classes[] = {"quad-core", "amd"};
    struct model_host out;
    struct model_host in = {.name = "quad",
                            .state = HOST_ACTIVE,
                            .classes = classes,
                            .class_count = 2,
                            .machine_id = "m1",
                            .key_hash = "k1",
                            .joined_wall_ns = 123};
    int64_t id = 0;
    box_open(&box);
    cr_assert_eq(store_host_insert(box.store, &in, &id), 0, "%s", store_error(box.store));
    cr_expect_eq(store_host_seen(box.store, id, 500, "boot-1", UINT64_MAX), 0);
    cr_expect_eq(store_host_set_identity(box.store, id, NULL, "0.2.0"), 0);
    cr_expect_eq(store_host_set_capacity(box.store, id, 3500, 64000000), 0);
    box_commit(&box);
    box_reopen(&box);
    cr_assert_eq(store_host_get(box.store, id, box.arena, &out), 0);
    cr_expect_str_eq(out.name, "quad");
    cr_expect_eq(out.state, HOST_ACTIVE);
    cr_assert_eq(out.class_count, 2);
    cr_expect_str_eq(out.classes[0], "amd");
    cr_expect_str_eq(out.classes[1], "quad-core");
    cr_expect_str_eq(out.machine_id, "m1");
    cr_expect_str_eq(out.key_hash, "k1");
    cr_expect_str_eq(out.boot_id, "boot-1");
    cr_expect_str_eq(out.version, "0.2.0");
    cr_expect_eq(out.visit, UINT64_MAX);
    cr_expect_eq(out.cpus_milli, 3500);
    cr_expect_eq(out.memory_bytes, 64000000);
    cr_expect_eq(out.joined_wall_ns, 123);
    cr_expect_eq(out.seen_wall_ns, 500);
    cr_expect_eq(out.fact_count, 0);
    /* A sign of life without a boot id leaves boot and visit. */
    cr_expect_eq(store_host_seen(box.store, id, 600, NULL, 9), 0);
    cr_assert_eq(store_host_by_key(box.store, "k1", box.arena, &out), 0);
    cr_expect_eq(out.id, id);
    cr_expect_eq(out.seen_wall_ns, 600);
    cr_expect_eq(out.visit, UINT64_MAX);
    box_close(&box);
}

Test(hosts, a_new_one_has_never_been_seen)
{
    struct box box;
    struct model_host out;
    box_open(&box);
    int64_t id = box_host(&box, "new");
    cr_assert_eq(store_host_get(box.store, id, box.arena, &out), 0);
    cr_expect_null(out.boot_id);
    cr_expect_null(out.version);
    cr_expect_null(out.machine_id);
    cr_expect_null(out.classes);
    cr_expect_eq(out.seen_wall_ns, 0);
    box_close(&box);
}

Test(hosts, names_and_keys_are_their_own)
{
    struct box box;
    int64_t id = 0;
    box_open(&box);
    int64_t first = box_host(&box, "a");
    struct model_host same_key = {.name = "b", .state = HOST_ACTIVE, .key_hash = "key-of-a"};
    cr_expect_eq(store_host_insert(box.store, &same_key, &id), -ERR_EXISTS);
    int64_t second = box_host(&box, "b");
    cr_expect_eq(store_host_set_key(box.store, second, "key-of-a", 1), -ERR_EXISTS);
    cr_expect_eq(store_host_set_key(box.store, second, "other", 44), 0);
    struct model_host out;
    cr_assert_eq(store_host_get(box.store, second, box.arena, &out), 0);
    cr_expect_str_eq(out.key_hash, "other");
    cr_expect_eq(out.joined_wall_ns, 44);
    cr_expect_neq(first, second);
    box_close(&box);
}

Test(hosts, that_are_not_there)
{
    struct box box;
    struct model_host out;
    box_open(&box);
    cr_expect_eq(store_host_get(box.store, 99, box.arena, &out), -ERR_NOTFOUND);
    cr_expect_eq(store_host_by_name(box.store, "x", box.arena, &out), -ERR_NOTFOUND);
    cr_expect_eq(store_host_by_key(box.store, "x", box.arena, &out), -ERR_NOTFOUND);
    cr_expect_eq(store_host_set_state(box.store, 99, HOST_DRAINED), -ERR_NOTFOUND);
    cr_expect_eq(store_host_seen(box.store, 99, 1, NULL, 0), -ERR_NOTFOUND);
    cr_expect_eq(store_host_seen(box.store, 99, 1, "b", 0), -ERR_NOTFOUND);
    cr_expect_eq(store_host_add_class(box.store, 99, "c"), -ERR_CONFLICT);
    box_close(&box);
}

Test(hosts, state_and_classes_change)
{
    struct box box;
    struct model_host out;
    box_open(&box);
    int64_t id = box_host(&box, "a");
    cr_expect_eq(store_host_set_state(box.store, id, HOST_REVOKED), 0);
    cr_expect_eq(store_host_add_class(box.store, id, "p6"), 0);
    cr_expect_eq(store_host_add_class(box.store, id, "p6"), 0);
    cr_expect_eq(store_host_add_class(box.store, id, "old"), 0);
    cr_expect_eq(store_host_remove_class(box.store, id, "none"), -ERR_NOTFOUND);
    cr_expect_eq(store_host_remove_class(box.store, id, "old"), 0);
    cr_assert_eq(store_host_get(box.store, id, box.arena, &out), 0);
    cr_expect_eq(out.state, HOST_REVOKED);
    cr_assert_eq(out.class_count, 1);
    cr_expect_str_eq(out.classes[0], "p6");
    box_close(&box);
}

Test(hosts, facts_are_replaced_as_a_whole)
{
    struct box box;
    const struct model_fact first[] = {{"os", "Linux"}, {"cpus.online", "4"}, {"gone", "x"}};
    const struct model_fact second[] = {{"os", "Linux 6"}};
    const struct model_fact twice[] = {{"a", "1"}, {"a", "2"}};
    const struct model_fact *facts = NULL;
    size_t n = 0;
    box_open(&box);
    int64_t id = box_host(&box, "a");
    int64_t other = box_host(&box, "b");
    cr_expect_eq(store_host_facts(box.store, id, box.arena, &facts, &n), 0);
    cr_expect_eq(n, 0);
    cr_expect_eq(store_host_set_facts(box.store, other, second, 1), 0);
    cr_expect_eq(store_host_set_facts(box.store, id, first, 3), 0);
    cr_assert_eq(store_host_facts(box.store, id, box.arena, &facts, &n), 0);
    cr_assert_eq(n, 3);
    cr_expect_str_eq(facts[0].key, "cpus.online");
    cr_expect_str_eq(facts[0].value, "4");
    cr_expect_eq(store_host_set_facts(box.store, id, second, 1), 0);
    cr_assert_eq(store_host_facts(box.store, id, box.arena, &facts, &n), 0);
    cr_assert_eq(n, 1);
    cr_expect_str_eq(facts[0].value, "Linux 6");
    /* One that fails leaves the facts as they were. */
    cr_expect_eq(store_host_set_facts(box.store, id, twice, 2), -ERR_EXISTS);
    cr_assert_eq(store_host_facts(box.store, id, box.arena, &facts, &n), 0);
    cr_expect_eq(n, 1);
    cr_expect_str_eq(facts[0].key, "os");
    box_close(&box);
}

static int names(const struct model_host *host, void *arg)
{
    char *all = arg;
    say(all, "%s%s", host->name, host->class_count == 1 ? host->classes[0] : "-");
    return 0;
}

Test(hosts, each_is_by_name_with_its_classes)
{
    struct box box;
    char all[SAY_ROOM] = "";
    box_open(&box);
    box_host(&box, "c");
    int64_t a = box_host(&box, "a");
    box_host(&box, "b");
    cr_assert_eq(store_host_add_class(box.store, a, "X"), 0);
    cr_expect_eq(store_hosts_each(box.store, names, all), 0);
    cr_expect_str_eq(all, "aXb-c-");
    box_close(&box);
}
