/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/agent.h"
#include "boot/awaited.h"
#include "boot/abstract.h"
#include "boot/ended.h"
#include "boot/exit.h"
#include "boot/heap_default.h"
#include "boot/launcher.h"
#include "boot/life.h"
#include "boot/lost.h"
#include "boot/program.h"
#include "boot/report.h"
#include "boot/proxy_process.h"
#include "boot/liveness.h"
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

#define OBEY_NS  500000000u /* for END to reach them */
#define TICK_MS  1000       /* between two checks of the records */
#define SOON_MS  20
#define PINGS    4 /* of the proxy, in the limit of networks */
#define PATIENCE 2 /* so many limits it has for the answer */

enum role { ROLE_UNKNOWN, ROLE_CONTROL, ROLE_WATCH };

struct connection {
    int fd;
    enum role role;
    uint32_t pe;
};

struct member {
    bool has_hello;
    bool is_watched;
    bool is_ready;
    bool is_gone;
    int control_fd;
    int watch_fd;
    uint32_t rank;
    pid_t process; /* 0: unknown */
    uint64_t busy_ns;
};

struct agent {
    struct quoit_boot host; /* layout, and the memory as far as the records */
    const struct quoit_hosts *hosts;
    uint32_t host_index;
    int proxy_fd;    /* -1: one host, or not started */
    pid_t proxy_pid; /* a child, which is not waited for: the number stays its own */
    uint64_t proxy_busy_ns;
    bool is_pinged;          /* the proxy, which has not answered */
    uint64_t ping_ns;        /* when it was, or had answered; of the stopwatch */
    bool is_ready_told;      /* to the proxy */
    bool is_finalized_told;  /* to the proxy, since the last GO */
    bool is_end_told;        /* to the proxy, or by it */
    uint64_t contacts_by_ns; /* of the stopwatch, when those of all hosts must be there; 0: the proxy has not
                              * given its own */
    uint32_t contact_count;  /* of all hosts, as passed to the proxy */
    struct quoit_lost lost;
    int launcher_fd;                /* a pidfd of its process on this host; -1: unknown */
    struct member *members;         /* of this host, the lowest PE first, as all numbers of PEs here */
    struct connection *connections; /* at most two per PE; no more are accepted */
    struct pollfd *polls;           /* [connection_max + 3] */
    uint32_t count;
    uint32_t connection_count, connection_max;
    uint32_t hello_count, ready_count;
    uint64_t data_bytes;
    uint64_t heap_most_bytes; /* of a default, in any PE that has sent HELLO */
    uint64_t cores[QUOIT_BOOT_CORES_MAX / 64];
    uint32_t core_count_max; /* the largest of any PE, */
    bool has_quota;          /* less than its affinity mask */
    bool has_layout;
    bool is_going;
    struct quoit_stopwatch watch; /* for limits of silence of others: they do not count while this process is stopped */
    uint64_t begin_ns;            /* of the stopwatch */
    struct quoit_await await;     /* for the PEs and the proxy, until all go */
    struct quoit_life life;
    struct quoit_liveness liveness;
};

static struct quoit_host_header *header_of(const struct agent *agent)
{
    return agent->host.memory;
}

/* In which no stop of this process counts. */
static uint64_t counted_ns(const struct agent *agent)
{
    return quoit_stopwatch_read(&agent->watch, quoit_clock_now_ns());
}

static uint32_t pe_of(const struct agent *agent, uint32_t local)
{
    return agent->has_layout ? agent->host.layout.first_pe + local : agent->members[local].rank;
}

/* The PE of this host that is that rank of the launcher; agent->count: none. */
static uint32_t local_of(const struct agent *agent, uint32_t rank)
{
    uint32_t local = 0;
    while (local < agent->count && agent->members[local].rank != rank)
        local++;
    return local;
}

static struct quoit_pe_shared *record_of(const struct agent *agent, uint32_t pe)
{
    return quoit_memory_pe(&agent->host.layout, agent->host.memory, pe);
}

static void drop(struct agent *agent, uint32_t index)
{
    close(agent->connections[index].fd);
    agent->connections[index] = agent->connections[--agent->connection_count];
}

