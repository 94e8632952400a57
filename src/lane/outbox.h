/* SPDX-License-Identifier: BSD-3-Clause */
/* outbox.h - messages from this host to other hosts, queued for lane 0, which sends them as MESSAGE frames.
 *
 * Promises: messages of one outbox to one host arrive in the order of quoit_outbox_send(), each exactly once, through
 * any loss of a link. A message is at most a chunk.
 *
 * Threads: any thread of the process that opened it may send; take and complete belong to lane 0.
 */
#ifndef QUOIT_LANE_OUTBOX_H
#define QUOIT_LANE_OUTBOX_H

#include <pthread.h>
#include <stdatomic.h>

#include "host/layout.h"

struct quoit_outbox {
    const struct quoit_layout *layout;
    char *memory;                      /* the host's memory, so that the ports' DMA can read the payload */
    pthread_mutex_t lock;              /* serializes senders, and the clearing of bits in free_mask */
    _Atomic uint32_t free_mask;        /* entries; bits are set by lane 0 */
    _Atomic uint32_t tail;             /* writer: senders. release; pairs with acquire in quoit_outbox_next() */
    uint32_t head;                     /* lane 0's */
    uint8_t order[QUOIT_MESSAGES_MAX]; /* entries in order of submission */
    struct quoit_frame frames[QUOIT_MESSAGES_MAX];
};

void quoit_outbox_open(struct quoit_outbox *outbox, const struct quoit_layout *layout, void *memory);
void quoit_outbox_close(struct quoit_outbox *outbox);

/* Copies the payload. FULL: QUOIT_MESSAGES_MAX are outstanding, try again later. OUT_OF_RANGE: no such host or port, or
 * more than a chunk. */
QUOIT_MUST_USE enum quoit_status quoit_outbox_send(struct quoit_outbox *outbox, uint32_t dest_host, uint32_t port,
                                                   const void *payload, uint32_t bytes);

/* Whether no message is outstanding. Any thread. */
bool quoit_outbox_is_empty(const struct quoit_outbox *outbox);

/* The next frame to submit, and its entry; NULL: none. The same one until quoit_outbox_taken(). */
const struct quoit_frame *quoit_outbox_next(const struct quoit_outbox *outbox, uint32_t *entry_out);
void quoit_outbox_taken(struct quoit_outbox *outbox);
/* Frees the entry: its destination has acknowledged it. */
void quoit_outbox_complete(struct quoit_outbox *outbox, uint32_t entry);

#endif
