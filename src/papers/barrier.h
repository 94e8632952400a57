/* SPDX-License-Identifier: BSD-3-Clause */
/* barrier.h - one host's part in the papers' barrier by start and end doorbells. Pure.
 *
 * When host 0 enters the barrier it sends START to its right neighbour. Every other host, once it has entered, waits
 * for START from its left and forwards it. When START returns to host 0, all have entered: host 0 sends END to its
 * right and leaves; every other host that receives END forwards it and leaves. The last host forwards END to nobody.
 *
 * Doorbells coalesce, but no signal is sent twice before it is taken: the next START leaves a host only after that host
 * took the previous END, and reaches host 0 only after every host took that END.
 *
 * Source: RING-19 and RING-22, barrier_start and barrier_end.
 * Threads: one at a time. Errors: none.
 */
#ifndef QUOIT_PAPERS_BARRIER_H
#define QUOIT_PAPERS_BARRIER_H

#include <stdbool.h>
#include <stdint.h>

enum quoit_papers_barrier_state {
    QUOIT_BARRIER_IDLE,          /* outside; a signal that arrives meanwhile stays in its doorbell bit */
    QUOIT_BARRIER_START_AWAITED, /* entered; START has not arrived from the left */
    QUOIT_BARRIER_END_AWAITED,   /* START was forwarded */
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
    bool is_move;     /* false: no move is possible now */
    bool is_released; /* the host's PEs may leave */
    uint32_t taken;   /* the signal that was used, to be cleared; 0: none */
    uint32_t sent;    /* the signal to send to the right neighbour; 0: none */
};

/* The next move, if any. `signals` are the bits set in the left port's doorbell. */
struct quoit_papers_barrier_move quoit_papers_barrier_step(struct quoit_papers_barrier *barrier, bool has_come,
                                                           uint32_t signals);
bool quoit_papers_barrier_may_move(enum quoit_papers_barrier_state from, enum quoit_papers_barrier_state to);

#endif
