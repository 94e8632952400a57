/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: threads that share a context lose neither each other's fences nor the confirmation of each other's direct puts.
 * Method: two threads for each, hundreds of thousands of rounds. Fences: while one thread's request is under way and
 * fenced, it must find itself fenced, whatever the other clears meanwhile. Puts: a put is a number that grows, reading
 * back is a copy of both numbers, and after its quiet a thread must find its own number copied. */
#include "engine/ring/context.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define ROUNDS 300000

static struct {
    struct quoit_ring_context context;
    _Atomic bool is_over;
    _Atomic uint32_t lost_count;
    _Atomic uint64_t written[2]; /* by each thread, [thread] */
    _Atomic uint64_t arrived[2]; /* as far as somebody read back */
    pthread_barrier_t start;
} test;

static void *look_for_fences(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&test.start);
    while (!atomic_load_explicit(&test.is_over, memory_order_relaxed))
        quoit_ring_context_is_fenced(&test.context);
    return NULL;
}

static void a_fence_is_not_lost(void **state)
{
    (void)state;
    memset(&test, 0, sizeof test);
    pthread_barrier_init(&test.start, NULL, 2);
    pthread_t other;
    pthread_create(&other, NULL, look_for_fences, NULL);
    pthread_barrier_wait(&test.start);
    uint32_t lost_count = 0;
    for (int i = 0; i < ROUNDS; i++) {
        atomic_fetch_add(&test.context.outstanding_count, 1);
        quoit_ring_context_fence(&test.context);
        for (int look = 0; look < 8; look++)
            lost_count += !quoit_ring_context_is_fenced(&test.context);
        atomic_fetch_sub(&test.context.outstanding_count, 1);
    }
    atomic_store(&test.is_over, true);
    pthread_join(other, NULL);
    pthread_barrier_destroy(&test.start);
    assert_false(quoit_ring_context_is_fenced(&test.context));
    assert_int_equal(lost_count, 0);
}

static void read_back(int thread)
{
    if (quoit_ring_context_begin_read(&test.context) != 0)
        for (int i = 0; i < 2; i++) {
            uint64_t now = atomic_load(&test.written[i]);
            if (thread == 0)
                sched_yield(); /* the other finds this read under way */
            uint64_t seen = atomic_load(&test.arrived[i]);
            while (seen < now && !atomic_compare_exchange_weak(&test.arrived[i], &seen, now))
                ;
        }
    quoit_ring_context_end_read(&test.context);
}

static void *put_and_quiet(void *arg)
{
    int own = (int)(intptr_t)arg;
    pthread_barrier_wait(&test.start);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        atomic_store(&test.written[own], i);
        quoit_ring_context_soil(&test.context, QUOIT_RIGHT);
        if (!quoit_ring_context_is_clean(&test.context))
            read_back(own);
        if (atomic_load(&test.arrived[own]) < i)
            atomic_fetch_add(&test.lost_count, 1);
    }
    return NULL;
}

static void a_quiet_covers_the_own_puts(void **state)
{
    (void)state;
    memset(&test, 0, sizeof test);
    pthread_barrier_init(&test.start, NULL, 2);
    pthread_t threads[2];
    for (intptr_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, put_and_quiet, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&test.start);
    assert_int_equal(test.lost_count, 0);
    assert_true(quoit_ring_context_is_clean(&test.context));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fence_is_not_lost),
        cmocka_unit_test(a_quiet_covers_the_own_puts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
