/* SPDX-License-Identifier: BSD-3-Clause */
/* audit.h - what `oshrun --check` (QUOIT_CHECK=1) finds beyond the checks that are always on: docs/check.md.
 *
 * quoit_job.audit is NULL without it; then no function below but the inline ones is called. With it,
 * quoit_job.fast.pe_count stays 0, so that every call takes the way of check.h, which asks here.
 *
 * Objects: each block of the symmetric heap and each variable in the program's symbol table, with who made it. Freed
 * blocks stay apart, filled with QUOIT_AUDIT_POISON, until so many more were freed or the heap is full; all PEs free
 * the same blocks, so they give the same ones back at the same time.
 *
 * Collectives: before each one, every PE leaves a note of its call in its segment, and compares it with the note of the
 * first PE of the team.
 *
 * Threads: any. Errors: a mistake ends the job with its message (wrong.h).
 */
#ifndef QUOIT_SHMEM_AUDIT_H
#define QUOIT_SHMEM_AUDIT_H

#include "shmem/handle.h"
#include "shmem/wrong.h"

#define QUOIT_AUDIT_POISON 0xdb
#define QUOIT_AUDIT_GUARD_BYTES                                                                                        \
    64 /* behind each block, filled with it too, so that no block ends where the next begins */
#define QUOIT_AUDIT_PLACE_BYTES 128

struct quoit_audit;

/* In shmem_init, when the PE is complete. `load_base` as in struct quoit_data_segments. */
void quoit_audit_start(uint64_t load_base);
/* After that, when the PEs may use the world: PE 0 warns if programs of the job have other variables, or at other
 * places: then a put into a variable of one hits another of the other. */
void quoit_audit_compare_programs(void);
/* In shmem_finalize, before anything is taken down: PE 0 lists what PEs did not free, on standard error. Includes a
 * sync of all PEs. */
void quoit_audit_finish(void);

/* After that, when no call can come any more. */
void quoit_audit_delete(void);

/* --- threads --- */

/* The calling thread may call, at the thread level of the job. */
void quoit_audit_thread(const char *call);
/* This thread is inside the library from here (span.h). NULL: it need not leave. */
struct quoit_audit *quoit_audit_enter(const char *call);
void quoit_audit_leave(struct quoit_audit *audit);
/* Until then nobody else may use a context that threads use by turns. */
void quoit_audit_use(struct quoit_ctx_slot *slot, const char *call);

/* --- objects --- */

/* A symmetric range lies in one object. */
void quoit_audit_object(const void *address, size_t bytes, const char *argument, const char *call);
/* The same of a range that may lie anywhere in this PE's memory, of which the audit knows the symmetric part. */
void quoit_audit_local(const void *address, size_t bytes, const char *argument, const char *call);
/* How PEs compare an address of which a PE may use no byte (a collect of nothing): its segment offset, 0 for none. */
static inline uint64_t quoit_audit_offset(const void *address)
{
    uint64_t offset;
    return quoit_job_locate(address, 1, &offset) ? offset : 0;
}
/* dest and source, both in this PE's memory, do not overlap; the same address is allowed where may_be_same. */
void quoit_audit_disjoint(const void *dest, size_t dest_bytes, const void *source, size_t source_bytes,
                          bool may_be_same, const char *call);
/* The same of arrays with strides, in elements; arrays of one stride may lie between each other. */
void quoit_audit_disjoint_strided(const void *dest, size_t dest_bytes, ptrdiff_t dst, const void *source,
                                  size_t source_bytes, ptrdiff_t sst, size_t element_bytes, const char *call);
/* A block was made, or has another size; the guard behind it is the allocator's too. */
void quoit_audit_taken(uint64_t offset, uint64_t bytes, const char *call);
void quoit_audit_resized(uint64_t offset, uint64_t bytes);
/* A block is to be freed or resized: it was not freed before. Heap offset. */
void quoit_audit_is_live(uint64_t offset, const char *call);
/* A block was freed: from now on the audit keeps it, and gives it back to the allocator. */
void quoit_audit_given(uint64_t offset, const char *call);
/* The heap is full: gives back all freed blocks. False if there are none. */
bool quoit_audit_reclaim(const char *call);

/* --- collectives --- */

enum quoit_audit_kind {
    QUOIT_AUDIT_NUMBER,
    QUOIT_AUDIT_OFFSET, /* a segment offset, shown as an address */
    QUOIT_AUDIT_OWN,    /* a number that may be another on each PE */
};

struct quoit_audit_argument {
    const char *name;
    uint64_t value;
    enum quoit_audit_kind kind;
};

/* All members of the team are in the same call with the same arguments, which are listed, {0} if it has none. Includes
 * syncs of the team. Returns the sum over the members of the argument that is OWN, if there is one. */
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
    uint32_t come_word; /* of pSync, in which `sync` notes who has come */
};

/* Before the call: pSync is free on all members. `sync` makes all members meet. Then as collectives of teams. */
uint64_t quoit_audit_set_begin(const struct quoit_audit_set *set, const char *call,
                               const struct quoit_audit_argument *arguments, void (*sync)(void *arg), void *sync_arg);
void quoit_audit_set_end(uint64_t offset_psync);

/* --- texts --- */

/* " (heat.c:12)" for a return address, "" if it is 0. */
const char *quoit_audit_place(uintptr_t from, char text[QUOIT_AUDIT_PLACE_BYTES]);
/* The return address of the API routine last entered. */
uintptr_t quoit_audit_from(void);

#endif
