/* SPDX-License-Identifier: BSD-3-Clause */
/* A network driver for tests, --network shuffle: hosts of one machine over datagram sockets, which do everything that
 * net/net.h allows a network to do. Puts and gets are split, executed in any order, late, in two steps, and overtake
 * messages and are overtaken; every eighth operation finds no room. A word of 8 bytes is never torn. QUOIT_SEED replays
 * the choices, not the times. */
#include "base/assert.h"
#include "base/prng.h"
#include "env/clock.h"
#include "net/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PART_BYTES     65536u /* of a datagram */
#define SOCKET_BYTES   (16 * (int)PART_BYTES)
#define MESSAGE_BYTES  8192u
#define TRANSFER_BYTES ((uint64_t)64 << 20)
#define QUEUE_MOST     256u /* datagrams that wait to be sent to one host; and that have come */
#define BATCH_COUNT    32
#define REGIONS_MAX    8u

enum packet_kind { PACKET_MESSAGE, PACKET_PUT, PACKET_PUT_DONE, PACKET_GET, PACKET_GET_DATA };

struct packet {
    uint32_t kind;
    uint32_t region; /* at the target */
    uint64_t offset; /* in it */
    uint64_t bytes;  /* PUT, GET, GET_DATA: of this part */
    uint64_t op;     /* its number at the origin */
    uint64_t place;  /* of this part in the operation */
    char payload[];
};

/* A datagram, on its way out or in. */
struct item {
    struct item *next;
    struct sockaddr_un other;
    socklen_t other_bytes;
    struct peer *peer;  /* to whom it is sent; NULL: it answers one that came */
    uint32_t bytes;     /* of the packet */
    uint64_t half;      /* of a part that is executed half: how much of it */
    bool is_half;       /* ... */
    char *data;         /* GET: what was read */
    const char *source; /* of a PUT on its way out: read when it is sent */
    _Alignas(8) char packet[];
};

struct queue {
    struct item *first, **last;
    uint32_t count;
};

struct op {
    struct op *next;
    uint64_t number;
    uint32_t host;
    uint32_t left_count; /* parts */
    uint64_t cookie, bytes;
    char *local;
};

struct region {
    char *memory; /* NULL: none */
    uint64_t bytes;
};

struct peer {
    uint32_t message_count, part_count; /* datagrams that wait to be sent */
    struct sockaddr_un address;
    socklen_t address_bytes;
};

struct shuffle {
    struct quoit_net_end end; /* first */
    struct quoit_net_events events;
    struct quoit_prng chance;
    struct peer *peers;
    struct region regions[REGIONS_MAX];
    struct queue messages, parts; /* on their way out: they may overtake each other */
    struct queue in;
    struct op *ops;
    uint64_t last_number;
    int fd;
    _Alignas(8) char buffer[sizeof(struct packet) + MESSAGE_BYTES];
};

static void push(struct queue *queue, struct item *item)
{
    item->next = NULL;
    *queue->last = item;
    queue->last = &item->next;
    queue->count++;
}

/* Takes out what *at points to. */
static void drop(struct queue *queue, struct item **at)
{
    struct item *item = *at;
    *at = item->next;
    if (queue->last == &item->next)
        queue->last = at;
    queue->count--;
    free(item->data);
    free(item);
}

static void drop_all(struct queue *queue)
{
    while (queue->first)
        drop(queue, &queue->first);
}

/* Returns it, with room for `bytes` of payload. */
static struct item *queue_packet(struct queue *queue, const struct packet *packet, uint64_t bytes)
{
    struct item *item = calloc(1, sizeof *item + sizeof *packet + bytes);
    quoit_assert(item);
    item->bytes = (uint32_t)(sizeof *packet + bytes);
    memcpy(item->packet, packet, sizeof *packet);
    push(queue, item);
    return item;
}

static struct item *queue_to(struct queue *queue, struct peer *peer, const struct packet *packet, uint64_t bytes)
{
    struct item *item = queue_packet(queue, packet, bytes);
    item->other = peer->address;
    item->other_bytes = peer->address_bytes;
    item->peer = peer;
    *(packet->kind == PACKET_MESSAGE ? &peer->message_count : &peer->part_count) += 1;
    return item;
}

/* Opening */

