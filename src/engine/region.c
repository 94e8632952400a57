/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/region.h"
#include "base/bisect.h"

_Static_assert(offsetof(struct quoit_region, base) == 0 && sizeof(uintptr_t) == sizeof(uint64_t), "for quoit_bisect()");

const struct quoit_region *quoit_regions_variables(const struct quoit_regions *regions, const void *address)
{
    uintptr_t at = (uintptr_t)address;
    if (at - regions->data.base < regions->data.bytes)
        return &regions->data;
    size_t place = quoit_bisect(regions->others, regions->other_count, sizeof *regions->others, at);
    const struct quoit_region *region = place ? &regions->others[place - 1] : NULL;
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
