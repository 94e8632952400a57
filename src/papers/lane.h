/* SPDX-License-Identifier: BSD-3-Clause */
/* lane.h - the engine of the papers' protocol.
 *
 * A lane is a service thread of the papers' pool with its interrupt bit. Out of each side it has one transfer under
 * way; into each side it takes what the neighbour's bit announces, executes what is for its host, and sends on what is
 * not. Transfers are a request of an own PE, a reply to a request that was executed here, or one that passes through.
 *
 * Threads: the lane's, save struct quoit_papers_shared, which all lanes share.
 */
#ifndef QUOIT_PAPERS_LANE_H
#define QUOIT_PAPERS_LANE_H

#include "lane/lane.h"
#include "papers/scratchpad.h"

#define QUOIT_REPLIES_MAX 64 /* waiting; a request that would cause one more waits in its buffer */

/* All zero is a valid start. */
struct quoit_papers_shared {
    struct quoit_scratchpads scratchpads[QUOIT_SIDE_COUNT][QUOIT_METADATA_SETS];
    /* 0: none; else 1 + status of the lane's DMA. Writers: whichever lane polls the channel; cleared by the lane. */
    _Atomic uint32_t dma_done[QUOIT_SIDE_COUNT][QUOIT_LANES_MAX];
};

/* A place of a bypass buffer of ours and what lies in it. Its payload is in the window. */
struct quoit_bypass {
    struct quoit_frame frame;
};

/* What a transfer is made from. */
struct quoit_outgoing {
    struct quoit_frame frame;
    const char *payload;        /* of frame.bytes, if the kind carries one */
    bool is_relay;              /* it passes through, else it starts here */
    uint32_t relay_buffer;      /* is_relay: of ours, which it leaves */
    enum quoit_side relay_side; /* is_relay: where it came in */
    bool is_put;                /* a put of an own PE, whose time is taken */
    bool must_copy;             /* the payload does not lie in memory that the DMA reads */
    uint64_t wanted_ns;         /* is_put: since when it waits for the bit */
};

struct quoit_transfer {
    enum quoit_transfer_state state;
    struct quoit_outgoing out;
    uint64_t count;                            /* transfers of this bit since the start, with this one */
    uint64_t placed_count[QUOIT_BYPASS_COUNT]; /* of them: into each buffer of the neighbour */
    uint64_t payload_at;                       /* in the window SLOTS, where the payload goes */
    uint64_t since_ns;                         /* is_put: when the state began */
    uint64_t dma_begin_ns;                     /* when its DMA began; 0: it is copied, or nothing is traced */
    uint32_t turn;                             /* which source is asked first for the next transfer */
};

struct quoit_arrivals {
    struct quoit_bypass places[QUOIT_BYPASS_COUNT][QUOIT_BYPASS_DEPTH]; /* each buffer a queue */
    uint64_t filled_count[QUOIT_BYPASS_COUNT];                          /* of each buffer, since the start */
    uint64_t emptied_count[QUOIT_BYPASS_COUNT];
    uint64_t count; /* transfers taken from this side */
    bool owes_bit;  /* the last one's bit is not freed yet */
    bool owes_ring; /* the neighbour was not told of the latest answers */
};

struct quoit_reply_queue {
    struct quoit_frame frames[QUOIT_REPLIES_MAX];
    uint32_t head;
    uint32_t tail;
};

/* A request of an own PE that is not answered yet; by its cookie, which is its token. */
struct quoit_open {
    bool is_open;
    uint8_t reply_kind;
    uint16_t dest_host;
    uint64_t since_ns; /* of a put: since when its proxy knows it; else 0 */
};

struct quoit_papers_lane {
    struct quoit_papers_shared *shared;
    struct quoit_transfer transfers[QUOIT_SIDE_COUNT];
    struct quoit_arrivals arrivals[QUOIT_SIDE_COUNT];
    struct quoit_reply_queue replies;
    struct quoit_open *open; /* [local PE][request] */
    uint64_t *wanted_ns;     /* [local PE]: since when the PE's next request is known, 0: there is none */
};

extern const struct quoit_lane_engine quoit_papers_engine;

/* doorbell.c: the papers' barrier, as lane 0 plays it whatever the engine. */
extern const struct quoit_lane_barrier quoit_papers_barrier_engine;

/* check.c */
void quoit_papers_check(const struct quoit_lane *lane);
bool quoit_papers_is_quiescent(const struct quoit_lane *lane);

/* send.c */
/* Starts the transfer out of `side` and returns true, or false if the bit or the buffer is not free. */
bool quoit_scratchpad_begin(struct quoit_lane *lane, enum quoit_side side, const struct quoit_outgoing *out);
/* Brings the transfer out of `side` as far as it goes now. Returns moves made. */
uint32_t quoit_scratchpad_advance(struct quoit_lane *lane, enum quoit_side side);
/* What the neighbour last told in one of our words. */
uint64_t quoit_scratchpad_answered(const struct quoit_lane *lane, enum quoit_side side, uint32_t word);
/* Writes one of the neighbour's words; it looks when the doorbell rings. */
void quoit_scratchpad_answer(struct quoit_lane *lane, enum quoit_side side, uint32_t word, uint64_t count);
/* One doorbell for all answers since the last. */
void quoit_scratchpad_ring_answers(struct quoit_lane *lane, enum quoit_side side);
/* The first place of a buffer of ours may be used again. */
void quoit_scratchpad_empty(struct quoit_lane *lane, enum quoit_side side, uint32_t buffer);

#endif