/* Sends a message, with a descriptor if it is not negative. A PE that has gone is detected elsewhere. */
static void say(int fd, const struct quoit_boot_message *message, int with_fd)
{
    if (fd >= 0)
        (void)quoit_send_with_descriptors(fd, message, sizeof *message, &with_fd, with_fd >= 0, 0);
}

static uint32_t watched_count(const struct agent *agent)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < agent->connection_count; i++)
        count += agent->connections[i].role == ROLE_WATCH;
    return count;
}

/* Drops the connections of processes that have ended, until all have or until_ns has passed. */
static bool wait_for_ends(struct agent *agent, uint64_t until_ns)
{
    for (uint64_t now_ns; watched_count(agent) > 0 && (now_ns = quoit_clock_now_ns()) < until_ns;) {
        uint32_t count = agent->connection_count;
        for (uint32_t i = 0; i < count; i++)
            agent->polls[i] = (struct pollfd){.fd = agent->connections[i].fd, .events = POLLIN};
        if (poll(agent->polls, count, (int)((until_ns - now_ns) / 1000000) + 1) <= 0)
            continue;
        for (uint32_t i = count; i-- > 0;) {
            char byte;
            if (agent->polls[i].revents && recv(agent->connections[i].fd, &byte, 1, MSG_DONTWAIT) <= 0)
                drop(agent, i);
        }
    }
    return watched_count(agent) == 0;
}

/* A PE in shmem_global_exit, whose exit handlers run. */
static bool is_exiting(const struct agent *agent, uint32_t pe)
{
    /* Pairs with quoit_client_leave_word. */
    return agent->is_going &&
           atomic_load_explicit(&record_of(agent, pe)->unsent_kind, memory_order_acquire) == QUOIT_BOOT_ABORT;
}

/* For instance PEs that are stopped. A process whose connection is open is alive, so its pid is not reused. */
static void kill_the_rest(struct agent *agent, bool has_exit_handlers)
{
    for (uint32_t i = 0; i < agent->connection_count; i++) {
        const struct connection *connection = &agent->connections[i];
        const struct member *member = &agent->members[connection->pe];
        if (connection->role == ROLE_WATCH && member->process > 0 &&
            !(has_exit_handlers && is_exiting(agent, connection->pe)))
            kill(member->process, SIGKILL);
    }
}

/* PEs that have not connected only the launcher can end; one of the others asks it. */
static void say_end(struct agent *agent, int status)
{
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_END};
    message.body.end.status = status;
    message.body.end.has_to_ask = !agent->is_going;
    for (uint32_t i = 0; i < agent->connection_count; i++)
        if (agent->connections[i].role == ROLE_WATCH) {
            say(agent->connections[i].fd, &message, -1);
            message.body.end.has_to_ask = false;
        }
}

/* The proxy ends when it has passed the end on to other hosts, or as its socket closes. One that hangs or is stopped
 * does not, and nobody else would end it. */
static void end_proxy(const struct agent *agent)
{
    struct quoit_proxy_message message;
    struct pollfd proxy = {.fd = agent->proxy_fd, .events = POLLIN};
    uint64_t until_ns = quoit_clock_now_ns() + 2 * OBEY_NS;
    bool has_ended = false;
    while (!has_ended && quoit_clock_now_ns() < until_ns)
        has_ended = poll(&proxy, 1, SOON_MS) > 0 && recv(agent->proxy_fd, &message, sizeof message, MSG_DONTWAIT) <= 0;
    if (!has_ended)
        kill(agent->proxy_pid, SIGKILL);
}

/* Ends all PEs. is_new: the reason has just been reported; another host that is notified asks the launcher at
 * once. */
__attribute__((noreturn)) static void finish(struct agent *agent, int status, bool is_new)
{
    if (is_new)
        quoit_ended_pause();
    if (agent->proxy_fd >= 0 && !agent->is_end_told)
        quoit_proxy_process_say(
            agent->proxy_fd,
            &(struct quoit_proxy_message){.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_PROXY_END, .body.status = status});
    say_end(agent, status);
    if (!wait_for_ends(agent, quoit_clock_now_ns() + OBEY_NS)) {
        kill_the_rest(agent, true);
        if (!wait_for_ends(agent, quoit_clock_now_ns() + QUOIT_EXIT_LIMIT_NS + OBEY_NS))
            kill_the_rest(agent, false);
    }
    if (agent->proxy_fd >= 0)
        end_proxy(agent);
    _exit(status);
}

