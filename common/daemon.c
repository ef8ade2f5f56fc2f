/* daemon.c: the start of a daemon: to the background, its pid file, and telling who waits that it is ready. Owns nothing afterwards but the pid file's
 * descriptor, which stays open, and with it the lock, as long as the process lives. */
#include "common/daemon.h"

#include "common/compat/compat.h"
#include "common/diag.h"
#include "common/err.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

#define EXIT_TROUBLE 3

/* The parent's part: waits for the newline of daemon_ready() or the child's end, and ends accordingly. */
NORETURN static void wait_for_verdict(int fd, pid_t child)
{
    char c;
    ssize_t n;
    int status = 0;
    do {
        n = read(fd, &c, 1);
    } while (n < 0 && errno == EINTR);
    if (n == 1) {
        _exit(0);
    }
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            _exit(EXIT_TROUBLE);
        }
    }
    /* it never said that it was ready: an exit status of 0 would tell a lie */
    _exit(WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : EXIT_TROUBLE);
}

int daemon_start(int *ready_fd, struct diag *diag)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return diag_error(diag, err_from_errno(errno), "cannot go to the background: %s", strerror(errno));
    }
    fflush(NULL); /* or the child would print it once more */
    pid_t pid = fork();
    if (pid < 0) {
        int e = errno;
        close(fds[0]);
        close(fds[1]);
        return diag_error(diag, err_from_errno(e), "cannot go to the background: %s", strerror(e));
    }
    if (pid > 0) {
        close(fds[1]);
        wait_for_verdict(fds[0], pid);
    }
    close(fds[0]);
    if (setsid() < 0) {
        return diag_error(diag, err_from_errno(errno), "cannot leave the terminal: %s", strerror(errno));
    }
    *ready_fd = fds[1];
    return 0;
}

/* Tells the service manager, as sd_notify(3) describes it. Nobody waits for an answer: a manager that cannot be reached times the start out, and says so. */
static void tell_manager(void)
{
    static const char text[] = "READY=1";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    size_t n = path != NULL ? strlen(path) : 0;
    if (n < 2 || n >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@')) {
        return;
    }
    memcpy(address.sun_path, path, n);
    if (path[0] == '@') {
        address.sun_path[0] = '\0'; /* the abstract name space */
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return;
    }
    ssize_t sent = sendto(fd, text, sizeof(text) - 1, MSG_NOSIGNAL, (const struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
    (void)sent;
    close(fd);
}

static void detach(void)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return; /* a system without /dev/null: what was inherited stays */
    }
    dup2(fd, STDIN_FILENO);
    dup2(fd, STDOUT_FILENO);
    if (fd > STDERR_FILENO) {
        close(fd);
    }
}

void daemon_ready(int ready_fd)
{
    tell_manager();
    if (ready_fd < 0) {
        return;
    }
    detach();
    ssize_t n;
    do {
        n = write(ready_fd, "\n", 1); /* what s6 expects on a notification descriptor, too */
    } while (n < 0 && errno == EINTR);
    close(ready_fd);
}

/* Says who holds the file: by the lock, or by what the file says where the lock came and went meanwhile. */
static int say_busy(int fd, const char *path, struct diag *diag)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK && lock.l_pid > 0) {
        return diag_error(diag, ERR_BUSY, "%s is held by process %ld: it runs already", path, (long)lock.l_pid);
    }
    return diag_error(diag, ERR_BUSY, "%s is held by another process", path);
}

int daemon_pidfile(const char *path, struct diag *diag)
{
    char text[32];
    struct stat st;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (fd < 0) {
        return diag_error(diag, err_from_errno(errno), "cannot open %s: %s", path, strerror(errno));
    }
    if (compat_stat(fd, NULL, 0, &st, NULL) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return diag_error(diag, ERR_INVAL, "%s is not a regular file", path);
    }
    /* A lock of the process: a child does not have it, and it ends with the process whatever becomes of its children. */
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_SETLK, &lock) != 0) {
        int e = errno;
        int rc = e == EACCES || e == EAGAIN
                     ? say_busy(fd, path, diag)
                     : diag_error(diag, err_from_errno(e), "cannot lock %s: %s", path, strerror(e));
        close(fd);
        return rc;
    }
    int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) != n) {
        int e = errno;
        close(fd);
        return diag_error(diag, err_from_errno(e), "cannot write %s: %s", path, strerror(e));
    }
    return 0; /* fd stays open */
}

unsigned long daemon_max_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 0;
    }
    if (limit.rlim_cur != limit.rlim_max) {
        struct rlimit raised = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
            limit = raised;
        }
    }
    return limit.rlim_cur > ULONG_MAX ? ULONG_MAX : (unsigned long)limit.rlim_cur;
}
