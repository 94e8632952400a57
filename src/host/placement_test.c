/* SPDX-License-Identifier: BSD-3-Clause */
/* The placement of lanes, for rings of several sizes on as many processors as there are; and that a lane moves there
 * and is bound to nothing afterwards. If the kernel moves it in between, the test waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "env/processor.h"
#include "host/placement.h"

static const struct quoit_wait_policy shared = {.spin_count = 0}, alone = {.spin_count = 80};

static void start(struct quoit_lane_placement *placement, uint32_t host_count, uint32_t lane_count, uint32_t host,
                  uint32_t lane, struct quoit_wait_policy policy)
{
    struct quoit_layout layout = {
        .job = {.host_count = host_count, .lane_count = lane_count}, .host = host, .link_lane_count = lane_count};
    quoit_placement_start_lane(placement, &layout, lane, policy);
}

static void start_over_network(struct quoit_lane_placement *placement, uint32_t host)
{
    struct quoit_layout layout = {.job = {.host_count = 2, .lane_count = 1, .protocol = QUOIT_PROTOCOL_NETWORK},
                                  .host = host};
    quoit_placement_start_lane(placement, &layout, 0, shared);
}

/* Of those that lanes may move between: none if an affinity was set. */
static int processor_count(void)
{
    cpu_set_t allowed;
    return quoit_processor_is_free(&allowed) ? CPU_COUNT(&allowed) : 0;
}

static void test_kernel_decides_where_each_thread_has_a_processor(void **state)
{
    (void)state;
    struct quoit_lane_placement lane;
    start(&lane, 5, 2, 0, 0, alone);
    assert_int_equal(lane.apart, -1);
    lane.moved_bytes = 1u << 30;
    quoit_placement_look_lane(&lane);
    assert_int_equal(lane.placement.moved_ns, 0);
}

/* As taskset does to a running job: a chosen affinity is not undone. */
static void test_a_choice_of_processors_is_kept(void **state)
{
    (void)state;
    cpu_set_t all, chosen, now;
    struct quoit_lane_placement before, after;
    if (!quoit_processor_is_free(&all) || CPU_COUNT(&all) < 2)
        skip();
    start(&before, 5, 2, 0, 0, shared);
    CPU_ZERO(&chosen);
    CPU_SET(before.apart == quoit_processor_nth(&all, 0) ? quoit_processor_nth(&all, 1) : quoit_processor_nth(&all, 0),
            &chosen);
    assert_int_equal(sched_setaffinity(0, sizeof chosen, &chosen), 0);
    quoit_placement_look_lane(&before);
    start(&after, 5, 2, 0, 0, shared);
    assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_true(CPU_EQUAL(&now, &chosen));
    assert_int_equal(before.apart, -1);
    assert_int_equal(after.apart, -1);
}

static void test_small_messages_find_the_next_host_on_another_processor(void **state)
{
    (void)state;
    if (processor_count() < 2)
        skip();
    for (uint32_t lane = 0; lane < 4; lane++) {
        for (uint32_t host = 0; host + 1 < 7; host++) {
            struct quoit_lane_placement here, next;
            start(&here, 7, 4, host, lane, shared);
            start(&next, 7, 4, host + 1, lane, shared);
            assert_true(CPU_ISSET(here.apart, &here.allowed));
            assert_int_not_equal(here.apart, next.apart);
        }
    }
}

/* One PE a host: PE 0 and PE 1 start on the first two processors. */
static void test_over_a_network_lanes_run_beside_the_pe_of_another_host(void **state)
{
    (void)state;
    if (processor_count() < 2)
        skip();
    struct quoit_lane_placement lane;
    start_over_network(&lane, 0);
    assert_int_equal(lane.apart, quoit_processor_nth(&lane.allowed, 1));
    start_over_network(&lane, 1);
    assert_int_equal(lane.apart, quoit_processor_nth(&lane.allowed, 2 % (uint32_t)processor_count()));
}

static void test_large_transfers_stay_on_a_processor_and_lanes_take_several(void **state)
{
    (void)state;
    if (processor_count() < 2)
        skip();
    struct quoit_lane_placement first, second, other;
    uint32_t lane_count = 2, group_count = (uint32_t)processor_count() / lane_count;
    for (uint32_t host = 0; host < 4 * group_count; host++) {
        start(&first, 4 * group_count, lane_count, host, 0, shared);
        start(&second, 4 * group_count, lane_count, host, 1, shared);
        start(&other, 4 * group_count, lane_count, host / 4 * 4, 0, shared);
        assert_true(CPU_ISSET(first.together, &first.allowed));
        assert_int_not_equal(first.together, second.together);
        assert_int_equal(first.together, other.together); /* four hosts in a row share */
    }
}

static void look_until_on(struct quoit_lane_placement *lane, int processor, uint64_t bytes_a_look)
{
    do {
        lane->moved_bytes += bytes_a_look;
        quoit_placement_look_lane(lane);
    } while (sched_getcpu() != processor);
}

static void test_a_lane_goes_where_its_traffic_wants_it(void **state)
{
    (void)state;
    if (processor_count() < 2)
        skip();
    struct quoit_lane_placement lane;
    cpu_set_t before, after;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    start(&lane, QUOIT_RING_HOSTS_MAX, 1, 1, 0, shared);
    assert_int_not_equal(lane.apart, lane.together);
    for (int round = 0; round < 3; round++) {
        look_until_on(&lane, lane.together, 1u << 24);
        assert_true(lane.together_until_ns > 0);
        look_until_on(&lane, lane.apart, 100);
    }
    assert_true(lane.placement.moved_ns > 0);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_decides_where_each_thread_has_a_processor),
        cmocka_unit_test(test_a_choice_of_processors_is_kept),
        cmocka_unit_test(test_small_messages_find_the_next_host_on_another_processor),
        cmocka_unit_test(test_over_a_network_lanes_run_beside_the_pe_of_another_host),
        cmocka_unit_test(test_large_transfers_stay_on_a_processor_and_lanes_take_several),
        cmocka_unit_test(test_a_lane_goes_where_its_traffic_wants_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
