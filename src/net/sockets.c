/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/sockets.h"
#include "base/assert.h"
#include "base/log.h"
#include "env/clock.h"
#include "env/raw_call.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define UNAUTHENTICATED_MAX 8u /* that have connected and not shown a token yet */
#define UNAUTHENTICATED_NS                                                                                             \
    1000000000u /* after it they make room for others; one that is stopped meanwhile comes late */
#define UNSENT_BYTES                                                                                                   \
    (64 << 10)            /* that the kernel keeps: of more its pages leave the cache before they are received         \
                           */
#define MEET_NS    20000u /* between looks for them: nobody may ever come */
#define HELD_BYTES 16384u /* received in one call: headers, and payload that they name */
#define PROBE_MAX  2u     /* connections that are read without asking the kernel which has something */
#define EVENTS_MAX 64

struct header {
    uint64_t offset;
    uint64_t bytes;
    uint64_t flag;
    uint64_t value;
};
_Static_assert(sizeof(struct header) == 32, "no padding crosses the network");

struct connection {
    enum quoit_socket_state state;
    int fd; /* -1: none */
    uint32_t number;
    uint8_t token[QUOIT_SOCKETS_TOKEN_BYTES];
    const struct quoit_socket_message *sending; /* begun, and not all sent */
    bool is_full;                               /* the last one found no room, or too little */
    uint32_t open_index;                        /* in sockets->open */
    struct header header;                       /* of the message whose payload is coming */
    uint64_t come_bytes;                        /* of the payload */
    bool has_header;
    uint32_t held_from, held_to; /* what was received and not used */
    char *held;                  /* [HELD_BYTES] */
};

struct unauthenticated {
    int fd;
    uint32_t come_bytes;
    uint64_t until_ns;
    uint8_t token[QUOIT_SOCKETS_TOKEN_BYTES];
};

struct quoit_sockets {
    struct quoit_sockets_config config;
    uint32_t scope; /* the device of the place */
    struct sockaddr_storage listens_at;
    int listener; /* -1: nobody is invited */
    int events;   /* epoll, of the open connections */
    uint32_t invited_count;
    uint32_t joining_count;
    struct unauthenticated unauthenticated[UNAUTHENTICATED_MAX];
    uint32_t unauthenticated_count;
    uint64_t next_meet_ns;     /* 0: now */
    struct connection **peers; /* [count]; NULL: never asked for */
    struct connection **open;
    uint32_t open_count;
};

/* Connections */

static int new_socket(int family)
{
    return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static void send_at_once(int fd)
{
    int yes = 1, unsent = UNSENT_BYTES;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
}

/* Before it connects, so that the packets of the other end are as small. */
static void limit_segments(const struct quoit_sockets *sockets, int fd)
{
    const _Atomic uint32_t *limit = sockets->config.segment_bytes;
    int bytes = limit ? (int)atomic_load_explicit(limit, memory_order_relaxed) : 0;
    if (bytes != 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &bytes, sizeof bytes);
}

static struct connection *connection_of(struct quoit_sockets *sockets, uint32_t peer)
{
    struct connection *own = sockets->peers[peer];
    if (own)
        return own;
    own = calloc(1, sizeof *own);
    if (!own)
        return NULL;
    own->fd = -1;
    own->number = peer;
    sockets->peers[peer] = own;
    return own;
}

static void close_listener(struct quoit_sockets *sockets)
{
    for (uint32_t i = 0; i < sockets->unauthenticated_count; i++)
        close(sockets->unauthenticated[i].fd);
    sockets->unauthenticated_count = 0;
    if (sockets->listener >= 0)
        close(sockets->listener);
    sockets->listener = -1;
}

static void set_state(struct quoit_sockets *sockets, struct connection *own, enum quoit_socket_state state)
{
    sockets->invited_count += (state == QUOIT_SOCKET_INVITED) - (own->state == QUOIT_SOCKET_INVITED);
    sockets->joining_count += (state == QUOIT_SOCKET_JOINING) - (own->state == QUOIT_SOCKET_JOINING);
    own->state = state;
    if (sockets->invited_count == 0)
        close_listener(sockets);
}

static void lose(struct quoit_sockets *sockets, struct connection *own, const char *why)
{
    quoit_log(QUOIT_LOG_INFO, "the connection to PE %u is closed: %s", own->number, why);
    if (own->state == QUOIT_SOCKET_OPEN) {
        sockets->open[own->open_index] = sockets->open[--sockets->open_count];
        sockets->open[own->open_index]->open_index = own->open_index;
    }
    if (own->fd >= 0)
        close(own->fd);
    own->fd = -1;
    free(own->held);
    own->held = NULL;
    own->sending = NULL;
    set_state(sockets, own, QUOIT_SOCKET_LOST);
}

static void be_open(struct quoit_sockets *sockets, struct connection *own, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = own}};
    own->fd = fd;
    own->held = malloc(HELD_BYTES);
    if (!own->held || epoll_ctl(sockets->events, EPOLL_CTL_ADD, fd, &event) != 0) {
        lose(sockets, own, strerror(errno));
        return;
    }
    own->open_index = sockets->open_count;
    sockets->open[sockets->open_count++] = own;
    set_state(sockets, own, QUOIT_SOCKET_OPEN);
}

