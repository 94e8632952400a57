/* SPDX-License-Identifier: BSD-3-Clause */
/* engine.h - what carries the operations of one PE to others: the contract between fabric and an engine.
 *
 * What it is: an engine reaches some PEs of the job by one kind of memory or link: `local` the PEs of the same host,
 * whose segments are mapped; `ring` the other hosts of a ring, through the ports and the proxy. fabric asks the engines
 * in order whether they reach a PE, and the first that does serves it. An engine is one folder, one ops table, one
 * function that opens it; its state is private to it.
 *
 * Arguments: `offset` is a segment offset (the same object on every PE), sizes are in bytes; the caller has checked
 * that the object lies in the segment. Private buffers may be any memory of the process and may fault: an engine
 * accesses them with no lock held. Zero bytes are allowed and do nothing. Buffers and contexts belong to the caller.
 *
 * Completion: put returns when the source may be reused, get with the data, an atomic with its result. With is_nbi they
 * may return earlier, and quiet of the context completes them. A put is at its destination after quiet. fence orders
 * the puts, atomics and signals of a context to each PE. Every put, atomic or signal wakes the destination PE if it
 * waits.
 *
 * Threads: any number of threads may call concurrently, also with one context.
 * Errors: none. The launcher ends the job when a host, proxy or PE dies; an engine retransmits what a link lost.
 */
#ifndef QUOIT_ENGINE_ENGINE_H
#define QUOIT_ENGINE_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/self.h"
#include "wire/frame.h"

struct quoit_engine_ops;

/* The first member of each engine's private state. */
struct quoit_engine {
    const struct quoit_engine_ops *ops;
    struct quoit_self *self;
    bool has_host_barrier; /* hosts of this job synchronise by ops->host_barrier */
    bool has_messages;     /* those of collectives go by ops->message */
};

/* A PE as seen from this one. */
struct quoit_peer {
    struct quoit_engine *engine;
    void *of_engine;         /* the engine's record of it */
    char *segment;           /* this PE's mapping of its segment, for loads, stores and atomics; NULL: there is none */
    struct quoit_park *park; /* where it sleeps; NULL: its segment is not mapped here */
    uint32_t pe;
    uint16_t host;
    uint16_t local; /* index on its host */
    bool is_direct; /* not mapped, but a put is a copy by this PE through a window; the other side does no work */
};

/* One context's outstanding work with engine `ring`. A zeroed struct is a valid start. */
struct quoit_ring_context {
    _Atomic uint64_t outstanding_count; /* requests submitted to the proxy and not yet reaped */
    _Atomic uint64_t relayed_count;     /* of them: to direct peers, or through the loopback, where what a PE does by
                                         * itself later could overtake them */
    _Atomic uint64_t off_lane_count;    /* of them: on other lanes than the one that keeps order */
    _Atomic uint64_t
        pe_endpoint_put_count; /* puts over the PE's own end of a network that are not known to have arrived */
    _Atomic uint64_t pe_endpoint_frame_count; /* and frames */
    _Atomic uint32_t pe_endpoint_mark;        /* 0, or the number of a fence issued while frames were outstanding */
    _Atomic uint32_t fence_mark;              /* 0, or the number of a fence issued while requests were outstanding */
    _Atomic uint32_t last_mark;
    /* With posted writes, sequences of direct puts: the last one, and the last one before a fence. */
    _Atomic uint64_t posted[QUOIT_SIDE_COUNT];
    _Atomic uint64_t fenced[QUOIT_SIDE_COUNT];
};

/* Each engine's part is private to it. */
struct quoit_context {
    uint32_t salt; /* spreads contexts over an engine's lanes */
    struct quoit_ring_context ring;
};

/* `count` elements of element_bytes (1..16); strides of the remote and the private side in bytes. */
struct quoit_strided {
    uint64_t offset;         /* of the first remote element */
    ptrdiff_t remote_stride; /* may be negative */
    ptrdiff_t private_stride;
    size_t count;
    uint32_t element_bytes;
};

