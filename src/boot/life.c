/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/life.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

void quoit_life_open(struct quoit_life *life)
{
    int ends[2];
    *life = (struct quoit_life){.agent_fd = -1, .pe_fd = -1};
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0)
        *life = (struct quoit_life){.agent_fd = ends[0], .pe_fd = ends[1]};
}

void quoit_life_share_no_more(struct quoit_life *life)
{
    if (life->pe_fd >= 0)
        close(life->pe_fd);
    life->pe_fd = -1;
}

/* No other signal ends a process that is stopped. */
void quoit_life_bind(const struct quoit_life *life, bool is_bound)
{
    if (life->agent_fd < 0)
        return;
    if (is_bound && (fcntl(life->agent_fd, F_SETOWN, getpid()) != 0 || fcntl(life->agent_fd, F_SETSIG, SIGKILL) != 0))
        return;
    (void)fcntl(life->agent_fd, F_SETFL, O_NONBLOCK | (is_bound ? O_ASYNC : 0));
}
