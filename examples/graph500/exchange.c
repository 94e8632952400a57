/* SPDX-License-Identifier: BSD-3-Clause */
#include "graph500.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shmem.h>

static unsigned long filled; /* symmetric: words of the own inbox that were reserved */

void exchange_start(struct exchange *exchange, const struct world *world)
{
    size_t pe_count = (size_t)world->pe_count;
    *exchange = (struct exchange){
        .world = world,
        .outbox = memory(pe_count * EXCHANGE_BATCH, sizeof(*exchange->outbox)),
        .outbox_fill = memory(pe_count, sizeof(*exchange->outbox_fill)),
    };
}

void exchange_room(struct exchange *exchange, uint64_t words)
{
    words = (uint64_t)max_of_all((int64_t)words);
    if (words <= exchange->room)
        return;
    shmem_free(exchange->inbox);
    exchange->inbox = symmetric(words, sizeof(*exchange->inbox));
    exchange->room = words;
}

void exchange_flush(struct exchange *exchange, int pe)
{
    uint32_t count = exchange->outbox_fill[pe];
    if (count == 0)
        return;
    uint64_t at = shmem_ulong_atomic_fetch_add(&filled, count, pe);
    if (at + count > exchange->room) { /* the senders know how much can arrive, so this is an error of the program */
        fprintf(stderr, "graph500: the inbox of PE %d has %llu words, too few\n", pe,
                (unsigned long long)exchange->room);
        shmem_global_exit(2);
    }
    /* On return the batch can be refilled. */
    shmem_uint64_put(exchange->inbox + at, exchange->outbox + (size_t)pe * EXCHANGE_BATCH, count, pe);
    exchange->outbox_fill[pe] = 0;
}

uint64_t exchange_finish(struct exchange *exchange)
{
    for (int i = 1; i <= exchange->world->pe_count; i++)
        exchange_flush(exchange, (exchange->world->me + i) % exchange->world->pe_count); /* each PE starts elsewhere */
    shmem_barrier_all(); /* everything sent by all PEs has arrived */
    uint64_t count = filled;
    filled = 0; /* no PE reserves before all have left the next collective call */
    return count;
}

void exchange_end(struct exchange *exchange)
{
    shmem_free(exchange->inbox);
    free(exchange->outbox);
    free(exchange->outbox_fill);
}
