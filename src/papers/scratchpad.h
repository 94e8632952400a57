/* SPDX-License-Identifier: BSD-3-Clause */
/* scratchpad.h - the rules of the papers' protocol: metadata in scratchpads, interrupt bits, bypass buffers. Pure.
 *
 * What it is: the contents of the eight scratchpads, the choice of the next host's buffer for a transfer, the states of
 * a bit and of the scratchpads during a transfer, and the response to a transfer. lane.h is the engine that executes
 * them; docs/design/scratchpad-protocol.md separates what is the papers' from what is ours.
 *
 * Bits: lane n owns bit dmaputget[n] of each link and direction. It has one transfer under way, from the moment the bit
 *   is taken until the receiver frees it, which it does as soon as it has read the metadata: the payload has a place.
 * Scratchpads: a transfer's metadata takes four of the eight, so each link and direction has two sets. A lane uses the
 *   set of its number modulo two, or the only one on a chip with fewer than eight; one transfer owns a set from before
 * it is written until the receiver has read it. Buffers: each bit has, per direction, three buffers for requests and
 * three for replies at the receiver: one for transfers that have arrived, two for relayed ones. See quoit_bypass_of().
 *
 * Threads: all lanes may call quoit_scratchpads_take and release; the rest is for one thread at a time.
 */
#ifndef QUOIT_PAPERS_SCRATCHPAD_H
#define QUOIT_PAPERS_SCRATCHPAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "host/layout.h"
#include "port/port.h"

#define QUOIT_BYPASS_COUNT   6 /* bypass buffers per lane and direction, each a queue of */
#define QUOIT_BYPASS_DEPTH   2 /* this many places, so that one is filled while the other is emptied */
#define QUOIT_RESPONSE_WORDS 7 /* in which the neighbour responds to a lane */
_Static_assert(QUOIT_BYPASS_COUNT *QUOIT_BYPASS_DEPTH == QUOIT_SCRATCHPAD_SLOTS, "each place is a slot of the window");
_Static_assert(QUOIT_RESPONSE_WORDS * sizeof(uint64_t) <= QUOIT_LINE_BYTES,
               "the responses of a lane share a cache line");

/* State of a lane's bit and of the transfer that holds it. */
enum quoit_transfer_state {
    QUOIT_TRANSFER_FREE,    /* the bit is available */
    QUOIT_TRANSFER_COPYING, /* taken; the payload is on its way to the neighbour */
    QUOIT_TRANSFER_READY,   /* the payload is there; waiting for the scratchpads */
    QUOIT_TRANSFER_OFFERED, /* metadata written and doorbell rung; the scratchpads are ours until they are read */
    QUOIT_TRANSFER_STATE_COUNT
};

/* The neighbour responds in words of the window, each a count since the start, and rings the doorbell of responses. */
enum quoit_response_word {
    QUOIT_RESPONSE_READ,  /* transfers of this bit whose metadata was read, so that scratchpads and bit are free */
    QUOIT_RESPONSE_BYPASS /* and those after it: how often each bypass buffer was emptied */
};
_Static_assert(QUOIT_RESPONSE_BYPASS + QUOIT_BYPASS_COUNT == QUOIT_RESPONSE_WORDS, "a word for each");

const char *quoit_transfer_state_name(enum quoit_transfer_state state);
/* Whether the state table allows the move. */
bool quoit_transfer_may_move(enum quoit_transfer_state from, enum quoit_transfer_state to);
/* Changes the state; asserts that the move is allowed. */
void quoit_transfer_move(enum quoit_transfer_state *state, enum quoit_transfer_state to);

#define QUOIT_METADATA_WORDS 4
#define QUOIT_METADATA_SETS  (QUOIT_SCRATCHPAD_COUNT / QUOIT_METADATA_WORDS) /* at most */

/* The owner of one set of scratchpads on a link's other side. A zeroed struct: unowned. */
struct quoit_scratchpads {
    _Atomic uint32_t owner; /* lane + 1 */
};
/* False: another lane owns them. */
bool quoit_scratchpads_take(struct quoit_scratchpads *scratchpads, uint32_t lane);
/* The lane must own them. */
void quoit_scratchpads_release(struct quoit_scratchpads *scratchpads, uint32_t lane);

/* The side by which a transfer leaves each host. Payload and replies travel in one direction around the ring, as the
 * papers' barrier does, and so do requests; only the request of a get travels against its data, through the hosts that
 * its data comes from. */
enum quoit_side quoit_transfer_heading(const struct quoit_frame *frame);

/* Whether a request may be executed before those that its PE handed over before it. */
bool quoit_scratchpad_may_overtake(const struct quoit_frame *request);

/* The buffer at `host` for a transfer that arrives there. Relayed transfers change to the second buffer between the
 * host with the highest number and host 0, so that full buffers cannot form a cycle. */
uint32_t quoit_bypass_of(const struct quoit_frame *frame, uint32_t host);
/* Offsets within one side's window SLOTS: a lane's response word, and a place of a buffer. */
static inline uint64_t quoit_response_offset(const struct quoit_layout *layout, uint32_t lane, uint32_t word)
{
    return quoit_layout_lane_line(layout, lane, 0) + word * sizeof(uint64_t);
}
static inline uint64_t quoit_bypass_offset(const struct quoit_layout *layout, uint32_t lane, uint32_t place)
{
    return quoit_layout_lane_slot(layout, lane, place);
}
static inline bool quoit_bypass_is_local(uint32_t buffer)
{
    return buffer % (QUOIT_BYPASS_COUNT / QUOIT_CLASS_COUNT) == 0;
}

/* operand, operand2, trace, and op and size in the place of the unused topology number */
#define QUOIT_SCRATCHPAD_HEAD_BYTES (sizeof(struct quoit_frame) - offsetof(struct quoit_frame, operand))
/* Whether the operands and the flow number travel at the head of the payload buffer, because the scratchpads have no
 * room for them. */
bool quoit_scratchpad_has_head(const struct quoit_frame *frame);

/* Packs the metadata of a transfer; count: of its bit, from 1, times QUOIT_LANES_MAX, plus the lane. sequence,
 * flow_sequence, the topology number, trace and operands are not packed; op and size travel in the head. */
void quoit_scratchpad_pack(const struct quoit_frame *frame, uint64_t count, uint32_t words_out[QUOIT_METADATA_WORDS]);
/* *has_head_out: quoit_scratchpad_has_head() of the packed frame. INVALID: the words are not this transfer of this bit.
 */
QUOIT_MUST_USE enum quoit_status quoit_scratchpad_unpack(const uint32_t words[QUOIT_METADATA_WORDS], uint64_t count,
                                                         struct quoit_frame *frame_out, bool *has_head_out);

/* The reply of the destination: DATA or VALUE if the request asks for it, else the acknowledgement. */
struct quoit_frame quoit_scratchpad_reply(const struct quoit_frame *request, uint64_t value);

#endif
