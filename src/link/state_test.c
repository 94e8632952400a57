/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: the state table allows the moves written out again here and no other, and the record counts outages. Method: all
 * pairs; the course of one link by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "link/state.h"

#define PAIR(from, to) (QUOIT_LINK_STATE_##from * QUOIT_LINK_STATE_COUNT + QUOIT_LINK_STATE_##to)

static void test_the_table_allows_these_moves_alone(void **state)
{
    (void)state;
    static const int allowed[] = {
        PAIR(IDLE, ABSENT),   PAIR(ABSENT, PROPOSED), PAIR(ABSENT, HELD),   PAIR(HELD, ABSENT), PAIR(PROPOSED, CLEAN),
        PAIR(CLEAN, UP),      PAIR(PROPOSED, ABSENT), PAIR(CLEAN, ABSENT),  PAIR(UP, DRAINING), PAIR(UP, LOST),
        PAIR(ABSENT, IDLE),   PAIR(HELD, IDLE),       PAIR(PROPOSED, IDLE), PAIR(CLEAN, IDLE),  PAIR(UP, IDLE),
        PAIR(DRAINING, IDLE), PAIR(DRAINING, ABSENT), PAIR(LOST, IDLE),
    };
    for (int from = 0; from < QUOIT_LINK_STATE_COUNT; from++) {
        for (int to = 0; to < QUOIT_LINK_STATE_COUNT; to++) {
            bool is_listed = false;
            for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++)
                is_listed |= allowed[i] == from * QUOIT_LINK_STATE_COUNT + to;
            assert_int_equal(quoit_link_may_move((enum quoit_link_state)from, (enum quoit_link_state)to), is_listed);
        }
        assert_true(strlen(quoit_link_state_name((enum quoit_link_state)from)) > 0);
    }
    assert_string_equal(quoit_link_state_name(QUOIT_LINK_STATE_COUNT), "unknown");
}

static void test_outages_are_counted_and_timed(void **state)
{
    (void)state;
    struct quoit_link_record record = {0};
    static const enum quoit_link_state up_again[] = {QUOIT_LINK_STATE_ABSENT, QUOIT_LINK_STATE_PROPOSED,
                                                     QUOIT_LINK_STATE_CLEAN, QUOIT_LINK_STATE_UP};
    uint64_t now_ns = 100;
    for (uint32_t outage = 0; outage < 3; outage++) {
        for (int i = 0; i < 4; i++)
            quoit_link_move(&record, up_again[i], now_ns += 10);
        assert_int_equal(record.outage_count, outage);
        assert_int_equal(record.outage_ns, outage * 40);
        assert_int_equal(record.down_since_ns, 0);
        quoit_link_move(&record, QUOIT_LINK_STATE_DRAINING, now_ns += 1000);
        assert_int_equal(record.down_since_ns, now_ns);
        assert_int_equal(record.since_ns, now_ns);
    }
    assert_int_equal(record.outage_count, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_table_allows_these_moves_alone),
        cmocka_unit_test(test_outages_are_counted_and_timed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
