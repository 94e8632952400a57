/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: what counts against awaited processes is time in which they sleep, and nothing else; reports come ever more
 * rarely; another set of processes begins anew. Method: views and times of the test's own, one look a second. */
#include "env/await.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define S         UINT64_C(1000000000)
#define REPORT_NS (10 * S)
#define HANG_NS   (60 * S)
#define BEGIN_NS  (7 * S)
#define KEY       5u

static const struct quoit_process asleep = {.state = 'S'}, stopped = {.state = 'T'}, starved = {.state = 'R'};

/* Looks at one process once a second, from `from` seconds after the begin until something is due or `to` is over.
 * Returns the second; 0: nothing was due. busy_ns: of each second. */
static uint64_t wait_until(struct quoit_await *await, const struct quoit_process *process, uint64_t busy_ns,
                           uint64_t from, uint64_t to, enum quoit_await_verdict wanted)
{
    for (uint64_t second = from; second <= to; second++) {
        struct quoit_await_view view = {.is_idle = true};
        struct quoit_process now = *process;
        uint64_t next_ns, now_ns = BEGIN_NS + second * S;
        if (!quoit_await_is_due(await, KEY, REPORT_NS, now_ns, &next_ns))
            continue;
        now.busy_ns = second * busy_ns;
        quoit_await_add(&view, &now, (second - 1) * busy_ns);
        if (quoit_await_step(await, &view, HANG_NS, now_ns) == wanted)
            return second;
    }
    return 0;
}

static void test_sleep_is_a_hang(void **state)
{
    struct quoit_await await = {0};
    (void)state;
    assert_int_equal(wait_until(&await, &asleep, 0, 0, 100, QUOIT_AWAIT_HANGS), 60);
}

/* A little processor time, of who looks at a clock, is none. */
static void test_little_is_nothing(void **state)
{
    struct quoit_await await = {0};
    (void)state;
    assert_int_equal(wait_until(&await, &asleep, S / 10, 0, 100, QUOIT_AWAIT_HANGS), 60);
}

static void test_who_cannot_run_does_not_hang(void **state)
{
    const struct quoit_process others[] = {stopped, starved, {.state = 'D'}, {.state = 't'}};
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct quoit_await await = {0};
        assert_int_equal(wait_until(&await, &others[i], 0, 0, 1000, QUOIT_AWAIT_HANGS), 0);
    }
}

static void test_who_computes_does_not_hang(void **state)
{
    struct quoit_await await = {0};
    (void)state;
    assert_int_equal(wait_until(&await, &asleep, S / 2, 0, 1000, QUOIT_AWAIT_HANGS), 0);
}

/* Sleep before and after a stop adds up; the stop does not. */
static void test_stop_between(void **state)
{
    struct quoit_await await = {0};
    (void)state;
    assert_int_equal(wait_until(&await, &asleep, 0, 0, 30, QUOIT_AWAIT_HANGS), 0);
    assert_int_equal(wait_until(&await, &stopped, 0, 31, 500, QUOIT_AWAIT_HANGS), 0);
    assert_int_equal(wait_until(&await, &asleep, 0, 501, 600, QUOIT_AWAIT_HANGS), 530);
}

/* One that is stopped keeps one that sleeps from being taken for hung: it may wait for the former. */
static void test_one_of_two(void **state)
{
    struct quoit_await_view view = {.is_idle = true};
    (void)state;
    quoit_await_add(&view, &asleep, 0);
    assert_true(view.is_idle);
    quoit_await_add(&view, &stopped, 0);
    quoit_await_add(&view, &asleep, 0);
    assert_false(view.is_idle);
}

static void test_reports(void **state)
{
    const uint64_t wanted[] = {10, 30, 90, 270, 810};
    struct quoit_await await = {0};
    uint64_t second = 0;
    (void)state;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        second = wait_until(&await, &stopped, 0, second + (i > 0), 1000, QUOIT_AWAIT_REPORT);
        assert_int_equal(second, wanted[i]);
    }
}

/* A caller that was stopped for an hour has not seen that the others slept for an hour. */
static void test_caller_that_was_away(void **state)
{
    struct quoit_await await = {0};
    struct quoit_await_view view = {.is_idle = true};
    uint64_t next_ns;
    (void)state;
    assert_false(quoit_await_is_due(&await, KEY, REPORT_NS, BEGIN_NS, &next_ns));
    assert_true(quoit_await_is_due(&await, KEY, REPORT_NS, BEGIN_NS + 3600 * S, &next_ns));
    assert_int_equal(quoit_await_step(&await, &view, HANG_NS, BEGIN_NS + 3600 * S), QUOIT_AWAIT_REPORT);
    assert_int_equal(await.idle_ns, S);
}

static void test_others_begin_anew(void **state)
{
    struct quoit_await await = {0};
    uint64_t next_ns;
    (void)state;
    assert_int_equal(wait_until(&await, &asleep, 0, 0, 50, QUOIT_AWAIT_HANGS), 0);
    assert_false(quoit_await_is_due(&await, KEY + 1, REPORT_NS, BEGIN_NS + 51 * S, &next_ns));
    assert_int_equal(next_ns, BEGIN_NS + 52 * S);
    assert_int_equal(await.idle_ns, 0);
    assert_false(quoit_await_is_due(&await, 0, REPORT_NS, BEGIN_NS + 90 * S, &next_ns));
    assert_true(next_ns == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sleep_is_a_hang),
        cmocka_unit_test(test_little_is_nothing),
        cmocka_unit_test(test_who_cannot_run_does_not_hang),
        cmocka_unit_test(test_who_computes_does_not_hang),
        cmocka_unit_test(test_stop_between),
        cmocka_unit_test(test_one_of_two),
        cmocka_unit_test(test_reports),
        cmocka_unit_test(test_caller_that_was_away),
        cmocka_unit_test(test_others_begin_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
