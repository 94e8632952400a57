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
 * On one host with a processor for every thread nothing is counted, and the cost is one load and a branch.
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
/* The same for a read of `word`, if the previous one read it too. */
void quoit_poll_count_word(const void *word);

QUOIT_INLINE void quoit_poll(uint32_t weight)
{
    if (__builtin_expect(quoit_job.counts_polls, 0))
        quoit_poll_count(weight);
}
QUOIT_INLINE void quoit_poll_word(const void *word)
{
    if (__builtin_expect(quoit_job.counts_polls, 0))
        quoit_poll_count_word(word);
}

#endif
