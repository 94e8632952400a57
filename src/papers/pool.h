/* SPDX-License-Identifier: BSD-3-Clause */
/* pool.h - the requests of a host's PEs, which its service threads take first come, first served.
 *
 * What it is: RING-22, 4.3: "one thread is assigned to a request from the buffer queues on a first-come-first-serve
 * basis". A PE submits a request to the channel of one lane; any lane takes it, with the bit that the lane has free.
 * Requests come when a lane first sees them; those of one channel come in the order in which they were submitted.
 * Order: puts and gets that no fence precedes may overtake others of their channel, as OpenSHMEM lets them. Any other
 * request is taken when all that were submitted to its channel before it are done.
 *
 * Threads: any lane of the host, from quoit_papers_pool_open() until close. Each call locks the pool, and passes
 * neither env nor port meanwhile.
 */
#ifndef QUOIT_PAPERS_POOL_H
#define QUOIT_PAPERS_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "lane/lane.h"

/* What was submitted to a channel. */
struct quoit_papers_queue {
    uint32_t waiting_count;                     /* seen, and not taken: from the lane's submit_heads on */
    uint32_t taken_count;                       /* and not done */
    uint64_t tickets[QUOIT_REQUESTS_A_CHANNEL]; /* of those that are seen and not taken: in the order of all */
    uint64_t seen_ns[QUOIT_REQUESTS_A_CHANNEL];
};

/* A zeroed struct is valid and closed. */
struct quoit_papers_pool {
    pthread_mutex_t lock;
    const struct quoit_layout *layout;
    char *memory;
    struct quoit_lane *lanes[QUOIT_LANES_MAX]; /* whose channels these are; each joins in its open() */
    struct quoit_papers_queue *queues;         /* [lane][local PE] */
    uint64_t ticket_count;
    _Atomic uint32_t waiting_count; /* seen and not taken */
    _Atomic uint32_t idle_lanes;    /* bits of lanes that have no transfer under way, and were not called since */
};

/* A request that was taken. */
struct quoit_papers_request {
    struct quoit_lane *channel_lane; /* to whose channel it was submitted */
    uint32_t local;
    uint16_t index;
    uint64_t seen_ns;
};

/* NO_MEMORY */
QUOIT_MUST_USE enum quoit_status quoit_papers_pool_open(struct quoit_papers_pool *pool,
                                                        const struct quoit_layout *layout, void *memory);
void quoit_papers_pool_close(struct quoit_papers_pool *pool);
/* Sees what was submitted since. Returns how many there were. */
uint32_t quoit_papers_pool_look(struct quoit_papers_pool *pool);
/* Takes the first request for which may_begin() is true of what its PE wrote, which is not checked yet: kind, source
 * and destination host are set. may_begin() is called under the lock. False: there is none. */
bool quoit_papers_pool_take(struct quoit_papers_pool *pool,
                            bool (*may_begin)(void *arg, const struct quoit_frame *frame), void *arg,
                            struct quoit_papers_request *request_out);
/* A request is done: its PE is told. */
void quoit_papers_pool_complete(struct quoit_papers_pool *pool, const struct quoit_papers_request *request);

#endif
