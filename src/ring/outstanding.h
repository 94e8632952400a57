/* SPDX-License-Identifier: BSD-3-Clause */
/* outstanding.h - the outstanding requests of the local PEs, each with the frame as sent.
 *
 * A pool of outstanding_max entries. An entry is in exactly one list: free, one of its flow's two lists (flow.h), or
 * completed. The frames of both lists of a flow, merged by flow_sequence, are what the flow retransmits after a change
 * of the topology.
 *
 * Token: the index in the low half, a use count of that index in the high half, so a response to an earlier use is
 * detected.
 */
#ifndef QUOIT_RING_OUTSTANDING_H
#define QUOIT_RING_OUTSTANDING_H

#include "ring/ring.h"

#define QUOIT_RING_NONE UINT32_MAX

struct quoit_ring_entry {
    struct quoit_frame frame; /* as sent, without the queue's sequence */
    uint64_t cookie;
    uint32_t next; /* in its list */
    uint16_t use_count;
    bool is_free;
};

/* First in, first out, threaded through entry.next. */
struct quoit_ring_list {
    uint32_t head;
    uint32_t tail;
    uint32_t count;
};

struct quoit_ring_pool {
    struct quoit_ring_entry *entries;
    uint32_t entry_count;
    struct quoit_ring_list free;
    struct quoit_ring_list completed;
};

void quoit_ring_list_init(struct quoit_ring_list *list);
void quoit_ring_list_append(struct quoit_ring_pool *pool, struct quoit_ring_list *list, uint32_t index);
/* Removes and returns the first entry of a non-empty list. */
uint32_t quoit_ring_list_pop(struct quoit_ring_pool *pool, struct quoit_ring_list *list);

void quoit_ring_pool_init(struct quoit_ring_pool *pool, struct quoit_ring_entry *entries, uint32_t entry_count);
/* Takes a free entry (there must be one), copies `frame` into it and assigns a token. Returns the index. */
uint32_t quoit_ring_pool_take(struct quoit_ring_pool *pool, const struct quoit_frame *frame, uint64_t cookie);
/* The index that a token names, or QUOIT_RING_NONE if no outstanding request has it. */
uint32_t quoit_ring_pool_find(const struct quoit_ring_pool *pool, uint32_t token);
/* Frees the oldest completed entry and returns its cookie. False: none. */
bool quoit_ring_pool_next_completed(struct quoit_ring_pool *pool, uint64_t *cookie_out);

/* Asserts that the list is as long as its count, which it returns. */
uint32_t quoit_ring_check_list(const struct quoit_ring_pool *pool, const struct quoit_ring_list *list);
/* Asserts the free and completed lists, and that the flows' lists hold the other `flow_count` entries: none is lost. */
void quoit_ring_check_pool(const struct quoit_ring_pool *pool, uint32_t flow_count);

#endif
