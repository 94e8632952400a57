/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: no wake is lost although the waker runs no barrier. Method: two processes pass a counter back and forth with
 * plain release stores and sleep for every turn; a lost wake stops the game, and the wait's time limit reports it. */
#include "env/clock.h"
#include "env/park.h"
#include "env/wait.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define TURN_COUNT 20000
#define TIMEOUT_NS 20000000000u

struct player {
    struct quoit_park park;
    _Atomic uint64_t turn; /* writer: the other player */
    uint64_t unused[7];
};

struct want {
    struct player *self;
    uint64_t turn;
};

static bool has_turn(void *arg)
{
    struct want *want = arg;
    return atomic_load_explicit(&want->self->turn, memory_order_acquire) >= want->turn;
}

static bool play(struct player *self, struct player *other, struct quoit_wait_policy policy, bool is_first)
{
    struct quoit_waiter waiter = {.park = &self->park, .policy = policy};
    quoit_park_setup();
    for (uint64_t i = 1; i <= TURN_COUNT; i++) {
        struct want want = {self, i};
        if (is_first) {
            atomic_store_explicit(&other->turn, i, memory_order_release);
            quoit_park_wake(&other->park);
        }
        if (!quoit_wait_until(&waiter, has_turn, &want, TIMEOUT_NS))
            return false;
        if (!is_first) {
            atomic_store_explicit(&other->turn, i, memory_order_release);
            quoit_park_wake(&other->park);
        }
    }
    return true;
}

static void ping_pong(struct quoit_wait_policy policy)
{
    struct player *players = mmap(NULL, 2 * sizeof *players, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0)
        _exit(play(&players[1], &players[0], policy, false) ? 0 : 1);
    assert_true(play(&players[0], &players[1], policy, true));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    munmap(players, 2 * sizeof *players);
}

static void test_no_wake_is_lost_when_sleeping_at_once(void **state)
{
    (void)state;
    ping_pong((struct quoit_wait_policy){.spin_count = 0, .awake_ns = 0});
}

static void test_no_wake_is_lost_after_spinning_and_yielding(void **state)
{
    (void)state;
    ping_pong((struct quoit_wait_policy){.spin_count = 3, .awake_ns = 2000});
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static void test_timeout(void **state)
{
    (void)state;
    struct quoit_park park = {0};
    struct quoit_waiter waiter = {.park = &park};
    uint64_t before_ns = quoit_clock_now_ns();
    assert_false(quoit_wait_until(&waiter, never, NULL, 30000000));
    assert_true(quoit_clock_now_ns() - before_ns >= 30000000);
    assert_int_equal(park.sleeper_count, 0);
}

/* Aim: a wake reaches the sleepers that watch its range and no others. Method: one announced sleeper; a wake shows as a
 * new key.
 */
static void test_a_wake_elsewhere_is_none(void **state)
{
    (void)state;
    struct quoit_park park = {0};
    uint32_t key = quoit_park_prepare_at(&park, 100, 200);
    quoit_park_wake_at(&park, 300, 8);
    quoit_park_wake_at(&park, 92, 8);
    quoit_park_wake_at(&park, 200, 8);
    assert_int_equal(park.epoch, key);
    quoit_park_wake_at(&park, 92, 9);
    assert_int_equal(park.epoch, key + 1);
    quoit_park_wake_at(&park, 199, 1);
    quoit_park_wake_at(&park, 0, 1000);
    assert_int_equal(park.epoch, key + 3);
    quoit_park_wake(&park);
    assert_int_equal(park.epoch, key + 4);
    quoit_park_cancel(&park);
    quoit_park_wake_at(&park, 150, 8); /* nobody sleeps */
    assert_int_equal(park.epoch, key + 4);
}

/* Aim: each of several sleepers is woken for its range, also when the first has left, and the next sleeper for its own
 * range only. Method: as above. */
static void test_sleepers_watch_their_parts(void **state)
{
    (void)state;
    struct quoit_park park = {0};
    uint32_t key = quoit_park_prepare_at(&park, 100, 200);
    assert_int_equal(quoit_park_prepare_at(&park, 400, 500), key);
    quoit_park_wake_at(&park, 500, 8);
    quoit_park_wake_at(&park, 92, 8);
    assert_int_equal(park.epoch, key);
    quoit_park_wake_at(&park, 100, 8);
    quoit_park_wake_at(&park, 492, 8);
    assert_int_equal(park.epoch, key + 2);
    quoit_park_cancel(&park);
    quoit_park_wake_at(&park, 100, 8);
    quoit_park_wake_at(&park, 492, 8);
    assert_int_equal(park.epoch, key + 4);
    quoit_park_cancel(&park);
    quoit_park_prepare_at(&park, 300, 308);
    quoit_park_wake_at(&park, 100, 8);
    quoit_park_wake_at(&park, 492, 8);
    assert_int_equal(park.epoch, key + 4);
    quoit_park_wake_at(&park, 300, 8);
    assert_int_equal(park.epoch, key + 5);
    quoit_park_cancel(&park);
}

/* Aim: a thread that shares its processor lets others run before it looks again. */
static void test_policy_knows_who_shares(void **state)
{
    (void)state;
    assert_true(quoit_wait_policy_for(2, 2).spin_count > 0);
    assert_true(quoit_wait_policy_for(1, 64).spin_count > 0);
    assert_int_equal(quoit_wait_policy_for(3, 2).spin_count, 0);
    assert_int_equal(quoit_wait_policy_for(2, 1).spin_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policy_knows_who_shares),
        cmocka_unit_test(test_a_wake_elsewhere_is_none),
        cmocka_unit_test(test_sleepers_watch_their_parts),
        cmocka_unit_test(test_no_wake_is_lost_when_sleeping_at_once),
        cmocka_unit_test(test_no_wake_is_lost_after_spinning_and_yielding),
        cmocka_unit_test(test_timeout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
