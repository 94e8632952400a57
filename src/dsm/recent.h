/* SPDX-License-Identifier: BSD-3-Clause */
/* recent.h - the notices that a PE published or applied last, of any PE's log, as other PEs read them or are handed
 * them.
 *
 * A record is two words, each with the lap of the ring in which it was written, and each stored once a lap. So a reader
 * that the writer overtakes, or whose words arrive at different times, finds two laps and takes the record for missing;
 * what is missing is read from the logs. Pure: no clock, lock or message. */
#ifndef QUOIT_DSM_RECENT_H
#define QUOIT_DSM_RECENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUOIT_DSM_RECENT         64 /* records of a ring */
#define QUOIT_DSM_RECENT_WRITERS 1024
#define QUOIT_DSM_HANDED_WRITERS 32
#define QUOIT_DSM_HANDED         (QUOIT_DSM_HANDED_WRITERS + QUOIT_DSM_RECENT)

struct quoit_dsm_record {
    uint64_t what;  /* the notice: 46 bits, and the lap: 18 */
    uint64_t whose; /* writer: 10 bits, the low ones of the position in its log: 36, and the lap: 18 */
};

/* Symmetric memory: `records` is written by its PE alone, and read by any. */
struct quoit_dsm_recent {
    struct quoit_dsm_record *records;
    uint64_t added; /* records so far */
};

/* Records of another PE, which may be writing them. */
struct quoit_dsm_records {
    const struct quoit_dsm_record *items;
    uint32_t count;
};

/* What a releaser hands over: for each writer of whose log the acquirer lacks anything the position up to which the
 * releaser knows it (what) and the number of the writer (whose), and behind these the records of notices. */
struct quoit_dsm_handed {
    uint32_t writer_count, record_count;
    struct quoit_dsm_record items[QUOIT_DSM_HANDED];
};

void quoit_dsm_recent_add(struct quoit_dsm_recent *recent, int writer, uint64_t position, uint64_t notice);

/* The notice at a position of a writer's log. False: it is not among the records. */
bool quoit_dsm_recent_find(struct quoit_dsm_records records, int writer, uint64_t position, uint64_t *notice_out);

/* What a PE that knows each log up to `known` hands over to `pe`, which has applied each up to `seen` or farther.
 * False: it lacks notices of too many writers. */
bool quoit_dsm_recent_hand(const struct quoit_dsm_recent *recent, const uint64_t *known, const uint64_t *seen,
                           int pe_count, int pe, struct quoit_dsm_handed *handed);

#endif
