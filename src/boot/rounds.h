/* SPDX-License-Identifier: BSD-3-Clause */
/* rounds.h - decides, from what is seen of all hosts of a job, that its PEs wait for what can never come.
 *
 * While a PE is in shmem_finalize and others wait, the job may be ended. While none is, a job in which every PE sleeps
 * in a routine and nothing moves is reported, and goes on.
 *
 * Rounds of questions: who watches a host looks at it once in each, and all looks of a round follow all looks of the
 * round before (docs/design/stillness.md). No I/O and no clock.
 *
 *   begin -> every host: quoit_rounds_take -> end; then the next one
 *
 * Threads: one a struct quoit_rounds. Errors: none; an answer that no watcher of this version gives is refused.
 */
#ifndef QUOIT_BOOT_ROUNDS_H
#define QUOIT_BOOT_ROUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUOIT_ROUNDS_LOCKS_MAX 8u /* locks that are looked at in a round; the others wait for a later one */
#define QUOIT_ROUNDS_APART_NS  UINT64_C(1000000000) /* from the begin of one to that of the next */
#define QUOIT_ROUNDS_WARN_NS   UINT64_C(5000000000)
/* While no PE is in shmem_finalize: until a job that stands still is reported, and between rounds while it moves. */
#define QUOIT_ROUNDS_HANG_NS  UINT64_C(10000000000)
#define QUOIT_ROUNDS_MOVES_NS (2 * QUOIT_ROUNDS_APART_NS)
/* Where some PEs poll, the end: a program may give up before. */
#define QUOIT_ROUNDS_POLLS_NS UINT64_C(30000000000)
#define QUOIT_ROUNDS_NO_PE    UINT32_MAX

/* A lock for which a PE waits: what quoit_wait_desc has of it. */
struct quoit_rounds_lock {
    uint64_t offset;
    uint64_t wanted;
    uint32_t bytes;
    uint32_t keeper; /* a PE in shmem_finalize that still holds it; QUOIT_ROUNDS_NO_PE */
    uint32_t waiter; /* a PE that waits for it */
    uint32_t unused;
};

struct quoit_rounds_question {
    uint64_t round;
    uint64_t since; /* the round in which something was last seen to move */
    uint32_t lock_count;
    uint32_t is_shallow; /* only what memory shows is wanted: no PE was known to leave, and something moved */
    struct quoit_rounds_lock locks[QUOIT_ROUNDS_LOCKS_MAX];
};

/* Of a host. */
struct quoit_rounds_answer {
    uint64_t round;
    uint64_t digest;   /* changes when a PE has moved; 0: one is at work, stopped, or has ended */
    uint64_t traffic;  /* changes when the host sends or fetches something */
    uint8_t has_polls; /* some PE polls in vain */
    /* Since question.since each PE was seen asleep, or polling, with nothing under way, and the proxy asleep. */
    uint8_t is_at_rest;
    uint8_t is_threaded; /* the process of some PE has a second thread, which might end a wait */
    uint8_t is_woken;    /* a signal handler or a child process of some PE might */
    uint8_t unused[4];
    uint32_t leaving_count; /* PEs in shmem_finalize */
    uint32_t leaver;        /* the lowest of them; QUOIT_ROUNDS_NO_PE */
    uint32_t lock_count;
    uint32_t keepers[QUOIT_ROUNDS_LOCKS_MAX]; /* of the question's locks: a PE of the host, or QUOIT_ROUNDS_NO_PE */
    uint32_t unused_end;
    struct quoit_rounds_lock locks[QUOIT_ROUNDS_LOCKS_MAX]; /* for which PEs of the host wait */
};

enum quoit_rounds_verdict {
    QUOIT_ROUNDS_MOVES,     /* or nothing is known yet */
    QUOIT_ROUNDS_NOTES,     /* the next round may warn or report what is to be noted before it: where each PE is */
    QUOIT_ROUNDS_LOCK_KEPT, /* rounds.keeper holds a lock for which another waits, and is in shmem_finalize */
    QUOIT_ROUNDS_WARNS,     /* all wait or poll: once */
    QUOIT_ROUNDS_POLLED,    /* the same for so long that it is the end */
    QUOIT_ROUNDS_HANGS,     /* none is in shmem_finalize, and all sleep: once, until something moves */
};

/* All zero at first. */
struct quoit_rounds {
    struct quoit_rounds_question question; /* of the last round begun */
    bool is_open;                          /* some host has not answered it */
    uint32_t missing_count;
    struct quoit_rounds_answer sum; /* of the answers so far */
    uint64_t begin_ns;
    /* Of the stretch of rounds in which nothing has moved: */
    uint64_t digest; /* 0: something moves */
    uint64_t still_ns;
    bool has_warned;
    bool has_reported; /* HANGS, since something moved */
    bool has_notes;    /* the verdict of the last round was NOTES */
    uint32_t keeper;   /* of QUOIT_ROUNDS_LOCK_KEPT, */
    uint32_t waiter;   /* and one that waits */
};

/* Begins a round; rounds->question is for each of the host_count hosts. A round that is open is given up: answers to it
 * are refused. */
void quoit_rounds_begin(struct quoit_rounds *rounds, uint32_t host_count, uint64_t now_ns);
/* When the next round is due. */
uint64_t quoit_rounds_next_ns(const struct quoit_rounds *rounds);
/* False: it is of another round, or of no watcher of this version. A host must answer once. */
bool quoit_rounds_take(struct quoit_rounds *rounds, uint32_t host, const void *answer, size_t bytes);
/* After the answer of the last host. Each PE of the verdict, keeper, waiter and sum.leaver, is below pe_count. */
enum quoit_rounds_verdict quoit_rounds_end(struct quoit_rounds *rounds, uint32_t pe_count);
/* Adds a lock, unless it is there or the list is full. */
void quoit_rounds_add_lock(struct quoit_rounds_lock locks[QUOIT_ROUNDS_LOCKS_MAX], uint32_t *count,
                           const struct quoit_rounds_lock *lock);
/* A digest of `digest` and `value`. */
uint64_t quoit_rounds_mix(uint64_t digest, uint64_t value);

#endif
