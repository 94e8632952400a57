/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/agent_state.h"
#include "boot/abstract.h"
#include "boot/ended.h"
#include "boot/exit.h"
#include "boot/heap_default.h"
#include "boot/launcher.h"
#include "boot/program.h"
#include "boot/report.h"
#include "boot/proxy_process.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/step.h"
#include "env/await.h"
#include "env/clock.h"
#include "env/descriptors.h"
#include "env/limits.h"
#include "env/stopwatch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define TICK_MS 1000 /* between two checks of the records */
#define SOON_MS 20

/* The PE of this host that is that rank of the launcher; agent->count: none. */
static uint32_t local_of(const struct quoit_agent *agent, uint32_t rank)
{
    uint32_t local = 0;
    while (local < agent->count && agent->members[local].rank != rank)
        local++;
    return local;
}

static void pe_gone(struct quoit_agent *agent, uint32_t pe)
{
    struct quoit_agent_member *member = &agent->members[pe];
    if (!agent->is_going)
        quoit_agent_finish_start(agent, pe, "ended");
    member->is_gone = true;
    agent->liveness.processes[pe] = 0;
    /* Pairs with quoit_client_leave_word. */
    uint32_t kind = atomic_load_explicit(&quoit_agent_record(agent, pe)->unsent_kind, memory_order_acquire);
    if (kind != QUOIT_BOOT_FINALIZED)
        quoit_agent_finish_for(agent, pe);
}

static void take_hello(struct quoit_agent *agent, struct quoit_agent_connection *connection,
                       const struct quoit_boot_message *message)
{
    uint32_t pe = local_of(agent, message->body.hello.pe), mask_count = 0;
    struct quoit_agent_member *member = &agent->members[pe];
    connection->role = QUOIT_AGENT_CONTROL;
    connection->pe = pe;
    member->has_hello = true;
    member->control_fd = connection->fd;
    agent->hello_count++;
    if (message->body.hello.data_bytes > agent->data_bytes)
        agent->data_bytes = message->body.hello.data_bytes;
    if (message->body.hello.heap_most_bytes < agent->heap_most_bytes)
        agent->heap_most_bytes = message->body.hello.heap_most_bytes;
    for (size_t i = 0; i < QUOIT_BOOT_CORES_MAX / 64; i++) {
        agent->cores[i] |= message->body.hello.cores[i];
        mask_count += (uint32_t)__builtin_popcountll(message->body.hello.cores[i]);
    }
    agent->has_quota |= message->body.hello.core_count < mask_count;
    if (message->body.hello.core_count > agent->core_count_max)
        agent->core_count_max = message->body.hello.core_count;
}

static void give_life(int fd, const struct quoit_life_pipe *pipe)
{
    quoit_agent_send(fd, &(struct quoit_boot_message){.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_LIFE}, pipe->pe_fd);
}

/* The kernel knows the process also where this one cannot see the pid that it has in its own namespace. */
static void take_watch(struct quoit_agent *agent, struct quoit_agent_connection *connection, uint32_t pe)
{
    struct ucred peer = {0};
    socklen_t bytes = sizeof peer;
    if (getsockopt(connection->fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0)
        agent->members[pe].process = agent->liveness.processes[pe] = peer.pid;
    connection->role = QUOIT_AGENT_WATCH;
    connection->pe = pe;
    agent->members[pe].is_watched = true;
    agent->members[pe].watch_fd = connection->fd;
    give_life(connection->fd, &agent->life.all);
}

/* So that the lowest PE knows this process, and that it does not hang. */
static void send_alive(int fd, pid_t pid)
{
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_PING};
    message.body.pid = (int32_t)pid;
    quoit_agent_send(fd, &message, -1);
}

