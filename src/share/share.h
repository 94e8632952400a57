/* SPDX-License-Identifier: BSD-3-Clause */
/* share.h - the links of an emulated ring, shared by clients that do not trust each other.
 *
 * What it is: the owner of a ring that outlives jobs. A client (a job, or the Ethernet devices) takes a share of the
 *   ring: memory on each host, and on each link a private link between the same two hosts, with its own windows,
 *   doorbells, scratchpads and epochs. A port opened on a share keeps the whole contract of port/port.h, so the ring
 *   service and the proxy (link/service.h, proxy/proxy.h) run on a share as on a ring of one job.
 *
 * Promises:
 *   - A cut of a ring's link takes that link down in every share; a mend brings it up again in every share.
 *   - A client cannot change the links, memory or doorbells of another share, whatever it does and whenever it dies.
 *   - No client receives a descriptor of another's share. Memory belongs to one share and is freed with it, never
 *     reused: a posted write that arrives late cannot reach another client.
 *   - With a rate, the shares that are sending on a link divide it: equally, or by weight and percentage
 *     (port/driver.h).
 *   - The owner reads no client's memory, and from the registers only what the driver validates.
 *
 * Across processes: the owner listens on a socket and identifies clients by kernel credentials. A client receives the
 *   descriptors of its share over a connection. Closing that connection ends the share, so a client that dies releases
 *   everything. The client holds the connection in one process, which ends the other users of the share.
 *
 * Threads: one thread at a time uses a ring and its server. Errors: SYSTEM with errno.
 */
#ifndef QUOIT_SHARE_SHARE_H
#define QUOIT_SHARE_SHARE_H

#include <sys/types.h>

#include "port/driver.h"

#define QUOIT_SHARES_MAX        QUOIT_PORT_SHARES_MAX
#define QUOIT_SHARE_HOSTS_MAX   64 /* of a shared ring: the descriptors of a share fit one message */
#define QUOIT_SHARE_LABEL_BYTES 32
#define QUOIT_SHARE_MEMORY_MAX  (UINT64_C(1) << 40) /* of a host: the owner can map that of both ends of a link */

/* Of a ring whose hosts are machines (quoit ring join): what a job needs to run on them. There are no shares. */
#define QUOIT_SHARE_DEVICE_BYTES 64
struct quoit_share_machines {
    uint32_t host;    /* this one */
    uint32_t address; /* of the Ethernet devices' network, host byte order; host h has address + h + 1 */
    char left[QUOIT_SHARE_DEVICE_BYTES], right[QUOIT_SHARE_DEVICE_BYTES]; /* ports here, which the ring itself uses */
};

struct quoit_share_config {
    char driver[QUOIT_SHARE_LABEL_BYTES];
    struct quoit_port_knobs knobs;
    uint32_t host_count;
    struct quoit_share_machines machines; /* zero where the driver's hosts are of one machine */
};

struct quoit_share_request {
    uint32_t id;                                  /* 0: the ring assigns one */
    char label[QUOIT_SHARE_LABEL_BYTES];          /* shown to users */
    uint64_t memory_bytes[QUOIT_SHARE_HOSTS_MAX]; /* of each host; 0: the client does not use that host */
    struct quoit_port_part part;                  /* of the rate; clients of a server cannot ask for a percentage */
};

/* Link i joins the right port of host i (side 0 of the link) and the left port of the next host. A descriptor is -1 for
 * a host without memory, and for a link with such a host at either end. */
struct quoit_share {
    struct quoit_share_config ring;
    uint32_t id;
    uint32_t index; /* of the share, below QUOIT_SHARES_MAX */
    struct quoit_port_part part;
    int wire_fds[QUOIT_SHARE_HOSTS_MAX];
    int link_fds[QUOIT_SHARE_HOSTS_MAX];
    int memory_fds[QUOIT_SHARE_HOSTS_MAX];
};

struct quoit_shared_ring; /* opaque */

/* UNSUPPORTED (logged): there is no such driver. INVALID (logged): host_count is not in 2 to QUOIT_SHARE_HOSTS_MAX. */
QUOIT_MUST_USE enum quoit_status quoit_shared_ring_open(const struct quoit_share_config *config,
                                                        struct quoit_shared_ring **ring_out);
/* Ends all shares. NULL is allowed. */
void quoit_shared_ring_close(struct quoit_shared_ring *ring);
/* The ring keeps ownership of the descriptors, which are valid until the share ends. UNSUPPORTED: the hosts are
 * machines. FULL: QUOIT_SHARES_MAX shares
 * exist, or one with this id. INVALID: no host has memory, or the part is out of bounds. SYSTEM: also if a host has
 * more than QUOIT_SHARE_MEMORY_MAX (EFBIG). */
QUOIT_MUST_USE enum quoit_status quoit_share_take(struct quoit_shared_ring *ring,
                                                  const struct quoit_share_request *request,
                                                  const struct quoit_share **share_out);
/* Cuts all links of the share for ever. The kernel frees its memory when the client's processes have closed theirs. */
void quoit_share_end(struct quoit_shared_ring *ring, const struct quoit_share *share);
/* Cuts a link of the ring, or mends it, for all shares. OUT_OF_RANGE: no such link. UNSUPPORTED: the driver cannot. */
QUOIT_MUST_USE enum quoit_status quoit_shared_ring_cut(struct quoit_shared_ring *ring, uint32_t link, bool is_cut);
/* *cut_links_out: one bit per link. */
void quoit_shared_ring_info(const struct quoit_shared_ring *ring, struct quoit_share_config *config_out,
                            uint64_t *cut_links_out);
