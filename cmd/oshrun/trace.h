/* SPDX-License-Identifier: BSD-3-Clause */
/* trace.h - --trace: takes events from the hosts' memories and writes them to a file: continuously on one machine. Over
 * several machines, and in virtual time, once all PEs have ended; what does not fit into a ring is lost.
 *
 * Over several machines agents send what is in the rings of their hosts, and oshrun keeps it in rings of its own. Times
 * are those of host 0: the clocks are compared as meetings.h says. In virtual time they are from shmem_init on. A
 * process or a thread has a number there in the place of its identifier, which may be another one's on another machine.
 *
 * Tracks: one process per PE, with a thread for each of its threads that made calls, and a track of direct puts into
 * it; one process per proxy, with a thread per lane, and counters for each direction of each link that leaves its host.
 * A call in which a PE was killed stays open.
 */
#ifndef OSHRUN_TRACE_H
#define OSHRUN_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "control.h"

struct host;
struct job;
struct trace;

/* Opens the file if --trace is given. False: it cannot be written, which was reported. */
bool trace_open(struct job *job);
/* Takes and writes pending events when it is time. Returns the next time; UINT64_MAX without --trace, and where events
 * are taken at the end. */
uint64_t trace_step(struct job *job, uint64_t now_ns);
/* After all writers have ended: writes the rest and the number of lost events, also printed on standard error. */
bool trace_finish(struct job *job);

/* Of an agent, after its processes have ended: sends their events. */
void trace_send(struct job *job);
/* Of the head: such events. */
void trace_receive(struct host *host, const struct quoit_control_frame *frame, const void *bytes);

#endif
