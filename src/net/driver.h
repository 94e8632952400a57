/* SPDX-License-Identifier: BSD-3-Clause */
/* driver.h - what a network driver provides to net.c.
 *
 * What it is: a driver is a shared object, lib/quoit/libquoit-net-NAME.so, that exports one struct quoit_net_driver as
 * quoit_net_driver_NAME; it is built where the headers of its library are found, and opened with dlopen(3) where it is
 * present and its library too. That for TCP needs no library and is linked in. A driver moves bytes. What all networks
 * need beside is net.c's: heartbeats, lost hosts, the bounds of windows, counting, the check of who sent a message, and
 * the order of messages.
 *
 * The wrapper has checked the arguments: bounds, hosts, limits; a lost host is not used again. The driver asserts, logs
 * nothing, and says what the library refused in `problem`.
 *
 * Threads: one at a time for one end. Several ends may exist in a process.
 */
#ifndef QUOIT_NET_DRIVER_H
#define QUOIT_NET_DRIVER_H

#include <signal.h>

#include "net/net.h"

#define QUOIT_NET_DRIVER_VERSION 11 /* of this header; others are refused */

/* A message may be reported before others of its host that were sent earlier, as long as it is less than so many ahead
 * of the first of them. */
#define QUOIT_NET_HELD_MAX 64u

/* What the driver reports, from within progress or abandon. */
struct quoit_net_events {
    void *arg;
    void (*done)(void *arg, uint32_t host, uint64_t cookie, enum quoit_status status, uint64_t bytes);
    void (*message)(void *arg, const void *message, uint32_t bytes); /* 8-byte aligned */
    void (*broken)(void *arg, uint32_t host);                        /* an operation to it failed */
    /* The packets of the connections that follow carry at most so many bytes, since those to the host that carried
     * lost_bytes get lost; 0: the host has said so. */
    void (*narrowed)(void *arg, uint32_t host, uint32_t bytes, uint32_t lost_bytes);
};

/* For an end that closes: nothing is reported any more. */
extern const struct quoit_net_events quoit_net_no_events;

struct quoit_net_driver_config {
    const char *provider; /* NULL: the best */
    const char *device;   /* a list that is right, as in net/devices.h; NULL: the best */
    struct quoit_ports ports;
    uint32_t skip_count; /* so many of the best are passed over; UNSUPPORTED: there are no more */
    uint32_t host;       /* of this end; of a PE endpoint, whose number follows those of the hosts, too */
    uint32_t host_count;
    uint32_t pe_endpoint_count; /* where takes_pe_endpoints: they are hosts host_count and on */
    bool is_pe_endpoint;        /* it has few messages under way */
    uint32_t segment_bytes;     /* as of net.h */
    struct quoit_net_events events;
};

/* One end; the driver's state begins with it. */
struct quoit_net_end {
    struct quoit_net_limits limits;
    struct quoit_net_choice choice;
    struct quoit_net_address address;
    struct quoit_net_places places; /* of a driver that settles: where it can be called, the first as in address */
};

/* A put or get. */
struct quoit_net_transfer {
    uint32_t host;
    void *window;    /* of attach */
    uint64_t offset; /* in it */
    void *local;
    void *region; /* of reg; NULL: none */
    uint64_t bytes;
    uint64_t cookie;
};

