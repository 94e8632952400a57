/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/mover.h"
#include "base/assert.h"
#include "base/log.h"
#include "proxy/measure.h"

#include <inttypes.h>
#include <string.h>

#define POLL_COUNT 8

_Static_assert(QUOIT_MOVES_MAX <= 64, "one word has a bit for each");

static uint64_t cookie_of(const struct quoit_mover *mover, uint32_t index)
{
    return (uint64_t)mover->lane_index << 32 | index;
}

/* Completions of a channel wake the lanes that use it. */
static enum quoit_status set_vectors(const struct quoit_layout *layout, struct quoit_port *port, uint32_t channel_count)
{
    uint32_t lane_count = layout->job.lane_count;
    enum quoit_status status = QUOIT_OK;
    for (uint32_t channel = 0; channel < channel_count && status == QUOIT_OK; channel++) {
        uint32_t first = channel % lane_count;
        struct quoit_port_vector vector = {
            .park_offset =
                layout->lanes + first * sizeof(struct quoit_lane_shared) + offsetof(struct quoit_lane_shared, park),
            .park_stride = (uint32_t)(channel_count * sizeof(struct quoit_lane_shared)),
            .park_count = (lane_count - first + channel_count - 1) / channel_count,
        };
        status = quoit_port_set_vector(port, QUOIT_VECTOR_DMA(channel), &vector);
    }
    return status;
}

/* As the option says, or as measured. */
static struct quoit_measured choose(const struct quoit_lane_group *group, struct quoit_port *port,
                                    uint32_t channel_count)
{
    struct quoit_measured never = QUOIT_MEASURED_NEVER;
    if (channel_count == 0 || group->dma_bytes == QUOIT_DMA_NEVER)
        return never;
    if (group->dma_bytes != QUOIT_DMA_MEASURED)
        return (struct quoit_measured){
            .dma_bytes = group->dma_bytes, .queued_bytes = group->dma_bytes, .direct_bytes = group->dma_bytes};
    return quoit_measure(group->layout, group->memory, port);
}

enum quoit_status quoit_movers_open(struct quoit_mover *movers, const struct quoit_lane_group *group)
{
    const struct quoit_layout *layout = group->layout;
    struct quoit_host_header *header = group->memory;
    uint32_t lane_count = layout->job.lane_count;
    memset(movers, 0, lane_count * sizeof *movers);
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        struct quoit_port_limits limits;
        quoit_port_limits(group->ports[side], &limits);
        struct quoit_measured chosen = choose(group, group->ports[side], limits.dma_channel_count);
        enum quoit_status status = set_vectors(layout, group->ports[side], limits.dma_channel_count);
        if (status != QUOIT_OK)
            return status;
        for (uint32_t lane = 0; lane < lane_count; lane++) {
            movers[lane].ports[side] = group->ports[side];
            movers[lane].channel_count[side] = limits.dma_channel_count;
            movers[lane].dma_bytes[side] = chosen.dma_bytes;
            movers[lane].queued_bytes[side] = chosen.queued_bytes;
        }
        atomic_store_explicit(&header->dma_bytes[side], chosen.dma_bytes, memory_order_relaxed);
        atomic_store_explicit(&header->direct_bytes[side], chosen.direct_bytes, memory_order_relaxed);
        quoit_log(QUOIT_LOG_INFO, "to the %s a chunk took %" PRIu64 " ns to copy and %" PRIu64 " ns by DMA",
                  side == QUOIT_LEFT ? "left" : "right", chosen.copy_ns, chosen.dma_ns);
    }
    for (uint32_t lane = 0; lane < lane_count; lane++) {
        movers[lane].all = movers;
        movers[lane].lane_index = lane;
        movers[lane].lane_count = lane_count;
        movers[lane].park = &quoit_memory_lane(layout, group->memory, lane)->park;
    }
    return QUOIT_OK;
}

static uint32_t own_channel_count(const struct quoit_mover *mover, enum quoit_side side)
{
    uint32_t channel_count = mover->channel_count[side];
    return mover->lane_count < channel_count ? channel_count / mover->lane_count : 1;
}

