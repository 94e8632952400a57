/* SPDX-License-Identifier: BSD-3-Clause */
/* agent_state.h - the agent of a host (agent.h), shared by its files: agent.c has its start and the PEs of the host,
 * agent_hosts.c the other hosts and the proxy, agent_end.c the end. A file calls only those behind it.
 *
 * Threads: one.
 */
#ifndef QUOIT_BOOT_AGENT_STATE_H
#define QUOIT_BOOT_AGENT_STATE_H

#include <poll.h>

#include "boot/agent.h"
#include "boot/board.h"
#include "boot/life.h"
#include "boot/liveness.h"
#include "boot/lost.h"
#include "boot/peers.h"
#include "env/await.h"
#include "env/clock.h"
#include "env/stopwatch.h"

#define QUOIT_AGENT_PINGS 4 /* of the proxy, in the limit of networks */

enum quoit_agent_role { QUOIT_AGENT_UNKNOWN, QUOIT_AGENT_CONTROL, QUOIT_AGENT_WATCH };

struct quoit_agent_connection {
    int fd;
    enum quoit_agent_role role;
    uint32_t pe;
};

struct quoit_agent_member {
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

struct quoit_agent {
    struct quoit_boot host; /* layout, and the memory as far as the records */
    const struct quoit_hosts *hosts;
    uint32_t host_index;
    int proxy_fd;    /* -1: one host, or not started */
    pid_t proxy_pid; /* a child, which is not waited for: the number stays its own */
    uint64_t proxy_busy_ns;
    bool is_pinged;         /* the proxy, which has not answered */
    uint64_t ping_ns;       /* when it was, or had answered; of the stopwatch */
    bool is_ready_sent;     /* to the head, */
    bool is_finalized_sent; /* and this, since the last GO */
    bool has_left;          /* the head has let the PEs leave, since the last GO */
    bool has_absent;        /* a host whose PEs have ended after shmem_finalize: */
    uint32_t absent_host;
    struct quoit_peers peers; /* of the head */
    bool is_end_sent;         /* to the other hosts, or by one */
    uint64_t contacts_by_ns;  /* of the stopwatch, when those of all hosts must be there; 0: the proxy has not
                               * given its own */
    struct quoit_board board; /* for the proxy */
    struct quoit_lost lost;
    int launcher_fd;                            /* a pidfd of its process on this host; -1: unknown */
    struct quoit_agent_member *members;         /* of this host, the lowest PE first, as all numbers of PEs here */
    struct quoit_agent_connection *connections; /* at most two per PE; no more are accepted */
    struct pollfd *polls;                       /* [connection_max + 3] */
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

static inline struct quoit_host_header *quoit_agent_header(const struct quoit_agent *agent)
{
    return agent->host.memory;
}

/* In which no stop of this process counts. */
static inline uint64_t quoit_agent_now_ns(const struct quoit_agent *agent)
{
    return quoit_stopwatch_read(&agent->watch, quoit_clock_now_ns());
}

static inline uint32_t quoit_agent_pe(const struct quoit_agent *agent, uint32_t local)
{
    return agent->has_layout ? agent->host.layout.first_pe + local : agent->members[local].rank;
}

static inline struct quoit_pe_shared *quoit_agent_record(const struct quoit_agent *agent, uint32_t pe)
{
    return quoit_memory_pe(&agent->host.layout, agent->host.memory, pe);
}

static inline const char *quoit_agent_host_name(const struct quoit_agent *agent, uint32_t host)
{
    return host < agent->hosts->count ? agent->hosts->list[host].name : "another host";
}

static inline bool quoit_agent_is_head(const struct quoit_agent *agent)
{
    return agent->host_index == 0;
}

/* agent_end.c */

/* A message to a PE, with a descriptor if it is not negative. A PE that has gone is noticed elsewhere. */
void quoit_agent_send(int fd, const struct quoit_boot_message *message, int with_fd);
void quoit_agent_drop(struct quoit_agent *agent, uint32_t index);
/* Connections that a PE's process holds open. */
uint32_t quoit_agent_watched_count(const struct quoit_agent *agent);
/* Ends all PEs. is_new: the reason has just been reported; another host that is notified asks the launcher at once. */
__attribute__((noreturn)) void quoit_agent_finish(struct quoit_agent *agent, int status, bool is_new);
/* Ends the job because of one PE, which has reported the reason itself if it could. */
__attribute__((noreturn)) void quoit_agent_finish_for(struct quoit_agent *agent, uint32_t pe);
__attribute__((noreturn)) void quoit_agent_finish_start(struct quoit_agent *agent, uint32_t pe, const char *how);
/* Who has ended is waited for in another shmem_init: "PE", "3". */
__attribute__((noreturn)) void quoit_agent_finish_absent(struct quoit_agent *agent, const char *kind, const char *name);

/* agent_hosts.c */

void quoit_agent_start_proxy(struct quoit_agent *agent);
/* CONTACT of the lowest PE, which reads them from the exchange. False: it is none that is due. */
bool quoit_agent_take_contact(struct quoit_agent *agent, const struct quoit_boot_message *message);
/* All PEs of this host are ready; have passed shmem_finalize. */
void quoit_agent_note_ready(struct quoit_agent *agent);
void quoit_agent_note_finalized(struct quoit_agent *agent);
/* A verdict of liveness.h. */
void quoit_agent_conclude(struct quoit_agent *agent, enum quoit_liveness_verdict verdict);
/* All run, and nothing is awaited of the head. */
bool quoit_agent_is_in_job(const struct quoit_agent *agent);
/* One message of the proxy. */
void quoit_agent_receive_of_proxy(struct quoit_agent *agent);
/* The launcher's process of this host has ended. */
__attribute__((noreturn)) void quoit_agent_lose_launcher(struct quoit_agent *agent);
/* Looks at the proxy, and at for what is late of the other hosts. */
void quoit_agent_step_hosts(struct quoit_agent *agent);

#endif
