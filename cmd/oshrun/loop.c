/* SPDX-License-Identifier: BSD-3-Clause */
#include "loop.h"

#include <errno.h>
#include <unistd.h>

#include "base/assert.h"
#include "env/clock.h"

#define EVENTS_A_TURN 64
#define TICK_NS       UINT64_C(250000000) /* the longest sleep before a deadline: what a stop may seem to last less */
#define TICK_HELD_NS  UINT64_C(50000000)  /* in place of deadlines while the clock is held: pings go on */

bool loop_open(struct loop *loop)
{
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    quoit_stopwatch_start(&loop->watch, quoit_clock_now_ns());
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

uint64_t loop_now_ns(const struct loop *loop)
{
    return quoit_stopwatch_read(&loop->watch, quoit_clock_now_ns());
}

void loop_hold(struct loop *loop, bool is_held)
{
    quoit_stopwatch_hold(&loop->watch, quoit_clock_now_ns(), is_held);
}

/* UINT64_MAX: until something is ready. */
static uint64_t sleep_of(const struct loop *loop, uint64_t deadline_ns, uint64_t now_ns)
{
    if (deadline_ns == UINT64_MAX)
        return UINT64_MAX;
    if (loop->watch.is_held)
        return TICK_HELD_NS;
    uint64_t read_ns = quoit_stopwatch_read(&loop->watch, now_ns);
    uint64_t left_ns = deadline_ns > read_ns ? deadline_ns - read_ns : 0;
    return left_ns < TICK_NS ? left_ns : TICK_NS;
}

void loop_turn(struct loop *loop, uint64_t deadline_ns)
{
    struct epoll_event events[EVENTS_A_TURN];
    uint64_t now_ns = quoit_clock_now_ns();
    quoit_stopwatch_mark(&loop->watch, now_ns, 0); /* the work since the last turn */
    uint64_t sleep_ns = sleep_of(loop, deadline_ns, now_ns);
    int count = epoll_wait(loop->epoll_fd, events, EVENTS_A_TURN,
                           sleep_ns == UINT64_MAX ? -1 : (int)((sleep_ns + 999999) / 1000000));
    quoit_assert(count >= 0 || errno == EINTR);
    quoit_stopwatch_mark(&loop->watch, quoit_clock_now_ns(), sleep_ns);
    for (int i = 0; i < count; i++) {
        struct watch *watch = events[i].data.ptr;
        if (watch->is_added) /* else an earlier callback of this turn has closed it */
            watch->ready(watch, events[i].events);
    }
}
