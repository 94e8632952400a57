/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/rounds.h"

#include <string.h>

#include "base/assert.h"

/* A round that came later, because who watches was stopped, counts for no more. */
#define COUNTS_NS_MAX (2u * QUOIT_ROUNDS_APART_NS)

uint64_t quoit_rounds_mix(uint64_t digest, uint64_t value)
{
    return (digest ^ value) * 0x9e3779b97f4a7c15u + 1;
}

static bool is_same(const struct quoit_rounds_lock *a, const struct quoit_rounds_lock *b)
{
    return a->offset == b->offset && a->wanted == b->wanted && a->bytes == b->bytes;
}

static const struct quoit_rounds_lock *find(const struct quoit_rounds_lock *locks, uint32_t count,
                                            const struct quoit_rounds_lock *lock)
{
    for (uint32_t i = 0; i < count; i++)
        if (is_same(&locks[i], lock))
            return &locks[i];
    return NULL;
}

void quoit_rounds_add_lock(struct quoit_rounds_lock locks[QUOIT_ROUNDS_LOCKS_MAX], uint32_t *count,
                           const struct quoit_rounds_lock *lock)
{
    if (*count < QUOIT_ROUNDS_LOCKS_MAX && !find(locks, *count, lock))
        locks[(*count)++] = *lock;
}

/* The last round found something that moves, and no PE in shmem_finalize. */
static bool moves_with_all(const struct quoit_rounds *rounds)
{
    return rounds->digest == 0 && rounds->sum.leaving_count == 0;
}

void quoit_rounds_begin(struct quoit_rounds *rounds, uint32_t host_count, uint64_t now_ns)
{
    uint64_t since_ns = now_ns - rounds->begin_ns;
    if (rounds->digest) /* nothing had moved at the end of the last round */
        rounds->still_ns += since_ns < COUNTS_NS_MAX ? since_ns : COUNTS_NS_MAX;
    rounds->begin_ns = now_ns;
    rounds->question.round++;
    rounds->question.is_shallow = moves_with_all(rounds);
    rounds->is_open = true;
    rounds->missing_count = host_count;
    rounds->sum = (struct quoit_rounds_answer){
        .round = rounds->question.round, .digest = 1, .is_at_rest = true, .leaver = QUOIT_ROUNDS_NO_PE};
    for (uint32_t i = 0; i < QUOIT_ROUNDS_LOCKS_MAX; i++)
        rounds->sum.keepers[i] = QUOIT_ROUNDS_NO_PE;
}

uint64_t quoit_rounds_next_ns(const struct quoit_rounds *rounds)
{
    if (rounds->question.round == 0)
        return 0;
    return rounds->begin_ns + (moves_with_all(rounds) ? QUOIT_ROUNDS_MOVES_NS : QUOIT_ROUNDS_APART_NS);
}

bool quoit_rounds_take(struct quoit_rounds *rounds, uint32_t host, const void *bytes, size_t count)
{
    struct quoit_rounds_answer answer, *sum = &rounds->sum;
    if (!rounds->is_open || count != sizeof answer)
        return false;
    memcpy(&answer, bytes, sizeof answer);
    if (answer.round != rounds->question.round || answer.lock_count > QUOIT_ROUNDS_LOCKS_MAX)
        return false;
    /* Answers come in any order. */
    if (answer.digest == 0 || sum->digest == 0)
        sum->digest = 0;
    else
        sum->digest += quoit_rounds_mix(host, answer.digest) | 1;
    sum->traffic += answer.traffic;
    sum->has_polls |= answer.has_polls;
    sum->is_at_rest &= answer.is_at_rest;
    sum->is_threaded |= answer.is_threaded;
    sum->is_woken |= answer.is_woken;
    sum->leaving_count += answer.leaving_count;
    if (answer.leaver < sum->leaver)
        sum->leaver = answer.leaver;
    for (uint32_t i = 0; i < answer.lock_count; i++)
        quoit_rounds_add_lock(sum->locks, &sum->lock_count, &answer.locks[i]);
    for (uint32_t i = 0; i < rounds->question.lock_count; i++)
        if (answer.keepers[i] != QUOIT_ROUNDS_NO_PE)
            sum->keepers[i] = answer.keepers[i];
    rounds->is_open = --rounds->missing_count > 0;
    return true;
}

/* A keeper was found after one waited, and before one waits again: what is waited for now is what it keeps. The next
 * question has the locks that are waited for, with the keepers that were found. */
