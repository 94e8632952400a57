/* SPDX-License-Identifier: BSD-3-Clause */
/* region.h - this PE's symmetric memory as the program sees it: the heap and the segments of its variables.
 *
 * Nearly all transfers are in the heap or in the program's variables, which are looked at first; the others, of which a
 * program with many libraries has hundreds, are found by bisection.
 *
 * Threads: any may look; one thread sets up and changes sizes.
 */
#ifndef QUOIT_ENGINE_REGION_H
#define QUOIT_ENGINE_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct quoit_region {
    uintptr_t base;          /* its address in this PE */
    uint64_t bytes;          /* 0: absent */
    uint64_t segment_offset; /* of its first byte */
};

struct quoit_regions {
    struct quoit_region heap;    /* bytes: its size so far */
    struct quoit_region data;    /* the program's variables: the largest part of them */
    struct quoit_region *others; /* further parts, and the libraries'; in order of address, none overlaps another */
    uint32_t other_count;
};

/* The segment offset of `bytes` at `address`. False unless they lie wholly in the region. */
static inline bool quoit_region_has(const struct quoit_region *region, const void *address, size_t bytes,
                                    uint64_t *offset_out)
{
    uint64_t at = (uintptr_t)address - region->base;
    *offset_out = region->segment_offset + at;
    return at < region->bytes && bytes <= region->bytes - at;
}

/* The part of the program's or a library's variables that contains an address; NULL: none does. */
const struct quoit_region *quoit_regions_variables(const struct quoit_regions *regions, const void *address);
/* The region that contains a segment offset; NULL: none does. */
const struct quoit_region *quoit_regions_at(const struct quoit_regions *regions, uint64_t segment_offset);

/* The segment offset of `bytes` at `address`. False unless they lie wholly in one region. */
static inline bool quoit_regions_locate(const struct quoit_regions *regions, const void *address, size_t bytes,
                                        uint64_t *offset_out)
{
    if (quoit_region_has(&regions->heap, address, bytes, offset_out) ||
        quoit_region_has(&regions->data, address, bytes, offset_out))
        return true;
    if (regions->other_count == 0)
        return false;
    const struct quoit_region *region = quoit_regions_variables(regions, address);
    return region && quoit_region_has(region, address, bytes, offset_out);
}

#endif
