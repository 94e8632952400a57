/* SPDX-License-Identifier: BSD-3-Clause */
/* ring_engine.h - the state of engine `ring`, and what its files call of each other. Private to engine/ring. */
#ifndef QUOIT_ENGINE_RING_RING_ENGINE_H
#define QUOIT_ENGINE_RING_RING_ENGINE_H

#include <pthread.h>

#include "engine/ring/ring.h"

struct quoit_ring_peer {
    uint64_t window_offset; /* DIRECT: its segment in the window MEMORY of `side` */
    uint64_t window_bytes;  /* DIRECT: how much of its segment the window covers; 0: not DIRECT */
    uint8_t side;           /* enum quoit_side, of requests and direct puts */
    uint8_t doorbell;
    uint8_t spread; /* which side where both ways are as long */
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
    pthread_mutex_t lock; /* between threads of this process; never held over a touch of the user's memory */
    struct quoit_channel *shared;
    _Atomic uint32_t complete_head;
    uint32_t free_count;
    uint16_t free[QUOIT_REQUESTS_A_CHANNEL];
    struct quoit_pending pending[QUOIT_REQUESTS_A_CHANNEL];
};

/* The direct way through one side's link. */
struct quoit_direct {
    _Atomic bool is_open;           /* the port is bound to an epoch in which the neighbour's windows were there */
    _Atomic uint64_t relayed_count; /* requests under way through the proxy to DIRECT peers of this side */
};

struct quoit_ring_engine {
    struct quoit_engine engine;
    struct quoit_port *ports[QUOIT_SIDE_COUNT];
    struct quoit_direct direct[QUOIT_SIDE_COUNT];
    struct quoit_channel_end *channels; /* [lane_count] */
    struct quoit_ring_peer *peers;      /* [pe_count] */
};

static inline struct quoit_ring_engine *quoit_ring_engine_of(const struct quoit_peer *peer)
{
    return (struct quoit_ring_engine *)peer->engine;
}

/* direct.c: puts through the window. */

/* Whether a put of these bytes may go directly now: the window covers them, and the link is up. */
bool quoit_direct_reaches(const struct quoit_peer *peer, uint64_t offset, size_t bytes);
/* The same for every element. */
bool quoit_direct_reaches_strided(const struct quoit_peer *peer, const struct quoit_strided *strided);
/* False: the link is down, and the put has to go through the proxy, whole. Up to a word nothing of it has arrived. */
bool quoit_direct_put(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset, const void *source,
                      size_t bytes);
/* Returns when the direct puts of the context have arrived. */
void quoit_direct_confirm(struct quoit_ring_engine *ring, struct quoit_context *context);

/* relayed.c: operations as requests to the proxy. */

/* What a put promises beyond its data. */
struct quoit_put_manner {
    bool is_nbi;     /* the source stays unchanged until quiet */
    bool keeps_lane; /* something follows that must not overtake it */
};
void quoit_relayed_put(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset,
                       const void *source, size_t bytes, struct quoit_put_manner manner);
/* Elements from `first` on. */
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
