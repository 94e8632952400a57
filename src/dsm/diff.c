/* SPDX-License-Identifier: BSD-3-Clause */
#include "dsm/diff.h"

#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#define BLOCK_BYTES 64
#define AHEAD_BYTES 1024

/* One bit for each byte of an 8-byte word that is not zero. */
static uint64_t word_mask(uint64_t word)
{
    uint64_t low = word & 0x7f7f7f7f7f7f7f7full;
    uint64_t high_bits = ((low + 0x7f7f7f7f7f7f7f7full) | word) & 0x8080808080808080ull;
    return (high_bits >> 7) * 0x0102040810204080ull >> 56;
}

static bool masks_of_words(const char *page, const char *twin, size_t bytes, uint64_t *masks)
{
    uint64_t any = 0;
    for (size_t block = 0; block < bytes / BLOCK_BYTES; block++) {
        uint64_t mask = 0;
        for (int word = 0; word < 8; word++) {
            uint64_t a, b;
            memcpy(&a, page + block * BLOCK_BYTES + word * 8, 8);
            memcpy(&b, twin + block * BLOCK_BYTES + word * 8, 8);
            if (a != b)
                mask |= word_mask(a ^ b) << (word * 8);
        }
        masks[block] = mask;
        any |= mask;
    }
    return any != 0;
}

/* Words of one width, of which the last two may overlap. */
static inline void store_run(char *home, const char *page, size_t bytes)
{
    if (bytes == 1) {
        *home = *page;
    } else if (bytes < 4) {
        memcpy(home, page, 2);
        memcpy(home + bytes - 2, page + bytes - 2, 2);
    } else if (bytes < 8) {
        memcpy(home, page, 4);
        memcpy(home + bytes - 4, page + bytes - 4, 4);
    } else {
        for (size_t at = 0; at + 8 < bytes; at += 8)
            memcpy(home + at, page + at, 8);
        memcpy(home + bytes - 8, page + bytes - 8, 8);
    }
}

/* Counters and small integers change one byte of a word: bytes that stand alone need no lengths. Otherwise run by run:
 * the sum of a mask and its lowest bit has the lowest run of ones cleared, and the zero behind it set. */
static inline void store_block(char *home, const char *page, uint64_t mask)
{
    if ((mask & mask << 1) == 0) {
        for (; mask != 0; mask &= mask - 1)
            home[__builtin_ctzll(mask)] = page[__builtin_ctzll(mask)];
        return;
    }
    while (mask != 0) {
        uint64_t sum = mask + (mask & -mask);
        size_t start = (size_t)__builtin_ctzll(mask), end = sum != 0 ? (size_t)__builtin_ctzll(sum) : BLOCK_BYTES;
        store_run(home + start, page + start, end - start);
        mask &= sum;
    }
}

static void store_runs(char *home, const char *page, size_t bytes, const uint64_t *masks)
{
    for (size_t block = 0; block < bytes / BLOCK_BYTES; block++)
        store_block(home + block * BLOCK_BYTES, page + block * BLOCK_BYTES, masks[block]);
}

#ifdef __x86_64__
__attribute__((target("avx512f,avx512bw"))) static bool masks_of_avx512(const char *page, const char *twin,
                                                                        size_t bytes, uint64_t *masks)
{
    uint64_t any = 0;
    for (size_t block = 0; block < bytes / BLOCK_BYTES; block++) {
        masks[block] = _mm512_cmpneq_epi8_mask(_mm512_loadu_si512(page + block * BLOCK_BYTES),
                                               _mm512_loadu_si512(twin + block * BLOCK_BYTES));
        any |= masks[block];
    }
    return any != 0;
}

/* A masked store does not touch the other bytes, so it cannot overwrite them with old values. */
__attribute__((target("avx512f,avx512bw"))) static void store_avx512(char *home, const char *page, size_t bytes,
                                                                     const uint64_t *masks)
{
    for (size_t block = 0; block < bytes / BLOCK_BYTES; block++) {
        if (masks[block] != 0)
            _mm512_mask_storeu_epi8(home + block * BLOCK_BYTES, masks[block],
                                    _mm512_loadu_si512(page + block * BLOCK_BYTES));
    }
}

/* Each block of the page is read once, so that twin and home get the same bytes. After a block that has changed the
 * next ones often have too, so their cache lines at the home are prefetched. */
__attribute__((target("avx512f,avx512bw"))) static size_t move_avx512(char *home, char *twin, const char *page,
                                                                      size_t bytes, size_t *blocks_out)
{
    size_t moved = 0, blocks = 0;
    for (size_t at = 0; at < bytes; at += BLOCK_BYTES) {
        __m512i block = _mm512_loadu_si512(page + at);
        __mmask64 mask = _mm512_cmpneq_epi8_mask(block, _mm512_loadu_si512(twin + at));
        if (mask == 0)
            continue;
        __builtin_prefetch(home + at + AHEAD_BYTES, 1);
        _mm512_mask_storeu_epi8(twin + at, mask, block);
        _mm512_mask_storeu_epi8(home + at, mask, block);
        moved += (size_t)__builtin_popcountll(mask);
        blocks++;
    }
    *blocks_out = blocks;
    return moved;
}