/* Ends the job because of one PE, which has reported the reason itself if it could. */
__attribute__((noreturn)) static void finish_for(struct agent *agent, uint32_t pe)
{
    struct quoit_pe_shared *shared = record_of(agent, pe);
    int status = quoit_ended_status(shared);
    bool is_told = !quoit_ended_claim(header_of(agent), status);
    if (!is_told)
        quoit_ended_report(pe_of(agent, pe), agent->hosts->list[agent->host_index].name, shared,
                           agent->members[pe].process, status);
    atomic_store(&header_of(agent)->is_told, 1);
    finish(agent, quoit_ended_decision(header_of(agent)), !is_told);
}

__attribute__((noreturn)) static void finish_start(struct agent *agent, uint32_t pe, const char *how)
{
    quoit_ended_line("PE %u %s during shmem_init; the job was ended [Q0312]", pe_of(agent, pe), how);
    finish(agent, 1, true);
}

static void pe_gone(struct agent *agent, uint32_t pe)
{
    struct member *member = &agent->members[pe];
    if (!agent->is_going)
        finish_start(agent, pe, "ended");
    member->is_gone = true;
    agent->liveness.processes[pe] = 0;
    /* Pairs with quoit_client_leave_word. */
    uint32_t kind = atomic_load_explicit(&record_of(agent, pe)->unsent_kind, memory_order_acquire);
    if (kind != QUOIT_BOOT_FINALIZED)
        finish_for(agent, pe);
}

static void take_hello(struct agent *agent, struct connection *connection, const struct quoit_boot_message *message)
{
    uint32_t pe = local_of(agent, message->body.hello.pe), mask_count = 0;
    struct member *member = &agent->members[pe];
    connection->role = ROLE_CONTROL;
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
    say(fd, &(struct quoit_boot_message){.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_LIFE}, pipe->pe_fd);
}

/* The kernel knows the process also where this one cannot see the pid that it has in its own namespace. */
static void take_watch(struct agent *agent, struct connection *connection, uint32_t pe)
{
    struct ucred peer = {0};
    socklen_t bytes = sizeof peer;
    if (getsockopt(connection->fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0)
        agent->members[pe].process = agent->liveness.processes[pe] = peer.pid;
    connection->role = ROLE_WATCH;
    connection->pe = pe;
    agent->members[pe].is_watched = true;
    agent->members[pe].watch_fd = connection->fd;
    give_life(connection->fd, &agent->life.all);
}

/* From the lowest PE, which reads it from the exchange, to the proxy. */
static void pass_contact(struct agent *agent, const struct quoit_boot_message *message)
{
    struct quoit_proxy_message contact = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_PROXY_CONTACT};
    contact.body.contact.host = message->body.contact.host;
    memcpy(contact.body.contact.bytes, message->body.contact.bytes, QUOIT_NETWORK_CONTACT_BYTES);
    quoit_proxy_process_say(agent->proxy_fd, &contact);
    agent->contact_count++;
}

/* So that the lowest PE knows this process, and that it does not hang. */
static void say_alive(int fd, pid_t pid)
{
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_PING};
    message.body.pid = (int32_t)pid;
    say(fd, &message, -1);
}

/* The PEs of all hosts have passed shmem_finalize: the lowest of this one, which waits for that, may return. */
static void let_leave(struct agent *agent)
{
    quoit_life_bind(&agent->life, true);
    atomic_fetch_add(&header_of(agent)->finalized_count, 1);
    quoit_step("agent", agent->host_index, "leave");
}

/* Those of this host have. */
static void note_finalized(struct agent *agent)
{
    quoit_step("agent", agent->host_index, "finalized");
    struct quoit_proxy_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_PROXY_FINALIZED};
    message.body.word.is.left = quoit_liveness_left(&agent->liveness);
    if (agent->proxy_fd >= 0)
        quoit_proxy_process_say(agent->proxy_fd, &message);
    else
        let_leave(agent);
    agent->is_finalized_told = true;
}

