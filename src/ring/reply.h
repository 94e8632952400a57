/* SPDX-License-Identifier: BSD-3-Clause */
/* reply.h - replies that wait for a slot: one FIFO per side; both share pending_reply_max entries. */
#ifndef QUOIT_RING_REPLY_H
#define QUOIT_RING_REPLY_H

#include "ring/outstanding.h"

struct quoit_ring_reply_entry {
    struct quoit_frame frame; /* complete but for sequence, topology_version and flow_sequence, which are those of the
                                 moment of sending */
    uint32_t next;
};

struct quoit_ring_replies {
    struct quoit_ring_reply_entry *entries;
    uint32_t entry_count;
    uint32_t free_head;
    uint32_t free_count;
    struct quoit_ring_list waiting[QUOIT_SIDE_COUNT]; /* by the side that they leave by */
};

void quoit_ring_replies_init(struct quoit_ring_replies *replies, struct quoit_ring_reply_entry *entries,
                             uint32_t entry_count);
static inline bool quoit_ring_replies_has_room(const struct quoit_ring_replies *replies)
{
    return replies->free_count > 0;
}
/* Appends; there must be room. */
void quoit_ring_replies_append(struct quoit_ring_replies *replies, enum quoit_side side,
                               const struct quoit_frame *frame);
/* Removes the oldest of a side, which must have one. */
void quoit_ring_replies_pop(struct quoit_ring_replies *replies, enum quoit_side side, struct quoit_frame *frame_out);

/* Removes all of both sides. */
void quoit_ring_replies_clear(struct quoit_ring_replies *replies);

void quoit_ring_check_replies(const struct quoit_ring_replies *replies);

#endif
