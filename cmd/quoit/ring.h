/* SPDX-License-Identifier: BSD-3-Clause */
/* ring.h - rings that stay: what the parts of `quoit ring` share.
 *
 * An emulated ring is a keeper process, which owns the links, shared by the Ethernet devices and jobs (share/share.h),
 * and answers requests on an abstract socket named after the user and the ring, and a process for each host in a
 * network namespace of its own: ring service and Ethernet device. Each host dies with the keeper, so nothing is left
 * behind whichever process is killed; a host that dies is started again, as a machine that boots. On a ring of bridges
 * each machine has a keeper with one host, which lives in the machine's own network namespace: the links are the cables
 * of its two ports, which the keeper holds open, and no job has a share of them.
 */
#ifndef QUOIT_RING_H
#define QUOIT_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "link/state.h"
#include "port/driver.h"
#include "ring/ring.h"
#include "share/head.h"
#include "share/share.h"
#include "veth/veth.h"

#define RING_HOSTS_MAX    64
#define RING_NAME_BYTES   32
#define RING_DEVICE_BYTES 64
#define RING_DEVICE       "quoit0"
#define RING_ETHERNET     UINT32_MAX /* the name of its share */

struct ring_plan {
    char name[RING_NAME_BYTES];
    uint32_t host_count;
    uint32_t address; /* of the network, host byte order; host h has address + h + 1 */
    uint32_t prefix;
    uint32_t mtu;
    uint32_t has_offload;
    uint32_t queue_count;      /* of each device */
    uint64_t dma_bytes;        /* from which on Ethernet frames go by DMA */
    uint32_t serves_others;    /* jobs of other users too */
    uint32_t jobs_of_user;     /* at once; 0 before `up` */
    uint32_t ethernet_percent; /* of the rate; 0: as one job */
    struct quoit_port_knobs knobs;
    uint32_t is_joined; /* a ring of bridges, of which this machine is one host */
    uint32_t host;      /* of it: this one, and its ports */
    char devices[QUOIT_SIDE_COUNT][RING_DEVICE_BYTES];
};

/* The hosts on this machine. */
static inline uint32_t ring_first(const struct ring_plan *plan)
{
    return plan->is_joined ? plan->host : 0;
}
static inline uint32_t ring_end(const struct ring_plan *plan)
{
    return plan->is_joined ? plan->host + 1 : plan->host_count;
}

/* At the start of each host's memory. */
struct ring_memory {
    struct quoit_link_record links[QUOIT_SIDE_COUNT];
    struct quoit_park manager;
    _Atomic uint32_t is_ready;
};

struct ring_host {
    uint32_t index;
    void *memory;
    uint64_t veth_offset;
    uint64_t bytes;
    pid_t pid; /* 0: not running */
    uint32_t start_count;
    uint64_t start_ns; /* when it is to be started again */
    int memory_fd;
    int network_fd; /* its namespace, once something may have entered it; -1 before */
};

struct ring {
    struct ring_plan plan;
    const struct quoit_port_driver *driver;
    struct quoit_shared_ring *shared;  /* this and the next two are of emulated rings */
    struct quoit_share_server *server; /* of jobs; NULL: not yet */
    const struct quoit_share *share;   /* of the Ethernet device */
    int bridge_fds[QUOIT_SIDE_COUNT];  /* of a ring of bridges */
    struct ring_host hosts[RING_HOSTS_MAX];
};

/* ring_host.c: the process of a host, from fork to its end; returns the exit status. */
int ring_host_run(const struct ring *ring, const struct ring_host *host);
/* Makes the namespaces of an emulated host and enters them; false, with errno: the kernel refuses. */
bool ring_enter_namespaces(void);
/* Kills the processes in that network namespace but this one. */
void ring_end_guests(int network_fd);
/* Leaves the terminal, or the pipes, of the command that made the ring. */
void ring_detach(void);
/* The ends of a host's links. */
enum quoit_status ring_describe(const struct ring *ring, uint32_t host, enum quoit_side side,
                                struct quoit_port_endpoint *endpoint_out);

/* ring_bridge.c: opens the ports of this machine and makes its host's memory; false: it was said why not. */
bool ring_open_bridges(struct ring *ring);

/* ring_keeper.c: makes the ring, starts its hosts, and answers until it is asked to end. Writes 'r' to ready_fd once
 * all hosts are up, or closes it; -1: it stays in the foreground. Returns the exit status. */
int ring_keep(const struct ring_plan *plan, int listen_fd, int ready_fd);

/* A request is a head alone, whose `bytes` are those of the reply. DOWN is obeyed whichever build asks. */
#define RING_MAGIC 0x51520001u
enum ring_request_kind { RING_STATUS = 1, RING_DOWN };
struct ring_host_status {
    int32_t pid; /* 0: not running */
    uint32_t start_count;
    uint32_t is_ready;
    uint32_t link_states[QUOIT_SIDE_COUNT];
    uint32_t outage_counts[QUOIT_SIDE_COUNT];
    uint32_t peer_hosts[QUOIT_SIDE_COUNT]; /* as in struct quoit_link_record */
    uint32_t peer_sides[QUOIT_SIDE_COUNT];
    struct quoit_veth_stats stats;
};
/* Link i joins host i, at its right, to host i + 1. */
struct ring_reply {
    struct quoit_share_head head; /* to another build this alone */
    struct ring_plan plan;
    struct ring_host_status hosts[RING_HOSTS_MAX];
};

/* ring.c: asks the keeper of this user's ring; false, with errno: it does not answer; EPROTO: it is of another build,
 * which reply->head says, if its magic is RING_MAGIC. */
bool ring_ask(const char *name, enum ring_request_kind kind, struct ring_reply *reply);
/* Says why ring_ask() was false, which left errno and the reply. */
void ring_say_silent(const char *name, const struct ring_reply *reply);
/* The process that keeps the ring, whether it answers or not; 0: there is none. */
pid_t ring_keeper_of(const char *name);
/* ring_doctor.c: says what is wrong with this machine or the ring, and the remedy; 0: nothing is. */
int ring_doctor(const char *name);

#endif
