/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: the schedules do what their names say for every number of hosts. Method: all host counts up to HOSTS_MAX and all
 * roots, executed on bit sets (which host's data has reached which host), round by round, all hosts at once; a host may
 * only send what it has, and what it receives must be what its neighbour sends. Arrivals, which have no rounds, run on
 * hosts in random order. */
#include "base/prng.h"
#include "coll/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define HOSTS_MAX 24u

static uint32_t all_of(uint32_t host_count)
{
    return (1u << host_count) - 1;
}

static void test_neighbours_are_mutual(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= HOSTS_MAX; count++)
        for (uint32_t host = 0; host < count; host++) {
            uint32_t next = quoit_schedule_neighbour(count, host, QUOIT_NEXT);
            assert_int_equal(next, host + 1 == count ? 0 : host + 1);
            assert_int_equal(quoit_schedule_neighbour(count, next, QUOIT_PREVIOUS), host);
        }
}

/* Each host knows its block; what arrived in one round can be forwarded in the next. */
static void test_exchange_reaches_all(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= HOSTS_MAX; count++) {
        uint32_t blocks[HOSTS_MAX], reached[HOSTS_MAX];
        uint32_t message_count = 0;
        for (uint32_t host = 0; host < count; host++)
            blocks[host] = reached[host] = 1u << host;
        for (uint32_t round = 0; round < quoit_schedule_exchange_rounds(count); round++) {
            uint32_t blocks_before[HOSTS_MAX], reached_before[HOSTS_MAX];
            memcpy(blocks_before, blocks, sizeof blocks);
            memcpy(reached_before, reached, sizeof reached);
            for (uint32_t host = 0; host < count; host++)
                for (int travel = 0; travel < QUOIT_TRAVEL_COUNT; travel++) {
                    if (!quoit_schedule_exchange_sends(count, round, travel))
                        continue;
                    uint32_t to = quoit_schedule_neighbour(count, host, travel);
                    uint32_t send = quoit_schedule_exchange(count, host, round, travel).send;
                    assert_int_equal(quoit_schedule_exchange(count, to, round, travel).receive, send);
                    assert_true(blocks_before[host] & (1u << send));
                    assert_false(blocks[to] & (1u << send)); /* no block comes twice */
                    blocks[to] |= 1u << send;
                    reached[to] |= reached_before[host];
                    message_count++;
                }
        }
        for (uint32_t host = 0; host < count; host++) {
            assert_int_equal(blocks[host], all_of(count));
            assert_int_equal(reached[host], all_of(count));
        }
        assert_int_equal(message_count, count * (count - 1));
    }
}

/* chunks[host][c]: whose contributions chunk c on this host contains. */
static void combine_and_gather(uint32_t count, enum quoit_travel travel)
{
    uint32_t chunks[HOSTS_MAX][HOSTS_MAX];
    for (uint32_t host = 0; host < count; host++)
        for (uint32_t chunk = 0; chunk < count; chunk++)
            chunks[host][chunk] = 1u << host;
    for (uint32_t round = 0; round + 1 < count; round++) {
        uint32_t before[HOSTS_MAX][HOSTS_MAX];
        memcpy(before, chunks, sizeof chunks);
        for (uint32_t host = 0; host < count; host++) {
            uint32_t to = quoit_schedule_neighbour(count, host, travel);
            uint32_t chunk = quoit_schedule_combine(count, host, round, travel).send;
            assert_int_equal(quoit_schedule_combine(count, to, round, travel).receive, chunk);
            assert_int_equal(before[to][chunk] & before[host][chunk], 0); /* nothing is combined twice */
            chunks[to][chunk] = before[to][chunk] | before[host][chunk];
        }
    }
    for (uint32_t round = 0; round + 1 < count; round++) {
        uint32_t before[HOSTS_MAX][HOSTS_MAX];
        memcpy(before, chunks, sizeof chunks);
        for (uint32_t host = 0; host < count; host++) {
            uint32_t to = quoit_schedule_neighbour(count, host, travel);
            uint32_t chunk = quoit_schedule_gather(count, host, round, travel).send;
            assert_int_equal(quoit_schedule_gather(count, to, round, travel).receive, chunk);
            assert_int_equal(before[host][chunk], all_of(count)); /* only complete chunks are forwarded */
            assert_int_not_equal(before[to][chunk], all_of(count));
            chunks[to][chunk] = before[host][chunk];
        }
    }
    for (uint32_t host = 0; host < count; host++)
        for (uint32_t chunk = 0; chunk < count; chunk++)
            assert_int_equal(chunks[host][chunk], all_of(count));
}

