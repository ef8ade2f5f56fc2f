/* os.h: questions to the operating system, each one thin call. A seam: the simulation replaces
 * this module.
 *
 * Owns: what is asked of this host. The texts that the system gives are read by the pure parsers
 * of parse_*.h. os_linux.c answers here; os_generic.c answers for systems without a file of
 * their own and says "unknown" where POSIX has no answer. Functions return 0 or a negative code:
 * -ERR_UNSUP where the system has no such thing. Those that may be called in the timed window
 * say so: they allocate nothing. */
#ifndef MAKESPAN_WORKER_OS_OS_H
#define MAKESPAN_WORKER_OS_OS_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OS_TEXT_MAX 256

/* -1: unknown, everywhere below; 0 is a number. */
struct os_cpus {
    int32_t online;   /* logical CPUs that the kernel runs on */
    int32_t affinity; /* of them, those that this process may use */
    /* CPU time that the control group allows, in thousandths of a CPU; -1: no quota */
    int64_t quota_milli;
    int32_t sockets;
    int32_t cores;           /* physical, of all sockets */
    int32_t threads;         /* hardware threads of all cores */
    int32_t numa;            /* memory nodes */
    char model[OS_TEXT_MAX]; /* of the first CPU, "" unknown */
};
int os_cpus(struct os_cpus *out) MUST_CHECK;
/* Usable CPUs in thousandths: the least of affinity (or online) and quota, at least 1. Pure. */
int64_t os_cpus_usable_milli(const struct os_cpus *cpus);
/* The same as a whole number, rounded up, at least 1: what shares of the job axis refer to, and
 * NCPU. Pure. */
int32_t os_cpus_usable(const struct os_cpus *cpus);

/* Bytes. For the timed window. */
struct os_memory {
    int64_t total;
    int64_t available;
    int64_t swap_total;
    int64_t swap_free;
};
int os_memory(struct os_memory *out) MUST_CHECK;

/* Texts are "" when unknown. */
struct os_ident {
    char name[OS_TEXT_MAX];    /* "Linux" */
    char release[OS_TEXT_MAX]; /* of the kernel */
    char version[OS_TEXT_MAX]; /* of the kernel: build number and date */
    char machine[OS_TEXT_MAX]; /* architecture */
    char system[OS_TEXT_MAX];  /* the distribution: "Debian GNU/Linux 12 (bookworm)" */
    char hostname[OS_TEXT_MAX];
    /* name, release, version and machine in one line: the identity of the running kernel */
    char kernel[4 * OS_TEXT_MAX];
    char boot_id[65];    /* one boot of one machine */
    char machine_id[65]; /* clones share it */
    char clock_source[OS_TEXT_MAX];
};
int os_ident(struct os_ident *out) MUST_CHECK;

/* Soft limits of this process, and those of its control groups (the least on the way up).
 * OS_NO_LIMIT: unlimited; -1: unknown. */
#define OS_NO_LIMIT INT64_MAX
struct os_limits {
    int64_t processes;
    int64_t files;
    int64_t stack;  /* bytes */
    int64_t core;   /* bytes */
    int64_t pids;   /* of the control groups */
    int64_t memory; /* bytes, of the control groups */
};
int os_limits(struct os_limits *out) MUST_CHECK;

/* For the timed window. */
struct os_load {
    int64_t milli[3]; /* load averages of 1, 5 and 15 minutes in thousandths */
    int64_t running;  /* runnable threads now; -1: unknown */
};
int os_load(struct os_load *out) MUST_CHECK;

/* CPU time of the whole machine since boot, nanoseconds; the steps are those of the kernel's
 * tick. -1: unknown. For the timed window. */
struct os_ticks {
    int64_t user; /* nice included, guests included */
    int64_t system;
    int64_t idle;
    int64_t iowait;
    int64_t irq; /* hard and soft interrupts */
    int64_t steal;
};
int os_ticks(struct os_ticks *out) MUST_CHECK;

