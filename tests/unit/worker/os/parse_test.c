/* parse_test.c: what the texts of Linux's /proc, /sys and /etc mean, from recorded ones. */
#include "common/buf.h"
#include "common/err.h"
#include "common/fileio.h"
#include "worker/os/os.h"
#include "worker/os/parse_cgroup.h"
#include "worker/os/parse_cpu.h"
#include "worker/os/parse_proc.h"
#include "worker/os/parse_text.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text of a recorded file; the caller frees it. */
static char *golden(const char *name)
{
    char path[256];
    FILE *f;
    char *text = calloc(1, 65536);

    (void)snprintf(path, sizeof(path), "tests/golden/os/%s", name);
    f = fopen(path, "r");
    cr_assert(f != NULL && text != NULL, "%s", path);
    cr_assert(fread(text, 1, 65535, f) > 0, "%s", path);
    (void)fclose(f);
    return text;
}

Test(parse, processors_of_many_shapes)
{
    static const struct {
        const char *file;
        int32_t processors, sockets, cores;
        const char *model;
    } row[] = {
        {"cpuinfo-quad", 4, 1, 4, "Intel(R) Core(TM)2 Quad CPU    Q6600  @ 2.40GHz"},
        {"cpuinfo-48", 48, 2, 24, "Intel(R) Xeon(R) CPU E5-2690 v3 @ 2.60GHz"},
        {"cpuinfo-ppro", 2, 2, 2, "Pentium Pro"},
        {"cpuinfo-ppro-new", 2, 2, 2, "Pentium Pro"},
        {"cpuinfo-arm", 4, -1, -1, "ARMv7 Processor rev 4 (v7l)"},
        {"cpuinfo-armv5", -1, -1, -1, "ARM926EJ-S rev 5 (v5l)"},
        {"cpuinfo-arm64", 3, -1, -1, ""},
    };

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        char *text = golden(row[i].file);
        struct parse_cpu cpu;

        parse_cpu_info(text, &cpu);
        cr_expect_eq(cpu.processors, row[i].processors, "%s: %d", row[i].file, cpu.processors);
        cr_expect_eq(cpu.sockets, row[i].sockets, "%s: %d", row[i].file, cpu.sockets);
        cr_expect_eq(cpu.cores, row[i].cores, "%s: %d", row[i].file, cpu.cores);
        cr_expect_str_eq(cpu.model, row[i].model, "%s", row[i].file);
        free(text);
    }
}

Test(parse, processors_of_nonsense)
{
    struct parse_cpu cpu;

    parse_cpu_info("", &cpu);
    cr_expect_eq(cpu.processors, -1);
    parse_cpu_info("physical id : 4\ncore id: 3\n:\nprocessor", &cpu);
    cr_expect_eq(cpu.processors, -1);
    cr_expect_eq(cpu.sockets, -1);
}

Test(parse, cpu_lists)
{
    cr_expect_eq(parse_cpu_list("0-3,8\n"), 5);
    cr_expect_eq(parse_cpu_list("0"), 1);
    cr_expect_eq(parse_cpu_list("0-1\n"), 2);
    cr_expect_eq(parse_cpu_list(""), -1);
    cr_expect_eq(parse_cpu_list("3-1"), -1);
    cr_expect_eq(parse_cpu_list("0-"), -1);
    cr_expect_eq(parse_cpu_list("a"), -1);
    cr_expect_eq(parse_cpu_list("0,,1"), -1);
}

Test(parse, places_that_are_not_known)
{
    struct parse_cpu_place place[] = {{0, 0}, {0, 1}, {1, 0}, {0, 0}};
    int32_t sockets, cores;

    parse_cpu_places(place, 4, &sockets, &cores);
    cr_expect_eq(sockets, 2);
    cr_expect_eq(cores, 3);
    place[2].package = -1;
    parse_cpu_places(place, 4, &sockets, &cores);
    cr_expect_eq(sockets, -1);
    cr_expect_eq(cores, -1);
}