static bool take_message(struct agent *agent, struct connection *connection, const struct quoit_boot_message *message)
{
    bool is_lowest = connection->role == ROLE_CONTROL && connection->pe == 0;
    uint32_t pe = connection->role == ROLE_UNKNOWN ? local_of(agent, message->body.hello.pe) : agent->count;
    if (connection->role == ROLE_UNKNOWN && message->kind == QUOIT_BOOT_HELLO && pe < agent->count &&
        !agent->members[pe].has_hello) {
        take_hello(agent, connection, message);
    } else if (connection->role == ROLE_UNKNOWN && message->kind == QUOIT_BOOT_WATCH && pe < agent->count &&
               !agent->members[pe].is_watched) {
        take_watch(agent, connection, pe);
    } else if (connection->role == ROLE_CONTROL && message->kind == QUOIT_BOOT_READY && agent->has_layout &&
               !agent->members[connection->pe].is_ready) {
        agent->members[connection->pe].is_ready = true;
        agent->ready_count++;
        quoit_life_bind(&agent->life, false);
    } else if (connection->role == ROLE_CONTROL && message->kind == QUOIT_BOOT_CRASHED && agent->is_going) {
        finish_for(agent, connection->pe);
    } else if (connection->role == ROLE_WATCH && message->kind == QUOIT_BOOT_PING) {
        say_alive(connection->fd, getpid());
    } else if (is_lowest && message->kind == QUOIT_BOOT_CONTACT && agent->proxy_fd >= 0) {
        pass_contact(agent, message);
    } else if (is_lowest && message->kind == QUOIT_BOOT_FINALIZED && agent->is_going) {
        note_finalized(agent);
    } else {
        return false;
    }
    return true;
}

/* Receives from one connection. A process that sends an invalid message is dropped: it is not of this job. */
static void hear(struct agent *agent, uint32_t index)
{
    struct connection *connection = &agent->connections[index];
    struct quoit_boot_message message;
    ssize_t n = recv(connection->fd, &message, sizeof message, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n == (ssize_t)sizeof message && message.magic == QUOIT_BOOT_MAGIC && take_message(agent, connection, &message))
        return;
    struct connection lost = *connection;
    drop(agent, index);
    if (lost.role == ROLE_CONTROL)
        agent->members[lost.pe].control_fd = -1;
    /* A running program may close its CONTROL CHANNEL connection, but cannot close its WATCH connection. */
    if (lost.role == ROLE_WATCH || (lost.role == ROLE_CONTROL && !agent->is_going))
        pe_gone(agent, lost.pe);
}

static void accept_all(struct agent *agent)
{
    int fd;
    while (agent->connection_count < agent->connection_max &&
           (fd = accept4(agent->host.socket_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        if (quoit_abstract_is_own(fd))
            agent->connections[agent->connection_count++] = (struct connection){.fd = fd};
        else
            close(fd);
    }
}

static bool is_missing(const struct agent *agent, uint32_t pe)
{
    return !agent->members[pe].has_hello || !agent->members[pe].is_watched;
}

static bool have_all_come(const struct agent *agent)
{
    for (uint32_t pe = 0; pe < agent->count; pe++)
        if (is_missing(agent, pe))
            return false;
    return true;
}

/* Processors of all PEs together. The quota of a control group holds for all of them. */
static uint32_t core_count_of(const struct agent *agent)
{
    uint32_t count = 0;
    for (size_t i = 0; i < QUOIT_BOOT_CORES_MAX / 64; i++)
        count += (uint32_t)__builtin_popcountll(agent->cores[i]);
    if (count == 0 || (agent->has_quota && agent->core_count_max < count))
        count = agent->core_count_max;
    return count ? count : 1;
}

static void make_memory(struct agent *agent)
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
        finish(agent, 1, true);
    host->memory = mmap(NULL, host->layout.channels, PROT_READ | PROT_WRITE, MAP_SHARED, host->memory_fd, 0);
    if (host->memory == MAP_FAILED) {
        quoit_boot_say_unmapped(host, errno);
        finish(agent, 1, true);
    }
    header_of(agent)->machine = quoit_machine_of(&job, agent->host_index, is_one_machine, core_count_of(agent));
}

static void lay_out(struct agent *agent)
{
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_LAYOUT};
    message.body.layout.version = *quoit_version();
    make_memory(agent);
    message.body.layout.job = agent->host.layout.job;
    message.body.layout.host = agent->host_index;
    agent->has_layout = true;
    quoit_step("agent", agent->host_index, "layout");
    if (agent->hosts->count > 1 &&
        quoit_proxy_process_start(&agent->host, agent->hosts->tag, &agent->proxy_fd, &agent->proxy_pid) != QUOIT_OK)
        finish(agent, 1, true);
    agent->liveness.proxy = agent->proxy_pid;
    for (uint32_t pe = 0; pe < agent->count; pe++) {
        message.body.layout.pe = pe_of(agent, pe);
        say(agent->members[pe].control_fd, &message, agent->host.memory_fd);
    }
    close(agent->host.socket_fd); /* which releases the name */
    agent->host.socket_fd = -1;
    quoit_life_share_no_more(&agent->life.all);
}

