/* SPDX-License-Identifier: BSD-3-Clause */
#include "guard.h"
#include "children.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"

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

/* The child has ended: what descended from it is killed. */
static void __attribute__((noreturn)) finish(int status)
{
    children_sweep();
    if (WIFEXITED(status))
        _exit(WEXITSTATUS(status));
    const char *name = sigabbrev_np(WTERMSIG(status));
    quoit_say("a process of oshrun was killed by SIG%s; the job was ended, status %d [Q0219]", name ? name : "?",
              128 + WTERMSIG(status));
    _exit(128 + WTERMSIG(status));
}

/* After SIGCHLD: the child ended or stopped, or an orphan ended. */
static void look_at(pid_t child)
{
    for (;;) {
        int status = 0;
        pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED);
        if (pid <= 0)
            return;
        if (pid == child && WIFSTOPPED(status))
            raise(SIGSTOP); /* the shell sees oshrun stop, once the whole job has; SIGCONT is forwarded later */
        else if (pid == child)
            finish(status);
    }
}

/* The command line that ps shows, in the memory where it stands. */
static void rename_process(const char *name, int argc, char **argv)
{
    size_t bytes = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) - argv[0]);
    prctl(PR_SET_NAME, name);
    memset(argv[0], 0, bytes);
    memcpy(argv[0], name, strnlen(name, bytes));
}

static void __attribute__((noreturn)) watch_over(pid_t child, const sigset_t *set)
{
    for (;;) {
        int number = sigwaitinfo(set, NULL);
        if (number == SIGCHLD)
            look_at(child);
        else if (number > 0)
            kill(child, number);
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

pid_t guard_start(int argc, char **argv)
{
    sigset_t set;
    guard_block_signals(&set);
    pid_t group = getpgrp();
    fflush(NULL);
    pid_t child = descend();
    if (child > 0)
        watch_over(child, &set);
    if (child < 0)
        return -1;
    child = descend();
    if (child > 0) {
        rename_process("quoit-guard", argc, argv);
        watch_over(child, &set);
    }
    if (child < 0)
        return -1;
    prctl(PR_SET_NAME, "quoit-job");
    children_adopt();
    return group;
}
