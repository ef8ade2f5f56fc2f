/* os_test.c: this host's own answers, and the facts made of answers. */
#include "common/clock.h"
#include "common/err.h"
#include "common/str.h"
#include "tests/harness/look.h"
#include "worker/os/facts.h"
#include "worker/os/os.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

Test(os, processors)
{
    struct os_cpus cpus;

    cr_assert_eq(os_cpus(&cpus), 0);
    cr_expect_eq(cpus.online, (int32_t)sysconf(_SC_NPROCESSORS_ONLN));
    cr_expect(cpus.affinity >= 1 && cpus.affinity <= cpus.online);
    cr_expect(os_cpus_usable(&cpus) >= 1 && os_cpus_usable(&cpus) <= cpus.online);
}

Test(os, variables_of_other_programs_never_count)
{
    struct os_cpus before, after;

    cr_assert_eq(os_cpus(&before), 0);
    cr_assert_eq(setenv("OMP_NUM_THREADS", "1", 1), 0);
    cr_assert_eq(os_cpus(&after), 0);
    cr_expect_eq(os_cpus_usable_milli(&before), os_cpus_usable_milli(&after));
}

Test(os, readings_of_this_machine_make_sense)
{
    struct os_memory memory;
    struct os_load load;
    struct os_ticks a, b;
    struct os_usage usage;
    struct os_limits limits;

    cr_assert_eq(os_memory(&memory), 0);
    cr_expect(memory.total > 0 && memory.available > 0 && memory.available <= memory.total);
    cr_assert_eq(os_load(&load), 0);
    cr_expect(load.milli[0] >= 0);
    cr_assert_eq(os_ticks(&a), 0);
    cr_assert_eq(os_ticks(&b), 0);
    cr_expect(a.user > 0 && a.idle > 0 && b.user >= a.user);
    cr_assert_eq(os_self_usage(&usage), 0);
    cr_expect(usage.user_ns + usage.sys_ns > 0 && usage.max_rss_bytes > 0);
    cr_assert_eq(os_limits(&limits), 0);
    cr_expect(limits.files > 0);
    cr_expect(limits.pids > 0);
}

Test(os, identity)
{
    struct os_ident a, b;

    cr_assert_eq(os_ident(&a), 0);
    cr_assert_eq(os_ident(&b), 0);
    cr_expect(a.name[0] != '\0' && a.release[0] != '\0' && a.boot_id[0] != '\0');
    cr_expect_str_eq(a.boot_id, b.boot_id);
    cr_expect(strstr(a.kernel, a.release) != NULL && strstr(a.kernel, a.version) != NULL);
}

static int find(const struct os_proc *proc, void *arg)
{
    struct os_proc *want = arg;

    if (proc->pid != want->pid)
        return 0;
    *want = *proc;
    return 7;
}

Test(os, finds_its_own_child)
{
    int go[2];
    char byte;
    pid_t pid;
    struct os_proc proc = {.pid = 0};

    cr_assert_eq(pipe(go), 0);
    pid = fork();
    cr_assert(pid >= 0);
    if (pid == 0) {
        (void)close(go[1]);
        (void)read(go[0], &byte, 1);
        _exit(0);
    }
    (void)close(go[0]);
    proc.pid = pid;
    cr_expect_eq(os_procs(find, &proc), 7, "a walk that is ended gives what ended it");
    cr_expect_eq(proc.ppid, (int64_t)getpid());
    cr_expect_eq(proc.sid, (int64_t)getsid(0));
    cr_expect_not(proc.kernel);
    cr_expect_not(proc.zombie);
    cr_expect(os_proc_is_of(pid, (uint32_t)getuid()));
    cr_expect_not(os_proc_is_of(pid, 12345));
    (void)close(go[1]);
    {
        siginfo_t info;

        cr_assert_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    }
    cr_assert_eq(os_proc_get(pid, &proc), 0);
    cr_expect(proc.zombie);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
    cr_expect_eq(os_proc_get(pid, &proc), -ERR_NOTFOUND);
    cr_expect_eq(os_kill(pid, 0), -ERR_NOTFOUND);
}