static uint32_t survey(const char *provider, const char *device, struct quoit_net_choice *choices_out,
                       uint32_t max_count)
{
    (void)provider, (void)device;
    if (max_count == 0)
        return 0;
    choices_out[0] = (struct quoit_net_choice){.driver = "shuffle",
                                               .provider = "datagrams",
                                               .device = "this machine",
                                               .reason = "for tests",
                                               .is_usable = true};
    return 1;
}

static enum quoit_status open_end(const struct quoit_net_driver_config *config, struct quoit_net_end **end_out,
                                  char problem[QUOIT_NET_PROBLEM_BYTES])
{
    if (config->skip_count > 0)
        return QUOIT_UNSUPPORTED;
    struct shuffle *shuffle = calloc(1, sizeof *shuffle);
    struct peer *peers = calloc(config->host_count + config->pe_endpoint_count, sizeof *peers);
    struct sockaddr_un own = {.sun_family = AF_UNIX};
    socklen_t bytes = sizeof own;
    const int socket_bytes = SOCKET_BYTES;
    const char *seed = getenv("QUOIT_SEED");
    quoit_assert(shuffle);
    quoit_assert(peers);
    shuffle->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* The kernel gives it an abstract name. */
    if (shuffle->fd < 0 || bind(shuffle->fd, (struct sockaddr *)&own, sizeof own.sun_family) != 0 ||
        getsockname(shuffle->fd, (struct sockaddr *)&own, &bytes) != 0) {
        snprintf(problem, QUOIT_NET_PROBLEM_BYTES, "no datagram socket: %s", strerror(errno));
        if (shuffle->fd >= 0)
            close(shuffle->fd);
        free(peers);
        free(shuffle);
        return QUOIT_SYSTEM;
    }
    setsockopt(shuffle->fd, SOL_SOCKET, SO_SNDBUF, &socket_bytes, sizeof socket_bytes);
    shuffle->events = config->events;
    shuffle->peers = peers;
    shuffle->messages.last = &shuffle->messages.first;
    shuffle->parts.last = &shuffle->parts.first;
    shuffle->in.last = &shuffle->in.first;
    shuffle->chance.state = seed ? strtoull(seed, NULL, 0) : quoit_clock_now_ns();
    /* RDMA is not true, but hosts' ends move all the time: so PEs put by themselves. */
    shuffle->end.limits = (struct quoit_net_limits){.message_bytes = MESSAGE_BYTES,
                                                    .alignment = 1,
                                                    .transfer_bytes = TRANSFER_BYTES,
                                                    .is_rdma = true,
                                                    .takes_pe_endpoints = true};
    survey(NULL, NULL, &shuffle->end.choice, 1);
    shuffle->end.address.bytes = bytes;
    memcpy(shuffle->end.address.data, &own, bytes);
    *end_out = &shuffle->end;
    return QUOIT_OK;
}

static void close_end(struct quoit_net_end *end)
{
    struct shuffle *shuffle = (struct shuffle *)end;
    drop_all(&shuffle->messages);
    drop_all(&shuffle->parts);
    drop_all(&shuffle->in);
    for (struct op *op = shuffle->ops, *next; op; op = next) {
        next = op->next;
        free(op);
    }
    close(shuffle->fd);
    free(shuffle->peers);
    free(shuffle);
}

static enum quoit_status connect_host(struct quoit_net_end *end, uint32_t host, const struct quoit_net_address *address)
{
    struct peer *peer = &((struct shuffle *)end)->peers[host];
    if (address->bytes > sizeof peer->address || address->bytes <= sizeof peer->address.sun_family)
        return QUOIT_INVALID;
    memcpy(&peer->address, address->data, address->bytes);
    peer->address_bytes = address->bytes;
    return peer->address.sun_family == AF_UNIX ? QUOIT_OK : QUOIT_INVALID;
}

static enum quoit_status reg(struct quoit_net_end *end, void *memory, uint64_t bytes, struct quoit_net_key *key_out,
                             void **region_out)
{
    struct shuffle *shuffle = (struct shuffle *)end;
    for (uint32_t i = 0; i < REGIONS_MAX; i++)
        if (!shuffle->regions[i].memory) {
            shuffle->regions[i] = (struct region){memory, bytes};
            key_out->bytes = sizeof i;
            memcpy(key_out->data, &i, sizeof i);
            *region_out = &shuffle->regions[i];
            return QUOIT_OK;
        }
    return QUOIT_NO_MEMORY;
}

