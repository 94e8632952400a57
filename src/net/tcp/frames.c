/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames: a header, and payload that is received straight into its place where the header is known before it.
 *
 * Frames of a connection arrive in the order of their sends, so an end confirms puts by their number alone. Messages,
 * heartbeats among them, overtake what is long: puts and answers go in pieces, and take turns.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "net/tcp/tcp.h"

#include "env/raw_call.h"

#define PIECE_BYTES (128u << 10)
#define BEGUN_BYTES (256u << 10) /* of frames that are chosen, which no message overtakes */
#define TURN_BYTES  (1u << 20)   /* each way in one progress: the caller has heartbeats for others to send */

/* Sending */

static struct peer *peer_of(struct tcp *tcp, const struct connection *connection)
{
    struct peer *peer = &tcp->peers[connection->host];
    return peer->connection == connection ? peer : NULL;
}

bool quoit_tcp_has_to_send(const struct tcp *tcp, const struct connection *connection)
{
    const struct peer *peer = &tcp->peers[connection->host];
    bool asks = peer->connection == connection && (peer->messages.first || peer->posted.first);
    return connection->out_count > 0 || connection->landed_count > 0 || connection->answers || asks;
}

static struct out *add_out(struct connection *connection, struct frame frame, const char *payload, uint64_t bytes)
{
    struct out *out = &connection->outs[connection->out_count++];
    *out = (struct out){.frame = frame, .payload = payload, .bytes = bytes};
    return out;
}

static uint64_t piece_of(uint64_t bytes, uint64_t done_bytes)
{
    return bytes - done_bytes < PIECE_BYTES ? bytes - done_bytes : PIECE_BYTES;
}

static void add_message(struct connection *connection, struct peer *peer)
{
    struct op *op = quoit_tcp_take_first(&peer->messages);
    add_out(connection, (struct frame){.kind = FRAME_MESSAGE, .bytes = op->bytes}, op->local, op->bytes)->op = op;
}

static void add_transfer(struct tcp *tcp, struct connection *connection, struct peer *peer)
{
    struct op *op = peer->posted.first;
    if (op->kind == OP_GET) {
        uint64_t id = (uint64_t)op->round << 32 | (uint64_t)(op - tcp->ops);
        add_out(connection, (struct frame){.kind = FRAME_GET, .bytes = op->bytes, .address = op->remote, .id = id},
                NULL, 0);
        (void)quoit_tcp_take_first(&peer->posted);
        return;
    }
    uint64_t piece = piece_of(op->bytes, op->done_bytes);
    bool is_last = op->done_bytes + piece == op->bytes;
    struct out *out = add_out(
        connection,
        (struct frame){.kind = FRAME_PUT, .bytes = piece, .address = op->remote + op->done_bytes, .is_last = is_last},
        op->local + op->done_bytes, piece);
    op->done_bytes += piece;
    if (!is_last)
        return;
    out->op = op;
    quoit_tcp_append(&peer->flushed, quoit_tcp_take_first(&peer->posted));
}

static void add_answer(struct connection *connection)
{
    struct answer *answer = connection->answers;
    uint64_t piece = piece_of(answer->bytes, answer->done_bytes);
    const struct frame frame = {.kind = FRAME_ANSWER, .bytes = piece, .address = answer->done_bytes, .id = answer->id};
    struct out *out = add_out(connection, frame, answer->from + answer->done_bytes, piece);
    answer->done_bytes += piece;
    if (answer->done_bytes < answer->bytes)
        return;
    out->answer = answer;
    connection->answers = answer->next;
}

/* The next frames, as many as leave in one call. */
static void choose(struct tcp *tcp, struct connection *connection)
{
    struct peer *peer = peer_of(tcp, connection);
    uint64_t begun = 0;
    for (uint32_t i = 0; i < connection->out_count; i++)
        begun += connection->outs[i].bytes;
    for (; connection->out_count < OUT_COUNT && begun < BEGUN_BYTES;
         begun += connection->outs[connection->out_count - 1].bytes) {
        bool has_transfer = peer && peer->posted.first;
        if (connection->landed_count > 0) {
            add_out(connection, (struct frame){.kind = FRAME_LANDED, .bytes = connection->landed_count}, NULL, 0);
            connection->landed_count = 0;
        } else if (peer && peer->messages.first) {
            add_message(connection, peer);
        } else if (connection->answers && (!has_transfer || !connection->answers_last)) {
            connection->answers_last = true;
            add_answer(connection);
        } else if (has_transfer) {
            connection->answers_last = false;
            add_transfer(tcp, connection, peer);
        } else {
            return;
        }
    }
}

