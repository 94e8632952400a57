/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: each byte of a region has the segment offset that the region gives it, and no other byte has one. Method: up to
 * 200 regions at random places, some adjacent; ranges that begin and end at and beside each border, against a search
 * through all. */
#include "engine/region.h"
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define OTHERS_MAX 200

struct all {
    struct quoit_region list[OTHERS_MAX + 2];
    uint32_t count;
};

static bool model(const struct all *all, uintptr_t at, size_t bytes, uint64_t *offset_out)
{
    for (uint32_t i = 0; i < all->count; i++) {
        const struct quoit_region *region = &all->list[i];
        bool begins = at >= region->base && at < region->base + region->bytes;
        if (begins && at + bytes <= region->base + region->bytes) {
            *offset_out = region->segment_offset + (at - region->base);
            return true;
        }
    }
    return false;
}

static void check(const struct quoit_regions *regions, const struct all *all, uintptr_t at, size_t bytes)
{
    uint64_t offset = 0, wanted = 0;
    bool is_found = quoit_regions_locate(regions, (const void *)at, bytes, &offset);
    assert_int_equal(is_found, model(all, at, bytes, &wanted));
    if (!is_found)
        return;
    assert_int_equal(offset, wanted);
    const struct quoit_region *region = quoit_regions_at(regions, offset);
    assert_non_null(region);
    assert_int_equal(region->base + (offset - region->segment_offset), at);
}

/* Regions in order of address, whose segment offsets are in the opposite order. */
static void make_regions(struct quoit_prng *prng, uint32_t count, struct all *all)
{
    uintptr_t base = 0x1000;
    *all = (struct all){.count = count};
    for (uint32_t i = 0; i < count; i++) {
        base += quoit_prng_choose(prng, 3) * 0x1000;
        all->list[i] = (struct quoit_region){.base = base,
                                             .bytes = (1 + quoit_prng_choose(prng, 5)) * 0x1000,
                                             .segment_offset = 0x100000u * (uint64_t)(count - i)};
        base += all->list[i].bytes;
    }
}

static void test_each_border(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct quoit_prng prng = {seed};
        struct quoit_region others[OTHERS_MAX];
        struct all all;
        uint32_t other_count = seed < 4 ? (uint32_t)seed - 1 : (uint32_t)quoit_prng_choose(&prng, OTHERS_MAX + 1);
        uint32_t data_at = (uint32_t)quoit_prng_choose(&prng, other_count + 1);
        make_regions(&prng, other_count + 2, &all);
        struct quoit_regions regions = {
            .heap = all.list[other_count + 1], .data = all.list[data_at], .others = others, .other_count = other_count};
        for (uint32_t i = 0, other = 0; i < other_count + 1; i++)
            if (i != data_at)
                others[other++] = all.list[i];
        for (uint32_t i = 0; i < all.count; i++)
            for (int beside = -2; beside <= 2; beside++)
                for (size_t bytes = 1; bytes <= 3; bytes++) {
                    check(&regions, &all, all.list[i].base + (uintptr_t)(intptr_t)beside, bytes);
                    check(&regions, &all, all.list[i].base + all.list[i].bytes + (uintptr_t)(intptr_t)beside, bytes);
                }
        check(&regions, &all, 0, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_border)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
