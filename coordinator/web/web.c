/* web.c: forks the dashboard's process with its socket pair. Serves nothing itself. */
#include "coordinator/web/web.h"

#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct web {
    int fd;
    pid_t pid;
};

static int prepare(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        return -1;
    return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

int web_fork(web_child_f *f, void *arg, struct web **out, struct diag *diag)
{
    int pair[2];
    pid_t pid;

    *out = NULL;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
        return diag_error(diag, err_from_errno(errno), "no socket pair for the dashboard: %s", strerror(errno));
    if (prepare(pair[0]) < 0 || fcntl(pair[1], F_SETFD, FD_CLOEXEC) < 0 || (pid = fork()) < 0) {
        int saved = errno;

        close(pair[0]);
        close(pair[1]);
        return diag_error(diag, err_from_errno(saved), "the dashboard's process cannot be started: %s", strerror(saved));
    }
    if (pid == 0) {
        int status;

        close(pair[0]);
        status = f(pair[1], arg);
        close(pair[1]);
        _exit(status);
    }
    close(pair[1]);
    *out = mem_xzalloc(sizeof **out);
    (*out)->fd = pair[0];
    (*out)->pid = pid;
    return 0;
}

int web_fd(const struct web *web)
{
    return web->fd;
}

int64_t web_pid(const struct web *web)
{
    return web->pid;
}

int web_free(struct web **web)
{
    int status = 0;

    if (*web == NULL)
        return 0;
    close((*web)->fd);
    while (waitpid((*web)->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    free(*web);
    *web = NULL;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
