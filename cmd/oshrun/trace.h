/* SPDX-License-Identifier: BSD-3-Clause */
/* trace.h - --trace: continuously takes events from the hosts' memories and writes them to a file.
 *
 * Tracks: one process per PE, with a thread for each of its threads that made calls, and a track of direct puts into
 * it; one process per proxy, with a thread per lane, and counters for each direction of each link that leaves its host.
 * A call in which a PE was killed stays open.
 */
#ifndef OSHRUN_TRACE_H
#define OSHRUN_TRACE_H

#include <stdbool.h>
#include <stdint.h>

struct job;
struct trace;

/* Opens the file if --trace is given. False: it cannot be written, which was reported. */
bool trace_open(struct job *job);
/* Takes and writes pending events when it is time. Returns the next time; UINT64_MAX without --trace. */
uint64_t trace_step(struct job *job, uint64_t now_ns);
/* After all writers have ended: writes the rest and the number of lost events, also printed on standard error. */
bool trace_finish(struct job *job);

#endif
