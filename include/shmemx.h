/* SPDX-License-Identifier: BSD-3-Clause */
/* shmemx.h - extensions of the specification. */
#ifndef QUOIT_SHMEMX_H
#define QUOIT_SHMEMX_H

#include <shmem.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* --- Slices of a program's own in the timeline of `oshrun --trace`, on the track of the calling thread, around the
 * calls and slices between begin and end. begin returns what end takes; without --trace both return at once. Only the
 * first 47 bytes of `name` are recorded; `bytes` and `pe` are shown beside it, unless they are 0 and -1. Any thread,
 * also in a signal handler; end is called by the thread that called begin, the innermost slice first. Errors: none. */
uint64_t shmemx_trace_begin(const char *name, size_t bytes, int pe);
void shmemx_trace_end(uint64_t begun);

/* --- Lines of a language above C in the rows of `oshrun --profile`. profiled: 1 between shmem_init and shmem_finalize
 * of a job that has a profile, else 0; then the others do nothing. file: a number for a source file by its path, of
 * which 255 bytes are recorded; of more than 62 files and libraries the further ones are all "(other)". line: until the
 * next call, routines that the calling thread calls count as called from this line, which is at least 1, of such a
 * file; with 0 and 0 from their return addresses again. Any thread. Errors: none. */
int shmemx_profiled(void);
int shmemx_profile_file(const char *path);
void shmemx_profile_line(int file, int line);

/* --- Rows of a library's own in `oshrun --profile`: all that the thread does from begin to end is one call of
 * `routine`, a text that stays, from the return address `from` (NULL: unknown); routines of OpenSHMEM in it are part of
 * it. A routine of NULL has no row, nor do those in it. end: by the same thread, the innermost first, with what begin
 * returned; `bytes` is what the call moved, and is_of_all says that each PE of the job makes this call, in the same
 * order as its collectives of all PEs, so that the profile says who came last. Without a profile both return at once.
 * Any thread, also in a signal handler. Errors: none. */
uint64_t shmemx_profile_begin(const char *routine, const void *from);
void shmemx_profile_end(uint64_t begun, size_t bytes, int is_of_all);

/* --- Symmetric memory that occupies none before it is used, for blocks of which each PE uses its own part.
 *
 * reserve: as shmem_align, but the block reads as zero, and what was never part of another block is taken from the
 * machine when it is used first: a page of 4 KiB at a time, by a load, a store, or an operation of another PE. The
 * kernel then kills a process for which there is no memory, so a program that may come near to the limit takes a range
 * before it is used. Collective; NULL on all PEs if the symmetric heap has no room. shmem_free frees the block.
 * shmem_realloc makes it one of shmem_malloc, all of which is taken. A core file has of it what its PE took. Where a
 * bridge pins the memory of hosts, all of it is taken when the job starts, and stays so.
 *
 * take: takes the pages of `bytes` from `start`, a symmetric address, at PE `pe` of the job; at the calling PE also of
 * writable private memory, such as mmap gives. What they contain stays, and others may use them meanwhile. Returns 0,
 * at once if all are taken already; ENOMEM if that PE's machine, or a control group of it, would have less than 64 MiB
 * left, and then pages may have been taken in part; or another errno that the kernel gave. Any thread, also in a signal
 * handler that interrupted no routine of OpenSHMEM.
 *
 * heap_limit: the bytes that the symmetric heap of each PE has at most, those of blocks in use included: the same on
 * all PEs (SHMEM_SYMMETRIC_SIZE). Any thread. */
void *shmemx_reserve(size_t alignment, size_t size);
int shmemx_take(void *start, size_t bytes, int pe);
size_t shmemx_heap_limit(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
