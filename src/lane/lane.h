/* SPDX-License-Identifier: BSD-3-Clause */
/* lane.h - one lane of a host at work for one job.
 *
 * A lane is a thread with a doorbell bit, one channel of each local PE, and a lane engine (engine.h), which
 * carries requests across a link. What all engines share is here: waiting and waking, taking a request out of a
 * PE's memory and checking it, executing one on the memory of local PEs, tracing and counting.
 *
 * Links: the ring service publishes the state that each side must follow (link/state.h); the lane follows it and
 * publishes that it has. A write that finds the link down is a frame lost in flight.
 *
 * Threads: everything here belongs to the lane's thread, except the park and the atomics.
 */
#ifndef QUOIT_LANE_LANE_H
#define QUOIT_LANE_LANE_H

#include "env/clock.h"
#include "env/room.h"
#include "env/wait.h"
#include "host/layout.h"
#include "lane/engine.h"
#include "host/placement.h"
#include "port/port.h"

/* The lane's copy of an outstanding request: taken from the PE's memory once, checked, and not read there again. */
struct quoit_issued {
    uint64_t data_offset;
    uint32_t bytes;
};

struct quoit_outbox;
struct quoit_lane_network;

/* Shared by the lanes of one job on one host. Outlives them. */
struct quoit_lane_group {
    const struct quoit_layout *layout;
    void *memory; /* of the host, mapped whole */
    struct quoit_port *ports[QUOIT_SIDE_COUNT];
    const struct quoit_link_record *links;    /* [QUOIT_SIDE_COUNT], of the ring service */
    const struct quoit_lane_network *network; /* lanes of a network: ports are NULL. NULL: lanes of links */
    struct quoit_wait_policy policy;
    uint64_t dma_bytes; /* payload size from which on DMA is used; or QUOIT_DMA_MEASURED, QUOIT_DMA_NEVER */
    const struct quoit_lane_engine *engine;
    const struct quoit_lane_barrier *barrier; /* NULL: barriers are left to the PEs */
    void *shared;                             /* the engine's: what its lanes share */
    struct quoit_outbox *outbox;              /* lane 0 sends the messages between hosts; NULL: none */
    /* A MESSAGE for this host arrived; payload is valid during the call. On lane 0's thread. NULL: no listener */
    void (*on_message)(void *arg, uint32_t source_host, uint32_t port, const void *payload, uint32_t bytes);
    void *on_message_arg;
};

struct quoit_lane {
    struct quoit_lane_group *group;
    const struct quoit_layout *layout; /* of the group, as are memory, engine and ports */
    char *memory;
    const struct quoit_lane_engine *engine;
    struct quoit_port *ports[QUOIT_SIDE_COUNT];
    struct quoit_doorbells own_doorbells[QUOIT_SIDE_COUNT];
    struct quoit_doorbells peer_doorbells[QUOIT_SIDE_COUNT];
    uint64_t peer_lane_doorbell[QUOIT_SIDE_COUNT]; /* of the lane of this index at the neighbour */
    uint32_t index;
    void *state;         /* the engine's */
    void *barrier_state; /* of lane 0: the barrier's */
    /* Frames name hosts by their positions on the ring; on the lane of a network, by their numbers in the job. */
    struct quoit_host_range hosts; /* that they may name */
    uint32_t host;                 /* this one, as they name it */
    struct quoit_lane_shared *shared;
    struct quoit_trace_ring *trace;                              /* NULL: no tracing */
    uint64_t traced_credit[QUOIT_SIDE_COUNT][QUOIT_CLASS_COUNT]; /* the last that was */
    uint32_t *pe_counts;         /* PEs of each host that frames name, for their checks */
    struct quoit_issued *issued; /* [local PE][request] */
    uint32_t *submit_heads;      /* [local PE] */
    char *gather;                /* one chunk, for strided gets */
    struct quoit_room room;      /* for memory that PEs of other hosts have taken here */
    uint32_t first_pe_turn;      /* whose channel is checked first; rotates, so that none starves */
    /* How far the lane has followed the target of each link (link/state.h). Writer: the lane. release; pairs with
     * acquire in quoit_lane_has_followed() */
    _Atomic uint32_t followed[QUOIT_SIDE_COUNT];
    _Atomic uint64_t dead_links; /* writer: lane 0. QUOIT_DEAD_LINKS(); 0: the ring is not known to be cut */
    uint64_t retry_at_ns;        /* the earliest time to retry what had no resource; 0: none */
    enum quoit_status status;    /* why the lane ended; OK while it runs */
    struct quoit_lane_placement placement;
    uint64_t hint_bits[QUOIT_SIDE_COUNT];   /* doorbells that are mere hints: cleared before a sleep */
    uint64_t polled_bits[QUOIT_SIDE_COUNT]; /* of them, what wakes this lane alone: masked except around a sleep */
    struct quoit_waiter waiter;
};

/* The ports are open and both links have come up once. The group's engine has been opened for the group. NO_MEMORY. */
QUOIT_MUST_USE enum quoit_status quoit_lane_open(struct quoit_lane *lane, struct quoit_lane_group *group,
                                                 uint32_t index);
/* Also for a partly opened lane. */
void quoit_lane_close(struct quoit_lane *lane);
/* The link is already past its first epoch: the lane begins with that side down. Before it runs. */
void quoit_lane_begin_down(struct quoit_lane *lane, enum quoit_side side, uint32_t epoch);
/* Whether the lane has done everything that the link's target asks for. Any thread. */
bool quoit_lane_has_followed(const struct quoit_lane *lane, enum quoit_side side);
/* Runs until the header's is_stopping is set or an error occurs; see lane->status. */
void quoit_lane_run(struct quoit_lane *lane);

