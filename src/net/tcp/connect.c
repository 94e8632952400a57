/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections: who calls says hello with the secret of the end that it calls, and asks for nothing before it is let in.
 *
 * Two hosts may call each other at once. Then the call of the lower number is taken: the lower one hangs up on the
 * other, which drops its own call and answers.
 *
 * A link on the way may drop packets that are larger than it takes, and the report of that may not arrive: small ones
 * pass, and the rest is sent again for ever. So before it is let in the caller sends as much as one packet carries, and
 * is sent as much. What has no acknowledgement after three repetitions, or does not come meanwhile, is lost: the next
 * call has smaller packets both ways, which TCP agrees on when it connects and never again.
 *
 * Only a refused call shows that nobody is there: who is called was listening before its address was known. Any other
 * call that ends without an answer is repeated, for as long as net.c waits for the host: the machine may be busy, a
 * cable may be out, or the caller was held up before its hello and was taken for one who sends garbage. */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "env/clock.h"
#include "net/tcp/tcp.h"

#define COMING_MAX       64u         /* that have not said who they are, beside one for each peer */
#define COMING_NS        2000000000u /* for that, */
#define COMING_FULL_NS   100000000u  /* or if there are more than so many */
#define AGAIN_NS         1000000u    /* before the second call, and twice as long before each further one, */
#define AGAIN_SHIFT_MAX  8u          /* so often */
#define PROBE_BYTES_MAX  (HELD_BYTES - (uint32_t)sizeof(struct hello))
#define TCP_OPTION_BYTES 12u          /* of its segments, for time stamps */
#define PROBED_NS        10000000000u /* for the probe of an end whose hello is right, */
#define LOST_NS          1500000000u  /* and for one that has begun: TCP repeats after 0.2, 0.6 and 1.4 s, as it has */
#define LOST_COUNT       3u           /* repetitions of one that is sent */
#define UNSENT_BYTES     (128 << 10)  /* that the kernel keeps: no message overtakes them, however slow the cable is */

static void watch(struct tcp *tcp, struct connection *connection, uint32_t events)
{
    struct epoll_event event = {.events = events, .data = {.ptr = connection}};
    int how = connection->is_watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    connection->is_watched = epoll_ctl(tcp->events_fd, how, connection->fd, &event) == 0;
}

