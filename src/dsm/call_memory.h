/* SPDX-License-Identifier: BSD-3-Clause */
/* call_memory.h - private memory that stands in for shared memory during a system call.
 *
 * Bytes are copied by loads and stores, which fault as those of the program do; so the library's lock is not held.
 * Threads: any. A thread that is cancelled in the call, or leaves it by a jump, loses its stand-in. */
#ifndef QUOIT_DSM_CALL_MEMORY_H
#define QUOIT_DSM_CALL_MEMORY_H

#include "dsm/state.h"

#define QUOIT_DSM_MOVE_BYTES    0x7ffff000ull  /* the kernel moves no more bytes in a call (MAX_RW_COUNT) */
#define QUOIT_DSM_SPARE_BYTES   (256ull << 10) /* private memory that is kept for the next call */
#define QUOIT_DSM_STREAM_BYTES  (1ull << 20)   /* most that is copied for a stream that may take less */
#define QUOIT_DSM_STAND_IN_PAGE 4096           /* of the kernel; what is touched of an argument of unknown size */

struct quoit_dsm_stand_in {
    char *start; /* NULL: there is no memory */
    uint64_t bytes;
};

/* How many bytes from an address on are shared, at most as many as asked for; 0: the address is private. */
uint64_t quoit_dsm_shared_bytes(const struct quoit_dsm *dsm, const void *address, uint64_t bytes);

/* Whether the kernel may find a page of shared memory without access. */
bool quoit_dsm_stand_in_needed(const struct quoit_dsm *dsm, const void *address, uint64_t bytes);
struct quoit_dsm_stand_in quoit_dsm_stand_in_take(struct quoit_dsm *dsm, uint64_t bytes);
void quoit_dsm_stand_in_end(struct quoit_dsm *dsm, struct quoit_dsm_stand_in memory);
/* How large it must be at least, by the flags of a call on a socket. */
uint64_t quoit_dsm_stand_in_least(uint64_t flags);
/* Where, behind `at`, the bytes of an address get their place. */
uint64_t quoit_dsm_stand_in_place(uint64_t at, uint64_t address, uint64_t bytes);

/* Ends with the library: returns what is kept between calls. */
void quoit_dsm_stand_in_stop(struct quoit_dsm *dsm);

/* Accesses each page of an argument as the call will. A store leaves the byte as it is, in case others write it. */
void quoit_dsm_call_touch(const struct quoit_dsm *dsm, uint64_t address, bool is_store);

/* Whether a call may move less than there is because its stream has no room, so that it will come again. */
bool quoit_dsm_call_takes_part(int fd, uint64_t flags);

/* Reports a call that failed with EFAULT: once for each kind. */
void quoit_dsm_call_complain(struct quoit_dsm *dsm, long number, const char *name, const void *address);

/* The call. A thread that handles one is not cancelled (it may hold the library's lock), but while the kernel has it it
 * is as it was before: cancel_type, of pthread_setcanceltype. Deferred afterwards. */
long quoit_dsm_call_now(long number, const uint64_t arguments[6], int cancel_type);

#endif
