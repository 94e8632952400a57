/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric.h - one PE's way to every PE: put, get, atomics, signals, fence and quiet on segment offsets.
 *
 * What it is: the layer under the API and the collectives. The way to each PE is chosen at start: LOCAL (mapped memory
 * of the same host: copies on the paths of local/paths.h and processor atomics), DIRECT (a neighbour: puts are copied
 * through the port straight into its segment, the rest goes through the proxy), RELAYED (through the proxy). In the
 * protocol SCRATCHPAD no other host is DIRECT.
 *
 * Arguments: `offset` is a segment offset (the same object on every PE), `pe` a PE of the job; both were checked by the
 * caller. Private buffers may be any memory of the process. Zero bytes are allowed and do nothing.
 *
 * Completion: put returns when the source may be reused; put_nbi and get_nbi finish at quietness of their context. A
 * put is at its destination after quiet. fence orders puts, atomics and signals to each PE. What goes through the proxy
 * keeps order anyway, but for large puts and gets, which are split over all lanes. Waits of the own PE are woken by
 * every put, atomic or signal to it, whichever way that came.
 *
 * Lost links: while the link to a neighbour is down, what would go directly goes through the proxy, and so the other
 * way round. Nothing is lost or done twice and all order is kept; see docs/design/failover.md.
 *
 * Threads: several threads may call at once; each channel is guarded by a lock that only threads of this process take.
 * Errors: the job is ended by the launcher when a host, proxy or PE dies, so nothing here returns an error.
 */
#ifndef QUOIT_FABRIC_FABRIC_H
#define QUOIT_FABRIC_FABRIC_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "env/wait.h"
#include "local/paths.h"
#include "host/layout.h"
#include "port/port.h"

enum quoit_transport { QUOIT_TRANSPORT_LOCAL, QUOIT_TRANSPORT_DIRECT, QUOIT_TRANSPORT_RELAYED };

struct quoit_peer {
    char *segment;           /* LOCAL: where its segment is mapped here, else NULL */
    struct quoit_park *park; /* LOCAL: where it sleeps */
    uint64_t segment_there;  /* LOCAL: where its segment is mapped in its own process */
    uint64_t window_offset;  /* DIRECT: its segment in the window MEMORY of `side` */
    uint64_t window_bytes;   /* DIRECT: how much of its segment the window covers */
    uint32_t process;        /* LOCAL: its pid */
    uint16_t host;
    uint16_t local;    /* index on its host */
    uint8_t transport; /* enum quoit_transport */
    uint8_t side;      /* enum quoit_side, of requests and direct puts */
    uint8_t doorbell;
    uint8_t spread; /* which side where both ways are as long */
};

/* One context's outstanding work. The default context is fabric->default_context. */
struct quoit_context {
    _Atomic uint64_t outstanding_count; /* requests handed to the proxy and not yet reaped */
    _Atomic uint64_t relayed_count;     /* of them: to DIRECT peers, where a later direct put could overtake them */
    _Atomic uint64_t off_lane_count;    /* of them: on other lanes than the one that keeps order */
    _Atomic bool has_fenced;            /* a fence came while requests were under way */
    uint32_t lane_salt;                 /* contexts spread over lanes */
    _Atomic uint32_t dirty_sides;       /* bit per side: direct puts not yet known to have arrived */
};

/* What the PE remembers of each request slot of a channel until it reaps it. */
struct quoit_pending {
    struct quoit_context *context;
    bool is_relayed;   /* counted in relayed_count, and in that of `side` */
    bool is_off_lane;  /* counted in off_lane_count */
    uint8_t side;      /* enum quoit_side */
    void *destination; /* a get into private memory: where the staging chunk is copied at reaping; NULL: nothing */
    uint32_t bytes;
    uint32_t element_bytes; /* strided destination: elements of so many bytes, 0: contiguous */
    ptrdiff_t stride_bytes;
    _Atomic uint32_t *left_count; /* counted down at reaping when somebody waits for this very request; NULL: nobody */
    void *result;                 /* fetching atomics: where the old value goes at reaping */
    uint32_t result_bytes;        /* how many bytes of it */
};

