/* SPDX-License-Identifier: BSD-3-Clause */
/* The keeper of a ring that stays, or of one machine's part of it: one process, one loop. */
#include "ring.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "env/clock.h"

#define PAGE_BYTES      4096u
#define RESTART_NS      200000000u  /* between the end of a host and its next start */
#define REJOIN_NS       2000000000u /* the same of a machine that does not fit into its ring: somebody has to look */
#define LEAVE_MS        2000        /* for a bridge to see that its link is not wanted any more */
#define START_MS        15000
#define TICK_MS         50
#define REQUEST_SECONDS 2
#define REQUESTS_MAX    8

/* The Ethernet devices are the first client of the ring. */
static bool make_links(struct ring *ring)
{
    if (ring->plan.is_joined)
        return ring_open_bridges(ring);
    struct quoit_share_config config = {.knobs = ring->plan.knobs, .host_count = ring->plan.host_count};
    struct quoit_share_request request = {
        .name = RING_ETHERNET, .label = "Ethernet", .part.percent = ring->plan.ethernet_percent};
    snprintf(config.driver, sizeof config.driver, "%s", ring->driver->name);
    for (uint32_t i = ring_first(&ring->plan); i < ring_end(&ring->plan); i++)
        request.memory_bytes[i] = ring->hosts[i].bytes;
    if (quoit_shared_ring_open(&config, &ring->shared) != QUOIT_OK ||
        quoit_share_take(ring->shared, &request, &ring->share) != QUOIT_OK) {
        quoit_say("cannot make the links of the ring %s: %s [Q0603]", ring->plan.name, strerror(errno));
        return false;
    }
    for (uint32_t i = ring_first(&ring->plan); i < ring_end(&ring->plan); i++)
        ring->hosts[i].memory_fd = ring->share->memory_fds[i];
    return true;
}

