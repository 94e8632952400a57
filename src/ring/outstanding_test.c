/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: no entry is lost or handed out twice, and a token names one use of one entry.
 * Method: entries taken and completed by hand, through more uses than a token counts. */
#include "ring/outstanding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define ENTRY_COUNT 3u

static struct quoit_ring_entry entries[ENTRY_COUNT];

static uint32_t take(struct quoit_ring_pool *pool, uint64_t cookie)
{
    struct quoit_frame frame = {.kind = QUOIT_FRAME_PUT, .offset = cookie * 8};
    return quoit_ring_pool_take(pool, &frame, cookie);
}

static void the_pool_is_bounded_and_gives_each_entry_once(void **state)
{
    (void)state;
    struct quoit_ring_pool pool;
    struct quoit_ring_list under_way;
    uint64_t cookie = 0;
    bool is_taken[ENTRY_COUNT] = {false};
    quoit_ring_pool_init(&pool, entries, ENTRY_COUNT);
    quoit_ring_list_init(&under_way);
    for (uint32_t i = 0; i < ENTRY_COUNT; i++) {
        uint32_t index = take(&pool, i + 10);
        assert_false(is_taken[index]);
        is_taken[index] = true;
        assert_int_equal(entries[index].frame.offset, (i + 10) * 8);
        quoit_ring_list_append(&pool, &under_way, index);
        quoit_ring_check_pool(&pool, quoit_ring_check_list(&pool, &under_way));
    }
    assert_int_equal(pool.free.count, 0);
    assert_false(quoit_ring_pool_next_completed(&pool, &cookie));
    while (under_way.count > 0)
        quoit_ring_list_append(&pool, &pool.completed, quoit_ring_list_pop(&pool, &under_way));
    for (uint32_t i = 0; i < ENTRY_COUNT; i++) {
        assert_int_equal(pool.free.count, i);
        assert_true(quoit_ring_pool_next_completed(&pool, &cookie));
        assert_int_equal(cookie, i + 10);
        quoit_ring_check_pool(&pool, 0);
    }
    assert_false(quoit_ring_pool_next_completed(&pool, &cookie));
}

static void a_token_is_of_one_use(void **state)
{
    (void)state;
    struct quoit_ring_pool pool;
    uint64_t cookie;
    quoit_ring_pool_init(&pool, entries, 1);
    uint32_t before = 0;
    for (int i = 0; i < 70000; i++) { /* a use count wraps at 65536 */
        assert_int_equal(quoit_ring_pool_find(&pool, before), QUOIT_RING_NONE);
        uint32_t token = entries[take(&pool, 1)].frame.token;
        assert_true(token != before);
        assert_int_equal(quoit_ring_pool_find(&pool, token), 0);
        assert_int_equal(quoit_ring_pool_find(&pool, before), QUOIT_RING_NONE);
        assert_int_equal(quoit_ring_pool_find(&pool, token + 1), QUOIT_RING_NONE);
        quoit_ring_list_append(&pool, &pool.completed, 0);
        assert_true(quoit_ring_pool_next_completed(&pool, &cookie));
        before = token;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pool_is_bounded_and_gives_each_entry_once),
        cmocka_unit_test(a_token_is_of_one_use),
    };
    return cmocka_run_group_tests_name("ring.outstanding", tests, NULL, NULL);
}
