/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: the number of records at or below a word, for tables of every small size, with equal words too. Method: a count
 * of all records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bisect.h"

#define COUNT_MAX 20

static void test_all(void **state)
{
    struct {
        uint64_t start;
        uint32_t more[3];
    } records[COUNT_MAX];
    (void)state;
    for (size_t i = 0; i < COUNT_MAX; i++)
        records[i].start = UINT64_MAX - 100 + i / 3 * 5;
    for (size_t count = 0; count <= COUNT_MAX; count++) {
        for (uint64_t word = UINT64_MAX - 101; word > 100; word++) {
            size_t below = 0;
            for (size_t i = 0; i < count; i++)
                below += records[i].start <= word;
            assert_int_equal(quoit_bisect(records, count, sizeof records[0], word), below);
        }
        assert_int_equal(quoit_bisect(records, count, sizeof records[0], 0), 0);
        assert_int_equal(quoit_bisect(records, count, sizeof records[0], UINT64_MAX), count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