/* Offset of element i; strides may be negative. */
static inline uint64_t quoit_strided_offset(const struct quoit_strided *strided, size_t i)
{
    return strided->offset + (uint64_t)((int64_t)i * strided->remote_stride);
}

/* An atomic on a word of `size` (4 or 8) bytes. */
struct quoit_atomic {
    enum quoit_amo op;
    uint32_t size;
    uint64_t offset;
    uint64_t operand;
    uint64_t compare;
};

/* The update that follows a put: a PE that sees the signal sees the data. op is SET or ADD on a 64-bit word. */
struct quoit_signal {
    uint64_t offset;
    uint64_t value;
    enum quoit_amo op;
};

/* Of a collective: `bytes` for the destination's segment, and behind them a word there, the flag, is set. */
struct quoit_message {
    uint64_t offset;
    const void *source;
    size_t bytes;
    bool has_flag;
    uint64_t flag; /* segment offset, a multiple of 8 */
    uint64_t value;
};

/* All operations are required, except where NULL is allowed. */
struct quoit_engine_ops {
    const char *name;
    void (*close)(struct quoit_engine *engine);
    /* Whether the engine reaches peer->pe; if so, fills in all of *peer but `engine`. */
    bool (*connect)(struct quoit_engine *engine, struct quoit_peer *peer);

    void (*put)(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset, const void *source,
                size_t bytes, bool is_nbi);
    void (*get)(struct quoit_context *context, const struct quoit_peer *peer, void *destination, uint64_t offset,
                size_t bytes, bool is_nbi);
    void (*put_strided)(struct quoit_context *context, const struct quoit_peer *peer,
                        const struct quoit_strided *strided, const void *source);
    void (*get_strided)(struct quoit_context *context, const struct quoit_peer *peer,
                        const struct quoit_strided *strided, void *destination);
    /* result_out: where the old value goes, `size` bytes; may be NULL. */
    void (*amo)(struct quoit_context *context, const struct quoit_peer *peer, const struct quoit_atomic *atomic,
                void *result_out, bool is_nbi);
    void (*put_signal)(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset,
                       const void *source, size_t bytes, const struct quoit_signal *signal, bool is_nbi);

    /* A message to a PE that calls `receive` while it waits for it: as put_signal, or put; the source may be reused on
     * return. False: nothing was done, and it goes by put_signal or put. Those of a context to a PE are received in
     * order, and after what the context has put to it before.
     * *is_direct is false before the first of them, is the same for all of them, and is the engine's to set. await
     * sleeps, for at most limit_ns, until something may have come or be sent; false: what comes from the peer wakes the
     * PE's park. Only where has_messages says so. */
    bool (*message)(struct quoit_context *context, const struct quoit_peer *peer, const struct quoit_message *message,
                    bool *is_direct);
    void (*receive)(struct quoit_engine *engine);
    bool (*await)(const struct quoit_peer *peer, uint64_t limit_ns);

    /* NULL, for each of them: the engine's operations are complete and ordered when they return. */
    void (*fence)(struct quoit_engine *engine, struct quoit_context *context);
    /* context NULL: called when the PE leaves, after a quiet of all contexts; completes what collectives sent, too. */
    void (*quiet)(struct quoit_engine *engine, struct quoit_context *context);
    /* Completes what only this PE can complete, such as what a link lost. Called at each check of a wait; costs a few
     * loads when there is nothing to do, and may wait when there is. NULL: nothing. */
    void (*progress)(struct quoit_engine *engine);
    /* Called before the PE sleeps on its park: completions and arrivals from now on wake it. NULL: they always do. */
    void (*arm)(struct quoit_engine *engine);
    /* A barrier between the hosts that the engine joins, called by the first PE of each; it orders and completes
     * nothing. NULL: the engine has none. */
    void (*host_barrier)(struct quoit_engine *engine, const char *call);
};

#endif
