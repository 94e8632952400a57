/* SPDX-License-Identifier: BSD-3-Clause */
#include "shmem/set.h"
#include "shmem/check.h"
#include "shmem/handle.h"

#include <stdlib.h>

#define CACHED_SET_COUNT (QUOIT_SET_PIECES - 1) /* the last piece is for teams of one call */
#define EPOCH_MOST       0xffffffu

/* A cached team, on piece QUOIT_TEAM_PIECES + its index. */
struct quoit_set_team {
    struct quoit_team_range range; /* size 0: free */
    struct quoit_team_state *state;
};

/* What the members agree on, in one word: the number of arrivals, the largest epoch, the pieces in use. Each adds its
 * own to the word of the first member, which replies with the total. */
struct proposal {
    uint32_t member_count;
    uint32_t epoch;
    uint32_t used;
};

static uint64_t pack(struct proposal proposal)
{
    _Static_assert(QUOIT_SET_PIECES <= 16, "the pieces in use have 16 bits");
    return (uint64_t)proposal.member_count << 40 | (uint64_t)proposal.epoch << 16 | proposal.used;
}

static struct proposal unpack(uint64_t word)
{
    return (struct proposal){.member_count = (uint32_t)(word >> 40),
                             .epoch = (uint32_t)(word >> 16) & EPOCH_MOST,
                             .used = (uint32_t)word & 0xffff};
}

static uint64_t add(uint64_t word, struct proposal mine)
{
    struct proposal all = unpack(word);
    all.member_count++;
    all.epoch = all.epoch > mine.epoch ? all.epoch : mine.epoch;
    all.used |= mine.used;
    return pack(all);
}

static uint32_t first_pe(const struct quoit_set *set)
{
    return set->range.start;
}

static uint64_t key_of(const struct quoit_set *set)
{
    return (uint64_t)set->range.start << 40 | (uint64_t)set->range.stride << 20 | set->range.size;
}

static uint64_t at_word(const struct quoit_set *set, uint32_t word)
{
    return set->offset_sync + word * sizeof(uint64_t);
}

static bool is_open(void *arg)
{
    const struct quoit_set *set = arg;
    return quoit_fabric_amo_fetch(quoit_job.fabric, &quoit_job.fabric->default_context, QUOIT_AMO_FETCH,
                                  sizeof(uint64_t), at_word(set, QUOIT_SET_OPEN_WORD), 0, 0,
                                  first_pe(set)) == key_of(set);
}

/* Waits until the first member is in its call with this set. Nobody wakes this PE for it, which looks again and again.
 */
static void wait_for_first(struct quoit_set *set)
{
    if (!is_open(set))
        quoit_self_wait_at(&quoit_job.fabric->self, at_word(set, QUOIT_SET_RESPONSE_WORD), sizeof(uint64_t), is_open,
                           set, set->call, NULL);
}

/* Adds to the word of the first member, in its pSync. */
static void join(const struct quoit_set *set, struct proposal mine)
{
    uint64_t offset = at_word(set, QUOIT_SET_JOIN_WORD), seen = 0, expected;
    do {
        expected = seen;
        seen = quoit_fabric_amo_fetch(quoit_job.fabric, &quoit_job.fabric->default_context, QUOIT_AMO_COMPARE_SWAP,
                                      sizeof(uint64_t), offset, add(expected, mine), expected, first_pe(set));
    } while (seen != expected);
}

struct wait_word {
    const uint64_t *word;
    uint64_t least;
};

static bool has_come(void *arg)
{
    const struct wait_word *wait = arg;
    return __atomic_load_n(wait->word, __ATOMIC_ACQUIRE) >= wait->least;
}

/* Waits until this PE's word is at least `least`, resets it to 0 and returns its value. */
static uint64_t take_word(const struct quoit_set *set, uint32_t word, uint64_t least)
{
    struct wait_word wait = {&set->sync[word], least};
    if (!has_come(&wait))
        quoit_self_wait_at(&quoit_job.fabric->self, at_word(set, word), sizeof(uint64_t), has_come, &wait, set->call,
                           NULL);
    return __atomic_exchange_n(&set->sync[word], 0, __ATOMIC_ACQ_REL);
}

