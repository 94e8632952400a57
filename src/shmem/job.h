/* SPDX-License-Identifier: BSD-3-Clause */
/* job.h - the library's one piece of process state, and the way from a user's pointer to a segment offset.
 *
 * The API of the specification has no handle, so each process has one struct quoit_job. It is zero before shmem_init:
 * fast.pe_count 0 makes every PE number invalid, so that one comparison on the hot path also finds use before init; the
 * slow path then says what it was.
 *
 * Regions: the symmetric heap (grown part only), the program's data segment and those of its libraries. A symmetric
 * address lies in one of them; its segment offset is the same on all PEs.
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

/* The way to one PE of the own host. */
struct quoit_reach {
    intptr_t shift[2]; /* by quoit_half(): from an object of this PE to where the other's is mapped here */
    struct quoit_park *park;
    char *segment;
};

/* What every operation needs of a context that the program made. Writer: the thread that makes or destroys it. */
struct quoit_fast_context {
    uintptr_t handle; /* 0: free */
    struct quoit_context *context;
    uint32_t start; /* the PEs of its team: start + i * stride, i < size */
    uint32_t stride;
    uint32_t size;
};

/* All that the fast way (fast.h) looks at, in one cache line. All zero unless RUNNING, but also under --check, --trace
 * and a forced --path: nothing may take the fast way then. */
struct quoit_fast {
    _Alignas(64) uint32_t first_pe; /* of the own host, */
    uint32_t pe_count;              /* and how many PEs it has */
    struct quoit_reach *reaches;    /* [pe_count] */
    /* By quoit_half(), of the region that lies in that half of the address space: the heap in one, the program's
     * variables in the other; those of libraries have the slow way. */
    uintptr_t base[2];
    uint64_t span[2];                    /* an element that begins within it ends inside of the region, too */
    struct quoit_fast_context *contexts; /* [QUOIT_CONTEXTS_MAX], by the index in the handle; NULL: none was made */
};

/* The largest element. The last bytes of a region, that one of this size does not leave free, have only the slow way.
 */
#define QUOIT_FAST_ELEMENT_BYTES 16

/* One bit of an address tells which region it can lie in, so that there is one comparison for both. */
#define QUOIT_HALF_BIT 45
static inline size_t quoit_half(const void *address)
{
    return (uintptr_t)address >> QUOIT_HALF_BIT & 1;
}

/* A handle of a context or team is an index + 1 in so many low bits, and a generation: see handle.h. */
#define QUOIT_HANDLE_BITS  16
#define QUOIT_CONTEXTS_MAX 1024

enum quoit_job_state { QUOIT_JOB_NEW, QUOIT_JOB_RUNNING, QUOIT_JOB_FINALIZED };

struct quoit_job {
    struct quoit_fast fast;
    uint32_t pe_count; /* 0 unless RUNNING */
    uint32_t pe;
    bool counts_polls; /* see poll.h, as for the next two */
    uint32_t poll_count;
    const void *polled;       /* the last word that was looked at */
    struct quoit_region heap; /* bytes: how far it has grown */
    struct quoit_region data; /* of the program */
    struct quoit_fabric *fabric;
    enum quoit_job_state state;
    int thread_level;
    uint32_t life;        /* how often the process was a PE before */
    int init_count;       /* shmem_init calls that no shmem_finalize has undone */
    bool is_heap_in_core; /* --core */
    struct quoit_heap *allocator;
    struct quoit_team_state *world; /* see coll.h */
    struct quoit_boot boot;
    struct quoit_paths paths;            /* chosen by the first shmem_init */
    struct quoit_ctx_slot *contexts;     /* see handle.h; NULL until the first is made */
    struct quoit_team_slot *teams;       /* likewise */
    struct quoit_set_team *sets;         /* see set.h; NULL until the first active set */
    uint64_t team_flag;                  /* above those of all teams deleted here; see coll.h. By handle.c */
    uint32_t set_epoch;                  /* of the youngest active set this PE knows of */
    uint64_t team_pieces;                /* taken by splits that are under way, as bits; see handle.c */
    struct quoit_audit *audit;           /* see audit.h; NULL without --check */
    struct quoit_data_segments segments; /* found by the first shmem_init */
    uint32_t library_count;
    struct quoit_region libraries[QUOIT_DATA_SEGMENTS_MAX - 1]; /* their data segments */
    const char *outside_call;                                   /* QUOIT_JOB_ENTER while the library does not run */
    void *outside_from;
    _Atomic uint32_t wait_turn; /* where the next wait for any of several objects begins to look */
};

