/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts, gets and messages over a transport of UCX that has no remote memory of its own, TCP.
 *
 * UCX would make puts and gets of active messages too, but version 1.13 aborts the process when the other one has ended
 * and the confirmation of its put cannot be sent, or while the two agree on the numbers of their endpoints. A frame is
 * an active message that is sent at once or not at all: UCX queues nothing, and the agreement, which only queued
 * messages need, never begins. What cannot be sent waits here, and leaves from progress.
 *
 * Frames to a host arrive in the order of their sends, so a host confirms puts by their number alone. A frame carries
 * the secret that the address of its receiver has told to the hosts of the job: an unauthenticated peer's reads and
 * writes nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "net/ucx/ucx.h"

#define SEGMENT     "64k" /* of TCP; with UCX's 8 KiB a put of 1 MiB takes three times as long */
#define PIECE_BYTES 65280 /* fits a segment with the headers of frame, UCX and TCP */

enum frame_kind { FRAME_PUT = 1, FRAME_GET, FRAME_ANSWER, FRAME_LANDED };

/* In front of the bytes of a put or an answer. */
struct frame {
    uint64_t secret;  /* of the receiver */
    uint64_t address; /* PUT, GET: in the receiver's memory; ANSWER: offset in what was asked for */
    uint64_t count;   /* GET: bytes; LANDED: puts */
    uint64_t id;      /* GET, ANSWER: the get */
    uint32_t host;    /* the sender; a PE endpoint's number follows those of the hosts */
    uint8_t kind;     /* enum frame_kind */
    uint8_t is_last;  /* PUT, ANSWER: nothing follows */
    uint8_t zero[2];
};
_Static_assert(sizeof(struct frame) == 40, "no padding crosses the network");

ucs_status_t quoit_ucx_configure_frames(ucp_config_t *config)
{
    static const char *const settings[][2] = {
        {"ZCOPY_THRESH", "inf"},                                 /* what fits a segment is sent at once, */
        {"RNDV_THRESH", "inf"},                                  /* whatever its length */
        {"TX_SEG_SIZE", SEGMENT}, {"RESOLVE_REMOTE_EP_ID", "n"}, /* no agreement as an endpoint is made */
        {"CONN_NB", "y"}, /* a connection that breaks within connect() trips an assertion of UCX 1.13 */
    };
    ucs_status_t status = UCS_OK;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0] && status == UCS_OK; i++)
        status = ucp_config_modify(config, settings[i][0], settings[i][1]);
    return status;
}

/* Sending */

static void wait_to_send(struct peer *peer)
{
    peer->ucx->waiting_count += !peer->is_waiting;
    peer->is_waiting = true;
}

/* At once, or NO_RESOURCE. */
static ucs_status_t send_now(struct peer *peer, unsigned id, const struct frame *frame, const void *bytes,
                             uint64_t count)
{
    const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL,
                                       .flags = UCP_AM_SEND_FLAG_EAGER};
    void *request = ucp_am_send_nbx(peer->endpoint, id, frame, frame ? sizeof *frame : 0, bytes, count, &param);
    quoit_assert(!UCS_PTR_IS_PTR(request));
    peer->ucx->done_count += request == NULL;
    return UCS_PTR_STATUS(request);
}

static ucs_status_t send_frame(struct peer *peer, struct frame frame, const void *bytes, uint64_t count)
{
    frame.secret = peer->secret;
    frame.host = peer->ucx->host;
    return send_now(peer, FRAME_ID, &frame, bytes, count);
}

static ucs_status_t confirm_puts(struct peer *peer)
{
    ucs_status_t status = send_frame(peer, (struct frame){.kind = FRAME_LANDED, .count = peer->landed_count}, NULL, 0);
    if (status == UCS_OK)
        peer->landed_count = 0;
    return status;
}

static ucs_status_t send_first_message(struct peer *peer)
{
    struct op *op = peer->messages.first;
    ucs_status_t status = send_now(peer, MESSAGE_ID, NULL, op->buffer, op->bytes);
    if (status == UCS_OK)
        quoit_ucx_finish(quoit_ucx_take_first(&peer->messages), UCS_OK);
    return status;
}

