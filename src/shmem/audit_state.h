/* SPDX-License-Identifier: BSD-3-Clause */
/* audit_state.h - what the audit remembers. Private to audit*.c. */
#ifndef QUOIT_SHMEM_AUDIT_STATE_H
#define QUOIT_SHMEM_AUDIT_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "shmem/audit.h"

#define QUOIT_AUDIT_CALL_BYTES 48
#define QUOIT_AUDIT_WORDS      10 /* of a note */
#define QUOIT_AUDIT_LEAK_BYTES 4096
#define QUOIT_AUDIT_SETS       32 /* active-set calls that a PE can be in at once; by a hash of pSync */

/* A block of the heap, live or freed. */
struct quoit_audit_block {
    uint64_t offset;
    uint64_t bytes;
    const char *call; /* who made it */
    uintptr_t from;
    const char *end_call; /* who freed it; NULL: live */
    uintptr_t end_from;
    uint64_t end_turn;
};

/* A variable of the program. */
struct quoit_audit_variable {
    uint64_t address;
    uint64_t bytes;
    const char *name;
};

/* What a PE says of the call that it is in: in its segment, read by the others of the team. */
struct quoit_audit_note {
    char call[QUOIT_AUDIT_CALL_BYTES];
    uint64_t from; /* return address less load address */
    uint64_t values[QUOIT_AUDIT_WORDS];
};

/* Likewise how far it is in the collectives of its teams. */
struct quoit_audit_turns {
    uint64_t counts[QUOIT_TEAM_PIECES]; /* of each piece: struct quoit_team_slot, call_count, of the team that has it */
    uint32_t piece;                     /* the team of the last, which it may be inside of */
    struct quoit_team_shape shape;
};

/* Likewise of a pSync. */
struct quoit_audit_set_note {
    struct quoit_audit_note note;
    uint64_t offset_psync; /* + 1; 0: none yet */
    uint64_t members;      /* start, stride, size folded */
    uint64_t call_count;
    uint64_t is_inside;
};

struct quoit_audit_set_count {
    uint64_t offset_psync;
    uint64_t members;
    uint64_t call_count;
};

/* At the end of the runtime region of each segment. */
struct quoit_audit_shared {
    struct quoit_audit_note notes[QUOIT_TEAM_PIECES];
    struct quoit_audit_turns turns;
    struct quoit_audit_set_note sets[QUOIT_AUDIT_SETS];
    char leaks[QUOIT_AUDIT_LEAK_BYTES]; /* lines; read by PE 0 */
};
_Static_assert(sizeof(struct quoit_audit_shared) <= QUOIT_RUNTIME_AUDIT_BYTES, "the notes have room");
#define QUOIT_AUDIT_AT (QUOIT_RUNTIME_BYTES - QUOIT_RUNTIME_AUDIT_BYTES) /* segment offset */

struct quoit_audit {
    uint64_t load_base;
    pthread_t init_thread;
    _Atomic uintptr_t thread_inside; /* SERIALIZED: who is in the library; 0: nobody */
    const char *_Atomic call_inside;
    struct quoit_audit_shared *shared_self;
    pthread_mutex_t lock;             /* of all that follows */
    struct quoit_audit_block *blocks; /* in order of offset */
    size_t block_count;
    size_t block_limit;
    size_t freed_count;
    uint64_t freed_bytes;
    uint64_t turn;                      /* of frees */
    struct quoit_audit_set_count *sets; /* every pSync and set that was used */
    size_t set_count;
    const void *symbols; /* the program's table; NULL: stripped */
    size_t symbol_count;
    const char *names;
    size_t names_bytes;
    struct quoit_audit_variable *variables; /* in order of address, without twins */
    size_t variable_count;
};

/* audit_object.c */
/* At the end: nothing was written behind a block or into a freed one. */
void quoit_audit_end_objects(void);
void quoit_audit_read_variables(struct quoit_audit *audit);
/* The program's function at an address less load address, and how far in; NULL: not known. */
const char *quoit_audit_function(uint64_t address, uint64_t *at_out);
/* What lies at an own symmetric address: "block of 64 bytes + 8" or "table + 16". */
void quoit_audit_describe(const void *address, char *text, size_t text_bytes);

#endif
