/* SPDX-License-Identifier: BSD-3-Clause */
/* still.h - whether a PE waits, read from outside: it sleeps in a routine, or does nothing but poll in vain.
 *
 * A PE polls if it has ended rounds of polls since the last look, none of them found what it looks for, and it did
 * nothing else between two polls after most of them. One that computes between its polls is at work.
 *
 * Threads: one a struct quoit_still. Errors: none.
 */
#ifndef QUOIT_BOOT_STILL_H
#define QUOIT_BOOT_STILL_H

#include <stdbool.h>
#include <stdint.h>

#include "host/pe_record.h"

/* What the last look at a PE found; zero before the first. */
struct quoit_still {
    uint64_t round_count;
    uint64_t slow_count;
    uint64_t met_count;
    bool is_polling;
};

/* A number that changes when the PE has moved since the last look; 0: it is at work. */
uint64_t quoit_still_look(struct quoit_still *still, const struct quoit_pe_shared *shared);

#endif
