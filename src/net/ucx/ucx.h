/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx.h - what the driver for UCX (ucx.c) shares with its frames (frames.c). Included by them only.
 *
 * Threads: as the driver, one at a time for one end.
 */
#ifndef QUOIT_NET_UCX_UCX_H
#define QUOIT_NET_UCX_UCX_H

#include <ucp/api/ucp.h>

#include "base/assert.h"
#include "net/driver.h"

#define MESSAGE_ID     1     /* of UCX's active messages that carry ours, */
#define FRAME_ID       2     /* and frames */
#define MESSAGE_BYTES  7936u /* with UCX's headers below the segment of TCP and InfiniBand, 8 KiB */
#define TRANSFER_COUNT (4 * QUOIT_NET_TRANSFERS_MAX)

enum op_kind { OP_FREE, OP_PUT, OP_GET, OP_SEND };

struct op {
    struct ucx *ucx;
    enum op_kind kind;
    bool is_abandoned; /* reported already */
    uint32_t host;
    uint32_t round; /* how often it was in use: an answer to an earlier get is none to this one */
    uint64_t cookie;
    uint64_t bytes;
    char *buffer; /* of a message */
    /* Of a transfer by frames. */
    char *local;
    uint64_t remote;     /* its address there */
    uint64_t done_bytes; /* sent (put), or arrived (get) */
    struct op *next;
};

struct op_list {
    struct op *first;
    struct op **end; /* where the next one goes; NULL: empty since the end was opened */
};

/* A get of another host, while its bytes leave. */
struct answer {
    struct answer *next;
    const char *from;
    uint64_t bytes;
    uint64_t sent_bytes;
    uint64_t id;
};

struct peer {
    struct ucx *ucx;
    ucp_ep_h endpoint; /* NULL: not connected */
    void *coming;      /* of a PE endpoint: the worker's address, until progress has made the endpoint. Nothing is sent
                          before */
    uint32_t host;     /* PE endpoints follow the hosts */
    uint32_t send_count; /* under way */
    bool is_flushing;
    bool is_failed;
    struct op_list posted;  /* puts that no flush has begun after; frames: transfers that have not left */
    struct op_list flushed; /* puts that the flush covers; frames: puts that have left */
    /* Frames alone. */
    uint64_t secret;         /* of that end: what it demands of a frame */
    struct op_list messages; /* that have not left */
    struct answer *answers;
    struct answer **answers_end;
    uint32_t answer_count;
    uint32_t landed_count; /* its puts that arrived here and were not confirmed */
    bool is_waiting;       /* something above has not left */
};

struct region {
    ucp_mem_h memory; /* NULL: frames need none */
    uint64_t base;
    uint64_t bytes;
    struct region *next;
};

struct ucx {
    struct quoit_net_end end; /* first */
    struct quoit_net_events events;
    ucp_context_h context;
    ucp_worker_h worker;
    bool has_frames; /* puts, gets and messages are frames */
    uint64_t secret; /* of this end's frames */
    struct region *regions;
    uint32_t host; /* this one, or the PE endpoint's number */
    uint32_t host_count;
    uint32_t peer_count;    /* hosts, then PE endpoints */
    uint32_t coming_count;  /* peers that are coming */
    uint32_t waiting_count; /* peers that are_waiting */
    struct peer *peers;     /* [peer_count] */
    struct op *ops;         /* transfers, then sends */
    struct op *free_transfers;
    struct op *free_sends;
    struct op_list done; /* gets that were complete at once: the next progress reports them */
    uint32_t posted_count;
    uint32_t done_count; /* of one progress */
    char *buffers;
    int wait_fd;
};

static inline void quoit_ucx_append(struct op_list *list, struct op *op)
{
    op->next = NULL;
    if (!list->first)
        list->end = &list->first;
    *list->end = op;
    list->end = &op->next;
}

static inline struct op *quoit_ucx_take_first(struct op_list *list)
{
    struct op *first = list->first;
    list->first = first->next;
    return first;
}

static inline struct op *quoit_ucx_take_all(struct op_list *list)
{
    struct op *first = list->first;
    list->first = NULL;
    return first;
}

static inline void quoit_ucx_release(struct op *op)
{
    struct op **list = op->kind == OP_SEND ? &op->ucx->free_sends : &op->ucx->free_transfers;
    op->kind = OP_FREE;
    op->next = *list;
    *list = op;
}

/* Releases the operation and reports it. */
static inline void quoit_ucx_finish(struct op *op, ucs_status_t status)
{
    struct ucx *ucx = op->ucx;
    uint32_t host = op->host;
    uint64_t cookie = op->cookie, bytes = op->bytes;
    bool is_transfer = op->kind != OP_SEND, is_reported = op->is_abandoned;
    quoit_assert(op->kind != OP_FREE);
    ucx->peers[host].send_count -= !is_transfer;
    quoit_ucx_release(op);
    ucx->done_count++;
    if (is_reported)
        return;
    if (status != UCS_OK)
        ucx->events.broken(ucx->events.arg, host);
    if (is_transfer)
        ucx->events.done(ucx->events.arg, host, cookie, status == UCS_OK ? QUOIT_OK : QUOIT_GONE, bytes);
}

static inline void quoit_ucx_finish_all(struct op *first, ucs_status_t status)
{
    while (first) {
        struct op *op = first;
        first = op->next;
        quoit_ucx_finish(op, status);
    }
}

/* frames.c */

/* What UCX must be told before a context that carries frames is made. */
ucs_status_t quoit_ucx_configure_frames(ucp_config_t *config);
/* The handler of FRAME_ID. */
ucs_status_t quoit_ucx_on_frame(void *arg, const void *header, size_t header_bytes, void *data, size_t bytes,
                                const ucp_am_recv_param_t *param);
/* Sends what can be sent of the operation now; quoit_ucx_send_frames() sends the rest. */
void quoit_ucx_queue_frames(struct op *op);
void quoit_ucx_send_frames(struct ucx *ucx);
/* Forgets what has not left for a host; its transfers are the caller's to report. */
void quoit_ucx_drop_frames(struct peer *peer);

#endif
