/* SPDX-License-Identifier: BSD-3-Clause */
/* channel.h - the PE's end of its channels to the proxy: submit requests, reap completions. Private to engine/ring.
 *
 * A request slot is free, taken (the thread that took it fills it, then submits), or outstanding until reaped. Reaping
 * copies responses to their destination, counts down the context and any waiting thread, and frees the slot.
 *
 * Threads: several threads may call every function. User memory is read and written with no lock held: a handler of its
 * faults may call everything here.
 */
#ifndef QUOIT_ENGINE_RING_CHANNEL_H
#define QUOIT_ENGINE_RING_CHANNEL_H

#include "engine/ring/ring_engine.h"

/* A request slot being filled. */
struct quoit_slot {
    struct quoit_channel_end *end;
    const struct quoit_peer *peer;
    uint32_t lane;
    uint16_t index;
    struct quoit_request *request; /* zeroed but for what take fills in: dest_host, dest_pe, source_pe, spread */
    struct quoit_pending *pending; /* zeroed but for what take fills in */
    char *staging;                 /* chunk_bytes */
    uint64_t staging_offset;       /* its memory offset */
};

QUOIT_MUST_USE enum quoit_status quoit_channel_open_all(struct quoit_ring_engine *ring);
void quoit_channel_close_all(struct quoit_ring_engine *ring);

/* Waits, sleeping if it takes long, until a slot of the channel towards `peer` is free, and takes it. */
void quoit_channel_take(struct quoit_context *context, const struct quoit_peer *peer, struct quoit_slot *slot_out);
/* Whether a transfer of this size should be split over the lanes. Not while a fence precedes outstanding requests: a
 * part on another lane could overtake them. */
bool quoit_channel_splits(struct quoit_context *context, const struct quoit_peer *peer, size_t bytes);
/* The same for part `part` of a split transfer: parts rotate over the lanes; 0 takes the lane that keeps order. */
void quoit_channel_take_part(struct quoit_context *context, const struct quoit_peer *peer, uint32_t part,
                             struct quoit_slot *slot_out);
/* Whether a put, with what names it, is small enough for quoit_channel_put_many(), and the peer's lane packs such. */
bool quoit_channel_packs(const struct quoit_peer *peer, size_t bytes);
/* A small put. It shares a request with the puts before it, as long as the proxy has not taken that, nothing else was
 * submitted to the host since, and no fence is between: so a lone put costs no delay, and a row of them one frame for
 * as many as come while the proxy is busy with the last. */
void quoit_channel_put_many(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset,
                            const void *source, size_t bytes);
/* Before a wait for all requests of a context: over a network the acknowledgement of a put with a signal waits for
 * other messages, so a request without bytes, whose acknowledgement is that of all before it too, follows to each host
 * where such a put is the last. */
void quoit_channel_hurry(struct quoit_ring_engine *ring, struct quoit_context *context);
/* Submits the filled request to the proxy. */
void quoit_channel_submit(struct quoit_ring_engine *ring, struct quoit_slot *slot);
/* Reaps all completions, on all lanes. */
void quoit_channel_reap(struct quoit_ring_engine *ring);
/* Waits until *count is zero, reaping. */
void quoit_channel_wait32(struct quoit_ring_engine *ring, _Atomic uint32_t *count);
void quoit_channel_wait64(struct quoit_ring_engine *ring, _Atomic uint64_t *count);
/* Re-enables direct puts through a side whose link is up, once everything sent to it through the proxy has arrived.
 * False: not yet. Does not wait. */
bool quoit_channel_open_direct(struct quoit_ring_engine *ring, enum quoit_side side);

#endif