static void let_go(struct agent *agent)
{
    const struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_GO};
    quoit_step("agent", agent->host_index, "go");
    agent->is_going = true;
    quoit_liveness_begin(&agent->liveness);
    agent->ready_count = 0;
    agent->is_ready_told = false;
    agent->is_finalized_told = false;
    for (uint32_t pe = 0; pe < agent->count; pe++) {
        agent->members[pe].is_ready = false;
        say(agent->members[pe].control_fd, &message, -1);
    }
}

/* Once: the proxy says when those of all hosts are. */
static void tell_ready(struct agent *agent)
{
    if (!agent->is_ready_told)
        quoit_proxy_process_tell(agent->proxy_fd, QUOIT_PROXY_READY);
    agent->is_ready_told = true;
}

static const char *name_of(const struct agent *agent, uint32_t host)
{
    return host < agent->hosts->count ? agent->hosts->list[host].name : "another host";
}

/* The proxies of all hosts tell theirs. */
static void lose(struct agent *agent, uint32_t host, bool is_launcher)
{
    if (host < agent->hosts->count)
        quoit_lost_note(&agent->lost, agent->host_index, host, is_launcher, quoit_clock_now_ns());
}

__attribute__((noreturn)) static void finish_lost(struct agent *agent)
{
    if (quoit_ended_claim(header_of(agent), 1))
        quoit_lost_report(&agent->lost, agent->hosts, &agent->host.layout.job);
    finish(agent, quoit_ended_decision(header_of(agent)), true);
}

/* It would pass on what this host prints, so nobody may see that; its PEs would be left without it for ever. */
__attribute__((noreturn)) static void lose_launcher(struct agent *agent)
{
    bool is_joined = agent->contact_count == agent->hosts->count; /* the proxies are, or are about to be */
    bool is_reported = agent->has_layout && !quoit_ended_claim(header_of(agent), 1);
    if (!is_reported && is_joined) {
        quoit_proxy_process_tell(agent->proxy_fd, QUOIT_PROXY_LAUNCHER_LOST);
        agent->is_end_told = true;
    } else if (!is_reported) {
        quoit_ended_line("the launcher's process on host %s ended before its PEs; the job was ended [Q0320]",
                         name_of(agent, agent->host_index));
    }
    finish(agent, agent->has_layout ? quoit_ended_decision(header_of(agent)) : 1, true); /* others report first */
}

__attribute__((noreturn)) static void lose_proxy(struct agent *agent, const char *how)
{
    agent->is_end_told = true; /* nobody hears it */
    if (quoit_ended_claim(header_of(agent), 1))
        quoit_ended_line("the proxy of host %s %s; the job was ended [Q0315]", name_of(agent, agent->host_index), how);
    finish(agent, quoit_ended_decision(header_of(agent)), true);
}

/* Another host has ended the job, and has said why. */
__attribute__((noreturn)) static void finish_as_told(struct agent *agent, int status)
{
    agent->is_end_told = true;
    (void)quoit_ended_claim(header_of(agent), status);
    atomic_store(&header_of(agent)->is_told, 1);
    finish(agent, quoit_ended_decision(header_of(agent)), false);
}

static void say_contact(struct agent *agent, const struct quoit_proxy_message *contact)
{
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_CONTACT};
    memcpy(message.body.contact.bytes, contact->body.contact.bytes, QUOIT_NETWORK_CONTACT_BYTES);
    agent->contacts_by_ns = 2 * counted_ns(agent) - agent->begin_ns + agent->host.network.link_timeout_ns;
    say(agent->members[0].control_fd, &message, -1);
}

