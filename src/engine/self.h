/* SPDX-License-Identifier: BSD-3-Clause */
/* self.h - this PE: its identity, its host's memory, and how it waits.
 *
 * What it is: what all engines of one PE share. Every wait for a change of this PE's segment, or for an engine, is
 * here, so there is one park, one policy and one name of the waiting routine.
 *
 * Threads: several threads may wait at once. Errors: none; the launcher ends the job when a process dies.
 */
#ifndef QUOIT_ENGINE_SELF_H
#define QUOIT_ENGINE_SELF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/region.h"
#include "env/wait.h"
#include "host/layout.h"
#include "host/placement.h"

struct quoit_engine;
struct quoit_peer;

#define QUOIT_ENGINES_MAX 3

struct quoit_self {
    uint32_t pe;
    uint32_t pe_count;
    uint32_t host;
    uint32_t local; /* index on its host */
    char *segment;  /* mapping shared by the host's PEs; may be mapped a second time for the program */
    char *memory;   /* of the host, mapped whole */
    struct quoit_layout layout;
    struct quoit_pe_shared *shared;
    struct quoit_engine *engines[QUOIT_ENGINES_MAX]; /* open engines in order of preference */
    uint32_t engine_count;
    struct quoit_waiter waiter; /* each wait uses a copy of it */
    bool sees_plain_stores;     /* waits for the program's objects do; false where a lost wake is meant to hang */
    bool has_threads;           /* which may wait concurrently, each for something else. Writer: the API */
    struct quoit_placement placement;
    /* Regions whose buffers need no staging copy. NULL: none. Writer: the API. */
    const struct quoit_regions *regions;
    struct quoit_trace_ring *trace; /* NULL: no tracing */
    struct quoit_profile *profile;  /* NULL: no profile */
    _Atomic uint32_t last_flow;     /* number of the last traced request */
    const char *call;               /* API routine last entered, and its caller; for messages */
    void *call_from;
};

/* `memory` is that of the host of `layout`, mapped whole. */
void quoit_self_init(struct quoit_self *self, const struct quoit_layout *layout, void *memory, uint32_t pe,
                     struct quoit_wait_policy policy);

/* The memory offset of a private buffer that lies in a symmetric region of this PE. */
bool quoit_self_find(const struct quoit_self *self, const void *buffer, size_t bytes, uint64_t *offset_out);

/* Lets each engine complete what only this PE can complete. */
void quoit_self_progress(struct quoit_self *self);
/* For programs that poll: does what a wait does between two checks: progress, and a yield on shared processors. */
void quoit_self_poll(struct quoit_self *self);

/* Waits, sleeping if it takes long, until is_done(arg), which reads the runtime part of this PE's segment or what the
 * proxy wrote; `call` names the API routine, for messages. */
void quoit_self_wait(struct quoit_self *self, bool (*is_done)(void *arg), void *arg, const char *call);
/* The same for a condition that nobody wakes the PE for: it looks again from time to time. */
void quoit_self_wait_polling(struct quoit_self *self, bool (*is_done)(void *arg), void *arg);
/* As quoit_self_wait() while other PEs of the host are known to compute for about busy_ns, which is then no reason to
 * sleep. */
void quoit_self_wait_busy(struct quoit_self *self, bool (*is_done)(void *arg), void *arg, const char *call,
                          uint64_t busy_ns);
/* As quoit_self_wait_busy() for what a message brings that is_done receives (struct quoit_engine_ops), from PE `from`;
 * NULL: from one of several. */
void quoit_self_wait_message(struct quoit_self *self, bool (*is_done)(void *arg), void *arg, const char *call,
                             uint64_t busy_ns, const struct quoit_peer *from);
/* As quoit_self_wait() if is_done reads [offset, offset + bytes) of this PE's segment: writes elsewhere wake nobody.
 * The program's objects are there, so plain stores are noticed too, later: see env/wait.h. `wait_desc` (may be NULL)
 * describes what is waited for, for reports on a job that hangs; it is published before a sleep only.
 */
void quoit_self_wait_at(struct quoit_self *self, uint64_t offset, uint64_t bytes, bool (*is_done)(void *arg), void *arg,
                        const char *call, const struct quoit_wait_desc *wait_desc);

#endif
