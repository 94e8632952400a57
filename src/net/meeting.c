/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/meeting.h"
#include "env/clock.h"
#include "net/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define GARBAGE_MAX 64u /* connections that show no tag, beside one for each host */

/* Before a host's bytes. */
struct hello {
    uint64_t tag;
    uint32_t host;
    uint32_t bytes;
};
_Static_assert(sizeof(struct hello) == 16, "no padding crosses the network");

void quoit_meeting_open(struct quoit_meeting *meeting_out, struct quoit_net_places *places, struct quoit_ports ports)
{
    meeting_out->is_open = true;
    for (uint32_t i = 0; i < QUOIT_NET_PLACES_MAX; i++) {
        struct quoit_net_place *place = &places->list[i];
        struct sockaddr_storage address;
        meeting_out->listeners[i] = quoit_address_read(&place->address, if_nametoindex(place->device), &address)
                                        ? quoit_ports_listen(&address, ports, SOMAXCONN)
                                        : -1;
        if (meeting_out->listeners[i] >= 0)
            place->address = quoit_address_tell(&address);
    }
}

void quoit_meeting_close(struct quoit_meeting *meeting)
{
    for (uint32_t i = 0; i < QUOIT_NET_PLACES_MAX && meeting->is_open; i++)
        if (meeting->listeners[i] >= 0)
            close(meeting->listeners[i]);
    meeting->is_open = false;
}

/* Moves up to `bytes`, by send(2) or recv(2). False: the connection has ended. */
static bool move(int fd, bool is_out, char *data, uint64_t bytes, uint64_t *done_bytes)
{
    while (*done_bytes < bytes) {
        ssize_t now = is_out ? send(fd, data + *done_bytes, bytes - *done_bytes, MSG_NOSIGNAL | MSG_DONTWAIT)
                             : recv(fd, data + *done_bytes, bytes - *done_bytes, MSG_DONTWAIT);
        if (now < 0 && errno == EINTR)
            continue;
        if (now < 0 && errno == EAGAIN)
            return true;
        if (now <= 0) {
            errno = now == 0 ? ECONNRESET : errno;
            return false;
        }
        *done_bytes += (uint64_t)now;
    }
    return true;
}

static int wait_ms(uint64_t deadline_ns)
{
    uint64_t now_ns = quoit_clock_now_ns();
    return now_ns < deadline_ns ? (int)((deadline_ns - now_ns) / 1000000) + 1 : 0;
}

/* Host 0 */

struct caller {
    struct hello hello;
    uint64_t done_bytes; /* of hello and the host's bytes, then of those of all */
    bool is_known;       /* it has sent them */
};

struct hub {
    const struct quoit_meeting_config *config;
    struct pollfd *fds; /* the listeners, then [caller_count] */
    struct caller *callers;
    uint32_t caller_count, caller_max;
    uint32_t known_count; /* hosts, this one among them */
    bool has_lost;        /* one of them */
    uint32_t bytes;
    char *all;
    bool *has_come; /* [host] */
};

static void drop(struct hub *hub, uint32_t caller)
{
    struct pollfd *own = &hub->fds[QUOIT_NET_PLACES_MAX + caller];
    close(own->fd);
    hub->caller_count--;
    *own = hub->fds[QUOIT_NET_PLACES_MAX + hub->caller_count];
    hub->callers[caller] = hub->callers[hub->caller_count];
}

static void take_callers(struct hub *hub, int listener)
{
    while (hub->caller_count < hub->caller_max) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        hub->callers[hub->caller_count] = (struct caller){.done_bytes = 0};
        hub->fds[QUOIT_NET_PLACES_MAX + hub->caller_count++] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
}

/* False: it is no host of the job, or has gone. */
static bool receive_from(struct hub *hub, struct caller *caller, int fd)
{
    const struct hello *hello = &caller->hello;
    if (caller->done_bytes < sizeof *hello &&
        !move(fd, false, (char *)&caller->hello, sizeof *hello, &caller->done_bytes))
        return false;
    if (caller->done_bytes < sizeof *hello)
        return true;
    if (hello->tag != hub->config->tag || hello->host == 0 || hello->host >= hub->config->host_count ||
        hello->bytes != hub->bytes)
        return false;
    uint64_t done_bytes = caller->done_bytes - sizeof *hello;
    bool is_there = move(fd, false, hub->all + (size_t)hello->host * hub->bytes, hub->bytes, &done_bytes);
    caller->done_bytes = sizeof *hello + done_bytes;
    caller->is_known = done_bytes == hub->bytes;
    if (caller->is_known && !hub->has_come[hello->host]) {
        hub->has_come[hello->host] = true;
        hub->known_count++;
    }
    return is_there;
}

static void gather(struct hub *hub, uint64_t deadline_ns)
{
    while (hub->known_count < hub->config->host_count && !hub->has_lost && quoit_clock_now_ns() < deadline_ns) {
        poll(hub->fds, QUOIT_NET_PLACES_MAX + hub->caller_count, wait_ms(deadline_ns));
        for (uint32_t i = hub->caller_count; i-- > 0;) {
            struct pollfd *own = &hub->fds[QUOIT_NET_PLACES_MAX + i];
            if (own->revents == 0)
                continue;
            hub->has_lost |= hub->callers[i].is_known; /* it waits, and would only be gone */
            if (!receive_from(hub, &hub->callers[i], own->fd))
                drop(hub, i);
            else if (hub->callers[i].is_known)
                own->events = 0;
        }
        for (uint32_t i = 0; i < QUOIT_NET_PLACES_MAX; i++)
            if (hub->fds[i].fd >= 0 && hub->fds[i].revents != 0)
                take_callers(hub, hub->fds[i].fd);
    }
}