/* So many bytes of what was chosen have left. */
static void leave(struct tcp *tcp, struct connection *connection, uint64_t bytes)
{
    uint32_t gone = 0;
    connection->sent_bytes += bytes;
    for (; gone < connection->out_count; gone++) {
        struct out *out = &connection->outs[gone];
        uint64_t all = sizeof out->frame + out->bytes;
        if (connection->sent_bytes < all)
            break;
        connection->sent_bytes -= all;
        if (out->frame.kind == FRAME_MESSAGE)
            quoit_tcp_finish(tcp, out->op, QUOIT_OK);
        if (out->answer) {
            connection->answer_count--;
            free(out->answer);
        }
    }
    connection->out_count -= gone;
    memmove(connection->outs, connection->outs + gone, connection->out_count * sizeof connection->outs[0]);
}

static uint32_t make_parts(struct connection *connection, struct iovec parts[2 * OUT_COUNT])
{
    uint64_t skipped = connection->sent_bytes;
    uint32_t count = 0;
    for (uint32_t i = 0; i < connection->out_count; i++) {
        struct out *out = &connection->outs[i];
        const struct iovec both[2] = {{&out->frame, sizeof out->frame}, {(char *)(uintptr_t)out->payload, out->bytes}};
        for (int part = 0; part < 2; part++) {
            uint64_t skip = skipped < both[part].iov_len ? skipped : both[part].iov_len;
            skipped -= skip;
            if (both[part].iov_len > skip)
                parts[count++] = (struct iovec){(char *)both[part].iov_base + skip, both[part].iov_len - skip};
        }
    }
    return count;
}

