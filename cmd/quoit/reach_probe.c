/* SPDX-License-Identifier: BSD-3-Clause */
/* Both sides of a test: who calls sends 64 KiB, more than a link's MTU and than one window of TCP, and the other side
 * answers with its number. */
#include "reach.h"

#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "env/clock.h"
#include "net/devices.h"
#include "net/interfaces.h"
#include "net/ports.h"

#define PAYLOAD_BYTES 65536u
#define LIFE_S        60u
#define CALL_NS       UINT64_C(4000000000) /* SYN is sent again after one and three seconds */
#define CALLS_MAX     (REACH_HOSTS_MAX * QUOIT_NET_PLACES_MAX)
#define MAGIC         0x71726561u

struct answer {
    uint32_t magic;
    uint32_t host;
};

/* Listening */

struct listener {
    struct pollfd fds[QUOIT_NET_PLACES_MAX + CALLS_MAX]; /* listeners, then callers */
    uint32_t come_bytes[CALLS_MAX];
    uint32_t place_count, caller_count;
    uint32_t host;
};

static int listen_at_all(struct listener *listener, const char *devices, struct quoit_ports ports)
{
    struct quoit_net_places places;
    quoit_interfaces_places(devices, "", &places);
    for (uint32_t i = 0; i < QUOIT_NET_PLACES_MAX && places.list[i].address.family != 0; i++) {
        const struct quoit_net_place *place = &places.list[i];
        char text[QUOIT_ADDRESS_TEXT_BYTES];
        struct sockaddr_storage address;
        int fd = quoit_address_read(&place->address, if_nametoindex(place->device), &address)
                     ? quoit_ports_listen(&address, ports, SOMAXCONN)
                     : -1;
        if (fd < 0) {
            quoit_say("host %u cannot listen on %s: %s", listener->host, place->device, strerror(errno));
            continue;
        }
        const struct quoit_wire_address bound = quoit_address_tell(&address);
        quoit_address_print(&bound, text);
        printf("place %u %s %s %u %u %u %u %u\n", listener->host, place->device, text, place->prefix_bits, place->kind,
               place->speed, place->is_ssh, ntohs(bound.port));
        listener->fds[listener->place_count++] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
    printf("stack %u %llx\n", listener->host, (unsigned long long)places.stack);
    return fflush(stdout);
}

static void take_callers(struct listener *listener, int from_fd)
{
    while (listener->caller_count < CALLS_MAX) {
        int fd = accept4(from_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        listener->come_bytes[listener->caller_count] = 0;
        listener->fds[listener->place_count + listener->caller_count++] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
}

/* False: the caller has gone. */
static bool serve_caller(struct listener *listener, uint32_t caller)
{
    char payload[16384];
    const struct answer answer = {.magic = MAGIC, .host = listener->host};
    int fd = listener->fds[listener->place_count + caller].fd;
    ssize_t come = recv(fd, payload, sizeof payload, MSG_DONTWAIT);
    if (come < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (come <= 0)
        return false;
    bool was_whole = listener->come_bytes[caller] >= PAYLOAD_BYTES;
    listener->come_bytes[caller] += (uint32_t)come;
    if (!was_whole && listener->come_bytes[caller] >= PAYLOAD_BYTES)
        return send(fd, &answer, sizeof answer, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof answer;
    return true;
}

static void serve(struct listener *listener)
{
    poll(listener->fds, listener->place_count + listener->caller_count, -1);
    for (uint32_t caller = listener->caller_count; caller-- > 0;) {
        struct pollfd *own = &listener->fds[listener->place_count + caller];
        if (own->revents == 0 || serve_caller(listener, caller))
            continue;
        close(own->fd);
        listener->caller_count--;
        *own = listener->fds[listener->place_count + listener->caller_count];
        listener->come_bytes[caller] = listener->come_bytes[listener->caller_count];
    }
    for (uint32_t place = 0; place < listener->place_count; place++)
        if (listener->fds[place].revents != 0)
            take_callers(listener, listener->fds[place].fd);
}

int reach_listen(const char *host, const char *devices, const char *ports_text)
{
    struct listener *listener = calloc(1, sizeof *listener);
    struct quoit_ports ports;
    if (!listener || !quoit_ports_read(ports_text, &ports))
        return 2;
    listener->host = (uint32_t)strtoul(host, NULL, 10);
    alarm(LIFE_S); /* its oshrun may be gone */
    if (listen_at_all(listener, devices, ports) != 0)
        return 1;
    for (;;)
        serve(listener);
}

/* Calling */

enum call_state { CALL_CONNECTS, CALL_SENDS, CALL_WAITS, CALL_OVER };

struct call {
    enum call_state state;
    uint32_t host, place;
    uint32_t sent_bytes;
    uint64_t begin_ns;
    struct reach_result result;
};

struct caller_side {
    struct call calls[CALLS_MAX];
    struct pollfd fds[CALLS_MAX];
    uint32_t count;
};

static void end_call(struct call *call, struct pollfd *own, enum reach_kind kind, uint32_t detail)
{
    call->state = CALL_OVER;
    call->result = (struct reach_result){kind, detail};
    if (own->fd >= 0)
        close(own->fd);
    own->fd = -1;
}

static void begin_call(struct call *call, struct pollfd *own, const char *text, uint16_t port)
{
    struct quoit_wire_address to;
    struct sockaddr_storage address = {0};
    bool is_address = quoit_address_parse(text, &to);
    to.port = htons(port);
    call->begin_ns = quoit_clock_now_ns();
    *own = (struct pollfd){.fd = -1, .events = POLLOUT};
    if (!is_address || !quoit_address_read(&to, 0, &address)) {
        end_call(call, own, REACH_ERROR, EINVAL);
        return;
    }
    own->fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (own->fd < 0 || (connect(own->fd, (const struct sockaddr *)&address, quoit_address_bytes(&address)) != 0 &&
                        errno != EINPROGRESS))
        end_call(call, own, REACH_ERROR, (uint32_t)errno);
}

static void look_whether_connected(struct call *call, struct pollfd *own)
{
    int error = 0;
    socklen_t bytes = sizeof error;
    (void)getsockopt(own->fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
    if (error != 0) {
        end_call(call, own, REACH_ERROR, (uint32_t)error);
        return;
    }
    call->result.detail = (uint32_t)((quoit_clock_now_ns() - call->begin_ns) / 1000);
    call->state = CALL_SENDS;
}

static void send_more(struct call *call, struct pollfd *own)
{
    static const char payload[PAYLOAD_BYTES];
    ssize_t sent = send(own->fd, payload, PAYLOAD_BYTES - call->sent_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
        end_call(call, own, REACH_ERROR, (uint32_t)errno);
        return;
    }
    call->sent_bytes += sent > 0 ? (uint32_t)sent : 0;
    if (call->sent_bytes < PAYLOAD_BYTES)
        return;
    call->state = CALL_WAITS;
    own->events = POLLIN;
}

static void take_answer(struct call *call, struct pollfd *own)
{
    struct answer answer;
    ssize_t come = recv(own->fd, &answer, sizeof answer, MSG_DONTWAIT);
    if (come < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (come != (ssize_t)sizeof answer || answer.magic != MAGIC)
        end_call(call, own, REACH_ERROR, come < 0 ? (uint32_t)errno : ECONNRESET);
    else if (answer.host != call->host)
        end_call(call, own, REACH_OTHER, answer.host);
    else
        end_call(call, own, REACH_OK, call->result.detail);
}

static bool step_calls(struct caller_side *side)
{
    bool is_over = true;
    for (uint32_t i = 0; i < side->count; i++) {
        struct call *call = &side->calls[i];
        struct pollfd *own = &side->fds[i];
        if (own->revents != 0 && call->state == CALL_CONNECTS)
            look_whether_connected(call, own);
        if (own->revents != 0 && call->state == CALL_SENDS)
            send_more(call, own);
        else if (own->revents != 0 && call->state == CALL_WAITS)
            take_answer(call, own);
        is_over &= call->state == CALL_OVER;
    }
    return is_over;
}

static void read_targets(struct caller_side *side, const char *targets)
{
    for (const char *at = targets; *at && side->count < CALLS_MAX; at += strspn(at, " ")) {
        struct call *call = &side->calls[side->count];
        char address[QUOIT_ADDRESS_TEXT_BYTES];
        unsigned port;
        if (sscanf(at, "%u/%u/%45[^/]/%u", &call->host, &call->place, address, &port) == 4)
            begin_call(call, &side->fds[side->count++], address, (uint16_t)port);
        at += strcspn(at, " ");
    }
}

int reach_call(const char *host, const char *targets)
{
    struct caller_side *side = calloc(1, sizeof *side);
    if (!side)
        return 1;
    uint64_t deadline_ns = quoit_clock_now_ns() + CALL_NS;
    alarm(LIFE_S);
    read_targets(side, targets);
    for (uint64_t now_ns; !step_calls(side) && (now_ns = quoit_clock_now_ns()) < deadline_ns;)
        poll(side->fds, side->count, (int)((deadline_ns - now_ns) / 1000000) + 1);
    for (uint32_t i = 0; i < side->count; i++) {
        struct call *call = &side->calls[i];
        if (call->state != CALL_OVER)
            end_call(call, &side->fds[i], call->state == CALL_CONNECTS ? REACH_NO_ANSWER : REACH_STALLED, 0);
        printf("result %s %u %u %d %u\n", host, call->host, call->place, call->result.kind, call->result.detail);
    }
    free(side);
    return fflush(stdout) == 0 ? 0 : 1;
}
