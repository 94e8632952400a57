/* SPDX-License-Identifier: BSD-3-Clause */
/* prng.h - splitmix64, a small seeded generator and the only source of randomness. Not cryptographic. */
#ifndef QUOIT_BASE_PRNG_H
#define QUOIT_BASE_PRNG_H

#include <stdint.h>

struct quoit_prng {
    uint64_t state;
};

static inline uint64_t quoit_prng_next(struct quoit_prng *prng)
{
    uint64_t z = (prng->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* A number in 0..n-1; n > 0. */
static inline uint64_t quoit_prng_choose(struct quoit_prng *prng, uint64_t n)
{
    return (uint64_t)(((unsigned __int128)quoit_prng_next(prng) * n) >> 64);
}

#endif
