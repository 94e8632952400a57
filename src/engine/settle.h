/* SPDX-License-Identifier: BSD-3-Clause */
/* settle.h - the PEs of a host spread evenly over the processors they may use.
 *
 * The kernel leaves threads that yield to each other together on one processor for seconds while another is idle: to it
 * each of them looks too recently run to be moved. So a PE that yields says where, looks now and then how many PEs of
 * its host yield there, and moves to the processor with the fewest if that has two fewer. Nothing is bound: the thread
 * may run everywhere again as soon as it has moved. Where somebody has chosen its processors it is never moved.
 *
 * Threads: any thread of the PE; each moves itself. Errors: none; what the kernel refuses is left as it is.
 */
#ifndef QUOIT_ENGINE_SETTLE_H
#define QUOIT_ENGINE_SETTLE_H

#include "engine/self.h"

#define QUOIT_SETTLE_PE_YIELDS 256 /* between two calls */

/* To be called once at start: goes to a processor by the number of the PE, since all were started by one process and
 * may be on its processor still, where those that compute and never wait would stay for tens of milliseconds. */
void quoit_settle_start(struct quoit_self *self);
/* To be called by a thread that waits, at yields. May take tens of microseconds if it moves. */
void quoit_settle(struct quoit_self *self);

#endif
