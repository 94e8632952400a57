/* SPDX-License-Identifier: BSD-3-Clause */
/* reply.c - the bounded queues of pending replies. */
#include "ring/reply.h"

#include "base/assert.h"

void quoit_ring_replies_init(struct quoit_ring_replies *replies, struct quoit_ring_reply_entry *entries,
                             uint32_t entry_count)
{
    replies->entries = entries;
    replies->entry_count = entry_count;
    replies->free_count = entry_count;
    replies->free_head = 0;
    for (uint32_t i = 0; i < entry_count; i++)
        entries[i].next = i + 1 < entry_count ? i + 1 : QUOIT_RING_NONE;
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++)
        quoit_ring_list_init(&replies->waiting[side]);
}

void quoit_ring_replies_append(struct quoit_ring_replies *replies, enum quoit_side side,
                               const struct quoit_frame *frame)
{
    quoit_assert(replies->free_count > 0);
    uint32_t index = replies->free_head;
    struct quoit_ring_reply_entry *entry = &replies->entries[index];
    replies->free_head = entry->next;
    replies->free_count--;
    entry->frame = *frame;
    entry->next = QUOIT_RING_NONE;
    struct quoit_ring_list *list = &replies->waiting[side];
    if (list->count == 0)
        list->head = index;
    else
        replies->entries[list->tail].next = index;
    list->tail = index;
    list->count++;
}

void quoit_ring_replies_pop(struct quoit_ring_replies *replies, enum quoit_side side, struct quoit_frame *frame_out)
{
    struct quoit_ring_list *list = &replies->waiting[side];
    quoit_assert(list->count > 0);
    uint32_t index = list->head;
    struct quoit_ring_reply_entry *entry = &replies->entries[index];
    *frame_out = entry->frame;
    list->head = entry->next;
    list->count--;
    if (list->count == 0)
        list->tail = QUOIT_RING_NONE;
    entry->next = replies->free_head;
    replies->free_head = index;
    replies->free_count++;
}

void quoit_ring_replies_clear(struct quoit_ring_replies *replies)
{
    struct quoit_frame frame;
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++)
        while (replies->waiting[side].count > 0)
            quoit_ring_replies_pop(replies, (enum quoit_side)side, &frame);
}

void quoit_ring_check_replies(const struct quoit_ring_replies *replies)
{
    uint32_t waiting_count = 0;
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++) {
        const struct quoit_ring_list *list = &replies->waiting[side];
        uint32_t last = QUOIT_RING_NONE;
        uint32_t at = list->head;
        for (uint32_t i = 0; i < list->count; i++) {
            quoit_assert(at < replies->entry_count);
            last = at;
            at = replies->entries[at].next;
        }
        quoit_assert(at == QUOIT_RING_NONE);
        quoit_assert(last == list->tail);
        waiting_count += list->count;
    }
    quoit_assert(waiting_count + replies->free_count == replies->entry_count);
    uint32_t at = replies->free_head;
    for (uint32_t i = 0; i < replies->free_count; i++) {
        quoit_assert(at < replies->entry_count);
        at = replies->entries[at].next;
    }
    quoit_assert(at == QUOIT_RING_NONE);
}
