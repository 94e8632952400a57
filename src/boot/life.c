/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/life.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static struct quoit_life_pipe open_pipe(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return (struct quoit_life_pipe){.agent_fd = -1, .pe_fd = -1};
    return (struct quoit_life_pipe){.agent_fd = ends[0], .pe_fd = ends[1]};
}

/* signal_number: 0 for none. No other signals than SIGKILL and SIGCONT reach a process that is stopped. */
static void bind_pipe(const struct quoit_life_pipe *pipe, int signal_number)
{
    if (pipe->agent_fd < 0)
        return;
    if (signal_number != 0 &&
        (fcntl(pipe->agent_fd, F_SETOWN, getpid()) != 0 || fcntl(pipe->agent_fd, F_SETSIG, signal_number) != 0))
        return;
    (void)fcntl(pipe->agent_fd, F_SETFL, O_NONBLOCK | (signal_number != 0 ? O_ASYNC : 0));
}

void quoit_life_open(struct quoit_life *life)
{
    *life = (struct quoit_life){.lowest = open_pipe(), .all = open_pipe()};
    quoit_life_bind(life, false);
}

void quoit_life_share_no_more(struct quoit_life_pipe *pipe)
{
    if (pipe->pe_fd >= 0)
        close(pipe->pe_fd);
    pipe->pe_fd = -1;
}

void quoit_life_bind(const struct quoit_life *life, bool has_finalized)
{
    bind_pipe(&life->lowest, has_finalized ? 0 : SIGCONT);
    bind_pipe(&life->all, has_finalized ? SIGKILL : 0);
}
