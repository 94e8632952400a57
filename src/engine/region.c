/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/region.h"

const struct quoit_region *quoit_regions_variables(const struct quoit_regions *regions, const void *address)
{
    uintptr_t at = (uintptr_t)address;
    uint32_t low = 0, high = regions->other_count; /* `low` of the others begin at or before the address */
    if (at - regions->data.base < regions->data.bytes)
        return &regions->data;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (regions->others[middle].base <= at)
            low = middle + 1;
        else
            high = middle;
    }
    const struct quoit_region *region = low ? &regions->others[low - 1] : NULL;
    return region && at - region->base < region->bytes ? region : NULL;
}

const struct quoit_region *quoit_regions_at(const struct quoit_regions *regions, uint64_t segment_offset)
{
    if (segment_offset - regions->heap.segment_offset < regions->heap.bytes)
        return &regions->heap;
    if (segment_offset - regions->data.segment_offset < regions->data.bytes)
        return &regions->data;
    for (uint32_t i = 0; i < regions->other_count; i++)
        if (segment_offset - regions->others[i].segment_offset < regions->others[i].bytes)
            return &regions->others[i];
    return NULL;
}
