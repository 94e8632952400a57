/* SPDX-License-Identifier: BSD-3-Clause */
/* lane.h - one lane of a proxy at work. Private to proxy.
 *
 * A lane turns the verdicts of its ring into copies and stores: it owns the inbound queues of its number on both sides
 * (reads slots, returns credits), the outbound ones (writes slots), and the channels of its number of all local PEs.
 *
 * Links: the lane follows what the manager wants (links.h). A write that finds the link down is a frame lost on the
 * way: the ring sends it again after the link_down() that must follow.
 *
 * Threads: everything here belongs to the lane's thread, save is_stopping, the park, and the atomics.
 */
#ifndef QUOIT_PROXY_LANE_H
#define QUOIT_PROXY_LANE_H

#include "env/clock.h"
#include "env/wait.h"
#include "host/layout.h"
#include "proxy/mover.h"
#include "proxy/proxy.h"
#include "papers/barrier.h"
#include "proxy/settle.h"
#include "port/port.h"

#define QUOIT_LANE_DOWN(incarnation) ((uint32_t)(incarnation) << 1)
#define QUOIT_LANE_UP(incarnation)   ((uint32_t)(incarnation) << 1 | 1)

/* What the lane keeps of a request under way: taken from the PE's memory once, checked, and not read there again. */
struct quoit_issued {
    uint64_t data_offset;
    uint32_t bytes;
};

/* A frame whose payload is under way by DMA. Its header is written when that has arrived. */
struct quoit_departure {
    struct quoit_frame frame;
    enum quoit_side side;
    uint64_t slot_at; /* in the window SLOTS */
    /* The inbound slot that the payload is read from, which the neighbour must not write meanwhile; sequence 0: none */
    enum quoit_side from_side;
    enum quoit_class from_class;
    uint64_t from_sequence;
    uint64_t begin_ns; /* when its DMA began; 0: nothing is traced */
};
struct quoit_scratchpad_lane;
struct quoit_scratchpad_proxy;

struct quoit_lane {
    const struct quoit_layout *layout;
    char *memory;
    uint32_t index;
    struct quoit_port *ports[QUOIT_SIDE_COUNT];
    uint64_t landing_bytes[QUOIT_SIDE_COUNT]; /* how much of the neighbour's segments its window covers */
    struct quoit_lane_shared *shared;
    bool (*step)(void *lane); /* one look at everything; true when there was something to do */
    /* A request was executed; value: of an AMO_FETCH the old value. */
    void (*answer)(struct quoit_lane *lane, const struct quoit_frame *request, uint64_t value);
    struct quoit_ring *ring;                                     /* protocol QUEUE, else NULL */
    struct quoit_scratchpad_lane *scratchpad;                    /* protocol SCRATCHPAD, else NULL */
    struct quoit_papers_barrier barrier;                         /* of lane 0 */
    struct quoit_trace_ring *trace;                              /* NULL: nothing is traced */
    uint64_t traced_credit[QUOIT_SIDE_COUNT][QUOIT_CLASS_COUNT]; /* the last that was */
    uint32_t *pe_counts;                                         /* PEs of each host, for frame checks */
    struct quoit_issued *issued;                                 /* [local PE][request] */
    uint32_t *submit_heads;                                      /* [local PE] */
    char *gather;                                                /* one chunk, for strided gets */
    struct quoit_mover *mover;                                   /* protocol QUEUE */
    struct quoit_departure departures[QUOIT_MOVES_MAX];          /* by the mover's index */
    bool keeps_slots;       /* departures read inbound slots, or did when the ring was last told */
    uint32_t first_pe_turn; /* whose channel is looked at first; moves on, so that none starves */
    bool must_ring[QUOIT_SIDE_COUNT];
    /* What the manager wants of a side, and how far the lane is: QUOIT_LANE_UP or _DOWN of an incarnation. */
    _Atomic uint32_t wanted[QUOIT_SIDE_COUNT];  /* writer: the manager. release; pairs with acquire in the lane */
    _Atomic uint32_t reached[QUOIT_SIDE_COUNT]; /* writer: the lane. release; pairs with acquire in the manager */
    _Atomic uint64_t dead_links; /* writer: the lane. Two links known to be dead, as number + 1 each; 0: not two */
    bool has_news;               /* the ring may know more of the links than the lane has told */
    uint64_t hold_until_ns;      /* the earliest time at which something held may go on; 0: none */
    enum quoit_status status;    /* what ended the lane; OK while it runs */
    struct quoit_settling settling;
    uint32_t hint_bits; /* doorbells that say no more than "look": cleared before a sleep */
    struct quoit_waiter waiter;
};

