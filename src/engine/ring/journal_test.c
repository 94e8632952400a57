/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a journal returns exactly the puts that were sent and are not known to have arrived, in order and unchanged.
 * Method: random puts, arrivals and losses compared with a list in the test; entries that are filled late block those
 * behind them. */
#include "engine/ring/journal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"

#define PUTS 20000u

static void fill(struct quoit_journal_entry *entry, uint64_t sequence)
{
    entry->offset = sequence * 8;
    entry->local = (uint16_t)(sequence % 7);
    memset(entry->data, (int)(sequence * 31 % 251), entry->bytes);
    entry->sequence = sequence;
}

static void check(struct quoit_journal *journal, uint64_t arrived, uint64_t posted)
{
    const struct quoit_journal_entry *entry = NULL;
    for (uint64_t sequence = arrived + 1; sequence <= posted; sequence++) {
        entry = quoit_journal_next(journal, entry, arrived);
        assert_non_null(entry);
        assert_int_equal(entry->sequence, sequence);
        assert_int_equal(entry->offset, sequence * 8);
        assert_int_equal(entry->local, sequence % 7);
        for (uint32_t i = 0; i < entry->bytes; i++)
            assert_int_equal((unsigned char)entry->data[i], sequence * 31 % 251);
    }
    assert_null(quoit_journal_next(journal, entry, arrived));
}

static void test_random_puts(void **state)
{
    (void)state;
    struct quoit_journal *journal = calloc(1, sizeof *journal);
    struct quoit_prng prng = {.state = 1};
    uint64_t posted = 0, known = 0;
    uint32_t full_count = 0;
    while (posted < PUTS) {
        uint32_t bytes =
            1 + (uint32_t)quoit_prng_choose(&prng, quoit_prng_choose(&prng, 4) ? 64 : QUOIT_JOURNAL_PUT_MAX);
        struct quoit_journal_entry *entry = quoit_journal_reserve(journal, bytes, known);
        if (entry) {
            fill(entry, ++posted);
        } else { /* full: some have arrived */
            full_count++;
            check(journal, known, posted);
            known += 1 + quoit_prng_choose(&prng, posted - known);
        }
        if (quoit_prng_choose(&prng, 500) == 0)
            check(journal, known + quoit_prng_choose(&prng, posted - known + 1), posted);
    }
    assert_true(full_count > 10);
    free(journal);
}

static void test_what_is_not_sent_is_kept(void **state)
{
    (void)state;
    struct quoit_journal *journal = calloc(1, sizeof *journal);
    struct quoit_journal_entry *late = quoit_journal_reserve(journal, 100, 0);
    uint64_t posted = 0;
    for (struct quoit_journal_entry *entry; (entry = quoit_journal_reserve(journal, 1000, posted));)
        fill(entry, ++posted);
    assert_true(posted > 50);
    check(journal, 0, posted); /* all have arrived, but they are behind the late one */
    fill(late, ++posted);
    assert_ptr_equal(quoit_journal_next(journal, NULL, posted - 1), late);
    assert_non_null(quoit_journal_reserve(journal, 4000, posted));
    free(journal);
}

/* A read-back of what has arrived costs a read through the link, so nobody looks before there is no room. */
static void test_nothing_is_let_go_before_it_must(void **state)
{
    (void)state;
    struct quoit_journal *journal = calloc(1, sizeof *journal);
    uint32_t bytes = 1024 - (uint32_t)sizeof(struct quoit_journal_entry);
    uint64_t posted = 0;
    while (posted < QUOIT_JOURNAL_BYTES / 1024) {
        fill(quoit_journal_reserve(journal, bytes, posted), posted + 1);
        posted++;
    }
    check(journal, 0, posted); /* exactly full: all of them are still there */
    assert_int_equal(journal->head, 0);
    assert_null(quoit_journal_reserve(journal, bytes, 0));
    fill(quoit_journal_reserve(journal, bytes, 1), posted + 1);
    check(journal, 1, posted + 1);
    free(journal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_puts),
        cmocka_unit_test(test_what_is_not_sent_is_kept),
        cmocka_unit_test(test_nothing_is_let_go_before_it_must),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