enum quoit_status quoit_sockets_open(const struct quoit_sockets_config *config, struct quoit_sockets **sockets_out)
{
    struct quoit_sockets *sockets = calloc(1, sizeof *sockets);
    if (!sockets)
        return QUOIT_NO_MEMORY;
    sockets->config = *config;
    sockets->listener = -1;
    sockets->events = -1;
    sockets->peers = calloc(config->count, sizeof *sockets->peers);
    sockets->open = calloc(config->count, sizeof *sockets->open);
    enum quoit_status status = QUOIT_NO_MEMORY;
    if (!sockets->peers || !sockets->open)
        goto close_sockets;
    status = QUOIT_UNSUPPORTED;
    if (config->place.address.family == 0)
        goto close_sockets;
    sockets->scope = if_nametoindex(config->place.device);
    status = QUOIT_SYSTEM;
    sockets->events = epoll_create1(EPOLL_CLOEXEC);
    if (sockets->events < 0)
        goto close_sockets;
    *sockets_out = sockets;
    return QUOIT_OK;

close_sockets:
    quoit_sockets_close(sockets);
    return status;
}

void quoit_sockets_close(struct quoit_sockets *sockets)
{
    if (!sockets)
        return;
    close_listener(sockets);
    for (uint32_t peer = 0; sockets->peers && peer < sockets->config.count; peer++) {
        struct connection *own = sockets->peers[peer];
        if (own && own->fd >= 0)
            close(own->fd);
        if (own)
            free(own->held);
        free(own);
    }
    if (sockets->events >= 0)
        close(sockets->events);
    free(sockets->open);
    free(sockets->peers);
    free(sockets);
}

enum quoit_socket_state quoit_sockets_state(const struct quoit_sockets *sockets, uint32_t peer)
{
    return sockets->peers[peer] ? sockets->peers[peer]->state : QUOIT_SOCKET_NONE;
}

bool quoit_sockets_has_any(const struct quoit_sockets *sockets)
{
    return sockets->open_count + sockets->invited_count + sockets->joining_count != 0;
}

/* Inviting */

static enum quoit_status listen_there(struct quoit_sockets *sockets)
{
    if (!quoit_address_read(&sockets->config.place.address, sockets->scope, &sockets->listens_at))
        return QUOIT_SYSTEM;
    sockets->listener = quoit_ports_listen(&sockets->listens_at, sockets->config.ports, UNAUTHENTICATED_MAX);
    return sockets->listener >= 0 ? QUOIT_OK : QUOIT_SYSTEM;
}

