/* SPDX-License-Identifier: BSD-3-Clause */
#include "loop.h"

#include <errno.h>
#include <unistd.h>

#include "base/assert.h"
#include "env/clock.h"

#define EVENTS_A_TURN 64

bool loop_open(struct loop *loop)
{
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    return loop->epoll_fd >= 0;
}

bool loop_add(struct loop *loop, struct watch *watch)
{
    quoit_assert(watch->fd >= 0);
    if (watch->is_added)
        return true;
    struct epoll_event event = {.events = watch->events, .data.ptr = watch};
    watch->is_added = epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, watch->fd, &event) == 0;
    return watch->is_added;
}

void loop_pause(struct loop *loop, struct watch *watch)
{
    if (watch->is_added)
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
    watch->is_added = false;
}

void loop_close(struct loop *loop, struct watch *watch)
{
    if (watch->fd < 0)
        return;
    loop_pause(loop, watch);
    close(watch->fd);
    watch->fd = -1;
}

void loop_turn(struct loop *loop, uint64_t deadline_ns)
{
    struct epoll_event events[EVENTS_A_TURN];
    int timeout_ms = -1;
    if (deadline_ns != UINT64_MAX) {
        uint64_t now_ns = quoit_clock_now_ns();
        uint64_t left_ms = deadline_ns > now_ns ? (deadline_ns - now_ns + 999999) / 1000000 : 0;
        timeout_ms = left_ms > 1000000 ? 1000000 : (int)left_ms;
    }
    int count = epoll_wait(loop->epoll_fd, events, EVENTS_A_TURN, timeout_ms);
    quoit_assert(count >= 0 || errno == EINTR);
    for (int i = 0; i < count; i++) {
        struct watch *watch = events[i].data.ptr;
        if (watch->is_added) /* else an earlier callback of this turn has closed it */
            watch->ready(watch, events[i].events);
    }
}
