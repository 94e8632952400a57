/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf.h"

#include <stdlib.h>
#include <string.h>

#define EMPTY 0xEE

/* Global variables are symmetric, which is why they are a kind of buffer; they are reached through struct perf. */
static unsigned char global_from[PERF_GLOBAL_BYTES + PERF_GUARD_BYTES] __attribute__((aligned(4096)));
static unsigned char global_to[PERF_GLOBAL_BYTES + PERF_GUARD_BYTES] __attribute__((aligned(4096)));

static const char *const buffers_names[] = {"heap", "global", "private"};

const char *perf_buffers_name(enum perf_buffers buffers)
{
    return buffers_names[buffers];
}

static size_t row_bytes(const struct perf *perf, const struct perf_row *row)
{
    if (row->is_cold)
        return perf->options.cold_bytes;
    if (row->test->who != PERF_ALL)
        return row->bytes;
    /* Collectives have a block for each PE, and may have a stride of two; those that need too much are skipped. */
    size_t bytes = 2 * (size_t)perf->npes * row->bytes;
    return bytes < perf->options.cold_bytes ? bytes : perf->options.cold_bytes;
}

bool perf_buffers_make(struct perf *perf, const struct perf_row *rows, int row_count)
{
    size_t bytes = 4096;
    for (int i = 0; i < row_count; i++)
        if (row_bytes(perf, &rows[i]) > bytes)
            bytes = row_bytes(perf, &rows[i]);
    bytes = (bytes + 4095) / 4096 * 4096;
    perf->pool_bytes[PERF_HEAP] = perf->pool_bytes[PERF_PRIVATE] = bytes;
    perf->pool_bytes[PERF_GLOBAL] = bytes < PERF_GLOBAL_BYTES ? bytes : PERF_GLOBAL_BYTES;
    perf->from[PERF_GLOBAL] = global_from;
    perf->to[PERF_GLOBAL] = global_to;
    perf->from[PERF_HEAP] = shmem_align(4096, bytes + PERF_GUARD_BYTES);
    perf->to[PERF_HEAP] = shmem_align(4096, bytes + PERF_GUARD_BYTES);
    perf->from[PERF_PRIVATE] = aligned_alloc(4096, bytes + 4096);
    perf->to[PERF_PRIVATE] = aligned_alloc(4096, bytes + 4096);
    perf->copy_from = aligned_alloc(4096, bytes + 4096);
    perf->copy_to = aligned_alloc(4096, bytes + 4096);
    if (perf->copy_from && perf->copy_to) { /* pages that are allocated, and not all the same zero page */
        memset(perf->copy_from, 1, bytes);
        memset(perf->copy_to, 2, bytes);
    }
    return perf->from[PERF_HEAP] && perf->to[PERF_HEAP] && perf->from[PERF_PRIVATE] && perf->to[PERF_PRIVATE] &&
           perf->copy_from && perf->copy_to;
}

void perf_buffers_free(struct perf *perf)
{
    free(perf->copy_to);
    free(perf->copy_from);
    free(perf->to[PERF_PRIVATE]);
    free(perf->from[PERF_PRIVATE]);
    shmem_free(perf->to[PERF_HEAP]);
    shmem_free(perf->from[PERF_HEAP]);
}

static size_t slot_bytes_of(const struct perf_row *row)
{
    return (row->bytes + 63) / 64 * 64;
}

bool perf_row_fits(const struct perf *perf, const struct perf_row *row)
{
    size_t pool = perf->pool_bytes[row->buffers];
    if (row->is_cold)
        return pool / slot_bytes_of(row) >= 2;
    return row->bytes * (row->test->who == PERF_ALL ? 2 * (size_t)perf->npes : 1) <= pool;
}

static size_t common(size_t a, size_t b)
{
    while (b) {
        size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Cold calls visit all slots of the pool in an order that no prefetcher predicts. */
void perf_row_layout(const struct perf *perf, struct perf_row *row)
{
    row->slot_bytes = row->span = row->step = row->bytes;
    row->at = row->limit_at = 0;
    if (!row->is_cold || row->bytes == 0)
        return;
    row->slot_bytes = slot_bytes_of(row);
    size_t slots = perf->pool_bytes[row->buffers] / row->slot_bytes;
    size_t step = (size_t)((double)slots * 0.618);
    while (step == 0 || common(step, slots) != 1)
        step++;
    row->span = slots * row->slot_bytes;
    row->step = step * row->slot_bytes;
}

uint64_t perf_given_word(int pe, const struct perf_row *row, size_t word)
{
    return (word + 1 + ((uint64_t)(unsigned)pe << 40) + ((uint64_t)(unsigned)row->number << 52)) * 0x9E3779B97F4A7C15u;
}

void perf_fill_given(unsigned char *bytes, size_t count, int pe, const struct perf_row *row)
{
    for (size_t at = 0; at < count; at += 8) {
        uint64_t word = perf_given_word(pe, row, at / 8);
        memcpy(bytes + at, &word, count - at < 8 ? count - at : 8);
    }
}

void perf_fill_empty(unsigned char *bytes, size_t count)
{
    memset(bytes, EMPTY, count);
}

static void fill_kind(struct perf *perf, const struct perf_row *row, enum perf_buffers kind)
{
    perf_fill_given(perf->from[kind], row->span, perf->me, row);
    perf_fill_empty(perf->to[kind], row->span + PERF_GUARD_BYTES);
}

void perf_fill(struct perf *perf, struct perf_row *row)
{
    fill_kind(perf, row, row->buffers);
    if (row->buffers == PERF_PRIVATE)
        fill_kind(perf, row, PERF_HEAP);
}

static bool is_wrong(const struct perf *perf, const struct perf_row *row, size_t at, unsigned is, unsigned should)
{
    fprintf(stderr, "perf: %s of %zu bytes, %s buffers, %s: byte %zu at PE %d is 0x%02x and should be 0x%02x\n",
            row->test->name, row->bytes, perf_buffers_name(row->buffers), row->is_cold ? "cold" : "warm", at, perf->me,
            is, should);
    return false;
}

bool perf_is_given(const struct perf *perf, const struct perf_row *row, const unsigned char *bytes, size_t at,
                   size_t count, int pe)
{
    for (size_t i = at; i < at + count;) {
        uint64_t word = perf_given_word(pe, row, i / 8);
        const unsigned char *should = (const unsigned char *)&word;
        for (size_t in = i % 8; in < 8 && i < at + count; in++, i++)
            if (bytes[i] != should[in])
                return is_wrong(perf, row, i, bytes[i], should[in]);
    }
    return true;
}

bool perf_is_empty(const struct perf *perf, const struct perf_row *row, const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != EMPTY)
            return is_wrong(perf, row, i, bytes[i], EMPTY);
    return true;
}

bool perf_has_come(const struct perf *perf, const struct perf_row *row, const unsigned char *to, int pe)
{
    size_t slots = row->span / row->slot_bytes, at = 0;
    for (size_t slot = 0; slot < slots; slot++, perf_next(row, &at)) {
        bool was_used = slot < (size_t)row->count;
        if (was_used && !perf_is_given(perf, row, to, at, row->bytes, pe))
            return false;
        size_t used = was_used ? row->bytes : 0;
        if (!perf_is_empty(perf, row, to + at + used, row->slot_bytes - used))
            return false;
    }
    return perf_is_empty(perf, row, to + row->span, PERF_GUARD_BYTES);
}
