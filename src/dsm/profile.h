/* SPDX-License-Identifier: BSD-3-Clause */
/* profile.h - rows of `oshrun --profile`: a routine of dsm.h, or a fault, by the line of the program, with the bytes of
 * the pages that came meanwhile. The calls of OpenSHMEM in it are part of it. Without a profile, and with another
 * library than Quoit's, nothing is recorded. */
#ifndef QUOIT_DSM_PROFILE_H
#define QUOIT_DSM_PROFILE_H

#include <stdbool.h>

#include "dsm/state.h"

#ifdef QUOIT_SHMEM_H
#include <shmemx.h>
#else
static inline uint64_t shmemx_profile_begin(const char *routine, const void *from)
{
    (void)routine, (void)from;
    return 0;
}
static inline void shmemx_profile_end(uint64_t begun, size_t bytes, int is_of_all)
{
    (void)begun, (void)bytes, (void)is_of_all;
}
#endif

/* Of the calling thread: bytes of pages that it has fetched or brought up to date. */
extern _Thread_local uint64_t quoit_dsm_came_bytes __attribute__((tls_model("initial-exec")));

struct quoit_dsm_row {
    uint64_t begun;
    uint64_t came_bytes; /* before */
    bool is_of_all;
};

/* `from`: the address behind the call; NULL: unknown. A routine of NULL is not counted, nor is what it calls. */
static inline struct quoit_dsm_row quoit_dsm_row_begin(const char *routine, const void *from, bool is_of_all)
{
    return (struct quoit_dsm_row){shmemx_profile_begin(routine, from), quoit_dsm_came_bytes, is_of_all};
}
static inline void quoit_dsm_row_end(const struct quoit_dsm_row *call)
{
    if (__builtin_expect(call->begun != 0, 0))
        shmemx_profile_end(call->begun, quoit_dsm_came_bytes - call->came_bytes, call->is_of_all);
}

/* From here to the end of the block this thread is in a routine of dsm.h; the library runs then. _OF_ALL: each PE calls
 * it, in the same order as others of the kind. */
#define QUOIT_DSM_CALL_BY(routine, is_of_all)                                                                          \
    quoit_dsm_running(routine);                                                                                        \
    __attribute__((cleanup(quoit_dsm_row_end), unused)) const struct quoit_dsm_row routine_call =                      \
        quoit_dsm_row_begin(routine, __builtin_return_address(0), is_of_all)
#define QUOIT_DSM_CALL(routine)        QUOIT_DSM_CALL_BY(routine, false)
#define QUOIT_DSM_CALL_OF_ALL(routine) QUOIT_DSM_CALL_BY(routine, true)

#endif
