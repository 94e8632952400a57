/* SPDX-License-Identifier: BSD-3-Clause */
/* lane.h - the lane engine of the papers' protocol.
 *
 * A lane is a service thread of the papers' pool with its interrupt bit. On each side it has one outgoing transfer
 * under way; from each side it takes what the neighbour's bit announces, executes what is for its host, and relays the
 * rest. A transfer is a request of a local PE, the reply to a request executed here, or a relayed one. Requests wait in
 * one queue for all lanes of the host (pool.h); what a lane has begun stays with it and with the lanes of its number on
 * the way, until the reply.
 *
 * Threads: the lane's, but struct quoit_papers_shared is shared by all lanes.
 */
#ifndef QUOIT_PAPERS_LANE_H
#define QUOIT_PAPERS_LANE_H

#include "lane/lane.h"
#include "papers/pool.h"
#include "papers/scratchpad.h"

#define QUOIT_REPLIES_MAX 64 /* queued; a request whose reply would be one more stays in its buffer */

/* A zeroed struct is a valid start. */
struct quoit_papers_shared {
    struct quoit_scratchpads scratchpads[QUOIT_SIDE_COUNT][QUOIT_METADATA_SETS];
    /* 0: none; else 1 + status of the lane's DMA. Writers: the lane that polls the channel; cleared by the owning lane.
     */
    _Atomic uint32_t dma_done[QUOIT_SIDE_COUNT][QUOIT_LANES_MAX];
    struct quoit_papers_pool pool;
};

/* A place in one of our bypass buffers and what it holds. Its payload is in the window. */
struct quoit_bypass {
    struct quoit_frame frame;
};

/* The input of an outgoing transfer. */
struct quoit_outgoing {
    struct quoit_frame frame;
    const char *payload;        /* frame.bytes of payload, if the kind carries one */
    bool is_relay;              /* it is relayed; else it starts here */
    uint32_t relay_buffer;      /* is_relay: our buffer that it leaves */
    enum quoit_side relay_side; /* is_relay: the side where it arrived */
    bool is_put;                /* a put of a local PE, which is timed */
    bool must_copy;             /* the DMA engine cannot read the payload's memory */
    uint64_t wanted_ns;         /* is_put: when it began to wait for a bit */
};

struct quoit_transfer {
    enum quoit_transfer_state state;
    struct quoit_outgoing out;
    uint64_t count;                            /* transfers of this bit so far, including this one */
    uint64_t placed_count[QUOIT_BYPASS_COUNT]; /* of these: into each buffer of the neighbour */
    uint64_t payload_at;                       /* offset of the payload in the window SLOTS */
    uint64_t since_ns;                         /* is_put: when the state began */
    uint64_t dma_begin_ns;                     /* when its DMA began; 0: it is copied, or not traced */
    uint32_t turn;                             /* which source is tried first for the next transfer */
};

struct quoit_arrivals {
    struct quoit_bypass places[QUOIT_BYPASS_COUNT][QUOIT_BYPASS_DEPTH]; /* each buffer is a queue */
    uint64_t filled_count[QUOIT_BYPASS_COUNT];                          /* of each buffer, since the start */
    uint64_t emptied_count[QUOIT_BYPASS_COUNT];
    uint64_t count;       /* transfers taken from this side */
    bool is_ring_pending; /* the doorbell for the latest responses was not rung yet */
};

struct quoit_reply_queue {
    struct quoit_frame frames[QUOIT_REPLIES_MAX];
    uint32_t head;
    uint32_t tail;
};

/* An outstanding request that the lane began. Its index is its token. */
struct quoit_open {
    bool is_open;
    uint8_t reply_kind;
    uint16_t dest_host;
    bool is_put;
    struct quoit_papers_request request;
};

struct quoit_papers_lane {
    struct quoit_papers_shared *shared;
    struct quoit_transfer transfers[QUOIT_SIDE_COUNT];
    struct quoit_arrivals arrivals[QUOIT_SIDE_COUNT];
    struct quoit_reply_queue replies;
    struct quoit_open *open;
    uint32_t open_count;
    uint16_t *free_tokens; /* of those that are not open, the last is used next */
    uint32_t free_count;
};

extern const struct quoit_lane_engine quoit_papers_engine;

/* doorbell.c: the papers' barrier, which lane 0 runs with any engine. */
extern const struct quoit_lane_barrier quoit_papers_barrier_engine;

/* The scratchpads that transfers of this lane use on `side`: the same set at both ends. */
static inline uint32_t quoit_metadata_set(const struct quoit_lane *lane, enum quoit_side side)
{
    struct quoit_port_limits limits;
    quoit_port_limits(lane->ports[side], &limits);
    return lane->index % (limits.scratchpad_count / QUOIT_METADATA_WORDS);
}

/* lane.c: wakes idle lanes, one for each request that waits. */
void quoit_papers_call(struct quoit_lane *lane);

/* check.c */
void quoit_papers_check(const struct quoit_lane *lane);
bool quoit_papers_is_quiescent(const struct quoit_lane *lane);

/* send.c */
/* Whether the bit is free, and a place in the buffer of the frame, of which kind, source and destination host are used.
 */
bool quoit_scratchpad_may_begin(const struct quoit_lane *lane, enum quoit_side side, const struct quoit_frame *frame);
/* Starts an outgoing transfer on `side`; false if it may not begin. */
bool quoit_scratchpad_begin(struct quoit_lane *lane, enum quoit_side side, const struct quoit_outgoing *out);
/* Advances the outgoing transfer on `side` as far as possible. Returns the number of moves. */
uint32_t quoit_scratchpad_advance(struct quoit_lane *lane, enum quoit_side side);
/* The latest value of one of our response words, written by the neighbour. */
uint64_t quoit_scratchpad_response(const struct quoit_lane *lane, enum quoit_side side, uint32_t word);
/* Writes one of the neighbour's response words; the neighbour reads it when the doorbell rings. */
void quoit_scratchpad_respond(struct quoit_lane *lane, enum quoit_side side, uint32_t word, uint64_t count);
/* Rings one doorbell for all responses since the last. */
void quoit_scratchpad_ring_responses(struct quoit_lane *lane, enum quoit_side side);
/* Frees the oldest place of one of our buffers. */
void quoit_scratchpad_empty(struct quoit_lane *lane, enum quoit_side side, uint32_t buffer);

#endif