Test(parse, usable_processors_by_affinity_and_quota)
{
    struct os_cpus cpus = {.online = 8, .affinity = 3, .quota_milli = -1};

    cr_expect_eq(os_cpus_usable_milli(&cpus), 3000);
    cr_expect_eq(os_cpus_usable(&cpus), 3);
    cpus.quota_milli = 1500;
    cr_expect_eq(os_cpus_usable_milli(&cpus), 1500);
    cr_expect_eq(os_cpus_usable(&cpus), 2, "rounded up");
    cpus.quota_milli = 100;
    cr_expect_eq(os_cpus_usable(&cpus), 1);
    cpus.quota_milli = 90000;
    cr_expect_eq(os_cpus_usable(&cpus), 3);
    cpus.affinity = -1;
    cpus.quota_milli = -1;
    cr_expect_eq(os_cpus_usable(&cpus), 8);
    cpus.online = -1;
    cr_expect_eq(os_cpus_usable(&cpus), 1, "at least one");
}

Test(parse, memory)
{
    char *text = golden("meminfo");
    struct os_memory m;

    cr_assert_eq(parse_proc_meminfo(text, &m), 0);
    cr_expect_eq(m.total, INT64_C(65794964) * 1024);
    cr_expect_eq(m.available, INT64_C(60203256) * 1024);
    cr_expect_eq(m.swap_total, INT64_C(8388604) * 1024);
    cr_expect_eq(m.swap_free, INT64_C(8388348) * 1024);
    free(text);
    text = golden("meminfo-old");
    cr_assert_eq(parse_proc_meminfo(text, &m), 0);
    cr_expect_eq(m.total, INT64_C(62972) * 1024);
    cr_expect_eq(m.available, (INT64_C(4384) + 2184 + 37500) * 1024,
                 "free, buffers and cache where the kernel has no sum");
    free(text);
    cr_expect_eq(parse_proc_meminfo("MemFree: 3 kB\n", &m), -ERR_SYNTAX);
}

Test(parse, time_of_the_machine)
{
    char *text = golden("stat");
    struct os_ticks t;

    cr_assert_eq(parse_proc_stat(text, 100, &t), 0);
    cr_expect_eq(t.user, INT64_C(34738) * 10000000);
    cr_expect_eq(t.system, INT64_C(12901) * 10000000);
    cr_expect_eq(t.idle, INT64_C(291849) * 10000000);
    cr_expect_eq(t.iowait, INT64_C(951) * 10000000);
    cr_expect_eq(t.irq, INT64_C(314) * 10000000);
    cr_expect_eq(t.steal, INT64_C(197) * 10000000);
    free(text);
    text = golden("stat-old");
    cr_assert_eq(parse_proc_stat(text, 100, &t), 0);
    cr_expect_eq(t.user, INT64_C(1166) * 10000000);
    cr_expect_eq(t.iowait, -1, "absent is not 0");
    cr_expect_eq(t.steal, -1);
    free(text);
    cr_expect_eq(parse_proc_stat("cpu0 1 2 3 4\n", 100, &t), -ERR_SYNTAX);
    cr_expect_eq(parse_proc_stat("cpu  1 2\n", 100, &t), -ERR_SYNTAX);
}

Test(parse, load_paging_pressure)
{
    struct os_load load;
    struct os_paging paging;
    int64_t ns;
    char *text = golden("vmstat");

    cr_assert_eq(parse_proc_loadavg("1.15 0.90 12.05 3/104 1146\n", &load), 0);
    cr_expect_eq(load.milli[0], 1150);
    cr_expect_eq(load.milli[1], 900);
    cr_expect_eq(load.milli[2], 12050);
    cr_expect_eq(load.running, 3);
    cr_expect_eq(parse_proc_loadavg("1.15 0.90\n", &load), -ERR_SYNTAX);
    cr_assert_eq(parse_proc_vmstat(text, &paging), 0);
    cr_expect_eq(paging.swap_in, 12);
    cr_expect_eq(paging.swap_out, 4096);
    cr_expect_eq(parse_proc_vmstat("pgpgin 4\n", &paging), -ERR_SYNTAX);
    free(text);
    cr_assert_eq(
        parse_proc_pressure(
            "some avg10=8.25 avg60=6.19 avg300=5.41 total=49451367\nfull avg10=0.00 total=5\n",
            &ns),
        0);
    cr_expect_eq(ns, INT64_C(49451367000));
    cr_expect_eq(parse_proc_pressure("full avg10=0.00 total=5\n", &ns), -ERR_SYNTAX);
    cr_expect_eq(parse_proc_pressure("some avg10=0.00\nfull total=5\n", &ns), -ERR_SYNTAX);
}

