/* SPDX-License-Identifier: BSD-3-Clause */
/* Every atomic operation on words that all PEs use at once; each leaves a result that only exactly-once execution can
 * produce.
 *
 * tickets   fetch-add of 1: every ticket is drawn once
 * lock      compare-swap of the PE's number over 0, then a plain word is incremented by get and put, then set to 0
 * bits      or, and, xor: each PE owns a bit of two words, and knows its value
 * chain     swap of a unique value: each value is swapped out by one other PE, or remains at the end
 */
#include "base/assert.h"
#include "sim/workload.h"

#include <stdlib.h>
#include <string.h>

enum word { WORD_TICKET, WORD_LOCK, WORD_GUARDED, WORD_SET_BITS, WORD_FLIP_BITS, WORD_CHAIN, WORD_TICKET32 };

struct atomics {
    uint32_t ticket_count;  /* drawn by all PEs, of all words */
    uint32_t guarded_count; /* acquisitions of the lock */
    uint64_t chain_in;      /* sums of what was put in and taken out */
    uint64_t chain_out;
    unsigned char *is_drawn; /* [destination][ticket] */
    uint32_t ticket_max;
};

static uint64_t word_offset(const struct sim_pe *pe, enum word word)
{
    return pe->fabric->self.layout.segment_heap + 64ull * word;
}

static void draw(struct sim_pe *pe, struct atomics *atomics, uint32_t to)
{
    bool is_wide = quoit_prng_choose(&pe->prng, 2);
    uint64_t ticket = 0;
    enum word word = is_wide ? WORD_TICKET : WORD_TICKET32;
    uint32_t size = is_wide ? 8 : 4;
    if (quoit_prng_choose(&pe->prng, 2)) {
        ticket = quoit_fabric_amo_fetch(pe->fabric, pe->context, QUOIT_AMO_ADD, size, word_offset(pe, word), 1, 0, to);
    } else {
        quoit_fabric_amo_fetch_nbi(pe->fabric, pe->context, QUOIT_AMO_ADD, size, word_offset(pe, word), 1, 0, &ticket,
                                   to);
        quoit_fabric_quiet(pe->fabric, pe->context);
    }
    if (ticket >= atomics->ticket_max)
        sim_fail(pe->world, "PE %u drew ticket %llu, of which there are not so many", pe->index,
                 (unsigned long long)ticket);
    unsigned char *drawn = &atomics->is_drawn[(size_t)to * atomics->ticket_max + ticket];
    unsigned char bit = is_wide ? 1 : 2;
    if (*drawn & bit)
        sim_fail(pe->world, "ticket %llu of PE %u was drawn twice", (unsigned long long)ticket, to);
    *drawn |= bit;
    atomics->ticket_count++;
}

static void count_guarded(struct sim_pe *pe, struct atomics *atomics)
{
    uint64_t lock = word_offset(pe, WORD_LOCK), guarded = word_offset(pe, WORD_GUARDED), value;
    while (quoit_fabric_amo_fetch(pe->fabric, pe->context, QUOIT_AMO_COMPARE_SWAP, 8, lock, pe->index + 1, 0, 0) != 0)
        sim_spend(pe->world, 1000 + quoit_prng_choose(&pe->prng, 20000));
    quoit_fabric_get(pe->fabric, pe->context, &value, guarded, 8, 0);
    if (value != atomics->guarded_count)
        sim_fail(pe->world, "PE %u reads %llu under the lock instead of %u", pe->index, (unsigned long long)value,
                 atomics->guarded_count);
    atomics->guarded_count++;
    value++;
    quoit_fabric_put(pe->fabric, pe->context, guarded, &value, 8, 0);
    quoit_fabric_quiet(pe->fabric, pe->context);
    quoit_fabric_amo(pe->fabric, pe->context, QUOIT_AMO_SET, 8, lock, 0, 0);
}