/* The PE's end of one channel. */
struct quoit_channel_end {
    pthread_mutex_t lock; /* between threads of this process */
    struct quoit_channel *shared;
    uint32_t complete_head;
    uint32_t free_count;
    uint16_t free[QUOIT_REQUESTS_A_CHANNEL];
    struct quoit_pending pending[QUOIT_REQUESTS_A_CHANNEL];
};

/* A symmetric region as the program sees it: the heap, or the program's variables. */
struct quoit_region {
    uintptr_t base;          /* where this PE sees it */
    uint64_t bytes;          /* 0: not there */
    uint64_t segment_offset; /* of its first byte */
};
#define QUOIT_REGION_COUNT 17 /* heap, program, libraries */

/* The direct way through one side's link. */
struct quoit_direct {
    _Atomic bool is_open;           /* the port is bound to an epoch in which the neighbour's windows were there */
    _Atomic uint64_t relayed_count; /* requests under way through the proxy to DIRECT peers of this side */
};

struct quoit_fabric {
    uint32_t pe_self;
    uint32_t pe_count;
    uint32_t host_self;
    uint32_t local_self;
    struct quoit_peer *peers; /* [pe_count] */
    char *segment_self; /* own segment as mapped for the host's PEs; may also be mapped elsewhere for the program */
    struct quoit_layout layout;
    struct quoit_paths paths; /* to LOCAL peers */
    char *memory;
    struct quoit_pe_shared *shared_self;
    struct quoit_port *ports[QUOIT_SIDE_COUNT]; /* NULL when there is one host */
    struct quoit_direct direct[QUOIT_SIDE_COUNT];
    struct quoit_channel_end *channels; /* [lane_count]; NULL when there is one host */
    struct quoit_waiter waiter;         /* a copy of it serves each wait */
    bool has_threads;                   /* that may wait, each for something else */
    _Atomic uint64_t settle_after_ns;   /* no move to another processor before this */
    _Atomic uint64_t settle_pause_ns;   /* and for how long after the next */
    struct quoit_context default_context;
    /* So that the proxy reads and writes buffers in them without a copy. NULL: none. Writer: the API. */
    const struct quoit_region *regions[QUOIT_REGION_COUNT];
    struct quoit_trace_ring *trace; /* NULL: nothing is traced */
    _Atomic uint32_t last_flow;     /* number of the last request that was */
    const char *call;               /* API routine last entered and where from; for messages */
    void *call_from;
};

struct quoit_fabric_config {
    const struct quoit_layout *layout; /* of the own host */
    void *memory;                      /* mapped whole */
    uint32_t pe_self;
    struct quoit_port_config ports[QUOIT_SIDE_COUNT]; /* driver NULL: one host */
    struct quoit_wait_policy policy;
    struct quoit_paths paths;
};

/* Opens the ports and sets up the ways. The neighbours' windows must be there (boot's barrier comes between). */
QUOIT_MUST_USE enum quoit_status quoit_fabric_open(const struct quoit_fabric_config *config,
                                                   struct quoit_fabric **fabric_out);
/* After a quiet of all contexts. NULL is allowed. */
void quoit_fabric_close(struct quoit_fabric *fabric);

void quoit_context_init(struct quoit_context *context, uint32_t lane_salt);

void quoit_fabric_put(struct quoit_fabric *fabric, struct quoit_context *context, uint64_t offset, const void *source,
                      size_t bytes, uint32_t pe);
void quoit_fabric_put_nbi(struct quoit_fabric *fabric, struct quoit_context *context, uint64_t offset,
                          const void *source, size_t bytes, uint32_t pe);
void quoit_fabric_get(struct quoit_fabric *fabric, struct quoit_context *context, void *destination, uint64_t offset,
                      size_t bytes, uint32_t pe);
