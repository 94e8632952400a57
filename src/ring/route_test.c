/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: the shorter direction, ties by parity, and no frame that could circle.
 * Method: all pairs of rings of 2..9 hosts against walking step by step. */
#include "ring/route.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static uint32_t walk(uint32_t host_count, enum quoit_side side, uint32_t from, uint32_t to)
{
    uint32_t hops = 0;
    for (; from != to; hops++)
        from = side == QUOIT_RIGHT ? (from + 1) % host_count : (from + host_count - 1) % host_count;
    return hops;
}

static void route_is_shortest_and_ties_spread(void **state)
{
    (void)state;
    for (uint32_t host_count = 2; host_count <= 9; host_count++)
        for (uint32_t from = 0; from < host_count; from++)
            for (uint32_t to = 0; to < host_count; to++) {
                uint32_t right = walk(host_count, QUOIT_RIGHT, from, to);
                uint32_t left = walk(host_count, QUOIT_LEFT, from, to);
                assert_int_equal(quoit_ring_hops(host_count, QUOIT_RIGHT, from, to), right);
                assert_int_equal(quoit_ring_hops(host_count, QUOIT_LEFT, from, to), left);
                if (from == to)
                    continue;
                for (uint32_t spread = 0; spread < 4; spread++) {
                    enum quoit_side side = quoit_ring_route(from, host_count, to, spread);
                    if (right == left)
                        assert_int_equal(side, spread % 2 == 0 ? QUOIT_RIGHT : QUOIT_LEFT);
                    else
                        assert_int_equal(side, right < left ? QUOIT_RIGHT : QUOIT_LEFT);
                }
            }
}

/* Where each host sends to the opposite one, with a parity of its own, no link carries more than it must: a quarter of
 * the hosts' messages in each direction, rounded up. */
static void messages_to_the_opposite_load_links_evenly(void **state)
{
    (void)state;
    for (uint32_t host_count = 2; host_count <= 64; host_count += 2) {
        uint32_t loads[64][QUOIT_SIDE_COUNT] = {{0}};
        for (uint32_t from = 0; from < host_count; from++) {
            enum quoit_side side = quoit_ring_route(from, host_count, (from + host_count / 2) % host_count, from);
            uint32_t at = from;
            for (uint32_t hop = 0; hop < host_count / 2; hop++, at = quoit_ring_neighbour(host_count, side, at))
                loads[at][side]++;
        }
        for (uint32_t host = 0; host < host_count; host++)
            for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
                assert_true(loads[host][side] <= (host_count + 3) / 4);
    }
}

static void neighbours_close_the_ring(void **state)
{
    (void)state;
    assert_int_equal(quoit_ring_neighbour(5, QUOIT_RIGHT, 4), 0);
    assert_int_equal(quoit_ring_neighbour(5, QUOIT_RIGHT, 2), 3);
    assert_int_equal(quoit_ring_neighbour(5, QUOIT_LEFT, 0), 4);
    assert_int_equal(quoit_ring_neighbour(5, QUOIT_LEFT, 3), 2);
    assert_int_equal(quoit_ring_neighbour(2, QUOIT_LEFT, 0), 1);
    assert_int_equal(quoit_ring_neighbour(2, QUOIT_RIGHT, 0), 1);
}

static void only_hosts_of_the_route_may_see_a_frame(void **state)
{
    (void)state;
    for (uint32_t host_count = 2; host_count <= 9; host_count++)
        for (uint32_t i = 0; i < host_count * host_count * 2; i++) {
            uint32_t from = i / 2 % host_count, to = i / 2 / host_count;
            enum quoit_side side = i % 2 ? QUOIT_RIGHT : QUOIT_LEFT;
            if (from == to)
                continue;
            struct quoit_frame frame = {.source_host = (uint16_t)from, .dest_host = (uint16_t)to};
            bool is_expected[9] = {false};
            for (uint32_t at = from; at != to;) {
                at = quoit_ring_neighbour(host_count, side, at);
                is_expected[at] = true;
            }
            for (uint32_t host = 0; host < host_count; host++)
                assert_int_equal(quoit_ring_is_on_route(host_count, host, side, &frame), is_expected[host]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(route_is_shortest_and_ties_spread),
        cmocka_unit_test(messages_to_the_opposite_load_links_evenly),
        cmocka_unit_test(neighbours_close_the_ring),
        cmocka_unit_test(only_hosts_of_the_route_may_see_a_frame),
    };
    return cmocka_run_group_tests_name("ring.route", tests, NULL, NULL);
}
