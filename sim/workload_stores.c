/* SPDX-License-Identifier: BSD-3-Clause */
/* A number travels around all PEs, each of which waits for it, asleep if it takes long. In half of the runs it reaches
 * a PE of the same host by a plain store, as through shmem_ptr, which wakes no PE; everywhere else by a put, and only
 * the put wakes. */
#include "sim/workload.h"

#define WORD_AT 0

struct word_wait {
    const uint64_t *word;
    uint64_t value;
};

static bool has_come(void *arg)
{
    const struct word_wait *wait = arg;
    return __atomic_load_n(wait->word, __ATOMIC_ACQUIRE) >= wait->value;
}

static void run_stores(struct sim_pe *pe)
{
    struct quoit_fabric *fabric = pe->fabric;
    uint32_t pe_count = fabric->self.pe_count, next = (pe->index + 1) % pe_count;
    uint64_t offset = fabric->self.layout.segment_heap + WORD_AT;
    struct word_wait wait = {.word = (const uint64_t *)(fabric->self.segment + offset)};
    bool has_plain = pe->world->config.seed % 2 == 0;
    fabric->self.sees_plain_stores = has_plain;
    for (uint64_t round = 1; round <= 2 * pe->world->config.step_count; round++) {
        wait.value = round;
        if (pe->index != 0 || round > 1)
            quoit_self_wait_at(&fabric->self, offset, sizeof(uint64_t), has_come, &wait, "stores", NULL);
        if (quoit_prng_choose(&pe->prng, 2))
            sim_spend(pe->world, quoit_prng_choose(&pe->prng, 2000000)); /* so that the others sleep */
        uint64_t value = pe->index == pe_count - 1 ? round + 1 : round;
        if (has_plain && fabric->peers[next].segment)
            __atomic_store_n((uint64_t *)(fabric->peers[next].segment + offset), value, __ATOMIC_RELEASE);
        else
            quoit_fabric_put(fabric, pe->context, offset, &value, sizeof value, next);
    }
}

const struct sim_workload sim_workload_stores = {
    .name = "stores",
    .sentence = "a number travels around all PEs by puts, or within a host by plain stores that wake no PE",
    .run = run_stores,
};
