/* SPDX-License-Identifier: BSD-3-Clause */
/* data_segment.h - makes the global and static variables of the program and its libraries shared.
 *
 * What it is: the writable part of the main program (.data and .bss without the part that the loader made read-only),
 * and of each shared library it was started with, in whole pages. share() moves their contents into a file and maps the
 * file in their place, so other PEs reach the variables by mapping the same file. Addresses do not change,
 * position-independent programs included.
 *
 * Libraries excluded: the C runtime, sanitizers and allocators, whose variables belong to the process (a forked child
 * changes them before any handler can run), and those loaded by dlopen after find(). If the process already has several
 * threads at find(), no library is shared, because their threads may be using its variables.
 *
 * Memory: untouched pages of .bss take none, neither in the file nor in the copy for a forked child.
 *
 * A program that forks keeps its children's variables apart: the child gets a private copy as of the fork.
 *
 * Threads: share() must run while no other thread of the process touches the variables, that is in shmem_init.
 */
#ifndef QUOIT_LOCAL_DATA_SEGMENT_H
#define QUOIT_LOCAL_DATA_SEGMENT_H

#include <stdint.h>

#include "base/status.h"

#define QUOIT_DATA_SEGMENTS_MAX 16 /* the program and 15 libraries; others are not shared */

struct quoit_data_segments {
    uint32_t count; /* at least 1 */
    /* [0]: the program; then libraries in load order, the same in each process of a program. */
    struct quoit_data_segment {
        char *base;
        uint64_t bytes;   /* whole pages; 0: no such variables */
        uint64_t zero_at; /* from here on pages are zero until touched: the end of .bss */
    } segment[QUOIT_DATA_SEGMENTS_MAX];
    uint64_t bytes;     /* of all segments */
    uint64_t load_base; /* where the loader put the program; for addresses in messages */
};

void quoit_data_segments_find(struct quoit_data_segments *segments_out);
/* The segments are consecutive in the file, from file_offset; `view` is an existing mapping of that range. After an
 * error some may already be shared: the process can only exit. */
QUOIT_MUST_USE enum quoit_status quoit_data_segments_share(const struct quoit_data_segments *segments, int fd,
                                                           uint64_t file_offset, char *view);
/* Called before a core file is written: excludes pages that no process has touched, which the kernel would allocate in
 * order to write zeros. Async-signal-safe. */
void quoit_data_segments_leave_holes_out(void);

#endif
