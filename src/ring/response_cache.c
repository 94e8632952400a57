/* SPDX-License-Identifier: BSD-3-Clause */
#include "ring/response_cache.h"

void quoit_ring_response_cache_add(struct quoit_ring_response_cache *cache, uint32_t fetch_max, uint32_t number,
                                   uint64_t value)
{
    cache->entries[cache->next] = (struct quoit_ring_response_cache_entry){.value = value, .number = number};
    cache->next = (cache->next + 1) % fetch_max;
    cache->count += cache->count < fetch_max;
}

bool quoit_ring_response_cache_find(const struct quoit_ring_response_cache *cache, uint32_t fetch_max, uint32_t number,
                                    uint64_t *value_out)
{
    for (uint32_t i = 1; i <= cache->count; i++) {
        const struct quoit_ring_response_cache_entry *entry =
            &cache->entries[(cache->next + fetch_max - i) % fetch_max];
        if (entry->number == number) {
            *value_out = entry->value;
            return true;
        }
    }
    return false;
}
