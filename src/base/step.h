/* SPDX-License-Identifier: BSD-3-Clause */
/* step.h - named steps of the start and the end of a job, at which a test has a process stop, die or hang. So a test
 * meets each step for certain, without a sleep and on any machine.
 *
 * Only in builds that have the drivers of tests/drivers too (QUOIT_TEST_DRIVERS); in others a step is nothing. There
 * the variable TEST_STEP is WHO.STEP=ACTION, such as "proxy1.ready=stop" or, of any number, "pe.hello=kill". Actions:
 * stop (SIGSTOP), kill (SIGKILL), hang (sleeps for ever), close (closes descriptor 3, the socket of a proxy, then
 * hangs), work (computes for five seconds of the clock, and goes on).
 *
 * Threads: any.
 */
#ifndef QUOIT_BASE_STEP_H
#define QUOIT_BASE_STEP_H

#include <stdint.h>

#define QUOIT_STEP_ANY UINT32_MAX /* the process does not know its number yet */

#if defined(QUOIT_TEST_DRIVERS)
void quoit_step(const char *who, uint32_t number, const char *step);
/* An entry of the environment of a program that has nothing of the user's tools (boot/program.h). TEST_LD_PRELOAD is
 * LD_PRELOAD there: what a test has such a program load. */
char *quoit_step_variable(char *entry);
#else
#define quoit_step(who, number, step) ((void)(number))
#define quoit_step_variable(entry)    (entry)
#endif

#endif
