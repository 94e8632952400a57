/* SPDX-License-Identifier: BSD-3-Clause */
/* outstanding.c - the pool of outstanding requests. */
#include "ring/outstanding.h"

#include "base/assert.h"

#define TOKEN_INDEX_BITS 16
_Static_assert(QUOIT_RING_OUTSTANDING_MAX == 1u << TOKEN_INDEX_BITS, "an index fits its half of a token");

void quoit_ring_list_init(struct quoit_ring_list *list)
{
    *list = (struct quoit_ring_list){.head = QUOIT_RING_NONE, .tail = QUOIT_RING_NONE};
}

void quoit_ring_list_append(struct quoit_ring_pool *pool, struct quoit_ring_list *list, uint32_t index)
{
    quoit_assert(index < pool->entry_count);
    pool->entries[index].next = QUOIT_RING_NONE;
    if (list->count == 0)
        list->head = index;
    else
        pool->entries[list->tail].next = index;
    list->tail = index;
    list->count++;
}

uint32_t quoit_ring_list_pop(struct quoit_ring_pool *pool, struct quoit_ring_list *list)
{
    quoit_assert(list->count > 0);
    uint32_t index = list->head;
    list->head = pool->entries[index].next;
    list->count--;
    if (list->count == 0)
        list->tail = QUOIT_RING_NONE;
    return index;
}

void quoit_ring_pool_init(struct quoit_ring_pool *pool, struct quoit_ring_entry *entries, uint32_t entry_count)
{
    pool->entries = entries;
    pool->entry_count = entry_count;
    quoit_ring_list_init(&pool->free);
    quoit_ring_list_init(&pool->completed);
    for (uint32_t i = 0; i < entry_count; i++) {
        entries[i].is_free = true;
        quoit_ring_list_append(pool, &pool->free, i);
    }
}

uint32_t quoit_ring_pool_take(struct quoit_ring_pool *pool, const struct quoit_frame *frame, uint64_t cookie)
{
    uint32_t index = quoit_ring_list_pop(pool, &pool->free);
    struct quoit_ring_entry *entry = &pool->entries[index];
    entry->is_free = false;
    entry->use_count++;
    entry->frame = *frame;
    entry->frame.token = (uint32_t)entry->use_count << TOKEN_INDEX_BITS | index;
    entry->cookie = cookie;
    return index;
}

uint32_t quoit_ring_pool_find(const struct quoit_ring_pool *pool, uint32_t token)
{
    uint32_t index = token & ((1u << TOKEN_INDEX_BITS) - 1);
    if (index >= pool->entry_count || pool->entries[index].is_free || pool->entries[index].frame.token != token)
        return QUOIT_RING_NONE;
    return index;
}

bool quoit_ring_pool_next_completed(struct quoit_ring_pool *pool, uint64_t *cookie_out)
{
    if (pool->completed.count == 0)
        return false;
    uint32_t index = quoit_ring_list_pop(pool, &pool->completed);
    *cookie_out = pool->entries[index].cookie;
    pool->entries[index].is_free = true;
    quoit_ring_list_append(pool, &pool->free, index);
    return true;
}

uint32_t quoit_ring_check_list(const struct quoit_ring_pool *pool, const struct quoit_ring_list *list)
{
    uint32_t last = QUOIT_RING_NONE;
    uint32_t at = list->head;
    for (uint32_t i = 0; i < list->count; i++) {
        quoit_assert(at < pool->entry_count);
        last = at;
        at = pool->entries[at].next;
    }
    quoit_assert(at == QUOIT_RING_NONE);
    quoit_assert(last == list->tail);
    return list->count;
}

void quoit_ring_check_pool(const struct quoit_ring_pool *pool, uint32_t flow_count)
{
    uint32_t free_count = quoit_ring_check_list(pool, &pool->free);
    uint32_t completed_count = quoit_ring_check_list(pool, &pool->completed);
    quoit_assert(free_count + completed_count + flow_count == pool->entry_count);
    uint32_t at = pool->free.head;
    for (uint32_t i = 0; i < free_count; i++, at = pool->entries[at].next)
        quoit_assert(pool->entries[at].is_free);
    at = pool->completed.head;
    for (uint32_t i = 0; i < completed_count; i++, at = pool->entries[at].next)
        quoit_assert(!pool->entries[at].is_free);
}
