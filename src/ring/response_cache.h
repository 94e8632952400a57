/* SPDX-License-Identifier: BSD-3-Clause */
/* response_cache.h - the old values of the last AMO_FETCH that a flow's destination executed, in case the answer is
 * lost.
 *
 * A source has at most fetch_max of them under way in a flow and gets its answers in order. So when one more arrives,
 * the one fetch_max before it is answered: a table of the last fetch_max never forgets what may still be asked again,
 * and nobody need tell when an entry ends.
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

/* The table of one flow; its entries lie elsewhere. */
struct quoit_ring_response_cache {
    struct quoit_ring_response_cache_entry *entries; /* [fetch_max] */
    uint32_t count;                                  /* at most fetch_max */
    uint32_t next;                                   /* where the next one goes */
};

void quoit_ring_response_cache_add(struct quoit_ring_response_cache *cache, uint32_t fetch_max, uint32_t number,
                                   uint64_t value);
/* False if there is none of that number. At most fetch_max steps, and only for a request that is repeated. */
bool quoit_ring_response_cache_find(const struct quoit_ring_response_cache *cache, uint32_t fetch_max, uint32_t number,
                                    uint64_t *value_out);

#endif
