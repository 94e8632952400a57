/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/emulated/opening.h"

#include <string.h>

#define WORD_BYTES 8
#define LINE_BYTES 64
/* memcpy stores the ends of a short copy as overlapping words, some of them across the aligned ones; whole lines, and
 * not few of them, it stores in order by aligned vectors. */
#define MEMCPY_FROM_BYTES 512

/* Stores of one write stay behind those of the writes before it. */
static inline void order_stores(void)
{
#if defined(__x86_64__)
    __asm__ __volatile__("" ::: "memory"); /* the processor keeps stores in order */
#else
    atomic_thread_fence(memory_order_release);
#endif
}

static inline size_t bytes_to_boundary(const char *address, size_t boundary_bytes, size_t bytes)
{
    size_t gap = (size_t)(-(uintptr_t)address & (boundary_bytes - 1));
    return gap < bytes ? gap : bytes;
}

static inline void store_bytes(char *to, const char *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((volatile char *)to)[i] = from[i];
}

static inline void store_words(char *to, const char *from, size_t bytes)
{
    size_t head = bytes_to_boundary(to, WORD_BYTES, bytes);
    store_bytes(to, from, head);
    size_t done = head;
    for (; bytes - done >= WORD_BYTES; done += WORD_BYTES) {
        uint64_t word;
        memcpy(&word, from + done, sizeof word);
        *(volatile uint64_t *)(void *)(to + done) = word;
    }
    store_bytes(to + done, from + done, bytes - done);
}

void quoit_emulated_words_out(char *to, const char *from, size_t bytes)
{
    order_stores();
    if (bytes < MEMCPY_FROM_BYTES) {
        store_words(to, from, bytes);
        return;
    }
    size_t head = bytes_to_boundary(to, LINE_BYTES, bytes);
    size_t lines = (bytes - head) & ~(size_t)(LINE_BYTES - 1);
    store_words(to, from, head);
    memcpy(to + head, from + head, lines);
    store_words(to + head + lines, from + head + lines, bytes - head - lines);
}

void quoit_emulated_words_in(char *to, const char *from, size_t bytes)
{
    size_t done = bytes_to_boundary(from, WORD_BYTES, bytes);
    store_bytes(to, from, done);
    for (; bytes - done >= WORD_BYTES; done += WORD_BYTES) {
        uint64_t word = *(const volatile uint64_t *)(const void *)(from + done);
        memcpy(to + done, &word, sizeof word);
    }
    store_bytes(to + done, from + done, bytes - done);
}
