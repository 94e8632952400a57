/* SPDX-License-Identifier: BSD-3-Clause */
/* audit.h - what `oshrun --check` (QUOIT_CHECK=1) finds beyond the checks that are always on: docs/find-a-bug.md.
 *
 * Without it quoit_job.audit is NULL, and no function below is called but the inline ones. With it,
 * quoit_job.fast.pe_count stays 0, so every call takes the slow path of check.h, which calls the audit.
 *
 * Objects: each block of the symmetric heap and each variable in the program's symbol table, with its origin. Freed
 * blocks are quarantined, filled with QUOIT_AUDIT_POISON (large ones at both ends), until enough others were freed or
 * the heap is full; all PEs free the same blocks, so they reclaim the same ones at the same time.
 *
 * Collectives: before each one, every PE publishes a note of its call in its segment and compares it with the note of
 * the team's first PE.
 *
 * Strings: `call`, `argument` and names are string literals; the audit keeps pointers to them.
 * Threads: any. Errors: a mistake ends the job with its message (wrong.h).
 */
#ifndef QUOIT_SHMEM_AUDIT_H
#define QUOIT_SHMEM_AUDIT_H

#include "shmem/handle.h"
#include "shmem/wrong.h"

#define QUOIT_AUDIT_POISON      0xdb
#define QUOIT_AUDIT_GUARD_BYTES 64 /* behind each block, also poisoned, so that no block ends where the next begins */
#define QUOIT_AUDIT_PLACE_BYTES 128

struct quoit_audit;

/* Called in shmem_init once the PE is complete. `load_base` as in struct quoit_data_segments. */
void quoit_audit_start(uint64_t load_base);
/* Called after that, when the PEs may communicate: PE 0 warns if programs of the job have different variables, or have
 * them at different addresses, so that a put to a variable of one hits another variable of the other. */
void quoit_audit_compare_programs(void);
/* Called in shmem_finalize before anything is released: PE 0 lists on standard error what PEs did not free. Includes a
 * sync of all PEs. */
void quoit_audit_finish(void);

/* Frees the audit, when no further call can come. */
void quoit_audit_delete(void);

/* --- threads --- */

/* Checks that the calling thread may call, at the job's thread level. */
void quoit_audit_thread(const char *call);
/* enter marks this thread as inside the library (span.h) and returns what leave needs; NULL: no leave. */
struct quoit_audit *quoit_audit_enter(const char *call);
void quoit_audit_leave(struct quoit_audit *audit);
/* Until that leave, no other thread may use a SERIALIZED context. */
void quoit_audit_use(struct quoit_ctx_slot *slot, const char *call);

/* --- objects --- */

/* Checks that a symmetric range lies in one object. */
void quoit_audit_object(const void *address, size_t bytes, const char *argument, const char *call);
/* The same for a range anywhere in this PE's memory; only its symmetric part can be checked. */
void quoit_audit_local(const void *address, size_t bytes, const char *argument, const char *call);
/* The value by which PEs compare an address that may be invalid on one of them (a collect of nothing): its segment
 * offset, 0 for none. */
static inline uint64_t quoit_audit_offset(const void *address)
{
    uint64_t offset;
    return quoit_job_locate(address, 1, &offset) ? offset : 0;
}
/* Records a new block, or a block's new size; the guard behind it is part of the allocator's block. */
void quoit_audit_taken(uint64_t offset, uint64_t bytes, const char *call);
void quoit_audit_resized(uint64_t offset, uint64_t bytes);
/* Checks that a block about to be freed or resized was not freed before. Heap offset. */
void quoit_audit_is_live(uint64_t offset, const char *call);
/* Records a freed block: the audit quarantines it and later returns it to the allocator. */
void quoit_audit_given(uint64_t offset, const char *call);
/* Called when the heap is full: returns all quarantined blocks to the allocator. False if there are none. */
bool quoit_audit_reclaim(const char *call);

/* --- collectives --- */

enum quoit_audit_kind {
    QUOIT_AUDIT_NUMBER,
    QUOIT_AUDIT_OFFSET, /* a segment offset, shown as an address */
    QUOIT_AUDIT_OWN,    /* a number that may differ between PEs */
};

struct quoit_audit_argument {
    const char *name;
    uint64_t value;
    enum quoit_audit_kind kind;
};

/* Checks that all members of the team are in the same call with the same arguments, listed and terminated by {0}.
 * Includes syncs of the team. Returns the sum over the members of the argument marked OWN, if any. */
uint64_t quoit_audit_collective(struct quoit_team_slot *team, const char *call,
                                const struct quoit_audit_argument *arguments);
#define QUOIT_AUDIT_COLLECTIVE(team, call, ...)                                                                        \
    do {                                                                                                               \
        if (__builtin_expect(quoit_job.audit != NULL, 0))                                                              \
            quoit_audit_collective(team, call, (const struct quoit_audit_argument[]){__VA_ARGS__, {0}});               \
    } while (0)

/* --- active sets --- */

struct quoit_audit_set {
    uint32_t start;
    uint32_t stride;
    uint32_t size;
    const long *psync;
    uint64_t offset_psync;
};

/* Called before the collective: checks that pSync is unused on all members, then as quoit_audit_collective(). `sync`
 * synchronises the members. */
uint64_t quoit_audit_set_begin(const struct quoit_audit_set *set, const char *call,
                               const struct quoit_audit_argument *arguments, void (*sync)(void *arg), void *sync_arg);
void quoit_audit_set_end(uint64_t offset_psync);

/* --- texts --- */

/* " (heat.c:12)" for a return address, "" if it is 0. */
const char *quoit_audit_place(uintptr_t from, char text[QUOIT_AUDIT_PLACE_BYTES]);
/* The return address of the API routine last entered. */
uintptr_t quoit_audit_from(void);

#endif
