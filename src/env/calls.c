/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/calls.h"
#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define KERNEL_SIGSET_BYTES 8
#define ALL                 (QUOIT_CALLS_PE | QUOIT_CALLS_LAUNCHER | QUOIT_CALLS_NETWORK)
#define PROXY               (QUOIT_CALLS_LAUNCHER | QUOIT_CALLS_NETWORK)

/* A try has no effect: its descriptor, pid, option or flags are invalid, or it asks for nothing. */
static const struct row {
    const char *name;
    unsigned users;
    long number;
    long arguments[5];
} rows[] = {
#define CALL(name, users, ...)                                                                                         \
    {                                                                                                                  \
#name, users, SYS_##name,                                                                                      \
        {                                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
    CALL(accept4, QUOIT_CALLS_NETWORK, -1),
    CALL(bind, QUOIT_CALLS_NETWORK, -1),
    CALL(clone, ALL, CLONE_THREAD),
    CALL(clone3, ALL),
    CALL(clock_nanosleep, ALL, CLOCK_MONOTONIC),
    CALL(connect, QUOIT_CALLS_NETWORK, -1),
    CALL(epoll_create1, QUOIT_CALLS_LAUNCHER, -1),
    CALL(epoll_ctl, QUOIT_CALLS_LAUNCHER, -1, EPOLL_CTL_DEL, -1),
    CALL(eventfd2, QUOIT_CALLS_NETWORK, 0, -1),
    CALL(fcntl, ALL, -1),
    CALL(ftruncate, QUOIT_CALLS_LAUNCHER, -1),
    CALL(getrandom, QUOIT_CALLS_NETWORK, 0, 0, -1),
    CALL(getppid, QUOIT_CALLS_LAUNCHER),
    CALL(getsockname, QUOIT_CALLS_NETWORK, -1),
    CALL(getsockopt, QUOIT_CALLS_PE | QUOIT_CALLS_NETWORK, -1),
    CALL(kill, QUOIT_CALLS_LAUNCHER, INT_MAX),
    CALL(listen, QUOIT_CALLS_NETWORK, -1),
    CALL(munmap, ALL, -1),
    CALL(pipe2, QUOIT_CALLS_LAUNCHER, 0, -1),
    CALL(prctl, QUOIT_CALLS_LAUNCHER, -1),
    CALL(recvfrom, PROXY, -1),
    CALL(recvmsg, ALL, -1),
    CALL(rt_sigaction, ALL, -1, 0, 0, KERNEL_SIGSET_BYTES),
    CALL(rt_sigpending, QUOIT_CALLS_LAUNCHER),
    CALL(rt_sigprocmask, ALL, SIG_BLOCK, 0, 0, KERNEL_SIGSET_BYTES),
    CALL(rt_sigtimedwait, QUOIT_CALLS_LAUNCHER),
    CALL(sendmsg, ALL, -1),
    CALL(sendto, QUOIT_CALLS_PE | QUOIT_CALLS_NETWORK, -1),
    CALL(setpgid, QUOIT_CALLS_LAUNCHER, -1, -1),
    CALL(setsockopt, PROXY, -1),
    CALL(signalfd4, QUOIT_CALLS_LAUNCHER, -1, 0, -1),
    CALL(socket, QUOIT_CALLS_NETWORK, -1, -1),
    CALL(socketpair, QUOIT_CALLS_LAUNCHER, -1, -1),
    CALL(wait4, QUOIT_CALLS_LAUNCHER, -1, 0, -1),
#ifdef SYS_dup2 /* not on machines whose C library makes them of newer ones */
    CALL(dup2, QUOIT_CALLS_LAUNCHER, -1, -1),
#endif
#ifdef SYS_epoll_wait
    CALL(epoll_wait, QUOIT_CALLS_LAUNCHER, -1),
#endif
#ifdef SYS_getpgrp
    CALL(getpgrp, QUOIT_CALLS_LAUNCHER),
#endif
#ifdef SYS_poll
    CALL(poll, ALL),
#endif
#undef CALL
};

/* What the kernel itself says of such arguments. */
static bool is_of_the_kernel(long number, int error)
{
    if (number == SYS_clone3 && error == ENOSYS) /* the C library takes clone */
        return true;
    return error == EBADF || error == EINVAL || error == EFAULT || error == ESRCH || error == EAFNOSUPPORT;
}

const char *quoit_calls_refused(unsigned users, int *error_out)
{
    if (prctl(PR_GET_SECCOMP) == 0)
        return NULL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const long *arguments = rows[i].arguments;
        if (!(rows[i].users & users) ||
            syscall(rows[i].number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]) >= 0 ||
            is_of_the_kernel(rows[i].number, errno))
            continue;
        *error_out = errno;
        return rows[i].name;
    }
    return NULL;
}

bool quoit_calls_check(unsigned users)
{
    int error = 0;
    const char *name = quoit_calls_refused(users, &error);
    if (name)
        quoit_say(
            "this process may not use the system call %s (%s), which a job needs: a filter (seccomp) of a container, a "
            "sandbox or a service manager refuses it; allow it there [Q0233]",
            name, strerror(error));
    return name == NULL;
}
