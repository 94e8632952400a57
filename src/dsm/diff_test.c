/* SPDX-License-Identifier: BSD-3-Clause */
/* Random pages and twins: masks compared with a byte-by-byte comparison, runs with masks, and a home of which only the
 * differing bytes may change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "dsm/diff.h"

#define BYTES  4096
#define ROUNDS 400

static char page[BYTES], twin[BYTES], home[BYTES], home_before[BYTES];

static void make(struct quoit_prng *prng)
{
    for (size_t i = 0; i < BYTES; i++) {
        twin[i] = page[i] = (char)quoit_prng_next(prng);
        home[i] = home_before[i] = (char)quoit_prng_next(prng);
    }
    for (uint64_t run = quoit_prng_choose(prng, 30); run > 0; run--) {
        size_t at = quoit_prng_choose(prng, BYTES), bytes = quoit_prng_choose(prng, 200);
        for (size_t i = at; i < at + bytes && i < BYTES; i++)
            page[i] = (char)quoit_prng_next(prng);
    }
    if (quoit_prng_choose(prng, 10) == 0) {
        for (size_t i = 0; i < BYTES; i++)
            page[i] = (char)(twin[i] + (i % (1 + quoit_prng_choose(prng, 2)) == 0));
    }
}

static bool is_set(const uint64_t *masks, size_t i)
{
    return masks[i / 64] >> (i % 64) & 1;
}

static void check_round(struct quoit_prng *prng)
{
    uint64_t masks[BYTES / 64];
    struct quoit_dsm_run runs[BYTES];
    make(prng);
    bool differs = quoit_dsm_diff_masks(page, twin, BYTES, masks);
    assert_int_equal(differs, memcmp(page, twin, BYTES) != 0);
    for (size_t i = 0; i < BYTES; i++)
        assert_int_equal(is_set(masks, i), page[i] != twin[i]);
    size_t count = quoit_dsm_diff_runs(masks, BYTES, runs, BYTES), at = 0;
    for (size_t i = 0; i < count; i++) {
        for (; at < runs[i].offset; at++)
            assert_false(is_set(masks, at));
        assert_int_not_equal(runs[i].bytes, 0);
        for (; at < runs[i].offset + runs[i].bytes; at++)
            assert_true(is_set(masks, at));
    }
    for (; at < BYTES; at++)
        assert_false(is_set(masks, at));
    quoit_dsm_diff_store(home, page, BYTES, masks);
    for (size_t i = 0; i < BYTES; i++)
        assert_int_equal(home[i], is_set(masks, i) ? page[i] : home_before[i]);
    memcpy(home, home_before, BYTES);
    size_t blocks, expected = 0;
    for (size_t i = 0; i < BYTES; i++)
        expected += is_set(masks, i);
    assert_int_equal(quoit_dsm_diff_move(home, twin, page, BYTES, &blocks), expected);
    for (size_t i = 0; i < BYTES; i++)
        assert_int_equal(home[i], is_set(masks, i) ? page[i] : home_before[i]);
    assert_memory_equal(twin, page, BYTES);
}

static void test_random(void **state)
{
    (void)state;
    struct quoit_prng prng = {12};
    for (int round = 0; round < ROUNDS; round++)
        check_round(&prng);
}

static void test_words(void **state)
{
    (void)state;
    struct quoit_prng prng = {21};
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t masks[BYTES / 64], widened[BYTES / 64];
        make(&prng);
        quoit_dsm_diff_masks(page, twin, BYTES, masks);
        for (size_t word = 1; word <= 8; word = word == 1 ? 4 : word * 2) {
            memcpy(widened, masks, sizeof widened);
            quoit_dsm_diff_widen(widened, BYTES, (unsigned)word);
            for (size_t i = 0; i < BYTES; i++)
                assert_int_equal(is_set(widened, i), memcmp(page + i / word * word, twin + i / word * word, word) != 0);
        }
    }
}

static void test_few_runs_fit(void **state)
{
    (void)state;
    uint64_t masks[2] = {0x5555555555555555ull, UINT64_MAX};
    struct quoit_dsm_run runs[3] = {{0, 0}, {0, 0}, {77, 77}};
    assert_int_equal(quoit_dsm_diff_runs(masks, 128, runs, 2), 33);
    assert_int_equal(runs[1].offset, 2);
    assert_int_equal(runs[2].offset, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_words),
                                       cmocka_unit_test(test_few_runs_fit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
