/* SPDX-License-Identifier: BSD-3-Clause */
/* primitives.h - what the code above takes from the machine in order to know the time, to wait and to wake.
 *
 * clock.c, park.c and wait.c call the machine themselves while quoit_primitives is NULL, which costs one load and one
 * branch that is predicted. A program that runs this code in another time (sim/) sets the pointer, with every member
 * filled in, before the first call and from one thread; nothing else sets it.
 */
#ifndef QUOIT_ENV_PRIMITIVES_H
#define QUOIT_ENV_PRIMITIVES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What a thread remembers between its waits; all zero at first. Private to wait.c. */
struct quoit_wait_habit {
    uint32_t yield_count;
    uint32_t hasty_count; /* waits that are still to be hasty */
    uint32_t hasty_run;   /* how many they were at the last long yield */
};

struct quoit_primitives {
    uint64_t (*now_ns)(void);
    void (*sleep_ns)(uint64_t duration_ns);
    /* Up to `most` pauses of a thread that looks after each; returns how many have passed, at least one. is_in_vain:
     * since its last pause or yield the thread has only looked, and found nothing. */
    uint32_t (*pause)(uint32_t most, bool is_in_vain);
    void (*yield)(bool is_in_vain);
    /* Every processor passes a full barrier. */
    void (*barrier)(void);
    /* As futex(2): sleeps until woken, timeout_ns (0: no limit) or for no reason, unless *word is not `value`. */
    void (*sleep_on)(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns);
    void (*wake_all)(_Atomic uint32_t *word);
    struct quoit_wait_habit *(*habit)(void); /* of the running thread */
};

/* NULL: the machine's own. */
extern const struct quoit_primitives *quoit_primitives;

#define QUOIT_HAS_PRIMITIVES __builtin_expect(quoit_primitives != NULL, 0)

#endif
