/* SPDX-License-Identifier: BSD-3-Clause */
#include "guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

bool guard_open(struct guard *guard, uint32_t count)
{
    void *table = mmap(NULL, count * sizeof *guard->entries, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED)
        return false;
    *guard = (struct guard){.entries = table, .count = count};
    return true;
}

static void __attribute__((noreturn)) watch_over(const struct guard *guard, pid_t parent)
{
    sigset_t set;
    int signal_number;
    prctl(PR_SET_NAME, "quoit-guard");
    setpgid(0, 0);
    close_range(0, ~0u, 0);
    sigfillset(&set);
    sigprocmask(SIG_SETMASK, &set, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    prctl(PR_SET_PDEATHSIG, SIGUSR1);
    while (getppid() == parent)
        sigwait(&set, &signal_number);
    for (uint32_t i = 0; i < guard->count; i++) {
        int group = atomic_load(&guard->entries[i].group), program = atomic_load(&guard->entries[i].program);
        if (group > 0)
            kill(-group, SIGKILL);
        if (program > 0)
            kill(program, SIGKILL);
    }
    _exit(0);
}

void guard_start(struct guard *guard)
{
    pid_t parent = getpid();
    guard->pid = fork();
    if (guard->pid == 0)
        watch_over(guard, parent);
}

void guard_stop(struct guard *guard)
{
    if (guard->pid > 0) {
        kill(guard->pid, SIGKILL);
        waitpid(guard->pid, NULL, 0);
    }
    guard->pid = 0;
}
