/* SPDX-License-Identifier: BSD-3-Clause */
/* rounds.h - decides, from what is seen of all hosts of a job, that its PEs wait for what can never come.
 *
 * Rounds of questions: who watches a host looks at it once in each, and all looks of a round follow all looks of the
 * round before (docs/design/stillness.md). No I/O and no clock.
 *
 *   begin -> every host: rounds_take -> end; then the next one
 *
 * Threads: one a struct rounds. Errors: none; an answer that no watcher of this version gives is refused.
 */
#ifndef OSHRUN_ROUNDS_H
#define OSHRUN_ROUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROUNDS_LOCKS_MAX 8u                   /* locks that are looked at in a round; the others wait for a later one */
#define ROUNDS_APART_NS  UINT64_C(1000000000) /* from the begin of one to that of the next */
#define ROUNDS_WARN_NS   UINT64_C(5000000000)
/* Where some PEs poll, the end: a program may give up before. */
#define ROUNDS_POLLS_NS UINT64_C(30000000000)
#define ROUNDS_NO_PE    UINT32_MAX

/* A lock for which a PE waits: what quoit_wish has of it. */
struct rounds_lock {
    uint64_t offset;
    uint64_t wanted;
    uint32_t bytes;
    uint32_t keeper; /* a PE in shmem_finalize that still holds it; ROUNDS_NO_PE */
};

struct rounds_question {
    uint64_t round;
    uint64_t since; /* the round in which something was last seen to move */
    uint32_t lock_count;
    uint32_t unused;
    struct rounds_lock locks[ROUNDS_LOCKS_MAX];
};

/* Of a host. */
struct rounds_answer {
    uint64_t round;
    uint64_t digest;     /* changes when a PE has moved; 0: one is at work, stopped, or has ended */
    uint64_t traffic;    /* changes when the host sends or fetches something */
    uint8_t has_polls;   /* some PE polls in vain */
    uint8_t is_at_rest;  /* since question.since each PE was seen asleep, or polling, with nothing under way */
    uint8_t is_threaded; /* the process of some PE has a second thread, which might end a wait */
    uint8_t unused[5];
    uint32_t lock_count;
    uint32_t keepers[ROUNDS_LOCKS_MAX]; /* of the question's locks: a PE of the host, or ROUNDS_NO_PE */
    uint32_t unused_end;
    struct rounds_lock locks[ROUNDS_LOCKS_MAX]; /* for which PEs of the host wait */
};

enum rounds_verdict {
    ROUNDS_MOVES,     /* or nothing is known yet */
    ROUNDS_LOCK_KEPT, /* rounds.keeper holds a lock for which another waits, and is in shmem_finalize */
    ROUNDS_WARNS,     /* all wait or poll: once */
    ROUNDS_POLLED,    /* the same for so long that it is the end */
};

/* All zero at first. */
struct rounds {
    struct rounds_question question; /* of the last round begun */
    bool is_open;                    /* some host has not answered it */
    uint32_t missing_count;
    struct rounds_answer sum; /* of the answers so far */
    uint64_t begin_ns;
    /* Of the stretch of rounds in which nothing has moved: */
    uint64_t digest; /* 0: something moves */
    uint64_t still_ns;
    bool has_warned;
    uint32_t keeper; /* of ROUNDS_LOCK_KEPT */
};

/* Begins a round; rounds->question is for each of the host_count hosts. Not while one is open. */
void rounds_begin(struct rounds *rounds, uint32_t host_count, uint64_t now_ns);
/* False: it is of another round, or of no watcher of this version. A host must answer once. */
bool rounds_take(struct rounds *rounds, uint32_t host, const void *answer, size_t bytes);
/* After the answer of the last host. leaving_count: PEs known to be in shmem_finalize. polls_ns: at least
 * ROUNDS_POLLS_NS. */
enum rounds_verdict rounds_end(struct rounds *rounds, uint32_t leaving_count, uint64_t polls_ns);
/* Adds a lock, unless it is there or the list is full. */
void rounds_add_lock(struct rounds_lock locks[ROUNDS_LOCKS_MAX], uint32_t *count, const struct rounds_lock *lock);
/* A digest of `digest` and `value`. */
uint64_t rounds_mix(uint64_t digest, uint64_t value);

#endif
