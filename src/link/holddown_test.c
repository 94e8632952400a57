/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: outages far apart are never held against a link; one that flaps is up for a small part of the time, and is
 * forgiven when it stops. Method: outages at given distances, virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "link/holddown.h"

#define MS 1000000u
#define S  1000000000ull

static void test_rare_outages_are_free(void **state)
{
    (void)state;
    struct quoit_holddown holddown = {0};
    for (uint64_t i = 1; i < 1000; i++)
        assert_int_equal(quoit_holddown_outage(&holddown, i * S), 0);
}

static void test_some_outages_in_a_row_are_free(void **state)
{
    (void)state;
    struct quoit_holddown holddown = {0};
    for (uint64_t i = 1; i <= QUOIT_FLAP_FREE; i++)
        assert_int_equal(quoit_holddown_outage(&holddown, 5 * S + i * MS), 0);
    assert_int_equal(quoit_holddown_outage(&holddown, 5 * S + 10 * MS), QUOIT_HOLD_FIRST_NS);
    assert_int_equal(quoit_holddown_outage(&holddown, 5 * S + 20 * MS), 2 * QUOIT_HOLD_FIRST_NS);
}

/* Goes down 2 ms after each time it comes up, for ten minutes. */
static void test_a_flapping_link_is_held_most_of_the_time(void **state)
{
    (void)state;
    struct quoit_holddown holddown = {0};
    uint64_t now_ns = 5 * S, outage_count = 0;
    while (now_ns < 65 * S) {
        uint64_t hold_ns = quoit_holddown_outage(&holddown, now_ns);
        assert_true(hold_ns <= QUOIT_HOLD_MOST_NS);
        now_ns += hold_ns + 2 * MS;
        outage_count++;
    }
    assert_true(outage_count < 1200); /* 30,000 without holding */
    now_ns += 60 * S;
    assert_int_equal(quoit_holddown_outage(&holddown, now_ns), 0);
}

/* What is left of an interval counts with the next: a link that goes down after every one and a half
 * of them is forgiven, by a point for every two outages. */
static void test_parts_of_an_interval_count(void **state)
{
    (void)state;
    struct quoit_holddown holddown = {0};
    for (uint32_t i = 0; i < QUOIT_FLAP_MOST; i++)
        quoit_holddown_outage(&holddown, 5 * S);
    for (uint64_t i = 1; i <= 2 * QUOIT_FLAP_MOST; i++)
        quoit_holddown_outage(&holddown, 5 * S + i * QUOIT_FLAP_FORGIVE_NS * 3 / 2);
    assert_in_range(holddown.score, 1, 2);
}

/* The score has a bound, so a link that flapped for hours is forgiven as soon as one that flapped for seconds. */
static void test_the_score_is_bounded(void **state)
{
    (void)state;
    struct quoit_holddown holddown = {0};
    const uint64_t forgive_ns = QUOIT_FLAP_FORGIVE_NS;
    for (uint32_t i = 0; i < 10 * QUOIT_FLAP_MOST; i++)
        quoit_holddown_outage(&holddown, 5 * S);
    assert_int_equal(holddown.score, QUOIT_FLAP_MOST);
    assert_int_equal(quoit_holddown_outage(&holddown, 5 * S + (QUOIT_FLAP_MOST - QUOIT_FLAP_FREE + 1) * forgive_ns), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rare_outages_are_free),
        cmocka_unit_test(test_some_outages_in_a_row_are_free),
        cmocka_unit_test(test_a_flapping_link_is_held_most_of_the_time),
        cmocka_unit_test(test_parts_of_an_interval_count),
        cmocka_unit_test(test_the_score_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
