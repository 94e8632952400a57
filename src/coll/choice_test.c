/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a table decides where it says something, as far as there is room for what it says, and the rules decide
 * elsewhere. Method: every table of one entry, on each kind of team, beside what the rules are known to choose: the
 * crossings that docs/design/collectives.md names. */
#include "coll/choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define KIB 1024u

static uint64_t forced(enum quoit_collective collective, enum quoit_schedule schedule)
{
    uint64_t word = 0;
    for (uint32_t i = 0; i < QUOIT_SCHEDULE_SIZES; i++)
        word = quoit_schedules_with(word, collective, i, schedule);
    return quoit_schedules_from(word, QUOIT_SCHEDULES_FORCED);
}

/* As the world's workspace has room, for elements of 8 bytes. */
static struct quoit_reduction reduction_of(uint32_t host_count, uint64_t bytes)
{
    return (struct quoit_reduction){.bytes = bytes,
                                    .element_bytes = 8,
                                    .at_once_bytes = 8 * KIB,
                                    .slice_bytes = 32 * KIB / host_count / 8 * 8,
                                    .around_count = (uint64_t)4 * KIB * host_count * 2,
                                    .halving_count = (uint64_t)16 * KIB / (host_count - 1) * host_count};
}

static void test_rules_of_broadcasts(void **state)
{
    (void)state;
    for (uint32_t hosts = 2; hosts <= 64; hosts++)
        for (uint64_t bytes = 8 * KIB; bytes <= 4096 * KIB; bytes *= 2) {
            struct quoit_choice choice = {.host_count = hosts};
            if (hosts <= 6)
                assert_int_equal(quoit_choice_takes_tree(&choice, bytes), hosts == 2 && bytes <= 128 * KIB);
            if (hosts >= 16 && bytes <= 64 * KIB)
                assert_true(quoit_choice_takes_tree(&choice, bytes));
            if (hosts <= 16 && bytes >= 1024 * KIB)
                assert_false(quoit_choice_takes_tree(&choice, bytes));
            choice.has_links = true;
            assert_false(quoit_choice_takes_tree(&choice, bytes));
        }
}

static void test_rules_of_exchanges(void **state)
{
    (void)state;
    for (uint32_t hosts = 2; hosts <= 64; hosts++) {
        struct quoit_choice choice = {.host_count = hosts};
        assert_int_equal(quoit_choice_disseminates(&choice, 0), hosts > 5);
        assert_int_equal(quoit_choice_disseminates(&choice, 1024 * KIB), hosts > 5);
        choice.has_links = true;
        assert_false(quoit_choice_disseminates(&choice, 0));
    }
}

static enum quoit_schedule chosen(struct quoit_choice choice, uint64_t bytes)
{
    const struct quoit_reduction reduction = reduction_of(choice.host_count, bytes);
    return quoit_choice_reduce(&choice, &reduction);
}

static void test_rules_of_reductions(void **state)
{
    (void)state;
    const struct quoit_choice two = {.host_count = 2}, sixteen = {.host_count = 16}, many = {.host_count = 64};
    assert_int_equal(chosen(two, 8 * KIB), QUOIT_SCHEDULE_AT_ONCE);
    assert_int_equal(chosen(two, 8 * KIB + 8), QUOIT_SCHEDULE_LOG);
    assert_int_equal(chosen(sixteen, 2 * KIB), QUOIT_SCHEDULE_AT_ONCE);
    assert_int_equal(chosen(sixteen, 2 * KIB + 8), QUOIT_SCHEDULE_LOG);
    assert_int_equal(chosen(sixteen, 390 * KIB), QUOIT_SCHEDULE_LOG);
    assert_int_equal(chosen(sixteen, 512 * KIB), QUOIT_SCHEDULE_AROUND);
    assert_int_equal(chosen(many, 1300 * KIB), QUOIT_SCHEDULE_LOG);
    assert_int_equal(chosen(many, 2048 * KIB), QUOIT_SCHEDULE_AROUND);
    const struct quoit_choice links = {.host_count = 16, .has_links = true};
    assert_int_equal(chosen(links, 2 * KIB), QUOIT_SCHEDULE_AT_ONCE);
    assert_int_equal(chosen(links, 2 * KIB + 8), QUOIT_SCHEDULE_AROUND);
}

