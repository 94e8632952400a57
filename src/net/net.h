/* SPDX-License-Identifier: BSD-3-Clause */
/* net.h - one host's end of an ordinary network: Ethernet, InfiniBand, Slingshot.
 *
 * What it is: the hosts of a job, joined by TCP or an existing library (libfabric, UCX) behind a driver (net/driver.h),
 * which is chosen at run time. A host has one end, however many PEs it has. The caller exchanges what the ends need of
 * each other, addresses and keys of memory, as opaque bytes.
 *
 * Operations: put, get and send only begin; on_done reports puts and gets in any order, with their cookie, from within
 * quoit_net_progress(). A put is done when its bytes are in the other host's memory, a get when they are here. A
 * message is copied by the call and reported by on_message at the other host, once.
 * Order: messages from one host to another arrive in the order of their sends. Puts and gets have no order, neither
 * among them nor against messages; but what is done is in memory before a message that is sent afterwards arrives.
 * Progress: the network moves only while both hosts call quoit_net_progress(), unless limits say is_rdma.
 *
 * Loopback: a host's end may connect to itself. What it sends, puts and gets then goes through the library as to any
 * other host. Nobody watches it: such an end is lost by its connection alone.
 *
 * PE endpoints: an end of a process beside the one that owns the host's end. It puts and gets, and sends no heartbeats;
 * it loses a host only when its connection breaks. Where limits say takes_pe_endpoints, a PE endpoint also sends
 * messages to hosts that allow it (pe_endpoint_count), and they to it: there PE endpoint G is host host_count + G, from
 * its first message on. It is lost there when its connection breaks, if the network tells so, when a message to it
 * fails, or another PE endpoint of its number comes. Where they say knows_pe_endpoints, its puts and gets too need a
 * host that allows it. What needs that is FULL until the host knows the PE endpoint.
 *
 * Silent hosts: every end sends heartbeats from within progress, to all others while there are few, else to some, so
 * that each host is watched by several. A host to which puts or gets are outstanding, or that is awaited, is asked for
 * a word as often. One of which nothing has come for quoit_net_notice_ns() is silent, as on_silence reports: its
 * process is stopped, the machine is busy or suspended, or a cable is out. It is waited for. Where the driver knows,
 * a silent host whose machine acknowledges what it is sent has only no processor, however long that takes; but of one
 * that has never spoken, which may be of another job, that counts for five times start_limit_ns.
 *
 * Lost hosts: a host whose connection broke is lost, for good; so is one that is silent, and whose machine acknowledges
 * nothing either, for lost_limit_ns, or, until it has first spoken, for start_limit_ns; and one that another end has
 * lost. on_lost names it once, what was outstanding to it is done with GONE, and every later operation to it returns
 * GONE. The driver may still read or write the memory of such an operation until the end is closed. A host that leaves
 * says so, and is not lost.
 *
 * Trust: messages of another job, by its tag, are dropped. The bytes of a connection are the library's to check.
 *
 * Threads: one at a time. Callbacks may start operations, but must not call progress, flush, leave or close.
 * Errors: FULL: nothing was done; call progress and try again. GONE: the host is lost or has left. OUT_OF_RANGE: beyond
 * the limits or the window. SYSTEM: the library refused; `problem` says what, where there is one.
 */
#ifndef QUOIT_NET_NET_H
#define QUOIT_NET_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "net/places.h"
#include "net/ports.h"

#define QUOIT_NET_ADDRESS_BYTES_MAX 256
#define QUOIT_NET_KEY_BYTES_MAX     256
#define QUOIT_NET_NAME_BYTES        48
#define QUOIT_NET_PROBLEM_BYTES     256
#define QUOIT_NET_HOSTS_MAX         4096
#define QUOIT_NET_ALL_HOSTS         UINT32_MAX
/* A TCP connection that has transmitted in vain for as long as a cable was out tries again when it was so once more. So
 * an outage of 20 s may last 40. */
#define QUOIT_NET_LOST_LIMIT_NS 60000000000u
#define QUOIT_NET_NOTICE_NS     2000000000u
/* Puts and gets to a host take turns with its heartbeats: no more of them are under way than a slow network (100
 * Mbit/s) carries before a host is silent. */
#define QUOIT_NET_WINDOW_BYTES (16u << 20)
/* Nor so many that a host that answers no more takes all of a driver's entries from the others. */
#define QUOIT_NET_TRANSFERS_MAX 256u

struct quoit_net;
struct quoit_net_region; /* memory of this host, registered */
struct quoit_net_window; /* memory that another host has registered */

struct quoit_net_address {
    uint32_t bytes;
    unsigned char data[QUOIT_NET_ADDRESS_BYTES_MAX];
    struct quoit_wire_address at; /* where the end is called, if the driver leaves that open; else of no family */
};

/* Names registered memory to other hosts. */
struct quoit_net_key {
    uint64_t memory_bytes;
    uint32_t bytes;
    unsigned char data[QUOIT_NET_KEY_BYTES_MAX];
};

