/* SPDX-License-Identifier: BSD-3-Clause */
/* task.h - a thread of the simulated world: a lane of a proxy, or a PE. A coroutine with a stack of its own.
 *
 * A task runs without interruption until it spends time, idles or blocks, so everything in between happens at one
 * instant. It occupies a core of its host while it runs, spends and idles, and releases it while it blocks. With more
 * tasks than cores they take turns, first come first served. Where hosts share processors each processor has a queue of
 * its own: a task stays at its processor until it moves itself (sim_task_go) or is woken while another one is free.
 *
 * Idling: a task that polls in vain is not resumed for each check, because what it polls changes only when something
 * arrives at its host or another task of the host runs. It is resumed at the first check after such a change, and
 * counts the checks in between. The first checks after a change are never skipped.
 */
#ifndef SIM_TASK_H
#define SIM_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "env/primitives.h"
#include "sim/event.h"
#include "sim/stack.h"

struct quoit_lane;
struct sim_world;
struct sim_host;
struct sim_cores;

enum sim_task_state {
    SIM_TASK_BUSY,    /* has a core: runs, or spends time */
    SIM_TASK_IDLE,    /* has a core: polls */
    SIM_TASK_READY,   /* waits for a core */
    SIM_TASK_BLOCKED, /* asleep until woken, or until its event */
    SIM_TASK_ENDED,
};

struct sim_task {
    struct sim_event event;
    struct sim_world *world;
    struct sim_host *host;
    uint32_t index;   /* in the world */
    uint32_t process; /* equal for the threads of a proxy; every other task is a process */
    enum sim_task_state state;
    char name[24];
    void (*run)(void *arg);
    void *arg;
    struct sim_stack stack;
    char *stack_memory;
    struct sim_cores *cores; /* where it runs, or waits to */
    struct sim_task *next_ready;
    const _Atomic uint32_t *sleeps_on; /* NULL: not asleep */
    struct quoit_wait_habit habit;
    uint64_t on_core_since_ns;
    uint64_t frozen_until_ns; /* a fault: does not run before */
    uint64_t idle_since_ns;
    uint64_t idle_step_ns;
    uint64_t leave_count;          /* how often it has stopped running */
    bool is_service;               /* a thread of a proxy */
    const struct quoit_lane *lane; /* the lane that it serves; NULL: none */
    uint64_t idle_leave_count;     /* leave_count when it last resumed from idling */
    uint32_t looks_since_change;   /* checks in vain since the last change */
    uint32_t version_before;       /* of the ring that is being given a frame */
    uint32_t announced_epoch;      /* of the park of its lane, when the lane last announced that it will sleep */
    bool is_fruitless;             /* it has only checked in vain, so its resuming changes nothing for other tasks */
};

/* Starts at once; it first runs when a core is free. */
struct sim_task *sim_task_start(struct sim_host *host, const char *name, void (*run)(void *arg), void *arg);
void sim_task_free(struct sim_task *task);
/* The function of its event, which identifies the event. */
void sim_task_fire(struct sim_event *event);

/* Of the running task. */
void sim_spend(struct sim_world *world, uint64_t duration_ns);
/* Spends the time until then, and noise and jitter may add to it, never take from it. */
void sim_spend_until(struct sim_world *world, uint64_t at_ns);
/* Gives up the core until sim_task_wake(), or until_ns if that is not UINT64_MAX. */
void sim_block(struct sim_world *world, uint64_t until_ns);
/* Up to `count` checks of step_ns each; returns how many have passed when something changed, at least one.
 * is_fruitless: since it last ran the task has only checked, in vain. */
uint32_t sim_idle(struct sim_world *world, uint64_t step_ns, uint32_t count, bool is_fruitless);
/* Returns to the event loop until resumed. */
void sim_task_leave(struct sim_world *world);
/* Gives up the core if others wait for one. is_fruitless: as above. */
void sim_yield(struct sim_world *world, bool is_fruitless);

/* Moves the running task to another of the processors that hosts share. */
void sim_task_go(struct sim_world *world, uint32_t processor);
/* For any blocked task: it requests a core after delay_ns. */
void sim_task_wake(struct sim_task *task, uint64_t delay_ns);
/* Something in this host's memory or registers changed. */
void sim_host_changed(struct sim_host *host);

#endif
