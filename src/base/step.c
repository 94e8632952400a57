/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/step.h"

#if defined(QUOIT_TEST_DRIVERS)

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SOCKET_FD 3
#define WORK_S    5

static __attribute__((noreturn)) void hang(void)
{
    for (;;)
        pause();
}

/* Until a process continues this one: the kernel does, too, when the parent of a process group of its own ends. */
static void stop(void)
{
    const struct timespec now = {0};
    sigset_t continued, before;
    siginfo_t facts;
    sigemptyset(&continued);
    sigaddset(&continued, SIGCONT);
    sigprocmask(SIG_BLOCK, &continued, &before);
    do
        raise(SIGSTOP);
    while (sigtimedwait(&continued, &facts, &now) == SIGCONT && facts.si_code == SI_KERNEL);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

static void work(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (const time_t end_s = now.tv_sec + WORK_S; now.tv_sec < end_s;)
        clock_gettime(CLOCK_MONOTONIC, &now);
}

static void act(const char *action)
{
    if (strcmp(action, "stop") == 0)
        stop();
    else if (strcmp(action, "kill") == 0)
        raise(SIGKILL);
    else if (strcmp(action, "close") == 0)
        close(SOCKET_FD);
    else if (strcmp(action, "work") == 0)
        work();
    if (strcmp(action, "close") == 0 || strcmp(action, "hang") == 0)
        hang();
}

void quoit_step(const char *who, uint32_t number, const char *step)
{
    const char *wanted = getenv("TEST_STEP"), *action = wanted ? strchr(wanted, '=') : NULL;
    char any[64], numbered[64];
    if (!action)
        return;
    snprintf(any, sizeof any, "%s.%s", who, step);
    snprintf(numbered, sizeof numbered, "%s%u.%s", who, number, step);
    size_t bytes = (size_t)(action - wanted);
    if ((strlen(any) == bytes && strncmp(any, wanted, bytes) == 0) ||
        (strlen(numbered) == bytes && strncmp(numbered, wanted, bytes) == 0))
        act(action + 1);
}

char *quoit_step_variable(char *entry)
{
    return strncmp(entry, "TEST_LD_PRELOAD=", strlen("TEST_LD_PRELOAD=")) == 0 ? entry + strlen("TEST_") : entry;
}

#endif
