/* SPDX-License-Identifier: BSD-3-Clause */
/* data_segment.h - makes the global and static variables of the program and its libraries shared.
 *
 * What it is: share() moves the contents of the segments that objects.h found into a file and maps the file in their
 * place, so other PEs reach the variables by mapping the same file. Addresses, and with them alignments, do not change,
 * position-independent programs included. Nothing is mapped between two segments.
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
#include "local/objects.h"

/* The segments are consecutive in the file, from file_offset; `view` is an existing mapping of that range. The table
 * of segments is used until the process ends. After an error some may already be shared: the process can only exit. */
QUOIT_MUST_USE enum quoit_status quoit_data_segments_share(const struct quoit_data_segments *segments, int fd,
                                                           uint64_t file_offset, char *view);
/* Called before a core file is written: excludes pages that no process has touched, which the kernel would allocate in
 * order to write zeros. Async-signal-safe. */
void quoit_data_segments_leave_holes_out(void);

#endif
