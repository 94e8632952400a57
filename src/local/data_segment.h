/* SPDX-License-Identifier: BSD-3-Clause */
/* data_segment.h - the global and static variables of the program and of its libraries, made shared.
 *
 * What it is: the writable part of the main program (.data and .bss without what the loader made read-only), and of
 * each shared library it was started with, whole pages. share() moves their content into a piece of a file and maps the
 * piece in their place, so that other PEs reach the variables by mapping the same piece. Addresses do not change,
 * position-independent programs included.
 *
 * Libraries: not those of the C runtime, of a sanitizer or of an allocator, whose variables belong to the process (a
 * forked child changes them before anything can be done about it), nor those loaded by dlopen after find(). When the
 * process has several threads at find(), no library, since its threads may be at work on its variables.
 *
 * Memory: pages of .bss that nobody has touched take none, neither in the file nor in the copy of a forked child.
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

#define QUOIT_DATA_SEGMENTS_MAX 16 /* the program and 15 libraries; further ones are left out */

struct quoit_data_segments {
    uint32_t count; /* at least 1 */
    /* [0]: the program, the rest in the order in which they were loaded, the same in each process of a program. */
    struct quoit_data_segment {
        char *base;
        uint64_t bytes;   /* whole pages; 0: the program has no such variables */
        uint64_t zero_at; /* from there on pages are zero until the program touches them: the end of .bss */
    } segment[QUOIT_DATA_SEGMENTS_MAX];
    uint64_t bytes;     /* of all */
    uint64_t load_base; /* where the loader put the program; for addresses in messages */
};

void quoit_data_segments_find(struct quoit_data_segments *segments_out);
/* The segments stand one behind the other in the file, from file_offset; `view` is where that is mapped already. After
 * an error some may be shared: the process can only end. */
QUOIT_MUST_USE enum quoit_status quoit_data_segments_share(const struct quoit_data_segments *segments, int fd,
                                                           uint64_t file_offset, char *view);
/* Before a core file is written: without what no process has touched, which the kernel would take memory for to write
 * zeros. Async-signal-safe. */
void quoit_data_segments_leave_holes_out(void);

#endif
