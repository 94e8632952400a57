/* SPDX-License-Identifier: BSD-3-Clause */
#include "veth/queue.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "env/wait.h"

#define COMPLETIONS  8 /* that are taken at once */
#define CREDIT_SHARE 4 /* credits are returned for this part of the slots */

void quoit_veth_queue_open(struct quoit_veth_queue *queue, struct quoit_port *port, uint64_t window_offset,
                           struct quoit_veth_range *inbound)
{
    *queue = (struct quoit_veth_queue){
        .port = port, .window_offset = window_offset, .inbound = inbound, .dma_bytes = QUOIT_VETH_DMA_NEVER};
    pthread_mutex_init(&queue->send_lock, NULL);
    pthread_mutex_init(&queue->receive_lock, NULL);
}

void quoit_veth_queue_close(struct quoit_veth_queue *queue)
{
    pthread_mutex_destroy(&queue->send_lock);
    pthread_mutex_destroy(&queue->receive_lock);
}

static uint64_t offset_of_slot(const struct quoit_veth_queue *queue, uint64_t ordinal)
{
    return queue->window_offset + offsetof(struct quoit_veth_range, slots) +
           ordinal % QUOIT_VETH_SLOT_COUNT * QUOIT_VETH_SLOT_BYTES;
}

/* Takes completions. A descriptor of a dead link completes too: its source is free again, its frame is lost. */
static uint32_t take_completions(struct quoit_veth_queue *queue)
{
    struct quoit_dma_done done[COMPLETIONS];
    uint32_t count = quoit_port_dma_poll(queue->port, queue->dma_channel, done, COMPLETIONS);
    for (uint32_t i = 0; i < count; i++) {
        struct quoit_veth_departure *departure = &queue->departures[done[i].cookie % QUOIT_VETH_SLOT_COUNT];
        enum quoit_status status = done[i].status;
        if (status != QUOIT_OK && status != QUOIT_LINK_DOWN) /* the engine failed, perhaps in the middle */
            status = quoit_port_write(queue->port, QUOIT_WINDOW_SLOTS, offset_of_slot(queue, done[i].cookie),
                                      departure->source, sizeof *departure->source + departure->source->bytes);
        departure->has_arrived = status == QUOIT_OK;
        atomic_store(departure->is_kept, false);
    }
    atomic_fetch_sub(&queue->dma_count, count);
    return count;
}