static void unreg(struct quoit_net_end *end, void *region)
{
    (void)end;
    *(struct region *)region = (struct region){0};
}

static enum quoit_status attach(struct quoit_net_end *end, uint32_t host, const struct quoit_net_key *key,
                                void **window_out)
{
    uint32_t *region = malloc(sizeof *region);
    (void)end, (void)host;
    if (!region || key->bytes != sizeof *region) {
        free(region);
        return QUOIT_INVALID;
    }
    memcpy(region, key->data, sizeof *region);
    *window_out = region;
    return QUOIT_OK;
}

static void detach(struct quoit_net_end *end, void *window)
{
    (void)end;
    free(window);
}

/* Operations */

static bool has_room(struct shuffle *shuffle, uint32_t count)
{
    return count < QUEUE_MOST && quoit_prng_choose(&shuffle->chance, 8) != 0;
}

/* In parts, which meet words' bounds at the target. */
static enum quoit_status begin(struct shuffle *shuffle, const struct quoit_net_transfer *transfer, uint32_t kind)
{
    struct peer *peer = &shuffle->peers[transfer->host];
    if (!has_room(shuffle, peer->part_count))
        return QUOIT_FULL;
    struct op *op = calloc(1, sizeof *op);
    quoit_assert(op);
    *op = (struct op){.next = shuffle->ops,
                      .number = ++shuffle->last_number,
                      .host = transfer->host,
                      .cookie = transfer->cookie,
                      .bytes = transfer->bytes,
                      .local = transfer->local};
    shuffle->ops = op;
    uint64_t at = 0;
    do {
        uint64_t end = (transfer->offset + at + 1 + quoit_prng_choose(&shuffle->chance, PART_BYTES - 8) + 7) & ~7ull;
        uint64_t bytes = end - transfer->offset - at;
        bytes = bytes < transfer->bytes - at ? bytes : transfer->bytes - at;
        const struct packet packet = {.kind = kind,
                                      .region = *(uint32_t *)transfer->window,
                                      .offset = transfer->offset + at,
                                      .bytes = bytes,
                                      .op = op->number,
                                      .place = at};
        struct item *item = queue_to(&shuffle->parts, peer, &packet, kind == PACKET_PUT ? bytes : 0);
        item->source = kind == PACKET_PUT ? (const char *)transfer->local + at : NULL;
        op->left_count++;
        at += bytes;
    } while (at < transfer->bytes);
    return QUOIT_OK;
}

static enum quoit_status put(struct quoit_net_end *end, const struct quoit_net_transfer *transfer)
{
    return begin((struct shuffle *)end, transfer, PACKET_PUT);
}

static enum quoit_status get(struct quoit_net_end *end, const struct quoit_net_transfer *transfer)
{
    return begin((struct shuffle *)end, transfer, PACKET_GET);
}

static void *send_buffer(struct quoit_net_end *end)
{
    struct shuffle *shuffle = (struct shuffle *)end;
    return quoit_prng_choose(&shuffle->chance, 8) != 0 ? shuffle->buffer : NULL;
}

static enum quoit_status send_message(struct quoit_net_end *end, uint32_t host, void *buffer, uint32_t bytes)
{
    struct shuffle *shuffle = (struct shuffle *)end;
    struct peer *peer = &shuffle->peers[host];
    const struct packet packet = {.kind = PACKET_MESSAGE};
    if (!has_room(shuffle, peer->message_count))
        return QUOIT_FULL;
    struct item *item = queue_to(&shuffle->messages, peer, &packet, bytes);
    memcpy(item->packet + sizeof packet, buffer, bytes);
    return QUOIT_OK;
}

/* Progress */

static bool is_same(const struct item *a, const struct item *b)
{
    return a->other_bytes == b->other_bytes && memcmp(&a->other, &b->other, a->other_bytes) == 0;
}