enum quoit_status quoit_sockets_invite(struct quoit_sockets *sockets, uint32_t peer,
                                       struct quoit_connection_request *connection_request_out)
{
    struct connection *own = connection_of(sockets, peer);
    if (!own)
        return QUOIT_NO_MEMORY;
    quoit_assert(own->state == QUOIT_SOCKET_NONE);
    if (sockets->listener < 0 && listen_there(sockets) != QUOIT_OK)
        return QUOIT_SYSTEM;
    if (getrandom(own->token, sizeof own->token, 0) != (ssize_t)sizeof own->token)
        return QUOIT_SYSTEM;
    *connection_request_out = (struct quoit_connection_request){.from = sockets->config.self,
                                                                .address = quoit_address_tell(&sockets->listens_at)};
    memcpy(connection_request_out->token, own->token, sizeof own->token);
    set_state(sockets, own, QUOIT_SOCKET_INVITED);
    return QUOIT_OK;
}

static struct connection *find_invited(struct quoit_sockets *sockets, const uint8_t *token)
{
    for (uint32_t peer = 0; peer < sockets->config.count; peer++) {
        struct connection *own = sockets->peers[peer];
        if (own && own->state == QUOIT_SOCKET_INVITED && memcmp(own->token, token, sizeof own->token) == 0)
            return own;
    }
    return NULL;
}

/* Returns whether the unauthenticated peer is one no more, as one is that is too late. */
static bool meet(struct quoit_sockets *sockets, struct unauthenticated *unauthenticated, bool is_too_late)
{
    ssize_t come = recv(unauthenticated->fd, unauthenticated->token + unauthenticated->come_bytes,
                        sizeof unauthenticated->token - unauthenticated->come_bytes, MSG_DONTWAIT);
    bool waits = come < 0 && (errno == EAGAIN || errno == EINTR);
    if (come > 0)
        unauthenticated->come_bytes += (uint32_t)come;
    if ((come > 0 || waits) && unauthenticated->come_bytes < sizeof unauthenticated->token && !is_too_late)
        return false;
    struct connection *own = unauthenticated->come_bytes == sizeof unauthenticated->token
                                 ? find_invited(sockets, unauthenticated->token)
                                 : NULL;
    if (own) {
        send_at_once(unauthenticated->fd);
        be_open(sockets, own, unauthenticated->fd);
    } else {
        close(unauthenticated->fd);
    }
    return true;
}

