/* SPDX-License-Identifier: BSD-3-Clause */
/* outstanding.h - the requests of the own PEs that are under way, each with the frame that was sent.
 *
 * A pool of outstanding_max entries. An entry is in exactly one list at a time: free, its flow's acknowledged-only or
 * asking list (flow.h), or completed. The frames of both lists of a flow, merged by flow_sequence, are what the flow
 * sends again after a change of the topology.
 *
 * Token: index in the low half, a count of the uses of that index in the high half, so that the answer to an earlier
 * use is known as such.
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
/* The first entry, removed; the list is not empty. */
uint32_t quoit_ring_list_pop(struct quoit_ring_pool *pool, struct quoit_ring_list *list);

void quoit_ring_pool_init(struct quoit_ring_pool *pool, struct quoit_ring_entry *entries, uint32_t entry_count);
/* Takes a free entry (there must be one), fills its frame from `frame` and gives it a token. The index. */
uint32_t quoit_ring_pool_take(struct quoit_ring_pool *pool, const struct quoit_frame *frame, uint64_t cookie);
/* The index that a token names, or QUOIT_RING_NONE if no request under way bears it. */
uint32_t quoit_ring_pool_find(const struct quoit_ring_pool *pool, uint32_t token);
/* The cookie of the oldest completed entry, which becomes free. False: none. */
bool quoit_ring_pool_next_completed(struct quoit_ring_pool *pool, uint64_t *cookie_out);

/* Asserts that the list is as long as it counts and returns that count. */
uint32_t quoit_ring_check_list(const struct quoit_ring_pool *pool, const struct quoit_ring_list *list);
/* Asserts free and completed, and that `flow_count` entries are in the lists of flows: none is lost. */
void quoit_ring_check_pool(const struct quoit_ring_pool *pool, uint32_t flow_count);

#endif
