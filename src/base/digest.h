/* SPDX-License-Identifier: BSD-3-Clause */
/* digest.h - FNV-1a of bytes, 32 bits: tells configurations and names apart, no more. Any thread. */
#ifndef QUOIT_BASE_DIGEST_H
#define QUOIT_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

static inline uint32_t quoit_digest(const void *data, size_t bytes)
{
    const unsigned char *at = data;
    uint32_t digest = 2166136261u;
    for (size_t i = 0; i < bytes; i++)
        digest = (digest ^ at[i]) * 16777619u;
    return digest;
}

#endif
