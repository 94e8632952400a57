/* SPDX-License-Identifier: BSD-3-Clause */
#include "papers/pool.h"
#include "env/clock.h"
#include "papers/scratchpad.h"

#include <stdlib.h>

enum quoit_status quoit_papers_pool_open(struct quoit_papers_pool *pool, const struct quoit_layout *layout,
                                         void *memory)
{
    pthread_mutex_init(&pool->lock, NULL);
    pool->layout = layout;
    pool->memory = memory;
    pool->queues = calloc((size_t)layout->job.lane_count * layout->local_count, sizeof *pool->queues);
    return pool->queues ? QUOIT_OK : QUOIT_NO_MEMORY;
}

void quoit_papers_pool_close(struct quoit_papers_pool *pool)
{
    free(pool->queues);
    pool->queues = NULL;
    pthread_mutex_destroy(&pool->lock);
}

static struct quoit_papers_queue *queue_of(const struct quoit_papers_pool *pool, uint32_t lane, uint32_t local)
{
    return &pool->queues[(size_t)lane * pool->layout->local_count + local];
}

/* Sees the next request of a channel, if there is one. */
static bool see(struct quoit_papers_pool *pool, uint32_t lane, uint32_t local, uint64_t now_ns)
{
    struct quoit_papers_queue *queue = queue_of(pool, lane, local);
    const struct quoit_channel *channel = quoit_memory_channel(pool->layout, pool->memory, local, lane);
    uint32_t next = pool->lanes[lane]->submit_heads[local] + queue->waiting_count;
    if (atomic_load_explicit(&channel->submit_tail, memory_order_acquire) == next)
        return false;
    uint32_t place = next % QUOIT_REQUESTS_A_CHANNEL;
    queue->waiting_count++;
    queue->tickets[place] = ++pool->ticket_count;
    queue->seen_ns[place] = now_ns;
    return true;
}

uint32_t quoit_papers_pool_look(struct quoit_papers_pool *pool)
{
    uint32_t count = 0, before;
    uint64_t now_ns = quoit_clock_now_ns();
    pthread_mutex_lock(&pool->lock);
    do { /* one of each channel in turn: nobody knows which came first */
        before = count;
        for (uint32_t lane = 0; lane < pool->layout->job.lane_count; lane++)
            for (uint32_t local = 0; local < pool->layout->local_count; local++)
                count += see(pool, lane, local, now_ns);
    } while (count != before);
    atomic_fetch_add(&pool->waiting_count, count);
    pthread_mutex_unlock(&pool->lock);
    return count;
}

/* What the PE says of the first request of a channel. */
static struct quoit_frame peek(const struct quoit_papers_pool *pool, uint32_t lane, uint32_t local, uint16_t index)
{
    const struct quoit_channel *channel = quoit_memory_channel(pool->layout, pool->memory, local, lane);
    const struct quoit_frame *frame = &channel->requests[index % QUOIT_REQUESTS_A_CHANNEL].frame;
    return (struct quoit_frame){.kind = frame->kind,
                                .flags = frame->flags,
                                .source_host = (uint16_t)pool->lanes[lane]->host,
                                .dest_host = (uint16_t)(frame->dest_host - pool->lanes[lane]->hosts.first)};
}

bool quoit_papers_pool_take(struct quoit_papers_pool *pool,
                            bool (*may_begin)(void *arg, const struct quoit_frame *frame), void *arg,
                            struct quoit_papers_request *request_out)
{
    uint64_t first_ticket = UINT64_MAX;
    if (atomic_load(&pool->waiting_count) == 0)
        return false;
    pthread_mutex_lock(&pool->lock);
    for (uint32_t i = 0; i < pool->layout->job.lane_count * pool->layout->local_count; i++) {
        uint32_t lane = i / pool->layout->local_count, local = i % pool->layout->local_count;
        const struct quoit_papers_queue *queue = &pool->queues[i];
        const uint32_t place = pool->lanes[lane]->submit_heads[local] % QUOIT_REQUESTS_A_CHANNEL;
        if (queue->waiting_count == 0 || queue->tickets[place] > first_ticket)
            continue;
        uint16_t index = quoit_memory_channel(pool->layout, pool->memory, local, lane)->submit[place];
        const struct quoit_frame frame = peek(pool, lane, local, index);
        if ((!quoit_scratchpad_may_overtake(&frame) && queue->taken_count > 0) || !may_begin(arg, &frame))
            continue;
        first_ticket = queue->tickets[place];
        *request_out = (struct quoit_papers_request){
            .channel_lane = pool->lanes[lane], .local = local, .index = index, .seen_ns = queue->seen_ns[place]};
    }
    if (first_ticket != UINT64_MAX) {
        struct quoit_papers_queue *queue = queue_of(pool, request_out->channel_lane->index, request_out->local);
        request_out->channel_lane->submit_heads[request_out->local]++;
        queue->waiting_count--;
        queue->taken_count++;
        atomic_fetch_sub_explicit(&pool->waiting_count, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&pool->lock);
    return first_ticket != UINT64_MAX;
}

void quoit_papers_pool_complete(struct quoit_papers_pool *pool, const struct quoit_papers_request *request)
{
    struct quoit_lane *lane = request->channel_lane;
    pthread_mutex_lock(&pool->lock);
    queue_of(pool, lane->index, request->local)->taken_count--;
    quoit_lane_post(lane, quoit_lane_cookie(request->local, request->index));
    pthread_mutex_unlock(&pool->lock);
    quoit_park_wake(&quoit_memory_pe(pool->layout, pool->memory, request->local)->park);
}