/* Pages moved since boot; -1: unknown. For the timed window. */
struct os_paging {
    int64_t swap_in;
    int64_t swap_out;
};
int os_paging(struct os_paging *out) MUST_CHECK;

/* Time that at least one task waited for a resource, since boot, nanoseconds. -ERR_UNSUP where
 * the kernel keeps none. For the timed window. */
enum os_pressure { OS_PRESSURE_CPU, OS_PRESSURE_MEMORY, OS_PRESSURE_IO };
int os_pressure(enum os_pressure what, int64_t *some_ns) MUST_CHECK;

/* CPU time of this process, all threads, without its children. For the timed window. */
struct os_usage {
    int64_t user_ns;
    int64_t sys_ns;
    int64_t max_rss_bytes;
    int64_t major_faults;
};
int os_self_usage(struct os_usage *out) MUST_CHECK;

bool os_is_root(void);
uint32_t os_uid(void);
uint32_t os_gid(void);
int64_t os_pid(void);
struct os_user {
    uint32_t uid;
    uint32_t gid;
};
/* By name, or by number when the name is digits alone. -ERR_NOTFOUND. */
int os_user_find(const char *name, struct os_user *out) MUST_CHECK;
/* Gives a file or folder, not what a link points to, to a user. */
int os_chown(const char *path, uint32_t uid, uint32_t gid) MUST_CHECK;

/* One process. */
struct os_proc {
    int64_t pid;
    int64_t ppid;
    int64_t pgid;
    int64_t sid;
    /* the later started has the larger number, or an equal one; unit of the system */
    int64_t start;
    int64_t cpu_ns; /* user and system */
    bool kernel;    /* a thread of the kernel */
    bool zombie;    /* ended, not yet waited for */
    char name[32];  /* as the system shows it: chosen by the program, any bytes but NUL */
};
/* Calls f for every process that this one can see; f returns 0 to go on, other values end the
 * walk and are returned. Processes may end and begin meanwhile. -ERR_UNSUP where they cannot be
 * listed. */
typedef int os_proc_f(const struct os_proc *proc, void *arg);
int os_procs(os_proc_f *f, void *arg) MUST_CHECK;
/* -ERR_NOTFOUND when it is gone. For the timed window. */
int os_proc_get(int64_t pid, struct os_proc *out) MUST_CHECK;
/* Whether its real, effective or saved user is this one; false when it is gone. */
bool os_proc_is_of(int64_t pid, uint32_t uid);
/* Whether the process was started with NAME=VALUE in its environment; false when that cannot be
 * read. */
bool os_proc_has_env(int64_t pid, const char *name_value);
/* -ERR_NOTFOUND when it is gone, -ERR_PERM when it may not be. */
int os_kill(int64_t pid, int signal) MUST_CHECK;

/* Where control groups are mounted and which of them is this process's own. */
struct os_cgroups {
    char v2[1024];      /* folder of this process's own group, "" when there is no such hierarchy */
    char cpuacct[1024]; /* the same of the older hierarchies, one a controller */
    char memory[1024];
    char freezer[1024];
    char pids[1024];
    char cpu[1024];
};
int os_cgroups(struct os_cgroups *out) MUST_CHECK;

/* The file on which the measurements of this machine exclude each other: always the same text on
 * one machine. */
const char *os_lock_path(void);
/* Name of the file system that holds path ("ext4"), a number in hex when unknown. */
int os_fs_kind(const char *path, char *dst, size_t room) MUST_CHECK;
/* Gives the bytes from offset on back to the file system: they read as zeros, the size stays.
 * -ERR_UNSUP where files have no holes. */
int os_punch(int fd, uint64_t offset, uint64_t length) MUST_CHECK;
/* Owner of an open file changed: for the output of a build. */
int os_fd_chown(int fd, uint32_t uid, uint32_t gid) MUST_CHECK;
/* This process's environment, NAME=VALUE, NULL at the end; borrowed. */
char *const *os_environ(void);

#endif
