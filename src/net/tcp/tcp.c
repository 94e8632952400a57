/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver for TCP, with the kernel's sockets alone. It needs no library, so it is linked into what uses it. */
#include "net/tcp/tcp.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/digest.h"
#include "env/clock.h"
#include "net/candidates.h"
#include "net/devices.h"
#include "net/interfaces.h"

#define EVENTS_MAX 64
#define PROBE_MAX  2u         /* connections that are read without asking the kernel which has something */
#define MEET_EVERY 16u        /* looks, while there are so few */
#define CLOSE_NS   200000000u /* what was sent may leave the host before the end closes */
#define OPENING_NS 400000u    /* measured */

/* As wire_address. */
struct wire_key {
    uint64_t base;
    uint64_t digest; /* of it */
};

struct window {
    uint64_t base;
};

/* Choosing */

/* One for each address. */
static uint32_t list(const char *provider, const char *device,
                     struct quoit_interface interfaces_out[QUOIT_INTERFACES_MAX],
                     struct quoit_net_candidate candidates_out[QUOIT_INTERFACES_MAX])
{
    uint32_t count = quoit_interfaces_list(interfaces_out);
    for (uint32_t i = 0; i < count; i++) {
        const struct quoit_interface *interface = &interfaces_out[i];
        const struct quoit_net_place *place = &interface->place;
        struct quoit_net_choice *choice = &candidates_out[i].choice;
        candidates_out[i] = (struct quoit_net_candidate){.choice = {.driver = "tcp", .provider = "tcp"},
                                                         .cost = quoit_net_place_cost(place)};
        memcpy(choice->device, place->device, sizeof place->device);
        if ((!provider || strcmp(provider, "tcp") == 0) && quoit_devices_take(device, place->device, &place->address))
            quoit_net_say_usable(choice, interface->text, place->kind == QUOIT_NET_PLACE_LOOPBACK);
        else
            quoit_net_say_unusable(choice, provider, device);
    }
    return count;
}

static uint32_t survey(const char *provider, const char *device, struct quoit_net_choice *choices_out,
                       uint32_t max_count)
{
    struct quoit_interface interfaces[QUOIT_INTERFACES_MAX];
    struct quoit_net_candidate candidates[QUOIT_INTERFACES_MAX];
    return quoit_net_survey_candidates(candidates, list(provider, device, interfaces, candidates), "tcp", provider,
                                       device, choices_out, max_count);
}

/* Opening */

static enum quoit_status make_ops(struct tcp *tcp)
{
    tcp->ops = calloc(TRANSFER_COUNT + SEND_COUNT, sizeof *tcp->ops);
    tcp->buffers = aligned_alloc(64, (size_t)SEND_COUNT * MESSAGE_BYTES);
    if (!tcp->ops || !tcp->buffers)
        return QUOIT_NO_MEMORY;
    for (uint32_t i = 0; i < TRANSFER_COUNT + SEND_COUNT; i++) {
        if (i >= TRANSFER_COUNT)
            tcp->ops[i].local = tcp->buffers + (size_t)(i - TRANSFER_COUNT) * MESSAGE_BYTES;
        quoit_tcp_release(tcp, &tcp->ops[i]);
    }
    return QUOIT_OK;
}

static uint32_t digest_of(const struct wire_address *address)
{
    return quoit_digest((const char *)address + sizeof address->digest, sizeof *address - sizeof address->digest);
}

/* Where the end is called, and its secret. */
static void tell_address(struct tcp *tcp)
{
    struct wire_address address = {0};
    memcpy(address.secret, tcp->secret, sizeof address.secret);
    address.digest = digest_of(&address);
    tcp->end.address.bytes = sizeof address;
    memcpy(tcp->end.address.data, &address, sizeof address);
    tcp->end.address.at = tcp->end.places.list[tcp->place].address;
}

static void close_listener(struct tcp *tcp, uint32_t place)
{
    if (tcp->listeners[place] >= 0)
        close(tcp->listeners[place]);
    tcp->listeners[place] = -1;
}

