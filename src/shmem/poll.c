/* SPDX-License-Identifier: BSD-3-Clause */
#include "shmem/poll.h"
#include "env/clock.h"

#include <stdatomic.h>

/* Between two polls of a loop that does nothing else. One that is preempted there takes longer, now and then. */
#define ELSEWHERE_NS 5000u

void quoit_poll_count(uint32_t weight)
{
    /* Concurrent threads may lose counts: a yield comes slightly later. */
    uint32_t count = __atomic_load_n(&quoit_job.poll_count, __ATOMIC_RELAXED) + weight;
    __atomic_store_n(&quoit_job.poll_count, count < QUOIT_POLL_LIMIT ? count : 0, __ATOMIC_RELAXED);
    if (count >= QUOIT_POLL_LIMIT && quoit_job.fabric)
        quoit_self_poll(&quoit_job.fabric->self);
}

static void add(_Atomic uint64_t *count)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1, memory_order_relaxed);
}

void quoit_poll_begin_slow(void)
{
    uint64_t end_ns = __atomic_load_n(&quoit_job.round_end_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&quoit_job.round_end_ns, 0, __ATOMIC_RELAXED);
    if (quoit_job.fabric && quoit_clock_now_ns() - end_ns > ELSEWHERE_NS)
        add(&quoit_job.fabric->self.shared->polls.slow_count);
}

void quoit_poll_in_vain(void)
{
    uint32_t count = __atomic_load_n(&quoit_job.vain_count, __ATOMIC_RELAXED) + 1;
    quoit_poll_begin();
    __atomic_store_n(&quoit_job.vain_count, count ? count : 1, __ATOMIC_RELAXED);
    if (count % QUOIT_POLL_ROUND != 0 || !quoit_job.fabric)
        return;
    add(&quoit_job.fabric->self.shared->polls.round_count);
    __atomic_store_n(&quoit_job.round_end_ns, quoit_clock_now_ns(), __ATOMIC_RELAXED);
}

void quoit_poll_met(void)
{
    bool had_round = __atomic_load_n(&quoit_job.vain_count, __ATOMIC_RELAXED) >= QUOIT_POLL_ROUND;
    __atomic_store_n(&quoit_job.vain_count, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&quoit_job.round_end_ns, 0, __ATOMIC_RELAXED);
    if (had_round && quoit_job.fabric)
        add(&quoit_job.fabric->self.shared->polls.met_count);
}

bool quoit_poll_is_same(const void *word, uint64_t value)
{
    bool is_same = __atomic_load_n(&quoit_job.polled, __ATOMIC_RELAXED) == word &&
                   __atomic_load_n(&quoit_job.polled_value, __ATOMIC_RELAXED) == value;
    __atomic_store_n(&quoit_job.polled, word, __ATOMIC_RELAXED);
    __atomic_store_n(&quoit_job.polled_value, value, __ATOMIC_RELAXED);
    return is_same;
}

void quoit_poll_in_vain_of(const void *object, uint32_t bytes)
{
    bool is_same_object = __atomic_load_n(&quoit_job.polled, __ATOMIC_RELAXED) == object;
    uint64_t value;
    if (bytes == sizeof(uint64_t)) /* which another PE may be writing */
        value = __atomic_load_n((const uint64_t *)object, __ATOMIC_RELAXED);
    else if (bytes == sizeof(uint32_t))
        value = __atomic_load_n((const uint32_t *)object, __ATOMIC_RELAXED);
    else
        value = __atomic_load_n((const uint16_t *)object, __ATOMIC_RELAXED);
    if (quoit_poll_is_same(object, value) || !is_same_object)
        quoit_poll_in_vain();
    else
        quoit_poll_met();
}

void quoit_poll_count_word(const void *word, uint64_t value)
{
    bool is_same_word = __atomic_load_n(&quoit_job.polled, __ATOMIC_RELAXED) == word;
    bool is_same = quoit_poll_is_same(word, value);
    if (is_same_word)
        quoit_poll_count(QUOIT_POLL_LOOK);
    if (is_same)
        quoit_poll_in_vain();
    else if (is_same_word && __atomic_load_n(&quoit_job.vain_count, __ATOMIC_RELAXED) != 0)
        quoit_poll_met();
}
