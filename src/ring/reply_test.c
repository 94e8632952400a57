/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: replies leave each side in order, and both sides together never hold more than the bound.
 * Method: random appends and pops against arrays. Seed: QUOIT_SEED (default 1). */
#include "ring/reply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/prng.h"

#define ENTRY_COUNT 4u

static void sides_are_queues_that_share_the_bound(void **state)
{
    (void)state;
    const char *text = getenv("QUOIT_SEED");
    struct quoit_prng prng = {text ? strtoull(text, NULL, 0) : 1};
    print_message("seed %llu\n", (unsigned long long)prng.state);
    struct quoit_ring_reply_entry entries[ENTRY_COUNT];
    struct quoit_ring_replies replies;
    uint64_t appended[QUOIT_SIDE_COUNT] = {0}, popped[QUOIT_SIDE_COUNT] = {0};
    unsigned full_count = 0;
    quoit_ring_replies_init(&replies, entries, ENTRY_COUNT);
    for (int i = 0; i < 20000; i++) {
        enum quoit_side side = (enum quoit_side)quoit_prng_choose(&prng, QUOIT_SIDE_COUNT);
        uint64_t waiting = appended[0] - popped[0] + appended[1] - popped[1];
        quoit_ring_check_replies(&replies);
        assert_int_equal(quoit_ring_replies_has_room(&replies), waiting < ENTRY_COUNT);
        assert_int_equal(replies.waiting[side].count, appended[side] - popped[side]);
        full_count += waiting == ENTRY_COUNT;
        struct quoit_frame frame = {.kind = QUOIT_FRAME_VALUE};
        if (quoit_prng_choose(&prng, 2)) {
            frame.trace = appended[side] + 1;
            if (waiting < ENTRY_COUNT) {
                quoit_ring_replies_append(&replies, side, &frame);
                appended[side]++;
            }
        } else if (appended[side] > popped[side]) {
            quoit_ring_replies_pop(&replies, side, &frame);
            assert_int_equal(frame.trace, ++popped[side]);
        }
    }
    assert_true(full_count > 100);
    quoit_ring_replies_clear(&replies);
    quoit_ring_check_replies(&replies);
    assert_int_equal(replies.free_count, ENTRY_COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sides_are_queues_that_share_the_bound)};
    return cmocka_run_group_tests_name("ring.reply", tests, NULL, NULL);
}
