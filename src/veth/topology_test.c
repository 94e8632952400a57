/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: what topology.h promises of the links' words: hosts agree on what the ends of a link see, in whatever order
 * tables come, after hosts restarted, and after a neighbour sent any words. Method: tables of a whole ring, merged at
 * random; the seed is printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>

#include "base/prng.h"
#include "env/clock.h"
#include "veth/topology.h"

#define HOSTS  5u
#define ROUNDS 20u /* of tables to the next hosts: enough for all to agree */

static void make_ring(struct quoit_veth_topology hosts[HOSTS])
{
    for (uint32_t host = 0; host < HOSTS; host++)
        hosts[host] = (struct quoit_veth_topology){.host = host, .host_count = HOSTS};
}

static uint32_t word_of(const struct quoit_veth_topology *host, uint32_t link)
{
    return atomic_load(&host->links[link]);
}

/* As a device does with a table that has come. */
static void update(struct quoit_veth_topology *host, const struct quoit_veth_topology *from, const bool up[HOSTS])
{
    for (uint32_t link = 0; link < HOSTS; link++)
        quoit_veth_merge(host, link, word_of(from, link));
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        quoit_veth_see(host, quoit_veth_link(host, side), up[quoit_veth_link(host, side)]);
}

/* Tables go over links that are up, and then all hosts of a whole ring know all links. */
static void assert_agreement(struct quoit_veth_topology hosts[HOSTS], const bool up[HOSTS])
{
    for (uint32_t round = 0; round < ROUNDS; round++)
        for (uint32_t host = 0; host < HOSTS; host++) {
            if (up[host])
                update(&hosts[host], &hosts[(host + 1) % HOSTS], up);
            if (up[host])
                update(&hosts[(host + 1) % HOSTS], &hosts[host], up);
        }
    for (uint32_t host = 0; host < HOSTS; host++)
        for (uint32_t link = 0; link < HOSTS; link++) {
            assert_int_equal(word_of(&hosts[host], link), word_of(&hosts[0], link));
            assert_int_equal(word_of(&hosts[host], link) & 1, up[link]);
        }
}

/* Whatever word a host has of a link, its ends are believed. */
static void assert_overridden(uint32_t word)
{
    for (uint32_t is_up = 0; is_up < 2; is_up++) {
        struct quoit_veth_topology hosts[HOSTS];
        bool up[HOSTS] = {true, true, true, true, true};
        make_ring(hosts);
        assert_agreement(hosts, up);
        up[1] = is_up;
        quoit_veth_merge(&hosts[4], 1, word);
        assert_agreement(hosts, up);
        make_ring(hosts);
        quoit_veth_merge(&hosts[4], 1, word); /* the first word that it hears of */
        assert_agreement(hosts, up);
    }
}

/* None a few steps beyond the opposite of the words in use: of three around the circle none is the newest. */
static void ends_of_a_link_are_believed(void **state)
{
    const uint32_t words[] = {0,          1,          2,          3,          4,          5,          0x7ffffffe,
                              0x7fffffff, 0x80000000, 0x80000001, 0xfffffffc, 0xfffffffd, 0xfffffffe, 0xffffffff};
    const char *text = getenv("QUOIT_SEED");
    struct quoit_prng chance = {.state = text ? strtoull(text, NULL, 0) : quoit_clock_now_ns()};
    (void)state;
    printf("replay with QUOIT_SEED=%llu\n", (unsigned long long)chance.state);
    for (uint32_t i = 0; i < sizeof words / sizeof words[0]; i++)
        assert_overridden(words[i]);
    for (uint32_t i = 0; i < 1000; i++)
        assert_overridden((uint32_t)quoit_prng_next(&chance));
}

/* A version goes round, and the link is known at every step. */
static void versions_go_round(void **state)
{
    struct quoit_veth_topology hosts[HOSTS];
    bool up[HOSTS] = {true, true, true, true, true};
    (void)state;
    make_ring(hosts);
    for (uint32_t host = 0; host < HOSTS; host++)
        quoit_veth_merge(&hosts[host], 1, 0xfffffff1);
    for (uint32_t turn = 0; turn < 40; turn++) {
        up[1] = turn % 2;
        assert_agreement(hosts, up);
    }
    assert_in_range(word_of(&hosts[0], 1), 1, 100);
}

/* Hosts that restarted know nothing, those at both ends of a link too; older words come late. */
static void hosts_restart(void **state)
{
    struct quoit_veth_topology hosts[HOSTS], old;
    bool up[HOSTS] = {true, true, true, true, true};
    (void)state;
    make_ring(hosts);
    assert_agreement(hosts, up);
    old = hosts[0];
    for (uint32_t turn = 0; turn < 10; turn++) {
        up[2] = turn % 2;
        assert_agreement(hosts, up);
        for (uint32_t host = 2; host < 4; host++)
            hosts[host] = (struct quoit_veth_topology){.host = host, .host_count = HOSTS};
        assert_agreement(hosts, up);
        update(&hosts[turn % HOSTS], &old, up);
        assert_agreement(hosts, up);
    }
}

static void words_of_one_order(void **state)
{
    struct quoit_veth_topology topology = {.host = 0, .host_count = HOSTS};
    (void)state;
    assert_false(quoit_veth_merge(&topology, 3, 0));
    assert_true(quoit_veth_merge(&topology, 3, 4));
    assert_false(quoit_veth_merge(&topology, 3, 4));
    assert_false(quoit_veth_merge(&topology, 3, 3));
    assert_false(quoit_veth_merge(&topology, 3, 0));
    assert_true(quoit_veth_merge(&topology, 3, 5)); /* of one version: up */
    assert_false(quoit_veth_merge(&topology, 3, 4));
    assert_false(quoit_veth_merge(&topology, 3, 0xffffffff)); /* before the turn of the circle */
    assert_int_equal(word_of(&topology, 3), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_of_a_link_are_believed),
        cmocka_unit_test(versions_go_round),
        cmocka_unit_test(hosts_restart),
        cmocka_unit_test(words_of_one_order),
    };
    return cmocka_run_group_tests_name("veth.topology", tests, NULL, NULL);
}