Test(parse, a_process_with_a_hostile_name)
{
    char *text = golden("pid-stat");
    struct os_proc p;

    cr_assert_eq(parse_proc_pid_stat(text, 100, &p), 0);
    cr_expect_eq(p.pid, 4711);
    cr_expect_eq(p.ppid, 4700);
    cr_expect_eq(p.pgid, 4699);
    cr_expect_eq(p.sid, 4698);
    cr_expect_eq(p.cpu_ns, INT64_C(2000000000));
    cr_expect_eq(p.start, 987654);
    cr_expect_str_eq(p.name, "a) R (x\n) y");
    cr_expect_not(p.kernel);
    cr_expect_not(p.zombie);
    free(text);
    text = golden("pid-stat-kthread");
    cr_assert_eq(parse_proc_pid_stat(text, 100, &p), 0);
    cr_expect(p.kernel);
    cr_expect_eq(p.cpu_ns, INT64_C(70000000));
    cr_expect_eq(p.ppid, 2);
    free(text);
    cr_assert_eq(
        parse_proc_pid_stat("12 (x) Z 1 12 12 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 5 0 0\n", 100, &p),
        0);
    cr_expect(p.zombie);
    cr_assert_eq(
        parse_proc_pid_stat("12 (x) Z 1 12 12 0 -1 0 0 0 0 0 1 1 0 0 20 0 2 0 5 0 0\n", 100, &p),
        0);
    cr_expect_not(p.zombie, "its other thread lives");
    cr_expect_eq(parse_proc_pid_stat("12 (x", 100, &p), -ERR_SYNTAX);
    cr_expect_eq(parse_proc_pid_stat("12 (x) S 1 2", 100, &p), -ERR_SYNTAX);
    cr_expect_eq(parse_proc_pid_stat("", 100, &p), -ERR_SYNTAX);
}

Test(parse, users_of_a_process)
{
    static const char status[] = "Name:\tUid: 5\nUid:\t1001\t0\t7\t9\nGid:\t44\t44\t44\t44\n";

    cr_expect(parse_proc_status_is_of(status, 1001));
    cr_expect(parse_proc_status_is_of(status, 0));
    cr_expect(parse_proc_status_is_of(status, 7));
    cr_expect_not(parse_proc_status_is_of(status, 9), "the fourth number is of files");
    cr_expect_not(parse_proc_status_is_of(status, 44));
    cr_expect_not(parse_proc_status_is_of(status, 5));
}

Test(parse, environment_block)
{
    static const char block[] = "A=1\0MARK=xy\0B=MARK=x";

    cr_expect(parse_proc_environ_has(block, sizeof(block), "MARK=xy"));
    cr_expect_not(parse_proc_environ_has(block, sizeof(block), "MARK=x"));
    cr_expect_not(parse_proc_environ_has(block, sizeof(block), "ARK=xy"));
    cr_expect(parse_proc_environ_has(block, sizeof(block) - 1, "B=MARK=x"));
    cr_expect_not(parse_proc_environ_has(NULL, 0, "A=1"));
}

