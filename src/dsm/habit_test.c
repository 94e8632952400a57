/* SPDX-License-Identifier: BSD-3-Clause */
/* A page is noticed again and again, and used by the program or not; counted is what that costs: faults of a program
 * that uses it, and updates of a copy that nobody uses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dsm/habit.h"

#define NOTICES 1000

/* One page on one PE. */
struct page {
    struct quoit_dsm_habit habit;
    bool is_open, is_updated; /* in this acquire */
    int faults, updates;
    uint32_t acquire;
};

static void use(struct page *page)
{
    page->faults += !page->is_open;
    page->is_open = true;
}

static void notice(struct page *page)
{
    if (!page->is_open) {
        quoit_dsm_habit_absent(&page->habit, page->acquire);
    } else if (quoit_dsm_habit_updates(&page->habit, true)) {
        quoit_dsm_habit_updated(&page->habit);
        page->is_updated = true;
        page->updates++;
    } else {
        quoit_dsm_habit_dropped(&page->habit, true, page->acquire);
        page->is_open = false;
    }
}

/* The notices of one acquire. */
static void acquire(struct page *page, int notices)
{
    page->acquire++;
    page->is_updated = false;
    for (int i = 0; i < notices && !page->is_updated; i++)
        notice(page);
}

static void test_used_always(void **state)
{
    (void)state;
    struct page page = {0};
    for (int i = 0; i < NOTICES; i++) {
        use(&page);
        acquire(&page, 1);
    }
    assert_int_equal(page.updates + page.faults, NOTICES + page.is_open);
    assert_true(page.faults <= 7 + NOTICES / QUOIT_DSM_HABIT_MOST);
}

/* Two writers: the second notice finds the page dropped already. */
static void test_noticed_twice(void **state)
{
    (void)state;
    struct page page = {0};
    for (int i = 0; i < NOTICES; i++) {
        use(&page);
        acquire(&page, 2);
    }
    assert_true(page.faults <= 7 + NOTICES / QUOIT_DSM_HABIT_MOST);
}

static void test_never_used_again(void **state)
{
    (void)state;
    struct page page = {0};
    use(&page);
    for (int i = 0; i < NOTICES; i++)
        acquire(&page, 1);
    assert_int_equal(page.updates, 0);
    for (int i = 0; i < NOTICES; i++) { /* trusted as far as possible */
        use(&page);
        acquire(&page, 1);
    }
    page.updates = 0;
    for (int i = 0; i < NOTICES; i++)
        acquire(&page, 1);
    assert_true(page.updates <= QUOIT_DSM_HABIT_MOST);
    assert_false(page.is_open);
}

/* Uses that are seldom are faults, as they would be without updates. */
static void test_used_now_and_then(void **state)
{
    (void)state;
    struct page page = {0};
    for (int i = 0; i < NOTICES; i++) {
        if (i % 3 == 0)
            use(&page);
        acquire(&page, 1);
    }
    assert_int_equal(page.updates, 0);
    assert_int_equal(page.faults, (NOTICES + 2) / 3);
}

/* Pages that come with others say nothing of their use: none is updated for it. */
static void test_unknown_use(void **state)
{
    (void)state;
    struct quoit_dsm_habit habit = {0};
    for (uint32_t i = 1; i < NOTICES; i++) {
        assert_false(quoit_dsm_habit_updates(&habit, false));
        quoit_dsm_habit_dropped(&habit, false, i);
    }
    assert_int_equal(habit.updates, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_used_always), cmocka_unit_test(test_noticed_twice),
                                       cmocka_unit_test(test_never_used_again),
                                       cmocka_unit_test(test_used_now_and_then), cmocka_unit_test(test_unknown_use)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
