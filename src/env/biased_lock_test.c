/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: at most one thread holds the lock, through every claim and revocation; claims move between threads and run out.
 * Method: a second thread takes each of many locks once, while the owner of its claim takes and releases it as fast as
 * it can; both look for the other inside. */
#include "env/biased_lock.h"
#include "env/membarrier.h"
#include "env/wait.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#if defined(__SANITIZE_THREAD__)
#define ROUNDS 600
#else
#define ROUNDS 4000
#endif
#define VISITS 64 /* of the second thread to each lock */

struct guarded {
    struct quoit_biased_lock lock;
    uint64_t visit_count;   /* under the lock */
    uint32_t overlap_count; /* likewise: how often another thread was inside */
    _Atomic uint32_t inside_count;
};

static struct {
    struct guarded guarded[2];    /* one in use, the other made ready by the owner */
    _Atomic uint32_t ready_round; /* the owner has its claim of this round's lock */
    _Atomic uint32_t done_round;  /* the second thread has made its visits of this round */
} test;

static void visit(struct guarded *guarded)
{
    quoit_biased_hold *hold = quoit_biased_lock(&guarded->lock);
    guarded->overlap_count += atomic_load_explicit(&guarded->inside_count, memory_order_relaxed) != 0;
    atomic_store_explicit(&guarded->inside_count, 1, memory_order_relaxed);
    guarded->visit_count++;
    atomic_store_explicit(&guarded->inside_count, 0, memory_order_relaxed);
    quoit_biased_unlock(hold);
}

static bool has_claim(struct guarded *guarded)
{
    quoit_biased_hold *hold = quoit_biased_lock(&guarded->lock);
    bool is_by_claim = hold != &guarded->lock.is_locked;
    quoit_biased_unlock(hold);
    return is_by_claim;
}

static void *disturb(void *unused)
{
    (void)unused;
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        while (atomic_load_explicit(&test.ready_round, memory_order_acquire) != round)
            quoit_wait_yield();
        for (uint32_t i = 0; i < round % 64; i++) /* meets the owner at another instruction each time */
            quoit_pause();
        for (uint32_t i = 0; i < VISITS; i++)
            visit(&test.guarded[round % 2]);
        atomic_store_explicit(&test.done_round, round, memory_order_release);
    }
    return NULL;
}

static void one_at_a_time(void **state)
{
    (void)state;
    pthread_t thread;
    uint64_t overlap_count = 0, lost_count = 0;
    memset(&test, 0, sizeof test);
    pthread_create(&thread, NULL, disturb, NULL);
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        struct guarded *guarded = &test.guarded[round % 2];
        uint64_t count = QUOIT_BIASED_RUN;
        memset(guarded, 0, sizeof *guarded);
        quoit_biased_init(&guarded->lock);
        for (uint32_t i = 0; i < QUOIT_BIASED_RUN; i++)
            visit(guarded);
        atomic_store_explicit(&test.ready_round, round, memory_order_release);
        for (; atomic_load_explicit(&test.done_round, memory_order_acquire) != round; count++)
            visit(guarded);
        overlap_count += guarded->overlap_count;
        lost_count += count + VISITS - guarded->visit_count;
    }
    pthread_join(thread, NULL);
    assert_int_equal(overlap_count, 0);
    assert_int_equal(lost_count, 0);
}

/* Deterministic: the owner is inside, so a second thread gets in only after it has left. */
static void *take_once(void *arg)
{
    visit(arg);
    return NULL;
}

static void a_revoked_owner_finishes_first(void **state)
{
    (void)state;
    struct guarded guarded = {.visit_count = 0};
    struct timespec nap = {.tv_nsec = 20000000};
    pthread_t thread;
    quoit_biased_init(&guarded.lock);
    for (uint32_t i = 0; i < QUOIT_BIASED_RUN; i++)
        visit(&guarded);
    quoit_biased_hold *hold = quoit_biased_lock(&guarded.lock);
    atomic_store(&guarded.inside_count, 1);
    pthread_create(&thread, NULL, take_once, &guarded);
    nanosleep(&nap, NULL);
    uint64_t visit_count = guarded.visit_count;
    atomic_store(&guarded.inside_count, 0);
    quoit_biased_unlock(hold);
    pthread_join(thread, NULL);
    assert_int_equal(visit_count, QUOIT_BIASED_RUN);
    assert_int_equal(guarded.visit_count, QUOIT_BIASED_RUN + 1);
    assert_int_equal(guarded.overlap_count, 0);
}

struct alone {
    struct guarded *guarded;
    bool has_claim;
};

static void *visit_alone(void *arg)
{
    struct alone *alone = arg;
    for (int i = 0; i < QUOIT_BIASED_RUN; i++)
        visit(alone->guarded);
    alone->has_claim = has_claim(alone->guarded);
    return NULL;
}

static bool claims(struct guarded *guarded)
{
    struct alone alone = {.guarded = guarded};
    visit_alone(&alone);
    return alone.has_claim;
}

static bool claims_on_another_thread(struct guarded *guarded)
{
    struct alone alone = {.guarded = guarded};
    pthread_t thread;
    pthread_create(&thread, NULL, visit_alone, &alone);
    pthread_join(thread, NULL);
    return alone.has_claim;
}

static void claims_move_and_run_out(void **state)
{
    (void)state;
    struct guarded guarded = {.visit_count = 0};
    if (!quoit_membarrier_exists())
        skip();
    quoit_biased_init(&guarded.lock);
    visit(&guarded);
    assert_false(has_claim(&guarded)); /* not at once */
    assert_true(claims(&guarded));
    for (int i = 1; i < QUOIT_BIASED_CLAIMS; i++) {
        assert_true(i % 2 != 0 ? claims_on_another_thread(&guarded) : claims(&guarded));
        assert_ptr_equal(guarded.lock.claim, &guarded.lock.claims[i]);
    }
    assert_false(claims(&guarded));
    assert_false(claims_on_another_thread(&guarded));
    assert_false(claims(&guarded));
    assert_ptr_equal(guarded.lock.claim, &guarded.lock.claims[QUOIT_BIASED_CLAIMS]);
}

static int set_up(void **state)
{
    (void)state;
    quoit_membarrier_setup();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_at_a_time),
        cmocka_unit_test(a_revoked_owner_finishes_first),
        cmocka_unit_test(claims_move_and_run_out),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
