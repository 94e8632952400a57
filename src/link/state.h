/* SPDX-License-Identifier: BSD-3-Clause */
/* state.h - the state of a host's end of a link: one machine, published in one record.
 *
 * Readers: the lanes of a job, which stop and continue with it; PEs, which put directly while it is UP; oshrun's
 * report, `quoit top` and the simulator. None of them has a copy; a lane publishes how far it has followed.
 *
 * Two numbers name two things. The port epoch is the driver's count of how often the port came up; an opening of the
 * port is bound to one. The epoch of the link is agreed by both ends each time it becomes UP, and the ring's topology
 * (ring/topology.h) is made of it.
 *
 * Threads: one writer, the manager of the links (service.h). Any process that maps the record may read it.
 */
#ifndef QUOIT_LINK_STATE_H
#define QUOIT_LINK_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum quoit_link_state {
    QUOIT_LINK_STATE_IDLE,     /* no client is attached; the port may be up or not */
    QUOIT_LINK_STATE_ABSENT,   /* no end writes here; the port is down, or is about to be bound */
    QUOIT_LINK_STATE_HELD,     /* the port is up, but it flaps: held down until held_until_ns */
    QUOIT_LINK_STATE_PROPOSED, /* bound to the port epoch; an epoch is proposed to the neighbour, which has not answered
                                * yet */
    QUOIT_LINK_STATE_CLEAN, /* no end writes: our slots are clean and our windows offered; the neighbour's are not yet
                             */
    QUOIT_LINK_STATE_UP,    /* both ends are clean: lanes send, PEs put directly */
    QUOIT_LINK_STATE_DRAINING, /* the port went down: the clients stop writing and reading */
    QUOIT_LINK_STATE_LOST,     /* the port went down under a client that does not survive it */
    QUOIT_LINK_STATE_COUNT
};

/* What the clients follow: the epoch of the link, and whether it is up in it. */
#define QUOIT_LINK_TARGET(epoch, is_up) ((uint32_t)(epoch) << 1 | (uint32_t)(is_up))
#define QUOIT_LINK_TARGET_IS_UP(target) ((target)&1u)
#define QUOIT_LINK_TARGET_EPOCH(target) ((target) >> 1)

/* In one word: two links known to be down, and how often the ring was cut so far. Never 0. */
#define QUOIT_DEAD_LINKS(cut_count, first, second)                                                                     \
    ((uint64_t)(cut_count) << 32 | ((uint64_t)(first) + 1) << 16 | ((uint64_t)(second) + 1))
#define QUOIT_DEAD_LINKS_CUT(dead)    ((uint32_t)((dead) >> 32))
#define QUOIT_DEAD_LINKS_FIRST(dead)  ((uint32_t)((dead) >> 16 & 0xffff) - 1)
#define QUOIT_DEAD_LINKS_SECOND(dead) ((uint32_t)((dead)&0xffff) - 1)

/* One per side. A zeroed record is a valid start. Writer: the manager. */
struct quoit_link_record {
    _Atomic uint32_t state;      /* enum quoit_link_state */
    _Atomic uint32_t target;     /* release; pairs with acquire in the lanes */
    _Atomic uint32_t port_epoch; /* in which both ends have offered their windows; 0: not UP */
    _Atomic uint32_t outage_count;
    _Atomic uint32_t hold_count;    /* how often it was held down because it flapped */
    _Atomic uint32_t flap_score;    /* outages minus those forgiven over time: see holddown.h */
    _Atomic uint64_t since_ns;      /* when the state began */
    _Atomic uint64_t held_until_ns; /* 0: it is not held */
    _Atomic uint64_t outage_ns;     /* total time not UP since it first was, without the current outage */
    _Atomic uint64_t down_since_ns; /* 0: it is UP, or never was */
    /* Doorbell bits of this port that wake the client, and those of the neighbour's that wake its: set
     * before the link is UP for the first time, the same for as long as both stay. */
    _Atomic uint64_t own_doorbells;
    _Atomic uint64_t peer_doorbells;
    /* Whose port the cable leads to, as it said when the link came up, right or wrong: host + 1 and side + 1. 0: it has
     * said nothing yet. */
    _Atomic uint32_t peer_host;
    _Atomic uint32_t peer_side;
};
_Static_assert(sizeof(struct quoit_link_record) == 80, "read by other processes");

const char *quoit_link_state_name(enum quoit_link_state state);
bool quoit_link_may_move(enum quoit_link_state from, enum quoit_link_state to);
/* Changes the state, and asserts that the table allows it. */
void quoit_link_move(struct quoit_link_record *record, enum quoit_link_state to, uint64_t now_ns);

static inline enum quoit_link_state quoit_link_state_of(const struct quoit_link_record *record)
{
    return (enum quoit_link_state)atomic_load_explicit(&record->state, memory_order_relaxed);
}
/* The port epoch to bind to for direct puts; 0: the link is not UP. */
static inline uint32_t quoit_link_port_epoch(const struct quoit_link_record *record)
{
    return atomic_load_explicit(&record->port_epoch, memory_order_acquire);
}

#endif