/* What was sent leaves first, and what has come is read: the kernel would break a connection with bytes that nobody has
 * read, and what the other end has not received would be lost with it. */
static void send_rest(struct tcp *tcp)
{
    uint64_t deadline_ns = quoit_clock_now_ns() + CLOSE_NS;
    for (bool has_more = true; has_more && quoit_clock_now_ns() < deadline_ns;) {
        has_more = false;
        for (struct connection *connection = tcp->connections; connection; connection = connection->next) {
            if (connection->state != OPEN)
                continue;
            quoit_tcp_send(tcp, connection);
            quoit_tcp_receive(tcp, connection);
            has_more |= connection->state == OPEN && quoit_tcp_has_to_send(tcp, connection);
        }
        if (has_more)
            sched_yield();
    }
}

static void close_end(struct quoit_net_end *end)
{
    struct tcp *tcp = (struct tcp *)end;
    tcp->events = quoit_net_no_events;
    send_rest(tcp);
    for (struct connection *connection = tcp->connections; connection; connection = connection->next)
        quoit_tcp_close(tcp, connection);
    quoit_tcp_sweep(tcp);
    for (uint32_t place = 0; place < QUOIT_NET_PLACES_MAX; place++)
        close_listener(tcp, place);
    if (tcp->events_fd >= 0)
        close(tcp->events_fd);
    free(tcp->peers);
    free(tcp->buffers);
    free(tcp->ops);
    free(tcp);
}

static enum quoit_status refuse(char problem[QUOIT_NET_PROBLEM_BYTES], const char *what, const char *where)
{
    snprintf(problem, QUOIT_NET_PROBLEM_BYTES, "TCP: %s%s: %s", what, where, strerror(errno));
    return QUOIT_SYSTEM;
}

static void refuse_ports(char problem[QUOIT_NET_PROBLEM_BYTES], struct quoit_ports ports, const char *where)
{
    char what[80] = "no port to listen on ";
    if (ports.low)
        snprintf(what, sizeof what, "no port of --network-ports %u-%u is left to listen on ", ports.low, ports.high);
    (void)refuse(problem, what, where);
}

/* At the best addresses of this machine: which of them the hosts take is chosen later. At the loopback device only if
 * there is nothing else. */
static enum quoit_status open_places(struct tcp *tcp, const struct quoit_net_driver_config *config,
                                     char problem[QUOIT_NET_PROBLEM_BYTES])
{
    struct quoit_interface interfaces[QUOIT_INTERFACES_MAX];
    struct quoit_net_candidate candidates[QUOIT_INTERFACES_MAX];
    uint32_t count = list(config->provider, config->device, interfaces, candidates), place_count = 0;
    const struct quoit_net_candidate *best = quoit_net_best(candidates, count, 0);
    if (!best || config->skip_count > 0) {
        quoit_net_say_none(config->provider, config->device, problem);
        return QUOIT_UNSUPPORTED;
    }
    bool is_loopback = best->choice.is_loopback;
    tcp->end.places.stack = quoit_interfaces_stack();
    for (uint32_t rank = 0; best && best->choice.is_loopback == is_loopback && place_count < QUOIT_NET_PLACES_MAX;
         best = quoit_net_best(candidates, count, ++rank)) {
        struct quoit_interface *interface = &interfaces[best - candidates];
        struct quoit_net_place *place = &tcp->end.places.list[place_count];
        int fd = config->is_pe_endpoint ? -1 : quoit_tcp_listen(tcp, &interface->address, config->ports);
        if (fd < 0 &&
            !config->is_pe_endpoint) { /* an address of IPv6 may be one that the kernel still looks for elsewhere */
            char where[QUOIT_NET_PLACE_TEXT_BYTES];
            refuse_ports(problem, config->ports, quoit_net_place_print(&interface->place, where));
            continue;
        }
        *place = interface->place;
        place->address = quoit_address_tell(&interface->address);
        place->is_open = true;
        tcp->listeners[place_count] = fd;
        if (place_count++ == 0)
            tcp->end.choice = best->choice;
    }
    return place_count > 0 ? QUOIT_OK : QUOIT_SYSTEM;
}

