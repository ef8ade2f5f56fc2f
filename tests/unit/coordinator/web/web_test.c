/* web_test.c: the dashboard's process is forked with its end of a socket pair and ends with the coordinator. */
#include "coordinator/web/web.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Sends back what it reads until the other end is closed. */
static int echo(int fd, void *arg)
{
    char bytes[64];
    ssize_t n;

    while ((n = read(fd, bytes, sizeof bytes)) > 0)
        if (write(fd, bytes, (size_t)n) != n)
            return 99;
    return *(const int *)arg;
}

Test(web, the_pair_carries_bytes_both_ways_and_the_child_ends_with_it)
{
    struct web *web;
    int status = 7;
    char bytes[8] = "";
    struct pollfd p;

    cr_assert_eq(web_fork(echo, &status, &web, NULL), 0);
    cr_expect(web_pid(web) > 0);
    cr_expect((fcntl(web_fd(web), F_GETFL) & O_NONBLOCK) != 0);
    cr_expect((fcntl(web_fd(web), F_GETFD) & FD_CLOEXEC) != 0);
    cr_assert_eq(write(web_fd(web), "hello", 5), 5);
    p = (struct pollfd){.fd = web_fd(web), .events = POLLIN};
    cr_assert_eq(poll(&p, 1, 10000), 1);
    cr_assert_eq(read(web_fd(web), bytes, sizeof bytes), 5);
    cr_expect_eq(memcmp(bytes, "hello", 5), 0);
    cr_expect_eq(web_free(&web), 7);
    cr_expect(web == NULL);
}

static int die(int fd, void *arg)
{
    (void)fd;
    (void)arg;
    raise(SIGKILL);
    return 0;
}

Test(web, a_child_that_was_killed_is_told_by_its_signal)
{
    struct web *web;

    cr_assert_eq(web_fork(die, NULL, &web, NULL), 0);
    cr_expect_eq(web_free(&web), 128 + SIGKILL);
    cr_expect_eq(web_free(&web), 0, "freeing nothing is fine");
}
