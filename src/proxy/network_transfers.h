/* SPDX-License-Identifier: BSD-3-Clause */
/* network_transfers.h - the puts and gets of a network that are under way for the PEs of a host: the order in which the
 * other hosts are told of puts, and the tracks of all in the trace.
 *
 * What it is: one queue of puts for each PE and host. A put is told when it and all before it in its queue are done, so
 * the signal of one follows the data of all. What may not overtake a PE's puts to a host starts only when none is left.
 * Transfers are named by their cookies, which are below cookie_count.
 *
 * Threads: one. Errors: NO_MEMORY from open.
 */
#ifndef QUOIT_PROXY_NETWORK_TRANSFERS_H
#define QUOIT_PROXY_NETWORK_TRANSFERS_H

#include <stdbool.h>
#include <stdint.h>

#include "lane/lane.h"

struct quoit_network_queue {
    uint32_t first, last; /* as cookie + 1; 0: none */
};

struct quoit_network_transfer {
    uint64_t begin_ns; /* for the trace; */
    uint8_t track;     /* there, below QUOIT_TRACE_DMAS_MAX, else it is not traced */
    bool is_done;
    uint32_t next; /* in its queue, as cookie + 1; 0: the last */
};

struct quoit_network_transfers {
    struct quoit_lane *lane;
    struct quoit_network_queue *queues;       /* [PE][host] */
    struct quoit_network_transfer *transfers; /* by cookie */
    uint64_t busy_tracks;                     /* slices of one track must not overlap */
};

QUOIT_MUST_USE enum quoit_status quoit_network_transfers_open(struct quoit_network_transfers *transfers,
                                                              struct quoit_lane *lane, uint64_t cookie_count);
/* What was never opened may be closed. */
void quoit_network_transfers_close(struct quoit_network_transfers *transfers);

/* The transfer of a request of a PE has begun. */
void quoit_network_transfers_begin(struct quoit_network_transfers *transfers, uint64_t cookie,
                                   const struct quoit_frame *frame);
/* It is done. */
void quoit_network_transfers_done(struct quoit_network_transfers *transfers, uint64_t cookie,
                                  const struct quoit_frame *frame);
/* Takes the next put of the PE of which the host may be told. False: there is none. */
bool quoit_network_transfers_told(struct quoit_network_transfers *transfers, uint32_t pe, uint32_t host,
                                  uint64_t *cookie_out);
/* Whether there are puts of the PE of which the host has not been told. */
bool quoit_network_transfers_pending(const struct quoit_network_transfers *transfers, uint32_t pe, uint32_t host);

#endif