static bool take_message(struct quoit_agent *agent, struct quoit_agent_connection *connection,
                         const struct quoit_boot_message *message)
{
    bool is_lowest = connection->role == QUOIT_AGENT_CONTROL && connection->pe == 0;
    uint32_t pe = connection->role == QUOIT_AGENT_UNKNOWN ? local_of(agent, message->body.hello.pe) : agent->count;
    if (connection->role == QUOIT_AGENT_UNKNOWN && message->kind == QUOIT_BOOT_HELLO && pe < agent->count &&
        !agent->members[pe].has_hello) {
        take_hello(agent, connection, message);
    } else if (connection->role == QUOIT_AGENT_UNKNOWN && message->kind == QUOIT_BOOT_WATCH && pe < agent->count &&
               !agent->members[pe].is_watched) {
        take_watch(agent, connection, pe);
    } else if (connection->role == QUOIT_AGENT_CONTROL && message->kind == QUOIT_BOOT_READY && agent->has_layout &&
               !agent->members[connection->pe].is_ready) {
        agent->members[connection->pe].is_ready = true;
        agent->ready_count++;
        quoit_life_bind(&agent->life, false);
    } else if (connection->role == QUOIT_AGENT_CONTROL && message->kind == QUOIT_BOOT_CRASHED && agent->is_going) {
        quoit_agent_finish_for(agent, connection->pe);
    } else if (connection->role == QUOIT_AGENT_WATCH && message->kind == QUOIT_BOOT_PING) {
        send_alive(connection->fd, getpid());
    } else if (is_lowest && message->kind == QUOIT_BOOT_CONTACT) {
        return quoit_agent_take_contact(agent, message);
    } else if (is_lowest && message->kind == QUOIT_BOOT_FINALIZED && agent->is_going) {
        quoit_agent_note_finalized(agent);
    } else {
        return false;
    }
    return true;
}

/* Receives from one connection. A process that sends an invalid message is dropped: it is not of this job. */
static void receive(struct quoit_agent *agent, uint32_t index)
{
    struct quoit_agent_connection *connection = &agent->connections[index];
    struct quoit_boot_message message;
    ssize_t n = recv(connection->fd, &message, sizeof message, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n == (ssize_t)sizeof message && message.magic == QUOIT_BOOT_MAGIC && take_message(agent, connection, &message))
        return;
    struct quoit_agent_connection lost = *connection;
    quoit_agent_drop(agent, index);
    if (lost.role == QUOIT_AGENT_CONTROL)
        agent->members[lost.pe].control_fd = -1;
    /* A running program may close its CONTROL CHANNEL connection, but cannot close its WATCH connection. */
    if (lost.role == QUOIT_AGENT_WATCH || (lost.role == QUOIT_AGENT_CONTROL && !agent->is_going))
        pe_gone(agent, lost.pe);
}