void quoit_fabric_get_nbi(struct quoit_fabric *fabric, struct quoit_context *context, void *destination,
                          uint64_t offset, size_t bytes, uint32_t pe);

/* `count` elements of element_bytes (1..16), strides in bytes of the remote and the private side. */
struct quoit_strided {
    uint64_t offset;         /* of the first remote element */
    ptrdiff_t remote_stride; /* may be negative */
    ptrdiff_t private_stride;
    size_t count;
    uint32_t element_bytes;
};
void quoit_fabric_iput(struct quoit_fabric *fabric, struct quoit_context *context, const struct quoit_strided *strided,
                       const void *source, uint32_t pe);
void quoit_fabric_iget(struct quoit_fabric *fabric, struct quoit_context *context, const struct quoit_strided *strided,
                       void *destination, uint32_t pe);

/* An atomic on a word of `size` (4 or 8) bytes. fetch returns the old value, zero-extended. fetch_nbi stores it, `size`
 * bytes, at result_out by the next quiet. */
void quoit_fabric_amo(struct quoit_fabric *fabric, struct quoit_context *context, enum quoit_amo op, uint32_t size,
                      uint64_t offset, uint64_t operand, uint32_t pe);
uint64_t quoit_fabric_amo_fetch(struct quoit_fabric *fabric, struct quoit_context *context, enum quoit_amo op,
                                uint32_t size, uint64_t offset, uint64_t operand, uint64_t compare, uint32_t pe);
void quoit_fabric_amo_fetch_nbi(struct quoit_fabric *fabric, struct quoit_context *context, enum quoit_amo op,
                                uint32_t size, uint64_t offset, uint64_t operand, uint64_t compare, void *result_out,
                                uint32_t pe);

/* Put, then the signal: whoever sees the signal sees the data. op is SET or ADD on a 64-bit word. */
struct quoit_signal {
    uint64_t offset;
    uint64_t value;
    enum quoit_amo op;
};
void quoit_fabric_put_signal(struct quoit_fabric *fabric, struct quoit_context *context, uint64_t offset,
                             const void *source, size_t bytes, const struct quoit_signal *signal, uint32_t pe,
                             bool is_nbi);

void quoit_fabric_fence(struct quoit_fabric *fabric, struct quoit_context *context);
/* Returns when every operation of the context is complete at its destination. */
void quoit_fabric_quiet(struct quoit_fabric *fabric, struct quoit_context *context);

/* The papers' barrier between the hosts of the job, by doorbells through the proxies: called by the first PE of each
 * host, returns when all have called it. Orders and completes nothing by itself. The job config's barrier is PAPERS,
 * and there are two hosts or more. */
void quoit_fabric_host_barrier(struct quoit_fabric *fabric, const char *call);

/* From now on objects of the host's PEs may be changed by plain stores, which wake nobody: another thread of the same
 * PE, or a PE that has a pointer from shmem_ptr. Waits then sleep in pieces, those that sleep already included. */
void quoit_fabric_expect_plain_stores(struct quoit_fabric *fabric);
/* The same, and several threads of this PE may wait at once. */
void quoit_fabric_expect_threads(struct quoit_fabric *fabric);

/* Waits, asleep if it lasts, until is_done(arg), which reads the runtime part of the own segment, or what the proxy
 * tells; `call` names the API routine, for messages. */
void quoit_fabric_wait(struct quoit_fabric *fabric, bool (*is_done)(void *arg), void *arg, const char *call);
/* The same while other PEs of the host are known to work for about busy_ns, so that the wait is no reason to sleep. */
void quoit_fabric_wait_busy(struct quoit_fabric *fabric, bool (*is_done)(void *arg), void *arg, const char *call,
                            uint64_t busy_ns);
/* As quoit_fabric_wait() where is_done reads [offset, offset + bytes) of the own segment: what others write elsewhere
 * wakes nobody. */
void quoit_fabric_wait_at(struct quoit_fabric *fabric, uint64_t offset, uint64_t bytes, bool (*is_done)(void *arg),
                          void *arg, const char *call);

#endif
