/* SPDX-License-Identifier: BSD-3-Clause */
/* mix.h - the parts of the stress program: each does random operations of one kind and knows their results.
 *
 * Every part has open (collective), step (one random operation to PE `pe`), check (collective, between two barriers
 * with no operation outstanding) and close. An error ends the job with a message that includes the seed.
 */
#ifndef STRESS_MIX_H
#define STRESS_MIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/prng.h"

struct mix {
    int me, pe_count;
    uint64_t seed, step_count;
    uint64_t byte_count; /* moved by this PE */
    size_t bytes_max;    /* of one operation */
    struct quoit_prng prng;
    struct transfers *transfers;
    struct messages *messages;
    struct atomics *atomics;
};

/* Prints the error, the seed and the step, and ends the job. */
__attribute__((noreturn, format(printf, 2, 3))) void mix_fail(const struct mix *mix, const char *format, ...);

void *mix_symmetric(const struct mix *mix, size_t count, size_t bytes); /* zeroed, or the end of the job; collective */
void *mix_private(const struct mix *mix, size_t count, size_t bytes);

double mix_seconds_now(void);
size_t mix_choose(struct mix *mix, size_t n); /* 0..n-1 */
/* 1..most, each power of two equally likely, so that small and large sizes occur. */
size_t mix_choose_size(struct mix *mix, size_t most);
uint64_t mix_hash(uint64_t a, uint64_t b, uint64_t c);
void mix_fill(uint8_t *bytes, size_t count, uint64_t key);
/* The first byte that differs from what mix_fill wrote, or count. */
size_t mix_differs(const uint8_t *bytes, size_t count, uint64_t key);

/* put, get, strided, single elements, blocking or not: each PE owns a region at every other, mirrored locally. */
void transfers_open(struct mix *mix);
void transfers_step(struct mix *mix, int pe);
/* After any quiet: outstanding operations are complete and their results are checked. */
void transfers_completed(struct mix *mix);
void transfers_check(struct mix *mix);
void transfers_close(struct mix *mix);

/* Messages between PEs, announced by a signal, in every form that orders the message before the signal. */
void messages_open(struct mix *mix);
void messages_step(struct mix *mix, int pe);
void messages_poll(struct mix *mix);
void messages_check(struct mix *mix);
void messages_close(struct mix *mix);

/* Atomics on words shared by all PEs. */
void atomics_open(struct mix *mix);
void atomics_step(struct mix *mix, int pe);
/* Collective: all PEs at once on the words of one PE, one kind of operation after another. */
void atomics_storm(struct mix *mix, int pe);
void atomics_completed(struct mix *mix);
void atomics_check(struct mix *mix);
void atomics_close(struct mix *mix);

#endif
