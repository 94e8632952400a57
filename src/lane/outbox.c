/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/outbox.h"
#include "base/assert.h"

#include <string.h>

#define ALL_FREE ((uint32_t)(((uint64_t)1 << QUOIT_MESSAGES_MAX) - 1))

_Static_assert(QUOIT_MESSAGES_MAX <= 32, "a bit for each");

void quoit_outbox_open(struct quoit_outbox *outbox, const struct quoit_layout *layout, void *memory)
{
    memset(outbox, 0, sizeof *outbox);
    outbox->layout = layout;
    outbox->memory = memory;
    pthread_mutex_init(&outbox->lock, NULL);
    atomic_store_explicit(&outbox->free_mask, ALL_FREE, memory_order_relaxed);
}

void quoit_outbox_close(struct quoit_outbox *outbox)
{
    pthread_mutex_destroy(&outbox->lock);
}

static void hand_over(struct quoit_outbox *outbox, uint32_t entry)
{
    uint32_t tail = atomic_load_explicit(&outbox->tail, memory_order_relaxed);
    outbox->order[tail % QUOIT_MESSAGES_MAX] = (uint8_t)entry;
    atomic_store_explicit(&outbox->tail, tail + 1, memory_order_release);
    quoit_park_wake(&quoit_memory_lane(outbox->layout, outbox->memory, 0)->park);
}

enum quoit_status quoit_outbox_send(struct quoit_outbox *outbox, uint32_t dest_host, uint32_t port, const void *payload,
                                    uint32_t bytes)
{
    const struct quoit_layout *layout = outbox->layout;
    if (dest_host >= layout->job.host_count || dest_host == layout->host || port >= QUOIT_MESSAGE_PORTS ||
        bytes > layout->job.chunk_bytes)
        return QUOIT_OUT_OF_RANGE;
    pthread_mutex_lock(&outbox->lock);
    uint32_t mask = atomic_load_explicit(&outbox->free_mask, memory_order_acquire); /* pairs with complete() */
    if (mask != 0) {
        uint32_t entry = (uint32_t)__builtin_ctz(mask);
        atomic_fetch_and_explicit(&outbox->free_mask, ~(1u << entry), memory_order_relaxed);
        memcpy(outbox->memory + quoit_layout_message(layout, entry), payload, bytes);
        outbox->frames[entry] = (struct quoit_frame){.kind = QUOIT_FRAME_MESSAGE,
                                                     .op = (uint8_t)port,
                                                     .source_host = (uint16_t)layout->host,
                                                     .dest_host = (uint16_t)dest_host,
                                                     .bytes = bytes};
        hand_over(outbox, entry);
    }
    pthread_mutex_unlock(&outbox->lock);
    return mask != 0 ? QUOIT_OK : QUOIT_FULL;
}

bool quoit_outbox_is_empty(const struct quoit_outbox *outbox)
{
    return atomic_load_explicit(&outbox->free_mask, memory_order_acquire) == ALL_FREE; /* pairs with complete() */
}

const struct quoit_frame *quoit_outbox_next(const struct quoit_outbox *outbox, uint32_t *entry_out)
{
    if (atomic_load_explicit(&outbox->tail, memory_order_acquire) == outbox->head)
        return NULL;
    *entry_out = outbox->order[outbox->head % QUOIT_MESSAGES_MAX];
    return &outbox->frames[*entry_out];
}

void quoit_outbox_taken(struct quoit_outbox *outbox)
{
    outbox->head++;
}

void quoit_outbox_complete(struct quoit_outbox *outbox, uint32_t entry)
{
    quoit_assert(entry < QUOIT_MESSAGES_MAX);
    uint32_t before = atomic_fetch_or_explicit(&outbox->free_mask, 1u << entry, memory_order_release);
    quoit_assert((before & (1u << entry)) == 0);
}
