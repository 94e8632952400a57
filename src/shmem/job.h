/* SPDX-License-Identifier: BSD-3-Clause */
/* job.h - the library's one piece of process state, and the way from a user's pointer to an area offset.
 *
 * The API of the specification has no handle, so each process has one struct quoit_job. It is zero before shmem_init:
 * fast_pe_count 0 makes every PE number invalid and both regions empty, so that one comparison on the hot path also
 * finds use before init; the slow path then says what it was.
 *
 * Regions: the symmetric heap (grown part only), the program's data segment and those of its libraries. A symmetric
 * address lies in one of them; its area offset is the same on all PEs.
 */
#ifndef QUOIT_SHMEM_JOB_H
#define QUOIT_SHMEM_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/boot.h"
#include "coll/coll.h"
#include "fabric/fabric.h"
#include "heap/heap.h"
#include "local/data_segment.h"

enum quoit_job_state { QUOIT_JOB_NEW, QUOIT_JOB_RUNNING, QUOIT_JOB_FINALIZED };

struct quoit_job {
    uint32_t fast_pe_count; /* pe_count, but 0 also under --check, --trace and a forced --path: nothing may take the
                               fast way then */
    uint32_t pe_count;      /* 0 unless RUNNING */
    uint32_t pe;
    struct quoit_region heap; /* bytes: how far it has grown */
    struct quoit_region data; /* of the program */
    struct quoit_fabric *fabric;
    enum quoit_job_state state;
    int thread_level;
    uint32_t life;  /* how often the process was a PE before */
    int init_count; /* shmem_init calls that no shmem_finalize has undone */
    struct quoit_heap *allocator;
    struct quoit_team_state *world; /* see coll.h */
    struct quoit_boot boot;
    struct quoit_paths paths;            /* chosen by the first shmem_init */
    struct quoit_ctx_slot *contexts;     /* see handle.h; NULL until the first is made */
    struct quoit_team_slot *teams;       /* likewise */
    struct quoit_set_team *sets;         /* see set.h; NULL until the first active set */
    uint64_t team_epoch;                 /* of the youngest team this PE knows of; see coll.h */
    struct quoit_audit *audit;           /* see audit.h; NULL without --check */
    struct quoit_data_segments segments; /* found by the first shmem_init */
    uint32_t library_count;
    struct quoit_region libraries[QUOIT_DATA_SEGMENTS_MAX - 1]; /* their data segments */
    _Atomic uint32_t wait_turn; /* where the next wait for any of several objects begins to look */
};

/* Hidden, so that the hot path reaches it without a detour through the loader's tables. */
extern struct quoit_job quoit_job __attribute__((visibility("hidden")));

/* The area offset of a symmetric object of `bytes` at `address`, in the heap or the program: what the fast way looks
 * at. False if it does not lie wholly in one of them. */
static inline bool quoit_job_locate(const void *address, size_t bytes, uint64_t *offset_out)
{
    uint64_t at = (uintptr_t)address - quoit_job.heap.base;
    if (__builtin_expect(at < quoit_job.heap.bytes && bytes <= quoit_job.heap.bytes - at, 1)) {
        *offset_out = quoit_job.heap.area_offset + at;
        return true;
    }
    at = (uintptr_t)address - quoit_job.data.base;
    if (at < quoit_job.data.bytes && bytes <= quoit_job.data.bytes - at) {
        *offset_out = quoit_job.data.area_offset + at;
        return true;
    }
    return false;
}

/* The same for all regions. */
static inline bool quoit_job_locate_any(const void *address, size_t bytes, uint64_t *offset_out)
{
    if (quoit_job_locate(address, bytes, offset_out))
        return true;
    for (uint32_t i = 0; i < quoit_job.library_count; i++) {
        const struct quoit_region *region = &quoit_job.libraries[i];
        uint64_t at = (uintptr_t)address - region->base;
        if (at < region->bytes && bytes <= region->bytes - at) {
            *offset_out = region->area_offset + at;
            return true;
        }
    }
    return false;
}

/* At the entry of every routine that may wait: what the messages about a waiting or crashed PE name. */
#define QUOIT_JOB_ENTER(name)                                                                                          \
    do {                                                                                                               \
        if (quoit_job.fabric) {                                                                                        \
            /* Threads overwrite one another's, but never with half a value. */                                        \
            __atomic_store_n(&quoit_job.fabric->call, (name), __ATOMIC_RELAXED);                                       \
            __atomic_store_n(&quoit_job.fabric->call_from, __builtin_return_address(0), __ATOMIC_RELAXED);             \
        }                                                                                                              \
    } while (0)

/* Set up and torn down by shmem_init and shmem_finalize (init.c). */
void quoit_job_start(int thread_level);
void quoit_job_finish(void);

#endif
