/* SPDX-License-Identifier: BSD-3-Clause */
/* poll.h - makes routines that a program may call in a polling loop yield the processor now and then.
 *
 * A wait knows that it waits, and yields. A loop around shmem_test, or around quiet and a load, does not: with more PEs
 * than processors it keeps the PE that it waits for off the processor for a time slice, several milliseconds each time.
 * So such routines count. Calls that exist for polling (tests, signal_fetch, a lock that is not acquired) count fully,
 * whether they succeed or not, since loops also spin while a test holds. A g, a fetch or a compare-and-swap counts if
 * it reads the same word as the one before. Quiet and fence count less, since they mostly follow work. At
 * QUOIT_POLL_LIMIT the thread does what a wait does between two checks: engines make progress, and on shared processors
 * it yields.
 *
 * On one host with a processor for every thread this is not counted, and the cost is one load and a branch.
 *
 * Polls in vain in a row are counted too, and published now and then (struct quoit_poll_count), so that a PE which does
 * nothing but poll is seen to wait (boot/still.h). A test that holds costs a load and a branch for it. One that does
 * not hold counts, and reads the clock twice in QUOIT_POLL_ROUND; a g or a fetch only where polls are counted.
 *
 * Threads: any.
 */
#ifndef QUOIT_SHMEM_POLL_H
#define QUOIT_SHMEM_POLL_H

#include "shmem/api.h"

#define QUOIT_POLL_LIMIT 64u
#define QUOIT_POLL_LOOK  4u
#define QUOIT_POLL_ORDER 1u

/* Adds to the count, and yields at the limit. */
void quoit_poll_count(uint32_t weight);
/* The same for a read of `word`, which held `value`, if the previous one read it too. */
void quoit_poll_count_word(const void *word, uint64_t value);
/* Whether the previous such read found the same value of the same word. */
bool quoit_poll_is_same(const void *word, uint64_t value);
/* A poll begins, after a round of them. */
void quoit_poll_begin_slow(void);
void quoit_poll_in_vain(void);
/* A test of one object does not hold. It was not in vain if the previous poll read another value of the same object. */
void quoit_poll_in_vain_of(const void *object, uint32_t bytes);
/* A poll that is not in vain, after some that were. */
void quoit_poll_met(void);

QUOIT_INLINE void quoit_poll(uint32_t weight)
{
    if (__builtin_expect(quoit_job.counts_polls, 0))
        quoit_poll_count(weight);
}
/* Before a read that takes long. */
QUOIT_INLINE void quoit_poll_begin(void)
{
    if (__builtin_expect(__atomic_load_n(&quoit_job.round_end_ns, __ATOMIC_RELAXED) != 0, 0))
        quoit_poll_begin_slow();
}
QUOIT_INLINE void quoit_poll_word(const void *word, uint64_t value)
{
    if (__builtin_expect(quoit_job.counts_polls, 0))
        quoit_poll_count_word(word, value);
}
/* Of a routine that exists for polling. Returns is_met. */
QUOIT_INLINE bool quoit_poll_test(bool is_met)
{
    quoit_poll(QUOIT_POLL_LOOK);
    if (!is_met)
        quoit_poll_in_vain();
    else if (__builtin_expect(__atomic_load_n(&quoit_job.vain_count, __ATOMIC_RELAXED) != 0, 0))
        quoit_poll_met();
    return is_met;
}
/* Of a test of one object. */
QUOIT_INLINE bool quoit_poll_test_of(const void *object, uint32_t bytes, bool is_met)
{
    if (is_met)
        return quoit_poll_test(true);
    quoit_poll(QUOIT_POLL_LOOK);
    quoit_poll_in_vain_of(object, bytes);
    return false;
}

#endif