/* All run, and the proxy has no READY or FINALIZED under way, which nothing may follow. */
static bool are_all_in_job(const struct agent *agent)
{
    return agent->is_going && !agent->is_ready_told && !agent->is_finalized_told;
}

static void conclude(struct agent *agent, enum quoit_liveness_verdict verdict)
{
    if (verdict == QUOIT_LIVENESS_LEFT)
        finish(agent, 1, true);
}

static void hear_proxy(struct agent *agent)
{
    struct quoit_proxy_message message;
    ssize_t n = recv(agent->proxy_fd, &message, sizeof message, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n != (ssize_t)sizeof message || message.magic != QUOIT_BOOT_MAGIC)
        lose_proxy(agent, "ended");
    switch (message.kind) {
    case QUOIT_PROXY_CONTACT:
        say_contact(agent, &message);
        break;
    case QUOIT_PROXY_GO:
        let_go(agent);
        break;
    case QUOIT_PROXY_FINALIZED:
        let_leave(agent);
        break;
    case QUOIT_PROXY_PING:
        agent->is_pinged = false;
        agent->ping_ns = counted_ns(agent);
        break;
    case QUOIT_PROXY_END:
        finish_as_told(agent, message.body.status);
    case QUOIT_PROXY_LOST:
    case QUOIT_PROXY_LAUNCHER_LOST:
        lose(agent, message.body.lost.host, message.kind == QUOIT_PROXY_LAUNCHER_LOST);
        break;
    case QUOIT_PROXY_SILENCE:
        if (!quoit_liveness_take_silence(&agent->liveness, &message) && are_all_in_job(agent))
            quoit_proxy_process_offer(agent->proxy_fd, &message);
        break;
    case QUOIT_PROXY_HOST_FINALIZED:
    case QUOIT_PROXY_ELSEWHERE: /* while FINALIZED is under way, too */
        if (agent->is_going)
            conclude(agent, quoit_liveness_take(&agent->liveness, agent->proxy_fd, &message));
        break;
    case QUOIT_PROXY_LEAVING:
    case QUOIT_PROXY_STILL:
    case QUOIT_PROXY_STILL_SEEN:
        if (are_all_in_job(agent))
            conclude(agent, quoit_liveness_take(&agent->liveness, agent->proxy_fd, &message));
        break;
    case QUOIT_PROXY_ABSENT:
        if (quoit_ended_claim(header_of(agent), 1))
            quoit_ended_report_absent("the PEs of host", name_of(agent, message.body.lost.host));
        finish(agent, quoit_ended_decision(header_of(agent)), true);
    default:
        break;
    }
}

/* All PEs have passed the launcher's first fence, and wait for each host's contact in the second, which no launcher
 * limits. Other hosts may take longer than this one by as much as it took, and by the limit. */
static void look_for_contacts(struct agent *agent, uint64_t now_ns)
{
    if (agent->contacts_by_ns == 0 || agent->contact_count >= agent->hosts->count || now_ns < agent->contacts_by_ns)
        return;
    if (quoit_ended_claim(header_of(agent), 1))
        quoit_ended_line("host %s has waited %.1f s for another host to join the network: it hangs, or needs a longer "
                         "QUOIT_LINK_TIMEOUT; the job was ended [Q0221]",
                         name_of(agent, agent->host_index), (double)(now_ns - agent->begin_ns) / 1e9);
    finish(agent, quoit_ended_decision(header_of(agent)), true);
}

/* A proxy that hangs serves nobody, and to the other hosts it looks like one that is stopped, for which they wait. Its
 * process is there as long as it keeps its socket. */
