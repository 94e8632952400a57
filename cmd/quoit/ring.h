/* SPDX-License-Identifier: BSD-3-Clause */
/* ring.h - rings that stay: shared declarations of `quoit ring`.
 *
 * An emulated ring consists of a keeper process and one process per host. The keeper owns the links, which the Ethernet
 * devices and the jobs share (share/share.h), and answers requests on an abstract socket named after user and ring. A
 * host process runs in its own network namespace, with a ring service and the Ethernet device. Host processes die with
 * the keeper, and a guard ends what runs on hosts that died at the same time, so killing any process leaves nothing
 * behind; the keeper restarts a host that died, as a machine reboots.
 *
 * On a ring of bridges each machine has a keeper with one host, in the machine's own network namespace. The keeper
 * holds the two ports open. It has no shares to give, but tells every user of the machine how to run a job beside it.
 */
#ifndef QUOIT_RING_H
#define QUOIT_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "env/await.h"
#include "link/state.h"
#include "port/driver.h"
#include "ring/ring.h"
#include "share/head.h"
#include "share/share.h"
#include "veth/veth.h"

#define RING_HOSTS_MAX     64
#define RING_NAME_BYTES    32
#define RING_NAME_LETTERS  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
#define RING_ADDRESS_BYTES 16
#define RING_SILENCE_BYTES 512
#define RING_DEVICE        "quoit0"
#define RING_SOCKET        "quoit-ring" /* begins the name of a keeper's socket */
#define RING_ETHERNET      UINT32_MAX   /* the id of the devices' share */

struct ring_plan {
    char name[RING_NAME_BYTES];
    uint32_t host_count;
    uint32_t address; /* of the network, host byte order; host h has address + h + 1 */
    uint32_t prefix;
    uint32_t mtu;
    uint32_t has_offload;
    uint32_t queue_count;      /* of each device */
    uint64_t dma_bytes;        /* Ethernet frames of at least this size leave by DMA */
    uint32_t allows_all;       /* jobs of other users too */
    uint32_t jobs_per_user;    /* at a time; 0: not decided yet */
    uint32_t ethernet_percent; /* of the rate; 0: the part of one job */
    struct quoit_port_knobs knobs;
    uint32_t is_joined; /* a ring of bridges; then: */
    uint32_t host;      /* this machine's number */
    char devices[QUOIT_SIDE_COUNT][QUOIT_SHARE_DEVICE_BYTES];
};

/* The hosts of this machine: from begin, below end. */
static inline uint32_t ring_host_begin(const struct ring_plan *plan)
{
    return plan->is_joined ? plan->host : 0;
}
static inline uint32_t ring_host_end(const struct ring_plan *plan)
{
    return plan->is_joined ? plan->host + 1 : plan->host_count;
}

/* At the start of each host's memory. */
struct ring_memory {
    struct quoit_link_record links[QUOIT_SIDE_COUNT];
    struct quoit_park manager;
    _Atomic uint32_t is_ready;
};

/* The namespaces of a host, by which what runs there is found: of the network, and of the host's name, in which
 * containers of the host have stayed that have a network of their own. While they are open their inode numbers are not
 * reused. */
struct ring_place {
    int network_fd; /* -1: none */
    int name_fd;
};

struct ring_host {
    uint32_t index;
    void *memory;
    uint64_t veth_offset;
    uint64_t bytes;
    pid_t pid;        /* 0: not running */
    uint64_t busy_ns; /* its processor time at the last look, while the ring starts */
    uint32_t start_count;
    uint64_t restart_ns; /* when, if it is not running */
    int memory_fd;
    struct ring_place place; /* from when others may enter it */
};

struct ring {
    struct ring_plan plan;
    const struct quoit_port_driver *driver;
    int listen_fd;
    /* Of an emulated ring. */
    struct quoit_shared_ring *shared;
    struct quoit_share_server *server; /* for jobs; NULL until the hosts are up */
    const struct quoit_share *share;   /* of the Ethernet devices */
    pid_t guard;                       /* 0: none */
    bool is_guarded;                   /* by one that knows the namespaces of all hosts */
    /* Of a ring of bridges. */
    int bridge_fds[QUOIT_SIDE_COUNT];
    struct ring_host hosts[RING_HOSTS_MAX];
};

/* ring_host.c: the process of a host. */

/* Runs in a child that `keeper` forked, until the host or the keeper ends; returns the exit status. */
int ring_host_run(const struct ring *ring, const struct ring_host *host, pid_t keeper);
/* Creates the namespaces of an emulated host and enters them. False, with errno: refused by the kernel. */
bool ring_enter_namespaces(void);
/* The place of a process; false: it has none any more, or there are no descriptors. */
bool ring_open_place(pid_t pid, struct ring_place *place_out);
void ring_close_place(struct ring_place *place);
/* Kills the processes there, except this one, until none is left. */
void ring_kill_processes_in(const struct ring_place *place);
/* Redirects the standard streams to /dev/null. */
void ring_detach_output(void);
/* Describes one end of a host's link. */
enum quoit_status ring_describe_link(const struct ring *ring, uint32_t host, enum quoit_side side,
                                     struct quoit_port_endpoint *endpoint_out);

