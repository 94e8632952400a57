/* SPDX-License-Identifier: BSD-3-Clause */
/* stopping.h - whether a job is stopped or runs. quoit-job owns that state; the process that the user started, the
 * front, asks it, and stops itself so that the user's shell sees a stopped job. docs/design/stopping.md has the whole.
 *
 * Pure: an event goes in, deeds come out. Nothing here sends or takes a signal.
 */
#ifndef OSHRUN_STOPPING_H
#define OSHRUN_STOPPING_H

#include <stdbool.h>
#include <stdint.h>

/* The owner. */

enum stopping_state {
    STOPPING_RUNS,
    STOPPING_BY_FRONT,    /* stopped: the front asked for it */
    STOPPING_BY_TERMINAL, /* stopped: a key stopped the process that has the terminal, or that asked in vain for it */
    STOPPING_STATE_COUNT,
};

enum stopping_event {
    STOPPING_FRONT_STOPS,
    STOPPING_FRONT_CONTINUES,
    STOPPING_TERMINAL_STOPPED,
    STOPPING_TERMINAL_CONTINUED, /* that process, by another process's SIGCONT */
    STOPPING_CONTINUED,          /* SIGCONT to quoit-job itself */
    STOPPING_JOB_ENDS,
    STOPPING_EVENT_COUNT,
};

/* Deeds, in the order in which they are done. */
#define STOPPING_STOP_PES       1u
#define STOPPING_STOP_OTHERS    2u /* all PEs but the one that has the terminal, which has stopped already */
#define STOPPING_CONTINUE_PES   4u
#define STOPPING_ANSWER         8u  /* to the front: the PEs were sent their stop */
#define STOPPING_ASK_FRONT      16u /* to stop, as if it had been sent SIGTSTP */
#define STOPPING_CONTINUE_FRONT 32u

/* Moves *state, and returns the deeds. */
unsigned stopping_take(enum stopping_state *state, enum stopping_event event);

/* The front. */

struct stopping_front {
    bool is_asking;          /* it has asked to stop, and has no answer yet */
    uint32_t continue_count; /* how often it has asked to continue */
};

enum stopping_front_event {
    STOPPING_FRONT_TSTP, /* SIGTSTP is pending, and stays so: SIGCONT discards it */
    STOPPING_FRONT_CONT, /* SIGCONT was taken */
    STOPPING_FRONT_ANSWER,
    STOPPING_FRONT_LATE, /* no answer came in time: the shell gets its terminal all the same */
};

#define STOPPING_SEND_STOP     1u
#define STOPPING_SEND_CONTINUE 2u
#define STOPPING_STOP_SELF     4u /* by the pending SIGTSTP; not if SIGCONT has discarded it */

unsigned stopping_front_take(struct stopping_front *front, enum stopping_front_event event);
/* Whether a request of the owner to stop, made when it had seen `continue_count` requests to continue, still counts. */
bool stopping_front_heeds(const struct stopping_front *front, uint32_t continue_count);

#endif
