/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/emulated/opening.h"

#include <string.h>

#include "port/words.h"

#define VECTOR_BYTES 16
#define LINE_BYTES   64

/* Not memcpy: its byte moves (`rep movsb`, from a few KB on) tear aligned words if source and destination are aligned
 * differently. `rep movsq` stores words and is as fast; its start-up is slow, so shorter copies use vectors. The
 * sanitizers cannot see it, so they get the vectors too. */
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define HAS_STRING_MOVE 1
#endif
#define STRING_MOVE_FROM_BYTES 2048

#if defined(__SANITIZE_THREAD__)
/* The sanitizer identifies memory by its address, and a window is a second mapping: an access ordered by an
 * acknowledgement round the ring looks unordered to it. The tests compare every byte of payload; rings, credits and
 * channels stay visible to the sanitizer. */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:quoit_emulated_copy_out\nrace:quoit_lane_deliver\n";
}
#endif

typedef uint64_t vector __attribute__((vector_size(VECTOR_BYTES)));

/* Stores of one write stay behind those of the writes before it. */
static inline void order_stores(void)
{
#if defined(__x86_64__)
    __asm__ __volatile__("" ::: "memory"); /* the processor keeps stores in order */
#else
    atomic_thread_fence(memory_order_release);
#endif
}

/* An aligned vector's two words are stored whole. */
static inline void store_vectors(char *to, const char *from, size_t bytes)
{
    for (size_t done = 0; done < bytes; done += VECTOR_BYTES) {
        vector both;
        memcpy(&both, from + done, sizeof both);
        *(volatile vector *)(void *)(to + done) = both;
    }
}

static inline void store_long(char *to, const char *from, size_t bytes)
{
#if defined(HAS_STRING_MOVE)
    if (bytes >= STRING_MOVE_FROM_BYTES) {
        size_t word_count = bytes / QUOIT_WORD_BYTES;
        __asm__ __volatile__("rep movsq" : "+D"(to), "+S"(from), "+c"(word_count) : : "memory");
        return;
    }
#endif
    store_vectors(to, from, bytes);
}

void quoit_emulated_words_out(char *to, const char *from, size_t bytes)
{
    order_stores();
    if (bytes < 2 * LINE_BYTES) {
        quoit_store_words(to, from, bytes);
        return;
    }
    size_t head = quoit_bytes_to_boundary(to, LINE_BYTES, bytes);
    size_t lines = (bytes - head) & ~(size_t)(LINE_BYTES - 1);
    quoit_store_words(to, from, head);
    store_long(to + head, from + head, lines);
    quoit_store_words(to + head + lines, from + head + lines, bytes - head - lines);
}

void quoit_emulated_words_in(char *to, const char *from, size_t bytes)
{
    size_t done = quoit_bytes_to_boundary(from, QUOIT_WORD_BYTES, bytes);
    quoit_store_parts(to, from, done);
    for (; bytes - done >= QUOIT_WORD_BYTES; done += QUOIT_WORD_BYTES) {
        /* a mark that another thread of this host writes meanwhile is read whole */
        uint64_t word = __atomic_load_n((const uint64_t *)(const void *)(from + done), __ATOMIC_RELAXED);
        memcpy(to + done, &word, sizeof word);
    }
    quoit_store_parts(to + done, from + done, bytes - done);
}