/* Rotates over the lane's own channels. */
static uint32_t channel_for(const struct quoit_mover *mover, enum quoit_side side, uint32_t turn)
{
    uint32_t round = turn % own_channel_count(mover, side);
    return (mover->lane_index + round * mover->lane_count) % mover->channel_count[side];
}

void quoit_mover_begin_step(struct quoit_mover *mover)
{
    mover->has_copied = false;
}

/* Whether a copy would keep the lane from other payload. */
static bool has_more_to_move(const struct quoit_mover *mover)
{
    return mover->busy != 0 || mover->has_copied;
}

static bool is_too_small(struct quoit_mover *mover, const struct quoit_move *move)
{
    uint64_t from = has_more_to_move(mover) ? mover->queued_bytes[move->side] : mover->dma_bytes[move->side];
    if (move->bytes >= from)
        return false;
    mover->has_copied = true;
    return true;
}

bool quoit_mover_start(struct quoit_mover *mover, const struct quoit_move *move, uint32_t *index_out)
{
    if (is_too_small(mover, move) || mover->is_resting || mover->busy == UINT64_MAX)
        return false;
    uint32_t index = (uint32_t)__builtin_ctzll(~mover->busy);
    mover->moves[index] = *move;
    atomic_store_explicit(&mover->ended[index], 0, memory_order_relaxed);
    uint32_t channel = channel_for(mover, move->side, mover->turn++);
    if (quoit_port_dma_submit(mover->ports[move->side], channel, move->window, move->offset, move->source, move->bytes,
                              cookie_of(mover, index)) != QUOIT_OK)
        return false; /* no room, or no link, which the copy will detect too */
    mover->busy |= (uint64_t)1 << index;
    *index_out = index;
    return true;
}

/* Takes a channel's completions, for whichever lanes they are. */
static void poll_channel(struct quoit_mover *mover, enum quoit_side side, uint32_t channel)
{
    struct quoit_dma_done done[POLL_COUNT];
    uint32_t count = quoit_port_dma_poll(mover->ports[side], channel, done, POLL_COUNT);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t lane = (uint32_t)(done[i].cookie >> 32), index = (uint32_t)done[i].cookie;
        quoit_assert(lane < mover->lane_count);
        quoit_assert(index < QUOIT_MOVES_MAX);
        struct quoit_mover *owner = &mover->all[lane];
        atomic_store_explicit(&owner->ended[index], 1 + (uint32_t)done[i].status, memory_order_release);
        if (owner != mover)
            quoit_park_wake(owner->park); /* it may have polled the channel in between, and found nothing */
    }
}

static void poll(struct quoit_mover *mover)
{
    uint32_t sides = 0;
    for (uint64_t left = mover->busy; left; left &= left - 1)
        sides |= 1u << mover->moves[__builtin_ctzll(left)].side;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        for (uint32_t turn = 0; (sides & (1u << side)) != 0 && turn < own_channel_count(mover, side); turn++)
            poll_channel(mover, side, channel_for(mover, side, turn));
}

static bool find_ended(struct quoit_mover *mover, uint32_t *index_out, uint32_t *ended_out)
{
    for (uint64_t left = mover->busy; left; left &= left - 1) {
        *index_out = (uint32_t)__builtin_ctzll(left);
        *ended_out = atomic_load_explicit(&mover->ended[*index_out], memory_order_acquire);
        if (*ended_out != 0)
            return true;
    }
    return false;
}

bool quoit_mover_next(struct quoit_mover *mover, uint32_t *index_out, enum quoit_status *status_out)
{
    uint32_t index, ended;
    if (mover->busy == 0)
        return false;
    if (!find_ended(mover, &index, &ended)) {
        poll(mover);
        if (!find_ended(mover, &index, &ended))
            return false;
    }
    const struct quoit_move *move = &mover->moves[index];
    *status_out = (enum quoit_status)(ended - 1);
    if (*status_out != QUOIT_OK && *status_out != QUOIT_LINK_DOWN)
        *status_out = quoit_port_write(mover->ports[move->side], move->window, move->offset, move->source, move->bytes);
    mover->busy &= ~((uint64_t)1 << index);
    mover->is_resting &= mover->busy != 0;
    *index_out = index;
    return true;
}

bool quoit_mover_rest(struct quoit_mover *mover)
{
    mover->is_resting = mover->busy != 0;
    return !mover->is_resting;
}