static void plan_host(struct ring *ring, uint32_t index)
{
    struct ring_host *host = &ring->hosts[index];
    host->index = index;
    host->network_fd = -1;
    host->veth_offset = (sizeof(struct ring_memory) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    host->bytes =
        (host->veth_offset + quoit_veth_bytes(ring->plan.queue_count) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static bool map_host(struct ring_host *host)
{
    host->memory = mmap(NULL, host->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, host->memory_fd, 0);
    return host->memory != MAP_FAILED;
}

static bool start_host(struct ring *ring, struct ring_host *host)
{
    memset(host->memory, 0, host->bytes); /* nobody writes here: its links are down */
    host->start_ns = 0;
    host->pid = fork();
    if (host->pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        for (uint32_t i = 0; i < ring->plan.host_count; i++)
            if (ring->hosts[i].network_fd >= 0)
                close(ring->hosts[i].network_fd);
        if (ring->server)
            quoit_share_server_forget(ring->server);
        if (ring->shared)
            quoit_shared_ring_forget(ring->shared, ring->share);
        _exit(ring_host_run(ring, host));
    }
    host->start_count += host->pid > 0;
    return host->pid > 0;
}

/* NULL: there is no such port. */
static struct quoit_port *open_port(const struct ring *ring, uint32_t host, enum quoit_side side)
{
    struct quoit_port_endpoint endpoint;
    struct quoit_port *port;
    if (ring_describe(ring, host, side, &endpoint) != QUOIT_OK)
        return NULL;
    const struct quoit_port_config config = {
        .driver = ring->driver, .memory = {ring->hosts[host].memory, ring->hosts[host].bytes}, .endpoint = &endpoint};
    return quoit_port_open(&config, &port) == QUOIT_OK ? port : NULL;
}

/* What a machine that loses its power does to its neighbours: both its links go down. A bridge takes a moment. */
static void drop_links(const struct ring *ring, const struct ring_host *host)
{
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        struct quoit_port *port = open_port(ring, host->index, side);
        if (port)
            quoit_port_link_disable(port);
        for (int ms = 0; port && quoit_port_link_is_up(port) && ms < LEAVE_MS; ms++)
            quoit_clock_sleep_ns(1000000);
        quoit_port_close(port);
    }
}

/* As on a machine that loses its power, what runs there ends. */
static void end_guests(struct ring_host *host)
{
    if (host->network_fd < 0)
        return;
    ring_end_guests(host->network_fd);
    close(host->network_fd);
    host->network_fd = -1;
}

static void reap(struct ring *ring)
{
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        for (uint32_t i = ring_first(&ring->plan); i < ring_end(&ring->plan); i++)
            if (ring->hosts[i].pid == pid) {
                ring->hosts[i].pid = 0;
                ring->hosts[i].start_ns = quoit_clock_now_ns() + (ring->plan.is_joined ? REJOIN_NS : RESTART_NS);
                drop_links(ring, &ring->hosts[i]);
                end_guests(&ring->hosts[i]);
            }
}

static bool are_ready(const struct ring *ring)
{
    for (uint32_t i = ring_first(&ring->plan); i < ring_end(&ring->plan); i++)
        if (!atomic_load(&((struct ring_memory *)ring->hosts[i].memory)->is_ready))
            return false;
    return true;
}

static bool has_lost(const struct ring *ring)
{
    for (uint32_t i = ring_first(&ring->plan); i < ring_end(&ring->plan); i++)
        if (ring->hosts[i].pid == 0)
            return true;
    return false;
}

static void end_hosts(struct ring *ring)
{
    for (uint32_t i = ring_first(&ring->plan); i < ring_end(&ring->plan); i++) {
        struct ring_host *host = &ring->hosts[i];
        end_guests(host);
        if (host->pid == 0)
            continue;
        kill(host->pid, SIGKILL);
        waitpid(host->pid, NULL, 0);
        host->pid = 0;
    }
}

/* The jobs first, so that they know why their PEs end with the hosts. */
static void end_ring(struct ring *ring)
{
    quoit_share_server_close(ring->server);
    end_hosts(ring);
    quoit_shared_ring_close(ring->shared);
    ring->server = NULL;
    ring->shared = NULL;
}

static void fill_status(const struct ring *ring, struct ring_reply *reply)
{
    memset(reply, 0, sizeof *reply);
    reply->plan = ring->plan;
    for (uint32_t i = ring_first(&ring->plan); i < ring_end(&ring->plan); i++) {
        const struct ring_host *host = &ring->hosts[i];
        const struct ring_memory *memory = host->memory;
        struct ring_host_status *status = &reply->hosts[i];
        status->pid = host->pid;
        status->start_count = host->start_count;
        status->is_ready = atomic_load(&memory->is_ready);
        for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
            status->link_states[side] = (uint32_t)quoit_link_state_of(&memory->links[side]);
            status->outage_counts[side] = atomic_load(&memory->links[side].outage_count);
            status->peer_hosts[side] = atomic_load(&memory->links[side].peer_host);
            status->peer_sides[side] = atomic_load(&memory->links[side].peer_side);
        }
        quoit_veth_stats(memory, host->veth_offset, &status->stats);
    }
}

/* Its owner and root may ask. True: end the ring. */
static bool serve(struct ring *ring, int listen_fd)
{
    struct ring_reply reply;
    const struct timeval limit = {.tv_sec = REQUEST_SECONDS};
    struct quoit_share_head request;
    struct ucred peer;
    socklen_t peer_bytes = sizeof peer;
    int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return false;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    bool is_allowed =
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) == 0 && (peer.uid == geteuid() || peer.uid == 0);
    bool is_down = false;
    ssize_t came = is_allowed ? recv(fd, &request, sizeof request, 0) : -1;
    if (came >= 0 && quoit_share_head_is(&request, (size_t)came, RING_MAGIC)) {
        bool is_same = request.protocol == QUOIT_SHARE_PROTOCOL && request.bytes == sizeof reply;
        is_down = request.kind == RING_DOWN;
        fill_status(ring, &reply);
        reply.head = quoit_share_head_make(RING_MAGIC, sizeof reply, request.kind);
        if (is_down) {
            end_ring(ring);
            close(listen_fd); /* the name is free when the reply comes */
        }
        send(fd, &reply, is_same ? sizeof reply : sizeof reply.head, MSG_NOSIGNAL);
    }
    close(fd);
    return is_down;
}

static bool make(struct ring *ring)
{
    for (uint32_t i = ring_first(&ring->plan); i < ring_end(&ring->plan); i++)
        plan_host(ring, i);
    if (!make_links(ring))
        return false;
    for (uint32_t i = ring_first(&ring->plan); i < ring_end(&ring->plan); i++)
        if (!map_host(&ring->hosts[i])) {
            quoit_say("cannot make the memory of host%u: %s [Q0603]", i, strerror(errno));
            return false;
        }
    for (uint32_t i = ring_first(&ring->plan); i < ring_end(&ring->plan); i++)
        if (!start_host(ring, &ring->hosts[i])) {
            quoit_say("cannot start host%u: %s [Q0603]", i, strerror(errno));
            return false;
        }
    return true;
}