static enum quoit_status open_end(const struct quoit_net_driver_config *config, struct quoit_net_end **end_out,
                                  char problem[QUOIT_NET_PROBLEM_BYTES])
{
    struct tcp *tcp = calloc(1, sizeof *tcp);
    if (!tcp)
        return QUOIT_NO_MEMORY;
    tcp->events = config->events;
    tcp->host = config->host;
    tcp->host_count = config->host_count;
    tcp->peer_count = config->host_count + config->pe_endpoint_count;
    tcp->is_pe_endpoint = config->is_pe_endpoint;
    tcp->segment_bytes = config->segment_bytes;
    for (uint32_t place = 0; place < QUOIT_NET_PLACES_MAX; place++)
        tcp->listeners[place] = -1;
    tcp->events_fd = epoll_create1(EPOLL_CLOEXEC);
    tcp->peers = calloc(tcp->peer_count, sizeof *tcp->peers);
    enum quoit_status status = tcp->peers ? make_ops(tcp) : QUOIT_NO_MEMORY;
    if (status == QUOIT_OK &&
        (tcp->events_fd < 0 || getrandom(tcp->secret, sizeof tcp->secret, 0) != (ssize_t)sizeof tcp->secret))
        status = refuse(problem, "no descriptor", "");
    if (status == QUOIT_OK)
        status = open_places(tcp, config, problem);
    if (status != QUOIT_OK) {
        close_end(&tcp->end);
        return status;
    }
    tell_address(tcp);
    tcp->end.limits = (struct quoit_net_limits){.message_bytes = MESSAGE_BYTES,
                                                .alignment = 1,
                                                .transfer_bytes = UINT64_MAX / 2,
                                                .opening_ns = OPENING_NS,
                                                .orders_puts = true,
                                                .takes_pe_endpoints = true,
                                                .knows_pe_endpoints = true};
    *end_out = &tcp->end;
    return QUOIT_OK;
}

static void settle(struct quoit_net_end *end, uint32_t index)
{
    struct tcp *tcp = (struct tcp *)end;
    const struct quoit_net_place *place = &end->places.list[index];
    char address[QUOIT_ADDRESS_TEXT_BYTES];
    tcp->place = index;
    end->address.at = place->address;
    memcpy(end->choice.device, place->device, sizeof place->device);
    quoit_address_print(&place->address, address);
    quoit_net_say_usable(&end->choice, address, place->kind == QUOIT_NET_PLACE_LOOPBACK);
    for (uint32_t other = 0; other < QUOIT_NET_PLACES_MAX; other++)
        if (other != index)
            close_listener(tcp, other);
}

static void explain(const struct quoit_net_end *end, uint32_t host, char text_out[QUOIT_NET_PROBLEM_BYTES])
{
    quoit_tcp_explain((const struct tcp *)end, host, text_out);
}

static enum quoit_status connect_host(struct quoit_net_end *end, uint32_t host, const struct quoit_net_address *address)
{
    struct tcp *tcp = (struct tcp *)end;
    struct peer *peer = &tcp->peers[host];
    struct wire_address wire;
    if (address->bytes != sizeof wire)
        return QUOIT_INVALID;
    memcpy(&wire, address->data, sizeof wire);
    if (wire.digest != digest_of(&wire))
        return QUOIT_INVALID;
    memcpy(peer->secret, wire.secret, sizeof peer->secret);
    if (host >= tcp->host_count)
        return quoit_tcp_take_pe_endpoint(tcp, host) ? QUOIT_OK : QUOIT_INVALID;
    peer->at = address->at;
    return quoit_address_read(&peer->at, if_nametoindex(end->places.list[tcp->place].device), &peer->address)
               ? QUOIT_OK
               : QUOIT_INVALID;
}

/* Memory */