Test(parse, control_group_folders)
{
    static const struct {
        const char *self, *mounts, *v2, *cpuacct, *memory, *freezer, *pids;
    } row[] = {
        {"self-cgroup-v2", "mountinfo-v2", "/sys/fs/cgroup/system.slice/makespan-worker.service",
         "", "", "", ""},
        {"self-cgroup-v1", "mountinfo-v1", "", "/sys/fs/cgroup/cpu,cpuacct",
         "/sys/fs/cgroup/memory/box/one", "/sys/fs/cgroup/freezer",
         "/sys/fs/cgroup/pids/system.slice/makespan-worker.service"},
        {"self-cgroup-hybrid", "mountinfo-hybrid",
         "/sys/fs/cgroup/unified/system.slice/makespan-worker.service",
         "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/memory/box/one", "/sys/fs/cgroup/freezer",
         "/sys/fs/cgroup/pids/system.slice/makespan-worker.service"},
        {"self-cgroup-hybrid", "mountinfo-none", "", "", "", "", ""},
        {"self-cgroup-part", "mountinfo-part", "/sys/fs/cgroup/inner", "", "", "", ""},
        {"self-cgroup-v2", "mountinfo-part", "", "", "", "", ""},
        {"self-cgroup-outside", "mountinfo-v2", "", "", "", "", ""},
    };

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        char *self = golden(row[i].self), *mounts = golden(row[i].mounts);
        struct os_cgroups g;

        parse_cgroup_folders(self, mounts, &g);
        cr_expect_str_eq(g.v2, row[i].v2, "%zu: %s", i, g.v2);
        cr_expect_str_eq(g.cpuacct, row[i].cpuacct, "%zu: %s", i, g.cpuacct);
        cr_expect_str_eq(g.cpu, row[i].cpuacct, "%zu: %s", i, g.cpu);
        cr_expect_str_eq(g.memory, row[i].memory, "%zu: %s", i, g.memory);
        cr_expect_str_eq(g.freezer, row[i].freezer, "%zu: %s", i, g.freezer);
        cr_expect_str_eq(g.pids, row[i].pids, "%zu: %s", i, g.pids);
        free(self);
        free(mounts);
    }
}

Test(parse, quotas_and_limits)
{
    int64_t v = 0;

    cr_assert_eq(parse_cgroup_cpu_max("150000 100000\n", &v), 0);
    cr_expect_eq(v, 1500);
    cr_assert_eq(parse_cgroup_cpu_max("max 100000\n", &v), 0);
    cr_expect_eq(v, -1);
    cr_assert_eq(parse_cgroup_cpu_max("399000 100000\n", &v), 0);
    cr_expect_eq(v, 3990, "a fraction, not rounded");
    cr_expect_eq(parse_cgroup_cpu_max("1500\n", &v), -ERR_SYNTAX);
    cr_expect_eq(parse_cgroup_cpu_max("0 0\n", &v), -ERR_SYNTAX);
    cr_assert_eq(parse_cgroup_cfs("-1\n", "100000\n", &v), 0);
    cr_expect_eq(v, -1);
    cr_assert_eq(parse_cgroup_cfs("50000\n", "100000\n", &v), 0);
    cr_expect_eq(v, 500);
    cr_assert_eq(parse_cgroup_max("max\n", &v), 0);
    cr_expect_eq(v, OS_NO_LIMIT);
    cr_assert_eq(parse_cgroup_max("9223372036854771712\n", &v), 0);
    cr_expect_eq(v, OS_NO_LIMIT);
    cr_assert_eq(parse_cgroup_max("512\n", &v), 0);
    cr_expect_eq(v, 512);
    cr_expect_eq(parse_cgroup_max("", &v), -ERR_SYNTAX);
}

