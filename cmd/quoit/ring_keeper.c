/* SPDX-License-Identifier: BSD-3-Clause */
/* The keeper of a ring that stays: one thread, one loop. */
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
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <linux/sockios.h>
#include <unistd.h>

#include "base/log.h"
#include "base/step.h"
#include "env/clock.h"
#include "env/limits.h"

#define PAGE_BYTES 4096u
#define RESTART_NS 200000000u  /* from the end of a host, or a fork() that failed, to its restart */
#define REJOIN_NS  2000000000u /* the same on bridges: a host that does not fit its ring needs an operator */
#define LEAVE_MS   2000        /* for a bridge to take its link down */
#define TICK_MS    50
#define ACCEPT_NS  10000000u /* until the next try, if one failed */

/* On bridges there are no shares, and the ring only tells jobs what it is. */
static bool open_info(struct ring *ring)
{
    struct quoit_share_config config = {
        .host_count = ring->plan.host_count,
        .machines = {.host = ring->plan.host, .address = ring->plan.address},
    };
    snprintf(config.driver, sizeof config.driver, "%s", ring->driver->name);
    memcpy(config.machines.left, ring->plan.devices[QUOIT_LEFT], sizeof config.machines.left);
    memcpy(config.machines.right, ring->plan.devices[QUOIT_RIGHT], sizeof config.machines.right);
    return quoit_shared_ring_open(&config, &ring->shared) == QUOIT_OK;
}

/* The Ethernet devices take the first share. */
static bool create_links(struct ring *ring)
{
    if (ring->plan.is_joined)
        return ring_open_bridges(ring) && open_info(ring);
    struct quoit_share_config config = {.knobs = ring->plan.knobs, .host_count = ring->plan.host_count};
    struct quoit_share_request request = {
        .id = RING_ETHERNET, .label = "Ethernet", .part.percent = ring->plan.ethernet_percent};
    snprintf(config.driver, sizeof config.driver, "%s", ring->driver->name);
    for (uint32_t i = ring_host_begin(&ring->plan); i < ring_host_end(&ring->plan); i++)
        request.memory_bytes[i] = ring->hosts[i].bytes;
    if (quoit_shared_ring_open(&config, &ring->shared) != QUOIT_OK ||
        quoit_share_take(ring->shared, &request, &ring->share) != QUOIT_OK) {
        quoit_say("cannot make the links of the ring %s: %s [Q0603]", ring->plan.name, strerror(errno));
        return false;
    }
    for (uint32_t i = ring_host_begin(&ring->plan); i < ring_host_end(&ring->plan); i++)
        ring->hosts[i].memory_fd = ring->share->memory_fds[i];
    return true;
}