/* Each PE owns one bit, so only its own operations change it. Only the first 64 PEs take part. */
static void turn_bits(struct sim_pe *pe, uint32_t to)
{
    uint64_t bit = 1ull << pe->index;
    if (pe->index >= 64)
        return;
    uint64_t set = word_offset(pe, WORD_SET_BITS), flip = word_offset(pe, WORD_FLIP_BITS);
    uint64_t before = quoit_fabric_amo_fetch(pe->fabric, pe->context, QUOIT_AMO_XOR, 8, flip, bit, 0, to);
    quoit_fabric_amo(pe->fabric, pe->context, QUOIT_AMO_OR, 8, set, bit, to);
    quoit_fabric_fence(pe->fabric, pe->context);
    uint64_t during = quoit_fabric_amo_fetch(pe->fabric, pe->context, QUOIT_AMO_AND, 8, set, ~bit, 0, to);
    uint64_t after = quoit_fabric_amo_fetch(pe->fabric, pe->context, QUOIT_AMO_FETCH, 8, set, 0, 0, to);
    uint64_t flipped = quoit_fabric_amo_fetch(pe->fabric, pe->context, QUOIT_AMO_FETCH, 8, flip, 0, 0, to);
    if ((during & bit) == 0 || (after & bit) != 0 || ((before ^ flipped) & bit) == 0)
        sim_fail(pe->world, "the bit of PE %u at PE %u is not what it made it", pe->index, to);
}

static void swap_chain(struct sim_pe *pe, struct atomics *atomics, uint32_t to, uint64_t unique)
{
    atomics->chain_in += unique;
    atomics->chain_out +=
        quoit_fabric_amo_fetch(pe->fabric, pe->context, QUOIT_AMO_SWAP, 8, word_offset(pe, WORD_CHAIN), unique, 0, to);
}

static void run_atomics(struct sim_pe *pe)
{
    struct atomics *atomics = pe->world->workload_state;
    uint32_t pe_count = pe->fabric->self.pe_count;
    uint32_t step_count = 4 * pe->world->config.step_count;
    for (uint32_t step = 0; step < step_count; step++) {
        uint32_t to = (uint32_t)quoit_prng_choose(&pe->prng, pe_count);
        uint64_t kind = quoit_prng_choose(&pe->prng, 8);
        if (kind == 0)
            count_guarded(pe, atomics);
        else if (kind <= 2)
            turn_bits(pe, to);
        else if (kind <= 4)
            swap_chain(pe, atomics, to, (uint64_t)step * pe_count + pe->index + 1);
        else
            draw(pe, atomics, to);
    }
}

static void setup_atomics(struct sim_world *world)
{
    struct atomics *atomics = calloc(1, sizeof *atomics);
    quoit_assert(atomics != NULL);
    atomics->ticket_max = 4 * world->config.step_count * world->config.job.pe_count;
    atomics->is_drawn = calloc(world->config.job.pe_count, atomics->ticket_max);
    quoit_assert(atomics->is_drawn != NULL);
    world->workload_state = atomics;
}

static void check_atomics(struct sim_world *world)
{
    const struct atomics *atomics = world->workload_state;
    uint64_t tickets = 0, guarded = 0, chain = 0, bits = 0;
    for (uint32_t pe = 0; pe < world->config.job.pe_count; pe++) {
        const char *heap = sim_pe_segment(world, pe) + world->hosts[0].layout.segment_heap;
        const uint64_t *words[WORD_TICKET32 + 1];
        for (int i = 0; i <= WORD_TICKET32; i++)
            words[i] = (const uint64_t *)(heap + 64ull * (unsigned)i);
        tickets += *words[WORD_TICKET] + (uint32_t)*words[WORD_TICKET32];
        guarded += *words[WORD_GUARDED];
        chain += *words[WORD_CHAIN];
        bits |= *words[WORD_SET_BITS];
    }
    if (tickets != atomics->ticket_count || guarded != atomics->guarded_count || bits != 0)
        sim_fail(world, "tickets, lock counts and bits end as %llu %llu %llx instead of %u %u 0",
                 (unsigned long long)tickets, (unsigned long long)guarded, (unsigned long long)bits,
                 atomics->ticket_count, atomics->guarded_count);
    if (chain + atomics->chain_out != atomics->chain_in)
        sim_fail(world, "a value that was swapped in was taken out twice, or not at all");
}

static void teardown_atomics(struct sim_world *world)
{
    struct atomics *atomics = world->workload_state;
    free(atomics->is_drawn);
    free(atomics);
    world->workload_state = NULL;
}

const struct sim_workload sim_workload_atomics = {
    .name = "atomics",
    .sentence = "all atomics on shared words: tickets, a lock, bits, swaps",
    .setup = setup_atomics,
    .run = run_atomics,
    .check = check_atomics,
    .teardown = teardown_atomics,
};
