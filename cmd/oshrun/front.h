/* SPDX-License-Identifier: BSD-3-Clause */
/* front.h - the process that the user started, or that a remote shell started as oshrun --agent. It passes signals on
 * to quoit-job over a socket, so that quoit-guard between them may be stopped, stops itself when the job is stopped,
 * and ends with the status of quoit-guard. docs/design/stopping.md has the whole.
 *
 * An agent's front takes no part in stopping, which its oshrun asks for over the conversation. If that closes and the
 * agent does not end within FRONT_DROPPED_NS, as when quoit-job is stopped, it kills what is below it.
 */
#ifndef OSHRUN_FRONT_H
#define OSHRUN_FRONT_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#define FRONT_DROPPED_NS UINT64_C(3000000000)

/* A message between front and quoit-job. SOCK_SEQPACKET: each arrives whole, in order. */
struct front_word {
    int32_t number;          /* to quoit-job: a signal that the front was sent, SIGTSTP: it asks to stop. To the front:
                              * SIGTSTP: it is to stop, 0: the answer to its SIGTSTP */
    uint32_t continue_count; /* to the front, with SIGTSTP: how many SIGCONT from it quoit-job had taken */
};

struct front {
    pid_t child;           /* quoit-guard */
    int job_fd;            /* of struct front_word */
    int conversation_fd;   /* of an agent, with its oshrun; -1: none */
    const sigset_t *taken; /* signals, blocked */
};

__attribute__((noreturn)) void front_run(const struct front *front);

#endif
