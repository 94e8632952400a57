/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/room.h"

#include <errno.h>
#include <stdbool.h>

#include "base/assert.h"
#include "env/limits.h"
#include "env/map.h"

#define PAGE_BYTES  4096u
#define TAKER_SHARE 4 /* all takers together are permitted this part of what is free */

static bool is_permitted(struct quoit_room *room, uint64_t bytes)
{
    uint64_t permitted = atomic_load_explicit(&room->permitted_bytes, memory_order_relaxed);
    while (permitted >= bytes) {
        if (atomic_compare_exchange_weak_explicit(&room->permitted_bytes, &permitted, permitted - bytes,
                                                  memory_order_relaxed, memory_order_relaxed))
            return true;
    }
    return false;
}

static bool look(struct quoit_room *room, uint64_t bytes, uint32_t taker_count)
{
    uint64_t free_bytes = quoit_limits_free_bytes();
    if (free_bytes < QUOIT_ROOM_SPARE_BYTES || free_bytes - QUOIT_ROOM_SPARE_BYTES < bytes)
        return false;
    uint64_t more = (free_bytes - QUOIT_ROOM_SPARE_BYTES - bytes) / TAKER_SHARE / taker_count;
    if (more > QUOIT_ROOM_LOOK_BYTES)
        more = QUOIT_ROOM_LOOK_BYTES;
    atomic_store_explicit(&room->permitted_bytes, more, memory_order_relaxed);
    return true;
}

/* Pages that are there already are counted too while there is a permission: that costs looks, and no refusal. */
int quoit_room_take(struct quoit_room *room, void *start, uint64_t bytes, uint32_t taker_count)
{
    quoit_assert(taker_count > 0);
    uint64_t before = (uintptr_t)start % PAGE_BYTES;
    uint64_t whole = (before + bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    if (!is_permitted(room, whole)) {
        uint64_t missing = quoit_map_missing_bytes(start, bytes);
        if (missing == 0)
            return 0;
        if (!look(room, missing, taker_count))
            return ENOMEM;
    }
    return quoit_map_take_small(start, bytes);
}
