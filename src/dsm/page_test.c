/* SPDX-License-Identifier: BSD-3-Clause */
/* Every move of the page table is checked against the requirements of the protocol, not against a second table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dsm/page.h"

#define HAS(move, effect) (((move).effects & QUOIT_DSM_DO_##effect) != 0)

/* DIRTY needs a detector that sees writes, but for a page that leaves exclusive mode during a release; that mode and
 * its events are the home's. */
static bool can_be(enum quoit_dsm_state state, enum quoit_dsm_event event, bool is_home, bool sees_writes)
{
    bool is_of_home = state == QUOIT_DSM_EXCLUSIVE || event == QUOIT_DSM_ALONE || event == QUOIT_DSM_SHARE;
    bool may_be_dirty = sees_writes || (is_home && (event == QUOIT_DSM_RELEASE || event == QUOIT_DSM_SHARE));
    return (state != QUOIT_DSM_DIRTY || may_be_dirty) && (is_home || !is_of_home) &&
           (event != QUOIT_DSM_ALONE || state == QUOIT_DSM_INVALID);
}

static void each(void (*check)(enum quoit_dsm_state state, enum quoit_dsm_event event, bool is_home, bool sees_writes))
{
    for (int state = 0; state < QUOIT_DSM_STATE_COUNT; state++) {
        for (int event = 0; event < QUOIT_DSM_EVENT_COUNT; event++) {
            for (int flags = 0; flags < 4; flags++) {
                if (can_be(state, event, flags & 2, flags & 1))
                    check(state, event, flags & 2, flags & 1);
            }
        }
    }
}

static void check_access(enum quoit_dsm_state state, enum quoit_dsm_event event, bool is_home, bool sees_writes)
{
    struct quoit_dsm_move move = quoit_dsm_page_move(state, event, is_home, sees_writes);
    bool is_exclusive = state == QUOIT_DSM_EXCLUSIVE || event == QUOIT_DSM_ALONE;
    bool is_access = event == QUOIT_DSM_READ || event == QUOIT_DSM_WRITE || event == QUOIT_DSM_ALONE;
    assert_int_equal(HAS(move, OPEN_READ) + HAS(move, OPEN_WRITE), is_access);
    if (is_access)
        assert_int_not_equal(move.next, QUOIT_DSM_INVALID);
    assert_int_equal(HAS(move, FETCH), is_access && state == QUOIT_DSM_INVALID && !is_home);
    if (is_access && is_exclusive)
        assert_true(HAS(move, OPEN_WRITE) && move.next == QUOIT_DSM_EXCLUSIVE);
    else if (event == QUOIT_DSM_WRITE && sees_writes)
        assert_int_equal(move.next, QUOIT_DSM_DIRTY);
    if (!sees_writes)
        assert_int_equal(HAS(move, OPEN_WRITE), is_access && is_exclusive);
}

/* A page that may be written has a twin to compare with, and its writes are told of before they are given up. */
static void check_writes(enum quoit_dsm_state state, enum quoit_dsm_event event, bool is_home, bool sees_writes)
{
    struct quoit_dsm_move move = quoit_dsm_page_move(state, event, is_home, sees_writes);
    bool becomes_writable = HAS(move, OPEN_WRITE) || (HAS(move, OPEN_READ) && !sees_writes);
    if (becomes_writable && !is_home && (state == QUOIT_DSM_INVALID || (sees_writes && state == QUOIT_DSM_CLEAN)))
        assert_true(HAS(move, TWIN));
    if (is_home)
        assert_false(HAS(move, TWIN) || HAS(move, DIFF) || HAS(move, FETCH));
    bool may_be_written = state == QUOIT_DSM_DIRTY || (state == QUOIT_DSM_CLEAN && !sees_writes);
    bool is_end = event == QUOIT_DSM_RELEASE || event == QUOIT_DSM_DROP || (event == QUOIT_DSM_NOTICE && !is_home);
    if (may_be_written && is_end)
        assert_true(HAS(move, DIFF) || HAS(move, LOG));
}

/* Writes that went undetected are logged once another PE may have a copy. */
static void check_exclusive(enum quoit_dsm_state state, enum quoit_dsm_event event, bool is_home, bool sees_writes)
{
    struct quoit_dsm_move move = quoit_dsm_page_move(state, event, is_home, sees_writes);
    if (event == QUOIT_DSM_SHARE && state == QUOIT_DSM_EXCLUSIVE)
        assert_true(move.next == QUOIT_DSM_DIRTY &&
                    HAS(quoit_dsm_page_move(move.next, QUOIT_DSM_RELEASE, is_home, sees_writes), LOG));
    if (event == QUOIT_DSM_SHARE && state != QUOIT_DSM_EXCLUSIVE)
        assert_true(move.next == state && move.effects == 0);
    if (state == QUOIT_DSM_EXCLUSIVE && event == QUOIT_DSM_RELEASE)
        assert_true(move.next == state && move.effects == 0);
}

static void check_notices(enum quoit_dsm_state state, enum quoit_dsm_event event, bool is_home, bool sees_writes)
{
    struct quoit_dsm_move move = quoit_dsm_page_move(state, event, is_home, sees_writes);
    bool is_notice = event == QUOIT_DSM_NOTICE || event == QUOIT_DSM_RENEW;
    assert_int_equal(HAS(move, NEED), is_notice && !is_home);
    assert_int_equal(HAS(move, AWAIT), is_notice && is_home);
    assert_int_equal(HAS(move, UPDATE), event == QUOIT_DSM_RENEW && !is_home && state != QUOIT_DSM_INVALID);
    if (event == QUOIT_DSM_RENEW)
        assert_int_equal(move.next, state);
    assert_int_equal(HAS(move, CLOSE), state != QUOIT_DSM_INVALID && move.next == QUOIT_DSM_INVALID);
    if (event == QUOIT_DSM_NOTICE)
        assert_int_equal(move.next, is_home ? state : QUOIT_DSM_INVALID);
    if (event == QUOIT_DSM_RELEASE)
        assert_int_not_equal(move.next, QUOIT_DSM_DIRTY);
}

static void test_accesses(void **state)
{
    (void)state;
    each(check_access);
}

static void test_writes(void **state)
{
    (void)state;
    each(check_writes);
}

static void test_exclusive(void **state)
{
    (void)state;
    each(check_exclusive);
}

static void test_notices(void **state)
{
    (void)state;
    each(check_notices);
    assert_string_equal(quoit_dsm_state_name(QUOIT_DSM_DIRTY), "dirty");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_accesses), cmocka_unit_test(test_writes),
                                       cmocka_unit_test(test_exclusive), cmocka_unit_test(test_notices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