/* All are required, but settle, explain and sign_age_ns. */
struct quoit_net_driver {
    uint32_t version; /* QUOIT_NET_DRIVER_VERSION */
    const char *name;
    const char *library; /* "libfabric 1.17" */
    /* What there is; the first usable one is the best, which open takes. */
    uint32_t (*survey)(const char *provider, const char *device, struct quoit_net_choice *choices_out,
                       uint32_t max_count);
    enum quoit_status (*open)(const struct quoit_net_driver_config *config, struct quoit_net_end **end_out,
                              char problem[QUOIT_NET_PROBLEM_BYTES]);
    /* Before the first connect: the end is called at that one of its places from now on, and others at the `at` of
     * their addresses. NULL: the end has one place, and the bytes of its address name it. */
    void (*settle)(struct quoit_net_end *end, uint32_t place);
    /* Before a host is abandoned: why it is not reached. text_out stays "", if that is not known. NULL: it never is. */
    void (*explain)(const struct quoit_net_end *end, uint32_t host, char text_out[QUOIT_NET_PROBLEM_BYTES]);
    /* The region and windows are released before. */
    void (*close)(struct quoit_net_end *end);
    /* Once for a host. For a PE endpoint from within progress, and again when it was abandoned: another one has come.
     */
    enum quoit_status (*connect)(struct quoit_net_end *end, uint32_t host, const struct quoit_net_address *address);
    enum quoit_status (*reg)(struct quoit_net_end *end, void *memory, uint64_t bytes, struct quoit_net_key *key_out,
                             void **region_out);
    void (*unreg)(struct quoit_net_end *end, void *region);
    enum quoit_status (*attach)(struct quoit_net_end *end, uint32_t host, const struct quoit_net_key *key,
                                void **window_out);
    void (*detach)(struct quoit_net_end *end, void *window);
    /* OK; FULL; or GONE, when the library refuses the host. */
    enum quoit_status (*put)(struct quoit_net_end *end, const struct quoit_net_transfer *transfer);
    enum quoit_status (*get)(struct quoit_net_end *end, const struct quoit_net_transfer *transfer);
    /* A free buffer for a message, 8-byte aligned; NULL: none. It is the wrapper's until the next send, which sends it
     * or leaves it free. */
    void *(*send_buffer)(struct quoit_net_end *end);
    enum quoit_status (*send)(struct quoit_net_end *end, uint32_t host, void *buffer, uint32_t bytes);
    uint32_t (*progress)(struct quoit_net_end *end);
    /* Reports what is outstanding to a lost host or PE endpoint as done with GONE, and keeps no messages for it. */
    void (*abandon)(struct quoit_net_end *end, uint32_t host);
    /* How long ago the host's machine gave a sign, such as to acknowledge what it was sent, whether or not the host
     * takes it; 0 too if it has acknowledged everything. UINT64_MAX: it never has. NULL: not known. */
    uint64_t (*sign_age_ns)(const struct quoit_net_end *end, uint32_t host);
    int (*wait_fd)(const struct quoit_net_end *end);
    bool (*arm)(struct quoit_net_end *end);
};

extern const struct quoit_net_driver quoit_net_driver_tcp;
/* plugins.c. Opens the driver's shared object, once per process. NULL: `problem` says why. */
const struct quoit_net_driver *quoit_net_driver_open(const char *name, char problem[QUOIT_NET_PROBLEM_BYTES]);
/* The dispositions of signals, round calls of a library that may change them. */
#define QUOIT_NET_SIGNAL_COUNT 7
struct quoit_net_signals {
    struct sigaction actions[QUOIT_NET_SIGNAL_COUNT];
};
void quoit_net_keep_signals(struct quoit_net_signals *signals_out);
void quoit_net_restore_signals(const struct quoit_net_signals *signals);
/* The index-th known name, in order of preference on this machine; NULL: there are no more. */
const char *quoit_net_driver_name(uint32_t index);
/* Those that a config's driver stands for: itself, or for "auto" all of them. Returns the count. */
#define QUOIT_NET_DRIVER_NAMES 8
uint32_t quoit_net_driver_names(const char *driver, const char *names_out[QUOIT_NET_DRIVER_NAMES]);
/* Whether the kernel has an adapter of a fabric, by the folder of its classes of devices, "/sys/class". path_out: one.
 */
#define QUOIT_NET_CLASSES "/sys/class"
bool quoit_net_find_adapter(const char *classes, char path_out[QUOIT_NET_PROBLEM_BYTES]);

#endif
