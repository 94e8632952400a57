/* SPDX-License-Identifier: BSD-3-Clause */
/* To be preloaded: epoll_wait begins late every time, as in a process that a busy machine holds up. */
#include <stddef.h>
#include <sys/epoll.h>
#include <unistd.h>

#define LATE_US 50000

__attribute__((visibility("default"))) int epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms)
{
    usleep(LATE_US);
    return epoll_pwait(fd, events, most, timeout_ms, NULL);
}
