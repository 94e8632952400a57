/* SPDX-License-Identifier: BSD-3-Clause */
/* The guard of an emulated ring: a child that outlives the keeper by as long as it takes to end what runs on the hosts,
 * on those too whose processes died together with the keeper. */
#include "ring.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* SIGTERM: the keeper has died; or somebody else sent it, and the keeper starts another guard. */
static void __attribute__((noreturn)) guard(const struct ring *ring, pid_t keeper)
{
    sigset_t signals;
    int number;
    prctl(PR_SET_NAME, "quoit-guard");
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_SETMASK, &signals, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == keeper)
        sigwait(&signals, &number);
    for (uint32_t i = 0; i < ring->plan.host_count && getppid() != keeper; i++)
        ring_kill_processes_in(&ring->hosts[i].place);
    _exit(0);
}

void ring_guard_renew(struct ring *ring)
{
    pid_t keeper = getpid(), pid = fork();
    if (pid == 0) {
        ring_close_in_child(ring, NULL);
        guard(ring, keeper);
    }
    if (pid < 0)
        return;
    ring_guard_end(ring);
    ring->guard = pid;
    ring->is_guarded = true;
}

void ring_guard_end(struct ring *ring)
{
    if (ring->guard > 0) {
        kill(ring->guard, SIGKILL);
        waitpid(ring->guard, NULL, 0);
    }
    ring->guard = 0;
    ring->is_guarded = false;
}