static void look_for_hang(struct agent *agent, uint64_t now_ns)
{
    uint64_t limit_ns = agent->host.network.network_limit_ns;
    struct quoit_process proxy;
    if (!are_all_in_job(agent)) {
        agent->ping_ns = now_ns;
    } else if (!agent->is_pinged && now_ns - agent->ping_ns >= limit_ns / PINGS) {
        quoit_proxy_process_tell(agent->proxy_fd, QUOIT_PROXY_PING);
        agent->is_pinged = true;
        agent->ping_ns = now_ns;
    } else if (agent->is_pinged && now_ns - agent->ping_ns > PATIENCE * limit_ns) {
        agent->ping_ns = now_ns;
        if (quoit_process_look(agent->proxy_pid, &proxy) && (proxy.state == 'T' || proxy.state == 't'))
            return; /* until it is continued */
        kill(agent->proxy_pid, SIGKILL);
        lose_proxy(agent, "hangs");
    }
}

/* The lowest PE says so, unless its program has closed the socket. Then the hosts must not wait until it ends. */
static void look_for_finalized(struct agent *agent)
{
    if (agent->proxy_fd < 0 || !agent->is_going || agent->is_finalized_told || agent->members[0].control_fd >= 0)
        return;
    for (uint32_t pe = 0; pe < agent->count; pe++) /* pairs with quoit_client_leave_word */
        if (atomic_load_explicit(&record_of(agent, pe)->unsent_kind, memory_order_acquire) != QUOIT_BOOT_FINALIZED)
            return;
    note_finalized(agent);
}

static void step(struct agent *agent)
{
    char number[16];
    if (!agent->has_layout && have_all_come(agent))
        lay_out(agent);
    if (agent->ready_count == agent->count && agent->proxy_fd >= 0)
        tell_ready(agent);
    else if (agent->ready_count == agent->count)
        let_go(agent);
    if (quoit_lost_is_due(&agent->lost, quoit_clock_now_ns()))
        finish_lost(agent);
    if (agent->proxy_fd >= 0) {
        look_for_contacts(agent, counted_ns(agent));
        look_for_hang(agent, counted_ns(agent));
    }
    look_for_finalized(agent);
    for (uint32_t pe = 0; pe < agent->count && agent->is_going && agent->ready_count > 0; pe++)
        if (agent->members[pe].is_gone && quoit_ended_claim(header_of(agent), 1)) {
            snprintf(number, sizeof number, "%u", pe_of(agent, pe));
            quoit_ended_report_absent("PE", number);
            finish(agent, 1, true);
        }
    if (agent->is_going)
        conclude(agent, quoit_liveness_step(&agent->liveness, agent->proxy_fd, quoit_clock_now_ns()));
    if (are_all_in_job(agent))
        conclude(agent, quoit_liveness_ask(&agent->liveness, agent->proxy_fd, quoit_clock_now_ns()));
}

/* A PE may end between the fence and its connection. */
static void find_missing(struct agent *agent)
{
    for (uint32_t pe = 0; pe < agent->count; pe++)
        if (is_missing(agent, pe) && agent->members[pe].process && quoit_process_has_ended(agent->members[pe].process))
            finish_start(agent, pe, "ended");
}

/* Who is awaited until all go: PEs that have passed the fence and do not connect; the proxy, until it has its address;
 * PEs that do not become ready. Their number is agent->count for the proxy. */
static void gather_awaited(struct agent *agent, struct quoit_awaited *awaited_out)
{
    bool waits_for_proxy = agent->has_layout && agent->proxy_fd >= 0 && agent->contacts_by_ns == 0;
    *awaited_out = (struct quoit_awaited){.view.is_idle = true};
    for (uint32_t pe = 0; pe < agent->count && !waits_for_proxy; pe++)
        if (agent->has_layout ? !agent->members[pe].is_ready : is_missing(agent, pe))
            quoit_awaited_look(awaited_out, pe, agent->members[pe].process, &agent->members[pe].busy_ns);
    if (waits_for_proxy)
        quoit_awaited_look(awaited_out, agent->count, agent->proxy_pid, &agent->proxy_busy_ns);
}

static void report_awaited(const struct agent *agent, const struct quoit_awaited *awaited, bool hangs)
{
    char who[160];
    bool is_proxy = awaited->number >= agent->count;
    const char *host = name_of(agent, agent->host_index);
    if (is_proxy)
        snprintf(who, sizeof who, "the proxy of host %.100s", host);
    else
        snprintf(who, sizeof who, "PE %u on %.100s", pe_of(agent, awaited->number), host);
    quoit_ended_report_awaited(awaited, who, is_proxy ? QUOIT_REPORT_LATE_PROXY : QUOIT_REPORT_LATE_PE,
                               quoit_clock_now_ns() - agent->await.since_ns, hangs);
}