void quoit_tcp_send(struct tcp *tcp, struct connection *connection)
{
    struct iovec parts[2 * OUT_COUNT];
    uint64_t all = 0;
    while (connection->state == OPEN && all < TURN_BYTES) {
        choose(tcp, connection);
        if (connection->out_count == 0) {
            quoit_tcp_want_room(tcp, connection, false);
            return;
        }
        const struct msghdr what = {.msg_iov = parts, .msg_iovlen = make_parts(connection, parts)};
        ssize_t now = quoit_raw_sendmsg(connection->fd, &what, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (now > 0) {
            all += (uint64_t)now;
            leave(tcp, connection, (uint64_t)now);
        } else if (now == -EAGAIN) {
            quoit_tcp_want_room(tcp, connection, true);
            return;
        } else if (now != -EINTR) {
            quoit_tcp_close(tcp, connection);
        }
    }
}

void quoit_tcp_drop(struct connection *connection)
{
    for (uint32_t i = 0; i < connection->out_count; i++)
        free(connection->outs[i].answer);
    for (struct answer *answer = connection->answers, *next; answer; answer = next) {
        next = answer->next;
        free(answer);
    }
    connection->answers = NULL;
    connection->answer_count = 0;
    connection->landed_count = 0;
    connection->out_count = 0;
}

/* Receiving */

/* Nothing that a frame names is touched unless it lies in memory that this end has registered. */
static char *find_registered(const struct tcp *tcp, uint64_t address, uint64_t bytes)
{
    for (const struct region *region = tcp->regions; region; region = region->next)
        if (address >= region->base && address - region->base <= region->bytes &&
            bytes <= region->bytes - (address - region->base))
            return (char *)(uintptr_t)address;
    return NULL;
}

/* The get of this end that an answer is for; NULL: there is none. */
static struct op *op_of_answer(struct tcp *tcp, const struct connection *connection)
{
    const struct frame *frame = &connection->frame;
    uint32_t index = (uint32_t)frame->id;
    struct op *op = &tcp->ops[index < TRANSFER_COUNT ? index : 0];
    bool is_right = index < TRANSFER_COUNT && op->kind == OP_GET && op->host == connection->host &&
                    op->round == frame->id >> 32 && frame->address == op->done_bytes &&
                    frame->bytes <= op->bytes - op->done_bytes;
    return is_right ? op : NULL;
}

/* A PE endpoint that was not taken may say who it is, and nothing else. */
static bool is_known(const struct tcp *tcp, const struct connection *connection)
{
    return connection->host < tcp->host_count || tcp->peers[connection->host].connection == connection;
}

static bool begin_answer(struct tcp *tcp, struct connection *connection)
{
    const struct frame *frame = &connection->frame;
    const char *from = find_registered(tcp, frame->address, frame->bytes);
    if (!from || connection->answer_count >= QUOIT_NET_TRANSFERS_MAX)
        return false;
    struct answer *answer = malloc(sizeof *answer);
    if (!answer)
        return false;
    *answer = (struct answer){.from = from, .bytes = frame->bytes, .id = frame->id};
    if (!connection->answers)
        connection->answers_end = &connection->answers;
    *connection->answers_end = answer;
    connection->answers_end = &answer->next;
    connection->answer_count++;
    return true;
}

static void take_landed(struct tcp *tcp, struct connection *connection)
{
    struct peer *peer = &tcp->peers[connection->host];
    for (uint64_t i = 0; i < connection->frame.bytes && peer->flushed.first; i++)
        quoit_tcp_finish(tcp, quoit_tcp_take_first(&peer->flushed), QUOIT_OK);
}

/* The header is there. False: no end of this job sends it. */
static bool begin_frame(struct tcp *tcp, struct connection *connection)
{
    const struct frame *frame = &connection->frame;
    struct op *op;
    connection->come_bytes = 0;
    connection->to = NULL;
    connection->has_frame = true;
    switch (frame->kind) {
    case FRAME_MESSAGE:
        connection->to = connection->message;
        return frame->bytes <= MESSAGE_BYTES;
    case FRAME_PUT:
        connection->to = find_registered(tcp, frame->address, frame->bytes);
        return connection->to && is_known(tcp, connection);
    case FRAME_GET:
        connection->has_frame = false;
        return is_known(tcp, connection) && begin_answer(tcp, connection);
    case FRAME_ANSWER:
        op = op_of_answer(tcp, connection);
        connection->to = op ? op->local + op->done_bytes : NULL;
        return op;
    case FRAME_LANDED:
        connection->has_frame = false;
        take_landed(tcp, connection);
        return true;
    default:
        return false;
    }
}

/* All of its payload is there. */
static void end_frame(struct tcp *tcp, struct connection *connection)
{
    const struct frame *frame = &connection->frame;
    connection->has_frame = false;
    tcp->done_count++;
    if (frame->kind == FRAME_MESSAGE) {
        tcp->events.message(tcp->events.arg, connection->message, (uint32_t)frame->bytes);
    } else if (frame->kind == FRAME_PUT) {
        connection->landed_count += frame->is_last;
    } else {
        struct op *op = op_of_answer(tcp, connection);
        if (!op)
            return; /* it was abandoned meanwhile */
        op->done_bytes += frame->bytes;
        if (op->done_bytes == op->bytes)
            quoit_tcp_finish(tcp, op, QUOIT_OK);
    }
}

/* From what is held. Returns whether more may be there. */
static bool take_held(struct tcp *tcp, struct connection *connection)
{
    uint32_t held = connection->held_to - connection->held_from;
    if (!connection->has_frame) {
        if (held < sizeof connection->frame)
            return false;
        memcpy(&connection->frame, connection->held + connection->held_from, sizeof connection->frame);
        connection->held_from += (uint32_t)sizeof connection->frame;
        if (!begin_frame(tcp, connection)) {
            quoit_tcp_close(tcp, connection);
            return false;
        }
        if (!connection->has_frame)
            return true;
        held -= (uint32_t)sizeof connection->frame;
    }
    uint64_t left = connection->frame.bytes - connection->come_bytes;
    uint32_t now = left < held ? (uint32_t)left : held;
    memcpy(connection->to + connection->come_bytes, connection->held + connection->held_from, now);
    connection->held_from += now;
    connection->come_bytes += now;
    if (connection->come_bytes < connection->frame.bytes)
        return false;
    end_frame(tcp, connection);
    return true;
}

/* Payload straight to its place, and behind it what fits. Returns bytes; 0: nothing now, or it is closed. */
static uint64_t receive_some(struct tcp *tcp, struct connection *connection, bool *is_drained_out)
{
    uint64_t left = connection->has_frame ? connection->frame.bytes - connection->come_bytes : 0;
    memmove(connection->held, connection->held + connection->held_from, connection->held_to - connection->held_from);
    connection->held_to -= connection->held_from;
    connection->held_from = 0;
    struct iovec parts[2] = {{left ? connection->to + connection->come_bytes : NULL, left},
                             {connection->held + connection->held_to, HELD_BYTES - connection->held_to}};
    struct msghdr what = {.msg_iov = left ? parts : parts + 1, .msg_iovlen = left ? 2 : 1};
    ssize_t now = quoit_raw_recvmsg(connection->fd, &what, MSG_DONTWAIT);
    if (now == 0 || (now < 0 && now != -EAGAIN && now != -EINTR)) {
        quoit_tcp_close(tcp, connection);
        return 0;
    }
    uint64_t come = now > 0 ? (uint64_t)now : 0, direct = come < left ? come : left;
    *is_drained_out = come < left + parts[1].iov_len;
    connection->come_bytes += direct;
    connection->held_to += (uint32_t)(come - direct);
    return come;
}

void quoit_tcp_receive(struct tcp *tcp, struct connection *connection)
{
    bool is_drained = false;
    uint64_t all = 0, now;
    while (connection->state == OPEN && !is_drained && all < TURN_BYTES &&
           (now = receive_some(tcp, connection, &is_drained)) > 0) {
        all += now;
        while (connection->state == OPEN && take_held(tcp, connection))
            ;
    }
}