static uint64_t piece_of(uint64_t bytes, uint64_t done_bytes)
{
    return bytes - done_bytes < PIECE_BYTES ? bytes - done_bytes : PIECE_BYTES;
}

static ucs_status_t send_piece_of_put(struct peer *peer, struct op *op)
{
    uint64_t piece = piece_of(op->bytes, op->done_bytes);
    bool is_last = op->done_bytes + piece == op->bytes;
    const struct frame frame = {.kind = FRAME_PUT, .address = op->remote + op->done_bytes, .is_last = is_last};
    ucs_status_t status = send_frame(peer, frame, op->local + op->done_bytes, piece);
    if (status != UCS_OK)
        return status;
    op->done_bytes += piece;
    if (is_last)
        quoit_ucx_append(&peer->flushed, quoit_ucx_take_first(&peer->posted));
    return UCS_OK;
}

static ucs_status_t send_piece_of_transfer(struct peer *peer)
{
    struct op *op = peer->posted.first;
    if (op->kind == OP_PUT)
        return send_piece_of_put(peer, op);
    uint64_t id = (uint64_t)op->round << 32 | (uint64_t)(op - op->ucx->ops);
    ucs_status_t status = send_frame(
        peer, (struct frame){.kind = FRAME_GET, .address = op->remote, .count = op->bytes, .id = id}, NULL, 0);
    if (status == UCS_OK)
        (void)quoit_ucx_take_first(&peer->posted);
    return status;
}

static ucs_status_t send_piece_of_answer(struct peer *peer)
{
    struct answer *answer = peer->answers;
    uint64_t piece = piece_of(answer->bytes, answer->sent_bytes);
    bool is_last = answer->sent_bytes + piece == answer->bytes;
    const struct frame frame = {
        .kind = FRAME_ANSWER, .address = answer->sent_bytes, .id = answer->id, .is_last = is_last};
    ucs_status_t status = send_frame(peer, frame, answer->from + answer->sent_bytes, piece);
    if (status != UCS_OK)
        return status;
    answer->sent_bytes += piece;
    if (is_last) {
        peer->answers = answer->next;
        peer->answer_count--;
        free(answer);
    }
    return UCS_OK;
}

/* Messages, heartbeats among them, overtake what is long; puts and answers take turns. */
static ucs_status_t send_waiting(struct peer *peer)
{
    ucs_status_t status = UCS_OK;
    if (peer->landed_count > 0)
        status = confirm_puts(peer);
    while (status == UCS_OK && peer->messages.first)
        status = send_first_message(peer);
    while (status == UCS_OK && (peer->posted.first || peer->answers)) {
        if (peer->answers)
            status = send_piece_of_answer(peer);
        if (status == UCS_OK && peer->posted.first)
            status = send_piece_of_transfer(peer);
    }
    return status;
}

static void send_peer(struct peer *peer)
{
    if (!peer->endpoint || peer->coming || peer->is_failed)
        return;
    ucs_status_t status = send_waiting(peer);
    if (status == UCS_OK) {
        peer->is_waiting = false;
        peer->ucx->waiting_count--;
    } else if (status != UCS_ERR_NO_RESOURCE) {
        peer->is_failed = true;
        peer->ucx->events.broken(peer->ucx->events.arg, peer->host);
    }
}

void quoit_ucx_queue_frames(struct op *op)
{
    struct peer *peer = &op->ucx->peers[op->host];
    bool is_first = !peer->is_waiting;
    quoit_ucx_append(op->kind == OP_SEND ? &peer->messages : &peer->posted, op);
    wait_to_send(peer);
    if (is_first)
        send_peer(peer);
}

void quoit_ucx_send_frames(struct ucx *ucx)
{
    for (uint32_t i = 0; ucx->waiting_count > 0 && i < ucx->peer_count; i++)
        if (ucx->peers[i].is_waiting)
            send_peer(&ucx->peers[i]);
}