static void lay_out_host(struct ring *ring, uint32_t index)
{
    struct ring_host *host = &ring->hosts[index];
    host->index = index;
    host->place = (struct ring_place){.network_fd = -1, .name_fd = -1};
    host->veth_offset = (sizeof(struct ring_memory) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    host->bytes =
        (host->veth_offset + quoit_veth_bytes(ring->plan.queue_count) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static bool map_host(struct ring_host *host)
{
    host->memory = mmap(NULL, host->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, host->memory_fd, 0);
    return host->memory != MAP_FAILED;
}

void ring_close_in_child(struct ring *ring, const struct quoit_share *except)
{
    close(ring->listen_fd);
    if (ring->server)
        quoit_share_server_close_in_child(ring->server);
    if (ring->shared)
        quoit_shared_ring_close_in_child(ring->shared, except);
}

static bool start_host(struct ring *ring, struct ring_host *host)
{
    memset(host->memory, 0, host->bytes); /* its links are down, so no neighbour writes here */
    pid_t keeper = getpid(), pid = fork();
    if (pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        for (uint32_t i = ring_host_begin(&ring->plan); i < ring_host_end(&ring->plan); i++)
            ring_close_place(&ring->hosts[i].place);
        ring_close_in_child(ring, ring->share);
        _exit(ring_host_run(ring, host, keeper));
    }
    bool is_started = pid > 0;
    host->pid = is_started ? pid : 0;
    host->restart_ns = is_started ? 0 : quoit_clock_now_ns() + RESTART_NS;
    host->start_count += is_started;
    return is_started;
}

/* NULL: not possible. */
static struct quoit_port *open_port(const struct ring *ring, uint32_t host, enum quoit_side side)
{
    struct quoit_port_endpoint endpoint;
    struct quoit_port *port;
    if (ring_describe_link(ring, host, side, &endpoint) != QUOIT_OK)
        return NULL;
    const struct quoit_port_config config = {
        .driver = ring->driver, .memory = {ring->hosts[host].memory, ring->hosts[host].bytes}, .endpoint = &endpoint};
    return quoit_port_open(&config, &port) == QUOIT_OK ? port : NULL;
}

/* Takes both links down, as if the machine had lost power. On bridges that takes a moment. */
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

/* Keeps the namespaces of hosts that are up open. Called before anything can enter a host by this program. */
static void hold_places(struct ring *ring)
{
    bool has_changed = false;
    for (uint32_t i = 0; !ring->plan.is_joined && i < ring->plan.host_count; i++) {
        struct ring_host *host = &ring->hosts[i];
        if (host->place.network_fd >= 0 || host->pid == 0 ||
            !atomic_load(&((struct ring_memory *)host->memory)->is_ready))
            continue;
        has_changed |= ring_open_place(host->pid, &host->place);
    }
    if (has_changed) {
        ring->is_guarded = false;
        ring_guard_renew(ring);
    }
}

/* Kills what runs on a host, as if the machine had lost power. */
static void kill_programs(struct ring_host *host)
{
    ring_kill_processes_in(&host->place);
    ring_close_place(&host->place);
}

/* Of a host, before the ring is up. One that ends with an error has reported it; SIGTERM ends it with 0. */
static void report_early_end(const struct ring *ring, uint32_t host, int status)
{
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) == 0 ? SIGTERM : 0;
    if (number != 0)
        quoit_say("host%u was ended by signal %d before the ring \"%s\" was up [Q0603]", host, number, ring->plan.name);
}

static void reap(struct ring *ring)
{
    pid_t pid;
    int status;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == ring->guard) {
            ring->guard = 0;
            ring->is_guarded = false;
        }
        for (uint32_t i = ring_host_begin(&ring->plan); i < ring_host_end(&ring->plan); i++)
            if (ring->hosts[i].pid == pid) {
                if (!ring->server)
                    report_early_end(ring, i, status);
                ring->hosts[i].pid = 0;
                ring->hosts[i].restart_ns = quoit_clock_now_ns() + (ring->plan.is_joined ? REJOIN_NS : RESTART_NS);
                drop_links(ring, &ring->hosts[i]);
                kill_programs(&ring->hosts[i]);
            }
    }
}

static bool has_dead_host(const struct ring *ring)
{
    for (uint32_t i = ring_host_begin(&ring->plan); i < ring_host_end(&ring->plan); i++)
        if (ring->hosts[i].pid == 0)
            return true;
    return false;
}

/* All at once, since the kernel takes its time over each device. */
static void end_hosts(struct ring *ring)
{
    hold_places(ring);
    for (uint32_t i = ring_host_begin(&ring->plan); i < ring_host_end(&ring->plan); i++)
        if (ring->hosts[i].pid != 0)
            kill(ring->hosts[i].pid, SIGKILL);
    for (uint32_t i = ring_host_begin(&ring->plan); i < ring_host_end(&ring->plan); i++) {
        struct ring_host *host = &ring->hosts[i];
        if (host->pid != 0)
            waitpid(host->pid, NULL, 0);
        host->pid = 0;
        kill_programs(host);
    }
    ring_guard_end(ring);
}

