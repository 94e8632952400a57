/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a block of bytes comes out of the exchange as it went in, in values that every launcher carries; what another
 * program put is refused. Method: an exchange in memory; blocks of zeros, of no zeros and at random; values cut and
 * changed. */
#include "boot/exchange.h"
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PARTS 64u

/* The values of the only PE; the test's exchange points to it by its job name. */
struct store {
    char values[PARTS][QUOIT_EXCHANGE_BYTES];
    uint32_t count;
};

static struct store *store_of(const struct quoit_exchange *exchange)
{
    struct store *store;
    memcpy(&store, exchange->job, sizeof store);
    return store;
}

static enum quoit_status put(struct quoit_exchange *exchange, uint32_t part, const char *value)
{
    struct store *store = store_of(exchange);
    assert_true(part < PARTS);
    assert_true(strlen(value) < QUOIT_EXCHANGE_BYTES);
    assert_int_equal(strspn(value, "0123456789abcdef."), strlen(value));
    assert_string_equal(store->values[part], "");
    strcpy(store->values[part], value);
    store->count++;
    return QUOIT_OK;
}

static enum quoit_status get(struct quoit_exchange *exchange, uint32_t rank, uint32_t part,
                             char value_out[QUOIT_EXCHANGE_BYTES])
{
    const struct store *store = store_of(exchange);
    (void)rank;
    if (part >= PARTS || !store->values[part][0])
        return QUOIT_SYSTEM;
    strcpy(value_out, store->values[part]);
    return QUOIT_OK;
}

static const struct quoit_exchange_ops ops = {.name = "test", .put = put, .get = get};

static struct quoit_exchange make(struct store *store)
{
    struct quoit_exchange exchange = {.ops = &ops, .size = 1};
    memset(store, 0, sizeof *store);
    memcpy(exchange.job, &store, sizeof store);
    return exchange;
}

static void check(const unsigned char *bytes, uint32_t count, uint32_t most_values)
{
    static const uint32_t first_part = 3;
    unsigned char out[QUOIT_EXCHANGE_BLOCK_MAX];
    struct store store;
    struct quoit_exchange exchange = make(&store);
    memset(out, 0xee, sizeof out);
    assert_int_equal(quoit_exchange_put_block(&exchange, first_part, bytes, count), QUOIT_OK);
    assert_in_range(store.count, 1, most_values);
    assert_int_equal(quoit_exchange_get_block(&exchange, 0, first_part, out, count), QUOIT_OK);
    assert_memory_equal(out, bytes, count);
    if (count > 1)
        assert_int_equal(quoit_exchange_get_block(&exchange, 0, first_part, out, count - 1), QUOIT_INVALID);
    if (count < QUOIT_EXCHANGE_BLOCK_MAX)
        assert_int_equal(quoit_exchange_get_block(&exchange, 0, first_part, out, count + 1), QUOIT_INVALID);
}

static void test_blocks(void **state)
{
    unsigned char bytes[QUOIT_EXCHANGE_BLOCK_MAX] = {0};
    struct quoit_prng chance = {.state = 13};
    (void)state;
    check(bytes, sizeof bytes, 1);
    check(bytes, 1, 1);
    memset(bytes, 0x5a, sizeof bytes);
    check(bytes, sizeof bytes, 9);
    for (int run = 0; run < 500; run++) {
        uint32_t count = 1 + (uint32_t)quoit_prng_choose(&chance, sizeof bytes);
        uint64_t rarity = 1 + quoit_prng_choose(&chance, 20);
        for (uint32_t i = 0; i < count; i++)
            bytes[i] = quoit_prng_choose(&chance, rarity) ? 0 : (unsigned char)quoit_prng_next(&chance);
        check(bytes, count, 14);
    }
}

static void test_nonsense(void **state)
{
    static const char *const words[] = {"0", "zz", "00", "0112", "01.", "01.z", "011", "ff00", "01G0", "0100.ff.ff"};
    unsigned char out[8];
    struct store store;
    struct quoit_exchange exchange = make(&store);
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        strcpy(store.values[0], words[i]);
        assert_int_not_equal(quoit_exchange_get_block(&exchange, 0, 0, out, sizeof out), QUOIT_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks), cmocka_unit_test(test_nonsense)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
