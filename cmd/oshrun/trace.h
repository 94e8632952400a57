/* SPDX-License-Identifier: BSD-3-Clause */
/* trace.h - --trace: takes the events out of the memories of the hosts, all the time, and writes them to a file.
 *
 * Tracks: a process a PE, with a thread for each of its threads that called, and a track of what was put into it
 * directly; a process a proxy, with a thread a lane, and counters for each direction of each link that leaves its host.
 * A call that a PE was killed in stays open.
 */
#ifndef OSHRUN_TRACE_H
#define OSHRUN_TRACE_H

#include <stdbool.h>
#include <stdint.h>

struct job;
struct trace;

/* Opens the file, where --trace is given. False: it cannot be written, which was told. */
bool trace_open(struct job *job);
/* Takes and writes what there is, when it is time. Returns the next time; UINT64_MAX without --trace. */
uint64_t trace_step(struct job *job, uint64_t now_ns);
/* When nobody writes any more: the rest, and what was lost, which is told on standard error too. */
bool trace_finish(struct job *job);

#endif
