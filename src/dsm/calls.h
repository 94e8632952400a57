/* SPDX-License-Identifier: BSD-3-Clause */
/* calls.h - system calls whose buffers are in shared memory.
 *
 * The kernel does not take the faults by which pages come: a call whose buffer has a page without access fails with
 * EFAULT. So a filter (seccomp) stops calls of the C library with a pointer into shared memory, by a SIGSYS in the
 * thread that makes them, and the handler makes the call with private memory in place of the shared memory. It copies
 * by loads and stores, which fault as those of the program do: nothing here depends on protocol or detector, and
 * exactly the bytes that the call moved are stored.
 *
 * Only the C library's instructions are looked at. What libshmem calls by itself runs under its locks, where no page
 * can be fetched; see env/raw_call.h. The filter stays in programs that the process executes, whose C library is
 * at another address.
 *
 * Calls whose buffers are named by a vector in memory are functions of the library: see call_vectors.c.
 *
 * Threads: any. One that waits in a stopped call can be cancelled there, but with glibc since 2.41, which cancels at
 * its own instructions alone, only once the call ends. Errors are those of the system calls. */
#ifndef QUOIT_DSM_CALLS_H
#define QUOIT_DSM_CALLS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct quoit_dsm;

/* What of a call's arguments is memory, and what is done about it. */
enum quoit_dsm_call_kind {
    QUOIT_DSM_CALL_OUT,       /* fills a buffer; returns how many bytes of it */
    QUOIT_DSM_CALL_IN,        /* reads a buffer */
    QUOIT_DSM_CALL_TOUCH_OUT, /* its pages are made accessible before it; it may store there */
    QUOIT_DSM_CALL_TOUCH_IN   /* and only loads */
};

struct quoit_dsm_call {
    uint16_t number;
    uint8_t kind;
    uint8_t pointers;       /* arguments that are addresses, a bit each */
    uint8_t buffer, length; /* arguments of OUT and IN */
    const char *name;
};

/* The calls that are looked at, the frequent ones first; others pass. */
extern const struct quoit_dsm_call quoit_dsm_calls[];
extern const size_t quoit_dsm_call_count;

const struct quoit_dsm_call *quoit_dsm_call_find(long number);

/* Addresses from start on, to end. */
struct quoit_dsm_call_range {
    uint64_t start, end;
};

/* Filters the calls of all threads with addresses in these ranges. A filter cannot be removed: filtered are the ranges
 * of the one that this process has already, initially empty. False, with errno, if the kernel refuses. */
bool quoit_dsm_call_filter_start(struct quoit_dsm_call_range filtered[2], const struct quoit_dsm_call_range ranges[2]);

/* Whether a SIGSYS is of that filter. */
bool quoit_dsm_call_is_ours(const siginfo_t *info);

/* Makes a call that was stopped: returns what the kernel returns, -errno for an error. dsm is NULL where the library
 * does not run. */
long quoit_dsm_call_serve(struct quoit_dsm *dsm, long number, const uint64_t arguments[6]);

#endif