static struct proposal agree(struct quoit_set *set, struct proposal mine)
{
    if (set->rank == 0)
        __atomic_store_n(&set->sync[QUOIT_SET_OPEN_WORD], key_of(set), __ATOMIC_RELEASE);
    else
        wait_for_first(set);
    join(set, mine);
    if (set->rank != 0)
        return unpack(take_word(set, QUOIT_SET_RESPONSE_WORD, 1));
    uint64_t all = take_word(set, QUOIT_SET_JOIN_WORD, pack((struct proposal){.member_count = set->range.size}));
    __atomic_store_n(&set->sync[QUOIT_SET_OPEN_WORD], 0, __ATOMIC_RELEASE); /* before any member can call again */
    for (uint32_t rank = 1; rank < set->range.size; rank++)
        quoit_fabric_amo(quoit_job.fabric, &quoit_job.fabric->default_context, QUOIT_AMO_SET, sizeof(uint64_t),
                         at_word(set, QUOIT_SET_RESPONSE_WORD), all, set->range.start + rank * set->range.stride);
    return unpack(all);
}

static struct quoit_team_state *find(const struct quoit_set *set)
{
    if (set->range.size == quoit_job.pe_count)
        return quoit_job.world;
    for (uint32_t i = 0; quoit_job.sets && i < CACHED_SET_COUNT; i++) {
        const struct quoit_team_range *range = &quoit_job.sets[i].range;
        if (range->start == set->range.start && range->stride == set->range.stride && range->size == set->range.size)
            return quoit_job.sets[i].state;
    }
    return NULL;
}

static uint32_t used_pieces(void)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < CACHED_SET_COUNT; i++)
        if (quoit_job.sets[i].range.size != 0)
            used |= 1u << i;
    return used;
}

static void make(struct quoit_set *set)
{
    if (!quoit_job.sets)
        quoit_job.sets = calloc(CACHED_SET_COUNT, sizeof *quoit_job.sets);
    if (!quoit_job.sets)
        quoit_boot_abort(&quoit_job.boot, 1, "no memory for the table of active sets");
    struct proposal all = agree(set, (struct proposal){.epoch = quoit_job.set_epoch, .used = used_pieces()});
    uint32_t index = (uint32_t)__builtin_ctz(~all.used);
    if (all.epoch == EPOCH_MOST)
        quoit_boot_abort(&quoit_job.boot, 1,
                         "more active sets were used in turn than can be told apart (16,777,215); teams have no "
                         "such limit");
    if (quoit_job.set_epoch <= all.epoch)
        quoit_job.set_epoch = all.epoch + 1;
    set->is_passing = index >= CACHED_SET_COUNT;
    if (set->is_passing)
        index = CACHED_SET_COUNT;
    set->team = quoit_team_new(quoit_job.fabric, &set->range, QUOIT_TEAM_PIECES + index,
                               (uint64_t)(all.epoch + 1) << QUOIT_TEAM_FLAG_BITS);
    if (!set->team)
        quoit_boot_abort(&quoit_job.boot, 1, "no memory for the team of an active set");
    if (!set->is_passing)
        quoit_job.sets[index] = (struct quoit_set_team){set->range, set->team};
}

void quoit_set_enter(struct quoit_set *set)
{
    set->team = find(set);
    set->is_passing = false;
    if (!set->team)
        make(set);
}

void quoit_set_leave(struct quoit_set *set)
{
    if (!set->is_passing)
        return;
    quoit_coll_sync(set->team, set->call); /* no member is inside any more when the workspace is reused */
    quoit_team_delete(set->team);
}

void quoit_sets_quiet(void)
{
    for (uint32_t i = 0; quoit_job.sets && i < CACHED_SET_COUNT; i++)
        if (quoit_job.sets[i].state)
            quoit_team_quiet(quoit_job.sets[i].state);
}

void quoit_sets_end(void)
{
    for (uint32_t i = 0; quoit_job.sets && i < CACHED_SET_COUNT; i++)
        quoit_team_delete(quoit_job.sets[i].state);
    free(quoit_job.sets);
    quoit_job.sets = NULL;
}