/* After fork, in the child: closes the descriptors of all shares except one, so that the child does not keep their
 * memory alive. Cuts nothing. */
void quoit_shared_ring_close_in_child(struct quoit_shared_ring *ring, const struct quoit_share *except);

/* Describes one end of a share's link for quoit_port_open(): side 0 is the right port of host 0..H-1, 1 the left. The
 * endpoint refers to descriptors of `share`. */
QUOIT_MUST_USE enum quoit_status quoit_share_describe(const struct quoit_share *share, uint32_t host, uint32_t side,
                                                      struct quoit_port_endpoint *endpoint_out);

/* The owner's end of the socket */

struct quoit_share_server; /* opaque */

/* Listens for clients of `ring`. A path that begins with '@' is an abstract name, which disappears with its owner.
 * Without allows_all only the owner's user and root may connect. SYSTEM: also if the name is taken. */
QUOIT_MUST_USE enum quoit_status quoit_share_server_open(struct quoit_shared_ring *ring, const char *path,
                                                         bool allows_all, struct quoit_share_server **server_out);
/* Limits the shares that one user holds at a time (QUOIT_SHARES_MAX). */
void quoit_share_server_set_user_limit(struct quoit_share_server *server, uint32_t shares_per_user);
/* Enables quoit_share_get_namespaces(). process_of(arg, host) returns a process in the namespaces of that host, which
 * the owner has not reaped; 0: the host is not running. */
void quoit_share_server_set_processes(struct quoit_share_server *server, pid_t (*process_of)(void *arg, uint32_t host),
                                      void *arg);
/* Readable when step() has work. */
int quoit_share_server_fd(const struct quoit_share_server *server);
/* Handles pending connections and requests. Never waits for a client. */
void quoit_share_server_step(struct quoit_share_server *server);
/* Ends the shares of all clients. NULL is allowed. */
void quoit_share_server_close(struct quoit_share_server *server);
/* After fork, in the child: closes the connections without ending a share. */
void quoit_share_server_close_in_child(struct quoit_share_server *server);

/* The client's end. Each call waits for the owner, until that has been stopped or has done nothing for 5 s, or is too
 * busy for 60 s; TIMEOUT, which was reported (Q0245). Errors of all:
 * GONE: nobody listens on that name, or the listener is neither the user in the abstract name (without one: this user)
 * nor root. UNSUPPORTED: the ring serves only its own user. INVALID: the owner is of another build; both versions are
 * reported (Q0605). */

#define QUOIT_SHARE_PATH_BYTES 96

struct quoit_share_client {
    uint32_t id;
    uint32_t uid;
    uint32_t pid;
    char label[QUOIT_SHARE_LABEL_BYTES];
};
struct quoit_share_list {
    struct quoit_share_config ring;
    uint64_t cut_links; /* one bit per link */
    uint32_t client_count;
    struct quoit_share_client clients[QUOIT_SHARES_MAX];
};

/* Splits "[USER:]NAME", the user by name or number, without one this process' user. UINT32_MAX: no such user. */
uint32_t quoit_share_user(const char *text, const char **name_out);
/* The abstract socket name of a user's ring. */
void quoit_share_path(uint32_t uid, const char *name, char path_out[QUOIT_SHARE_PATH_BYTES]);
/* False: nobody listens on that name. Does not wait, and does not look at who it is. */
bool quoit_share_exists(const char *path);
QUOIT_MUST_USE enum quoit_status quoit_share_query(const char *path, struct quoit_share_list *list_out);
/* Takes a share; errors also as quoit_share_take(). OUT_OF_RANGE: this user holds as many as the limit. The caller owns
 * the descriptors and *connection_out; closing the connection ends the share. */
QUOIT_MUST_USE enum quoit_status quoit_share_attach(const char *path, const struct quoit_share_request *request,
                                                    struct quoit_share *share_out, int *connection_out);
/* Closes the descriptors that quoit_share_attach() returned. */
void quoit_share_close(struct quoit_share *share);
/* As quoit_shared_ring_cut(). UNSUPPORTED: also for anybody but the owner's user and root. */
QUOIT_MUST_USE enum quoit_status quoit_share_cut(const char *path, uint32_t link, bool is_cut);

/* The namespaces of a host, in which its programs run. */
enum quoit_share_namespace { QUOIT_SHARE_NS_USER, QUOIT_SHARE_NS_NET, QUOIT_SHARE_NS_UTS, QUOIT_SHARE_NS_COUNT };
struct quoit_share_namespaces {
    int fds[QUOIT_SHARE_NS_COUNT];
};

/* UNSUPPORTED: the caller is not the owner's user (the kernel would not let it in), hosts have no namespaces, or there
 * is no /proc. OUT_OF_RANGE: no such host. AGAIN: the host is not running. */
QUOIT_MUST_USE enum quoit_status quoit_share_get_namespaces(const char *path, uint32_t host,
                                                            struct quoit_share_namespaces *namespaces_out);
void quoit_share_close_namespaces(struct quoit_share_namespaces *namespaces);
/* Moves this single-threaded process into them. SYSTEM: refused by the kernel. */
QUOIT_MUST_USE enum quoit_status quoit_share_enter_namespaces(const struct quoit_share_namespaces *namespaces);
/* Call after enter_namespaces(): gives this process its own mounts, with the /sys of its network namespace, as
 * `ip netns exec` does. SYSTEM: refused by the kernel; /sys then still shows the devices of the former namespace. */
QUOIT_MUST_USE enum quoit_status quoit_share_mount_sysfs(void);

#endif