static void test_a_table_decides(void **state)
{
    (void)state;
    for (uint32_t hosts = 2; hosts <= 64; hosts++)
        for (uint64_t bytes = 8; bytes <= 8192 * KIB; bytes *= 4)
            for (enum quoit_schedule way = QUOIT_SCHEDULE_AROUND; way <= QUOIT_SCHEDULE_LOG; way++) {
                struct quoit_choice choice = {.host_count = hosts};
                choice.schedules = forced(QUOIT_COLLECTIVE_BROADCAST, way);
                assert_int_equal(quoit_choice_takes_tree(&choice, bytes), way == QUOIT_SCHEDULE_LOG);
                choice.schedules = forced(QUOIT_COLLECTIVE_EXCHANGE, way);
                assert_int_equal(quoit_choice_disseminates(&choice, bytes), way == QUOIT_SCHEDULE_LOG);
                choice.schedules = forced(QUOIT_COLLECTIVE_REDUCE, way);
                assert_int_equal(chosen(choice, bytes), way);
            }
}

static void test_links_know_better(void **state)
{
    (void)state;
    struct quoit_choice choice = {.host_count = 16, .has_links = true};
    choice.schedules = forced(QUOIT_COLLECTIVE_BROADCAST, QUOIT_SCHEDULE_LOG);
    assert_false(quoit_choice_takes_tree(&choice, 64 * KIB));
    choice.schedules = forced(QUOIT_COLLECTIVE_EXCHANGE, QUOIT_SCHEDULE_LOG);
    assert_false(quoit_choice_disseminates(&choice, 0));
    choice.schedules = forced(QUOIT_COLLECTIVE_REDUCE, QUOIT_SCHEDULE_LOG);
    assert_int_equal(chosen(choice, 64 * KIB), QUOIT_SCHEDULE_AROUND);
}

/* At once only what the buffers hold, in several slices too; halving only where an element fits into a chunk. */
static void test_room_is_needed(void **state)
{
    (void)state;
    struct quoit_choice choice = {.host_count = 16,
                                  .schedules = forced(QUOIT_COLLECTIVE_REDUCE, QUOIT_SCHEDULE_AT_ONCE)};
    assert_int_equal(chosen(choice, 8 * KIB), QUOIT_SCHEDULE_AT_ONCE);
    assert_int_equal(chosen(choice, 8 * KIB + 8), QUOIT_SCHEDULE_LOG);
    choice.schedules = forced(QUOIT_COLLECTIVE_REDUCE, QUOIT_SCHEDULE_LOG);
    struct quoit_reduction reduction = reduction_of(16, 64 * KIB);
    reduction.halving_count = 0;
    assert_int_equal(quoit_choice_reduce(&choice, &reduction), QUOIT_SCHEDULE_AROUND);
}

static void test_whose_table_it_is(void **state)
{
    (void)state;
    const uint64_t some = quoit_schedules_with(0, QUOIT_COLLECTIVE_REDUCE, 3, QUOIT_SCHEDULE_LOG);
    const uint64_t tuned = quoit_schedules_from(some, QUOIT_SCHEDULES_TUNED);
    const uint64_t all = quoit_schedules_from(some, QUOIT_SCHEDULES_FORCED);
    assert_int_equal(quoit_choice_table(tuned, 8, 8), tuned);
    assert_int_equal(quoit_choice_table(tuned, 8, 7), 0);
    assert_int_equal(quoit_choice_table(all, 8, 7), all);
    assert_int_equal(quoit_choice_table(0, 8, 8), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_of_broadcasts), cmocka_unit_test(test_rules_of_exchanges),
        cmocka_unit_test(test_rules_of_reductions), cmocka_unit_test(test_a_table_decides),
        cmocka_unit_test(test_links_know_better),   cmocka_unit_test(test_room_is_needed),
        cmocka_unit_test(test_whose_table_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
