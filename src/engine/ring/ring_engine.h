/* SPDX-License-Identifier: BSD-3-Clause */
/* ring_engine.h - the state of engine `ring`, and what its files call of each other. Private to engine/ring. */
#ifndef QUOIT_ENGINE_RING_RING_ENGINE_H
#define QUOIT_ENGINE_RING_RING_ENGINE_H

#include <pthread.h>

#include "engine/ring/ring.h"
#include "env/biased_lock.h"

struct quoit_journal;
struct quoit_pe_endpoint;
struct quoit_messages;

struct quoit_ring_peer {
    uint64_t window_offset; /* DIRECT: its segment in the window MEMORY of `side` */
    uint64_t window_bytes;  /* DIRECT: how much of its segment the window covers; 0: not DIRECT */
    uint64_t doorbell;      /* DIRECT: its bit at `side` */
    uint8_t side;           /* enum quoit_side, for requests and direct puts */
    uint8_t spread;         /* selects the side if both directions are equally long */
    bool is_loopback;       /* of the own host: what goes by its mapping could overtake requests */
    uint8_t first_lane;     /* of those that reach it */
    uint8_t lane_count;     /* 1, 2, 4, 8 */
};

/* The PE's record of a request slot of a channel, until it reaps it. */
struct quoit_pending {
    struct quoit_context *context;
    bool is_relayed;  /* counted in relayed_count, and in that of `side` */
    bool is_off_lane; /* counted in off_lane_count */
    uint16_t dest_host;
    uint8_t side;      /* enum quoit_side */
    void *destination; /* a get into private memory: where the staging chunk is copied at reaping; NULL: nothing */
    uint32_t bytes;
    uint32_t element_bytes; /* strided destination: elements of so many bytes, 0: contiguous */
    ptrdiff_t stride_bytes;
    _Atomic uint32_t *left_count; /* counted down at reaping, if a thread waits for this very request; NULL: none */
    void *result;                 /* fetching atomics: where the old value goes at reaping */
    uint32_t result_bytes;        /* how many bytes of it */
};

/* The last request to one host, until it is done. */
struct quoit_last {
    struct quoit_context *context;
    const struct quoit_peer *peer; /* of the host */
    uint32_t mark;                 /* the context's last fence */
    uint32_t bytes;
    uint16_t index;  /* of the request */
    bool is_open;    /* a PUT_MANY to which more puts may be added */
    bool is_patient; /* a put with a signal: its acknowledgement may be waiting for company */
};

/* The PE's end of one channel. */
struct quoit_channel_end {
    pthread_mutex_t lock;           /* between threads of this process; never held while user memory is accessed */
    struct quoit_last *last;        /* [host_count], of the lane of a network; NULL: of another */
    _Atomic uint32_t patient_count; /* of these */
    struct quoit_channel *shared;
    _Atomic uint32_t complete_head;
    uint32_t free_count;
    uint16_t free[QUOIT_REQUESTS_A_CHANNEL];
    struct quoit_pending pending[QUOIT_REQUESTS_A_CHANNEL];
};

/* Direct puts through one side's link. */
struct quoit_direct {
    _Atomic bool is_open;           /* the port is bound to an epoch in which the neighbour's windows are usable */
    _Atomic uint64_t relayed_count; /* requests under way through the proxy to DIRECT peers of this side */
    /* Where writes are posted; posted.c. */
    struct quoit_journal *journal; /* NULL: writes arrive on return */
    uint64_t mark_offset;          /* in the window: where the last sequence that arrived is written */
    _Atomic uint64_t posted;       /* sequence of the last put that was sent. Writer: the thread that holds the lock */
    _Atomic uint64_t known;        /* everything up to this one has arrived, or was sent as requests and is executed */
    _Atomic uint32_t epoch;        /* the link epoch of the binding */
    struct quoit_biased_lock lock; /* between threads, while a put is sent */
    _Atomic bool is_recovering;    /* a thread is retransmitting what was lost */
    _Atomic uint64_t resend_count; /* puts that were lost and sent as requests */
    struct quoit_context context;  /* of those requests */
};

struct quoit_ring_engine {
    struct quoit_engine engine;
    struct quoit_port *ports[QUOIT_SIDE_COUNT];
    uint64_t doorbells[QUOIT_SIDE_COUNT]; /* by which this PE is woken after direct puts; 0: by none */
    struct quoit_direct direct[QUOIT_SIDE_COUNT];
    struct quoit_channel_end *channels;    /* [lane_count] */
    struct quoit_ring_peer *peers;         /* [pe_count] */
    struct quoit_pe_endpoint *pe_endpoint; /* see pe_endpoint.h; NULL: all goes through the proxy */
    struct quoit_messages *messages;       /* see messages.h; NULL: likewise */
};