__attribute__((target("avx2"))) static bool masks_of_avx2(const char *page, const char *twin, size_t bytes,
                                                          uint64_t *masks)
{
    uint64_t any = 0;
    for (size_t block = 0; block < bytes / BLOCK_BYTES; block++) {
        uint64_t mask = 0;
        for (int half = 0; half < 2; half++) {
            size_t at = block * BLOCK_BYTES + (size_t)half * 32;
            __m256i equal = _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)(page + at)),
                                              _mm256_loadu_si256((const __m256i *)(twin + at)));
            mask |= (uint64_t)(uint32_t)~_mm256_movemask_epi8(equal) << (half * 32);
        }
        masks[block] = mask;
        any |= mask;
    }
    return any != 0;
}

/* As move_avx512. A block of the twin is stored whole, since its other bytes are the same, and is what the home gets.
 */
__attribute__((target("avx2"))) static size_t move_avx2(char *home, char *twin, const char *page, size_t bytes,
                                                        size_t *blocks_out)
{
    size_t moved = 0, blocks = 0;
    for (size_t at = 0; at < bytes; at += BLOCK_BYTES) {
        __m256i *there = (__m256i *)(twin + at);
        __m256i low = _mm256_loadu_si256((const __m256i *)(page + at));
        __m256i high = _mm256_loadu_si256((const __m256i *)(page + at) + 1);
        uint32_t low_same = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, _mm256_loadu_si256(there)));
        uint32_t high_same = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, _mm256_loadu_si256(there + 1)));
        uint64_t mask = ~((uint64_t)high_same << 32 | low_same);
        if (mask == 0)
            continue;
        __builtin_prefetch(home + at + AHEAD_BYTES, 1);
        _mm256_storeu_si256(there, low);
        _mm256_storeu_si256(there + 1, high);
        store_block(home + at, twin + at, mask);
        moved += (size_t)__builtin_popcountll(mask);
        blocks++;
    }
    *blocks_out = blocks;
    return moved;
}
#endif

bool quoit_dsm_diff_masks(const char *page, const char *twin, size_t bytes, uint64_t *masks)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512bw"))
        return masks_of_avx512(page, twin, bytes, masks);
    if (__builtin_cpu_supports("avx2"))
        return masks_of_avx2(page, twin, bytes, masks);
#endif
    return masks_of_words(page, twin, bytes, masks);
}

void quoit_dsm_diff_store(char *home, const char *page, size_t bytes, const uint64_t *masks)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512bw")) {
        store_avx512(home, page, bytes, masks);
        return;
    }
#endif
    store_runs(home, page, bytes, masks);
}

size_t quoit_dsm_diff_move(char *home, char *twin, const char *page, size_t bytes, size_t *blocks_out)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512bw"))
        return move_avx512(home, twin, page, bytes, blocks_out);
    if (__builtin_cpu_supports("avx2"))
        return move_avx2(home, twin, page, bytes, blocks_out);
#endif
    size_t moved = 0, blocks = 0;
    for (size_t at = 0; at < bytes; at += BLOCK_BYTES) {
        uint64_t mask;
        if (!quoit_dsm_diff_masks(page + at, twin + at, BLOCK_BYTES, &mask))
            continue;
        quoit_dsm_diff_store(twin + at, page + at, BLOCK_BYTES, &mask);
        quoit_dsm_diff_store(home + at, twin + at, BLOCK_BYTES, &mask);
        moved += (size_t)__builtin_popcountll(mask);
        blocks++;
    }
    *blocks_out = blocks;
    return moved;
}

/* The lowest bit of each word collects those of the word; its product with ones is the whole word. */
void quoit_dsm_diff_widen(uint64_t *masks, size_t bytes, unsigned word_bytes)
{
    if (word_bytes == 1)
        return;
    uint64_t lowest = word_bytes == 8 ? 0x0101010101010101ull : 0x1111111111111111ull;
    uint64_t ones = word_bytes == 8 ? 0xff : 0xf;
    for (size_t block = 0; block < bytes / BLOCK_BYTES; block++) {
        uint64_t any = masks[block];
        any |= any >> 1;
        any |= any >> 2;
        if (word_bytes == 8)
            any |= any >> 4;
        masks[block] = (any & lowest) * ones;
    }
}

size_t quoit_dsm_diff_runs(const uint64_t *masks, size_t bytes, struct quoit_dsm_run *runs, size_t run_max)
{
    size_t count = 0;
    size_t start = 0;
    bool is_open = false;
    for (size_t block = 0; block < bytes / BLOCK_BYTES; block++) {
        uint64_t mask = masks[block];
        if (mask == (is_open ? UINT64_MAX : 0))
            continue;
        for (size_t bit = 0; bit < BLOCK_BYTES;) {
            uint64_t rest = (is_open ? ~mask : mask) >> bit;
            if (rest == 0)
                break;
            bit += (size_t)__builtin_ctzll(rest);
            size_t at = block * BLOCK_BYTES + bit;
            if (is_open && count++ < run_max)
                runs[count - 1] = (struct quoit_dsm_run){(uint32_t)start, (uint32_t)(at - start)};
            start = at;
            is_open = !is_open;
        }
    }
    if (is_open && count++ < run_max)
        runs[count - 1] = (struct quoit_dsm_run){(uint32_t)start, (uint32_t)(bytes - start)};
    return count;
}
