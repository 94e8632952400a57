/* SPDX-License-Identifier: BSD-3-Clause */
/* primitives.h - the seam to the machine for time, waiting and waking; the simulator and the virtual clock replace it.
 *
 * While quoit_primitives is NULL, clock.c, park.c, wait.c and processor.c call the machine directly, at the cost of one
 * load and one predicted branch. The simulator (sim/) sets the pointer before the first call, and the virtual
 * clock (src/virtual) in shmem_init, from one thread, with every member filled in; nothing else sets it.
 */
#ifndef QUOIT_ENV_PRIMITIVES_H
#define QUOIT_ENV_PRIMITIVES_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* State that a thread keeps between its waits; zeroed at first. Private to wait.c. */
struct quoit_wait_habit {
    uint32_t yield_count;
    uint64_t repaid_at_ns; /* when the time without yields makes up for the long yields so far */
};

struct quoit_primitives {
    uint64_t (*now_ns)(void);
    void (*sleep_ns)(uint64_t duration_ns);
    bool ends_sleeps_in_time; /* to the nanosecond, so nobody need look before */
    /* Up to `most` pauses of a spinning thread, which checks its condition after each; returns how many were made, at
     * least one. is_in_vain: since its last pause or yield the thread has only checked, and nothing had changed. */
    uint32_t (*pause)(uint32_t most, bool is_in_vain);
    void (*yield)(bool is_in_vain);
    /* Makes every processor execute a full barrier. */
    void (*barrier)(void);
    /* As futex(2): sleeps until woken, until timeout_ns (0: no limit) or spuriously, unless *word differs from `value`.
     */
    void (*sleep_on)(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns);
    void (*wake_all)(_Atomic uint32_t *word);
    struct quoit_wait_habit *(*habit)(void); /* of the calling thread */
    /* As in processor.h. */
    bool (*processor_is_free)(cpu_set_t *allowed_out);
    int (*processor_own)(void);
    bool (*processor_go)(int processor);
};

/* NULL: the machine itself. */
extern const struct quoit_primitives *quoit_primitives;

#define QUOIT_HAS_PRIMITIVES __builtin_expect(quoit_primitives != NULL, 0)

#endif