/* To all that have come. False: not to each of them. */
static bool spread(struct hub *hub, uint64_t deadline_ns)
{
    const uint64_t all_bytes = (uint64_t)hub->config->host_count * hub->bytes;
    uint32_t left_count = 0, lost_count = 0;
    for (uint32_t i = 0; i < hub->caller_count; i++) {
        struct pollfd *own = &hub->fds[QUOIT_NET_PLACES_MAX + i];
        hub->callers[i].done_bytes = 0;
        own->events = POLLOUT;
        if (!hub->callers[i].is_known)
            close(own->fd);
        own->fd = hub->callers[i].is_known ? own->fd : -1;
        left_count += own->fd >= 0;
    }
    while (left_count > 0 && quoit_clock_now_ns() < deadline_ns) {
        poll(hub->fds + QUOIT_NET_PLACES_MAX, hub->caller_count, wait_ms(deadline_ns));
        for (uint32_t i = 0; i < hub->caller_count; i++) {
            struct pollfd *own = &hub->fds[QUOIT_NET_PLACES_MAX + i];
            struct caller *caller = &hub->callers[i];
            if (own->fd < 0 || own->revents == 0)
                continue;
            bool is_there = move(own->fd, true, hub->all, all_bytes, &caller->done_bytes);
            if (is_there && caller->done_bytes < all_bytes)
                continue;
            lost_count += !is_there;
            left_count--;
            close(own->fd);
            own->fd = -1;
        }
    }
    return left_count == 0 && lost_count == 0;
}

static bool be_hub(const struct quoit_meeting *meeting, const struct quoit_meeting_config *config, const void *own,
                   uint32_t bytes, void *all_out, char why_out[QUOIT_MEETING_WHY_BYTES])
{
    uint64_t deadline_ns = quoit_clock_now_ns() + config->limit_ns;
    struct hub hub = {.config = config,
                      .caller_max = config->host_count + GARBAGE_MAX,
                      .known_count = 1,
                      .bytes = bytes,
                      .all = all_out};
    hub.fds = calloc(QUOIT_NET_PLACES_MAX + hub.caller_max, sizeof *hub.fds);
    hub.callers = calloc(hub.caller_max, sizeof *hub.callers);
    hub.has_come = calloc(config->host_count, sizeof *hub.has_come);
    bool is_good = hub.fds && hub.callers && hub.has_come;
    uint32_t missing = 1;
    if (is_good) {
        memcpy(hub.all, own, bytes);
        for (uint32_t i = 0; i < QUOIT_NET_PLACES_MAX; i++)
            hub.fds[i] = (struct pollfd){.fd = meeting->listeners[i], .events = POLLIN};
        gather(&hub, deadline_ns);
        while (missing < config->host_count && hub.has_come[missing])
            missing++;
        is_good = missing == config->host_count && !hub.has_lost && spread(&hub, deadline_ns);
        if (missing < config->host_count)
            snprintf(why_out, QUOIT_MEETING_WHY_BYTES, "host %u has not called", missing);
    }
    for (uint32_t i = 0; i < hub.caller_count; i++)
        if (hub.fds[QUOIT_NET_PLACES_MAX + i].fd >= 0)
            close(hub.fds[QUOIT_NET_PLACES_MAX + i].fd);
    free(hub.has_come);
    free(hub.callers);
    free(hub.fds);
    return is_good;
}

/* The other hosts */

/* All of it, by the deadline. False, with errno. */
static bool move_all(int fd, bool is_out, void *data, uint64_t bytes, uint64_t deadline_ns)
{
    struct pollfd own = {.fd = fd, .events = is_out ? POLLOUT : POLLIN};
    for (uint64_t done_bytes = 0; done_bytes < bytes;) {
        if (poll(&own, 1, wait_ms(deadline_ns)) == 0) {
            errno = ETIMEDOUT;
            return false;
        }
        if (!move(fd, is_out, data, bytes, &done_bytes))
            return false;
    }
    return true;
}

static bool call_hub(const struct quoit_meeting_config *config, const void *own, uint32_t bytes, void *all_out,
                     char why_out[QUOIT_MEETING_WHY_BYTES])
{
    uint64_t deadline_ns = quoit_clock_now_ns() + config->limit_ns;
    struct hello hello = {.tag = config->tag, .host = config->host, .bytes = bytes};
    struct sockaddr_storage there;
    char text[QUOIT_NET_PLACE_TEXT_BYTES];
    bool is_address = quoit_address_read(&config->host_0->address, if_nametoindex(config->device), &there);
    int fd = is_address ? socket(there.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
    bool is_good = fd >= 0 && (connect(fd, (const struct sockaddr *)&there, quoit_address_bytes(&there)) == 0 ||
                               errno == EINPROGRESS);
    is_good = is_good && move_all(fd, true, &hello, sizeof hello, deadline_ns) &&
              move_all(fd, true, (void *)(uintptr_t)own, bytes, deadline_ns) &&
              move_all(fd, false, all_out, (uint64_t)config->host_count * bytes, deadline_ns);
    if (!is_good)
        snprintf(why_out, QUOIT_MEETING_WHY_BYTES, "from %s to host 0 at %s: %s%s", config->device,
                 quoit_net_place_print(config->host_0, text), strerror(errno),
                 errno == ETIMEDOUT ? ": does a firewall drop it?" : "");
    if (fd >= 0)
        close(fd);
    return is_good;
}

bool quoit_meeting_exchange(const struct quoit_meeting *meeting, const struct quoit_meeting_config *config,
                            const void *own, uint32_t bytes, void *all_out, char why_out[QUOIT_MEETING_WHY_BYTES])
{
    why_out[0] = '\0';
    return config->host == 0 ? be_hub(meeting, config, own, bytes, all_out, why_out)
                             : call_hub(config, own, bytes, all_out, why_out);
}
