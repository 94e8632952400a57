/* SPDX-License-Identifier: BSD-3-Clause */
/* wrong.h - the user's mistakes: each ends the job with one message of the form
 *   ROUTINE: ARGUMENT is VALUE, but WHAT IS ALLOWED [Q01nn]
 *
 * The codes are stable and explained in docs/messages, by quoit explain. Only quoit_warn returns, and no function is on
 * a hot path. `call` and `argument` are string literals. Any thread.
 */
#ifndef QUOIT_SHMEM_WRONG_H
#define QUOIT_SHMEM_WRONG_H

#include <stddef.h>

enum quoit_wrong {
    QUOIT_WRONG_BEFORE_INIT = 101,
    QUOIT_WRONG_ADDRESS = 102,
    QUOIT_WRONG_AFTER_FINALIZE = 103,
    QUOIT_WRONG_PE = 104,
    QUOIT_WRONG_NULL = 105,
    QUOIT_WRONG_COUNT = 106,
    QUOIT_WRONG_STRIDE = 107,
    QUOIT_WRONG_CHOICE = 108, /* an operator or option that does not exist */
    QUOIT_WRONG_ALIGNMENT = 109,
    QUOIT_WRONG_CONTEXT = 110,
    QUOIT_WRONG_TEAM = 111,
    QUOIT_WRONG_BLOCK = 112,      /* a free of what is not a block */
    QUOIT_WRONG_COLLECTIVE = 113, /* PEs called a collective with different arguments */
    QUOIT_WRONG_LOCK = 114,
    QUOIT_WRONG_ACTIVE_SET = 115,
    QUOIT_WRONG_OVERLAP = 119,
    /* only under --check: */
    QUOIT_WRONG_OBJECT = 116, /* past the end of an object */
    QUOIT_WRONG_FREED = 117,
    QUOIT_WRONG_THREAD = 118,
    QUOIT_WRONG_PSYNC = 120,
    /* not a mistake of the program: */
    QUOIT_WRONG_MEMORY = 122,
};

__attribute__((noreturn, cold, format(printf, 3, 4))) void quoit_wrong(enum quoit_wrong code, const char *call,
                                                                       const char *format, ...);
/* A mistake that the routine tolerates: a line of PE 0, the first time in this process. Only in collective calls, in
 * which all PEs make it. */
__attribute__((cold, format(printf, 3, 4))) void quoit_warn(enum quoit_wrong code, const char *call, const char *format,
                                                            ...);
/* The routine was called while the library is not initialized. */
__attribute__((noreturn, cold)) void quoit_wrong_state(const char *call);
/* `pe` is not in 0..pe_count-1 of `of_what` ("the team", ...; NULL: the job). */
__attribute__((noreturn, cold)) void quoit_wrong_pe(const char *call, const char *argument, int pe, unsigned pe_count,
                                                    const char *of_what);
/* dest and source overlap. */
__attribute__((noreturn, cold)) void quoit_wrong_overlap(const char *call, const void *dest, size_t dest_bytes,
                                                         const void *source, size_t source_bytes, int may_be_same);
/* `bytes` at `address` are not wholly in the symmetric heap or the program's variables; the message guesses what they
 * are. */
__attribute__((noreturn, cold)) void quoit_wrong_address(const char *call, const char *argument, const void *address,
                                                         size_t bytes);

#endif