void quoit_tcp_want_room(struct tcp *tcp, struct connection *connection, bool wants_room)
{
    if (connection->wants_room == wants_room)
        return;
    connection->wants_room = wants_room;
    watch(tcp, connection, wants_room ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static struct connection *new_connection(struct tcp *tcp, int fd, enum connection_state state, uint32_t host)
{
    int yes = 1, unsent = UNSENT_BYTES;
    struct connection *connection = fd < 0 ? NULL : malloc(sizeof *connection);
    if (!connection) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    memset(connection, 0, offsetof(struct connection, held));
    connection->fd = fd;
    connection->state = state;
    connection->host = host;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    watch(tcp, connection, state == CONNECTING ? EPOLLIN | EPOLLOUT : EPOLLIN);
    tcp->coming_count += state == COMING;
    connection->next = tcp->connections;
    tcp->connections = connection;
    tcp->connection_count++;
    return connection;
}

static bool is_probing(const struct connection *connection)
{
    return connection->state == CONNECTING && connection->step >= CALL_PROBED;
}

/* Without a word to the caller. */
static void hang_up(struct tcp *tcp, struct connection *connection)
{
    struct peer *peer = connection->state == COMING ? NULL : &tcp->peers[connection->host];
    if (connection->state == CLOSED)
        return;
    if (peer && peer->connection == connection)
        peer->connection = NULL;
    if (peer && peer->coming == connection)
        peer->coming = NULL;
    close(connection->fd);
    connection->fd = -1;
    tcp->coming_count -= connection->state == COMING;
    tcp->probing_count -= is_probing(connection);
    connection->state = CLOSED;
    quoit_tcp_drop(connection);
}

void quoit_tcp_close(struct tcp *tcp, struct connection *connection)
{
    bool is_of_peer = connection->state != COMING && connection->state != CLOSED &&
                      tcp->peers[connection->host].connection == connection;
    uint32_t host = connection->host;
    hang_up(tcp, connection);
    if (is_of_peer && !tcp->peers[host].is_failed)
        quoit_tcp_break(tcp, host);
}

void quoit_tcp_sweep(struct tcp *tcp)
{
    for (struct connection **at = &tcp->connections; *at;) {
        struct connection *connection = *at;
        if (connection->state != CLOSED) {
            at = &connection->next;
            continue;
        }
        *at = connection->next;
        tcp->connection_count--;
        free(connection);
    }
}

int quoit_tcp_listen(struct tcp *tcp, struct sockaddr_storage *address, struct quoit_ports ports)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = NULL}};
    int fd = quoit_ports_listen(address, ports, SOMAXCONN);
    if (fd >= 0 && epoll_ctl(tcp->events_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Calling */

void quoit_tcp_call_later(struct tcp *tcp, uint32_t host)
{
    struct peer *peer = &tcp->peers[host];
    uint32_t shift = peer->call_count < AGAIN_SHIFT_MAX ? peer->call_count : AGAIN_SHIFT_MAX;
    tcp->again_count += peer->call_at_ns == 0;
    peer->call_at_ns = quoit_clock_now_ns() + ((uint64_t)AGAIN_NS << shift);
    peer->call_count++;
}

static void call_no_more(struct tcp *tcp, struct peer *peer)
{
    tcp->again_count -= peer->call_at_ns != 0;
    peer->call_at_ns = 0;
}

/* A connection is open, whichever end called. */
static void forget_calls(struct tcp *tcp, struct peer *peer)
{
    call_no_more(tcp, peer);
    peer->call_count = 0;
    peer->error = 0;
    peer->lost_bytes = 0;
}

/* The connection of a call with such packets is open. 0: as the devices are. */
static void note_segments(struct tcp *tcp, uint32_t host, uint32_t bytes, uint32_t lost_bytes)
{
    if (bytes == 0 || (tcp->segment_bytes != 0 && bytes >= tcp->segment_bytes))
        return;
    tcp->segment_bytes = bytes;
    tcp->events.narrowed(tcp->events.arg, host, bytes, lost_bytes);
}

static uint32_t segment_limit(const struct tcp *tcp, uint32_t host)
{
    return tcp->peers[host].segment_bytes != 0 ? tcp->peers[host].segment_bytes : tcp->segment_bytes;
}

/* What an MTU of 1500, of a tunnel, of IPv6's least and of IPv4's leaves in either. 0: there is none smaller. */
static uint32_t next_smaller(uint32_t bytes)
{
    static const uint32_t steps[] = {1440, 1320, 1220, 536};
    for (uint32_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (steps[i] + TCP_OPTION_BYTES < bytes)
            return steps[i];
    return 0;
}

static void call_again(struct tcp *tcp, uint64_t now_ns)
{
    for (uint32_t host = 0; host < tcp->host_count && tcp->again_count > 0; host++) {
        struct peer *peer = &tcp->peers[host];
        if (peer->call_at_ns == 0 || (now_ns < peer->call_at_ns && !peer->is_failed))
            continue;
        call_no_more(tcp, peer);
        if (peer->is_failed || quoit_tcp_join(tcp, host))
            continue;
        if (peer->error == ECONNREFUSED)
            quoit_tcp_break(tcp, host);
        else
            quoit_tcp_call_later(tcp, host);
    }
}

bool quoit_tcp_join(struct tcp *tcp, uint32_t host)
{
    struct peer *peer = &tcp->peers[host];
    if (peer->connection)
        return true;
    int fd = socket(peer->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct connection *connection = new_connection(tcp, fd, CONNECTING, host);
    if (!connection) {
        peer->error = errno;
        return false;
    }
    peer->connection = connection;
    int segment_bytes = (int)segment_limit(tcp, host);
    if (segment_bytes != 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment_bytes, sizeof segment_bytes);
    const struct sockaddr *there = (const struct sockaddr *)&peer->address;
    if (connect(fd, there, quoit_address_bytes(&peer->address)) == 0 || errno == EINPROGRESS)
        return true;
    peer->error = errno;
    hang_up(tcp, connection);
    return false;
}

/* What a packet of the connection carries. Between addresses that are the same nothing leaves the machine. */
static uint32_t probe_bytes_of(const struct connection *connection, const struct peer *peer)
{
    struct sockaddr_storage own;
    socklen_t own_bytes = sizeof own, segment_size = sizeof(int);
    int segment_bytes = 0;
    if (getsockname(connection->fd, (struct sockaddr *)&own, &own_bytes) != 0 ||
        getsockopt(connection->fd, IPPROTO_TCP, TCP_MAXSEG, &segment_bytes, &segment_size) != 0 || segment_bytes <= 0)
        return 0;
    const struct quoit_wire_address at = quoit_address_tell(&own);
    if (at.family == peer->at.family && memcmp(at.bytes, peer->at.bytes, sizeof at.bytes) == 0)
        return 0;
    return (uint32_t)segment_bytes < PROBE_BYTES_MAX ? (uint32_t)segment_bytes : PROBE_BYTES_MAX;
}

static bool say_hello(struct tcp *tcp, struct connection *connection)
{
    const struct peer *peer = &tcp->peers[connection->host];
    struct tcp_info info = {.tcpi_state = TCP_SYN_SENT};
    socklen_t info_bytes = sizeof info;
    if (getsockopt(connection->fd, IPPROTO_TCP, TCP_INFO, &info, &info_bytes) == 0 && info.tcpi_state == TCP_SYN_SENT)
        return true;
    connection->probe_bytes = probe_bytes_of(connection, peer);
    struct hello hello = {.host = tcp->host,
                          .version = QUOIT_NET_DRIVER_VERSION,
                          .probe_bytes = connection->probe_bytes,
                          .segment_bytes = segment_limit(tcp, connection->host)};
    memcpy(hello.secret, peer->secret, sizeof hello.secret);
    ssize_t sent = send(connection->fd, &hello, sizeof hello, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0)
        return errno == EAGAIN || errno == EINTR;
    connection->step = CALL_GREETED;
    watch(tcp, connection, EPOLLIN);
    return sent == (ssize_t)sizeof hello;
}

/* With the error of the last call of the kernel for it; 0: the other end hung up. */
static void end_call(struct tcp *tcp, struct connection *connection, int error)
{
    uint32_t host = connection->host;
    tcp->peers[host].error = error;
    if (error == ECONNREFUSED) {
        quoit_tcp_close(tcp, connection);
        return;
    }
    hang_up(tcp, connection);
    quoit_tcp_call_later(tcp, host);
}

/* Packets of this size get lost: the next call has smaller ones. Those of no size arrived, perhaps while a cable was
 * out: all over again. */
static void narrow(struct tcp *tcp, struct connection *connection)
{
    struct peer *peer = &tcp->peers[connection->host];
    peer->segment_bytes = next_smaller(connection->probe_bytes);
    peer->lost_bytes = peer->segment_bytes != 0 ? connection->probe_bytes : 0;
    end_call(tcp, connection, 0);
}

/* Bytes that mean nothing, and none that they follow is under way, so they fill a packet. */
static bool send_probe(struct connection *connection)
{
    ssize_t sent = send(connection->fd, connection->held, connection->probe_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent == (ssize_t)connection->probe_bytes;
}

static bool is_lost(const struct connection *connection)
{
    struct tcp_info info;
    socklen_t bytes = sizeof info;
    if (connection->step == CALL_PROBED)
        return quoit_clock_now_ns() >= connection->until_ns;
    return connection->step == CALL_PROBES && getsockopt(connection->fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
           info.tcpi_unacked > 0 && info.tcpi_backoff >= LOST_COUNT;
}

/* Its probe comes, or has come. */
static void take_probe(struct tcp *tcp, struct connection *connection, uint32_t bytes)
{
    connection->come_bytes += bytes;
    if (connection->come_bytes < connection->probe_bytes)
        return;
    connection->step = CALL_PROBES;
    if (!send_probe(connection))
        end_call(tcp, connection, errno);
}

static void be_let_in(struct tcp *tcp, struct connection *connection)
{
    struct peer *peer = &tcp->peers[connection->host];
    tcp->probing_count -= is_probing(connection);
    connection->come_bytes = 0;
    connection->state = OPEN;
    note_segments(tcp, connection->host, peer->segment_bytes, peer->lost_bytes);
    forget_calls(tcp, peer);
    tcp->done_count++;
    quoit_tcp_send(tcp, connection);
}

static void go_on_calling(struct tcp *tcp, struct connection *connection)
{
    char word = 0;
    if (connection->step == CALL_BEGUN && !say_hello(tcp, connection)) {
        end_call(tcp, connection, errno);
        return;
    }
    if (connection->step == CALL_BEGUN)
        return;
    bool is_probe = connection->step == CALL_PROBED;
    ssize_t come = recv(connection->fd, is_probe ? connection->held : &word,
                        is_probe ? connection->probe_bytes - connection->come_bytes : 1, MSG_DONTWAIT);
    if (come < 0 && (errno == EAGAIN || errno == EINTR)) {
        if (is_lost(connection))
            narrow(tcp, connection);
    } else if (come > 0 && is_probe) {
        take_probe(tcp, connection, (uint32_t)come);
    } else if (come == 1 && word == PROBE && connection->step == CALL_GREETED && connection->probe_bytes > 0) {
        connection->step = CALL_PROBED;
        connection->until_ns = quoit_clock_now_ns() + LOST_NS;
        tcp->probing_count++;
        go_on_calling(tcp, connection);
    } else if (come == 1 && word == WELCOME &&
               connection->step == (connection->probe_bytes > 0 ? CALL_PROBES : CALL_GREETED)) {
        be_let_in(tcp, connection);
    } else {
        end_call(tcp, connection, come < 0 ? errno : 0);
    }
}

/* What was sent and has no acknowledgement, though earlier bytes had one. */
static void explain_open(const struct connection *connection, char *text_out, size_t bytes)
{
    struct tcp_info info;
    socklen_t info_bytes = sizeof info;
    if (getsockopt(connection->fd, IPPROTO_TCP, TCP_INFO, &info, &info_bytes) != 0 || info.tcpi_unacked == 0 ||
        info.tcpi_backoff == 0)
        return;
    snprintf(text_out, bytes,
             "%u segments of up to %u bytes have no acknowledgement, the first was sent %u times: is the cable out, or "
             "the MTU of a link on the way smaller?",
             info.tcpi_unacked, info.tcpi_snd_mss, info.tcpi_backoff + 1u);
}

void quoit_tcp_explain(const struct tcp *tcp, uint32_t host, char text_out[QUOIT_NET_PROBLEM_BYTES])
{
    const struct peer *peer = &tcp->peers[host];
    const struct connection *connection = peer->connection;
    char here[QUOIT_NET_PLACE_TEXT_BYTES], there[QUOIT_ADDRESS_TEXT_BYTES], why[160] = "";
    struct quoit_net_place own = tcp->end.places.list[tcp->place];
    own.address.port = 0;
    quoit_address_print(&peer->at, there);
    if (connection && connection->state == OPEN)
        explain_open(connection, why, sizeof why);
    else if (peer->lost_bytes != 0)
        snprintf(why, sizeof why, "it is connected, and packets that carry %u bytes get lost", peer->lost_bytes);
    else if (connection && connection->step != CALL_BEGUN)
        snprintf(why, sizeof why, "it is connected, and does not answer");
    else if (peer->error == ECONNREFUSED)
        snprintf(why, sizeof why,
                 "%s: has the host ended, does a firewall reject it, or has another machine the address?",
                 strerror(peer->error));
    else if (peer->error != 0)
        snprintf(why, sizeof why, "%s", strerror(peer->error));
    else if (connection)
        snprintf(why, sizeof why, "connect timed out: does a firewall drop it?");
    else if (peer->call_count > 0)
        snprintf(why, sizeof why, "connected %u times, and each time it hung up without an answer", peer->call_count);
    if (why[0])
        snprintf(text_out, QUOIT_NET_PROBLEM_BYTES, "from %s to %s port %u: %s", quoit_net_place_print(&own, here),
                 there, ntohs(peer->at.port), why);
}

/* Being called */

/* Whether who calls is let in. */
static bool is_welcome(struct tcp *tcp, const struct hello *hello)
{
    if (memcmp(hello->secret, tcp->secret, sizeof hello->secret) != 0 || hello->version != QUOIT_NET_DRIVER_VERSION ||
        hello->host >= tcp->peer_count)
        return false;
    const struct peer *peer = &tcp->peers[hello->host];
    if (hello->host >= tcp->host_count || hello->host == tcp->host)
        return true;
    bool has_own = peer->connection != NULL, is_own_better = tcp->host < hello->host;
    return !peer->is_failed && (!has_own || (peer->connection->state == CONNECTING && !is_own_better));
}

static bool let_in(struct tcp *tcp, struct connection *connection, const struct hello *hello)
{
    static const char word = WELCOME;
    const uint32_t host = hello->host;
    struct peer *peer = &tcp->peers[host];
    if (peer->coming && peer->coming->number > connection->number)
        return false; /* an earlier PE endpoint, which has gone: it is read behind a later one */
    if (send(connection->fd, &word, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
        return false;
    connection->host = host;
    connection->state = OPEN;
    tcp->coming_count--;
    connection->come_bytes = 0;
    connection->held_from = connection->held_to = 0;
    tcp->done_count++;
    note_segments(tcp, host, hello->segment_bytes, 0);
    if (host == tcp->host)
        return true; /* the other end of the own call */
    if (host >= tcp->host_count) {
        if (peer->coming)
            hang_up(tcp, peer->coming);
        peer->coming = connection;
        return true;
    }
    if (peer->connection)
        hang_up(tcp, peer->connection);
    peer->connection = connection;
    forget_calls(tcp, peer);
    quoit_tcp_send(tcp, connection);
    return true;
}

/* The caller is to see that a packet comes whole, and to send one. False: the kernel has no room. */
static bool probe_caller(struct connection *connection, const struct hello *hello, uint64_t now_ns)
{
    static const char word = PROBE;
    connection->is_probed = true;
    connection->probe_bytes = hello->probe_bytes;
    connection->until_ns = now_ns + PROBED_NS;
    return send(connection->fd, &word, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 && send_probe(connection);
}

static void listen_to(struct tcp *tcp, struct connection *connection, uint64_t now_ns)
{
    struct hello hello;
    uint64_t awaited = sizeof hello + (connection->is_probed ? connection->probe_bytes : 0);
    ssize_t come =
        recv(connection->fd, connection->held + connection->come_bytes, awaited - connection->come_bytes, MSG_DONTWAIT);
    bool waits = come < 0 && (errno == EAGAIN || errno == EINTR);
    connection->come_bytes += come > 0 ? (uint64_t)come : 0;
    if (connection->come_bytes < awaited) {
        if ((come <= 0 && !waits) || now_ns >= connection->until_ns)
            hang_up(tcp, connection);
        return;
    }
    memcpy(&hello, connection->held, sizeof hello);
    if (!is_welcome(tcp, &hello) || hello.probe_bytes > PROBE_BYTES_MAX)
        hang_up(tcp, connection);
    else if (hello.probe_bytes > 0 && !connection->is_probed && probe_caller(connection, &hello, now_ns))
        return;
    else if (connection->is_probed != (hello.probe_bytes > 0) || !let_in(tcp, connection, &hello))
        hang_up(tcp, connection);
}

/* Those who send garbage, or nothing, take turns, so that the hosts among those who wait have theirs. False: none has
 * had its time. */
static bool make_room(struct tcp *tcp, uint64_t now_ns)
{
    struct connection *oldest = NULL;
    if (tcp->coming_count < COMING_MAX + tcp->peer_count)
        return true;
    for (struct connection *connection = tcp->connections; connection; connection = connection->next)
        oldest = connection->state == COMING ? connection : oldest;
    if (!oldest || oldest->until_ns - now_ns > COMING_NS - COMING_FULL_NS)
        return false;
    hang_up(tcp, oldest);
    return true;
}

static void accept_all(struct tcp *tcp, int listener, uint64_t now_ns)
{
    while (make_room(tcp, now_ns)) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct connection *connection = fd < 0 ? NULL : new_connection(tcp, fd, COMING, 0);
        if (!connection)
            return;
        connection->until_ns = now_ns + COMING_NS;
        connection->number = ++tcp->accepted_count;
    }
}

void quoit_tcp_meet(struct tcp *tcp)
{
    uint64_t now_ns = quoit_clock_now_ns();
    if (tcp->again_count > 0)
        call_again(tcp, now_ns);
    for (struct connection *connection = tcp->connections; connection; connection = connection->next) {
        if (connection->state == COMING)
            listen_to(tcp, connection, now_ns);
        else if (connection->state == CONNECTING)
            go_on_calling(tcp, connection);
    }
    for (uint32_t place = 0; place < QUOIT_NET_PLACES_MAX; place++)
        if (tcp->listeners[place] >= 0)
            accept_all(tcp, tcp->listeners[place], now_ns);
}

bool quoit_tcp_take_pe_endpoint(struct tcp *tcp, uint32_t host)
{
    struct peer *peer = &tcp->peers[host];
    if (!peer->coming)
        return false;
    if (peer->connection)
        hang_up(tcp, peer->connection);
    peer->connection = peer->coming;
    peer->coming = NULL;
    peer->is_failed = false;
    return true;
}
