/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: slots are counted correctly, injection leaves a bubble, a pause is bounded and ends as credit.h says.
 * Method: each rule by hand, with a clock set by the test. */
#include "ring/credit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const struct quoit_ring_config config = {.slot_count = 3, .transit_pause_after_ns = 100, .transit_pause_ns = 20};

static bool may_inject(struct quoit_ring_outbound *out, uint64_t now_ns)
{
    uint64_t retry_at_ns;
    bool may = quoit_ring_may_inject(out, &config, now_ns, &retry_at_ns);
    quoit_ring_check_outbound(out, config.slot_count);
    return may;
}

/* The value of `until`: 1 when transit may proceed. */
static uint64_t transit(struct quoit_ring_outbound *out, uint64_t now_ns)
{
    uint64_t until_ns = 77;
    bool may = quoit_ring_may_transit(out, &config, now_ns, &until_ns);
    quoit_ring_check_outbound(out, config.slot_count);
    if (may)
        assert_int_equal(until_ns, 0);
    return may ? 1 : until_ns;
}

static void injection_leaves_a_bubble_that_transit_may_take(void **state)
{
    (void)state;
    struct quoit_ring_outbound out = {0};
    assert_true(may_inject(&out, 1));
    quoit_ring_take_slot(&out, &config);
    assert_true(may_inject(&out, 1));
    quoit_ring_take_slot(&out, &config);
    assert_int_equal(quoit_ring_free_slots(&out, 3), 1);
    assert_false(may_inject(&out, 1));
    assert_int_equal(transit(&out, 1), 1);
    quoit_ring_take_slot(&out, &config);
    assert_int_equal(transit(&out, 1), 0);
    assert_false(may_inject(&out, 1));
    assert_int_equal(quoit_ring_take_credit(&out, 1), QUOIT_OK);
    assert_int_equal(transit(&out, 1), 1);
    assert_false(may_inject(&out, 1));
    assert_int_equal(quoit_ring_take_credit(&out, 2), QUOIT_OK);
    assert_true(may_inject(&out, 1));
}

static void a_total_neither_goes_back_nor_ahead(void **state)
{
    (void)state;
    struct quoit_ring_outbound out = {.sent_total = 7, .credited_total = 5};
    assert_int_equal(quoit_ring_take_credit(&out, 4), QUOIT_INVALID);
    assert_int_equal(quoit_ring_take_credit(&out, 8), QUOIT_INVALID);
    assert_int_equal(quoit_ring_take_credit(&out, UINT64_MAX), QUOIT_INVALID);
    assert_int_equal(out.credited_total, 5);
    assert_int_equal(quoit_ring_take_credit(&out, 5), QUOIT_OK);
    assert_int_equal(quoit_ring_take_credit(&out, 7), QUOIT_OK);
    assert_int_equal(out.credited_total, 7);
}

static void a_transit_pause_starts_after_its_wait_and_lasts_its_time(void **state)
{
    (void)state;
    struct quoit_ring_outbound out = {.sent_total = 2};
    assert_false(may_inject(&out, 1000));
    assert_int_equal(transit(&out, 1099), 1);
    assert_int_equal(transit(&out, 1100), 1120);
    assert_int_equal(transit(&out, 1119), 1120);
    assert_false(may_inject(&out, 1119));
    assert_int_equal(transit(&out, 1120), 1);
    /* refused again during the pause: waits anew from its end */
    assert_int_equal(transit(&out, 1219), 1);
    assert_int_equal(transit(&out, 1220), 1240);
    /* an injection ends the pause at once */
    assert_int_equal(quoit_ring_take_credit(&out, 1), QUOIT_OK);
    assert_true(may_inject(&out, 1225));
    assert_int_equal(transit(&out, 1226), 1);
    assert_int_equal(out.transit, QUOIT_RING_OPEN);
}

static void a_waiter_that_gave_up_costs_one_rest(void **state)
{
    (void)state;
    struct quoit_ring_outbound out = {.sent_total = 2};
    assert_false(may_inject(&out, 0));
    assert_int_equal(transit(&out, 100), 120);
    assert_int_equal(transit(&out, 120), 1);
    assert_int_equal(out.transit, QUOIT_RING_OPEN);
    assert_int_equal(transit(&out, 10000), 1);
}

