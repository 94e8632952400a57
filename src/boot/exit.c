/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/exit.h"
#include "boot/launcher.h"
#include "env/libc.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TEXT_BYTES 160

struct limit {
    int status;
    char text[TEXT_BYTES];
};

static void limit_reached(int signal_number, siginfo_t *info, void *context)
{
    const struct limit *limit = info->si_value.sival_ptr;
    (void)signal_number;
    (void)context;
    if (info->si_code != SI_TIMER) /* sent by somebody else */
        return;
    if (write(STDERR_FILENO, limit->text, strlen(limit->text)) < 0)
        _exit(limit->status); /* standard error is closed */
    _exit(limit->status);
}

/* By a timer and not by a thread, which a signal handler could not start. It is nearly the last real-time signal: tools
 * take the first and the last. A kernel that refuses it leaves the limit to oshrun. */
static void set_limit(struct limit *limit, const struct quoit_boot *boot)
{
    const int number = SIGRTMAX - 1;
    struct sigaction action = {.sa_sigaction = limit_reached, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = number, .sigev_value.sival_ptr = limit};
    const struct itimerspec after = {.it_value.tv_sec = QUOIT_EXIT_LIMIT_NS / 1000000000u};
    timer_t timer;
    sigset_t mask;
    snprintf(limit->text, sizeof limit->text,
             "quoit: PE %u: its exit handlers have run for %u s after shmem_global_exit, and were given up [Q0127]\n",
             boot->pe, (unsigned)after.it_value.tv_sec);
    sigemptyset(&mask);
    sigaddset(&mask, number);
    if (sigaction(number, &action, NULL) != 0 || timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
        return;
    timer_settime(timer, 0, &after, NULL);
    pthread_sigmask(SIG_UNBLOCK, &mask, NULL);
}

/* Before any handler of the program, which may not return. */
static void flush_streams(void)
{
    if (ftrylockfile(stdin) == 0) {
        fflush(NULL);
        funlockfile(stdin);
    } else { /* a thread reads it, and flushing all streams would wait for that */
        fflush(stdout);
        fflush(stderr);
    }
}

bool quoit_exit_has_begun(const struct quoit_boot *boot)
{
    int32_t thread = atomic_load(&boot->exiting_thread);
    while (thread != 0 && thread != quoit_thread_id())
        pause();
    return thread != 0;
}

void quoit_exit_job(struct quoit_boot *boot, int status)
{
    int32_t nobody = 0;
    struct limit limit = {.status = status}; /* this frame lasts as long as the process */
    if (!atomic_compare_exchange_strong(&boot->exiting_thread, &nobody, quoit_thread_id()) &&
        quoit_exit_has_begun(boot))
        exit(boot->exit_status); /* from an exit handler: the others are still to run */
    boot->exit_status = status;
    set_limit(&limit, boot);
    if (boot->ops)
        (void)boot->ops->abort(boot, status, "", 0);
    flush_streams();
    exit(status);
}
