/* SPDX-License-Identifier: BSD-3-Clause */
/* poll.h - programs that poll, by a routine that looks and returns, give up the processor now and then.
 *
 * A wait knows that it waits, and yields. A loop around shmem_test, or around a quiet and a look of its own, does not:
 * where more PEs than processors run, it keeps the one it waits for from running for a time slice, milliseconds each.
 * So such routines count. What is there to be polled with counts whole, whether it holds or not, since loops spin while
 * something holds, too: tests, signal_fetch, a lock that is not had. A g, a fetch or a compare-and-swap counts when it
 * asks for the same word as the one before. Quiet and fence count less, since they mostly follow work. At LIMIT the
 * thread does what a wait does between two looks: engines make progress, and where processors are shared it yields.
 *
 * On one host where every thread has a processor nothing is counted, and the cost is one load and a branch.
 */
#ifndef QUOIT_SHMEM_POLL_H
#define QUOIT_SHMEM_POLL_H

#include "shmem/api.h"

#define QUOIT_POLL_LIMIT 64u
#define QUOIT_POLL_LOOK  4u
#define QUOIT_POLL_ORDER 1u

/* The count, and the yield. */
void quoit_poll_count(uint32_t weight);
/* The same for a look at `word`, if the last one was at it, too. */
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
