/* SPDX-License-Identifier: BSD-3-Clause */
/* agent.h - oshrun --agent: does oshrun's work on one machine of --host, as oshrun orders by its standard input and
 * output. When it loses oshrun it ends everything here. */
#ifndef OSHRUN_AGENT_H
#define OSHRUN_AGENT_H

#include "job.h"
#include "setup.h"

/* What the agent needs before it has a job. */
struct agent_start {
    struct setup setup;
    int in_fd;
    int out_fd;
    unsigned char key[CONTROL_KEY_BYTES];
};

bool agent_is_asked(int argc, char **argv);
/* Receives SETUP, goes to its folder and takes its environment over. PLAN_GO_ON, or the status to end with:
 * reported. */
int agent_receive(struct agent_start *start);
/* After the job was opened. False: errno. */
bool agent_open(struct job *job, const struct agent_start *start);
/* Starts the PEs of this machine. */
void agent_begin(struct job *job);
/* Returns when to call again at the latest. */
uint64_t agent_step(struct job *job, uint64_t now_ns);
/* After all processes have ended: sends the rest. */
void agent_close(struct job *job);

#endif
