/* SPDX-License-Identifier: BSD-3-Clause */
/* share.h - the links of an emulated ring, shared by clients that do not trust each other.
 *
 * What it is: the owner of a ring that outlives jobs. A client (a job; an Ethernet device) takes a share of the ring:
 *   memory on each host, and of each link a part that is a link of its own between the same two hosts, with its own
 *   windows, doorbells, scratchpads and epochs. A port opened on a share keeps the whole contract of port/port.h, so
 *   the client's ring service and proxy (link/service.h, proxy/proxy.h) work as on a ring that is theirs alone.
 *
 * Promises:
 *   - A share of a link is up only while the link is: a cut link is cut for all shares, and again whole for all.
 *   - What a client does, up to its death at any instant, changes no other share's link, memory or doorbell.
 *   - No descriptor of a share reaches another client. A range of memory never has a second owner: it ends with its
 *     share, so no write that is still posted for one client can arrive at another.
 *   - With a rate, shares of a link that have something to send get their parts of it: equal ones, or as their weights
 *     and percentages say (port/driver.h).
 *   - The owner believes nothing that a client may write: it reads no memory of clients, and of the registers only what
 *     the driver checks.
 *
 * Across processes: the owner listens on a socket; the kernel says whose process it is that attaches. A client attaches
 * over a connection and receives its descriptors; the end of the connection is the end of the share,
 * however it came. A client keeps the connection in one process, and ends what else uses the share.
 *
 * Threads: the functions of a ring belong to one thread at a time. Errors: SYSTEM with errno.
 */
#ifndef QUOIT_SHARE_SHARE_H
#define QUOIT_SHARE_SHARE_H

#include <sys/types.h>

#include "port/driver.h"

#define QUOIT_SHARES_MAX        QUOIT_PORT_SHARES_MAX
#define QUOIT_SHARE_HOSTS_MAX   64 /* of a shared ring: the descriptors of a share fit one message */
#define QUOIT_SHARE_LABEL_BYTES 32

/* What a ring is like, for all who share it. */
struct quoit_share_config {
    char driver[QUOIT_SHARE_LABEL_BYTES];
    struct quoit_port_knobs knobs;
    uint32_t host_count;
};

/* What a client asks for. */
struct quoit_share_request {
    uint32_t name;                                /* by which others know it; 0: the ring gives it one */
    char label[QUOIT_SHARE_LABEL_BYTES];          /* for people */
    uint64_t memory_bytes[QUOIT_SHARE_HOSTS_MAX]; /* of each host; 0: the client has no part of that host */
    struct quoit_port_part part;                  /* of the rate; only the owner's own shares have a percentage */
};

/* What it gets. Link i joins host i, at its right (side 0 of the link), and the next host. -1: of a host without
 * memory, and of a link with such a host at an end. */
struct quoit_share {
    struct quoit_share_config ring;
    uint32_t name;
    uint32_t index; /* of the share */
    struct quoit_port_part part;
    int wire_fds[QUOIT_SHARE_HOSTS_MAX];
    int link_fds[QUOIT_SHARE_HOSTS_MAX];
    int memory_fds[QUOIT_SHARE_HOSTS_MAX];
};

struct quoit_shared_ring; /* opaque */

/* UNSUPPORTED, with a line logged: the driver cannot make links. INVALID, likewise: host_count is not 2 to the most. */
QUOIT_MUST_USE enum quoit_status quoit_shared_ring_open(const struct quoit_share_config *config,
                                                        struct quoit_shared_ring **ring_out);
/* Ends all shares: to their clients all links are cut for ever. NULL is allowed. */
void quoit_shared_ring_close(struct quoit_shared_ring *ring);
/* The descriptors stay the ring's, valid until the share ends. FULL: there are as many shares as there may be, or one
 * of that name. INVALID: no host has memory, or the part is out of its bounds. */
QUOIT_MUST_USE enum quoit_status quoit_share_take(struct quoit_shared_ring *ring,
                                                  const struct quoit_share_request *request,
                                                  const struct quoit_share **share_out);
/* To the client all links are cut for ever; memory and links are freed when its processes have closed theirs. */
void quoit_share_end(struct quoit_shared_ring *ring, const struct quoit_share *share);
/* Cuts a link of the ring, for all shares, or makes it whole again. OUT_OF_RANGE: there is no such link. UNSUPPORTED:
 * the driver cannot. */
QUOIT_MUST_USE enum quoit_status quoit_shared_ring_cut(struct quoit_shared_ring *ring, uint32_t link, bool is_cut);

/* In a child process of the owner: closes what belongs to all shares but that one, so that their memory is freed
 * without it. Nothing is cut. */
void quoit_shared_ring_forget(struct quoit_shared_ring *ring, const struct quoit_share *except);
/* What the ring is like, and a bit for each link that is cut. */
void quoit_shared_ring_look(const struct quoit_shared_ring *ring, struct quoit_share_config *config_out,
                            uint64_t *cut_links_out);