/* Otherwise the caller would poll until then, repeatedly, for as long as the neighbour consumes nothing. */
static void a_full_queue_waits_for_a_credit_and_not_for_the_end_of_a_rest(void **state)
{
    (void)state;
    struct quoit_ring_outbound out = {.sent_total = 3};
    assert_false(may_inject(&out, 1000));
    assert_int_equal(transit(&out, 1100), 0);
    assert_int_equal(out.transit, QUOIT_RING_PAUSED);
    assert_int_equal(quoit_ring_take_credit(&out, 1), QUOIT_OK);
    assert_int_equal(transit(&out, 1110), 1120);
    assert_int_equal(transit(&out, 1120), 1);
}

/* One injection to `turn` relayed frames while both wait, whatever the number of free slots, whichever comes first. */
static void on_a_line_injection_and_transit_take_turns(void **state)
{
    (void)state;
    struct quoit_ring_outbound out = {.sent_total = 3};
    uint64_t retry_at_ns;
    quoit_ring_set_turn(&out, 2);
    assert_int_equal(transit(&out, 1), 0);
    assert_false(may_inject(&out, 1));
    assert_int_equal(quoit_ring_take_credit(&out, 3), QUOIT_OK);
    /* a refused relayed frame is waiting, and it is its turn: the caller must retry at once */
    assert_false(quoit_ring_may_inject(&out, &config, 2, &retry_at_ns));
    assert_int_equal(retry_at_ns, 2);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(transit(&out, 3), 1);
        assert_int_equal(transit(&out, 3), 1);
        assert_int_equal(transit(&out, 3), 23);
        assert_true(may_inject(&out, 3));
        out.sent_total = 6;
        assert_int_equal(transit(&out, 3), 0);
        assert_false(may_inject(&out, 3));
        assert_int_equal(quoit_ring_take_credit(&out, 6), QUOIT_OK);
        out.sent_total = 6;
        assert_false(may_inject(&out, 3));
        out.credited_total = out.sent_total = 3;
    }
}

static void a_turn_that_no_injection_takes_ends(void **state)
{
    (void)state;
    struct quoit_ring_outbound out = {.sent_total = 2};
    quoit_ring_set_turn(&out, 1);
    assert_false(may_inject(&out, 1));
    assert_int_equal(transit(&out, 1), 1);
    out.sent_total = 1; /* two are free */
    assert_int_equal(transit(&out, 5), 25);
    assert_int_equal(transit(&out, 24), 25);
    assert_int_equal(transit(&out, 25), 1);
    assert_int_equal(transit(&out, 26), 1); /* nobody asked meanwhile, so nobody waits */
    /* the last free slot too: otherwise a line could stand still */
    out.sent_total = 2;
    assert_false(may_inject(&out, 26));
    assert_int_equal(transit(&out, 26), 46);
    assert_false(may_inject(&out, 45));
    assert_int_equal(transit(&out, 45), 46);
    assert_int_equal(transit(&out, 46), 1);
    /* injection still waits, and its turn comes before the next frame */
    assert_int_equal(transit(&out, 47), 67);
    assert_false(may_inject(&out, 66));
    assert_int_equal(transit(&out, 67), 1);
    /* a full queue waits for a credit, and the time of a turn begins with it */
    out.sent_total = 3;
    assert_int_equal(transit(&out, 70), 0);
    assert_int_equal(transit(&out, 79), 0);
    out.sent_total = 2;
    assert_int_equal(transit(&out, 80), 100);
}

/* Credits that come one by one: transit would take each, and two would never be free. */
static void at_its_turn_injection_gets_two_slots_one_after_the_other(void **state)
{
    (void)state;
    struct quoit_ring_outbound out = {.sent_total = 3};
    quoit_ring_set_turn(&out, 2);
    assert_int_equal(transit(&out, 1), 0);
    assert_false(may_inject(&out, 1));
    for (int round = 0; round < 2; round++) {
        assert_int_equal(quoit_ring_take_credit(&out, out.credited_total + 1), QUOIT_OK);
        assert_int_equal(transit(&out, 2), 1);
        quoit_ring_take_slot(&out, &config);
    }
    assert_int_equal(quoit_ring_take_credit(&out, 3), QUOIT_OK);
    assert_int_equal(transit(&out, 3), 23);
    assert_false(may_inject(&out, 3));
    assert_int_equal(quoit_ring_take_credit(&out, 4), QUOIT_OK);
    assert_int_equal(transit(&out, 4), 23);
    assert_true(may_inject(&out, 4));
    quoit_ring_take_slot(&out, &config);
    assert_int_equal(transit(&out, 4), 1); /* a slot is left, and transit's turn begins */
}

