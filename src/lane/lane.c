/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/lane.h"

#include <stdlib.h>
#include <string.h>

/* One step; true when there was work, when something pauses only briefly, or when it is time to end. */
static bool step(void *arg)
{
    struct quoit_lane *lane = arg;
    if (lane->status != QUOIT_OK || quoit_lane_is_stopping(lane))
        return true;
    lane->retry_at_ns = 0;
    uint32_t done_count = lane->engine->step(lane);
    if (lane->barrier_state)
        done_count += lane->group->barrier->step(lane);
    return done_count > 0 || lane->retry_at_ns != 0 || lane->status != QUOIT_OK;
}

void quoit_lane_run(struct quoit_lane *lane)
{
    while (lane->status == QUOIT_OK && !quoit_lane_is_stopping(lane)) {
        quoit_wait_until(&lane->waiter, step, lane, 0);
        if (lane->retry_at_ns)
            quoit_wait_yield(); /* transit is paused, or DMA runs: too short for a sleep */
    }
}

/* Before the lane sleeps it clears its bits, unmasks them and checks once more, in this order: a ring that came before
 * the clear is found by the check, one between clear and unmask wakes at the unmask, a later one interrupts. */
static void arm(void *arg)
{
    struct quoit_lane *lane = arg;
    atomic_store_explicit(&lane->shared->sleep_since_ns, quoit_clock_now_ns(), memory_order_relaxed);
    if (lane->engine->arm)
        lane->engine->arm(lane);
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT && lane->ports[side]; side++) {
        quoit_port_doorbell_clear(lane->ports[side], lane->hint_bits[side]);
        if (lane->polled_bits[side])
            quoit_port_doorbell_unmask(lane->ports[side], lane->polled_bits[side]);
    }
}

/* While the lane polls, its doorbell interrupts no thread. */
static void mask_polled(struct quoit_lane *lane)
{
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        if (lane->polled_bits[side])
            quoit_port_doorbell_mask(lane->ports[side], lane->polled_bits[side]);
}

static void disarm(void *arg)
{
    struct quoit_lane *lane = arg;
    mask_polled(lane);
    uint64_t since_ns = atomic_load_explicit(&lane->shared->sleep_since_ns, memory_order_relaxed);
    uint64_t now_ns = quoit_clock_now_ns();
    quoit_lane_count_up(&lane->shared->sleep_ns, now_ns - since_ns);
    quoit_lane_trace_sleep(lane, since_ns, now_ns);
    atomic_store_explicit(&lane->shared->sleep_since_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&lane->shared->sleep_count, lane->waiter.sleep_count, memory_order_relaxed);
}

static void place(void *arg)
{
    struct quoit_lane *lane = arg;
    quoit_placement_look_lane(&lane->placement);
}

static enum quoit_status make_tables(struct quoit_lane *lane)
{
    const struct quoit_job_config *job = &lane->layout->job;
    uint32_t local_count = lane->layout->local_count;
    lane->pe_counts = calloc(lane->hosts.count, sizeof *lane->pe_counts);
    lane->issued = calloc((size_t)local_count * QUOIT_REQUESTS_A_CHANNEL + QUOIT_MESSAGES_MAX, sizeof *lane->issued);
    lane->submit_heads = calloc(local_count, sizeof *lane->submit_heads);
    lane->gather = malloc(job->chunk_bytes);
    if (!lane->pe_counts || !lane->issued || !lane->submit_heads || !lane->gather)
        return QUOIT_NO_MEMORY;
    for (uint32_t host = 0; host < lane->hosts.count; host++)
        lane->pe_counts[host] = quoit_job_config_pes_of_host(job, lane->hosts.first + host);
    return QUOIT_OK;
}

static void join_side(struct quoit_lane *lane, enum quoit_side side)
{
    const struct quoit_lane_group *group = lane->group;
    const struct quoit_link_record *link = &group->links[side];
    lane->ports[side] = group->ports[side];
    lane->followed[side] = QUOIT_LINK_TARGET(0, true);
    lane->own_doorbells[side] = quoit_doorbells_of(&group->layout->job, atomic_load(&link->own_doorbells));
    lane->peer_doorbells[side] = quoit_doorbells_of(&group->layout->job, atomic_load(&link->peer_doorbells));
    lane->peer_lane_doorbell[side] = quoit_doorbell_of_lane(&lane->peer_doorbells[side], lane->index);
}

enum quoit_status quoit_lane_open(struct quoit_lane *lane, struct quoit_lane_group *group, uint32_t index)
{
    const struct quoit_layout *layout = group->layout;
    memset(lane, 0, sizeof *lane);
    lane->group = group;
    lane->layout = layout;
    lane->memory = group->memory;
    lane->engine = group->engine;
    lane->index = index;
    lane->hosts =
        index < layout->link_lane_count ? layout->ring : (struct quoit_host_range){.count = layout->job.host_count};
    lane->host = layout->host - lane->hosts.first;
    lane->shared = quoit_memory_lane(layout, group->memory, index);
    lane->trace = quoit_memory_trace(layout, group->memory, layout->local_count + index);
    lane->waiter = (struct quoit_waiter){.park = &lane->shared->park,
                                         .policy = group->policy,
                                         .arm = arm,
                                         .disarm = disarm,
                                         .place = place,
                                         .place_yields = QUOIT_PLACEMENT_LANE_YIELDS,
                                         .arm_arg = lane};
    quoit_placement_start_lane(&lane->placement, layout, index, group->policy);
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT && group->ports[side]; side++)
        join_side(lane, side);
    enum quoit_status status = make_tables(lane);
    if (status == QUOIT_OK)
        status = lane->engine->open(lane);
    if (status == QUOIT_OK && group->barrier && index == 0)
        status = group->barrier->open(lane);
    if (status == QUOIT_OK)
        mask_polled(lane);
    return status;
}

void quoit_lane_begin_down(struct quoit_lane *lane, enum quoit_side side, uint32_t epoch)
{
    lane->engine->begin_down(lane, side);
    atomic_store_explicit(&lane->followed[side], QUOIT_LINK_TARGET(epoch, false), memory_order_relaxed);
}

bool quoit_lane_has_followed(const struct quoit_lane *lane, enum quoit_side side)
{
    return atomic_load_explicit(&lane->followed[side], memory_order_acquire) ==
           atomic_load_explicit(&lane->group->links[side].target, memory_order_relaxed);
}

void quoit_lane_close(struct quoit_lane *lane)
{
    if (!lane->engine)
        return;
    lane->engine->close(lane);
    free(lane->barrier_state);
    free(lane->gather);
    free(lane->submit_heads);
    free(lane->issued);
    free(lane->pe_counts);
    memset(lane, 0, sizeof *lane);
}

void quoit_lane_check_invariants(const struct quoit_lane *lane)
{
    lane->engine->check(lane);
}

bool quoit_lane_is_quiescent(const struct quoit_lane *lane)
{
    if (lane->barrier_state && !lane->group->barrier->is_quiescent(lane))
        return false;
    return lane->engine->is_quiescent(lane);
}