static inline struct quoit_ring_engine *quoit_ring_engine_of(const struct quoit_peer *peer)
{
    return (struct quoit_ring_engine *)peer->engine;
}

/* Whether a network reaches the peer. */
static inline bool quoit_ring_has_network_to(const struct quoit_peer *peer)
{
    const struct quoit_ring_peer *own = peer->of_engine;
    return own->first_lane == peer->engine->self->layout.link_lane_count;
}

/* A connection of this PE's own broke at lost_ns, to `whom` ("PE", "the host of PE"), `pe`. The proxies watch every
 * host, and end the job when one is lost, as one is at once whose process has ended. If none is after a few times
 * notice_ns, this connection alone broke: the PE ends, since nobody knows what has arrived. */
void quoit_ring_end_if_lost(const struct quoit_ring_engine *ring, uint64_t lost_ns, uint64_t notice_ns,
                            const char *whom, uint32_t pe);

/* direct.c: puts through the window. */

/* Whether the side of the peer takes direct puts, or does again. Any loss closes it. */
bool quoit_direct_is_open(const struct quoit_peer *peer);
/* Whether a put of these bytes may go directly now: the window covers them and the side is open. */
bool quoit_direct_reaches(const struct quoit_peer *peer, uint64_t offset, size_t bytes);
/* The same for every element. */
bool quoit_direct_reaches_strided(const struct quoit_peer *peer, const struct quoit_strided *strided);
/* Only while the side is open. False: the link is down, and the whole put must go through the proxy. */
bool quoit_direct_put(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset, const void *source,
                      size_t bytes);

/* posted.c: what a put over posted writes needs beside. */

enum quoit_posted_status {
    QUOIT_POSTED,       /* sent: arrived, or in the journal */
    QUOIT_POSTED_AGAIN, /* it has arrived, perhaps by a request, but its doorbell was not rung */
    QUOIT_POSTED_NOT,   /* too large for the journal: nothing was done */
};
enum quoit_posted_status quoit_posted_put(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset,
                                          const void *source, size_t bytes);
/* Returns when all up to `sequence` have arrived. */
void quoit_posted_complete(struct quoit_ring_engine *ring, enum quoit_side side, uint64_t sequence);
/* One read-back. False: the link is down, and some of what was sent may be lost. */
bool quoit_posted_confirm(struct quoit_ring_engine *ring, enum quoit_side side);
/* After a call on the port found the link down: returns when everything lost was retransmitted. */
void quoit_posted_recover(struct quoit_ring_engine *ring, enum quoit_side side);
/* The same for losses that the proxy has detected, if anything was sent; else costs a few loads. */
void quoit_posted_attend(struct quoit_ring_engine *ring);
/* Binds the port to `epoch` and enables direct puts. False: not now. */
bool quoit_posted_bind(struct quoit_ring_engine *ring, enum quoit_side side, uint32_t epoch);
QUOIT_MUST_USE enum quoit_status quoit_posted_open(struct quoit_ring_engine *ring, enum quoit_side side);
/* Returns when all that the PE has sent has arrived. */
void quoit_posted_complete_all(struct quoit_ring_engine *ring);
/* After that. */
void quoit_posted_close(struct quoit_ring_engine *ring, enum quoit_side side);

/* relayed.c: operations as requests to the proxy. */

/* What a put guarantees beyond its data. */
struct quoit_put_manner {
    bool is_nbi;     /* the source stays unchanged until quiet */
    bool keeps_lane; /* a later operation must not overtake it */
    bool is_ordered; /* its payload lands when it is executed, not before, and once */
};
void quoit_relayed_put(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset,
                       const void *source, size_t bytes, struct quoit_put_manner manner);
/* Only elements from `first` on. */
void quoit_relayed_put_strided(struct quoit_context *context, const struct quoit_peer *peer,
                               const struct quoit_strided *strided, size_t first, const void *source);
void quoit_relayed_put_signal(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset,
                              const void *source, size_t bytes, const struct quoit_signal *signal, bool is_nbi);
void quoit_relayed_get(struct quoit_context *context, const struct quoit_peer *peer, void *destination, uint64_t offset,
                       size_t bytes, bool is_nbi);
void quoit_relayed_get_strided(struct quoit_context *context, const struct quoit_peer *peer,
                               const struct quoit_strided *strided, void *destination);
void quoit_relayed_amo(struct quoit_context *context, const struct quoit_peer *peer, const struct quoit_atomic *atomic,
                       void *result_out, bool is_nbi);

#endif
