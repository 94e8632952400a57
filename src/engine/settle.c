/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/settle.h"
#include "env/clock.h"
#include "env/processor.h"

#include <string.h>

/* If the kernel moves the thread back, others need the place: so each move makes the next one wait twice as long. */
#define PAUSE_FIRST_NS 1000000u
#define PAUSE_MOST_NS  1000000000u

/* How many PEs of the host last yielded on each processor. */
static void count_yielders(struct quoit_self *self, uint16_t counts[CPU_SETSIZE])
{
    memset(counts, 0, CPU_SETSIZE * sizeof counts[0]);
    for (uint32_t local = 0; local < self->layout.local_count; local++) {
        const struct quoit_pe_shared *pe = quoit_memory_pe(&self->layout, self->memory, local);
        uint32_t processor = atomic_load_explicit(&pe->processor, memory_order_relaxed);
        if (processor > 0 && processor <= CPU_SETSIZE)
            counts[processor - 1]++;
    }
}

/* The next allowed processor, from the own one on, with the fewest. */
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

void quoit_settle_start(struct quoit_self *self)
{
    cpu_set_t allowed;
    if (self->pe_count == 1 || !quoit_processor_is_free(&allowed))
        return;
    int processor = quoit_processor_nth(&allowed, self->pe % (uint32_t)CPU_COUNT(&allowed));
    if (quoit_processor_go(processor, &allowed))
        atomic_store_explicit(&self->shared->processor, (uint32_t)processor + 1, memory_order_relaxed);
}

void quoit_settle(struct quoit_self *self)
{
    _Atomic uint32_t *place = &self->shared->processor;
    uint16_t counts[CPU_SETSIZE];
    cpu_set_t allowed;
    int own = sched_getcpu();
    if (self->layout.local_count == 1 || own < 0 || own >= CPU_SETSIZE)
        return;
    if (atomic_load_explicit(place, memory_order_relaxed) != (uint32_t)own + 1)
        atomic_store_explicit(place, (uint32_t)own + 1, memory_order_relaxed);
    count_yielders(self, counts);
    uint64_t now_ns = quoit_clock_now_ns();
    if (counts[own] < 2 || now_ns < atomic_load_explicit(&self->settle_after_ns, memory_order_relaxed) ||
        !quoit_processor_is_free(&allowed))
        return;
    int least = least_used(&allowed, counts, own);
    if (counts[least] + 1 >= counts[own] || !quoit_processor_go(least, &allowed))
        return;
    atomic_store_explicit(place, (uint32_t)least + 1, memory_order_relaxed);
    uint64_t pause_ns = atomic_load_explicit(&self->settle_pause_ns, memory_order_relaxed);
    pause_ns = pause_ns == 0 ? PAUSE_FIRST_NS : pause_ns < PAUSE_MOST_NS ? 2 * pause_ns : PAUSE_MOST_NS;
    atomic_store_explicit(&self->settle_pause_ns, pause_ns, memory_order_relaxed);
    atomic_store_explicit(&self->settle_after_ns, now_ns + pause_ns, memory_order_relaxed);
}
