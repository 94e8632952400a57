/* SPDX-License-Identifier: BSD-3-Clause */
/* handle.h - contexts and teams behind their handles.
 *
 * A handle holds index + 1 in its low QUOIT_HANDLE_BITS bits and, above them, the slot's use count, so a handle used
 * after its destruction is detected. Context slot 0 is the default context; team slots 0 and 1 are SHMEM_TEAM_WORLD and
 * SHMEM_TEAM_SHARED. A PE can be in QUOIT_TEAM_PIECES - 2 = 61 other teams at once; a split that finds no workspace
 * free on all its members fails on all of them.
 *
 * Ownership: the slots belong to this file; pointers to them are valid until the object is destroyed.
 * Threads: any; creation and destruction are serialized internally. Errors: an invalid handle ends the job.
 */
#ifndef QUOIT_SHMEM_HANDLE_H
#define QUOIT_SHMEM_HANDLE_H

#include "shmem/api.h"

#define QUOIT_TEAMS_MAX 256

struct quoit_team_slot {
    struct quoit_team_state *state; /* NULL: free, or SHARED before its first use */
    struct quoit_team_range range;
    uint32_t piece;
    uint32_t use_count;
    uint32_t rank; /* of this PE */
    shmem_team_config_t config;
    const char *made_by; /* routine and place that created it; NULL: predefined or free. For --check */
    uintptr_t made_from;
    uintptr_t ended_from; /* where the slot's previous team was destroyed */
    uint64_t call_count;  /* collectives, counted alike by all members, above those of earlier teams. For --check */
};

struct quoit_ctx_slot {
    struct quoit_context context;
    const struct quoit_team_slot *team; /* NULL: free */
    shmem_team_t team_handle;
    uint32_t use_count;
    long options;
    uint64_t owner;        /* the thread that created it. This and the rest: for --check */
    _Atomic uint64_t user; /* SERIALIZED: the thread inside a routine with it; 0: none */
    const char *_Atomic user_call;
    const char *made_by;
    uintptr_t made_from;
    uintptr_t ended_from; /* where the slot's previous context was destroyed */
};

/* The context of a handle. quoit_ctx_reach also checks *pe_inout and translates it from the context's team to the
 * world. */
struct quoit_context *quoit_ctx_of(shmem_ctx_t ctx, const char *call);
struct quoit_context *quoit_ctx_reach(shmem_ctx_t ctx, int *pe_inout, const char *call);
/* The number of PEs in the context's team. */
uint32_t quoit_ctx_pe_count(shmem_ctx_t ctx, const char *call);

/* The team of a handle. SHMEM_TEAM_INVALID is a mistake here. */
struct quoit_team_slot *quoit_team_of(shmem_team_t team, const char *call);
/* The same, with the team's state for collectives created. */
struct quoit_team_slot *quoit_team_for_collective(shmem_team_t team, const char *call);

/* The world's number of the team's PE `rank`. */
static inline uint32_t quoit_team_pe(const struct quoit_team_slot *team, uint32_t rank)
{
    return team->range.start + rank * team->range.stride;
}

/* Part of finalize: quiet completes all contexts, those of teams too, end releases contexts and teams. */
void quoit_handles_quiet(void);
void quoit_handles_end(void);

#endif
