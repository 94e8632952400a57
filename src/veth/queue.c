/* SPDX-License-Identifier: BSD-3-Clause */
#include "veth/queue.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#define CREDIT_SHARE 4 /* slots are given back when so many-th of them are consumed */

void quoit_veth_queue_open(struct quoit_veth_queue *queue, struct quoit_port *port, uint64_t window_offset,
                           struct quoit_veth_range *inbound)
{
    *queue = (struct quoit_veth_queue){.port = port, .window_offset = window_offset, .inbound = inbound};
    pthread_mutex_init(&queue->send_lock, NULL);
    pthread_mutex_init(&queue->receive_lock, NULL);
}

void quoit_veth_queue_close(struct quoit_veth_queue *queue)
{
    pthread_mutex_destroy(&queue->send_lock);
    pthread_mutex_destroy(&queue->receive_lock);
}

static void set_up(struct quoit_veth_queue *queue, bool is_up)
{
    pthread_mutex_lock(&queue->receive_lock);
    pthread_mutex_lock(&queue->send_lock);
    queue->sent = queue->taken = queue->credited = 0;
    atomic_store(&queue->seen_consumed, 0);
    atomic_store(&queue->is_up, is_up);
    pthread_mutex_unlock(&queue->send_lock);
    pthread_mutex_unlock(&queue->receive_lock);
}

void quoit_veth_queue_begin(struct quoit_veth_queue *queue)
{
    set_up(queue, true);
}

void quoit_veth_queue_end(struct quoit_veth_queue *queue)
{
    set_up(queue, false);
}

/* A count that the neighbour cannot have reached leaves no room. */
static bool has_room(const struct quoit_veth_queue *queue, uint64_t sent, enum quoit_veth_reserve reserve)
{
    uint64_t consumed = atomic_load_explicit(&queue->inbound->consumed, memory_order_acquire);
    uint64_t outstanding = sent - consumed;
    return outstanding <= QUOIT_VETH_SLOT_COUNT && QUOIT_VETH_SLOT_COUNT - outstanding > (uint64_t)reserve;
}

bool quoit_veth_queue_has_room(struct quoit_veth_queue *queue, enum quoit_veth_reserve reserve)
{
    pthread_mutex_lock(&queue->send_lock);
    bool has = !atomic_load(&queue->is_up) || has_room(queue, queue->sent, reserve);
    pthread_mutex_unlock(&queue->send_lock);
    return has;
}

static enum quoit_status send_locked(struct quoit_veth_queue *queue, const struct quoit_veth_header *header,
                                     enum quoit_veth_reserve reserve)
{
    if (!atomic_load_explicit(&queue->is_up, memory_order_relaxed))
        return QUOIT_LINK_DOWN;
    if (!has_room(queue, queue->sent, reserve))
        return QUOIT_FULL;
    uint64_t slot = queue->sent % QUOIT_VETH_SLOT_COUNT;
    enum quoit_status status = quoit_port_write_marked(
        queue->port, QUOIT_WINDOW_SLOTS,
        queue->window_offset + offsetof(struct quoit_veth_range, slots) + slot * QUOIT_VETH_SLOT_BYTES, header,
        sizeof *header + header->bytes, queue->window_offset + offsetof(struct quoit_veth_range, sent),
        queue->sent + 1);
    queue->sent += status == QUOIT_OK;
    return status;
}

enum quoit_status quoit_veth_queue_send(struct quoit_veth_queue *queue, const struct quoit_veth_header *header,
                                        enum quoit_veth_reserve reserve)
{
    pthread_mutex_lock(&queue->send_lock);
    enum quoit_status status = send_locked(queue, header, reserve);
    pthread_mutex_unlock(&queue->send_lock);
    return status;
}

static bool has_frame(const struct quoit_veth_queue *queue)
{
    uint64_t waiting = atomic_load_explicit(&queue->inbound->sent, memory_order_acquire) - queue->taken;
    return waiting != 0 && waiting <= QUOIT_VETH_SLOT_COUNT;
}

/* Once `least` are consumed. The write may be lost with the link, and then so are the slots. */
static bool give_back(struct quoit_veth_queue *queue, uint64_t least)
{
    if (queue->taken - queue->credited < least)
        return false;
    queue->credited = queue->taken;
    return quoit_port_write64(queue->port, QUOIT_WINDOW_SLOTS,
                              queue->window_offset + offsetof(struct quoit_veth_range, consumed),
                              queue->taken) == QUOIT_OK;
}

uint32_t quoit_veth_queue_receive(struct quoit_veth_queue *queue, quoit_veth_take *take, void *arg, uint32_t most,
                                  bool *has_credited_out)
{
    uint32_t count = 0;
    *has_credited_out = false;
    pthread_mutex_lock(&queue->receive_lock);
    while (count < most && atomic_load_explicit(&queue->is_up, memory_order_relaxed) && has_frame(queue)) {
        void *slot = queue->inbound->slots[queue->taken % QUOIT_VETH_SLOT_COUNT];
        if (!take(arg, slot)) {
            *has_credited_out |= give_back(queue, 1); /* what is not given back can stop a ring: see Deadlock */
            break;
        }
        queue->taken++;
        count++;
        *has_credited_out |= give_back(queue, QUOIT_VETH_SLOT_COUNT / CREDIT_SHARE);
    }
    pthread_mutex_unlock(&queue->receive_lock);
    return count;
}

bool quoit_veth_queue_has_credits(struct quoit_veth_queue *queue)
{
    uint64_t consumed = atomic_load_explicit(&queue->inbound->consumed, memory_order_acquire);
    return atomic_exchange_explicit(&queue->seen_consumed, consumed, memory_order_relaxed) != consumed;
}