/* A pause before injection's turn would be in vain: transit yields, and injection may not go. */
static void on_a_line_no_pause_comes_with_time(void **state)
{
    (void)state;
    struct quoit_ring_outbound out = {.sent_total = 2};
    quoit_ring_set_turn(&out, 2);
    assert_false(may_inject(&out, 0));
    assert_int_equal(transit(&out, 1000), 1);
    assert_int_equal(transit(&out, 2000), 1);
    assert_int_equal(transit(&out, 3000), 3020);
    out.sent_total = 1; /* two are free */
    assert_true(may_inject(&out, 3001));
    assert_int_equal(transit(&out, 3001), 1);
}

/* Where the queue of relayed frames is empty for a moment again and again, injection would take a part of each. */
static void an_injection_before_its_turn_counts_against_the_next(void **state)
{
    (void)state;
    struct quoit_ring_outbound out = {.sent_total = 0};
    quoit_ring_set_turn(&out, 2);
    for (int i = 0; i < 3; i++)
        assert_true(may_inject(&out, 1)); /* nothing is waiting; three of them count once */
    out.sent_total = 3;
    assert_int_equal(transit(&out, 2), 0);
    out.credited_total = 3;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < (round == 0 ? 4 : 2); i++) {
            assert_false(may_inject(&out, 3));
            assert_int_equal(transit(&out, 3), 1);
            out.sent_total = 6;
            assert_int_equal(transit(&out, 3), 0);
            out.sent_total = 3;
        }
        assert_true(may_inject(&out, 3));
    }
}

static void a_new_topology_has_no_turn_taken(void **state)
{
    (void)state;
    struct quoit_ring_outbound out = {.sent_total = 3};
    quoit_ring_set_turn(&out, 4);
    assert_int_equal(transit(&out, 1), 0);
    quoit_ring_set_turn(&out, 4); /* the waiting frame is outdated, and will not come */
    assert_int_equal(quoit_ring_take_credit(&out, 3), QUOIT_OK);
    assert_true(may_inject(&out, 2));
    out.sent_total = 2;
    out.credited_total = 0;
    quoit_ring_set_turn(&out, 1);
    assert_false(may_inject(&out, 2));
    assert_int_equal(transit(&out, 2), 1);
    assert_int_equal(transit(&out, 2), 22);
    quoit_ring_set_turn(&out, 1); /* nor a pause that began before */
    assert_int_equal(transit(&out, 3), 1);
    quoit_ring_set_turn(&out, 0);
    out.credited_total = 3;
    out.sent_total = 6;
    assert_int_equal(transit(&out, 3), 0);
    assert_int_equal(quoit_ring_take_credit(&out, 6), QUOIT_OK);
    assert_true(may_inject(&out, 4));
}

static void credits_are_due_by_quarters_or_when_idle(void **state)
{
    (void)state;
    struct quoit_ring_inbound in = {0};
    assert_false(quoit_ring_is_credit_due(&in, 2, true));
    in.consumed_total = 1;
    assert_true(quoit_ring_is_credit_due(&in, 2, false));
    assert_true(quoit_ring_is_credit_due(&in, 7, false));
    assert_false(quoit_ring_is_credit_due(&in, 16, false));
    assert_true(quoit_ring_is_credit_due(&in, 16, true));
    in.consumed_total = 4;
    assert_true(quoit_ring_is_credit_due(&in, 16, false));
    in.advertised_total = 1;
    assert_false(quoit_ring_is_credit_due(&in, 16, false));
    quoit_ring_check_inbound(&in, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(injection_leaves_a_bubble_that_transit_may_take),
        cmocka_unit_test(a_total_neither_goes_back_nor_ahead),
        cmocka_unit_test(a_transit_pause_starts_after_its_wait_and_lasts_its_time),
        cmocka_unit_test(a_waiter_that_gave_up_costs_one_rest),
        cmocka_unit_test(a_full_queue_waits_for_a_credit_and_not_for_the_end_of_a_rest),
        cmocka_unit_test(on_a_line_injection_and_transit_take_turns),
        cmocka_unit_test(a_turn_that_no_injection_takes_ends),
        cmocka_unit_test(at_its_turn_injection_gets_two_slots_one_after_the_other),
        cmocka_unit_test(on_a_line_no_pause_comes_with_time),
        cmocka_unit_test(an_injection_before_its_turn_counts_against_the_next),
        cmocka_unit_test(a_new_topology_has_no_turn_taken),
        cmocka_unit_test(credits_are_due_by_quarters_or_when_idle),
    };
    return cmocka_run_group_tests_name("ring.credit", tests, NULL, NULL);
}
