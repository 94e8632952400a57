/* SPDX-License-Identifier: BSD-3-Clause */
/* words.h - stores through a window in which no aligned word of 8, 4 or 2 bytes is torn, for drivers whose window is
 * mapped memory. memcpy promises nothing of that.
 *
 * Threads: any. Errors: none.
 */
#ifndef QUOIT_PORT_WORDS_H
#define QUOIT_PORT_WORDS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define QUOIT_WORD_BYTES 8u

/* From the address to the next multiple of boundary_bytes, a power of two, but no more than `bytes`. */
static inline size_t quoit_bytes_to_boundary(const volatile char *address, size_t boundary_bytes, size_t bytes)
{
    size_t gap = (size_t)(-(uintptr_t)address & (boundary_bytes - 1));
    return gap < bytes ? gap : bytes;
}

/* For what lies inside of one 8-byte word: aligned 4- and 2-byte parts are stored whole. */
static inline void quoit_store_parts(volatile char *to, const char *from, size_t bytes)
{
    for (size_t done = 0, step; done < bytes; done += step) {
        const uintptr_t at = (uintptr_t)(to + done);
        uint32_t word;
        uint16_t half;
        step = at % 4 == 0 && bytes - done >= 4 ? 4 : at % 2 == 0 && bytes - done >= 2 ? 2 : 1;
        if (step == 4) {
            memcpy(&word, from + done, sizeof word);
            *(volatile uint32_t *)at = word;
        } else if (step == 2) {
            memcpy(&half, from + done, sizeof half);
            *(volatile uint16_t *)at = half;
        } else {
            to[done] = from[done];
        }
    }
}

/* Any range, word by word. */
static inline void quoit_store_words(volatile char *to, const char *from, size_t bytes)
{
    size_t done = quoit_bytes_to_boundary(to, QUOIT_WORD_BYTES, bytes);
    quoit_store_parts(to, from, done);
    for (; bytes - done >= QUOIT_WORD_BYTES; done += QUOIT_WORD_BYTES) {
        uint64_t word;
        memcpy(&word, from + done, sizeof word);
        *(volatile uint64_t *)(uintptr_t)(to + done) = word;
    }
    quoit_store_parts(to + done, from + done, bytes - done);
}

#endif