/* Datagrams to one host keep their order; a full socket of one host does not stop the others. */
static uint32_t send_queued(struct shuffle *shuffle, struct queue *out)
{
    uint32_t done_count = 0;
    for (struct item **at = &out->first; *at && done_count < BATCH_COUNT;) {
        struct item *item = *at;
        bool waits = false;
        for (struct item *before = out->first; before != item && !waits; before = before->next)
            waits = is_same(before, item);
        if (item->source)
            memcpy(item->packet + sizeof(struct packet), item->source, item->bytes - sizeof(struct packet));
        ssize_t n = waits ? -1
                          : sendto(shuffle->fd, item->packet, item->bytes, MSG_NOSIGNAL,
                                   (struct sockaddr *)&item->other, item->other_bytes);
        if (n < 0 && (waits || errno == EAGAIN || errno == EINTR || errno == ENOBUFS)) {
            at = &item->next;
            continue;
        }
        if (item->peer)
            *(out == &shuffle->messages ? &item->peer->message_count : &item->peer->part_count) -= 1;
        if (n < 0 && item->peer)
            shuffle->events.broken(shuffle->events.arg, (uint32_t)(item->peer - shuffle->peers));
        drop(out, at);
        done_count++;
    }
    return done_count;
}

static uint32_t receive(struct shuffle *shuffle)
{
    static _Thread_local _Alignas(8) char packet[sizeof(struct packet) + PART_BYTES + 8];
    uint32_t count = 0;
    for (; count < BATCH_COUNT && shuffle->in.count < QUEUE_MOST; count++) {
        struct sockaddr_un from;
        socklen_t from_bytes = sizeof from;
        ssize_t n = recvfrom(shuffle->fd, packet, sizeof packet, 0, (struct sockaddr *)&from, &from_bytes);
        if (n < 0)
            break;
        if ((size_t)n < sizeof(struct packet))
            continue; /* of an unauthenticated peer */
        struct item *item = calloc(1, sizeof *item + (size_t)n);
        quoit_assert(item);
        item->other = from;
        item->other_bytes = from_bytes;
        item->bytes = (uint32_t)n;
        memcpy(item->packet, packet, (size_t)n);
        push(&shuffle->in, item);
    }
    return count;
}

static struct op **find_op(struct shuffle *shuffle, uint64_t number)
{
    struct op **at = &shuffle->ops;
    while (*at && (*at)->number != number)
        at = &(*at)->next;
    return at;
}

static void end_part(struct shuffle *shuffle, const struct packet *packet, uint32_t bytes)
{
    struct op **at = find_op(shuffle, packet->op), *op = *at;
    if (!op)
        return; /* it was abandoned, or is an unauthenticated peer's */
    if (packet->kind == PACKET_GET_DATA) {
        quoit_assert(packet->bytes == bytes);
        quoit_assert(packet->place + bytes <= op->bytes);
        memcpy(op->local + packet->place, packet->payload, bytes);
    }
    if (--op->left_count > 0)
        return;
    *at = op->next;
    shuffle->events.done(shuffle->events.arg, op->host, op->cookie, QUOIT_OK, op->bytes);
    free(op);
}

/* The one half now, the rest in a later call. True: it is done. */
static bool execute(struct shuffle *shuffle, struct item *item)
{
    struct packet *packet = (struct packet *)(void *)item->packet;
    const struct region *region = &shuffle->regions[packet->region % REGIONS_MAX];
    bool is_put = packet->kind == PACKET_PUT;
    if (!region->memory || packet->offset > region->bytes || packet->bytes > region->bytes - packet->offset ||
        packet->bytes > PART_BYTES || (is_put && item->bytes != sizeof *packet + packet->bytes))
        return true; /* of an unauthenticated peer */
    if (!item->is_half) {
        uint64_t end = (packet->offset + quoit_prng_choose(&shuffle->chance, packet->bytes + 1)) & ~7ull;
        item->is_half = true;
        item->half = end > packet->offset ? end - packet->offset : 0;
        item->data = is_put ? NULL : malloc(packet->bytes + 1);
        quoit_assert(is_put || item->data);
        if (is_put)
            memcpy(region->memory + packet->offset, packet->payload, item->half);
        else
            memcpy(item->data, region->memory + packet->offset, item->half);
        return false;
    }
    uint64_t rest = packet->bytes - item->half;
    struct packet answer = *packet;
    answer.kind = is_put ? PACKET_PUT_DONE : PACKET_GET_DATA;
    if (is_put)
        memcpy(region->memory + packet->offset + item->half, packet->payload + item->half, rest);
    else
        memcpy(item->data + item->half, region->memory + packet->offset + item->half, rest);
    struct item *back = queue_packet(&shuffle->parts, &answer, is_put ? 0 : packet->bytes);
    back->other = item->other;
    back->other_bytes = item->other_bytes;
    if (!is_put)
        memcpy(back->packet + sizeof answer, item->data, packet->bytes);
    return true;
}

