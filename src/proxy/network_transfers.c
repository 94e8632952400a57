/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/network_transfers.h"
#include "base/assert.h"

#include <stdlib.h>

static struct quoit_network_queue *queue_of(const struct quoit_network_transfers *transfers, uint32_t pe, uint32_t host)
{
    return &transfers->queues[(uint64_t)pe * transfers->lane->layout->job.host_count + host];
}

enum quoit_status quoit_network_transfers_open(struct quoit_network_transfers *transfers, struct quoit_lane *lane,
                                               uint64_t cookie_count)
{
    const struct quoit_layout *layout = lane->layout;
    transfers->lane = lane;
    transfers->queues = calloc((uint64_t)layout->local_count * layout->job.host_count, sizeof *transfers->queues);
    transfers->transfers = calloc(cookie_count, sizeof *transfers->transfers);
    return transfers->queues && transfers->transfers ? QUOIT_OK : QUOIT_NO_MEMORY;
}

void quoit_network_transfers_close(struct quoit_network_transfers *transfers)
{
    free(transfers->queues);
    free(transfers->transfers);
}

_Static_assert(QUOIT_TRACE_DMAS_MAX == 64, "a track has a bit of busy_tracks");

static void begin_trace(struct quoit_network_transfers *transfers, struct quoit_network_transfer *transfer)
{
    transfer->begin_ns = quoit_lane_trace_now(transfers->lane);
    transfer->track = QUOIT_TRACE_DMAS_MAX;
    if (transfer->begin_ns == 0 || ~transfers->busy_tracks == 0)
        return;
    transfer->track = (uint8_t)__builtin_ctzll(~transfers->busy_tracks);
    transfers->busy_tracks |= UINT64_C(1) << transfer->track;
}

void quoit_network_transfers_begin(struct quoit_network_transfers *transfers, uint64_t cookie,
                                   const struct quoit_frame *frame)
{
    struct quoit_network_transfer *transfer = &transfers->transfers[cookie];
    *transfer = (struct quoit_network_transfer){.is_done = false};
    begin_trace(transfers, transfer);
    if (frame->kind == QUOIT_FRAME_GET)
        return;
    struct quoit_network_queue *queue = queue_of(transfers, frame->source_pe, frame->dest_host);
    if (queue->last)
        transfers->transfers[queue->last - 1].next = (uint32_t)cookie + 1;
    else
        queue->first = (uint32_t)cookie + 1;
    queue->last = (uint32_t)cookie + 1;
}

void quoit_network_transfers_done(struct quoit_network_transfers *transfers, uint64_t cookie,
                                  const struct quoit_frame *frame)
{
    struct quoit_network_transfer *transfer = &transfers->transfers[cookie];
    quoit_assert(!transfer->is_done);
    transfer->is_done = true;
    if (transfer->track >= QUOIT_TRACE_DMAS_MAX)
        return;
    transfers->busy_tracks &= ~(UINT64_C(1) << transfer->track);
    quoit_lane_trace_dma(transfers->lane, frame, QUOIT_RIGHT, transfer->track, transfer->begin_ns);
}

bool quoit_network_transfers_told(struct quoit_network_transfers *transfers, uint32_t pe, uint32_t host,
                                  uint64_t *cookie_out)
{
    struct quoit_network_queue *queue = queue_of(transfers, pe, host);
    if (!queue->first || !transfers->transfers[queue->first - 1].is_done)
        return false;
    *cookie_out = queue->first - 1;
    queue->first = transfers->transfers[*cookie_out].next;
    if (!queue->first)
        queue->last = 0;
    return true;
}

bool quoit_network_transfers_pending(const struct quoit_network_transfers *transfers, uint32_t pe, uint32_t host)
{
    return queue_of(transfers, pe, host)->first != 0;
}
