/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver for TCP, with the kernel's sockets alone: no library is needed. */
#include "net/tcp/tcp.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
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

#define DEVICES_MAX 64u
#define EVENTS_MAX  64
#define PROBE_MAX   2u         /* connections that are read without asking the kernel which has something */
#define MEET_EVERY  16u        /* looks, while there are so few */
#define CLOSE_NS    200000000u /* what was sent may leave the host before the end closes */
#define OPENING_NS  400000u    /* measured */

/* An address, and a key: neither is believed unless it arrived whole. */
struct wire_address {
    uint32_t digest; /* of the rest */
    uint16_t family; /* 0: of a guest, whom nobody calls */
    uint16_t port;
    uint8_t address[16];
    uint8_t secret[SECRET_BYTES];
};

struct wire_key {
    uint64_t base;
    uint64_t digest; /* of it */
};

struct window {
    uint64_t base;
};

/* Devices */

struct device {
    char name[IF_NAMESIZE];
    char text[INET6_ADDRSTRLEN]; /* its address */
    struct sockaddr_storage address;
    bool is_loopback;
    bool is_virtual; /* a bridge of containers, a tunnel, half of a pair: others may not be behind it */
    uint16_t speed;  /* in 100 Mbit/s, as the kernel says; 0: it does not */
};

static void find_speed(struct device *device)
{
    char path[64 + IF_NAMESIZE];
    long mbit = 0;
    snprintf(path, sizeof path, "/sys/class/net/%s/device", device->name);
    device->is_virtual = access(path, F_OK) != 0;
    snprintf(path, sizeof path, "/sys/class/net/%s/speed", device->name);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%ld", &mbit) == 1 && mbit > 0)
        device->speed = (uint16_t)(mbit / 100 < UINT16_MAX ? mbit / 100 : UINT16_MAX);
    if (file)
        fclose(file);
}

static struct device *find_device(struct device *devices, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(devices[i].name, name) == 0)
            return &devices[i];
    return NULL;
}