/* Whether a message that came earlier from the same host waits. */
static bool is_behind(const struct shuffle *shuffle, const struct item *item)
{
    for (const struct item *before = shuffle->in.first; before != item; before = before->next)
        if (((const struct packet *)(const void *)before->packet)->kind == PACKET_MESSAGE && is_same(before, item))
            return true;
    return false;
}

/* What has come, by chance now or in a later call. */
static uint32_t take(struct shuffle *shuffle)
{
    uint32_t done_count = 0;
    for (struct item **at = &shuffle->in.first; *at;) {
        struct item *item = *at;
        struct packet *packet = (struct packet *)(void *)item->packet;
        uint32_t bytes = item->bytes - (uint32_t)sizeof *packet;
        bool is_done = true;
        bool is_message = packet->kind == PACKET_MESSAGE;
        if (quoit_prng_choose(&shuffle->chance, is_message ? 16 : 2) == 0 || (is_message && is_behind(shuffle, item))) {
            at = &item->next;
            continue;
        }
        if (is_message)
            shuffle->events.message(shuffle->events.arg, packet->payload, bytes);
        else if (packet->kind == PACKET_PUT || packet->kind == PACKET_GET)
            is_done = execute(shuffle, item);
        else
            end_part(shuffle, packet, bytes);
        done_count++;
        if (is_done)
            drop(&shuffle->in, at);
        else
            at = &item->next;
    }
    return done_count;
}

static uint32_t progress(struct quoit_net_end *end)
{
    struct shuffle *shuffle = (struct shuffle *)end;
    uint32_t done_count = receive(shuffle);
    done_count += take(shuffle);
    done_count += send_queued(shuffle, &shuffle->messages);
    return done_count + send_queued(shuffle, &shuffle->parts);
}

static void drop_of(struct queue *out, const struct peer *peer)
{
    for (struct item **at = &out->first; *at;)
        if ((*at)->peer == peer)
            drop(out, at);
        else
            at = &(*at)->next;
}

static void abandon(struct quoit_net_end *end, uint32_t host)
{
    struct shuffle *shuffle = (struct shuffle *)end;
    struct peer *peer = &shuffle->peers[host];
    drop_of(&shuffle->messages, peer);
    drop_of(&shuffle->parts, peer);
    peer->message_count = peer->part_count = 0;
    for (struct op **at = &shuffle->ops; *at;) {
        struct op *op = *at;
        if (op->host != host) {
            at = &op->next;
            continue;
        }
        *at = op->next;
        shuffle->events.done(shuffle->events.arg, host, op->cookie, QUOIT_GONE, op->bytes);
        free(op);
    }
}

static int wait_fd(const struct quoit_net_end *end)
{
    return ((const struct shuffle *)end)->fd;
}

static bool arm(struct quoit_net_end *end)
{
    const struct shuffle *shuffle = (const struct shuffle *)end;
    return shuffle->in.count + shuffle->messages.count + shuffle->parts.count == 0;
}

extern const struct quoit_net_driver quoit_net_driver_shuffle __attribute__((visibility("default")));
const struct quoit_net_driver quoit_net_driver_shuffle = {
    .version = QUOIT_NET_DRIVER_VERSION,
    .name = "shuffle",
    .library = "none",
    .survey = survey,
    .open = open_end,
    .close = close_end,
    .connect = connect_host,
    .reg = reg,
    .unreg = unreg,
    .attach = attach,
    .detach = detach,
    .put = put,
    .get = get,
    .send_buffer = send_buffer,
    .send = send_message,
    .progress = progress,
    .abandon = abandon,
    .wait_fd = wait_fd,
    .arm = arm,
};
