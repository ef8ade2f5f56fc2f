/* os_generic_test.c: a system without a file of its own still gets honest answers. The file is
 * taken in whole, so that no other stands beside it. */
#include "worker/os/os_generic.c"

#include "worker/os/facts.h"

#include <criterion/criterion.h>

static int never(const struct os_proc *proc, void *arg)
{
    (void)proc;
    (void)arg;
    return 1;
}

Test(os_generic, says_what_it_does_not_know)
{
    struct os_cpus cpus;
    struct os_memory memory;
    struct os_ticks ticks;
    struct os_ident ident;
    struct os_cgroups groups;
    struct facts facts = FACTS_INIT;
    int64_t ns;

    cr_assert_eq(os_cpus(&cpus), 0);
    cr_expect(cpus.online >= 1);
    cr_expect_eq(cpus.sockets, -1);
    cr_expect_eq(os_cpus_usable(&cpus), cpus.online);
    cr_expect_eq(os_memory(&memory), -ERR_UNSUP);
    cr_expect_eq(os_ticks(&ticks), -ERR_UNSUP);
    cr_expect_eq(os_pressure(OS_PRESSURE_IO, &ns), -ERR_UNSUP);
    cr_expect_eq(os_procs(never, NULL), -ERR_UNSUP);
    cr_expect_eq(os_punch(0, 0, 1), -ERR_UNSUP);
    cr_assert_eq(os_cgroups(&groups), 0);
    cr_expect_str_eq(groups.v2, "");
    cr_assert_eq(os_ident(&ident), 0);
    cr_expect_str_eq(ident.boot_id, "");
    os_facts(&facts, "/", NULL, NULL, "1");
    cr_expect_not_null(facts_get(&facts, "cpus.online"));
    cr_expect_not_null(facts_get(&facts, "os.release"));
    cr_expect_null(facts_get(&facts, "memory.total"));
    cr_expect_null(facts_get(&facts, "boot.id"));
    facts_fini(&facts);
}

Test(os_generic, users_and_signals)
{
    struct os_user user;

    cr_assert_eq(os_user_find("root", &user), 0);
    cr_expect_eq(user.uid, 0);
    cr_expect_eq(os_kill(-1, 0), -ERR_INVAL);
    cr_expect_eq(os_kill(os_pid(), 0), 0);
}
