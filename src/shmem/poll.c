/* SPDX-License-Identifier: BSD-3-Clause */
#include "shmem/poll.h"

void quoit_poll_count(uint32_t weight)
{
    /* Concurrent threads may lose counts: a yield comes slightly later. */
    uint32_t count = __atomic_load_n(&quoit_job.poll_count, __ATOMIC_RELAXED) + weight;
    __atomic_store_n(&quoit_job.poll_count, count < QUOIT_POLL_LIMIT ? count : 0, __ATOMIC_RELAXED);
    if (count >= QUOIT_POLL_LIMIT && quoit_job.fabric)
        quoit_self_poll(&quoit_job.fabric->self);
}

void quoit_poll_count_word(const void *word)
{
    if (__atomic_load_n(&quoit_job.polled, __ATOMIC_RELAXED) == word)
        quoit_poll_count(QUOIT_POLL_LOOK);
    else
        __atomic_store_n(&quoit_job.polled, word, __ATOMIC_RELAXED);
}
