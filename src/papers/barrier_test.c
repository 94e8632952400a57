/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: no host leaves the papers' barrier before all have entered, every host leaves it, and no signal is rung while
 * the same one is still set, where it would be lost.
 * Method: rings of 2 to 9 hosts, each with the two bits of its left port; each step moves a random host, or lets it
 * enter. QUOIT_SEED replays a failure. */
#include "papers/barrier.h"
#include "base/prng.h"
#include "ring/route.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define HOSTS_MAX     9
#define BARRIER_COUNT 50

struct host {
    struct quoit_papers_barrier barrier;
    uint32_t signals;
    uint32_t come_count;
    uint32_t left_count;
};

static uint32_t least_come(const struct host *hosts, uint32_t host_count)
{
    uint32_t least = hosts[0].come_count;
    for (uint32_t i = 1; i < host_count; i++)
        if (hosts[i].come_count < least)
            least = hosts[i].come_count;
    return least;
}

/* True if the host made a move. */
static bool act(struct host *hosts, uint32_t host_count, uint32_t index)
{
    struct host *host = &hosts[index], *right = &hosts[quoit_ring_neighbour(host_count, QUOIT_RIGHT, index)];
    enum quoit_papers_barrier_state before = host->barrier.state;
    struct quoit_papers_barrier_move move =
        quoit_papers_barrier_step(&host->barrier, host->come_count > host->left_count, host->signals);
    if (!move.is_move) {
        assert_int_equal(host->barrier.state, before);
        return false;
    }
    assert_true(quoit_papers_barrier_may_move(before, host->barrier.state));
    assert_int_equal(move.taken & host->signals, move.taken);
    host->signals &= ~move.taken;
    assert_int_equal(right->signals & move.sent, 0);
    right->signals |= move.sent;
    if (move.is_released) {
        host->left_count++;
        assert_true(least_come(hosts, host_count) >= host->left_count);
    }
    return true;
}

static void run_ring(struct quoit_prng *prng, uint32_t host_count)
{
    struct host hosts[HOSTS_MAX] = {0};
    for (uint32_t i = 0; i < host_count; i++)
        hosts[i].barrier = (struct quoit_papers_barrier){.host = i, .host_count = host_count};
    uint32_t idle_count = 0;
    while (idle_count < 1000) { /* that many picks without a move: none is possible any more */
        uint32_t index = (uint32_t)quoit_prng_choose(prng, host_count);
        struct host *host = &hosts[index];
        bool may_come = host->come_count == host->left_count && host->come_count < BARRIER_COUNT;
        if (may_come && quoit_prng_choose(prng, 4) == 0) {
            host->come_count++;
            idle_count = 0;
        }
        idle_count = act(hosts, host_count, index) ? 0 : idle_count + 1;
    }
    for (uint32_t i = 0; i < host_count; i++) {
        assert_int_equal(hosts[i].left_count, BARRIER_COUNT);
        assert_int_equal(hosts[i].signals, 0);
        assert_int_equal(hosts[i].barrier.state, QUOIT_BARRIER_IDLE);
    }
}

static void test_rings(void **state)
{
    (void)state;
    const char *seed = getenv("QUOIT_SEED");
    struct quoit_prng prng = {.state = seed ? strtoull(seed, NULL, 10) : 1};
    print_message("QUOIT_SEED=%llu\n", (unsigned long long)prng.state);
    for (uint32_t host_count = 2; host_count <= HOSTS_MAX; host_count++)
        run_ring(&prng, host_count);
}

static void test_moves(void **state)
{
    (void)state;
    static const int allowed[QUOIT_BARRIER_STATE_COUNT][QUOIT_BARRIER_STATE_COUNT] = {{0, 1, 0}, {1, 0, 1}, {1, 0, 0}};
    for (int from = 0; from < QUOIT_BARRIER_STATE_COUNT; from++)
        for (int to = 0; to < QUOIT_BARRIER_STATE_COUNT; to++)
            assert_int_equal(quoit_papers_barrier_may_move(from, to), allowed[from][to]);
}

static void test_one_missing_host_keeps_all(void **state)
{
    (void)state;
    struct host hosts[4] = {0};
    for (uint32_t i = 0; i < 4; i++) {
        hosts[i].barrier = (struct quoit_papers_barrier){.host = i, .host_count = 4};
        hosts[i].come_count = i == 2 ? 0 : 1;
    }
    for (int round = 0; round < 10; round++)
        for (uint32_t i = 0; i < 4; i++)
            act(hosts, 4, i);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(hosts[i].left_count, 0);
    assert_int_equal(hosts[2].signals, QUOIT_BARRIER_START);
    hosts[2].come_count = 1;
    for (int round = 0; round < 10; round++)
        for (uint32_t i = 0; i < 4; i++)
            act(hosts, 4, i);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(hosts[i].left_count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rings),
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_one_missing_host_keeps_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
