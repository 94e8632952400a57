/* SPDX-License-Identifier: BSD-3-Clause */
/* store.h - changes to mapped memory of a PE of this host, each with the wake that follows it.
 *
 * What it is: the one form of a put and of an atomic within a host, inlined by the API's fast path and used by engine
 * `local`. `park` is where the destination PE sleeps, `at` the segment offset of the change, `to` its mapping here.
 *
 * Threads: any.
 */
#ifndef QUOIT_LOCAL_STORE_H
#define QUOIT_LOCAL_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "env/park.h"
#include "host/execute.h"

/* Copies so few bytes that the copy is inlined: a constant number. The ranges do not overlap. */
static inline __attribute__((always_inline)) void quoit_local_put_unit(struct quoit_park *park, uint64_t at, char *to,
                                                                       const void *source, size_t bytes)
{
    __builtin_memcpy(to, source, bytes);
    quoit_park_wake_at(park, at, bytes);
}

/* Copies any number of bytes. The ranges may be the same. */
void quoit_local_put(struct quoit_park *park, uint64_t at, char *to, const void *source, size_t bytes);

/* See execute.h. A fetch changes nothing and wakes nobody. */
static inline __attribute__((always_inline)) uint64_t quoit_local_amo(struct quoit_park *park, uint64_t at, char *word,
                                                                      enum quoit_amo op, uint32_t size,
                                                                      uint64_t operand, uint64_t compare)
{
    uint64_t old = quoit_execute_amo(word, op, size, operand, compare);
    if (op != QUOIT_AMO_FETCH)
        quoit_park_wake_at(park, at, size);
    return old;
}

#endif
