/* daemon_test.c: to the background and back with a verdict, readiness, the pid file, the limit of descriptors. */
#include "common/daemon.h"

#include "common/diag.h"
#include "common/err.h"
#include "tests/harness/place.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the daemon does once it is in the background. `report` is a pipe back to the test. */
typedef void daemon_f(int ready_fd, int report);

/* Starts a program that goes to the background; the parent's exit status. */
static int launch(daemon_f *f, int report)
{
    int status = -1;
    pid_t pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        int ready_fd = -1;
        if (daemon_start(&ready_fd, NULL) != 0) {
            _exit(99);
        }
        f(ready_fd, report);
        _exit(0);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void say(int report, const char *text)
{
    if (write(report, text, strlen(text)) != (ssize_t)strlen(text)) {
        _exit(98);
    }
}

static const char *hear(int fd)
{
    static char text[200];
    size_t len = 0;
    ssize_t n;
    while ((n = read(fd, text + len, sizeof(text) - 1 - len)) > 0) {
        len += (size_t)n;
    }
    text[len] = '\0';
    return text;
}

static void becomes_ready(int ready_fd, int report)
{
    struct stat in;
    struct stat out;
    struct stat null;
    say(report, getsid(0) == getpid() ? "session " : "no session ");
    daemon_ready(ready_fd);
    if (fstat(0, &in) == 0 && fstat(1, &out) == 0 && stat("/dev/null", &null) == 0 && in.st_rdev == null.st_rdev &&
        out.st_rdev == null.st_rdev) {
        say(report, "detached ");
    }
    say(report, fcntl(ready_fd, F_GETFD) == -1 ? "closed" : "open");
}

Test(daemon, the_parent_leaves_when_the_child_is_ready)
{
    int p[2];
    cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
    cr_assert_eq(launch(becomes_ready, p[1]), 0);
    close(p[1]);
    cr_assert_str_eq(hear(p[0]), "session detached closed");
}

static void fails(int ready_fd, int report)
{
    (void)ready_fd;
    (void)report;
    _exit(64);
}

static void ends_without_a_word(int ready_fd, int report)
{
    (void)ready_fd;
    (void)report;
    _exit(0);
}

static void is_killed(int ready_fd, int report)
{
    (void)ready_fd;
    (void)report;
    raise(SIGKILL);
}

Test(daemon, the_parent_has_the_verdict_of_a_child_that_ends)
{
    cr_assert_eq(launch(fails, -1), 64);
    cr_assert_eq(launch(ends_without_a_word, -1), 3, "never ready is no success");
    cr_assert_eq(launch(is_killed, -1), 3);
}

static void waits_before_ready(int ready_fd, int report)
{
    char c;
    /* `report` is a socket here: the test lets the child go on */
    say(report, "x");
    if (read(report, &c, 1) != 1) {
        _exit(97);
    }
    daemon_ready(ready_fd);
}

Test(daemon, the_parent_waits_until_then)
{
    int s[2];
    char c;
    int status;
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
    pid_t pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        _exit(launch(waits_before_ready, s[1]));
    }
    cr_assert_eq(read(s[0], &c, 1), 1);
    cr_assert_eq(waitpid(pid, &status, WNOHANG), 0, "the child runs and is not ready");
    cr_assert_eq(write(s[0], "x", 1), 1);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0);
}

static int listen_at(const char *path, size_t n)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    memcpy(address.sun_path, path, n);
    cr_assert_eq(bind(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)), 0);
    return fd;
}

static void assert_told(int fd)
{
    char text[64] = "";
    cr_assert_gt(recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT), 0);
    cr_assert_str_eq(text, "READY=1");
    cr_assert_eq(recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT), -1, "once");
}

Test(daemon, readiness_reaches_the_service_manager)
{
    char dir[80];
    char path[108];
    char name[64];
    struct stat before;
    struct stat after;
    place_new_dir(dir, sizeof(dir), "daemon_test");
    snprintf(path, sizeof(path), "%s/notify", dir);
    int fd = listen_at(path, strlen(path) + 1);
    setenv("NOTIFY_SOCKET", path, 1);
    cr_assert_eq(fstat(0, &before), 0);
    daemon_ready(-1);
    assert_told(fd);
    cr_assert_eq(fstat(0, &after), 0);
    cr_assert(before.st_ino == after.st_ino && before.st_dev == after.st_dev, "in the foreground nothing is detached");
    close(fd);
    unlink(path);
    daemon_ready(-1); /* nobody listens: no harm */

    int n = snprintf(name, sizeof(name), "@makespan-daemon-test-%ld", (long)getpid());
    setenv("NOTIFY_SOCKET", name, 1);
    name[0] = '\0';
    fd = listen_at(name, (size_t)n);
    daemon_ready(-1);
    assert_told(fd);
    close(fd);
    rmdir(dir);
}

Test(daemon, a_notification_descriptor_gets_a_newline)
{
    int p[2];
    cr_assert_eq(pipe(p), 0);
    daemon_ready(p[1]);
    cr_assert_eq(fcntl(p[1], F_GETFD), -1);
    cr_assert_str_eq(hear(p[0]), "\n");
}

Test(daemon, pid_file)
{
    char dir[80];
    char path[108];
    char want[200];
    int p[2];
    struct diag *diag = diag_new(4);
    place_new_dir(dir, sizeof(dir), "daemon_test");
    snprintf(path, sizeof(path), "%s/pid", dir);
    cr_assert_eq(pipe(p), 0);
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    cr_assert_eq(write(fd, "1234567890123\n", 14), 14); /* left by one that crashed */
    close(fd);
    pid_t pid = fork();
    if (pid == 0) {
        say(p[1], daemon_pidfile(path, NULL) == 0 ? "y" : "n");
        for (;;) {
            pause();
        }
    }
    char c = 0;
    cr_assert_eq(read(p[0], &c, 1), 1);
    cr_assert_eq(c, 'y');
    FILE *f = fopen(path, "r");
    long written = 0;
    cr_assert_eq(fscanf(f, "%ld", &written), 1);
    fclose(f);
    cr_assert_eq(written, pid);
    cr_assert_eq(daemon_pidfile(path, diag), -ERR_BUSY);
    snprintf(want, sizeof(want), "%s is held by process %ld: it runs already", path, (long)pid);
    cr_assert_str_eq(diag_first(diag), want);
    kill(pid, SIGKILL);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
    cr_assert_eq(daemon_pidfile(path, NULL), 0, "a dead one holds nothing");
    struct stat st;
    cr_assert_eq(stat(path, &st), 0);
    snprintf(want, sizeof(want), "%ld\n", (long)getpid());
    cr_assert_eq((size_t)st.st_size, strlen(want), "nothing is left of the longer one before");
    cr_assert_eq(unlink(path), 0);

    diag_clear(diag);
    cr_assert_eq(symlink("/tmp/nothing", path), 0);
    cr_assert_eq(daemon_pidfile(path, diag), -ERR_INVAL);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_assert_eq(daemon_pidfile(path, diag), -ERR_INVAL);
    cr_assert_eq(unlink(path), 0);
    rmdir(dir);
    cr_assert_eq(daemon_pidfile(path, diag), -ERR_NOTFOUND);
    cr_assert_eq(diag_errors(diag), 3);
    diag_free(&diag);
}

Test(daemon, the_limit_of_descriptors)
{
    struct rlimit limit;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 64;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    cr_assert_eq(daemon_max_files(), limit.rlim_max);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    cr_assert_eq(limit.rlim_cur, limit.rlim_max);
    cr_assert_eq(daemon_max_files(), limit.rlim_max);
}
