/* SPDX-License-Identifier: BSD-3-Clause */
/* self.h - the own PE: who it is, the memory of its host, and how it waits.
 *
 * What it is: what all engines of one PE share. Whoever waits for a change of the own segment, or for an engine, waits
 * here, so that there is one park, one policy and one name of the routine that waits.
 *
 * Threads: several threads may wait at once. Errors: none; the launcher ends the job when something dies.
 */
#ifndef QUOIT_ENGINE_SELF_H
#define QUOIT_ENGINE_SELF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "env/wait.h"
#include "host/layout.h"
#include "host/placement.h"

struct quoit_engine;

#define QUOIT_ENGINES_MAX 3

/* A symmetric region as the program sees it: the heap, or the program's variables. */
struct quoit_region {
    uintptr_t base;          /* where this PE sees it */
    uint64_t bytes;          /* 0: not there */
    uint64_t segment_offset; /* of its first byte */
};
#define QUOIT_REGION_COUNT 17 /* heap, program, libraries */

struct quoit_self {
    uint32_t pe;
    uint32_t pe_count;
    uint32_t host;
    uint32_t local; /* index on its host */
    char *segment;  /* as mapped for the host's PEs; may also be mapped elsewhere for the program */
    char *memory;   /* of the host, mapped whole */
    struct quoit_layout layout;
    struct quoit_pe_shared *shared;
    struct quoit_engine *engines[QUOIT_ENGINES_MAX]; /* open ones, in the order of preference */
    uint32_t engine_count;
    struct quoit_waiter waiter; /* a copy of it serves each wait */
    bool sees_plain_stores;     /* waits for objects of the program do; false where a lost wake shall hang */
    bool has_threads;           /* that may wait, each for something else. Writer: the API */
    struct quoit_placement placement;
    /* So that buffers in them are reached without a copy. NULL: none. Writer: the API. */
    const struct quoit_region *regions[QUOIT_REGION_COUNT];
    struct quoit_trace_ring *trace; /* NULL: nothing is traced */
    _Atomic uint32_t last_flow;     /* number of the last request that was */
    const char *call;               /* API routine last entered and where from; for messages */
    void *call_from;
};

/* `memory` is that of the host of `layout`, mapped whole. */
void quoit_self_init(struct quoit_self *self, const struct quoit_layout *layout, void *memory, uint32_t pe,
                     struct quoit_wait_policy policy);

/* The memory offset of a private buffer that lies in a symmetric region of this PE. */
bool quoit_self_find(const struct quoit_self *self, const void *buffer, size_t bytes, uint64_t *offset_out);

/* Lets each engine finish what only this PE can finish. */
void quoit_self_progress(struct quoit_self *self);
/* A program polls by itself: does what a wait does between two looks, progress, and a yield where processors are
 * shared.
 */
void quoit_self_poll(struct quoit_self *self);

/* Waits, asleep if it lasts, until is_done(arg), which reads the runtime part of the own segment, or what the proxy
 * tells; `call` names the API routine, for messages. */
void quoit_self_wait(struct quoit_self *self, bool (*is_done)(void *arg), void *arg, const char *call);
/* The same while other PEs of the host are known to work for about busy_ns, so that the wait is no reason to sleep. */
void quoit_self_wait_busy(struct quoit_self *self, bool (*is_done)(void *arg), void *arg, const char *call,
                          uint64_t busy_ns);
/* As quoit_self_wait() where is_done reads [offset, offset + bytes) of the own segment: what others write elsewhere
 * wakes nobody. The program's objects are there, so plain stores are seen, too, if late: see env/wait.h. `wish` (may be
 * NULL) says what is waited for, to whoever explains a job that does not go on; it is written down before a sleep only.
 */
void quoit_self_wait_at(struct quoit_self *self, uint64_t offset, uint64_t bytes, bool (*is_done)(void *arg), void *arg,
                        const char *call, const struct quoit_wish *wish);

#endif
