/* SPDX-License-Identifier: BSD-3-Clause */
/* sync.h - synchronisation objects. Any thread; no function is called under the library's lock.
 *
 * An object of dsm.h is identified by its address alone. Its state is a row of words in a table at the PE to which the
 * address hashes, claimed by compare-and-swap of the address. So an object needs no initialisation, the bytes at its
 * address may be copied or cleared, and diffs do not contain its state.
 *
 * Locks are MCS queues. The lock word names the last node of the queue or, at first and when a PE needs its nodes for
 * other locks, the last releaser. Each waiter sleeps on a word of its own PE until its predecessor writes who released,
 * and with it, into a buffer of the waiter's, what it knows of notices. Who finds the lock free, has got no buffer or
 * can load them reads them from the releaser.
 *
 * A PE that releases a lock for which nobody waits keeps it: its node stays the last of the queue, and says that it is
 * free. The PE takes the lock again without a message; another PE takes it as it joins the queue. */
#ifndef QUOIT_DSM_SYNC_H
#define QUOIT_DSM_SYNC_H

#include "dsm/state.h"

/* Where the state of an object is. */
struct quoit_dsm_object {
    uint64_t address; /* the same on all PEs */
    int pe;
    uint32_t index;
};

/* The state of the kinds of wait.c, protected by the object's own lock; initially zero. */
struct quoit_dsm_monitor {
    uint64_t value;
    uint64_t inside; /* not 0 while a thread holds the object, or runs its routine */
    uint64_t head, tail;
};

void quoit_dsm_syncs_start(struct quoit_dsm *dsm); /* collective */
void quoit_dsm_syncs_stop(struct quoit_dsm *dsm);

/* What a checkpoint keeps of an object. save: of those whose state is on this PE and not zero, in a block to be freed;
 * EBUSY if one is held or waited for. clear: sets the values of those on this PE to zero; nobody uses them. restore: as
 * an init routine would, on any PE. */
struct quoit_dsm_saved {
    uint64_t address, value;
};
void quoit_dsm_syncs_clear(struct quoit_dsm *dsm);
int quoit_dsm_syncs_save(struct quoit_dsm *dsm, struct quoit_dsm_saved **saved_out, uint64_t *count_out);
void quoit_dsm_syncs_restore(struct quoit_dsm *dsm, const struct quoit_dsm_saved *saved);

struct quoit_dsm_object quoit_dsm_object(struct quoit_dsm *dsm, const void *address, const char *call);

void quoit_dsm_object_lock(struct quoit_dsm *dsm, struct quoit_dsm_object object);
bool quoit_dsm_object_try(struct quoit_dsm *dsm, struct quoit_dsm_object object);
/* False if this PE does not hold it. */
bool quoit_dsm_object_unlock(struct quoit_dsm *dsm, struct quoit_dsm_object object);

/* Acquires the lock and reads the state. */
struct quoit_dsm_monitor quoit_dsm_monitor_enter(struct quoit_dsm *dsm, struct quoit_dsm_object object);
void quoit_dsm_monitor_leave(struct quoit_dsm *dsm, struct quoit_dsm_object object,
                             const struct quoit_dsm_monitor *monitor);
/* Sets the state to zero, for init routines: nobody uses the object. */
void quoit_dsm_monitor_reset(struct quoit_dsm *dsm, struct quoit_dsm_object object);

/* Waiters of a monitor, oldest first; a waiter is 0 or one node, `kind` is what it said. append, pop and first need the
 * monitor. wait returns when the waiter was woken, and takes the waker's notices; with a deadline it may return false:
 * the caller then enters the monitor and removes the waiter, and if it is not there any more, waits without a deadline.
 */
uint64_t quoit_dsm_waiter_append(struct quoit_dsm *dsm, struct quoit_dsm_monitor *monitor, uint64_t kind);
uint64_t quoit_dsm_waiter_pop(struct quoit_dsm *dsm, struct quoit_dsm_monitor *monitor);
uint64_t quoit_dsm_waiter_kind(struct quoit_dsm *dsm, uint64_t waiter);
uint64_t quoit_dsm_waiter_next(struct quoit_dsm *dsm, uint64_t waiter);
bool quoit_dsm_waiter_remove(struct quoit_dsm *dsm, struct quoit_dsm_monitor *monitor, uint64_t waiter);
bool quoit_dsm_waiter_wait(struct quoit_dsm *dsm, uint64_t waiter, uint64_t deadline_ns);
/* After the monitor was left, so that what the waker wrote is released. A chain is what pop returned, or a whole list.
 */
void quoit_dsm_waiter_wake(struct quoit_dsm *dsm, uint64_t waiter);
void quoit_dsm_waiter_wake_chain(struct quoit_dsm *dsm, uint64_t first);
void quoit_dsm_waiter_free(struct quoit_dsm *dsm, uint64_t waiter);

#endif
