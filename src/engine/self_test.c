/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: what self.h promises of waits: a PE sleeps until it is woken where every change wakes it, looks again by itself
 * only where the program may change its objects by plain stores, and yields between polls if processors are shared.
 * Method: one PE, whose time, sleeps and yields are the test's. */
#include "engine/engine.h"
#include "engine/self.h"
#include "env/primitives.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define YIELD_NS 50000u /* short enough that no other program seems to have the processor */

static struct {
    struct quoit_layout layout;
    struct quoit_self self;
    void *memory;
    struct quoit_wait_habit habit;
    uint64_t now_ns;
    uint32_t yield_count;
    uint32_t sleep_count;
    uint64_t limit_ns; /* of the last sleep; 0: until woken */
} test;

static uint64_t now_ns(void)
{
    return ++test.now_ns;
}

static void sleep_ns(uint64_t duration_ns)
{
    test.now_ns += duration_ns;
}

static uint32_t pause_all(uint32_t most, bool is_in_vain)
{
    (void)is_in_vain;
    return most;
}

static void yield(bool is_in_vain)
{
    (void)is_in_vain;
    test.yield_count++;
    test.now_ns += YIELD_NS;
}

static void barrier(void)
{
}

static void sleep_on(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
    (void)word;
    (void)value;
    test.sleep_count++;
    test.limit_ns = timeout_ns;
}

static void wake_all(_Atomic uint32_t *word)
{
    (void)word;
}

static struct quoit_wait_habit *habit(void)
{
    return &test.habit;
}

static int unknown_processor(void)
{
    return -1;
}

static const struct quoit_primitives primitives = {.now_ns = now_ns,
                                                   .sleep_ns = sleep_ns,
                                                   .pause = pause_all,
                                                   .yield = yield,
                                                   .barrier = barrier,
                                                   .sleep_on = sleep_on,
                                                   .wake_all = wake_all,
                                                   .habit = habit,
                                                   .processor_own = unknown_processor};

static int start(void **state)
{
    const struct quoit_job_config job = {.host_count = 1,
                                         .pe_count = 1,
                                         .lane_count = 1,
                                         .slot_count = 2,
                                         .chunk_bytes = 4096,
                                         .data_bytes = 4096,
                                         .heap_bytes = 4096};
    (void)state;
    memset(&test, 0, sizeof test);
    assert_int_equal(quoit_layout_make(&job, 0, &test.layout), QUOIT_OK);
    test.memory =
        mmap(NULL, test.layout.total_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(test.memory, MAP_FAILED);
    quoit_primitives = &primitives;
    quoit_self_init(&test.self, &test.layout, test.memory, 0, quoit_wait_policy_for(1, 2));
    return 0;
}

static int stop(void **state)
{
    (void)state;
    quoit_primitives = NULL;
    return munmap(test.memory, test.layout.total_bytes);
}

static bool has_slept(void *unused)
{
    (void)unused;
    return test.sleep_count != 0;
}

/* How long the PE sleeps at most, in a wait for an object of the program or for the runtime. */
static uint64_t limit_of_sleep(bool is_of_program, bool sees_plain_stores)
{
    test.self.sees_plain_stores = sees_plain_stores;
    test.sleep_count = 0;
    if (is_of_program)
        quoit_self_wait_at(&test.self, test.layout.segment_heap, sizeof(uint64_t), has_slept, NULL, "the test", NULL);
    else
        quoit_self_wait(&test.self, has_slept, NULL, "the test");
    assert_int_equal(test.sleep_count, 1);
    return test.limit_ns;
}

static void only_a_wait_for_the_program_ends_without_a_wake(void **state)
{
    (void)state;
    assert_int_equal(limit_of_sleep(true, true), QUOIT_WAIT_NAP_LEAST_NS);
    assert_int_equal(limit_of_sleep(true, false), 0);
    assert_int_equal(limit_of_sleep(false, true), 0);
    assert_int_equal(limit_of_sleep(false, false), 0);
}

static uint32_t await_count;

static bool await(const struct quoit_peer *peer, uint64_t limit_ns)
{
    await_count++;
    test.limit_ns = limit_ns;
    return peer->pe == 1;
}

static bool has_awaited(void *arg)
{
    (void)arg;
    return await_count + test.sleep_count >= 3;
}

/* Where the sender's message does not wake the PE it sleeps elsewhere, else on its park, and looks again either way. */
static void a_wait_for_a_message_sleeps_where_it_comes(void **state)
{
    const struct quoit_engine_ops ops = {.await = await};
    struct quoit_engine engine = {.ops = &ops};
    struct quoit_peer sender = {.engine = &engine, .pe = 1};
    (void)state;
    await_count = test.sleep_count = 0;
    quoit_self_wait_message(&test.self, has_awaited, NULL, "test", 0, &sender);
    assert_int_equal(await_count, 3);
    assert_int_equal(test.sleep_count, 0);
    assert_int_equal(test.limit_ns, QUOIT_WAIT_NAP_LEAST_NS);
    await_count = 0;
    sender.pe = 2;
    quoit_self_wait_message(&test.self, has_awaited, NULL, "test", 0, &sender);
    assert_true(test.sleep_count > 0);
    assert_int_equal(test.limit_ns, QUOIT_WAIT_NAP_LEAST_NS);
    await_count = test.sleep_count = 0;
    quoit_self_wait_message(&test.self, has_awaited, NULL, "test", 0, NULL);
    assert_int_equal(await_count, 0);
    assert_int_equal(test.limit_ns, QUOIT_WAIT_NAP_LEAST_NS);
}

static void a_poll_yields_a_processor_that_is_shared(void **state)
{
    (void)state;
    test.self.waiter.policy = quoit_wait_policy_for(3, 2);
    quoit_self_poll(&test.self);
    assert_int_equal(test.yield_count, 1);
    test.self.waiter.policy = quoit_wait_policy_for(1, 2);
    quoit_self_poll(&test.self);
    assert_int_equal(test.yield_count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_a_wait_for_the_program_ends_without_a_wake, start, stop),
        cmocka_unit_test_setup_teardown(a_wait_for_a_message_sleeps_where_it_comes, start, stop),
        cmocka_unit_test_setup_teardown(a_poll_yields_a_processor_that_is_shared, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