/* Jobs go first: their launchers then report the end of the ring, not the death of PEs. */
static void end_ring(struct ring *ring)
{
    quoit_share_server_close(ring->server);
    end_hosts(ring);
    quoit_shared_ring_close(ring->shared);
    ring->server = NULL;
    ring->shared = NULL;
}

static void fill_status(struct ring *ring, struct ring_reply *reply)
{
    memset(reply, 0, sizeof *reply);
    hold_places(ring);
    reply->plan = ring->plan;
    for (uint32_t i = ring_host_begin(&ring->plan); i < ring_host_end(&ring->plan); i++) {
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

/* Accepts one connection and handles its request, from the ring's user or root. True: the ring has ended. */
static bool serve(struct ring *ring, int listen_fd)
{
    struct ring_reply reply;
    const struct timeval limit = {.tv_sec = RING_REQUEST_SECONDS};
    struct quoit_share_head request;
    struct ucred peer;
    socklen_t peer_bytes = sizeof peer;
    int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) { /* out of descriptors or memory: do not spin */
        quoit_clock_sleep_ns(ACCEPT_NS);
        return false;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    bool is_allowed =
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) == 0 && (peer.uid == geteuid() || peer.uid == 0);
    bool is_down = false;
    ssize_t bytes = is_allowed ? recv(fd, &request, sizeof request, 0) : -1;
    if (bytes >= 0 && quoit_share_head_is_present(&request, (size_t)bytes, RING_MAGIC)) {
        bool is_same_build = request.protocol == QUOIT_SHARE_PROTOCOL && request.bytes == sizeof reply;
        is_down = request.kind == RING_DOWN;
        fill_status(ring, &reply);
        reply.head = quoit_share_head_make(RING_MAGIC, sizeof reply, request.kind);
        if (is_down) {
            end_ring(ring);
            close(listen_fd); /* before the reply: the caller may use the name again */
        }
        send(fd, &reply, is_same_build ? sizeof reply : sizeof reply.head, MSG_NOSIGNAL);
    }
    close(fd);
    return is_down;
}

static bool create(struct ring *ring)
{
    for (uint32_t i = ring_host_begin(&ring->plan); i < ring_host_end(&ring->plan); i++)
        lay_out_host(ring, i);
    if (!create_links(ring))
        return false;
    for (uint32_t i = ring_host_begin(&ring->plan); i < ring_host_end(&ring->plan); i++)
        if (!map_host(&ring->hosts[i])) {
            quoit_say("cannot make the memory of host%u: %s [Q0603]", i, strerror(errno));
            return false;
        }
    for (uint32_t i = ring_host_begin(&ring->plan); i < ring_host_end(&ring->plan); i++)
        if (!start_host(ring, &ring->hosts[i])) {
            quoit_say("cannot start host%u: %s [Q0603]", i, strerror(errno));
            return false;
        }
    return true;
}

static void restart_hosts(struct ring *ring)
{
    for (uint32_t i = ring_host_begin(&ring->plan); i < ring_host_end(&ring->plan); i++)
        if (ring->hosts[i].pid == 0 && quoit_clock_now_ns() >= ring->hosts[i].restart_ns)
            start_host(ring, &ring->hosts[i]);
}

static bool is_ready(const struct ring_host *host)
{
    return atomic_load(&((const struct ring_memory *)host->memory)->is_ready);
}

static uint32_t late_count(const struct ring *ring)
{
    uint32_t count = 0;
    for (uint32_t i = ring_host_begin(&ring->plan); i < ring_host_end(&ring->plan); i++)
        count += !is_ready(&ring->hosts[i]);
    return count;
}

static void report_late_host(const struct ring *ring, const struct ring_host *host, const struct ring_await *seen)
{
    char who[32 + RING_NAME_BYTES], text[RING_SILENCE_BYTES];
    snprintf(who, sizeof who, "host%u of the ring \"%s\"", host->index, ring->plan.name);
    ring_await_describe(seen, who, host->pid, text);
    quoit_say("%s", text);
}

/* Those that are stopped, which their neighbours wait for, too; if none is, the first that is not up. */
static void report_late_hosts(const struct ring *ring, const struct quoit_await *await)
{
    const struct ring_host *first = NULL;
    struct ring_await first_seen = {.await = *await};
    uint32_t stopped_count = 0;
    for (uint32_t i = ring_host_begin(&ring->plan); i < ring_host_end(&ring->plan); i++) {
        const struct ring_host *host = &ring->hosts[i];
        struct ring_await seen = {.await = *await};
        if (is_ready(host))
            continue;
        bool is_stopped =
            quoit_process_look(host->pid, &seen.process) && (seen.process.state == 'T' || seen.process.state == 't');
        if (is_stopped)
            report_late_host(ring, host, &seen);
        stopped_count += is_stopped;
        if (!first) {
            first = host;
            first_seen = seen;
        }
    }
    if (stopped_count == 0 && first)
        report_late_host(ring, first, &first_seen);
}

/* One word at a time, so that a command that is stopped does not hold up the keeper. */
static void report_progress(int start_fd)
{
    const struct ring_start_word word = {.kind = RING_GOES_ON, .pid = (int32_t)getpid()};
    int queued_bytes;
    if (start_fd >= 0 && ioctl(start_fd, SIOCOUTQ, &queued_bytes) == 0 && queued_bytes == 0)
        (void)send(start_fd, &word, sizeof word, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* A look at the hosts, if one is due. False: they hang, which was reported. */
static bool look_at_hosts(struct ring *ring, struct quoit_await *await, uint32_t late, int start_fd)
{
    uint64_t now_ns = quoit_clock_now_ns(), next_ns;
    struct quoit_await_view view = {.is_idle = true};
    if (!quoit_await_is_due(await, late, RING_REPORT_NS, now_ns, &next_ns))
        return true;
    for (uint32_t i = ring_host_begin(&ring->plan); i < ring_host_end(&ring->plan); i++) {
        struct ring_host *host = &ring->hosts[i];
        struct quoit_process process;
        if (is_ready(host) || !quoit_process_look(host->pid, &process))
            continue;
        quoit_await_add(&view, &process, host->busy_ns);
        host->busy_ns = process.busy_ns;
    }
    enum quoit_await_verdict verdict = quoit_await_step(await, &view, RING_HANG_NS, now_ns);
    if (verdict == QUOIT_AWAIT_HANGS)
        quoit_say("the ring \"%s\" does not come up: %u of its hosts could run, but did nothing for %u s [Q0603]",
                  ring->plan.name, late, (unsigned)(RING_HANG_NS / 1000000000u));
    else if (verdict == QUOIT_AWAIT_REPORT)
        report_late_hosts(ring, await);
    report_progress(start_fd);
    return verdict != QUOIT_AWAIT_HANGS;
}

static bool has_hung_up(int fd)
{
    struct pollfd polled = {.fd = fd};
    return fd >= 0 && poll(&polled, 1, 0) > 0;
}

/* Whether a signal has come that ends the ring. */
static bool takes_end_signal(int signal_fd)
{
    struct signalfd_siginfo signal;
    bool is_end = false;
    while (read(signal_fd, &signal, sizeof signal) == (ssize_t)sizeof signal)
        is_end |= signal.ssi_signo != SIGCHLD;
    return is_end;
}

/* Hosts that are stopped, or get no processor, are waited for. False: a host died or hangs, or a signal came, which was
 * reported, or who started the ring has ended. */
static bool wait_ready(struct ring *ring, int start_fd, int signal_fd)
{
    struct quoit_await await = {0};
    for (;;) {
        uint32_t late = late_count(ring);
        if (late == 0 || has_dead_host(ring))
            return late == 0;
        if (has_hung_up(start_fd) || !look_at_hosts(ring, &await, late, start_fd))
            return false;
        if (takes_end_signal(signal_fd)) {
            quoit_say("the ring \"%s\" was ended by a signal to its keeper before it was up [Q0603]", ring->plan.name);
            return false;
        }
        quoit_clock_sleep_ns(1000000);
        reap(ring);
    }
}

/* A process of a host in its own namespaces, before anything else enters them. */
static pid_t process_of(void *arg, uint32_t index)
{
    struct ring *ring = arg;
    hold_places(ring);
    return ring->hosts[index].place.network_fd < 0 ? 0 : ring->hosts[index].pid;
}

/* Jobs attach here. */
static bool open_server(struct ring *ring)
{
    char path[QUOIT_SHARE_PATH_BYTES];
    quoit_share_path(geteuid(), ring->plan.name, path);
    bool allows_all = ring->plan.allows_all || ring->plan.is_joined;
    if (quoit_share_server_open(ring->shared, path, allows_all, &ring->server) != QUOIT_OK) {
        quoit_say("the ring %s cannot listen for jobs: %s [Q0603]", ring->plan.name, strerror(errno));
        return false;
    }
    if (!ring->plan.is_joined)
        quoit_share_server_set_processes(ring->server, process_of, ring);
    quoit_share_server_set_user_limit(ring->server, ring->plan.jobs_per_user);
    return true;
}

/* On a ring of bridges nothing is to be guarded. */
static bool is_guarded(const struct ring *ring)
{
    return ring->is_guarded || ring->plan.is_joined;
}

static void keep(struct ring *ring, int listen_fd, int signal_fd)
{
    struct pollfd polled[] = {{.fd = listen_fd, .events = POLLIN},
                              {.fd = signal_fd, .events = POLLIN},
                              {.fd = ring->server ? quoit_share_server_fd(ring->server) : -1, .events = POLLIN}};
    for (bool is_down = false; !is_down;) {
        poll(polled, 3, has_dead_host(ring) || !is_guarded(ring) ? TICK_MS : -1);
        is_down |= takes_end_signal(signal_fd);
        reap(ring);
        restart_hosts(ring);
        if (!is_guarded(ring))
            ring_guard_renew(ring);
        if (polled[2].revents & POLLIN)
            quoit_share_server_step(ring->server);
        if (polled[0].revents & POLLIN)
            is_down |= serve(ring, listen_fd);
    }
}

int ring_keeper_run(const struct ring_plan *plan, int listen_fd, int start_fd)
{
    sigset_t signals;
    struct ring ring = {.plan = *plan,
                        .driver = plan->is_joined ? quoit_port_driver_find("linux") : quoit_port_driver_at(0),
                        .listen_fd = listen_fd};
    prctl(PR_SET_NAME, "quoit-ring");
    quoit_limits_raise_files(); /* a share has three descriptors a host, so those of a large ring are many */
    signal(SIGCHLD, SIG_DFL);   /* if the caller ignores it, the kernel would reap the hosts */
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    int signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    /* listen() in this process, because SO_PEERCRED shows clients the process that called it. */
    bool is_up = listen(listen_fd, SOMAXCONN) == 0 && signal_fd >= 0 && create(&ring) &&
                 wait_ready(&ring, start_fd, signal_fd) && open_server(&ring);
    quoit_step("keeper", QUOIT_STEP_ANY, "ready");
    const struct ring_start_word word = {.kind = is_up ? RING_IS_UP : RING_HAS_FAILED, .pid = (int32_t)getpid()};
    bool is_received = start_fd < 0 || send(start_fd, &word, sizeof word, MSG_NOSIGNAL) == (ssize_t)sizeof word;
    if (is_up && is_received) {
        if (start_fd >= 0) {
            close(start_fd);
            ring_detach_output();
        }
        hold_places(&ring); /* now, since the guard must not hold the caller's output */
        keep(&ring, listen_fd, signal_fd);
    }
    end_ring(&ring);
    return is_up ? 0 : 1;
}
