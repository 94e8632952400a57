/* SPDX-License-Identifier: BSD-3-Clause */
/* loop.h - the one place where oshrun sleeps: descriptors, and callbacks for when they are ready.
 *
 * Threads: one. A watch may be closed from any callback, including its own; its memory must outlive the loop.
 */
#ifndef OSHRUN_LOOP_H
#define OSHRUN_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "env/stopwatch.h"

struct watch {
    int fd;          /* -1: closed */
    uint32_t events; /* EPOLLIN, EPOLLOUT */
    bool is_added;
    void (*ready)(struct watch *watch, uint32_t events);
    void *owner;
};

struct loop {
    int epoll_fd;
    struct quoit_stopwatch watch;
};

/* False, with errno, if the kernel gives no epoll descriptor. */
bool loop_open(struct loop *loop);
/* Begins to watch. False if the descriptor is of a kind that is always ready (a regular file). */
bool loop_add(struct loop *loop, struct watch *watch);
/* Stops watching and keeps the descriptor; loop_add goes on. */
void loop_pause(struct loop *loop, struct watch *watch);
/* Stops watching and closes the descriptor. Repeating it does nothing. */
void loop_close(struct loop *loop, struct watch *watch);
/* The clock of all limits (stopwatch.h). */
uint64_t loop_now_ns(const struct loop *loop);
/* Holds that clock while the job is stopped. What is ready is called all the same. */
void loop_hold(struct loop *loop, bool is_held);
/* Sleeps until something is ready, or until `deadline_ns` of that clock (UINT64_MAX: none), or for a while if there is
 * a deadline, and calls what is ready. */
void loop_turn(struct loop *loop, uint64_t deadline_ns);

#endif
