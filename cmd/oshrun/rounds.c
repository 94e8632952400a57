/* SPDX-License-Identifier: BSD-3-Clause */
#include "rounds.h"

#include <string.h>

#include "base/assert.h"

/* A round that came later, because who watches was stopped, counts for no more. */
#define COUNTS_NS_MAX (2u * ROUNDS_APART_NS)

uint64_t rounds_mix(uint64_t digest, uint64_t value)
{
    return (digest ^ value) * 0x9e3779b97f4a7c15u + 1;
}

static bool is_same(const struct rounds_lock *a, const struct rounds_lock *b)
{
    return a->offset == b->offset && a->wanted == b->wanted && a->bytes == b->bytes;
}

static const struct rounds_lock *find(const struct rounds_lock *locks, uint32_t count, const struct rounds_lock *lock)
{
    for (uint32_t i = 0; i < count; i++)
        if (is_same(&locks[i], lock))
            return &locks[i];
    return NULL;
}

void rounds_add_lock(struct rounds_lock locks[ROUNDS_LOCKS_MAX], uint32_t *count, const struct rounds_lock *lock)
{
    if (*count < ROUNDS_LOCKS_MAX && !find(locks, *count, lock))
        locks[(*count)++] = *lock;
}

void rounds_begin(struct rounds *rounds, uint32_t host_count, uint64_t now_ns)
{
    quoit_assert(!rounds->is_open);
    uint64_t since_ns = now_ns - rounds->begin_ns;
    if (rounds->digest) /* nothing had moved at the end of the last round */
        rounds->still_ns += since_ns < COUNTS_NS_MAX ? since_ns : COUNTS_NS_MAX;
    rounds->begin_ns = now_ns;
    rounds->question.round++;
    rounds->is_open = true;
    rounds->missing_count = host_count;
    rounds->sum = (struct rounds_answer){.round = rounds->question.round, .digest = 1, .is_at_rest = true};
    for (uint32_t i = 0; i < ROUNDS_LOCKS_MAX; i++)
        rounds->sum.keepers[i] = ROUNDS_NO_PE;
}

bool rounds_take(struct rounds *rounds, uint32_t host, const void *bytes, size_t count)
{
    struct rounds_answer answer, *sum = &rounds->sum;
    if (!rounds->is_open || count != sizeof answer)
        return false;
    memcpy(&answer, bytes, sizeof answer);
    if (answer.round != rounds->question.round || answer.lock_count > ROUNDS_LOCKS_MAX)
        return false;
    /* Answers come in any order. */
    if (answer.digest == 0 || sum->digest == 0)
        sum->digest = 0;
    else
        sum->digest += rounds_mix(host, answer.digest) | 1;
    sum->traffic += answer.traffic;
    sum->has_polls |= answer.has_polls;
    sum->is_at_rest &= answer.is_at_rest;
    sum->is_threaded |= answer.is_threaded;
    for (uint32_t i = 0; i < answer.lock_count; i++)
        rounds_add_lock(sum->locks, &sum->lock_count, &answer.locks[i]);
    for (uint32_t i = 0; i < rounds->question.lock_count; i++)
        if (answer.keepers[i] != ROUNDS_NO_PE)
            sum->keepers[i] = answer.keepers[i];
    rounds->is_open = --rounds->missing_count > 0;
    return true;
}

/* A keeper was found after one waited, and before one waits again: what is waited for now is what it keeps. The next
 * question has the locks that are waited for, with the keepers that were found. */
static bool follow_locks(struct rounds *rounds)
{
    struct rounds_question *question = &rounds->question;
    const struct rounds_answer *sum = &rounds->sum;
    struct rounds_lock next[ROUNDS_LOCKS_MAX];
    for (uint32_t i = 0; i < sum->lock_count; i++) {
        const struct rounds_lock *asked = find(question->locks, question->lock_count, &sum->locks[i]);
        next[i] = sum->locks[i];
        next[i].keeper = asked ? sum->keepers[asked - question->locks] : ROUNDS_NO_PE;
        if (asked && asked->keeper != ROUNDS_NO_PE) {
            rounds->keeper = asked->keeper;
            return true;
        }
    }
    question->lock_count = sum->lock_count;
    memcpy(question->locks, next, sum->lock_count * sizeof *next);
    return false;
}

enum rounds_verdict rounds_end(struct rounds *rounds, uint32_t leaving_count, uint64_t polls_ns)
{
    const struct rounds_answer *sum = &rounds->sum;
    quoit_assert(!rounds->is_open);
    if (follow_locks(rounds))
        return ROUNDS_LOCK_KEPT;
    uint64_t digest = sum->digest ? rounds_mix(sum->digest, leaving_count) | 1 : 0;
    if (digest && !sum->has_polls) /* which send something */
        digest = rounds_mix(digest, sum->traffic) | 1;
    if (digest == 0 || digest != rounds->digest) {
        rounds->digest = digest;
        rounds->still_ns = 0;
        rounds->question.since = rounds->question.round;
        return ROUNDS_MOVES;
    }
    if (!sum->is_at_rest)
        return ROUNDS_MOVES;
    if (rounds->still_ns >= ROUNDS_WARN_NS && !rounds->has_warned) {
        rounds->has_warned = true;
        return ROUNDS_WARNS;
    }
    return rounds->still_ns >= polls_ns && sum->has_polls && !sum->is_threaded ? ROUNDS_POLLED : ROUNDS_MOVES;
}