/* Describes an end of a share's link for quoit_port_open(): host 0..H-1, side 0: its right, 1: its left. The endpoint
 * holds descriptors of `share`. */
QUOIT_MUST_USE enum quoit_status quoit_share_describe(const struct quoit_share *share, uint32_t host, uint32_t side,
                                                      struct quoit_port_endpoint *endpoint_out);

/* Across processes. */

struct quoit_share_server; /* opaque */

struct quoit_share_client {
    uint32_t name;
    uint32_t uid;
    uint32_t pid;
    char label[QUOIT_SHARE_LABEL_BYTES];
};
struct quoit_share_list {
    struct quoit_share_config ring;
    uint64_t cut_links; /* a bit for each */
    uint32_t client_count;
    struct quoit_share_client clients[QUOIT_SHARES_MAX];
};

/* Listens for clients of `ring`. A path that begins with '@' is an abstract name, which disappears with its owner.
 * `others`: users besides the owner's and root may attach. SYSTEM: also if the name is taken. */
QUOIT_MUST_USE enum quoit_status quoit_share_server_open(struct quoit_shared_ring *ring, const char *path, bool others,
                                                         struct quoit_share_server **server_out);
/* How many shares each user may have at once; without it, as many as there are. */
void quoit_share_server_limit(struct quoit_share_server *server, uint32_t shares_of_user);
/* Ends the shares of all clients. NULL is allowed. */
void quoit_share_server_close(struct quoit_share_server *server);
/* Can be read when there is something to do. */
int quoit_share_server_fd(const struct quoit_share_server *server);
/* Does what there is to do. No client can make it wait. */
void quoit_share_server_step(struct quoit_share_server *server);
/* In a child process of the owner: closes the connections and ends nothing. */
void quoit_share_server_forget(struct quoit_share_server *server);

/* Where programs of a host run: its namespaces, which the owner of the ring opens by a process that is there. */
enum quoit_share_namespace {
    QUOIT_SHARE_USERS,
    QUOIT_SHARE_NETWORK,
    QUOIT_SHARE_HOST_NAME,
    QUOIT_SHARE_NAMESPACE_COUNT
};
struct quoit_share_place {
    int fds[QUOIT_SHARE_NAMESPACE_COUNT];
};
/* process_of(arg, host): a process of that host, which the owner has not reaped; 0: the host does not run. */
void quoit_share_server_places(struct quoit_share_server *server, pid_t (*process_of)(void *arg, uint32_t host),
                               void *arg);

#define QUOIT_SHARE_PATH_BYTES 96
/* Where the ring of that name of a user listens: an abstract name, which holds the user. */
void quoit_share_path(uint32_t uid, const char *ring, char path_out[QUOIT_SHARE_PATH_BYTES]);
/* Of a client; each may wait for the owner for up to a second: TIMEOUT. GONE: nobody listens there, or not any more; or
 * the owner is not the user whom an abstract name holds (without one: this user), nor root.
 * INVALID, with a line said that has both versions (Q0605): the owner is of another build. */
QUOIT_MUST_USE enum quoit_status quoit_share_ask(const char *path, struct quoit_share_list *list_out);
/* Takes a share, with the errors of quoit_share_take(); OUT_OF_RANGE: this user has as many as a user may. The caller
 * owns the descriptors and *connection_out: closing that ends the share. */
QUOIT_MUST_USE enum quoit_status quoit_share_attach(const char *path, const struct quoit_share_request *request,
                                                    struct quoit_share *share_out, int *connection_out);
/* Closes the descriptors of a share that came by quoit_share_attach(). */
void quoit_share_close(struct quoit_share *share);
/* As quoit_shared_ring_cut(); UNSUPPORTED also for a user who is not the owner of the ring. */
QUOIT_MUST_USE enum quoit_status quoit_share_cut(const char *path, uint32_t link, bool is_cut);
/* The namespaces of a host. UNSUPPORTED: a user who is not the owner of the ring, whom the kernel would not let in
 * either; or the ring's hosts have none. OUT_OF_RANGE: there is no such host. AGAIN: it does not run. */
QUOIT_MUST_USE enum quoit_status quoit_share_find_place(const char *path, uint32_t host,
                                                        struct quoit_share_place *place_out);
/* Moves this process, which has one thread, there. SYSTEM, with errno: the kernel refuses. */
QUOIT_MUST_USE enum quoit_status quoit_share_enter_place(const struct quoit_share_place *place);
/* After that: gives this process, which has one thread, mounts of its own with a /sys of its network, as ip netns exec
 * does. SYSTEM, with errno: the kernel refuses, and /sys shows the devices of where it came from. */
QUOIT_MUST_USE enum quoit_status quoit_share_renew_sysfs(void);
void quoit_share_close_place(struct quoit_share_place *place);

#endif
