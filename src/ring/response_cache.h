/* SPDX-License-Identifier: BSD-3-Clause */
/* response_cache.h - the old values of a flow's latest AMO_FETCH at its destination, in case a response is lost.
 *
 * A source has at most fetch_max of them outstanding per flow and receives its responses in order. So when one more
 * arrives, the one fetch_max before it has its response: a table of the latest fetch_max never drops a value that may
 * be requested again, and no message is needed to retire an entry.
 */
#ifndef QUOIT_RING_RESPONSE_CACHE_H
#define QUOIT_RING_RESPONSE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

struct quoit_ring_response_cache_entry {
    uint64_t value;
    uint32_t number; /* of the request in its flow */
    uint32_t unused;
};

/* The table of one flow; its entries are stored elsewhere. */
struct quoit_ring_response_cache {
    struct quoit_ring_response_cache_entry *entries; /* [fetch_max] */
    uint32_t count;                                  /* at most fetch_max */
    uint32_t next;                                   /* where the next one goes */
};

void quoit_ring_response_cache_add(struct quoit_ring_response_cache *cache, uint32_t fetch_max, uint32_t number,
                                   uint64_t value);
/* False if there is none with that number. At most fetch_max steps, and only for a repeated request. */
bool quoit_ring_response_cache_find(const struct quoit_ring_response_cache *cache, uint32_t fetch_max, uint32_t number,
                                    uint64_t *value_out);

#endif