static void meet_unauthenticated(struct quoit_sockets *sockets)
{
    uint64_t now_ns = quoit_clock_now_ns();
    if (now_ns < sockets->next_meet_ns)
        return;
    sockets->next_meet_ns = now_ns + MEET_NS;
    while (sockets->unauthenticated_count < UNAUTHENTICATED_MAX) {
        int fd = accept4(sockets->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            break;
        sockets->unauthenticated[sockets->unauthenticated_count++] =
            (struct unauthenticated){.fd = fd, .until_ns = now_ns + UNAUTHENTICATED_NS};
    }
    bool is_full = sockets->unauthenticated_count == UNAUTHENTICATED_MAX;
    for (uint32_t i = 0; i < sockets->unauthenticated_count;) {
        struct unauthenticated unauthenticated = sockets->unauthenticated[i];
        sockets->unauthenticated[i] =
            sockets->unauthenticated[--sockets->unauthenticated_count]; /* the last may close the listener */
        if (meet(sockets, &unauthenticated, is_full && now_ns >= unauthenticated.until_ns))
            continue;
        sockets->unauthenticated[sockets->unauthenticated_count++] = sockets->unauthenticated[i];
        sockets->unauthenticated[i++] = unauthenticated;
    }
}

/* Joining */

enum quoit_status quoit_sockets_join(struct quoit_sockets *sockets,
                                     const struct quoit_connection_request *connection_request)
{
    struct sockaddr_storage address;
    if (connection_request->from >= sockets->config.count || connection_request->from == sockets->config.self ||
        !quoit_address_read(&connection_request->address, sockets->scope, &address))
        return QUOIT_INVALID;
    struct connection *own = connection_of(sockets, connection_request->from);
    if (!own)
        return QUOIT_NO_MEMORY;
    bool is_own_better = own->state == QUOIT_SOCKET_INVITED && sockets->config.self < connection_request->from;
    if (is_own_better || own->state > QUOIT_SOCKET_INVITED)
        return QUOIT_OK;
    memcpy(own->token, connection_request->token, sizeof own->token);
    set_state(sockets, own, QUOIT_SOCKET_JOINING);
    own->fd = new_socket(address.ss_family);
    const struct sockaddr *there = (const struct sockaddr *)&address;
    limit_segments(sockets, own->fd);
    if (own->fd < 0 || (connect(own->fd, there, quoit_address_bytes(&address)) != 0 && errno != EINPROGRESS)) {
        lose(sockets, own, strerror(errno));
        return QUOIT_SYSTEM;
    }
    send_at_once(own->fd);
    return QUOIT_OK;
}

/* Shows the token as soon as the connection takes it. */
static void finish_joining(struct quoit_sockets *sockets)
{
    for (uint32_t peer = 0; peer < sockets->config.count && sockets->joining_count > 0; peer++) {
        struct connection *own = sockets->peers[peer];
        if (!own || own->state != QUOIT_SOCKET_JOINING)
            continue;
        ssize_t sent = send(own->fd, own->token, sizeof own->token, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent == (ssize_t)sizeof own->token)
            be_open(sockets, own, own->fd);
        else if (sent >= 0 || (errno != EAGAIN && errno != EINTR))
            lose(sockets, own, sent >= 0 ? "no room for a token" : strerror(errno));
    }
}

/* Messages */

enum quoit_status quoit_sockets_send(struct quoit_sockets *sockets, uint32_t peer, struct quoit_socket_message *message)
{
    struct connection *own = sockets->peers[peer];
    if (!own || own->state != QUOIT_SOCKET_OPEN)
        return QUOIT_GONE;
    if (own->sending && own->sending != message)
        return QUOIT_FULL;
    struct header header = {message->offset, message->bytes, message->flag, message->value};
    uint64_t sent = message->sent_bytes, head = sent < sizeof header ? sizeof header - sent : 0;
    uint64_t payload_at = head ? 0 : sent - sizeof header;
    struct iovec parts[2] = {{(char *)&header + (sizeof header - head), head},
                             {(char *)(uintptr_t)message->source + payload_at, message->bytes - payload_at}};
    const struct msghdr what = {.msg_iov = head ? parts : parts + 1, .msg_iovlen = head ? 2 : 1};
    ssize_t now = quoit_raw_sendmsg(own->fd, &what, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (now < 0 && now != -EAGAIN && now != -EINTR) {
        lose(sockets, own, strerror((int)-now));
        return QUOIT_GONE;
    }
    message->sent_bytes += now > 0 ? (uint64_t)now : 0;
    bool is_sent = message->sent_bytes == sizeof header + message->bytes;
    own->sending = is_sent || message->sent_bytes == 0 ? NULL : message;
    own->is_full = !is_sent;
    return is_sent ? QUOIT_OK : QUOIT_FULL;
}

static bool fits(const struct quoit_sockets *sockets, const struct header *header)
{
    uint64_t most = sockets->config.memory_bytes;
    bool has_flag = header->flag != QUOIT_SOCKETS_NO_FLAG;
    return header->bytes <= most && header->offset <= most - header->bytes &&
           (!has_flag || (header->flag % 8 == 0 && header->flag <= most - sizeof header->value));
}

/* From what is held, with the payload that is there. Returns whether a whole message was taken. */
static bool take_held(struct quoit_sockets *sockets, struct connection *own)
{
    uint32_t held = own->held_to - own->held_from;
    if (!own->has_header) {
        if (held < sizeof own->header)
            return false;
        memcpy(&own->header, own->held + own->held_from, sizeof own->header);
        own->held_from += (uint32_t)sizeof own->header;
        held -= (uint32_t)sizeof own->header;
        own->has_header = true;
        own->come_bytes = 0;
        if (!fits(sockets, &own->header)) {
            lose(sockets, own, "a message for beyond the memory");
            return false;
        }
    }
    uint64_t left = own->header.bytes - own->come_bytes;
    uint32_t now = left < held ? (uint32_t)left : held;
    memcpy(sockets->config.memory + own->header.offset + own->come_bytes, own->held + own->held_from, now);
    own->held_from += now;
    own->come_bytes += now;
    if (own->come_bytes < own->header.bytes)
        return false;
    own->has_header = false;
    return true;
}

/* Payload straight to its place, and behind it what fits. Returns bytes, or 0: nothing now, or the connection is lost.
 */
static uint64_t receive(struct quoit_sockets *sockets, struct connection *own, bool *is_drained_out)
{
    uint64_t left = own->has_header ? own->header.bytes - own->come_bytes : 0;
    if (own->held_from > 0) {
        memmove(own->held, own->held + own->held_from, own->held_to - own->held_from);
        own->held_to -= own->held_from;
        own->held_from = 0;
    }
    struct iovec parts[2] = {{left ? sockets->config.memory + own->header.offset + own->come_bytes : NULL, left},
                             {own->held + own->held_to, HELD_BYTES - own->held_to}};
    struct msghdr what = {.msg_iov = left ? parts : parts + 1, .msg_iovlen = left ? 2 : 1};
    ssize_t now = quoit_raw_recvmsg(own->fd, &what, MSG_DONTWAIT);
    if (now == 0 || (now < 0 && now != -EAGAIN && now != -EINTR)) {
        lose(sockets, own, now == 0 ? "the other end has closed it" : strerror((int)-now));
        return 0;
    }
    uint64_t come = now > 0 ? (uint64_t)now : 0, direct = come < left ? come : left;
    *is_drained_out = come < left + parts[1].iov_len;
    own->come_bytes += direct;
    own->held_to += (uint32_t)(come - direct);
    return come;
}

static void store_flag(const struct quoit_sockets *sockets, const struct header *header)
{
    if (header->flag == QUOIT_SOCKETS_NO_FLAG)
        return;
    _Atomic uint64_t *flag = (_Atomic uint64_t *)(void *)(sockets->config.memory + header->flag);
    atomic_store_explicit(flag, header->value, memory_order_release); /* pairs with an acquire of the PE that waits */
}

static uint32_t receive_all(struct quoit_sockets *sockets, struct connection *own)
{
    uint32_t count = 0;
    bool is_drained = false;
    while (own->state == QUOIT_SOCKET_OPEN && !is_drained && receive(sockets, own, &is_drained) > 0)
        while (own->state == QUOIT_SOCKET_OPEN && take_held(sockets, own)) {
            store_flag(sockets, &own->header);
            count++;
        }
    return count;
}

uint32_t quoit_sockets_look(struct quoit_sockets *sockets)
{
    uint32_t count = 0;
    if (sockets->invited_count > 0)
        meet_unauthenticated(sockets);
    if (sockets->joining_count > 0)
        finish_joining(sockets);
    if (sockets->open_count <= PROBE_MAX) {
        for (uint32_t i = sockets->open_count; i-- > 0;)
            count += receive_all(sockets, sockets->open[i]);
        return count;
    }
    struct epoll_event events[EVENTS_MAX];
    int event_count = epoll_wait(sockets->events, events, EVENTS_MAX, 0);
    for (int i = 0; i < event_count; i++)
        count += receive_all(sockets, events[i].data.ptr);
    return count;
}

uint32_t quoit_sockets_poll(const struct quoit_sockets *sockets, uint32_t peer, struct pollfd *fds_out)
{
    const struct connection *own = sockets->peers[peer];
    if (!own || own->state != QUOIT_SOCKET_OPEN)
        return 0;
    fds_out[0] = (struct pollfd){.fd = sockets->events, .events = POLLIN};
    fds_out[1] = (struct pollfd){.fd = own->fd, .events = POLLOUT};
    return own->is_full ? 2 : 1;
}