struct quoit_net_limits {
    uint32_t message_bytes;  /* of a message, at most */
    uint32_t inline_bytes;   /* the source of a put of so many bytes may change as soon as the call returns */
    uint32_t alignment;      /* of offsets and sizes of puts and gets; 1: none */
    uint64_t transfer_bytes; /* of a put or get, at most */
    uint64_t opening_ns;     /* about what a process takes to load the library and to open an end */
    bool needs_region;       /* a put or get must name the region of its local memory */
    bool orders_puts;        /* puts to a host take effect in order */
    bool is_rdma;            /* puts and gets need no progress at the other host */
    bool takes_pe_endpoints; /* PE endpoints and hosts may send messages to each other */
    bool knows_pe_endpoints; /* hosts serve puts and gets of those PE endpoints alone that they take */
};

/* What carries the traffic. */
struct quoit_net_choice {
    char driver[QUOIT_NET_NAME_BYTES];
    char provider[QUOIT_NET_NAME_BYTES];  /* what the library calls it: "tcp;ofi_rxm" */
    char device[QUOIT_NET_NAME_BYTES];    /* "eth0", "mlx5_0" */
    char reason[QUOIT_NET_PROBLEM_BYTES]; /* why this one, or why not */
    bool is_usable;
    bool is_loopback; /* it reaches this machine alone */
};

/* Of a host, at one end. */
enum quoit_net_silence {
    QUOIT_NET_PRESENT,
    QUOIT_NET_ANSWERED, /* silent; its machine acknowledges what it is sent */
    QUOIT_NET_DARK,     /* silent, and so is its machine, as far as the driver knows */
};

struct quoit_net_config {
    const char *driver;   /* "tcp", "ofi", "ucx"; NULL or "auto": the first that works, see quoit_net_explain_auto() */
    const char *provider; /* NULL: the driver's choice */
    const char *device;   /* a list as in net/devices.h; NULL: the driver's choice */
    const char *ports;    /* at which the process listens, as in net/ports.h; NULL: any */
    bool is_pe_endpoint;  /* on_left is not used */
    uint32_t host;        /* a PE endpoint: where it runs */
    uint32_t host_count;
    uint32_t pe_endpoint;       /* a PE endpoint: its number */
    uint32_t pe_endpoint_count; /* a host's end: PE endpoints of lower numbers may send messages to it */
    uint32_t segment_bytes;     /* that a packet of TCP carries at most, as on_narrowed has it; 0: no limit is known */
    uint64_t tag;               /* of the job: ends with another tag are unauthenticated peers */
    uint64_t lost_limit_ns;     /* 0: QUOIT_NET_LOST_LIMIT_NS */
    uint64_t start_limit_ns;    /* for the others to connect too; less than lost_limit_ns: that */
    /* What others may put to and get from; it stays mapped until the end is closed. A network that does not register it
     * is passed over, but never for the loopback device. NULL: nothing. */
    void *memory;
    uint64_t memory_bytes;
    void (*on_done)(void *arg, uint32_t host, uint64_t cookie, enum quoit_status status);
    /* The payload is 8-byte aligned, and valid during the call. */
    void (*on_message)(void *arg, uint32_t host, const void *payload, uint32_t bytes);
    void (*on_lost)(void *arg, uint32_t host, enum quoit_status status); /* TIMEOUT: silent; GONE: disconnected */
    void (*on_left)(void *arg, uint32_t host);                           /* it has said so; NULL: nobody asks */
    /* It has changed. silent_ns: since something came from the host; PRESENT: as long as it was silent. dark_ns: since
     * its machine gave a sign. NULL: nobody asks. */
    void (*on_silence)(void *arg, uint32_t host, enum quoit_net_silence silence, uint64_t silent_ns, uint64_t dark_ns);
    /* How long ago the host gave a sign that its owner has seen by another way: it is stopped, perhaps, but there.
     * UINT64_MAX: it never has. NULL: nobody looks. */
    uint64_t (*sign_age_ns)(void *arg, uint32_t host);
    /* A link on the way to the host drops packets that the devices take: from now on they carry so many bytes at most.
     * lost_bytes: what those carried that got lost; 0: the host has found it. NULL: nobody asks. */
    void (*on_narrowed)(void *arg, uint32_t host, uint32_t bytes, uint32_t lost_bytes);
    void *arg; /* of all seven */
};

/* After so long a host is silent that is lost after lost_limit_ns. */
static inline uint64_t quoit_net_notice_ns(uint64_t lost_limit_ns)
{
    return lost_limit_ns / 2 < QUOIT_NET_NOTICE_NS ? lost_limit_ns / 2 : QUOIT_NET_NOTICE_NS;
}

/* Loads the driver's library, which takes a while: open need not wait for it then. What fails here open reports. */
void quoit_net_load(const char *driver);
/* Whether a config's device and ports are written right; NULL: not given. False: `problem` has what is wrong. */
bool quoit_net_check(const char *device, const char *ports, char problem[QUOIT_NET_PROBLEM_BYTES]);
/* UNSUPPORTED: there is no such driver or network here; `problem` says why. */
QUOIT_MUST_USE enum quoit_status quoit_net_open(const struct quoit_net_config *config, struct quoit_net **net_out,
                                                char problem[QUOIT_NET_PROBLEM_BYTES]);