/* Only Quoit's own code runs between the fence and GO, so who does nothing there hangs. */
static void look_at_awaited(struct agent *agent)
{
    struct quoit_awaited awaited;
    uint64_t now_ns = quoit_clock_now_ns(), next_ns, limit_ns = agent->host.network.link_timeout_ns;
    uint64_t key = 1 + agent->hello_count + agent->ready_count + agent->contact_count + agent->has_layout +
                   (agent->contacts_by_ns != 0);
    bool is_known = agent->contacts_by_ns == 0 || agent->contact_count == agent->hosts->count; /* else: Q0221 */
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
        finish(agent, 1, true);
}

static int tick_ms(const struct agent *agent)
{
    uint64_t ping_ms = agent->host.network.network_limit_ns / (2 * PINGS) / 1000000;
    if (agent->lost.is_known)
        return SOON_MS;
    if (agent->proxy_fd < 0 || ping_ms > TICK_MS)
        return TICK_MS;
    return ping_ms > SOON_MS ? (int)ping_ms : SOON_MS;
}

static int wait_for_events(struct agent *agent, nfds_t count)
{
    int limit_ms = tick_ms(agent);
    quoit_stopwatch_mark(&agent->watch, quoit_clock_now_ns(), 0); /* the work since the last time */
    int n = poll(agent->polls, count, limit_ms);
    quoit_stopwatch_mark(&agent->watch, quoit_clock_now_ns(), (uint64_t)limit_ms * 1000000);
    return n;
}

/* Until all processes have ended after their PEs had finalized; all other ends are finish(). */
static void run(struct agent *agent)
{
    while (!agent->is_going || watched_count(agent) > 0) {
        uint32_t count = agent->connection_count;
        for (uint32_t i = 0; i < count; i++)
            agent->polls[i] = (struct pollfd){.fd = agent->connections[i].fd, .events = POLLIN};
        agent->polls[count] = (struct pollfd){.fd = agent->host.socket_fd, .events = POLLIN};
        agent->polls[count + 1] = (struct pollfd){.fd = agent->proxy_fd, .events = POLLIN};
        agent->polls[count + 2] =
            (struct pollfd){.fd = agent->is_finalized_told ? -1 : agent->launcher_fd, .events = POLLIN};
        int n = wait_for_events(agent, count + 3);
        for (uint32_t i = count; i-- > 0 && n > 0;) /* backwards, because one that is dropped is replaced by the last */
            if (agent->polls[i].revents)
                hear(agent, i);
        if (n > 0 && agent->polls[count + 1].revents)
            hear_proxy(agent);
        if (n > 0 && agent->polls[count + 2].revents)
            lose_launcher(agent);
        if (n > 0 && agent->polls[count].revents)
            accept_all(agent);
        step(agent);
        if (!agent->has_layout && n == 0)
            find_missing(agent);
        look_at_awaited(agent);
    }
}

static struct agent *make_agent(const struct quoit_agent_start *start, const struct quoit_life *life)
{
    uint32_t count = start->hosts.list[start->host].pe_count;
    struct agent *agent = calloc(1, sizeof *agent);
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
    if (agent && quoit_silences_open(&agent->liveness.silences, start->hosts.count) != QUOIT_OK)
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
    agent->begin_ns = counted_ns(agent);
    agent->liveness.host = &agent->host;
    agent->liveness.hosts = &start->hosts;
    return agent;
}

/* To the PE that started it, from the process that forks. */
static void publish(pid_t agent)
{
    say_alive(QUOIT_PROGRAM_FD, agent);
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
    struct agent *agent = make_agent(start, &life);
    if (!agent) {
        quoit_say("no memory for the records of %u PEs [Q0312]", start->hosts.list[start->host].pe_count);
        return 1;
    }
    agent->host.socket_fd = listen_fd;
    agent->connections[0] = (struct connection){.fd = QUOIT_PROGRAM_FD};
    take_watch(agent, &agent->connections[0], 0);
    agent->connection_count = 1;
    run(agent);
    quoit_step("agent", start->host, "end");
    return 0;
}
