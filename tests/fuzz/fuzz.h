/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz.h - shared by the fuzz targets.
 *
 * A target is one file with libFuzzer's entry point. It is linked with driver.c for the tests, and with clang's
 * libFuzzer by scripts/fuzz. A violated property aborts. Targets whose input is a struct begin with a valid one and
 * apply the input as mutations, so that the corpus survives a change of the struct.
 */
#ifndef QUOIT_FUZZ_H
#define QUOIT_FUZZ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Mutates bytes of an object: each three bytes of input are an offset (modulo its size) and a value. */
static inline void fuzz_change(void *object, size_t object_bytes, const uint8_t *data, size_t bytes)
{
    uint8_t *at = object;
    for (size_t i = 0; i + 3 <= bytes; i += 3)
        at[(data[i] | (size_t)data[i + 1] << 8) % object_bytes] = data[i + 2];
}

/* One step of an input that is a sequence of mutated messages. */
#define FUZZ_HEAD_BYTES  4u
#define FUZZ_CHANGES_MAX 8u
struct fuzz_step {
    const uint8_t *head; /* FUZZ_HEAD_BYTES, for the target; the last says how many changes follow */
    const uint8_t *changes;
    size_t change_bytes; /* for fuzz_change() */
};

/* Takes the next step of the input; false: there is none. */
static inline bool fuzz_next(const uint8_t **data_inout, size_t *bytes_inout, struct fuzz_step *step_out)
{
    if (*bytes_inout < FUZZ_HEAD_BYTES)
        return false;
    const uint8_t *head = *data_inout;
    size_t left = *bytes_inout - FUZZ_HEAD_BYTES, change_bytes = (size_t)3 * (head[3] % FUZZ_CHANGES_MAX);
    change_bytes = change_bytes < left ? change_bytes : left;
    *step_out = (struct fuzz_step){.head = head, .changes = head + FUZZ_HEAD_BYTES, .change_bytes = change_bytes};
    *data_inout += FUZZ_HEAD_BYTES + change_bytes;
    *bytes_inout = left - change_bytes;
    return true;
}

/* The input as a string; the caller frees it. */
static inline char *fuzz_text(const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + 1);
    must(text != NULL);
    if (bytes)
        memcpy(text, data, bytes);
    text[bytes] = '\0';
    return text;
}

#endif
