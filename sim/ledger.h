/* SPDX-License-Identifier: BSD-3-Clause */
/* ledger.h - every request that a PE submitted to its proxy, and what became of it.
 *
 * Each request gets a number, which travels in its frame. Execution, responses and completion are recorded here. The
 * run fails at once when a request is executed twice or out of order (within one source PE, destination PE and lane; in
 * the papers' protocol puts and gets may overtake others, unless a fence precedes them), is changed in transit, or gets
 * a response or completes before it was executed; and at the end if any is left.
 */
#ifndef SIM_LEDGER_H
#define SIM_LEDGER_H

#include "engine/ring/channel.h"

struct sim_world;
struct sim_ledger;

struct sim_ledger *sim_ledger_new(struct sim_world *world);
void sim_ledger_free(struct sim_ledger *ledger);
uint64_t sim_ledger_count(const struct sim_ledger *ledger);

/* Numbers the request in the slot. */
void sim_ledger_submit(struct sim_ledger *ledger, uint32_t source_pe, const struct quoit_slot *slot);
/* A frame for a PE of `host` is about to be executed there. */
void sim_ledger_deliver(struct sim_ledger *ledger, uint32_t host, const struct quoit_frame *frame);
void sim_ledger_complete(struct sim_ledger *ledger, const struct quoit_frame *frame);
/* Fails the run if any request was not executed and completed. */
void sim_ledger_check_end(struct sim_ledger *ledger);

#endif