static enum quoit_status reg(struct quoit_net_end *end, void *memory, uint64_t bytes, struct quoit_net_key *key_out,
                             void **region_out)
{
    struct tcp *tcp = (struct tcp *)end;
    struct region *region = malloc(sizeof *region);
    if (!region)
        return QUOIT_NO_MEMORY;
    *region = (struct region){.base = (uint64_t)(uintptr_t)memory, .bytes = bytes, .next = tcp->regions};
    tcp->regions = region;
    const struct wire_key key = {.base = region->base, .digest = quoit_digest(&region->base, sizeof region->base)};
    key_out->bytes = sizeof key;
    memcpy(key_out->data, &key, sizeof key);
    *region_out = region;
    return QUOIT_OK;
}

static void unreg(struct quoit_net_end *end, void *region)
{
    struct region **at = &((struct tcp *)end)->regions;
    while (*at != region)
        at = &(*at)->next;
    *at = (*at)->next;
    free(region);
}

static enum quoit_status attach(struct quoit_net_end *end, uint32_t host, const struct quoit_net_key *key,
                                void **window_out)
{
    struct wire_key wire;
    (void)end, (void)host;
    if (key->bytes != sizeof wire)
        return QUOIT_INVALID;
    memcpy(&wire, key->data, sizeof wire);
    if (wire.digest != quoit_digest(&wire.base, sizeof wire.base))
        return QUOIT_INVALID;
    struct window *window = malloc(sizeof *window);
    if (!window)
        return QUOIT_NO_MEMORY;
    window->base = wire.base;
    *window_out = window;
    return QUOIT_OK;
}

static void detach(struct quoit_net_end *end, void *window)
{
    (void)end;
    free(window);
}

/* Operations */

/* At once, if nothing of the connection waits. The first operation calls the host: most hosts of many never need a
 * connection. A call that the own kernel refuses has no way to go. */
static void send_to(struct tcp *tcp, uint32_t host)
{
    struct peer *peer = &tcp->peers[host];
    if (!peer->connection && host < tcp->host_count && peer->call_at_ns == 0 && !quoit_tcp_join(tcp, host))
        quoit_tcp_break(tcp, host);
    if (peer->connection && peer->connection->state == OPEN && !peer->connection->wants_room)
        quoit_tcp_send(tcp, peer->connection);
}

static enum quoit_status begin(struct tcp *tcp, const struct quoit_net_transfer *transfer, enum op_kind kind)
{
    struct peer *peer = &tcp->peers[transfer->host];
    const struct window *window = transfer->window;
    struct op *op = tcp->free_transfers;
    if (!op)
        return QUOIT_FULL;
    if (peer->is_failed)
        return QUOIT_GONE;
    tcp->free_transfers = op->next;
    uint32_t round = op->round + 1;
    *op = (struct op){.kind = kind,
                      .host = transfer->host,
                      .round = round,
                      .cookie = transfer->cookie,
                      .bytes = transfer->bytes,
                      .local = transfer->local,
                      .remote = window->base + transfer->offset};
    quoit_tcp_append(&peer->posted, op);
    send_to(tcp, transfer->host);
    return QUOIT_OK;
}

static enum quoit_status put(struct quoit_net_end *end, const struct quoit_net_transfer *transfer)
{
    return begin((struct tcp *)end, transfer, OP_PUT);
}

static enum quoit_status get(struct quoit_net_end *end, const struct quoit_net_transfer *transfer)
{
    return begin((struct tcp *)end, transfer, OP_GET);
}

static void *send_buffer(struct quoit_net_end *end)
{
    const struct tcp *tcp = (struct tcp *)end;
    return tcp->free_sends ? tcp->free_sends->local : NULL;
}

static enum quoit_status send_message(struct quoit_net_end *end, uint32_t host, void *buffer, uint32_t bytes)
{
    struct tcp *tcp = (struct tcp *)end;
    struct peer *peer = &tcp->peers[host];
    struct op *op = tcp->free_sends;
    quoit_assert(op);
    quoit_assert(op->local == buffer);
    if (peer->is_failed)
        return QUOIT_GONE;
    if (peer->send_count >= SENDS_MAX)
        return QUOIT_FULL;
    tcp->free_sends = op->next;
    op->kind = OP_SEND;
    op->host = host;
    op->bytes = bytes;
    peer->send_count++;
    quoit_tcp_append(&peer->messages, op);
    send_to(tcp, host);
    return QUOIT_OK;
}

