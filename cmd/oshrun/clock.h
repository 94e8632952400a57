/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.h - the virtual time of a job with --virtual; without it these do nothing. */
#ifndef OSHRUN_CLOCK_H
#define OSHRUN_CLOCK_H

#include "job.h"

/* Reads the model, after plan_check(). PLAN_GO_ON, or the status to end with: an error was reported. */
int clock_plan(struct plan *plan);
/* The links are those of the model. */
void clock_set_knobs(const struct plan *plan, struct quoit_port_knobs *knobs);
/* Makes the clock, whose limit is that of --timeout. False: it was reported. */
bool clock_open(struct job *job);
/* Ends the job if nothing can happen any more, or its time is over. Returns when to call again. */
uint64_t clock_step(struct job *job, uint64_t now_ns);
/* The virtual time so far, of a job that has it; and with its unit. */
uint64_t clock_ns(const struct job *job);
const char *clock_text(const struct job *job, char text[32]);
/* After the job: its virtual time, and of which model. */
void clock_print(const struct job *job);

#endif
