/* SPDX-License-Identifier: BSD-3-Clause */
/* registers.h - the registers of an emulated link, as both ends map them from the link's memfd.
 *
 * What it is: the layout, and how a word of it is read. All bytes zero is a link that neither side has enabled.
 *
 * Promise: there is no lock here. Each change is one atomic operation, or is prepared aside and published by one, so a
 * process killed at any instant leaves registers that the others can use.
 *
 * Loss: nothing is erased when the link goes down. A translation or scratchpad carries the number of times the link had
 * gone down when it was written, and is void once that number has changed: one change of `state` wipes them all.
 */
#ifndef QUOIT_PORT_EMULATED_REGISTERS_H
#define QUOIT_PORT_EMULATED_REGISTERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "port/emulated/emulated.h"

#define QUOIT_EMULATED_SIDE_COUNT   2
#define QUOIT_EMULATED_DOORBELLS    16
#define QUOIT_EMULATED_VECTOR_LINK  QUOIT_EMULATED_DOORBELLS /* the link event stands behind the doorbells' */
#define QUOIT_EMULATED_VECTOR_COUNT (QUOIT_EMULATED_DOORBELLS + 1)

/* At a pair that changes meanwhile: its writer may be a client that means to hold up the owner of a shared ring. */
#define QUOIT_EMULATED_LOOKS 16

/* The bits of `state`: enabled by each side, and the cable; above them the link epoch. */
#define QUOIT_EMULATED_ENABLED(side) ((uint64_t)1 << (side))
#define QUOIT_EMULATED_BOTH_ENABLED  ((uint64_t)3)
#define QUOIT_EMULATED_CUT           ((uint64_t)4)
#define QUOIT_EMULATED_STATE_FLAGS   ((uint64_t)7)
/* The cable is cut and neither end has detected it: both see the link up, and writes vanish. Only with posted writes.
 */
#define QUOIT_EMULATED_DYING       ((uint64_t)8)
#define QUOIT_EMULATED_EPOCH_SHIFT 32

/* The parts of `doorbell`: the bits; which of them have interrupted since they were last cleared; how often bits were
 * cleared, so that a slow ringer does not mark a bit that has been cleared and set again. */
#define QUOIT_EMULATED_BITS            ((uint64_t)0xffff)
#define QUOIT_EMULATED_DELIVERED_SHIFT 16
#define QUOIT_EMULATED_CLEARED_ONE     ((uint64_t)1 << 32)
#define QUOIT_EMULATED_CLEARED_SHIFT   32

/* Two 64-bit values that one process writes and any process reads whole. The entry to read is `current & 1`; the writer
 * fills the other one and then moves `current` on. A reader that finds `current` unchanged afterwards read one entry.
 */
struct quoit_emulated_pair {
    _Atomic uint64_t current; /* outage_count << 32 | change_count */
    struct {
        _Atomic uint64_t first;
        _Atomic uint64_t second;
    } entry[2];
    uint64_t unused[3];
};
_Static_assert(sizeof(struct quoit_emulated_pair) == 64, "a pair is one cache line");

/* One end. Every cache line is written by one side only, except the doorbell, which both write. */
struct quoit_emulated_side {
    _Atomic uint64_t doorbell; /* writers: the peer's processes set, the own side clears */
    uint64_t unused_doorbell[7];
    _Atomic uint64_t scratchpad[QUOIT_SCRATCHPAD_COUNT]; /* writer: the peer. outage_count << 32 | value */
    _Atomic uint64_t unmasked_bits;                      /* writer: the own side */
    uint64_t unused_mask[7];
    _Atomic uint64_t wire_free_ns; /* writers: this side's processes, only if a rate is set */
    uint64_t unused_wire[7];
    struct quoit_emulated_pair window[QUOIT_WINDOW_COUNT]; /* writer: own proxy. Offset in host memory, bytes */
    struct quoit_emulated_pair
        vector[QUOIT_EMULATED_VECTOR_COUNT]; /* writer: own proxy. Offset, stride << 32 | count */
};
_Static_assert(sizeof(struct quoit_emulated_side) == 64 * (4 + QUOIT_WINDOW_COUNT + QUOIT_EMULATED_VECTOR_COUNT),
               "fields of different writers stand in different cache lines");

struct quoit_emulated_link {
    _Atomic uint64_t state; /* writers: both sides, when the link changes */
    uint64_t unused[7];
    struct quoit_emulated_side side[QUOIT_EMULATED_SIDE_COUNT];
};
_Static_assert(sizeof(struct quoit_emulated_link) <= QUOIT_EMULATED_LINK_BYTES, "the registers fit their memfd");

/* The wire that shares of a link have in common; only if a rate is set. */
struct quoit_emulated_wire {
    struct {
        _Atomic uint64_t free_ns; /* writers: the processes of this side. When it will have sent all that it took */
        uint64_t unused[7];
        _Atomic uint64_t due_ns[QUOIT_PORT_SHARES_MAX]; /* of each share: when its part has sent what it took of it */
        _Atomic uint32_t parts[QUOIT_PORT_SHARES_MAX];  /* writer: who opens the share: weight, percentage << 16 */
    } side[QUOIT_EMULATED_SIDE_COUNT];
};
_Static_assert(sizeof(struct quoit_emulated_wire) <= QUOIT_EMULATED_LINK_BYTES, "it fits the memfd of a link");

static inline bool quoit_emulated_is_up(uint64_t state)
{
    return (state & QUOIT_EMULATED_STATE_FLAGS) == QUOIT_EMULATED_BOTH_ENABLED;
}

static inline uint32_t quoit_emulated_epoch(uint64_t state)
{
    return (uint32_t)(state >> QUOIT_EMULATED_EPOCH_SHIFT);
}

/* How often the link has gone down. */
static inline uint32_t quoit_emulated_outage_count(uint64_t state)
{
    return quoit_emulated_epoch(state) - (quoit_emulated_is_up(state) ? 1 : 0);
}

/* The state of a link that is up in the outage_count of `current`: any other state makes that register void. */
static inline uint64_t quoit_emulated_up_state(uint64_t current)
{
    uint64_t epoch = (uint32_t)((current >> 32) + 1);
    return (epoch << QUOIT_EMULATED_EPOCH_SHIFT) | QUOIT_EMULATED_BOTH_ENABLED;
}

static inline uint64_t quoit_emulated_state(const struct quoit_emulated_link *link)
{
    return atomic_load_explicit(&link->state, memory_order_acquire); /* pairs with the exchange in link.c */
}

/* Publishes both values. One writer at a time. */
void quoit_emulated_pair_set(struct quoit_emulated_pair *pair, uint32_t outage_count, uint64_t first, uint64_t second);
/* Reads a consistent snapshot of both values and of `current`. False: that changed at each of QUOIT_EMULATED_LOOKS. */
bool quoit_emulated_pair_get(const struct quoit_emulated_pair *pair, uint64_t *current_out, uint64_t *first_out,
                             uint64_t *second_out);

#endif