/* deliver.c: executes a frame for a local PE; payload is what came with it (none if LANDED). */
void quoit_lane_deliver(struct quoit_lane *lane, const struct quoit_verdict *verdict, const char *payload);
/* The payload of a DATA frame about to be sent. */
const char *quoit_lane_reply_payload(struct quoit_lane *lane, const struct quoit_frame *frame);
/* Takes a PE's request out of its memory and checks it. INVALID: the PE wrote something that this library never writes.
 */
QUOIT_MUST_USE enum quoit_status quoit_lane_take_request(struct quoit_lane *lane, uint32_t local, uint32_t index,
                                                         struct quoit_frame *frame_out, uint32_t *spread_out);
void quoit_lane_complete(struct quoit_lane *lane, uint64_t cookie);
/* A request of a PE is complete; the caller wakes the PE. For engines whose lanes complete requests of each other's
 * channels: one at a time. */
void quoit_lane_post(struct quoit_lane *lane, uint64_t cookie);

/* For the simulator and tests. Asserts what holds between two calls of env or port. */
void quoit_lane_check_invariants(const struct quoit_lane *lane);
/* Nothing is outstanding or pending. */
bool quoit_lane_is_quiescent(const struct quoit_lane *lane);

/* The limits that frames and requests are checked against. */
static inline struct quoit_frame_limits quoit_lane_limits(const struct quoit_lane *lane)
{
    return (struct quoit_frame_limits){.host_count = lane->hosts.count,
                                       .chunk_bytes = lane->layout->job.chunk_bytes,
                                       .segment_bytes = lane->layout->segment_stride,
                                       .pe_counts = lane->pe_counts,
                                       .has_loopback = lane->layout->job.has_loopback &&
                                                       lane->index == lane->layout->link_lane_count};
}
static inline bool quoit_lane_is_stopping(const struct quoit_lane *lane)
{
    const struct quoit_host_header *header = (const struct quoit_host_header *)lane->memory;
    return atomic_load_explicit(&header->is_stopping, memory_order_relaxed) != 0;
}
static inline bool quoit_lane_is_up(const struct quoit_lane *lane, enum quoit_side side)
{
    return QUOIT_LINK_TARGET_IS_UP(atomic_load_explicit(&lane->followed[side], memory_order_relaxed));
}
static inline void quoit_lane_fail(struct quoit_lane *lane, enum quoit_status status)
{
    if (lane->status == QUOIT_OK)
        lane->status = status;
}
/* One writer, so no atomic addition. */
static inline void quoit_lane_count_up(_Atomic uint64_t *count, uint64_t more)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + more, memory_order_relaxed);
}
/* trace.c. Events of this lane; each begins at the time that _now() returned, which is 0 without tracing. */
static inline uint64_t quoit_lane_trace_now(const struct quoit_lane *lane)
{
    return __builtin_expect(lane->trace != NULL, 0) ? quoit_clock_now_ns() : 0;
}
void quoit_lane_write_frame(struct quoit_lane *lane, enum quoit_trace_kind kind, const struct quoit_frame *frame,
                            enum quoit_side side, uint64_t begin_ns, uint64_t value);
static inline void quoit_lane_trace_frame(struct quoit_lane *lane, enum quoit_trace_kind kind,
                                          const struct quoit_frame *frame, enum quoit_side side, uint64_t begin_ns)
{
    if (__builtin_expect(lane->trace != NULL, 0))
        quoit_lane_write_frame(lane, kind, frame, side, begin_ns, frame->sequence);
}
static inline void quoit_lane_trace_dma(struct quoit_lane *lane, const struct quoit_frame *frame, enum quoit_side side,
                                        uint32_t index, uint64_t begin_ns)
{
    if (__builtin_expect(lane->trace != NULL, 0))
        quoit_lane_write_frame(lane, QUOIT_TRACE_DMA, frame, side, begin_ns, index);
}
/* The neighbour has returned this many slots in total. */
void quoit_lane_write_credit(struct quoit_lane *lane, enum quoit_side side, enum quoit_class class,
                             uint64_t consumed_total);
static inline void quoit_lane_trace_credit(struct quoit_lane *lane, enum quoit_side side, enum quoit_class class,
                                           uint64_t consumed_total)
{
    if (__builtin_expect(lane->trace != NULL, 0) && lane->traced_credit[side][class] != consumed_total)
        quoit_lane_write_credit(lane, side, class, consumed_total);
}
void quoit_lane_write_link(struct quoit_lane *lane, enum quoit_side side, bool is_up);
static inline void quoit_lane_trace_link(struct quoit_lane *lane, enum quoit_side side, bool is_up)
{
    if (__builtin_expect(lane->trace != NULL, 0))
        quoit_lane_write_link(lane, side, is_up);
}
void quoit_lane_write_sleep(struct quoit_lane *lane, uint64_t begin_ns, uint64_t end_ns);
static inline void quoit_lane_trace_sleep(struct quoit_lane *lane, uint64_t begin_ns, uint64_t end_ns)
{
    if (__builtin_expect(lane->trace != NULL, 0))
        quoit_lane_write_sleep(lane, begin_ns, end_ns);
}

/* Identifies a request in the ring: its PE and the slot of its channel. */
static inline uint64_t quoit_lane_cookie(uint32_t local, uint32_t index)
{
    return (uint64_t)local * QUOIT_REQUESTS_A_CHANNEL + index;
}

#endif