/* Progress */

static void receive_all(struct tcp *tcp)
{
    for (struct connection *connection = tcp->connections; connection; connection = connection->next)
        if (connection->state == OPEN)
            quoit_tcp_receive(tcp, connection);
}

/* What epoll knows of. */
static void attend(struct tcp *tcp)
{
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(tcp->events_fd, events, EVENTS_MAX, 0);
    /* Some may say nothing for ever. */
    bool meets = tcp->coming_count > 0 || tcp->again_count > 0 || tcp->probing_count > 0;
    for (int i = 0; i < count; i++) {
        struct connection *connection = events[i].data.ptr;
        meets |= !connection || connection->state != OPEN;
        if (connection && connection->state == OPEN)
            quoit_tcp_receive(tcp, connection);
    }
    if (meets)
        quoit_tcp_meet(tcp);
}

/* What answers there are to what has come, and what waited for room. */
static void send_all(struct tcp *tcp)
{
    for (struct connection *connection = tcp->connections; connection; connection = connection->next)
        if (connection->state == OPEN && quoit_tcp_has_to_send(tcp, connection))
            quoit_tcp_send(tcp, connection);
}

static uint32_t progress(struct quoit_net_end *end)
{
    struct tcp *tcp = (struct tcp *)end;
    tcp->done_count = 0;
    bool probes = tcp->connection_count <= PROBE_MAX;
    if (probes)
        receive_all(tcp);
    if (!probes || tcp->look_count++ % MEET_EVERY == 0)
        attend(tcp);
    send_all(tcp);
    quoit_tcp_sweep(tcp);
    return tcp->done_count;
}

static void abandon(struct quoit_net_end *end, uint32_t host)
{
    struct tcp *tcp = (struct tcp *)end;
    struct peer *peer = &tcp->peers[host];
    peer->is_failed = true;
    if (peer->connection)
        quoit_tcp_close(tcp, peer->connection);
    peer->messages.first = peer->posted.first = peer->flushed.first = NULL;
    for (uint32_t i = 0; i < TRANSFER_COUNT + SEND_COUNT; i++) {
        struct op *op = &tcp->ops[i];
        if (op->kind != OP_FREE && op->host == host)
            quoit_tcp_finish(tcp, op, QUOIT_GONE);
    }
}

/* A process that is stopped, or has no processor, keeps its connections, and the kernel acknowledges for it what it
 * does not read; when its buffers are full, the questions whether there is room, which come more and more rarely. */
static uint64_t sign_age_ns(const struct quoit_net_end *end, uint32_t host)
{
    const struct connection *connection = ((const struct tcp *)end)->peers[host].connection;
    struct tcp_info info;
    socklen_t bytes = sizeof info;
    if (!connection || getsockopt(connection->fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0 ||
        info.tcpi_state != TCP_ESTABLISHED)
        return UINT64_MAX;
    bool has_all = info.tcpi_unacked == 0 && info.tcpi_probes == 0;
    return has_all ? 0 : (uint64_t)info.tcpi_last_ack_recv * 1000000;
}

static int wait_fd(const struct quoit_net_end *end)
{
    return ((const struct tcp *)end)->events_fd;
}

/* What waits for room does so with epoll; the rest had its turn in progress, and has another one. */
static bool arm(struct quoit_net_end *end)
{
    const struct tcp *tcp = (struct tcp *)end;
    for (const struct connection *connection = tcp->connections; connection; connection = connection->next)
        if (connection->state == OPEN && !connection->wants_room && quoit_tcp_has_to_send(tcp, connection))
            return false;
    return true;
}

const struct quoit_net_driver quoit_net_driver_tcp = {
    .version = QUOIT_NET_DRIVER_VERSION,
    .name = "tcp",
    .library = "the kernel's sockets",
    .survey = survey,
    .open = open_end,
    .settle = settle,
    .explain = explain,
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
    .sign_age_ns = sign_age_ns,
    .wait_fd = wait_fd,
    .arm = arm,
};
