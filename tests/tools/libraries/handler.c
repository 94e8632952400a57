/* SPDX-License-Identifier: BSD-3-Clause */
/* handler.c - a tool that handles crashes, as libSegFault and the crash reporters of large programs: handlers on a
 * stack of their own, installed before main, which print and then let the signal take its course. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char stack[1 << 16];

static void report(int number, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    static const char text[] = "handler: the program crashes\n";
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        _exit(98);
    signal(number, SIG_DFL);
    raise(number);
}

__attribute__((constructor)) static void start(void)
{
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&other, NULL);
    struct sigaction action = {.sa_sigaction = report, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    for (const int *number = (const int[]){SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, 0}; *number; number++)
        sigaction(*number, &action, NULL);
}