Test(os, never_signals_many)
{
    cr_expect_eq(os_kill(-1, 0), -ERR_INVAL);
    cr_expect_eq(os_kill(0, 0), -ERR_INVAL);
    cr_expect_eq(os_kill(1, 0), -ERR_INVAL);
    cr_expect_eq(os_kill(-(int64_t)getpid(), 0), -ERR_INVAL);
}

Test(os, environment_of_a_process)
{
    pid_t pid;
    int go[2];

    cr_assert_eq(pipe(go), 0);
    pid = fork();
    cr_assert(pid >= 0);
    if (pid == 0) {
        char *const env[] = {(char *)"OTHER=1", (char *)"MAKESPAN_TAG=abc", NULL};

        (void)dup2(go[0], 0);
        (void)close(go[1]);
        (void)execle("/bin/cat", "cat", (char *)NULL, env);
        _exit(127);
    }
    (void)close(go[0]);
    /* Until exec is through, the child has this process's environment. */
    for (int64_t end = clock_mono_ns() + 60 * CLOCK_SEC; !os_proc_has_env(pid, "OTHER=1");) {
        cr_assert(clock_mono_ns() < end, "the child does not get its environment");
        look_again();
    }
    cr_expect(os_proc_has_env(pid, "MAKESPAN_TAG=abc"));
    cr_expect_not(os_proc_has_env(pid, "MAKESPAN_TAG=ab"));
    (void)close(go[1]);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

Test(os, users)
{
    struct os_user user;

    cr_assert_eq(os_user_find("root", &user), 0);
    cr_expect_eq(user.uid, 0);
    cr_assert_eq(os_user_find("4294967", &user), 0);
    cr_expect_eq(user.uid, 4294967);
    cr_expect_eq(user.gid, 4294967);
    cr_expect_eq(os_user_find("no-such-user-here", &user), -ERR_NOTFOUND);
    cr_expect_eq(os_user_find("4294967295", &user), -ERR_NOTFOUND);
}

Test(os, holes_keep_the_size)
{
    char path[256], text[3];
    const char *dir = getenv("TMPDIR");
    struct stat st;
    blkcnt_t blocks;
    int fd, r;
    static char block[65536];

    (void)snprintf(path, sizeof(path), "%s/hole.XXXXXX", dir != NULL ? dir : "/tmp");
    fd = mkstemp(path);
    cr_assert(fd >= 0);
    memset(block, 'x', sizeof(block));
    for (int i = 0; i < 32; i++)
        cr_assert_eq(write(fd, block, sizeof(block)), (ssize_t)sizeof(block));
    cr_assert_eq(fsync(fd), 0);
    cr_assert_eq(fstat(fd, &st), 0);
    blocks = st.st_blocks;
    r = os_punch(fd, 65536, 30 * 65536);
    cr_assert(r == 0 || r == -ERR_UNSUP);
    if (r == 0) {
        cr_assert_eq(fstat(fd, &st), 0);
        cr_expect_eq(st.st_size, 32 * 65536);
        cr_expect(st.st_blocks < blocks / 4, "%ld of %ld", (long)st.st_blocks, (long)blocks);
        cr_assert_eq(pread(fd, text, 1, 65535), 1);
        cr_expect_eq(text[0], 'x');
        cr_assert_eq(pread(fd, text, 1, 65536), 1);
        cr_expect_eq(text[0], '\0');
        cr_assert_eq(pread(fd, text, 1, 31 * 65536), 1);
        cr_expect_eq(text[0], 'x');
    }
    (void)close(fd);
    (void)unlink(path);
}

Test(os, lock_and_file_system)
{
    char kind[64];

    cr_expect_str_eq(os_lock_path(), os_lock_path());
    cr_expect(strcmp(os_lock_path(), "/run/lock/makespan.lock") == 0 ||
              strcmp(os_lock_path(), "/tmp/makespan.lock") == 0);
    cr_assert_eq(os_fs_kind("/proc", kind, sizeof(kind)), 0);
    cr_expect_str_eq(kind, "proc");
    cr_expect(os_fs_kind("/no/such/folder", kind, sizeof(kind)) < 0);
}

Test(facts, a_list_of_keys_and_values)
{
    struct facts facts = FACTS_INIT;
    char *big = malloc(5000);

    cr_assert_eq(facts_set(&facts, "a", "1"), 0);
    cr_assert_eq(facts_set(&facts, "a", "2"), 0);
    cr_assert_eq(facts_set(&facts, "empty", ""), 0);
    cr_assert_eq(facts_printf(&facts, "b", "%d x", 5), 0);
    cr_assert_eq(facts_set(&facts, "c", "tab\there \xff\xc3"), 0);
    cr_expect_eq(facts.count, 3);
    cr_expect_str_eq(facts_get(&facts, "a"), "2");
    cr_expect_str_eq(facts_get(&facts, "b"), "5 x");
    cr_expect_str_eq(facts_get(&facts, "c"), "tab?here ??");
    cr_expect_null(facts_get(&facts, "empty"));
    cr_assert(big != NULL);
    /* The cut at 1024 bytes falls into a character of three. */
    memset(big, 'y', 1022);
    memcpy(big + 1022, "\xe2\x82\xac and more", 12);
    big[1034] = '\0';
    cr_assert_eq(facts_set(&facts, "d", big), 0);
    cr_expect_eq(strlen(facts_get(&facts, "d")), 1022);
    cr_expect(str_is_utf8(facts_get(&facts, "d"), 1022));
    free(big);
    for (int i = 0; i < FACTS_MAX - 4; i++) {
        char key[32];

        (void)snprintf(key, sizeof(key), "key%d", i);
        cr_assert_eq(facts_set(&facts, key, "v"), 0);
    }
    cr_expect_eq(facts_set(&facts, "one-more", "v"), -ERR_LIMIT);
    cr_expect_eq(facts_set(&facts, "a", "3"), 0);
    facts_fini(&facts);
    cr_expect_eq(facts.count, 0);
}

Test(facts, what_is_unknown_is_absent)
{
    struct facts facts = FACTS_INIT;
    struct os_cpus cpus = {.online = 4,
                           .affinity = 4,
                           .quota_milli = -1,
                           .sockets = -1,
                           .cores = -1,
                           .threads = 4,
                           .numa = -1};
    struct os_limits limits = {.processes = OS_NO_LIMIT,
                               .files = 64,
                               .stack = -1,
                               .core = 0,
                               .pids = 100,
                               .memory = OS_NO_LIMIT};
    struct facts_from from = {.cpus = &cpus, .limits = &limits, .compiler = "cc (x) 12"};

    facts_build(&facts, &from);
    cr_expect_str_eq(facts_get(&facts, "cpus.usable"), "4");
    cr_expect_str_eq(facts_get(&facts, "cpus.usable_milli"), "4000");
    cr_expect_null(facts_get(&facts, "cpus.quota"));
    cr_expect_null(facts_get(&facts, "cpus.sockets"));
    cr_expect_null(facts_get(&facts, "memory.total"));
    cr_expect_str_eq(facts_get(&facts, "limit.processes"), "unlimited");
    cr_expect_str_eq(facts_get(&facts, "limit.files"), "64");
    cr_expect_str_eq(facts_get(&facts, "limit.core"), "0", "nought is a number");
    cr_expect_null(facts_get(&facts, "limit.stack"));
    cr_expect_str_eq(facts_get(&facts, "limit.pids"), "100");
    cr_expect_str_eq(facts_get(&facts, "compiler"), "cc (x) 12");
    facts_fini(&facts);
}

Test(facts, of_this_host)
{
    static const char *const must[] = {
        "cpus.online", "cpus.usable", "cpus.usable_milli", "memory.total", "os.name",
        "os.release",  "kernel",      "limit.files",       "cgroup",       "worker.version"};
    struct facts facts = FACTS_INIT;

    os_facts(&facts, "/tmp", NULL, "follow", "1.2");
    for (size_t i = 0; i < ARRAY_LEN(must); i++)
        cr_expect_not_null(facts_get(&facts, must[i]), "%s", must[i]);
    cr_expect_null(facts_get(&facts, "compiler"));
    facts_fini(&facts);
}
