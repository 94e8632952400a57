/* SPDX-License-Identifier: BSD-3-Clause */
/* data_segment.h - the program's global and static variables, made shared.
 *
 * What it is: the writable part of the main program (.data and .bss without what the loader made read-only), whole
 * pages. share() moves its content into a piece of a file and maps that piece in its place, so that other PEs reach the
 * variables by mapping the same piece. Addresses do not change, position-independent programs included.
 *
 * A program that forks keeps its children's variables apart: the child gets a private copy of what the variables were
 * at the fork.
 *
 * Threads: share() must run while no other thread of the process touches the variables: in shmem_init.
 */
#ifndef QUOIT_LOCAL_DATA_SEGMENT_H
#define QUOIT_LOCAL_DATA_SEGMENT_H

#include <stdint.h>

#include "base/status.h"

struct quoit_data_segment {
    char *base;
    uint64_t bytes;     /* whole pages; 0: the program has no such variables */
    uint64_t load_base; /* where the loader put the program; for addresses in messages */
};

void quoit_data_segment_find(struct quoit_data_segment *segment_out);
/* `view` is where the piece of the file at file_offset is mapped already. */
QUOIT_MUST_USE enum quoit_status quoit_data_segment_share(const struct quoit_data_segment *segment, int fd,
                                                          uint64_t file_offset, char *view);

#endif
