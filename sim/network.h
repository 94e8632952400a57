/* SPDX-License-Identifier: BSD-3-Clause */
/* network.h - hosts joined by an ordinary network, as LogGP has it: an engine (engine/engine.h) of each PE.
 *
 * The collectives, fabric and waits above it are the production code. What is below, the proxies with a library between
 * them, is four constants of the model, which quoit perf --loggp fits to a job: the sender works for
 * network_overhead_ns; its host sends a message every network_gap_ns, or as the bytes of network_ps_per_byte leave it;
 * they are there network_latency_ns later, and a host takes messages no faster than it sends them. A put is known to be
 * there after another network_latency_ns. The latency includes the receiver's work and its waking.
 *
 * Threads: the simulator's. Errors: none.
 */
#ifndef SIM_NETWORK_H
#define SIM_NETWORK_H

#include "sim/workload.h"

/* Runs the PEs of a world whose job has the protocol NETWORK; there are no proxies. False: the run has failed. */
bool sim_network_run(struct sim_world *world);
/* Gives the PE its engine to other hosts, in place of the one that asks a proxy. */
void sim_network_join(struct sim_world *world, struct quoit_fabric *fabric);

#endif
