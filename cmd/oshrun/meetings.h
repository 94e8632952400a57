/* SPDX-License-Identifier: BSD-3-Clause */
/* meetings.h - the collectives that PEs recorded (trace/profile.h), and what they say of the machines' clocks.
 *
 * Clocks of machines differ by how long these have been up. No PE leaves a collective of all PEs before the last one
 * has come to it: each such collective bounds the difference of two clocks from both sides, and the tightest bounds of
 * all enclose it. Within them it is taken as the median of what PEs that leave at about the same time read. A
 * difference that changes during the job is not followed. */
#ifndef OSHRUN_MEETINGS_H
#define OSHRUN_MEETINGS_H

#include "job.h"
#include "trace/profile.h"

/* A PE's part in a collective. */
struct meeting_part {
    struct quoit_profile_group group; /* without its count */
    const struct quoit_profile_meeting *meeting;
    uint32_t pe;
};

/* Of a machine's clock. */
struct meeting_clock {
    int64_t ahead_ns;  /* of that of host 0 */
    uint64_t error_ns; /* at most; UINT64_MAX: there was no collective, and ahead_ns is by when shmem_init returned */
};

/* What the PE recorded, within its bounds; NULL: nothing. */
struct quoit_profile *meetings_record(const struct job *job, uint32_t pe);
/* All parts, to be freed, those of one collective together in the order of PEs. records: [pe_count], NULL: unknown.
 * NULL: out of memory. */
struct meeting_part *meetings_list(struct quoit_profile *const *records, uint32_t pe_count, size_t *count_out);
/* How many of these `left` parts are of the first one's collective. */
size_t meetings_count(const struct meeting_part *parts, size_t left);
/* clocks_out: [host_count]. Hosts of one machine have one clock. False: out of memory. */
bool meetings_compare_clocks(const struct job *job, struct quoit_profile *const *records,
                             const struct meeting_part *parts, size_t count, struct meeting_clock *clocks_out);

#endif