static void describe_address(struct device *device, const struct sockaddr *address)
{
    bool is_v4 = address->sa_family == AF_INET;
    const void *bytes = is_v4 ? (const void *)&((const struct sockaddr_in *)(const void *)address)->sin_addr
                              : &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    memset(&device->address, 0, sizeof device->address);
    memcpy(&device->address, address, is_v4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
    inet_ntop(address->sa_family, bytes, device->text, sizeof device->text);
}

/* Those that are up and have an address, which is of IPv4 if they have one. */
static uint32_t list_devices(struct device devices_out[DEVICES_MAX])
{
    struct ifaddrs *all;
    uint32_t count = 0;
    if (getifaddrs(&all) != 0)
        return 0;
    for (const struct ifaddrs *one = all; one; one = one->ifa_next) {
        int family = one->ifa_addr ? one->ifa_addr->sa_family : AF_UNSPEC;
        if ((family != AF_INET && family != AF_INET6) || (one->ifa_flags & IFF_UP) == 0)
            continue;
        struct device *device = find_device(devices_out, count, one->ifa_name);
        if (device && (family != AF_INET || device->address.ss_family == AF_INET))
            continue;
        if (!device) {
            if (count == DEVICES_MAX)
                continue;
            device = &devices_out[count++];
            memset(device, 0, sizeof *device);
            snprintf(device->name, sizeof device->name, "%s", one->ifa_name);
            device->is_loopback = (one->ifa_flags & IFF_LOOPBACK) != 0;
            find_speed(device);
        }
        describe_address(device, one->ifa_addr);
    }
    freeifaddrs(all);
    return count;
}

/* Smaller is better; UINT64_MAX: not what was asked for. */
static uint64_t cost_of(const struct device *device, uint32_t index, const char *provider, const char *wanted)
{
    if ((provider && strcmp(provider, "tcp") != 0) ||
        (wanted && strcmp(device->name, wanted) != 0 && strcmp(device->text, wanted) != 0))
        return UINT64_MAX;
    uint64_t kind = (device->is_loopback ? 4u : 0) + (device->address.ss_family == AF_INET6 ? 2u : 0) +
                    (device->is_virtual ? 1u : 0);
    return kind << 32 | (uint64_t)(UINT16_MAX - device->speed) << 8 | index;
}

/* The best but skip_count. NULL: there are no more. */
static const struct device *best_of(const struct device *devices, uint32_t count, const char *provider,
                                    const char *wanted, uint32_t skip_count)
{
    for (uint64_t least = 0;; skip_count--) {
        const struct device *best = NULL;
        uint64_t best_cost = UINT64_MAX;
        for (uint32_t i = 0; i < count; i++) {
            uint64_t cost = cost_of(&devices[i], i, provider, wanted);
            if (cost >= least && cost < best_cost) {
                best_cost = cost;
                best = &devices[i];
            }
        }
        if (!best || skip_count == 0)
            return best;
        least = best_cost + 1;
    }
}

static void describe(const struct device *device, struct quoit_net_choice *choice)
{
    memset(choice, 0, sizeof *choice);
    strcpy(choice->driver, "tcp");
    strcpy(choice->provider, "tcp");
    snprintf(choice->device, sizeof choice->device, "%s", device->name);
    choice->is_usable = true;
    snprintf(choice->reason, sizeof choice->reason, "address %s%s", device->text,
             device->is_loopback ? ", this machine alone" : "");
}

static void say_no_network(const char *provider, const char *device, char problem[QUOIT_NET_PROBLEM_BYTES])
{
    snprintf(problem, QUOIT_NET_PROBLEM_BYTES, "no network%s%.40s%s%.40s", provider ? " by provider " : "",
             provider ? provider : "", device ? " on device " : "", device ? device : "");
}

static uint32_t survey(const char *provider, const char *wanted, struct quoit_net_choice *choices_out,
                       uint32_t max_count)
{
    struct device devices[DEVICES_MAX];
    uint32_t device_count = list_devices(devices), count = 0;
    const struct device *best = best_of(devices, device_count, provider, wanted, 0);
    if (max_count == 0)
        return 0;
    if (best) {
        describe(best, &choices_out[count++]);
    } else {
        choices_out[count] = (struct quoit_net_choice){.driver = "tcp"};
        say_no_network(provider, wanted, choices_out[count++].reason);
    }
    for (uint32_t i = 0; i < device_count && count < max_count; i++) {
        struct quoit_net_choice *choice = &choices_out[count];
        if (&devices[i] == best)
            continue;
        count++;
        describe(&devices[i], choice);
        choice->is_usable = cost_of(&devices[i], i, provider, wanted) != UINT64_MAX;
        if (!choice->is_usable)
            snprintf(choice->reason, sizeof choice->reason, "another network was asked for");
    }
    return count;
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

/* Where the end listens, and its secret. */
static void tell_address(struct tcp *tcp)
{
    struct sockaddr_storage here = {0};
    socklen_t bytes = sizeof here;
    struct wire_address address = {0};
    memcpy(address.secret, tcp->secret, sizeof address.secret);
    if (tcp->listener >= 0 && getsockname(tcp->listener, (struct sockaddr *)&here, &bytes) == 0) {
        address.family = here.ss_family;
        if (here.ss_family == AF_INET) {
            address.port = ((struct sockaddr_in *)&here)->sin_port;
            memcpy(address.address, &((struct sockaddr_in *)&here)->sin_addr, sizeof(struct in_addr));
        } else {
            address.port = ((struct sockaddr_in6 *)&here)->sin6_port;
            memcpy(address.address, &((struct sockaddr_in6 *)&here)->sin6_addr, sizeof(struct in6_addr));
        }
    }
    address.digest = digest_of(&address);
    tcp->end.address.bytes = sizeof address;
    memcpy(tcp->end.address.data, &address, sizeof address);
}

static void ignore_done(void *arg, uint32_t host, uint64_t cookie, enum quoit_status status, uint64_t bytes)
{
    (void)arg, (void)host, (void)cookie, (void)status, (void)bytes;
}

static void ignore_message(void *arg, const void *message, uint32_t bytes)
{
    (void)arg, (void)message, (void)bytes;
}

static void ignore_broken(void *arg, uint32_t host)
{
    (void)arg, (void)host;
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
    tcp->events = (struct quoit_net_events){.done = ignore_done, .message = ignore_message, .broken = ignore_broken};
    send_rest(tcp);
    for (struct connection *connection = tcp->connections; connection; connection = connection->next)
        quoit_tcp_close(tcp, connection);
    quoit_tcp_sweep(tcp);
    if (tcp->listener >= 0)
        close(tcp->listener);
    if (tcp->events_fd >= 0)
        close(tcp->events_fd);
    free(tcp->peers);
    free(tcp->buffers);
    free(tcp->ops);
    free(tcp);
}

static enum quoit_status refuse(char problem[QUOIT_NET_PROBLEM_BYTES], const char *what, const struct device *device)
{
    snprintf(problem, QUOIT_NET_PROBLEM_BYTES, "TCP: %s on %s (%s)", what, device->name, device->text);
    return QUOIT_SYSTEM;
}

static enum quoit_status open_end(const struct quoit_net_driver_config *config, struct quoit_net_end **end_out,
                                  char problem[QUOIT_NET_PROBLEM_BYTES])
{
    struct device devices[DEVICES_MAX];
    const struct device *device =
        best_of(devices, list_devices(devices), config->provider, config->device, config->skip_count);
    if (!device) {
        say_no_network(config->provider, config->device, problem);
        return QUOIT_UNSUPPORTED;
    }
    struct tcp *tcp = calloc(1, sizeof *tcp);
    if (!tcp)
        return QUOIT_NO_MEMORY;
    tcp->events = config->events;
    tcp->host = config->host;
    tcp->host_count = config->host_count;
    tcp->peer_count = config->host_count + config->guest_count;
    tcp->is_guest = config->is_guest;
    tcp->listener = -1;
    tcp->events_fd = epoll_create1(EPOLL_CLOEXEC);
    tcp->peers = calloc(tcp->peer_count, sizeof *tcp->peers);
    enum quoit_status status = tcp->peers ? make_ops(tcp) : QUOIT_NO_MEMORY;
    if (status == QUOIT_OK && (tcp->events_fd < 0 || getrandom(tcp->secret, sizeof tcp->secret, 0) !=
                                                         (ssize_t)sizeof tcp->secret))
        status = refuse(problem, "no descriptor", device);
    if (status == QUOIT_OK && !config->is_guest && quoit_tcp_listen(tcp, &device->address) != QUOIT_OK)
        status = refuse(problem, "no port to listen", device);
    if (status != QUOIT_OK) {
        close_end(&tcp->end);
        return status;
    }
    tell_address(tcp);
    describe(device, &tcp->end.choice);
    tcp->end.limits = (struct quoit_net_limits){.message_bytes = MESSAGE_BYTES,
                                                .alignment = 1,
                                                .transfer_bytes = UINT64_MAX / 2,
                                                .opening_ns = OPENING_NS,
                                                .orders_puts = true,
                                                .takes_guests = true,
                                                .knows_guests = true};
    *end_out = &tcp->end;
    return QUOIT_OK;
}

static bool read_address(const struct quoit_net_address *from, struct wire_address *address,
                         struct sockaddr_storage *there)
{
    if (from->bytes != sizeof *address)
        return false;
    memcpy(address, from->data, sizeof *address);
    memset(there, 0, sizeof *there);
    there->ss_family = address->family;
    if (address->family == AF_INET) {
        ((struct sockaddr_in *)there)->sin_port = address->port;
        memcpy(&((struct sockaddr_in *)there)->sin_addr, address->address, sizeof(struct in_addr));
    } else if (address->family == AF_INET6) {
        ((struct sockaddr_in6 *)there)->sin6_port = address->port;
        memcpy(&((struct sockaddr_in6 *)there)->sin6_addr, address->address, sizeof(struct in6_addr));
    }
    return address->digest == digest_of(address);
}

static enum quoit_status connect_host(struct quoit_net_end *end, uint32_t host, const struct quoit_net_address *address)
{
    struct tcp *tcp = (struct tcp *)end;
    struct peer *peer = &tcp->peers[host];
    struct wire_address wire;
    if (!read_address(address, &wire, &peer->address))
        return QUOIT_INVALID;
    memcpy(peer->secret, wire.secret, sizeof peer->secret);
    if (host >= tcp->host_count)
        return quoit_tcp_take_guest(tcp, host) ? QUOIT_OK : QUOIT_INVALID;
    if (wire.family != AF_INET && wire.family != AF_INET6)
        return QUOIT_INVALID;
    return quoit_tcp_join(tcp, host) ? QUOIT_OK : QUOIT_INVALID;
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

/* At once, if nothing of the connection waits. */
static void send_to(struct tcp *tcp, struct peer *peer)
{
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
    send_to(tcp, peer);
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
    send_to(tcp, peer);
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
    bool meets = tcp->coming_count > 0; /* some may say nothing for ever */
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

extern const struct quoit_net_driver quoit_net_driver_tcp __attribute__((visibility("default")));
const struct quoit_net_driver quoit_net_driver_tcp = {
    .version = QUOIT_NET_DRIVER_VERSION,
    .name = "tcp",
    .library = "the kernel's sockets",
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
