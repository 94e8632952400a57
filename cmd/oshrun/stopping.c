/* SPDX-License-Identifier: BSD-3-Clause */
#include "stopping.h"

struct move {
    enum stopping_state next;
    unsigned deeds;
};

#define CONTINUE_ALL (STOPPING_CONTINUE_PES | STOPPING_CONTINUE_FRONT)

static const struct move moves[STOPPING_STATE_COUNT][STOPPING_EVENT_COUNT] = {
    [STOPPING_RUNS] =
        {
            [STOPPING_FRONT_STOPS] = {STOPPING_BY_FRONT, STOPPING_STOP_PES | STOPPING_ANSWER},
            [STOPPING_FRONT_CONTINUES] = {STOPPING_RUNS, STOPPING_CONTINUE_PES}, /* some may have been stopped alone */
            [STOPPING_TERMINAL_STOPPED] = {STOPPING_BY_TERMINAL, STOPPING_STOP_OTHERS | STOPPING_ASK_FRONT},
            [STOPPING_TERMINAL_CONTINUED] = {STOPPING_RUNS, 0},
            [STOPPING_CONTINUED] = {STOPPING_RUNS, 0},
            [STOPPING_JOB_ENDS] = {STOPPING_RUNS, 0},
        },
    [STOPPING_BY_FRONT] =
        {
            [STOPPING_FRONT_STOPS] = {STOPPING_BY_FRONT, STOPPING_STOP_PES | STOPPING_ANSWER},
            [STOPPING_FRONT_CONTINUES] = {STOPPING_RUNS, STOPPING_CONTINUE_PES},
            [STOPPING_TERMINAL_STOPPED] = {STOPPING_BY_FRONT, 0},   /* by this job's own signal */
            [STOPPING_TERMINAL_CONTINUED] = {STOPPING_BY_FRONT, 0}, /* by an earlier one */
            [STOPPING_CONTINUED] = {STOPPING_RUNS, CONTINUE_ALL},
            [STOPPING_JOB_ENDS] = {STOPPING_RUNS, CONTINUE_ALL},
        },
    [STOPPING_BY_TERMINAL] =
        {
            [STOPPING_FRONT_STOPS] = {STOPPING_BY_TERMINAL, STOPPING_ANSWER},
            [STOPPING_FRONT_CONTINUES] = {STOPPING_RUNS, STOPPING_CONTINUE_PES},
            [STOPPING_TERMINAL_STOPPED] = {STOPPING_BY_TERMINAL, 0},
            [STOPPING_TERMINAL_CONTINUED] = {STOPPING_RUNS, CONTINUE_ALL},
            [STOPPING_CONTINUED] = {STOPPING_RUNS, CONTINUE_ALL},
            [STOPPING_JOB_ENDS] = {STOPPING_RUNS, CONTINUE_ALL},
        },
};

unsigned stopping_take(enum stopping_state *state, enum stopping_event event)
{
    const struct move *move = &moves[*state][event];
    *state = move->next;
    return move->deeds;
}

unsigned stopping_front_take(struct stopping_front *front, enum stopping_front_event event)
{
    bool was_asking = front->is_asking;
    front->is_asking = event == STOPPING_FRONT_TSTP;
    switch (event) {
    case STOPPING_FRONT_TSTP:
        return was_asking ? 0 : STOPPING_SEND_STOP;
    case STOPPING_FRONT_CONT:
        front->continue_count++;
        return STOPPING_SEND_CONTINUE;
    default:
        return was_asking ? STOPPING_STOP_SELF : 0; /* else it is the answer to a request that SIGCONT has cancelled */
    }
}

bool stopping_front_heeds(const struct stopping_front *front, uint32_t continue_count)
{
    return front->continue_count == continue_count;
}