static void test_reduction_combines_each_once(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= HOSTS_MAX; count++) {
        combine_and_gather(count, QUOIT_NEXT);
        combine_and_gather(count, QUOIT_PREVIOUS);
    }
}

/* Follows what the root sends in each direction; every host is reached once, from the side that it expects, over the
 * fewest hops. */
static void spread_from(uint32_t count, uint32_t root)
{
    uint32_t reached = 1u << root;
    assert_false(quoit_schedule_spread(count, root, root).does_receive);
    for (int travel = 0; travel < QUOIT_TRAVEL_COUNT; travel++) {
        uint32_t hops = 0;
        for (uint32_t at = root; quoit_schedule_spread(count, at, root).sends[travel]; hops++) {
            at = quoit_schedule_neighbour(count, at, travel);
            struct quoit_spread spread = quoit_schedule_spread(count, at, root);
            assert_false(reached & (1u << at));
            assert_true(spread.does_receive);
            assert_int_equal(spread.receive, travel);
            assert_false(spread.sends[1 - travel]);
            reached |= 1u << at;
        }
        assert_true(hops <= count / 2);
    }
    assert_int_equal(reached, all_of(count));
}

static void test_spread_reaches_each_once(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= HOSTS_MAX; count++)
        for (uint32_t root = 0; root < count; root++)
            spread_from(count, root);
}

/* In each direction the data visits every host once, in the order of the circle, and ends before the root. */
static void test_circulation_reaches_all_each_way(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= HOSTS_MAX; count++)
        for (uint32_t root = 0; root < count; root++)
            for (enum quoit_travel travel = QUOIT_NEXT; travel < QUOIT_TRAVEL_COUNT; travel++) {
                uint32_t reached = 1u << root, at = root;
                assert_false(quoit_schedule_circulate(count, root, root, travel).receives);
                while (quoit_schedule_circulate(count, at, root, travel).sends) {
                    at = quoit_schedule_neighbour(count, at, travel);
                    assert_false(reached & (1u << at));
                    assert_true(quoit_schedule_circulate(count, at, root, travel).receives);
                    reached |= 1u << at;
                }
                assert_int_equal(reached, all_of(count));
            }
}

/* Barriers by arrivals, one after another, on hosts that run in random order. A flag holds only the latest value, as
 * memory does; what is sent over the cut link never arrives. */
struct arrivals_world {
    uint32_t count;
    bool is_cut; /* the link between the last host and host 0 */
    struct quoit_prng prng;
    struct {
        uint32_t barrier; /* the barrier that it is in */
        struct quoit_arrivals arrivals;
        uint32_t advertised[QUOIT_TRAVEL_COUNT];
    } hosts[HOSTS_MAX];
    struct {
        uint32_t barrier, count;
    } flags[HOSTS_MAX][QUOIT_TRAVEL_COUNT];
};

static void advertise(struct arrivals_world *world, uint32_t host, enum quoit_travel travel)
{
    uint32_t to = quoit_schedule_neighbour(world->count, host, travel);
    bool crosses = travel == QUOIT_NEXT ? to == 0 : host == 0;
    uint32_t count = quoit_schedule_arrivals_advertise(world->count, &world->hosts[host].arrivals, travel);
    assert_in_range(count, 1, world->count - 1);
    assert_true(count > world->hosts[host].advertised[travel]); /* each advertisement is new */
    world->hosts[host].advertised[travel] = count;
    if (crosses && world->is_cut)
        return;
    world->flags[to][travel].barrier = world->hosts[host].barrier;
    world->flags[to][travel].count = count;
}

static void begin_barrier(struct arrivals_world *world, uint32_t host)
{
    world->hosts[host].barrier++;
    memset(&world->hosts[host].arrivals, 0, sizeof world->hosts[host].arrivals);
    memset(world->hosts[host].advertised, 0, sizeof world->hosts[host].advertised);
    for (enum quoit_travel travel = QUOIT_NEXT; travel < QUOIT_TRAVEL_COUNT; travel++)
        advertise(world, host, travel);
}

