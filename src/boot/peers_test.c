/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: all hosts go when each is ready once, in any order and however often one says so, and may leave when each has
 * finalized; of those that have left the one with the fewest collectives is passed on. Method: random orders with
 * repetitions, rounds one after another, beside a set of hosts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "boot/peers.h"

#define HOSTS_MAX 9u
#define ROUNDS    200

static uint64_t chance = 7;

static uint32_t choose(uint32_t n)
{
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(chance >> 33) % n;
}

/* Says it for random hosts until the last of them has, and no sooner. */
static void check_all(struct quoit_peers *peers, bool (*take)(struct quoit_peers *peers, uint32_t host))
{
    bool seen[HOSTS_MAX] = {false};
    for (uint32_t count = 0; count < peers->host_count;) {
        uint32_t host = choose(peers->host_count + 1); /* one is no host */
        bool is_new = host < peers->host_count && !seen[host];
        if (is_new)
            seen[host] = true;
        count += is_new;
        assert_int_equal(take(peers, host), is_new && count == peers->host_count);
    }
}

static void test_rounds(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct quoit_peers peers;
        assert_int_equal(quoit_peers_open(&peers, 1 + choose(HOSTS_MAX)), QUOIT_OK);
        for (int again = 0; again < 3; again++) {
            check_all(&peers, quoit_peers_ready);
            for (uint32_t host = 0; host < peers.host_count; host++)
                assert_false(quoit_peers_has_finalized(&peers, host));
            check_all(&peers, quoit_peers_finalized);
            for (uint32_t host = 0; host <= peers.host_count; host++)
                assert_int_equal(quoit_peers_has_finalized(&peers, host), host < peers.host_count);
        }
        quoit_peers_close(&peers);
    }
}

static void test_left(void **state)
{
    (void)state;
    struct quoit_peers peers;
    assert_int_equal(quoit_peers_open(&peers, 2), QUOIT_OK);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t fewest = UINT64_MAX;
        for (int i = 0; i < 20; i++) {
            const struct quoit_control_left left = {.meeting_count = choose(50), .pe = choose(9)};
            bool is_fewest = left.meeting_count < fewest;
            assert_int_equal(quoit_peers_left(&peers, &left), is_fewest);
            fewest = is_fewest ? left.meeting_count : fewest;
        }
        assert_false(quoit_peers_ready(&peers, 1));
        assert_true(quoit_peers_ready(&peers, 0)); /* and all begins anew */
    }
    quoit_peers_close(&peers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rounds), cmocka_unit_test(test_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