/* ports are opened and their windows set. The mover is the proxy's and outlives the lane. `scratchpad_proxy` is what
 * the lanes share in the protocol SCRATCHPAD, else NULL. NO_MEMORY. */
QUOIT_MUST_USE enum quoit_status quoit_lane_open(struct quoit_lane *lane, const struct quoit_proxy_config *config,
                                                 uint32_t index, struct quoit_port *const ports[QUOIT_SIDE_COUNT],
                                                 struct quoit_mover *mover,
                                                 struct quoit_scratchpad_proxy *scratchpad_proxy);
void quoit_lane_close(struct quoit_lane *lane);
/* Serves until the header says stop or something fails; lane->status tells. */
void quoit_lane_run(struct quoit_lane *lane);

/* deliver.c: executes a frame for a local PE; payload is what came with it (not for LANDED). */
void quoit_lane_deliver(struct quoit_lane *lane, const struct quoit_verdict *verdict, const char *payload);
/* The payload of a DATA frame that is about to leave. */
const char *quoit_lane_reply_payload(struct quoit_lane *lane, const struct quoit_frame *frame);
/* Takes a PE's request out of its memory and checks it. INVALID: the PE wrote what no library of ours writes. */
QUOIT_MUST_USE enum quoit_status quoit_lane_take_request(struct quoit_lane *lane, uint32_t local, uint32_t index,
                                                         struct quoit_frame *frame_out, uint32_t *spread_out);
void quoit_lane_complete(struct quoit_lane *lane, uint64_t cookie);

/* check.c, for the simulator and tests. Asserts what must hold whenever the lane is between two calls of env or port.
 */
void quoit_lane_check_invariants(const struct quoit_lane *lane);
/* Nothing is under way or owed. */
bool quoit_lane_is_quiescent(const struct quoit_lane *lane);

/* papers_doorbell.c: lane 0 plays the host's part in the papers' barrier, if the job has it. Returns moves made. */
uint32_t quoit_lane_barrier(struct quoit_lane *lane);

/* What frames and requests are checked against. */
static inline struct quoit_frame_limits quoit_lane_limits(const struct quoit_lane *lane)
{
    return (struct quoit_frame_limits){.host_count = lane->layout->job.host_count,
                                       .chunk_bytes = lane->layout->job.chunk_bytes,
                                       .segment_bytes = lane->layout->segment_stride,
                                       .pe_counts = lane->pe_counts};
}
static inline bool quoit_lane_is_stopping(const struct quoit_lane *lane)
{
    const struct quoit_host_header *header = (const struct quoit_host_header *)lane->memory;
    return atomic_load_explicit(&header->is_stopping, memory_order_relaxed) != 0;
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
/* lane_trace.c. Events of this lane; each begins when _now() was called, which is 0 when nothing is traced. */
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
/* The neighbour has given back so many slots in all. */
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

/* Names a request in the ring: which PE's, which slot of its channel. */
static inline uint64_t quoit_lane_cookie(uint32_t local, uint32_t index)
{
    return (uint64_t)local * QUOIT_REQUESTS_A_CHANNEL + index;
}

#endif