/* The host reads its flags; true when it leaves the barrier, which all hosts must have entered by then. */
static bool look_at_flags(struct arrivals_world *world, uint32_t host)
{
    struct quoit_arrivals *arrivals = &world->hosts[host].arrivals;
    uint32_t barrier = world->hosts[host].barrier;
    for (enum quoit_travel travel = QUOIT_NEXT; travel < QUOIT_TRAVEL_COUNT; travel++) {
        uint32_t reached = world->flags[host][travel].barrier == barrier  ? world->flags[host][travel].count
                           : world->flags[host][travel].barrier > barrier ? world->count - 1
                                                                          : 0;
        assert_true(reached >= arrivals->known[travel]);
        arrivals->known[travel] = reached;
        if (quoit_schedule_arrivals_advertise(world->count, arrivals, travel) > world->hosts[host].advertised[travel])
            advertise(world, host, travel);
    }
    if (!quoit_schedule_arrivals_are_all(world->count, arrivals))
        return false;
    for (uint32_t other = 0; other < world->count; other++)
        assert_true(world->hosts[other].barrier >= barrier);
    return true;
}

#define ARRIVALS_BARRIERS 4u

/* Ends only when every host has left every barrier. */
static void run_arrivals(uint32_t count, bool is_cut, uint64_t seed)
{
    static struct arrivals_world world;
    world = (struct arrivals_world){.count = count, .is_cut = is_cut, .prng = {.state = seed}};
    uint32_t left_count = count;
    bool has_ended[HOSTS_MAX] = {false};
    while (left_count > 0) {
        uint32_t host = (uint32_t)quoit_prng_choose(&world.prng, count);
        if (has_ended[host])
            continue;
        if (world.hosts[host].barrier == 0) {
            begin_barrier(&world, host);
        } else if (look_at_flags(&world, host)) {
            has_ended[host] = world.hosts[host].barrier == ARRIVALS_BARRIERS;
            if (has_ended[host])
                left_count--;
            else
                begin_barrier(&world, host);
        }
    }
}

static void test_arrivals_are_a_barrier_of_a_ring_and_of_a_line(void **state)
{
    (void)state;
    for (uint32_t count = 2; count <= HOSTS_MAX; count++)
        for (uint64_t seed = 1; seed <= 50; seed++) {
            run_arrivals(count, false, seed);
            run_arrivals(count, true, seed);
        }
}

static void test_dissemination_is_a_barrier(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= HOSTS_MAX; count++) {
        uint32_t reached[HOSTS_MAX];
        for (uint32_t host = 0; host < count; host++)
            reached[host] = 1u << host;
        for (uint32_t round = 0; round < quoit_schedule_dissemination_rounds(count); round++) {
            uint32_t before[HOSTS_MAX];
            memcpy(before, reached, sizeof reached);
            for (uint32_t host = 0; host < count; host++) {
                uint32_t to = quoit_schedule_disseminate(count, host, round).send;
                assert_int_equal(quoit_schedule_disseminate(count, to, round).receive, host);
                reached[to] |= before[host];
            }
        }
        for (uint32_t host = 0; host < count; host++)
            assert_int_equal(reached[host], all_of(count));
    }
}

/* The blocks of a message are held by its sender and new to its receiver. */
static void test_dissemination_gathers_all_blocks(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= HOSTS_MAX; count++) {
        uint32_t held[HOSTS_MAX];
        for (uint32_t host = 0; host < count; host++)
            held[host] = 1u << host;
        for (uint32_t round = 0; round < quoit_schedule_dissemination_rounds(count); round++) {
            uint32_t before[HOSTS_MAX];
            memcpy(before, held, sizeof held);
            for (uint32_t host = 0; host < count; host++)
                for (uint32_t i = 0; i < quoit_schedule_dissemination_blocks(count, round); i++) {
                    uint32_t block = 1u << (host + count - i) % count;
                    uint32_t to = quoit_schedule_disseminate(count, host, round).send;
                    assert_true(before[host] & block);
                    assert_false(held[to] & block);
                    held[to] |= block;
                }
        }
        for (uint32_t host = 0; host < count; host++)
            assert_int_equal(held[host], all_of(count));
    }
}

