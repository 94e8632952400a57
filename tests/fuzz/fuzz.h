/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz.h - shared by the fuzz targets.
 *
 * A target is one file with libFuzzer's entry point. It is linked with driver.c for the tests, and with clang's
 * libFuzzer by scripts/fuzz. A violated property aborts. Targets whose input is a struct begin with a valid one and
 * apply the input as mutations, so that the corpus survives a change of the struct.
 */
#ifndef QUOIT_FUZZ_H
#define QUOIT_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define FUZZ_HOLDS(condition)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);                             \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

/* Mutates bytes of an object: each three bytes of input are an offset (modulo its size) and a value. */
static inline void fuzz_change(void *object, size_t object_bytes, const uint8_t *data, size_t bytes)
{
    uint8_t *at = object;
    for (size_t i = 0; i + 3 <= bytes; i += 3)
        at[(data[i] | (size_t)data[i + 1] << 8) % object_bytes] = data[i + 2];
}

/* The input as a string; the caller frees it. */
static inline char *fuzz_text(const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + 1);
    FUZZ_HOLDS(text != NULL);
    if (bytes)
        memcpy(text, data, bytes);
    text[bytes] = '\0';
    return text;
}

#endif