static void accept_all(struct quoit_agent *agent)
{
    int fd;
    while (agent->connection_count < agent->connection_max &&
           (fd = accept4(agent->host.socket_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        if (quoit_abstract_is_own(fd))
            agent->connections[agent->connection_count++] = (struct quoit_agent_connection){.fd = fd};
        else
            close(fd);
    }
}

static bool is_missing(const struct quoit_agent *agent, uint32_t pe)
{
    return !agent->members[pe].has_hello || !agent->members[pe].is_watched;
}

static bool have_all_come(const struct quoit_agent *agent)
{
    for (uint32_t pe = 0; pe < agent->count; pe++)
        if (is_missing(agent, pe))
            return false;
    return true;
}

/* Processors of all PEs together. The quota of a control group holds for all of them. */
static uint32_t core_count_of(const struct quoit_agent *agent)
{
    uint32_t count = 0;
    for (size_t i = 0; i < QUOIT_BOOT_CORES_MAX / 64; i++)
        count += (uint32_t)__builtin_popcountll(agent->cores[i]);
    if (count == 0 || (agent->has_quota && agent->core_count_max < count))
        count = agent->core_count_max;
    return count ? count : 1;
}

static void make_memory(struct quoit_agent *agent)
{
    struct quoit_boot *host = &agent->host;
    struct quoit_job_config job;
    bool is_one_machine = agent->hosts->count == 1;
    if (is_one_machine) {
        uint64_t heap_bytes = host->heap_bytes_asked;
        if (heap_bytes == 0)
            heap_bytes =
                quoit_heap_default_bytes(agent->count, agent->count, 1, agent->data_bytes, agent->heap_most_bytes);
        job = quoit_boot_one_host(agent->count, agent->data_bytes, heap_bytes);
    } else {
        bool is_placed = quoit_hosts_configure(agent->hosts, &job);
        job.has_loopback = host->network.has_loopback;
        quoit_assert(is_placed); /* the member has tried it */
    }
    if (quoit_boot_make_memory(host, &job, agent->host_index) != QUOIT_OK)
        quoit_agent_finish(agent, 1, true);
    host->memory = mmap(NULL, host->layout.channels, PROT_READ | PROT_WRITE, MAP_SHARED, host->memory_fd, 0);
    if (host->memory == MAP_FAILED) {
        quoit_boot_report_unmapped(host, errno);
        quoit_agent_finish(agent, 1, true);
    }
    quoit_agent_header(agent)->machine =
        quoit_machine_of(&job, agent->host_index, is_one_machine, core_count_of(agent));
}

static void lay_out(struct quoit_agent *agent)
{
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_LAYOUT};
    message.body.layout.version = *quoit_version();
    make_memory(agent);
    message.body.layout.job = agent->host.layout.job;
    message.body.layout.host = agent->host_index;
    agent->has_layout = true;
    quoit_step("agent", agent->host_index, "layout");
    if (agent->hosts->count > 1)
        quoit_agent_start_proxy(agent);
    agent->liveness.proxy = agent->proxy_pid;
    for (uint32_t pe = 0; pe < agent->count; pe++) {
        message.body.layout.pe = quoit_agent_pe(agent, pe);
        quoit_agent_send(agent->members[pe].control_fd, &message, agent->host.memory_fd);
    }
    close(agent->host.socket_fd); /* which releases the name */
    agent->host.socket_fd = -1;
    quoit_life_share_no_more(&agent->life.all);
}

static void step(struct quoit_agent *agent)
{
    char number[16];
    if (!agent->has_layout && have_all_come(agent))
        lay_out(agent);
    if (agent->ready_count == agent->count)
        quoit_agent_note_ready(agent);
    quoit_agent_step_hosts(agent);
    for (uint32_t pe = 0; pe < agent->count && agent->is_going && agent->ready_count > 0; pe++)
        if (agent->members[pe].is_gone) {
            snprintf(number, sizeof number, "%u", quoit_agent_pe(agent, pe));
            quoit_agent_finish_absent(agent, "PE", number);
        }
    if (agent->is_going)
        quoit_agent_conclude(agent, quoit_liveness_step(&agent->liveness, agent->proxy_fd, quoit_clock_now_ns()));
    if (quoit_agent_is_in_job(agent))
        quoit_agent_conclude(agent, quoit_liveness_ask(&agent->liveness, agent->proxy_fd, quoit_clock_now_ns()));
}

/* A PE may end between the fence and its connection. */
static void find_missing(struct quoit_agent *agent)
{
    for (uint32_t pe = 0; pe < agent->count; pe++)
        if (is_missing(agent, pe) && agent->members[pe].process && quoit_process_has_ended(agent->members[pe].process))
            quoit_agent_finish_start(agent, pe, "ended");
}

/* Who is awaited until all go: PEs that have passed the fence and do not connect; the proxy, until it has its address;
 * PEs that do not become ready. Their number is agent->count for the proxy. */
static void gather_awaited(struct quoit_agent *agent, struct quoit_awaited *awaited_out)
{
    bool waits_for_proxy = agent->has_layout && agent->proxy_fd >= 0 && agent->contacts_by_ns == 0;
    *awaited_out = (struct quoit_awaited){.view.is_idle = true};
    for (uint32_t pe = 0; pe < agent->count && !waits_for_proxy; pe++)
        if (agent->has_layout ? !agent->members[pe].is_ready : is_missing(agent, pe))
            quoit_awaited_look(awaited_out, pe, agent->members[pe].process, &agent->members[pe].busy_ns);
    if (waits_for_proxy)
        quoit_awaited_look(awaited_out, agent->count, agent->proxy_pid, &agent->proxy_busy_ns);
}

static void report_awaited(const struct quoit_agent *agent, const struct quoit_awaited *awaited, bool hangs)
{
    char who[160];
    bool is_proxy = awaited->number >= agent->count;
    const char *host = quoit_agent_host_name(agent, agent->host_index);
    if (is_proxy)
        snprintf(who, sizeof who, "the proxy of host %.100s", host);
    else
        snprintf(who, sizeof who, "PE %u on %.100s", quoit_agent_pe(agent, awaited->number), host);
    quoit_ended_report_awaited(awaited, who, is_proxy ? QUOIT_REPORT_LATE_PROXY : QUOIT_REPORT_LATE_PE,
                               quoit_clock_now_ns() - agent->await.since_ns, hangs);
}

/* Only Quoit's own code runs between the fence and GO, so who does nothing there hangs. */
static void look_at_awaited(struct quoit_agent *agent)
{
    struct quoit_awaited awaited;
    uint64_t now_ns = quoit_clock_now_ns(), next_ns, limit_ns = agent->host.network.link_timeout_ns;
    uint64_t key = 1 + agent->hello_count + agent->ready_count + agent->board.contact_count + agent->has_layout +
                   (agent->contacts_by_ns != 0);
    bool is_known = agent->contacts_by_ns == 0 || agent->board.contact_count == agent->hosts->count; /* else: Q0221 */
    if (agent->is_going || !is_known)
        key = 0;
    if (!quoit_await_is_due(&agent->await, key, limit_ns, now_ns, &next_ns))
        return;
    gather_awaited(agent, &awaited);
    enum quoit_await_verdict verdict =
        quoit_await_step(&agent->await, &awaited.view, QUOIT_AWAIT_HANG_TIMES * limit_ns, now_ns);
    if (awaited.count == 0 || verdict == QUOIT_AWAIT_GOES_ON)
        return;
    report_awaited(agent, &awaited, verdict == QUOIT_AWAIT_HANGS);
    if (verdict == QUOIT_AWAIT_HANGS)
        quoit_agent_finish(agent, 1, true);
}

static int tick_ms(const struct quoit_agent *agent)
{
    uint64_t ping_ms = agent->host.network.network_limit_ns / (2 * QUOIT_AGENT_PINGS) / 1000000;
    if (agent->lost.is_known)
        return SOON_MS;
    if (agent->proxy_fd < 0 || ping_ms > TICK_MS)
        return TICK_MS;
    return ping_ms > SOON_MS ? (int)ping_ms : SOON_MS;
}

static int wait_for_events(struct quoit_agent *agent, nfds_t count)
{
    int limit_ms = tick_ms(agent);
    quoit_stopwatch_mark(&agent->watch, quoit_clock_now_ns(), 0); /* the work since the last time */
    int n = poll(agent->polls, count, limit_ms);
    quoit_stopwatch_mark(&agent->watch, quoit_clock_now_ns(), (uint64_t)limit_ms * 1000000);
    return n;
}

/* Until all processes have ended after their PEs had finalized; all other ends are quoit_agent_finish(). */
static void run(struct quoit_agent *agent)
{
    while (!agent->is_going || quoit_agent_watched_count(agent) > 0) {
        uint32_t count = agent->connection_count;
        for (uint32_t i = 0; i < count; i++)
            agent->polls[i] = (struct pollfd){.fd = agent->connections[i].fd, .events = POLLIN};
        agent->polls[count] = (struct pollfd){.fd = agent->host.socket_fd, .events = POLLIN};
        agent->polls[count + 1] = (struct pollfd){.fd = agent->proxy_fd, .events = POLLIN};
        agent->polls[count + 2] =
            (struct pollfd){.fd = agent->is_finalized_sent ? -1 : agent->launcher_fd, .events = POLLIN};
        int n = wait_for_events(agent, count + 3);
        for (uint32_t i = count; i-- > 0 && n > 0;) /* backwards, because one that is dropped is replaced by the last */
            if (agent->polls[i].revents)
                receive(agent, i);
        if (n > 0 && agent->polls[count + 1].revents)
            quoit_agent_receive_of_proxy(agent);
        if (n > 0 && agent->polls[count + 2].revents)
            quoit_agent_lose_launcher(agent);
        if (n > 0 && agent->polls[count].revents)
            accept_all(agent);
        step(agent);
        if (!agent->has_layout && n == 0)
            find_missing(agent);
        look_at_awaited(agent);
    }
}

static struct quoit_agent *make_agent(const struct quoit_agent_start *start, const struct quoit_life *life)
{
    uint32_t count = start->hosts.list[start->host].pe_count;
    struct quoit_agent *agent = calloc(1, sizeof *agent);
    if (agent) {
        agent->count = count;
        agent->connection_max = 2 * count + 16;
        agent->heap_most_bytes = UINT64_MAX;
        agent->members = calloc(count, sizeof *agent->members);
        agent->connections = calloc(agent->connection_max, sizeof *agent->connections);
        agent->polls = calloc(agent->connection_max + 3, sizeof *agent->polls);
        agent->liveness.seen = calloc(count, sizeof *agent->liveness.seen);
        agent->liveness.processes = calloc(count, sizeof *agent->liveness.processes);
    }
    if (agent && (quoit_silences_open(&agent->liveness.silences, start->hosts.count) != QUOIT_OK ||
                  quoit_peers_open(&agent->peers, start->hosts.count) != QUOIT_OK))
        return NULL;
    if (!agent || !agent->members || !agent->connections || !agent->polls || !agent->liveness.seen ||
        !agent->liveness.processes)
        return NULL; /* the process ends */
    for (uint32_t i = 0; i < count; i++) {
        agent->members[i].rank = start->pes[i].rank;
        agent->members[i].process = start->pes[i].process;
    }
    agent->hosts = &start->hosts;
    agent->host_index = start->host;
    agent->proxy_fd = -1;
    agent->launcher_fd = start->launcher > 0 ? quoit_process_open(start->launcher) : -1;
    agent->life = *life;
    agent->host.memory_fd = -1;
    agent->host.heap_bytes_asked = start->heap_bytes_asked;
    agent->host.network = (struct quoit_boot_network){.driver = start->driver,
                                                      .provider = start->provider,
                                                      .device = start->device,
                                                      .ports = start->ports,
                                                      .link_timeout_ns = start->link_timeout_ns,
                                                      .network_limit_ns = start->network_limit_ns,
                                                      .log_level = start->log_level,
                                                      .has_loopback = start->has_loopback};
    quoit_stopwatch_start(&agent->watch, quoit_clock_now_ns());
    agent->begin_ns = quoit_agent_now_ns(agent);
    agent->liveness.host = &agent->host;
    agent->liveness.hosts = &start->hosts;
    return agent;
}

/* To the PE that started it, from the process that forks. */
static void publish(pid_t agent)
{
    send_alive(QUOIT_PROGRAM_FD, agent);
}

int quoit_agent_serve(void)
{
    char who[24];
    int listen_fd;
    struct quoit_life life;
    if (!quoit_program_has_starter(QUOIT_AGENT_OPTION))
        return 2;
    prctl(PR_SET_NAME, "quoit-agent");
    quoit_program_end_with_starter(); /* until it leaves it */
    quoit_step("agent", QUOIT_STEP_ANY, "begin");
    if (!quoit_program_leave_starter(publish)) {
        quoit_say("cannot start the agent of this host: %s (ulimit -u, or a control group's pids) [Q0239]",
                  strerror(errno));
        return 1;
    }
    quoit_program_ignore_signals();
    quoit_life_open(&life);
    give_life(QUOIT_PROGRAM_FD, &life.lowest);
    quoit_life_share_no_more(&life.lowest);
    const struct quoit_agent_start *start = quoit_agent_receive_start(&listen_fd);
    if (!start)
        return 1;
    snprintf(who, sizeof who, "host%u", start->host);
    quoit_log_setup((enum quoit_log_level)start->log_level, who);
    quoit_step("agent", start->host, "start");
    struct quoit_agent *agent = make_agent(start, &life);
    if (!agent) {
        quoit_say("no memory for the records of %u PEs [Q0312]", start->hosts.list[start->host].pe_count);
        return 1;
    }
    agent->host.socket_fd = listen_fd;
    agent->connections[0] = (struct quoit_agent_connection){.fd = QUOIT_PROGRAM_FD};
    take_watch(agent, &agent->connections[0], 0);
    agent->connection_count = 1;
    run(agent);
    quoit_step("agent", start->host, "end");
    return 0;
}
