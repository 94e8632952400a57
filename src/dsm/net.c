/* SPDX-License-Identifier: BSD-3-Clause */
#include "dsm/net.h"

#include <assert.h>
#include <sched.h>
#include <shmem.h>
#include <stdatomic.h>
#include <time.h>
#if __GLIBC_PREREQ(2, 32)
#include <sys/single_threaded.h>
#define IS_SINGLE_THREADED __libc_single_threaded
#else
#define IS_SINGLE_THREADED false
#endif

/* Every library has these types of atomics; some lack uint64_t. */
static_assert(sizeof(unsigned long) == sizeof(uint64_t), "unsigned long has 64 bits");

uint64_t quoit_dsm_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool quoit_dsm_is_single_threaded(void)
{
    return IS_SINGLE_THREADED;
}

void quoit_dsm_relax(void)
{
    sched_yield();
}

/* The threads of the PE share the sequence: each call goes on from a state of its own. */
void quoit_dsm_pause(struct quoit_dsm *dsm)
{
    uint64_t most_us = dsm->options.values[QUOIT_DSM_DELAY];
    if (__builtin_expect(most_us == 0, 1))
        return;
    struct quoit_prng prng = {__atomic_fetch_add(&dsm->prng.state, 0x9e3779b97f4a7c15u, __ATOMIC_RELAXED)};
    uint64_t us = quoit_prng_choose(&prng, most_us * 4 + 1);
    if (us <= most_us)
        nanosleep(&(struct timespec){(time_t)(us / 1000000), (long)(us % 1000000) * 1000}, NULL);
}

void quoit_dsm_get(struct quoit_dsm *dsm, void *to, const void *from, size_t bytes, int pe)
{
    quoit_dsm_pause(dsm);
    shmem_getmem(to, from, bytes, pe);
}

void quoit_dsm_net_start(struct quoit_dsm *dsm)
{
    dsm->has_gets = shmem_ctx_create(0, &dsm->gets) == 0; /* every thread may make it progress */
}

void quoit_dsm_net_stop(struct quoit_dsm *dsm)
{
    if (dsm->has_gets)
        shmem_ctx_destroy(dsm->gets);
}

/* A context of its own: a quiet of the default one would wait for puts too, and for ever if the fault that asks for the
 * page comes from a copy of that context. */
bool quoit_dsm_get_begin(struct quoit_dsm *dsm, void *to, const void *from, size_t bytes, int pe)
{
    if (!dsm->has_gets || !IS_SINGLE_THREADED) {
        quoit_dsm_get(dsm, to, from, bytes, pe);
        return false;
    }
    quoit_dsm_pause(dsm);
    shmem_ctx_getmem_nbi(dsm->gets, to, from, bytes, pe);
    return true;
}

void quoit_dsm_get_end(struct quoit_dsm *dsm)
{
    shmem_ctx_quiet(dsm->gets);
}

void quoit_dsm_put(struct quoit_dsm *dsm, void *to, const void *from, size_t bytes, int pe)
{
    quoit_dsm_pause(dsm);
    shmem_putmem(to, from, bytes, pe);
}

void quoit_dsm_fence(struct quoit_dsm *dsm)
{
    quoit_dsm_pause(dsm);
    shmem_fence();
}

void quoit_dsm_settle(struct quoit_dsm *dsm)
{
    quoit_dsm_pause(dsm);
    shmem_quiet();
}

void quoit_dsm_set(struct quoit_dsm *dsm, uint64_t *word, uint64_t value, int pe)
{
    quoit_dsm_pause(dsm);
    shmem_ulong_atomic_set(word, value, pe);
}

void quoit_dsm_put_then_set(struct quoit_dsm *dsm, void *to, const void *from, size_t bytes, uint64_t *word,
                            uint64_t value, int pe)
{
#if SHMEM_MAJOR_VERSION > 1 || SHMEM_MINOR_VERSION >= 5
    quoit_dsm_pause(dsm);
    shmem_putmem_signal(to, from, bytes, word, value, SHMEM_SIGNAL_SET, pe);
#else
    quoit_dsm_put(dsm, to, from, bytes, pe);
    quoit_dsm_fence(dsm);
    quoit_dsm_set(dsm, word, value, pe);
#endif
}

uint64_t quoit_dsm_fetch(struct quoit_dsm *dsm, uint64_t *word, int pe)
{
    quoit_dsm_pause(dsm);
    return shmem_ulong_atomic_fetch(word, pe);
}

uint64_t quoit_dsm_swap(struct quoit_dsm *dsm, uint64_t *word, uint64_t value, int pe)
{
    quoit_dsm_pause(dsm);
    return shmem_ulong_atomic_swap(word, value, pe);
}

uint64_t quoit_dsm_compare_swap(struct quoit_dsm *dsm, uint64_t *word, uint64_t expected, uint64_t value, int pe)
{
    quoit_dsm_pause(dsm);
    return shmem_ulong_atomic_compare_swap(word, expected, value, pe);
}

uint64_t quoit_dsm_add(struct quoit_dsm *dsm, uint64_t *word, uint64_t value, int pe)
{
    quoit_dsm_pause(dsm);
    return shmem_ulong_atomic_fetch_add(word, value, pe);
}

void quoit_dsm_increment(struct quoit_dsm *dsm, uint64_t *word, int pe)
{
    quoit_dsm_pause(dsm);
    shmem_ulong_atomic_inc(word, pe);
}

void quoit_dsm_or(struct quoit_dsm *dsm, uint64_t *word, uint64_t bits, int pe)
{
    quoit_dsm_pause(dsm);
    shmem_ulong_atomic_or(word, bits, pe);
}

void quoit_dsm_and(struct quoit_dsm *dsm, uint64_t *word, uint64_t bits, int pe)
{
    quoit_dsm_pause(dsm);
    shmem_ulong_atomic_and(word, bits, pe);
}

uint64_t quoit_dsm_wait_least(struct quoit_dsm *dsm, uint64_t *word, uint64_t least)
{
    quoit_dsm_pause(dsm);
    shmem_ulong_wait_until(word, SHMEM_CMP_GE, least);
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

uint64_t quoit_dsm_wait_not(struct quoit_dsm *dsm, uint64_t *word, uint64_t value)
{
    quoit_dsm_pause(dsm);
    shmem_ulong_wait_until(word, SHMEM_CMP_NE, value);
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

void quoit_dsm_store(struct quoit_dsm *dsm, uint64_t *word, uint64_t *peer_word, uint64_t value, int pe)
{
    quoit_dsm_pause(dsm);
    if (peer_word)
        __atomic_store_n(peer_word, value, __ATOMIC_RELEASE);
    else
        shmem_ulong_atomic_set(word, value, pe);
}
