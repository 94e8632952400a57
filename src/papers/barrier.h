/* SPDX-License-Identifier: BSD-3-Clause */
/* barrier.h - one host's part in the papers' barrier by start and end doorbells. Pure.
 *
 * When host 0 has come to the barrier it sends START to its right. Every other host, when it has come, waits for START
 * from its left and hands it on. When START is back at host 0 all have come: host 0 sends END to its right and goes on;
 * every other host that sees END hands it on and goes on. The last host hands END to nobody.
 *
 * Doorbells coalesce, but no signal is sent twice before it is taken: the next START leaves a host only after the END
 * before it was taken there, and reaches host 0 only after every host took that END.
 *
 * Threads: one at a time. Errors: none.
 */
#ifndef QUOIT_PAPERS_BARRIER_H
#define QUOIT_PAPERS_BARRIER_H

#include <stdbool.h>
#include <stdint.h>

enum quoit_papers_barrier_state {
    QUOIT_BARRIER_IDLE,          /* outside; what comes meanwhile waits in its doorbell bit */
    QUOIT_BARRIER_START_AWAITED, /* come; START has not come from the left */
    QUOIT_BARRIER_END_AWAITED,   /* START handed on */
    QUOIT_BARRIER_STATE_COUNT
};

#define QUOIT_BARRIER_START 1u /* signals: a doorbell bit each, in this order */
#define QUOIT_BARRIER_END   2u

struct quoit_papers_barrier {
    enum quoit_papers_barrier_state state;
    uint32_t host;
    uint32_t host_count; /* >= 2 */
};

struct quoit_papers_barrier_move {
    bool is_move;     /* false: nothing happens now */
    bool is_released; /* the host's PEs may go on */
    uint32_t taken;   /* the signal that was used and is to be cleared, 0: none */
    uint32_t sent;    /* the signal for the right neighbour, 0: none */
};

/* The next move, if there is one. `signals` are those that stand in the doorbell of the left port. */
struct quoit_papers_barrier_move quoit_papers_barrier_step(struct quoit_papers_barrier *barrier, bool has_come,
                                                           uint32_t signals);
bool quoit_papers_barrier_may_move(enum quoit_papers_barrier_state from, enum quoit_papers_barrier_state to);

#endif