/* Hidden, so that the hot path reaches it without a detour through the loader's tables. */
extern struct quoit_job quoit_job __attribute__((visibility("hidden")));

/* NULL: `handle` is of no context that the program made and has not destroyed. */
static inline const struct quoit_fast_context *quoit_job_context(uintptr_t handle)
{
    const struct quoit_fast_context *contexts = quoit_job.fast.contexts;
    uintptr_t index = (handle & ((1u << QUOIT_HANDLE_BITS) - 1)) - 1;
    if (__builtin_expect(!contexts || index >= QUOIT_CONTEXTS_MAX || contexts[index].handle != handle, 0))
        return NULL;
    return &contexts[index];
}

/* The PE of the job that is `pe` in the team of the context. A branch, since most teams are the whole job: whoever
 * needs the number then does not wait for the table. */
static inline uint32_t quoit_fast_context_pe(const struct quoit_fast_context *context, uint32_t pe)
{
    if (__builtin_expect(context->start == 0 && context->stride == 1, 1))
        return pe;
    return context->start + pe * context->stride;
}

/* Of the predefined teams. */
static inline uint64_t quoit_job_first_flag(void)
{
    return (uint64_t)quoit_job.life << QUOIT_TEAM_FLAG_BITS;
}

static inline bool quoit_region_has(const struct quoit_region *region, const void *address, size_t bytes,
                                    uint64_t *offset_out)
{
    uint64_t at = (uintptr_t)address - region->base;
    *offset_out = region->segment_offset + at;
    return at < region->bytes && bytes <= region->bytes - at;
}

/* The segment offset of a symmetric object of `bytes` at `address`. False if it does not lie wholly in one region. */
static inline bool quoit_job_locate(const void *address, size_t bytes, uint64_t *offset_out)
{
    if (quoit_region_has(&quoit_job.heap, address, bytes, offset_out) ||
        quoit_region_has(&quoit_job.data, address, bytes, offset_out))
        return true;
    for (uint32_t i = 0; i < quoit_job.library_count; i++)
        if (quoit_region_has(&quoit_job.libraries[i], address, bytes, offset_out))
            return true;
    return false;
}

/* At the entry of every routine that may wait or find a mistake: what messages name, and the line that called it. In
 * the routine itself, since it takes the return address. */
#define QUOIT_JOB_ENTER(name)                                                                                          \
    do {                                                                                                               \
        if (quoit_job.fabric) {                                                                                        \
            /* Threads overwrite one another's, but never with half a value. */                                        \
            __atomic_store_n(&quoit_job.fabric->self.call, (name), __ATOMIC_RELAXED);                                  \
            __atomic_store_n(&quoit_job.fabric->self.call_from, __builtin_return_address(0), __ATOMIC_RELAXED);        \
        } else {                                                                                                       \
            quoit_job.outside_call = (name);                                                                           \
            quoit_job.outside_from = __builtin_return_address(0);                                                      \
        }                                                                                                              \
    } while (0)

/* Set up and torn down by shmem_init and shmem_finalize (init.c). */
void quoit_job_start(int thread_level);
void quoit_job_finish(bool is_exit); /* is_exit: the program did not call shmem_finalize, but exits with status 0 */
/* After a change of heap or data: the fast way knows of it. */
void quoit_job_regions_changed(void);

#endif