/* Without a farewell; see quoit_net_leave(). NULL is allowed. Releases windows and the region too. */
void quoit_net_close(struct quoit_net *net);

const struct quoit_net_limits *quoit_net_limits(const struct quoit_net *net);
const struct quoit_net_choice *quoit_net_choice(const struct quoit_net *net);
const struct quoit_net_address *quoit_net_address(const struct quoit_net *net);
/* Where a host's end can be called, and, not open, where it could be on another device. None is open: the network has
 * addresses of its own. */
const struct quoit_net_places *quoit_net_places(const struct quoit_net *net);
/* The hosts have chosen: this one is called at that place, by its index among its own, which is open, and nowhere else.
 * Before the first connect; without it, the first place is taken. */
void quoit_net_take_place(struct quoit_net *net, uint32_t place);
/* Within on_lost, and after a connect that failed: what the driver knows of why the host is not reached; "": nothing.
 */
const char *quoit_net_why(const struct quoit_net *net);
/* Before the first operation to that host; its own first heartbeat is expected within start_limit_ns from now on.
 * INVALID: these bytes are no address. */
QUOIT_MUST_USE enum quoit_status quoit_net_connect(struct quoit_net *net, uint32_t host,
                                                   const struct quoit_net_address *address);

/* The memory of the config, registered. */
const struct quoit_net_region *quoit_net_region(const struct quoit_net *net);
const struct quoit_net_key *quoit_net_region_key(const struct quoit_net_region *region);
/* The memory behind a key of `host`. */
QUOIT_MUST_USE enum quoit_status quoit_net_attach(struct quoit_net *net, uint32_t host, const struct quoit_net_key *key,
                                                  struct quoit_net_window **window_out);

/* The local memory stays unchanged (put) or unread (get) until the operation is done. region: where it lies, or NULL
 * unless limits need one. Zero bytes are done by the next progress, as others are. */
QUOIT_MUST_USE enum quoit_status quoit_net_put(struct quoit_net *net, const struct quoit_net_window *window,
                                               uint64_t offset, const void *source,
                                               const struct quoit_net_region *region, uint64_t bytes, uint64_t cookie);
QUOIT_MUST_USE enum quoit_status quoit_net_get(struct quoit_net *net, const struct quoit_net_window *window,
                                               uint64_t offset, void *destination,
                                               const struct quoit_net_region *region, uint64_t bytes, uint64_t cookie);
QUOIT_MUST_USE enum quoit_status quoit_net_send(struct quoit_net *net, uint32_t host, const void *payload,
                                                uint32_t bytes);

/* Whether the host has been sent messages and is to respond: while it has, it is asked whether it is there. */
void quoit_net_await(struct quoit_net *net, uint32_t host, bool is_awaited);

/* Moves what can be moved and calls back. How much was done; 0: nothing. */
uint32_t quoit_net_progress(struct quoit_net *net);
/* Puts and gets to the host that are not done. */
uint64_t quoit_net_outstanding(const struct quoit_net *net, uint32_t host);
/* Progresses until all puts and gets to the host, or to QUOIT_NET_ALL_HOSTS, are done. GONE: some with GONE. TIMEOUT.
 */
QUOIT_MUST_USE enum quoit_status quoit_net_flush(struct quoit_net *net, uint32_t host, uint64_t timeout_ns);
bool quoit_net_is_lost(const struct quoit_net *net, uint32_t host);
/* Whether it was connected, and is neither lost nor has left. */
bool quoit_net_is_connected(const struct quoit_net *net, uint32_t host);

/* For sleeping: a descriptor that poll(2) finds readable when progress has something to do; -1: the network has none.
 * Before each sleep quoit_net_arm() says whether it may be waited for, and by when the sleep must end: for heartbeats,
 * or because the network must be polled. So it is while a broken host is to be lost, and until every host has said
 * something, at growing intervals while nothing moves: UCX's descriptor is readable all the time while the other host
 * does not answer a connection. */
int quoit_net_wait_fd(const struct quoit_net *net);
bool quoit_net_arm(struct quoit_net *net, uint64_t *until_ns_out);

/* Tells the hosts that know this one, since something went there or came from there or they watch each other, that it
 * leaves, and waits until they have said so too, so that none finds another lost; from now on a connection that breaks
 * is as good. TIMEOUT: some did not. After it only close is allowed. */
QUOIT_MUST_USE enum quoit_status quoit_net_leave(struct quoit_net *net, uint64_t timeout_ns);

/* What networks there are: the one that quoit_net_open() tries first is the first usable one. Returns the count, at
 * most max_count. */
uint32_t quoit_net_survey(const struct quoit_net_config *config, struct quoit_net_choice *choices_out,
                          uint32_t max_count);
/* Which driver "auto" tries first on this machine, and why: libfabric where the kernel has an adapter that it may drive
 * better than TCP, else tcp. */
void quoit_net_explain_auto(char text_out[QUOIT_NET_PROBLEM_BYTES]);

#endif
