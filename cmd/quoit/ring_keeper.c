/* SPDX-License-Identifier: BSD-3-Clause */
/* The keeper of a ring that stays, or of one machine's part of it: one process, one loop. */
#include "ring.h"

#include <dirent.h>
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
#include "env/descriptors.h"

#define PAGE_BYTES      4096u
#define RESTART_NS      200000000u  /* between the end of a host and its next start */
#define REJOIN_NS       2000000000u /* the same of a machine that does not fit into its ring: somebody has to look */
#define LEAVE_MS        2000        /* for a bridge to see that its link is not wanted any more */
#define START_MS        15000
#define TICK_MS         50
#define REQUEST_SECONDS 2

/* The Ethernet devices are the first client of the ring. */
static bool make_links(struct ring *ring)
{
    if (ring->plan.is_joined)
        return ring_open_bridges(ring);
    struct quoit_share_config config = {.knobs = ring->plan.knobs, .host_count = ring->plan.host_count};
    struct quoit_share_request request = {.name = RING_ETHERNET, .label = "Ethernet"};
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

static void reap(struct ring *ring)
{
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        for (uint32_t i = ring_first(&ring->plan); i < ring_end(&ring->plan); i++)
            if (ring->hosts[i].pid == pid) {
                ring->hosts[i].pid = 0;
                ring->hosts[i].start_ns = quoit_clock_now_ns() + (ring->plan.is_joined ? REJOIN_NS : RESTART_NS);
                drop_links(ring, &ring->hosts[i]);
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

/* Processes that were started on a host end with it. */
static void end_guests(ino_t net_inode)
{
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    while (folder && (entry = readdir(folder)) != NULL) {
        char path[300];
        struct stat status;
        pid_t pid = (pid_t)atoi(entry->d_name);
        snprintf(path, sizeof path, "/proc/%.20s/ns/net", entry->d_name);
        if (pid > 1 && pid != getpid() && stat(path, &status) == 0 && status.st_ino == net_inode)
            kill(pid, SIGKILL);
    }
    if (folder)
        closedir(folder);
}

static void end_hosts(struct ring *ring)
{
    for (uint32_t i = ring_first(&ring->plan); i < ring_end(&ring->plan); i++) {
        char path[40];
        struct stat status, own;
        snprintf(path, sizeof path, "/proc/%d/ns/net", ring->hosts[i].pid);
        if (ring->hosts[i].pid == 0)
            continue;
        if (stat(path, &status) == 0 && stat("/proc/self/ns/net", &own) == 0 && status.st_ino != own.st_ino)
            end_guests(status.st_ino);
        kill(ring->hosts[i].pid, SIGKILL);
        waitpid(ring->hosts[i].pid, NULL, 0);
        ring->hosts[i].pid = 0;
    }
}

/* Also for jobs: to them all links are cut for ever. */
static void end_ring(struct ring *ring)
{
    end_hosts(ring);
    quoit_share_server_close(ring->server);
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

/* The descriptors of the host's namespaces, with one byte. */
static void send_namespaces(const struct ring *ring, int fd, uint32_t index)
{
    char user[40], net[40], byte = 'n';
    pid_t pid = index < ring->plan.host_count ? ring->hosts[index].pid : 0;
    snprintf(user, sizeof user, "/proc/%d/ns/user", pid);
    snprintf(net, sizeof net, "/proc/%d/ns/net", pid);
    int fds[] = {open(user, O_RDONLY | O_CLOEXEC), open(net, O_RDONLY | O_CLOEXEC)};
    if (pid != 0 && fds[0] >= 0 && fds[1] >= 0)
        (void)quoit_send_with_descriptors(fd, &byte, 1, fds, 2, 0);
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* Its owner and root may ask. True: end the ring. */
static bool serve(struct ring *ring, int listen_fd)
{
    struct ring_reply reply;
    const struct timeval limit = {.tv_sec = REQUEST_SECONDS};
    struct ring_request request;
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
    if (is_allowed && recv(fd, &request, sizeof request, 0) == (ssize_t)sizeof request) {
        is_down = request.kind == RING_DOWN;
        fill_status(ring, &reply);
        if (is_down) {
            end_ring(ring);
            close(listen_fd); /* the name is free when the reply comes */
        }
        if (request.kind == RING_ENTER)
            send_namespaces(ring, fd, request.host);
        else
            send(fd, &reply, sizeof reply, MSG_NOSIGNAL);
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

/* Where jobs attach. */
static bool open_server(struct ring *ring)
{
    if (ring->plan.is_joined)
        return true;
    char path[QUOIT_SHARE_PATH_BYTES];
    quoit_share_path(geteuid(), ring->plan.name, path);
    if (quoit_share_server_open(ring->shared, path, ring->plan.serves_others, &ring->server) == QUOIT_OK)
        return true;
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
    bool is_up = signal_fd >= 0 && make(&ring) && wait_ready(&ring) && open_server(&ring);
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