/* ring_bridge.c: opens the ports of this machine and creates its host's memory. False: an error was reported. */
bool ring_open_bridges(struct ring *ring);

/* ring_guard.c: starts a guard that knows the namespaces of now, in place of the one there is; is_guarded says whether.
 */
void ring_guard_renew(struct ring *ring);
void ring_guard_end(struct ring *ring);

/* Closes what a child of the keeper must not hold: others would take it for the keeper. But for the share `except`. */
void ring_close_in_child(struct ring *ring, const struct quoit_share *except);

/* ring_await.c: one process that is waited for. All zero at first. */
struct ring_await {
    struct quoit_await await;
    struct quoit_process process; /* at the last look */
};
#define RING_REPORT_NS 2000000000u
#define RING_HANG_NS   ((uint64_t)QUOIT_AWAIT_HANG_TIMES * RING_REPORT_NS)
/* A look, if one is due (env/await.h); *wait_ms_out: until the next one. key: other than 0, and differs with each
 * progress. */
enum quoit_await_verdict ring_await_look(struct ring_await *await, uint64_t key, pid_t pid, uint64_t hang_ns,
                                         int *wait_ms_out);
/* "still waiting for WHO", for how long, what it does, and the cure [Q0246]. */
void ring_await_describe(const struct ring_await *await, const char *who, pid_t pid, char text_out[RING_SILENCE_BYTES]);

/* What a keeper sends to the command that starts it. */
enum ring_start_kind {
    RING_IS_BORN = 1, /* this is its process */
    RING_GOES_ON,     /* its hosts start, which it supervises; about once a second */
    RING_IS_UP,       /* all hosts are up */
    RING_HAS_FAILED,  /* which was reported */
};
struct ring_start_word {
    uint32_t kind;
    int32_t pid;
};

/* ring_keeper.c: creates the ring, starts its hosts, and serves requests until one, or a signal, ends it. It ends, too,
 * if the other end of start_fd is closed before the ring is up; -1: stays in the foreground. Returns the exit status.
 */
int ring_keeper_run(const struct ring_plan *plan, int listen_fd, int start_fd);

/* ring_start.c: the keeper as a program, `quoit --ring-keeper`, which has nothing of the process that starts it. */
#define RING_KEEPER_OPTION "--ring-keeper"
/* Starts it, and waits until the ring is up. name_fd: a socket that is bound to the ring's name; it is closed here.
 * False: reported. */
bool ring_keeper_start(const struct ring_plan *plan, int name_fd);
/* That program. Returns the exit status. */
int ring_keeper_serve(void);

/* A request is a header alone, whose `bytes` is the size of the expected reply. DOWN is obeyed whichever build asks. */
#define RING_MAGIC           0x51520001u
#define RING_REQUEST_SECONDS 2 /* that the keeper waits for it */
enum ring_request_kind { RING_STATUS = 1, RING_DOWN, RING_START /* of the command to the new keeper */ };
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
/* Link i joins the right port of host i and the left port of the next host. Another build gets the header alone. */
struct ring_reply {
    struct quoit_share_head head;
    struct ring_plan plan;
    struct ring_host_status hosts[RING_HOSTS_MAX];
};

/* ring_ask.c: requests to the keeper of a ring of this user. `name` is the ring's; `given` is it as the user wrote it,
 * [USER:]NAME. */

/* Takes the identity of a ring's user, for good: user, groups, and the environment's HOME, USER and LOGNAME. Only root
 * can become another user. False: refused by the kernel. */
bool ring_become_user(uint32_t uid);
/* The socket's address. */
socklen_t ring_address(const char *name, struct sockaddr_un *address_out);
/* Who answers, or should. */
struct ring_answerer {
    pid_t keeper;            /* 0: none */
    struct ring_await await; /* how it was waited for */
};
/* False, with errno: no answer. EPROTO: the keeper is of another build, which reply->head describes if its magic is
 * RING_MAGIC. EAGAIN: it has been stopped for 2 s, or has slept for 5 s. ECONNREFUSED: there is none, or it has just
 * ended. */
bool ring_ask(const char *name, enum ring_request_kind kind, struct ring_reply *reply, struct ring_answerer *by_out);
/* Reports why ring_ask() was false, from errno and the reply. */
void ring_report_no_answer(const char *given, const struct ring_reply *reply, const struct ring_answerer *by);
/* Of a keeper that does not answer (EAGAIN): which process, what it does, and the cure. */
void ring_describe_silence(const char *given, const struct ring_answerer *by, char text_out[RING_SILENCE_BYTES]);
/* Ends the ring, by force if the keeper does not answer or does not understand. Returns the exit status. */
int ring_down(const char *name, const char *given);
/* The keeper's process, whether it answers or not; 0: no such ring. */
pid_t ring_keeper_pid(const char *name);

/* ring_status.c */

/* Of a host's device, as text. */
const char *ring_address_text(const struct ring_plan *plan, uint32_t host, char text_out[RING_ADDRESS_BYTES]);
void ring_print_status(const struct ring_reply *reply, bool is_json);
/* The rings of this user, one a line; for root also those of others, as USER:NAME. */
void ring_print_list(void);

/* ring_doctor.c: reports what is wrong with the machine or the ring, each with its remedy. 0: nothing. */
int ring_doctor(const char *name, const char *given);

#endif
