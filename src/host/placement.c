/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/placement.h"
#include "env/clock.h"
#include "env/processor.h"

#include <string.h>

/* A thread that the kernel moves back is not wanted where it went: a move soon after another makes the next one wait
 * twice as long. A move so many pauses after the last one waits as long as the first. */
#define PAUSE_FIRST_NS     1000000u
#define PAUSE_MOST_PE_NS   1000000000u
#define PAUSE_MOST_LANE_NS 16000000u
#define PAUSES_OF_CALM     16
/* Payload between two looks that makes a large transfer, and how long others are expected to follow it. */
#define TOGETHER_BYTES (1u << 20)
#define TOGETHER_NS    3000000u

static bool may_move(const struct quoit_placement *placement, uint64_t now_ns)
{
    return now_ns - atomic_load_explicit(&placement->moved_ns, memory_order_relaxed) >=
           atomic_load_explicit(&placement->pause_ns, memory_order_relaxed);
}

/* False: the affinity mask is no longer `allowed`, or the kernel refused. */
static bool move(struct quoit_placement *placement, int processor, const cpu_set_t *allowed, uint64_t pause_most_ns,
                 uint64_t now_ns)
{
    uint64_t pause_ns = atomic_load_explicit(&placement->pause_ns, memory_order_relaxed);
    uint64_t stayed_ns = now_ns - atomic_load_explicit(&placement->moved_ns, memory_order_relaxed);
    if (stayed_ns >= PAUSES_OF_CALM * pause_ns)
        pause_ns = PAUSE_FIRST_NS;
    else
        pause_ns = 2 * pause_ns < pause_most_ns ? 2 * pause_ns : pause_most_ns;
    if (!quoit_processor_go(processor, allowed))
        return false;
    atomic_store_explicit(&placement->pause_ns, pause_ns, memory_order_relaxed);
    atomic_store_explicit(&placement->moved_ns, now_ns, memory_order_relaxed);
    return true;
}

/* How many PEs of the host last yielded on each processor. */
static void count_yielders(const struct quoit_layout *layout, void *memory, uint16_t counts[CPU_SETSIZE])
{
    memset(counts, 0, CPU_SETSIZE * sizeof counts[0]);
    for (uint32_t local = 0; local < layout->local_count; local++) {
        const struct quoit_pe_shared *pe = quoit_memory_pe(layout, memory, local);
        uint32_t processor = atomic_load_explicit(&pe->processor, memory_order_relaxed);
        if (processor > 0 && processor <= CPU_SETSIZE)
            counts[processor - 1]++;
    }
}

/* The next allowed processor, starting from this one, with the fewest. */
static int least_used(const cpu_set_t *allowed, const uint16_t counts[CPU_SETSIZE], int own)
{
    int least = own;
    for (int i = 1; i < CPU_SETSIZE; i++) {
        int other = (own + i) % CPU_SETSIZE;
        if (CPU_ISSET(other, allowed) && counts[other] < counts[least])
            least = other;
    }
    return least;
}

void quoit_placement_start_pe(const struct quoit_layout *layout, void *memory, uint32_t local)
{
    cpu_set_t allowed;
    if (layout->job.pe_count == 1 || !quoit_processor_is_free(&allowed))
        return;
    uint32_t pe = layout->first_pe + local;
    int processor = quoit_processor_nth(&allowed, pe % (uint32_t)CPU_COUNT(&allowed));
    if (quoit_processor_go(processor, &allowed))
        atomic_store_explicit(&quoit_memory_pe(layout, memory, local)->processor, (uint32_t)processor + 1,
                              memory_order_relaxed);
}

void quoit_placement_balance_pe(struct quoit_placement *placement, const struct quoit_layout *layout, void *memory,
                                uint32_t local)
{
    _Atomic uint32_t *place = &quoit_memory_pe(layout, memory, local)->processor;
    uint16_t counts[CPU_SETSIZE];
    cpu_set_t allowed;
    int own = quoit_processor_own();
    if (layout->local_count == 1 || own < 0 || own >= CPU_SETSIZE)
        return;
    if (atomic_load_explicit(place, memory_order_relaxed) != (uint32_t)own + 1)
        atomic_store_explicit(place, (uint32_t)own + 1, memory_order_relaxed);
    count_yielders(layout, memory, counts);
    uint64_t now_ns = quoit_clock_now_ns();
    if (counts[own] < 2 || !may_move(placement, now_ns) || !quoit_processor_is_free(&allowed))
        return;
    int least = least_used(&allowed, counts, own);
    if (counts[least] + 1 < counts[own] && move(placement, least, &allowed, PAUSE_MOST_PE_NS, now_ns))
        atomic_store_explicit(place, (uint32_t)least + 1, memory_order_relaxed);
}

void quoit_placement_start_lane(struct quoit_lane_placement *lane, const struct quoit_layout *layout,
                                uint32_t lane_index, struct quoit_wait_policy policy)
{
    const struct quoit_job_config *job = &layout->job;
    *lane = (struct quoit_lane_placement){.apart = -1};
    if (!quoit_wait_shares(policy) || !quoit_processor_is_free(&lane->allowed))
        return;
    uint32_t count = (uint32_t)CPU_COUNT(&lane->allowed);
    if (count < 2)
        return;
    /* Hosts that follow each other on the ring share the processors of a group, one for each lane. */
    uint32_t group_count = count > job->lane_count ? count / job->lane_count : 1;
    uint32_t group = layout->host * group_count / job->host_count;
    lane->together = quoit_processor_nth(&lane->allowed, (group * job->lane_count + lane_index) % count);
    /* Over a network nothing is relayed. While a request travels its PE waits, and the proxy of its destination works:
     * they share a processor, and the PE's own proxy has another. */
    uint32_t shift = lane_index < layout->link_lane_count ? 0 : 1;
    lane->apart = quoit_processor_nth(&lane->allowed, (layout->host + lane_index + shift) % count);
}

void quoit_placement_look_lane(struct quoit_lane_placement *lane)
{
    if (lane->apart < 0)
        return;
    uint64_t now_ns = quoit_clock_now_ns();
    if (lane->moved_bytes - lane->seen_bytes >= TOGETHER_BYTES)
        lane->together_until_ns = now_ns + TOGETHER_NS;
    lane->seen_bytes = lane->moved_bytes;
    int processor = now_ns < lane->together_until_ns ? lane->together : lane->apart;
    if (quoit_processor_own() == processor || !may_move(&lane->placement, now_ns))
        return;
    if (!move(&lane->placement, processor, &lane->allowed, PAUSE_MOST_LANE_NS, now_ns))
        lane->apart = -1; /* the mask was changed since */
}