Test(parse, processor_time_of_a_group)
{
    int64_t user = 0, sys = 0;
    bool populated = false;

    cr_assert_eq(parse_cgroup_cpu_stat("usage_usec 1891506\nuser_usec 1886481\nsystem_usec 5025\n",
                                       &user, &sys),
                 0);
    cr_expect_eq(user, INT64_C(1886481000));
    cr_expect_eq(sys, INT64_C(5025000));
    cr_expect_eq(parse_cgroup_cpu_stat("usage_usec 1\n", &user, &sys), -ERR_SYNTAX);
    cr_assert_eq(parse_cgroup_cpuacct("1000000007\n", "user 75\nsystem 25\n", &user, &sys), 0);
    cr_expect_eq(user + sys, INT64_C(1000000007), "the exact sum");
    cr_expect(sys >= 249999000 && sys <= 250001000, "%lld", (long long)sys);
    cr_assert_eq(parse_cgroup_cpuacct("5000\n", "user 0\nsystem 0\n", &user, &sys), 0);
    cr_expect_eq(user, 5000);
    cr_expect_eq(sys, 0);
    cr_assert_eq(parse_cgroup_cpuacct("9000000000000000000\n", "user 450000000\nsystem 450000000\n",
                                      &user, &sys),
                 0);
    cr_expect_eq(user + sys, INT64_C(9000000000000000000));
    cr_expect_eq(sys, INT64_C(4500000000000000000));
    cr_assert_eq(parse_cgroup_populated("populated 1\nfrozen 0\n", &populated), 0);
    cr_expect(populated);
    cr_assert_eq(parse_cgroup_populated("populated 0\nfrozen 0\n", &populated), 0);
    cr_expect_not(populated);
}

Test(parse, file_system_of_a_path)
{
    static const struct {
        const char *path, *device, *kind;
    } row[] = {
        {"/var/lib", "8:1", "ext4"},  {"/srv/big disk/work", "8:17", "xfs"},
        {"/srv/big", "8:1", "ext4"},  {"/tmp/x", "0:40", "tmpfs"},
        {"/home/a", "0:99", "btrfs"}, {"/", "8:1", "ext4"},
        {"/tmpfile", "8:1", "ext4"},
    };
    char *mounts = golden("mountinfo-hybrid"), kind[64];

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        cr_assert(parse_mount_kind(mounts, row[i].path, row[i].device, kind, sizeof(kind)), "%s",
                  row[i].path);
        cr_expect_str_eq(kind, row[i].kind, "%s: %s", row[i].path, kind);
    }
    /* The deepest mount wins, wherever it stands. */
    cr_assert(parse_mount_kind("1 0 0:2 / /a rw - tmpfs t rw\n2 0 0:1 / / rw - ext4 d rw\n", "/a/b",
                               "9:9", kind, sizeof(kind)));
    cr_expect_str_eq(kind, "tmpfs");
    cr_expect_not(parse_mount_kind("", "/", "8:1", kind, sizeof(kind)));
    cr_expect_not(parse_mount_kind("1 2 3\n4 5 6 /\n", "/", "8:1", kind, sizeof(kind)));
    free(mounts);
}

Test(parse, names_of_systems_and_users)
{
    char *text = golden("os-release-debian"), value[64];
    struct os_user user;
    uint32_t gid = 0;

    cr_assert(parse_release(text, "PRETTY_NAME", value, sizeof(value)));
    cr_expect_str_eq(value, "Debian GNU/Linux 12 (bookworm)");
    cr_assert(parse_release(text, "ID", value, sizeof(value)));
    cr_expect_str_eq(value, "debian");
    cr_expect_not(parse_release(text, "PRETTY", value, sizeof(value)));
    free(text);
    text = golden("os-release-odd");
    cr_assert(parse_release(text, "PRETTY_NAME", value, sizeof(value)));
    cr_expect_str_eq(value, "O\"dd 1");
    free(text);
    text = golden("passwd");
    cr_assert(parse_passwd(text, "build", &user));
    cr_expect_eq(user.uid, 1001);
    cr_expect_eq(user.gid, 1002);
    cr_expect_not(parse_passwd(text, "buil", &user));
    cr_expect_not(parse_passwd(text, "broken", &user));
    cr_expect_not(parse_passwd(text, "", &user));
    cr_assert(parse_passwd_gid(text, 1001, &gid));
    cr_expect_eq(gid, 1002);
    free(text);
    cr_expect_eq(parse_line("  a b \r\nc", value, sizeof(value)), 3);
    cr_expect_str_eq(value, "a b");
}
