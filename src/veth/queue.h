/* SPDX-License-Identifier: BSD-3-Clause */
/* queue.h - frames to and from one neighbour: slots in its memory that this host writes, slots here that it writes.
 *
 * A frame is one marked write: header and payload into the next free slot, then the count of frames sent. The reader
 * returns credits by writing its count of consumed slots. When the link comes up both counts begin at 0 and the slots
 * are empty.
 *
 * Deadlock: forwarding a frame needs one free slot, injecting one needs two. So in each direction of the ring some
 * queue always has a free slot, and frames in the ring move.
 *
 * Threads: any number send; one receives; begin and end belong to the manager of the links. No lock is held while the
 * caller's code runs, except that receive's callback runs under the lock that keeps end() from returning.
 */
#ifndef QUOIT_VETH_QUEUE_H
#define QUOIT_VETH_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "port/port.h"
#include "veth/frame.h"

#define QUOIT_VETH_SLOT_COUNT 32u
#define QUOIT_VETH_SLOT_BYTES (68u << 10)

/* In the memory of the receiving host, written by the neighbour. A zeroed range is a valid start. */
struct quoit_veth_range {
    _Alignas(64) _Atomic uint64_t sent;     /* frames that the neighbour has written here */
    _Alignas(64) _Atomic uint64_t consumed; /* frames from here that the neighbour has consumed */
    _Alignas(4096) uint8_t slots[QUOIT_VETH_SLOT_COUNT][QUOIT_VETH_SLOT_BYTES];
};

/* Free slots that a send must leave. */
enum quoit_veth_reserve { QUOIT_VETH_TRANSIT = 0, QUOIT_VETH_INJECT = 1 };

/* A frame sent by DMA, or after one, of which the neighbour is not notified yet. */
struct quoit_veth_departure {
    const struct quoit_veth_header *source; /* NULL: not by DMA */
    _Atomic bool *is_kept;
    bool has_arrived;
};

#define QUOIT_VETH_DMA_NEVER UINT64_MAX

struct quoit_veth_queue {
    struct quoit_port *port;
    uint64_t window_offset; /* of the neighbour's range, in its window SLOTS */
    struct quoit_veth_range *inbound;
    _Atomic bool is_up;
    pthread_mutex_t send_lock;
    uint64_t dma_bytes;           /* frames of at least this size go by DMA if their buffer can be kept */
    uint32_t dma_channel;         /* of the port, this queue's alone */
    _Atomic uint64_t *dma_frames; /* counts them */
    _Atomic uint64_t *out_frames; /* counts those of the device that were sent, and those taken here */
    _Atomic uint64_t *in_frames;
    uint64_t sent; /* under send_lock, as the next two. The neighbour was told of `marked` of them */
    uint64_t marked;
    struct quoit_veth_departure departures[QUOIT_VETH_SLOT_COUNT];
    _Atomic uint32_t dma_count; /* descriptors that have not completed; writers: under send_lock */
    pthread_mutex_t receive_lock;
    uint64_t taken; /* under receive_lock, as `credited` */
    uint64_t credited;
    _Atomic uint64_t seen_consumed;
};

void quoit_veth_queue_open(struct quoit_veth_queue *queue, struct quoit_port *port, uint64_t window_offset,
                           struct quoit_veth_range *inbound);
void quoit_veth_queue_close(struct quoit_veth_queue *queue);
/* The link is up: counts are 0 at both ends. */
void quoit_veth_queue_begin(struct quoit_veth_queue *queue);
/* The link went down. On return no thread sends or receives here. */
void quoit_veth_queue_end(struct quoit_veth_queue *queue);

/* Sends the header and the `bytes` bytes behind it; header->bytes is not read, since a neighbour may still write the
 * header of a frame that is passed on. FULL: fewer than 1 + reserve slots are free. LINK_DOWN. With `is_kept`, which is
 * false, it may go by DMA: then *is_kept is true until the frame may change again. */
QUOIT_MUST_USE enum quoit_status quoit_veth_queue_send(struct quoit_veth_queue *queue,
                                                       const struct quoit_veth_header *header, uint32_t bytes,
                                                       enum quoit_veth_reserve reserve, _Atomic bool *is_kept);
/* Takes completions of DMA and notifies the neighbour of the frames that arrived; true: there were some, and its
 * doorbell is to be rung. */
bool quoit_veth_queue_complete(struct quoit_veth_queue *queue);
/* A frame as it lies in a slot. */
struct quoit_veth_frame {
    struct quoit_veth_header header;
    uint8_t payload[QUOIT_VETH_SLOT_BYTES - sizeof(struct quoit_veth_header)];
};
/* Called by send_from() for a frame of `bytes` whose first QUOIT_VETH_HEAD_BYTES are in `frame`: makes the header.
 * False: the frame takes another route. */
typedef bool quoit_veth_address(void *arg, struct quoit_veth_frame *frame, uint32_t bytes);
#define QUOIT_VETH_HEAD_BYTES 2048u
/* Reads a frame from `fd` directly into the neighbour's slot, except for its first bytes, and sends it; *count_out is
 * that of read(2). AGAIN: the whole frame is in `frame` and takes another route. FULL, LINK_DOWN: nothing was read, but
 * LINK_DOWN with *count_out above 0: it was read and is lost. UNSUPPORTED: the port cannot. */
QUOIT_MUST_USE enum quoit_status quoit_veth_queue_send_from(struct quoit_veth_queue *queue, int fd,
                                                            struct quoit_veth_frame *frame, quoit_veth_address *address,
                                                            void *arg, ssize_t *count_out);
/* True also if the link is down: a send would not wait. */
bool quoit_veth_queue_has_room(struct quoit_veth_queue *queue, enum quoit_veth_reserve reserve);

/* Called by receive() for each frame, which it may change, and the neighbour too; false: not now, offer the frame again
 * later. */
typedef bool quoit_veth_take(void *arg, struct quoit_veth_header *frame);
/* Takes up to `most` frames in order and returns credits; returns the number of frames. If *has_credited_out the
 * neighbour's doorbell is to be rung. */
uint32_t quoit_veth_queue_receive(struct quoit_veth_queue *queue, quoit_veth_take *take, void *arg, uint32_t most,
                                  bool *has_credited_out);
/* Whether credits arrived since the last call. Called by the receiving thread. */
bool quoit_veth_queue_has_credits(struct quoit_veth_queue *queue);

#endif