void quoit_ucx_drop_frames(struct peer *peer)
{
    if (!peer->ucx->has_frames)
        return;
    for (struct op *op = quoit_ucx_take_all(&peer->messages), *next; op; op = next) {
        next = op->next;
        peer->send_count--;
        quoit_ucx_release(op);
    }
    for (struct answer *answer = peer->answers, *next; answer; answer = next) {
        next = answer->next;
        free(answer);
    }
    peer->answers = NULL;
    peer->answer_count = 0;
    peer->landed_count = 0;
    peer->posted.first = NULL;
    peer->flushed.first = NULL;
    peer->ucx->waiting_count -= peer->is_waiting;
    peer->is_waiting = false;
}

/* Receiving */

/* Nothing that a frame names is touched unless it lies in memory that this end has registered. */
static bool is_registered(const struct ucx *ucx, uint64_t address, uint64_t bytes)
{
    for (const struct region *region = ucx->regions; region; region = region->next)
        if (address >= region->base && address - region->base <= region->bytes &&
            bytes <= region->bytes - (address - region->base))
            return true;
    return false;
}

static void take_put(struct peer *peer, const struct frame *frame, const void *bytes, uint64_t count)
{
    if (!is_registered(peer->ucx, frame->address, count))
        return;
    memcpy((void *)(uintptr_t)frame->address, bytes, count);
    if (!frame->is_last)
        return;
    peer->landed_count++;
    wait_to_send(peer);
}

static void take_get(struct peer *peer, const struct frame *frame)
{
    if (!is_registered(peer->ucx, frame->address, frame->count) || peer->answer_count >= QUOIT_NET_TRANSFERS_MAX)
        return;
    struct answer *answer = malloc(sizeof *answer);
    if (!answer) { /* the get would never end */
        peer->ucx->events.broken(peer->ucx->events.arg, peer->host);
        return;
    }
    *answer = (struct answer){.from = (const char *)(uintptr_t)frame->address, .bytes = frame->count, .id = frame->id};
    if (!peer->answers)
        peer->answers_end = &peer->answers;
    *peer->answers_end = answer;
    peer->answers_end = &answer->next;
    peer->answer_count++;
    wait_to_send(peer);
}

static void take_answer(struct peer *peer, const struct frame *frame, const void *bytes, uint64_t count)
{
    uint32_t index = (uint32_t)frame->id;
    struct op *op = &peer->ucx->ops[index < TRANSFER_COUNT ? index : 0];
    if (index >= TRANSFER_COUNT || op->kind != OP_GET || op->host != peer->host || op->round != frame->id >> 32 ||
        frame->address != op->done_bytes || count > op->bytes - op->done_bytes)
        return;
    memcpy(op->local + op->done_bytes, bytes, count);
    op->done_bytes += count;
    if (op->done_bytes == op->bytes)
        quoit_ucx_finish(op, UCS_OK);
}

ucs_status_t quoit_ucx_on_frame(void *arg, const void *header, size_t header_bytes, void *data, size_t bytes,
                                const ucp_am_recv_param_t *param)
{
    struct ucx *ucx = arg;
    struct frame frame;
    ucx->done_count++;
    if (header_bytes != sizeof frame || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0)
        return UCS_OK; /* an unauthenticated peer's */
    memcpy(&frame, header, sizeof frame);
    if (frame.secret != ucx->secret || frame.host >= ucx->peer_count || ucx->peers[frame.host].is_failed)
        return UCS_OK;
    struct peer *peer = &ucx->peers[frame.host];
    if (frame.host >= ucx->host_count && (!peer->endpoint || peer->coming))
        return UCS_OK; /* of a PE endpoint that was not taken, or has gone */
    switch (frame.kind) {
    case FRAME_PUT:
        take_put(peer, &frame, data, bytes);
        break;
    case FRAME_GET:
        take_get(peer, &frame);
        break;
    case FRAME_ANSWER:
        take_answer(peer, &frame, data, bytes);
        break;
    case FRAME_LANDED:
        for (uint64_t i = 0; i < frame.count && peer->flushed.first; i++)
            quoit_ucx_finish(quoit_ucx_take_first(&peer->flushed), UCS_OK);
        break;
    default:
        break;
    }
    return UCS_OK;
}
