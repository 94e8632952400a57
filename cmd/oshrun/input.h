/* SPDX-License-Identifier: BSD-3-Clause */
/* input.h - standard input of oshrun, for the PE on another machine that has it.
 *
 * The head reads it and sends INPUT to the agent, which writes it into a pipe that is the standard input of the PE and
 * sends TAKEN for what the PE has read. So at most CONTROL_WINDOW_BYTES are under way. On a terminal, oshrun reads only
 * while it is in the foreground when it starts.
 */
#ifndef OSHRUN_INPUT_H
#define OSHRUN_INPUT_H

#include "job.h"

/* The head's side. False: no memory. */
bool input_open(struct job *job);
/* Reads if there is room; called once per turn of the loop. */
void input_step(struct job *job);
void input_taken(struct job *job, uint32_t bytes);

/* The agent's side: makes the pipe. Returns the end for the PE; -1: reported. */
int input_open_pe(struct job *job);
/* No bytes: the end. */
void input_give(struct job *job, const char *data, size_t bytes);

void input_close(struct job *job);

#endif