static void set_up(struct quoit_veth_queue *queue, bool is_up)
{
    pthread_mutex_lock(&queue->receive_lock);
    pthread_mutex_lock(&queue->send_lock);
    while (atomic_load(&queue->dma_count) != 0) /* the link is down, so they complete soon */
        if (take_completions(queue) == 0)
            quoit_wait_yield();
    queue->sent = queue->marked = queue->taken = queue->credited = 0;
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

static enum quoit_status check(const struct quoit_veth_queue *queue, enum quoit_veth_reserve reserve)
{
    if (!atomic_load_explicit(&queue->is_up, memory_order_relaxed))
        return QUOIT_LINK_DOWN;
    return has_room(queue, queue->sent, reserve) ? QUOIT_OK : QUOIT_FULL;
}

/* Tables of links are no frames of the device: one that a link loses must not seem to be a lost frame. */
static void count(_Atomic uint64_t *frames, const struct quoit_veth_header *header)
{
    if (header->kind == QUOIT_VETH_ETHERNET)
        atomic_fetch_add_explicit(frames, 1, memory_order_relaxed);
}

static void count_out(struct quoit_veth_queue *queue, const struct quoit_veth_header *header)
{
    queue->sent++;
    count(queue->out_frames, header);
}

/* The first `bytes` of a frame, behind which the rest is in the slot already. */
static enum quoit_status write_frame(struct quoit_veth_queue *queue, const struct quoit_veth_header *header,
                                     size_t bytes)
{
    enum quoit_status status =
        quoit_port_write_marked(queue->port, QUOIT_WINDOW_SLOTS, offset_of_slot(queue, queue->sent), header, bytes,
                                queue->window_offset + offsetof(struct quoit_veth_range, sent), queue->sent + 1);
    if (status == QUOIT_OK)
        count_out(queue, header);
    queue->marked = queue->sent;
    return status;
}

/* The neighbour is notified later, since earlier frames are still being sent by DMA. */
static enum quoit_status write_unmarked(struct quoit_veth_queue *queue, const struct quoit_veth_header *header,
                                        size_t bytes)
{
    enum quoit_status status =
        quoit_port_write(queue->port, QUOIT_WINDOW_SLOTS, offset_of_slot(queue, queue->sent), header, bytes);
    queue->departures[queue->sent % QUOIT_VETH_SLOT_COUNT] =
        (struct quoit_veth_departure){.has_arrived = status == QUOIT_OK};
    if (status == QUOIT_OK)
        count_out(queue, header);
    return status;
}

/* False: the channel is full. The count grows first, since the completion may wake the receiver before submit()
 * returns.
 */
static bool submit(struct quoit_veth_queue *queue, const struct quoit_veth_header *header, size_t bytes,
                   _Atomic bool *is_kept)
{
    atomic_fetch_add(&queue->dma_count, 1);
    atomic_store(is_kept, true);
    if (quoit_port_dma_submit(queue->port, queue->dma_channel, QUOIT_WINDOW_SLOTS, offset_of_slot(queue, queue->sent),
                              header, bytes, queue->sent) != QUOIT_OK) {
        atomic_store(is_kept, false);
        atomic_fetch_sub(&queue->dma_count, 1);
        return false;
    }
    queue->departures[queue->sent % QUOIT_VETH_SLOT_COUNT] =
        (struct quoit_veth_departure){.source = header, .is_kept = is_kept};
    count_out(queue, header);
    atomic_fetch_add_explicit(queue->dma_frames, 1, memory_order_relaxed);
    return true;
}

static enum quoit_status send_locked(struct quoit_veth_queue *queue, const struct quoit_veth_header *header,
                                     uint32_t bytes, enum quoit_veth_reserve reserve, _Atomic bool *is_kept)
{
    const size_t whole = sizeof *header + bytes;
    enum quoit_status status = check(queue, reserve);
    if (status != QUOIT_OK)
        return status;
    if (is_kept && bytes >= queue->dma_bytes && submit(queue, header, whole, is_kept))
        return QUOIT_OK;
    return queue->marked == queue->sent ? write_frame(queue, header, whole) : write_unmarked(queue, header, whole);
}

bool quoit_veth_queue_complete(struct quoit_veth_queue *queue)
{
    if (atomic_load_explicit(&queue->dma_count, memory_order_relaxed) == 0)
        return false;
    pthread_mutex_lock(&queue->send_lock);
    uint64_t before = queue->marked;
    bool has_completed = take_completions(queue) != 0;
    while (queue->marked < queue->sent && queue->departures[queue->marked % QUOIT_VETH_SLOT_COUNT].has_arrived)
        queue->marked++;
    if (queue->marked != before)
        (void)!quoit_port_write64(queue->port, QUOIT_WINDOW_SLOTS,
                                  queue->window_offset + offsetof(struct quoit_veth_range, sent), queue->marked);
    pthread_mutex_unlock(&queue->send_lock);
    return has_completed;
}

enum quoit_status quoit_veth_queue_send(struct quoit_veth_queue *queue, const struct quoit_veth_header *header,
                                        uint32_t bytes, enum quoit_veth_reserve reserve, _Atomic bool *is_kept)
{
    pthread_mutex_lock(&queue->send_lock);
    enum quoit_status status = send_locked(queue, header, bytes, reserve, is_kept);
    pthread_mutex_unlock(&queue->send_lock);
    return status;
}

/* What went into the slot of a neighbour to whom it does not go. */
static enum quoit_status take_back(struct quoit_veth_queue *queue, struct quoit_veth_frame *frame, size_t count)
{
    size_t inside = count > QUOIT_VETH_HEAD_BYTES ? count - QUOIT_VETH_HEAD_BYTES : 0;
    if (inside == 0)
        return QUOIT_AGAIN;
    enum quoit_status status =
        quoit_port_read(queue->port, QUOIT_WINDOW_SLOTS,
                        offset_of_slot(queue, queue->sent) + sizeof frame->header + QUOIT_VETH_HEAD_BYTES,
                        frame->payload + QUOIT_VETH_HEAD_BYTES, inside);
    return status == QUOIT_OK ? QUOIT_AGAIN : status;
}

static enum quoit_status send_from_locked(struct quoit_veth_queue *queue, int fd, struct quoit_veth_frame *frame,
                                          quoit_veth_address *address, void *arg, ssize_t *count_out)
{
    enum quoit_status status = check(queue, QUOIT_VETH_INJECT);
    if (status == QUOIT_OK && queue->marked != queue->sent)
        return QUOIT_UNSUPPORTED;
    if (status == QUOIT_OK)
        status = quoit_port_write_from(
            queue->port, QUOIT_WINDOW_SLOTS,
            offset_of_slot(queue, queue->sent) + sizeof frame->header + QUOIT_VETH_HEAD_BYTES, fd, frame->payload,
            QUOIT_VETH_HEAD_BYTES, sizeof frame->payload - QUOIT_VETH_HEAD_BYTES, count_out);
    if (status != QUOIT_OK || *count_out <= 0)
        return status;
    size_t count = (size_t)*count_out;
    if (!address(arg, frame, (uint32_t)count))
        return take_back(queue, frame, count);
    return write_frame(queue, &frame->header,
                       sizeof frame->header + (count < QUOIT_VETH_HEAD_BYTES ? count : QUOIT_VETH_HEAD_BYTES));
}

enum quoit_status quoit_veth_queue_send_from(struct quoit_veth_queue *queue, int fd, struct quoit_veth_frame *frame,
                                             quoit_veth_address *address, void *arg, ssize_t *count_out)
{
    *count_out = 0;
    pthread_mutex_lock(&queue->send_lock);
    enum quoit_status status = send_from_locked(queue, fd, frame, address, arg, count_out);
    pthread_mutex_unlock(&queue->send_lock);
    return status;
}

static bool has_frame(const struct quoit_veth_queue *queue)
{
    uint64_t waiting = atomic_load_explicit(&queue->inbound->sent, memory_order_acquire) - queue->taken;
    return waiting != 0 && waiting <= QUOIT_VETH_SLOT_COUNT;
}

/* Returns credits once `least` slots are consumed. If the write is lost with the link, so are the slots. */
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
    uint32_t taken = 0;
    *has_credited_out = false;
    pthread_mutex_lock(&queue->receive_lock);
    while (taken < most && atomic_load_explicit(&queue->is_up, memory_order_relaxed) && has_frame(queue)) {
        void *slot = queue->inbound->slots[queue->taken % QUOIT_VETH_SLOT_COUNT];
        if (!take(arg, slot)) {
            *has_credited_out |= give_back(queue, 1); /* withheld credits can stop a ring: see Deadlock */
            break;
        }
        queue->taken++;
        count(queue->in_frames, slot);
        taken++;
        *has_credited_out |= give_back(queue, QUOIT_VETH_SLOT_COUNT / CREDIT_SHARE);
    }
    pthread_mutex_unlock(&queue->receive_lock);
    return taken;
}

bool quoit_veth_queue_has_credits(struct quoit_veth_queue *queue)
{
    uint64_t consumed = atomic_load_explicit(&queue->inbound->consumed, memory_order_acquire);
    return atomic_exchange_explicit(&queue->seen_consumed, consumed, memory_order_relaxed) != consumed;
}
