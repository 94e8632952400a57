/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: threads that share a context do not lose each other's fences. Method: two threads, hundreds of thousands of
 * rounds: while one thread's request is outstanding and fenced, that thread must find itself fenced, whatever the other
 * clears. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fence_is_not_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
