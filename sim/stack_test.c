/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: stacks are switched in any order, also from a higher to a lower address, in a program built with
 * _FORTIFY_SOURCE, which stops longjmp() there. Method: built with it, including the file under test; three stacks and
 * the program's own pass a number around in random order; local variables of each must survive. */
#include "sim/stack.c"
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

#define STACK_COUNT 4 /* 0: the program's own */
#define STACK_BYTES 16384
#define HANDS       20000

#if !defined(_FORTIFY_SOURCE) && !defined(SIM_STACK_UCONTEXT)
#error "this test says nothing without _FORTIFY_SOURCE"
#endif

struct ring {
    struct sim_stack stacks[STACK_COUNT];
    _Alignas(16) char memory[STACK_COUNT][STACK_BYTES];
    uint32_t running;
    uint32_t visits[STACK_COUNT];
    uint32_t hand_count;
    bool is_wrong;
    struct quoit_prng prng;
};

static struct ring ring; /* a stack begins without an argument */

static void hand_on(void)
{
    uint32_t from = ring.running;
    ring.running = ring.hand_count == HANDS ? 0 : (from + 1 + (uint32_t)quoit_prng_choose(&ring.prng, 3)) % STACK_COUNT;
    ring.hand_count++;
    sim_stack_switch(&ring.stacks[from], &ring.stacks[ring.running]);
}

static void hand_round(void)
{
    uint32_t self = ring.running;
    double halves = 0.5 * self;
    for (uint32_t visit = 0;; visit++) {
        uint32_t deep[16];
        for (uint32_t i = 0; i < 16; i++)
            deep[i] = self * 1000 + visit + i;
        ring.visits[self]++;
        hand_on();
        for (uint32_t i = 0; i < 16; i++)
            ring.is_wrong |= deep[i] != self * 1000 + visit + i;
        ring.is_wrong |= ring.running != self || halves != 0.5 * self || ring.visits[self] != visit + 1;
    }
}

static void test_hands_round(void **state)
{
    (void)state;
    ring.prng.state = 7;
    for (uint32_t i = 1; i < STACK_COUNT; i++)
        sim_stack_init(&ring.stacks[i], ring.memory[i], STACK_BYTES, hand_round);
    while (ring.hand_count <= HANDS) {
        ring.visits[0]++;
        hand_on();
        assert_int_equal(ring.running, 0);
    }
    assert_false(ring.is_wrong);
    for (uint32_t i = 0; i < STACK_COUNT; i++)
        assert_in_range(ring.visits[i], HANDS / 8, HANDS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hands_round)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
