/* SPDX-License-Identifier: BSD-3-Clause */
/* journal.h - copies of the small puts through one window that are not known to have arrived. Private to engine/ring.
 *
 * What it is: a ring of entries in order of reservation. An entry is reserved, filled by its owner with no lock held,
 * and sent, which gives it a sequence. It is held until everything up to its sequence has arrived. An entry that is
 * reserved and not sent yet blocks the release of later ones.
 *
 * Pure: no clock, lock or allocation. Threads: one at a time, but entries are filled concurrently.
 */
#ifndef QUOIT_ENGINE_RING_JOURNAL_H
#define QUOIT_ENGINE_RING_JOURNAL_H

#include <stdint.h>

#define QUOIT_JOURNAL_BYTES   65536u
#define QUOIT_JOURNAL_PUT_MAX 4096u /* largest put that is copied into the journal */

struct quoit_journal_entry {
    uint64_t sequence; /* 0: not sent yet */
    uint64_t offset;   /* in the segment */
    uint16_t bytes;    /* 0: the unused remainder at the end of the ring */
    uint16_t local;    /* the PE's index on the neighbour */
    uint32_t total_bytes;
    char data[];
};

/* All zero is an empty journal. */
struct quoit_journal {
    uint64_t head; /* counts of bytes, taken modulo QUOIT_JOURNAL_BYTES */
    uint64_t tail;
    _Alignas(64) char bytes[QUOIT_JOURNAL_BYTES];
};

/* Reserves room for a put of 1..QUOIT_JOURNAL_PUT_MAX bytes, after releasing entries with sequences up to `known`.
 * NULL: there is none. */
struct quoit_journal_entry *quoit_journal_reserve(struct quoit_journal *journal, uint32_t bytes, uint64_t known);

/* The first entry that was sent with a sequence above `arrived`, after `after` (NULL: the oldest); NULL: no more. */
struct quoit_journal_entry *quoit_journal_next(struct quoit_journal *journal, const struct quoit_journal_entry *after,
                                               uint64_t arrived);

#endif