/* sums[host][b]: whose contributions block b on this host contains. */
static void halve_and_gather(uint32_t count)
{
    uint32_t sums[HOSTS_MAX][HOSTS_MAX], before[HOSTS_MAX][HOSTS_MAX];
    uint32_t rounds = quoit_schedule_dissemination_rounds(count), block_count = 0;
    for (uint32_t host = 0; host < count; host++)
        for (uint32_t block = 0; block < count; block++)
            sums[host][block] = 1u << host;
    for (uint32_t round = 0; round < rounds; round++) {
        struct quoit_halving halving = quoit_schedule_halve(count, round);
        assert_int_equal(halving.end, round == 0 ? count : quoit_schedule_halve(count, round - 1).first);
        assert_in_range(halving.end - halving.first, 1, halving.first); /* what comes is combined with what stays */
        block_count += halving.end - halving.first;
        memcpy(before, sums, sizeof sums);
        for (uint32_t host = 0; host < count; host++)
            for (uint32_t i = halving.first; i < halving.end; i++) {
                uint32_t to = (host + halving.first) % count, block = (host + i) % count;
                assert_int_equal(before[to][block] & before[host][block], 0); /* nothing is combined twice */
                sums[to][block] = before[to][block] | before[host][block];
            }
    }
    assert_int_equal(block_count, count - 1);
    for (uint32_t round = rounds; round-- > 0;) {
        struct quoit_halving halving = quoit_schedule_halve(count, round);
        memcpy(before, sums, sizeof sums);
        for (uint32_t host = 0; host < count; host++)
            for (uint32_t i = 0; i < halving.end - halving.first; i++) {
                uint32_t to = (host + count - halving.first) % count, block = (host + i) % count;
                assert_int_equal(before[host][block], all_of(count));
                assert_int_not_equal(before[to][block], all_of(count)); /* no block comes twice */
                sums[to][block] = before[host][block];
            }
    }
    for (uint32_t host = 0; host < count; host++)
        for (uint32_t block = 0; block < count; block++)
            assert_int_equal(sums[host][block], all_of(count));
}

static void test_halving_combines_each_once(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= HOSTS_MAX; count++)
        halve_and_gather(count);
}

static void tree_from(uint32_t count, uint32_t root)
{
    uint32_t rounds = quoit_schedule_dissemination_rounds(count), reached = 1u << root;
    for (uint32_t round = 0; round < rounds; round++) {
        uint32_t before = reached;
        for (uint32_t host = 0; host < count; host++) {
            struct quoit_tree tree = quoit_schedule_tree(count, host, root);
            assert_int_equal(tree.does_receive, host != root);
            assert_in_range(tree.end, tree.first, rounds);
            if (round < tree.first || round >= tree.end)
                continue;
            uint32_t to = quoit_schedule_disseminate(count, host, round).send;
            assert_true(before & 1u << host);
            assert_false(reached & 1u << to);
            assert_int_equal(quoit_schedule_tree(count, to, root).receive, round);
            reached |= 1u << to;
        }
    }
    assert_int_equal(reached, all_of(count));
}

static void test_tree_reaches_each_once(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= HOSTS_MAX; count++)
        for (uint32_t root = 0; root < count; root++)
            tree_from(count, root);
}

static void test_parts_cover_all(void **state)
{
    (void)state;
    for (uint64_t count = 0; count < 100; count++)
        for (uint32_t parts = 1; parts <= HOSTS_MAX; parts++) {
            uint64_t at = 0;
            for (uint32_t i = 0; i < parts; i++) {
                struct quoit_part part = quoit_schedule_part(count, parts, i);
                assert_int_equal(part.start, at);
                assert_in_range(part.count, count / parts, (count + parts - 1) / parts);
                at += part.count;
            }
            assert_int_equal(at, count);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_neighbours_are_mutual),
        cmocka_unit_test(test_exchange_reaches_all),
        cmocka_unit_test(test_reduction_combines_each_once),
        cmocka_unit_test(test_spread_reaches_each_once),
        cmocka_unit_test(test_arrivals_are_a_barrier_of_a_ring_and_of_a_line),
        cmocka_unit_test(test_dissemination_is_a_barrier),
        cmocka_unit_test(test_dissemination_gathers_all_blocks),
        cmocka_unit_test(test_halving_combines_each_once),
        cmocka_unit_test(test_tree_reaches_each_once),
        cmocka_unit_test(test_parts_cover_all),
        cmocka_unit_test(test_circulation_reaches_all_each_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