static void start_again(struct ring *ring)
{
    for (uint32_t i = ring_first(&ring->plan); i < ring_end(&ring->plan); i++)
        if (ring->hosts[i].pid == 0 && quoit_clock_now_ns() >= ring->hosts[i].start_ns)
            start_host(ring, &ring->hosts[i]);
}

/* Until all hosts are up; false: one ended, or it takes too long. */
static bool wait_ready(struct ring *ring)
{
    for (int ms = 0; ms < START_MS && !has_lost(ring); ms++) {
        if (are_ready(ring))
            return true;
        quoit_clock_sleep_ns(1000000);
        reap(ring);
    }
    if (!has_lost(ring))
        quoit_say("the ring %s did not come up in %d s [Q0603]", ring->plan.name, START_MS / 1000);
    return false;
}

/* While it runs in its own namespaces. It is asked for before anything enters them: their network stays open, so that
 * its number is no other's. */
static pid_t process_of(void *arg, uint32_t index)
{
    struct ring *ring = arg;
    struct ring_host *host = &ring->hosts[index];
    const struct ring_memory *memory = host->memory;
    char path[40];
    if (host->pid == 0 || !atomic_load(&memory->is_ready))
        return 0;
    snprintf(path, sizeof path, "/proc/%d/ns/net", host->pid);
    if (host->network_fd < 0)
        host->network_fd = open(path, O_RDONLY | O_CLOEXEC);
    return host->network_fd < 0 ? 0 : host->pid;
}

/* Where jobs attach. */
static bool open_server(struct ring *ring)
{
    if (ring->plan.is_joined)
        return true;
    char path[QUOIT_SHARE_PATH_BYTES];
    quoit_share_path(geteuid(), ring->plan.name, path);
    if (quoit_share_server_open(ring->shared, path, ring->plan.serves_others, &ring->server) == QUOIT_OK) {
        quoit_share_server_places(ring->server, process_of, ring);
        quoit_share_server_limit(ring->server, ring->plan.jobs_of_user);
        return true;
    }
    quoit_say("the ring %s cannot listen for jobs: %s [Q0603]", ring->plan.name, strerror(errno));
    return false;
}

static void keep(struct ring *ring, int listen_fd, int signal_fd)
{
    struct pollfd polled[] = {{.fd = listen_fd, .events = POLLIN},
                              {.fd = signal_fd, .events = POLLIN},
                              {.fd = ring->server ? quoit_share_server_fd(ring->server) : -1, .events = POLLIN}};
    for (bool is_down = false; !is_down;) {
        struct signalfd_siginfo signal;
        poll(polled, 3, has_lost(ring) ? TICK_MS : -1);
        while (read(signal_fd, &signal, sizeof signal) == (ssize_t)sizeof signal)
            is_down |= signal.ssi_signo != SIGCHLD;
        reap(ring);
        start_again(ring);
        if (polled[2].revents & POLLIN)
            quoit_share_server_step(ring->server);
        if (polled[0].revents & POLLIN)
            is_down |= serve(ring, listen_fd);
    }
}

int ring_keep(const struct ring_plan *plan, int listen_fd, int ready_fd)
{
    sigset_t signals;
    struct ring ring = {.plan = *plan,
                        .driver = plan->is_joined ? quoit_port_driver_find("linux") : quoit_port_driver_at(0)};
    prctl(PR_SET_NAME, "quoit-ring");
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    int signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    /* Here, so that the kernel names this process to those who connect. */
    bool is_up = listen(listen_fd, REQUESTS_MAX) == 0 && signal_fd >= 0 && make(&ring) && wait_ready(&ring) &&
                 open_server(&ring);
    if (is_up && (ready_fd < 0 || write(ready_fd, "r", 1) == 1)) {
        if (ready_fd >= 0) {
            close(ready_fd);
            ring_detach();
        }
        keep(&ring, listen_fd, signal_fd);
    }
    end_ring(&ring);
    return is_up ? 0 : 1;
}
