/* SPDX-License-Identifier: BSD-3-Clause */
#include "guard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "boot/protocol.h"
#include "children.h"
#include "front.h"
#include "plan.h"

void guard_block_signals(sigset_t *set_out)
{
    static const int taken[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGUSR1, SIGUSR2};
    struct sigaction old;
    sigemptyset(set_out);
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        bool is_ignored = sigaction(taken[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN; /* nohup */
        if (!is_ignored || taken[i] == SIGCHLD)
            sigaddset(set_out, taken[i]);
    }
    sigaddset(set_out, GUARD_GONE_SIGNAL);
    signal(SIGCHLD, SIG_DFL); /* if ignored, the kernel would reap for us */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file beyond ulimit -f becomes an errno, which can be reported */
    signal(SIGTTIN, SIG_IGN);
    signal(SIGTTOU, SIG_IGN);
    sigprocmask(SIG_BLOCK, set_out, NULL);
}

/* The command line that ps shows, in the memory where it stands. */
static void rename_process(const char *name, int argc, char **argv)
{
    size_t bytes = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) - argv[0]);
    prctl(PR_SET_NAME, name);
    memset(argv[0], 0, bytes);
    memcpy(argv[0], name, strnlen(name, bytes));
}

/* quoit-guard. Stops and continues are no business of its own: it is never stopped but from outside. */
static void __attribute__((noreturn)) watch_over(pid_t child, const sigset_t *set)
{
    for (;;) {
        int number = sigwaitinfo(set, NULL), status = 0;
        if (number < 0 && errno != EINTR) { /* it would be asked again at once, for ever */
            quoit_say("cannot wait for signals: %s; the job was ended [Q0219]", strerror(errno));
            children_sweep();
            _exit(STATUS_CANNOT_START);
        }
        if (number > 0 && number != SIGCHLD && number != SIGTSTP && number != SIGCONT)
            kill(child, number);
        for (pid_t pid; number == SIGCHLD && (pid = waitpid(-1, &status, WNOHANG)) > 0;)
            if (pid == child)
                children_end_as(status);
    }
}

/* A process below this one, which watches over it from now on; 0 in the child, -1 with errno. */
static pid_t descend(void)
{
    pid_t guard = getpid();
    children_adopt(); /* not inherited */
    pid_t child = fork();
    if (child > 0)
        setpgid(child, child);
    if (child != 0)
        return child;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, GUARD_GONE_SIGNAL);
    if (getppid() != guard)
        _exit(128 + SIGKILL);
    return 0;
}

static void close_if_open(int fd)
{
    if (fd >= 0)
        close(fd);
}

void guard_continue_front(const struct guard *guard)
{
    if (guard->front_pidfd < 0 || syscall(SYS_pidfd_send_signal, guard->front_pidfd, SIGCONT, NULL, 0) != 0)
        kill(guard->front_pid, SIGCONT);
}

bool guard_start(int argc, char **argv, int in_fd, int out_fd, struct guard *guard_out)
{
    sigset_t set;
    int ends[2];
    guard_block_signals(&set);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    *guard_out = (struct guard){.group = getpgrp(),
                                .front_fd = ends[1],
                                .front_pid = getpid(),
                                .front_pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0)};
    fflush(NULL);
    pid_t child = descend();
    if (child > 0) {
        close(ends[1]);
        close_if_open(out_fd); /* else oshrun would not see the agent close it */
        front_run(&(struct front){.child = child, .job_fd = ends[0], .conversation_fd = in_fd, .taken = &set});
    }
    close(ends[0]);
    if (child < 0)
        return false;
    child = descend();
    if (child > 0) {
        close(ends[1]);
        close_if_open(in_fd);
        close_if_open(out_fd);
        rename_process("quoit-guard", argc, argv);
        watch_over(child, &set);
    }
    if (child < 0)
        return false;
    prctl(PR_SET_NAME, QUOIT_BOOT_JOB_PROCESS);
    children_adopt();
    return true;
}