static bool follow_locks(struct quoit_rounds *rounds)
{
    struct quoit_rounds_question *question = &rounds->question;
    const struct quoit_rounds_answer *sum = &rounds->sum;
    struct quoit_rounds_lock next[QUOIT_ROUNDS_LOCKS_MAX];
    for (uint32_t i = 0; i < sum->lock_count; i++) {
        const struct quoit_rounds_lock *asked = find(question->locks, question->lock_count, &sum->locks[i]);
        next[i] = sum->locks[i];
        next[i].keeper = asked ? sum->keepers[asked - question->locks] : QUOIT_ROUNDS_NO_PE;
        if (asked && asked->keeper != QUOIT_ROUNDS_NO_PE) {
            rounds->keeper = asked->keeper;
            rounds->waiter = sum->locks[i].waiter;
            return true;
        }
    }
    question->lock_count = sum->lock_count;
    memcpy(question->locks, next, sum->lock_count * sizeof *next);
    return false;
}

/* Not all PEs are in shmem_finalize, and the PEs that a verdict has are some of the job's. */
static bool is_of_use(const struct quoit_rounds *rounds, uint32_t pe_count)
{
    const struct quoit_rounds_answer *sum = &rounds->sum;
    bool is_part = sum->leaving_count < pe_count && (sum->leaving_count == 0 || sum->leaver < pe_count);
    for (uint32_t i = 0; i < sum->lock_count; i++)
        is_part &= sum->locks[i].waiter < pe_count;
    for (uint32_t i = 0; i < rounds->question.lock_count; i++)
        is_part &= sum->keepers[i] == QUOIT_ROUNDS_NO_PE || sum->keepers[i] < pe_count;
    return is_part;
}

static enum quoit_rounds_verdict begin_anew(struct quoit_rounds *rounds, uint64_t digest)
{
    rounds->digest = digest;
    rounds->still_ns = 0;
    rounds->has_reported = false;
    rounds->question.since = rounds->question.round;
    return QUOIT_ROUNDS_MOVES;
}

/* Nothing has moved for still_ns: whether that is the time of a report, which follows the notes, or of these. */
static enum quoit_rounds_verdict at_time(const struct quoit_rounds *rounds, uint64_t time_ns,
                                         enum quoit_rounds_verdict verdict)
{
    if (rounds->has_notes && rounds->still_ns >= time_ns)
        return verdict;
    return rounds->still_ns + QUOIT_ROUNDS_APART_NS >= time_ns ? QUOIT_ROUNDS_NOTES : QUOIT_ROUNDS_MOVES;
}

/* No PE is in shmem_finalize, and nothing moves. One that polls may give up, and a thread, a handler or a child may end
 * a wait: of such a job nothing is claimed. */
static enum quoit_rounds_verdict judge_hang(struct quoit_rounds *rounds)
{
    const struct quoit_rounds_answer *sum = &rounds->sum;
    if (rounds->has_reported || sum->has_polls || sum->is_threaded || sum->is_woken)
        return QUOIT_ROUNDS_MOVES;
    enum quoit_rounds_verdict verdict = at_time(rounds, QUOIT_ROUNDS_HANG_NS, QUOIT_ROUNDS_HANGS);
    rounds->has_reported = verdict == QUOIT_ROUNDS_HANGS;
    return verdict;
}

static enum quoit_rounds_verdict judge_leaving(struct quoit_rounds *rounds)
{
    const struct quoit_rounds_answer *sum = &rounds->sum;
    if (!rounds->has_warned) {
        enum quoit_rounds_verdict verdict = at_time(rounds, QUOIT_ROUNDS_WARN_NS, QUOIT_ROUNDS_WARNS);
        rounds->has_warned = verdict == QUOIT_ROUNDS_WARNS;
        return verdict;
    }
    return rounds->still_ns >= QUOIT_ROUNDS_POLLS_NS && sum->has_polls && !sum->is_threaded ? QUOIT_ROUNDS_POLLED
                                                                                            : QUOIT_ROUNDS_MOVES;
}

static enum quoit_rounds_verdict judge(struct quoit_rounds *rounds, uint32_t pe_count)
{
    const struct quoit_rounds_answer *sum = &rounds->sum;
    if (!is_of_use(rounds, pe_count)) {
        rounds->question.lock_count = 0;
        return begin_anew(rounds, 0);
    }
    if (sum->leaving_count > 0 && follow_locks(rounds))
        return QUOIT_ROUNDS_LOCK_KEPT;
    uint64_t digest = sum->digest ? quoit_rounds_mix(sum->digest, sum->leaving_count) | 1 : 0;
    if (digest && !sum->has_polls) /* which send something */
        digest = quoit_rounds_mix(digest, sum->traffic) | 1;
    if (digest == 0 || digest != rounds->digest)
        return begin_anew(rounds, digest);
    if (!sum->is_at_rest)
        return QUOIT_ROUNDS_MOVES;
    return sum->leaving_count > 0 ? judge_leaving(rounds) : judge_hang(rounds);
}

enum quoit_rounds_verdict quoit_rounds_end(struct quoit_rounds *rounds, uint32_t pe_count)
{
    quoit_assert(!rounds->is_open);
    enum quoit_rounds_verdict verdict = judge(rounds, pe_count);
    rounds->has_notes = verdict == QUOIT_ROUNDS_NOTES;
    return verdict;
}
