/* SPDX-License-Identifier: BSD-3-Clause */
/* job.h - the library's process state, and the translation from a user's pointer to a segment offset.
 *
 * The specification's API has no library handle, so each process has one struct quoit_job. It is zero before
 * shmem_init: fast.pe_count 0 makes every PE number invalid, so one comparison on the hot path also detects use before
 * init; the slow path then reports it.
 *
 * Regions: the symmetric heap (only the part grown so far), the program's data segments and those of its libraries. A
 * symmetric address lies in one of them; its segment offset is the same on all PEs.
 *
 * Threads: set-up and finalize run on one thread; afterwards any thread reads, and fields that change name their
 * writer.
 */
#ifndef QUOIT_SHMEM_JOB_H
#define QUOIT_SHMEM_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/boot.h"
#include "coll/coll.h"
#include "env/room.h"
#include "fabric/fabric.h"
#include "heap/heap.h"
#include "local/data_segment.h"

/* Access to one PE of this host. */
struct quoit_reach {
    intptr_t shift[2]; /* by quoit_half(): offset from an object of this PE to this process's mapping of the other PE's
                        */
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

/* Everything that the fast path (fast.h) reads, in one cache line. Zero unless RUNNING, and also zero under --check,
 * --trace, --profile and a forced --path, which disable the fast path. */
struct quoit_fast {
    _Alignas(64) uint32_t first_pe; /* of this host, with */
    uint32_t pe_count;              /* that many PEs */
    struct quoit_reach *reaches;    /* [pe_count] */
    /* By quoit_half(), for the region in that half of the address space: the heap in one, the program's variables in
     * the other; a further part of them, and variables of libraries, take the slow path. */
    uintptr_t base[2];
    uint64_t span[2];                    /* an element that begins within it also ends inside the region */
    struct quoit_fast_context *contexts; /* [QUOIT_CONTEXTS_MAX], by the index in the handle; NULL: none created yet */
};

/* The largest element. The last bytes of a region, too few for an element of this size, take the slow path. */
#define QUOIT_FAST_ELEMENT_BYTES 16

/* One bit of an address selects its region, so one comparison serves both. */
#define QUOIT_HALF_BIT 45
static inline size_t quoit_half(const void *address)
{
    return (uintptr_t)address >> QUOIT_HALF_BIT & 1;
}

/* A handle of a context or team has an index + 1 in this many low bits and a use count above them: see handle.h. */
#define QUOIT_HANDLE_BITS  16
#define QUOIT_CONTEXTS_MAX 1024

enum quoit_job_state { QUOIT_JOB_NEW, QUOIT_JOB_RUNNING, QUOIT_JOB_FINALIZED };

struct quoit_job {
    struct quoit_fast fast;
    struct quoit_fast counted; /* what it would be, if --profile alone disables it: see counted.h. Without contexts */
    uint32_t pe_count;         /* 0 unless RUNNING */
    uint32_t pe;
    bool counts_polls; /* see poll.h, also for the next two */
    uint32_t poll_count;
    const void *polled;    /* the word polled last, */
    uint64_t polled_value; /* and what it held */
    uint32_t vain_count;   /* polls in vain, in a row */
    uint64_t round_end_ns; /* of the last round of them; 0: another poll came after it */
    struct quoit_regions regions;
    struct quoit_fabric *fabric;
    enum quoit_job_state state;
    int thread_level;
    uint32_t init_number; /* how often this process was initialized and finalized before */
    int init_count;       /* shmem_init calls not yet matched by shmem_finalize */
    bool is_heap_in_core; /* --core */
    bool is_virtual;      /* oshrun --virtual: every operation takes the slow path, where the clock is */
    struct quoit_heap *allocator;
    uint64_t reserved_bytes;        /* by shmemx_reserve so far; 0: all memory of the heap's region is taken */
    struct quoit_room room;         /* for what shmemx_take takes */
    struct quoit_team_state *world; /* see coll.h */
    struct quoit_boot boot;
    struct quoit_paths paths;            /* chosen by the first shmem_init */
    struct quoit_ctx_slot *contexts;     /* see handle.h; NULL until the first is created */
    struct quoit_team_slot *teams;       /* likewise */
    struct quoit_set_team *sets;         /* see set.h; NULL until the first active set */
    uint64_t team_flag;                  /* above those of all teams destroyed here; see coll.h. Writer: handle.c */
    uint32_t set_epoch;                  /* of the latest active set known to this PE */
    uint64_t team_pieces;                /* reserved by splits in progress, as bits; see handle.c */
    struct quoit_audit *audit;           /* see audit.h; NULL without --check */
    struct quoit_data_segments segments; /* found by the first shmem_init */
    uint64_t warned;                     /* codes of quoit_warn, as bits */
    const char *outside_call;            /* QUOIT_JOB_ENTER while the library is not initialized
                                          */
    void *outside_from;
    _Atomic uint32_t wait_turn; /* where the next wait for any of several objects starts to look */
};

/* Hidden, so the hot path reaches it without the GOT. */
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

/* The PE of the job that is `pe` in the team of the context. A branch, since most teams are the whole job: then the PE
 * number does not depend on a load from the table. */
static inline uint32_t quoit_fast_context_pe(const struct quoit_fast_context *context, uint32_t pe)
{
    if (__builtin_expect(context->start == 0 && context->stride == 1, 1))
        return pe;
    return context->start + pe * context->stride;
}

/* The first flag of the predefined teams. */
static inline uint64_t quoit_job_first_flag(void)
{
    return (uint64_t)quoit_job.init_number << QUOIT_TEAM_FLAG_BITS;
}

/* The segment offset of a symmetric object of `bytes` at `address`. False unless it lies wholly in one region. */
static inline bool quoit_job_locate(const void *address, size_t bytes, uint64_t *offset_out)
{
    return quoit_regions_locate(&quoit_job.regions, address, bytes, offset_out);
}

/* The address of a variable of the program in the program's file, as symbols have it; 0: it is none. */
static inline uint64_t quoit_job_file_address(const void *address)
{
    const struct quoit_data_segments *segments = &quoit_job.segments;
    for (uint32_t i = 0; i < segments->program_count; i++)
        if ((uintptr_t)address - (uintptr_t)segments->list[i].base < segments->list[i].bytes)
            return (uintptr_t)address - segments->load_base;
    return 0;
}

/* On entry to every routine that may wait or find a mistake: records the routine and the calling line for messages.
 * Used in the routine itself, because it takes the return address. */
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

/* Set-up and finalize, called by shmem_init and shmem_finalize (init.c). */
void quoit_job_start(int thread_level);
void quoit_job_finish(bool is_exit); /* is_exit: exit with status 0 instead of shmem_finalize */
/* Updates the fast path after a change of heap or data. */
void quoit_job_regions_changed(void);

#endif
