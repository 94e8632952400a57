/* SPDX-License-Identifier: BSD-3-Clause */
/* audit_state.h - the audit's state. Private to audit*.c. */
#ifndef QUOIT_SHMEM_AUDIT_STATE_H
#define QUOIT_SHMEM_AUDIT_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "env/symbols.h"
#include "shmem/audit.h"

#define QUOIT_AUDIT_CALL_BYTES 48
#define QUOIT_AUDIT_WORDS      10 /* arguments in a note */
#define QUOIT_AUDIT_LEAK_BYTES 4096
#define QUOIT_AUDIT_SETS       32 /* concurrent active-set calls of a PE; indexed by a hash of pSync */

/* A block of the heap, live or freed. */
struct quoit_audit_block {
    uint64_t offset; /* first, for quoit_bisect(), as the address of a variable */
    uint64_t bytes;
    const char *call; /* the routine that allocated it */
    uintptr_t from;
    const char *end_call; /* the routine that freed it; NULL: live */
    uintptr_t end_from;
    uint64_t end_turn;
};

/* A variable of the program. */
struct quoit_audit_variable {
    uint64_t address;
    uint64_t bytes;
    const char *name; /* in the table of symbols */
};

/* The call that a PE is in. In the PE's segment; read by the other members of the team. */
struct quoit_audit_note {
    char call[QUOIT_AUDIT_CALL_BYTES];
    uint64_t from; /* return address relative to the load address */
    uint64_t values[QUOIT_AUDIT_WORDS];
};

/* A PE's progress in the collectives of its teams. In its segment too. */
struct quoit_audit_turns {
    uint64_t counts[QUOIT_TEAM_PIECES]; /* by piece: call_count of the team that owns it (struct quoit_team_slot) */
    uint32_t piece;                     /* the team of the last collective, which it may be inside of */
    struct quoit_team_range range;
};

/* The state of a pSync. In the PE's segment too. */
struct quoit_audit_set_note {
    struct quoit_audit_note note;
    uint64_t offset_psync; /* + 1; 0: none yet */
    uint64_t members;      /* hash of start, stride, size */
    uint64_t call_count;
    uint64_t is_inside;
};

struct quoit_audit_set_count {
    uint64_t offset_psync;
    uint64_t members;
    uint64_t call_count;
};

/* At QUOIT_RUNTIME_AUDIT_AT of each segment. */
struct quoit_audit_shared {
    struct quoit_audit_note notes[QUOIT_TEAM_PIECES];
    struct quoit_audit_turns turns;
    struct quoit_audit_set_note sets[QUOIT_AUDIT_SETS];
    char leaks[QUOIT_AUDIT_LEAK_BYTES]; /* lines; read by PE 0 */
};
_Static_assert(sizeof(struct quoit_audit_shared) <= QUOIT_RUNTIME_AUDIT_BYTES, "the notes have room");

struct quoit_audit {
    uint64_t load_base;
    pthread_t init_thread;
    _Atomic uintptr_t thread_inside; /* SERIALIZED: the thread inside the library; 0: none */
    const char *_Atomic call_inside;
    struct quoit_audit_shared *shared_self;
    pthread_mutex_t lock;             /* protects everything below */
    struct quoit_audit_block *blocks; /* in order of offset */
    size_t block_count;
    size_t block_limit;
    size_t freed_count;
    uint64_t freed_bytes;
    uint64_t turn;                      /* counts frees */
    struct quoit_audit_set_count *sets; /* every pair of pSync and set that was used */
    size_t set_count;
    struct quoit_symbols symbols;           /* the program's */
    struct quoit_audit_variable *variables; /* in order of address, without duplicates */
    size_t variable_count;
};

/* audit_object.c */
/* Final check: nothing was written behind a block or into a freed one. */
void quoit_audit_end_objects(void);
void quoit_audit_read_variables(struct quoit_audit *audit);
/* Describes a symmetric address of this PE: "0x300000000048 (block of 64 bytes + 8)"; an address of a variable alone,
 * since a message has its name anyway (wrong.h). */
void quoit_audit_describe(const void *address, char *text, size_t text_bytes);

#endif
