/* SPDX-License-Identifier: BSD-3-Clause */
/* silence.h - hosts and agents that give no sign: who is waited for, and the lines about them (boot/silence.h).
 *
 * A host has two ways: its proxy, over the network, and its agent, by the remote shell. What one of them shows counts
 * for the other one. docs/design/silence.md has the rules.
 */
#ifndef OSHRUN_SILENCE_H
#define OSHRUN_SILENCE_H

#include "job.h"

/* When the machine of the host last gave a sign over the network, as the proxies find; HOST_NONE: when those of all
 * hosts did. 0: there is no such way. */
uint64_t silence_sign_ns(const struct job *job, uint32_t host, uint64_t now_ns);
/* Whether the head waits for an agent, so that messages of its PEs may be missing. */
bool silence_has_agent(const struct job *job);
/* Prints the lines that are due, and looks at the proxies that are silent, whether they can run; of an agent: reports
 * to oshrun which agents below are silent, and what its proxy finds. Returns when to call again at the latest. */
uint64_t silence_step(struct job *job, uint64_t now_ns);
/* Of an agent: whether its proxy is there and cannot run, which it reports. */
void silence_answer(struct job *job);
/* Of the head: so an agent reports. */
void silence_take(const struct host *host);

#endif
