/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct puts over a port whose writes are posted: none is lost, and none arrives twice; docs/design/direct-puts.md.
 *
 * Each put of a side has a sequence. It is copied into a journal, and sent followed by its sequence, the mark, which
 * lands in a word of this PE at the neighbour. After a read-back that returned OK, everything sent before has arrived.
 * After a loss the mark is fetched by a relayed get: it is the sequence of the last put that arrived. Later puts are
 * sent again by requests, in order, before any other request to that host. */
#include "base/assert.h"
#include "base/observer.h"
#include "engine/ring/channel.h"
#include "engine/ring/journal.h"

#include <stdlib.h>
#include <string.h>

static quoit_biased_hold *lock(struct quoit_ring_engine *ring, struct quoit_direct *direct)
{
    if (!ring->engine.self->has_threads)
        return &direct->lock.is_locked; /* which is 0, and stays so */
    return quoit_biased_lock(&direct->lock);
}

static void raise_known(struct quoit_direct *direct, uint64_t sequence)
{
    uint64_t known = atomic_load_explicit(&direct->known, memory_order_relaxed);
    while (known < sequence && !atomic_compare_exchange_weak_explicit(&direct->known, &known, sequence,
                                                                      memory_order_release, memory_order_relaxed))
        ;
}

/* When this returns, all puts with a sequence up to the result have been passed to the port. */
static uint64_t last_posted(struct quoit_ring_engine *ring, struct quoit_direct *direct)
{
    quoit_biased_hold *hold = lock(ring, direct);
    uint64_t sequence = atomic_load_explicit(&direct->posted, memory_order_relaxed);
    quoit_biased_unlock(hold);
    return sequence;
}

/* A read through the window returns OK after everything sent there before has arrived. */
static bool read_back(struct quoit_ring_engine *ring, enum quoit_side side)
{
    struct quoit_direct *direct = &ring->direct[side];
    uint64_t sequence = last_posted(ring, direct), word;
    if (quoit_port_read(ring->ports[side], QUOIT_WINDOW_MEMORY, direct->mark_offset, &word, sizeof word) != QUOIT_OK)
        return false;
    raise_known(direct, sequence);
    return true;
}

static uint32_t header_epoch(const struct quoit_ring_engine *ring, enum quoit_side side)
{
    const struct quoit_host_header *header = (const struct quoit_host_header *)ring->engine.self->memory;
    return quoit_link_port_epoch(&header->links[side]);
}

struct loss {
    struct quoit_ring_engine *ring;
    enum quoit_side side;
};

/* The proxy has detected the loss, and so have its lanes: see poll_pe() of proxy/queue.c. So later requests are not
 * sent into the dead link. */
static bool proxy_has_seen(void *arg)
{
    const struct loss *loss = arg;
    return header_epoch(loss->ring, loss->side) !=
           atomic_load_explicit(&loss->ring->direct[loss->side].epoch, memory_order_relaxed);
}

static bool is_made_good(void *arg)
{
    const struct loss *loss = arg;
    return !atomic_load_explicit(&loss->ring->direct[loss->side].is_recovering, memory_order_acquire);
}

/* A PE of the host at the other end. */
static struct quoit_peer peer_there(struct quoit_ring_engine *ring, enum quoit_side side, uint32_t local)
{
    const struct quoit_layout *layout = &ring->engine.self->layout;
    uint32_t host = quoit_layout_neighbour(layout, side);
    uint32_t pe = quoit_job_config_first_pe(&layout->job, host) + local;
    return (struct quoit_peer){.engine = &ring->engine,
                               .of_engine = &ring->peers[pe],
                               .pe = pe,
                               .host = (uint16_t)host,
                               .local = (uint16_t)local};
}

/* The sequence of the last put that has arrived, by a relayed get of the mark. */
static uint64_t ask_for_mark(struct quoit_ring_engine *ring, enum quoit_side side)
{
    struct quoit_direct *direct = &ring->direct[side];
    const struct quoit_peer first = peer_there(ring, side, 0);
    uint64_t mark = 0;
    quoit_relayed_get(&direct->context, &first, &mark, quoit_layout_mark(side, ring->engine.self->local), sizeof mark,
                      false);
    return mark;
}

/* Threads may send and lose more meanwhile; they recover those themselves, so later sequences are not considered here.
 */
static const struct quoit_journal_entry *next_lost(struct quoit_ring_engine *ring, struct quoit_direct *direct,
                                                   const struct quoit_journal_entry *after, uint64_t arrived,
                                                   uint64_t last)
{
    quoit_biased_hold *hold = lock(ring, direct);
    const struct quoit_journal_entry *entry = quoit_journal_next(direct->journal, after, arrived);
    while (entry != NULL && entry->sequence > last)
        entry = quoit_journal_next(direct->journal, entry, arrived);
    quoit_biased_unlock(hold);
    return entry;
}

/* Puts with sequences in (arrived, last] go by requests, in order. */
static void send_lost(struct quoit_ring_engine *ring, enum quoit_side side, uint64_t arrived, uint64_t last)
{
    struct quoit_direct *direct = &ring->direct[side];
    const struct quoit_journal_entry *entry = next_lost(ring, direct, NULL, arrived, last);
    for (; entry != NULL; entry = next_lost(ring, direct, entry, arrived, last)) {
        const struct quoit_peer peer = peer_there(ring, side, entry->local);
        quoit_observe(put_remade, ring, side, entry->sequence);
        quoit_relayed_put(&direct->context, &peer, entry->offset, entry->data, entry->bytes,
                          (struct quoit_put_manner){.keeps_lane = true, .is_ordered = true});
        atomic_fetch_add_explicit(&direct->resend_count, 1, memory_order_relaxed);
    }
    quoit_channel_wait64(ring, &direct->context.ring.outstanding_count);
}

void quoit_posted_recover(struct quoit_ring_engine *ring, enum quoit_side side)
{
    struct quoit_direct *direct = &ring->direct[side];
    struct loss loss = {.ring = ring, .side = side};
    atomic_store_explicit(&direct->is_open, false, memory_order_relaxed);
    if (direct->journal == NULL)
        return;
    if (atomic_exchange_explicit(&direct->is_recovering, true, memory_order_acq_rel)) {
        quoit_self_wait(ring->engine.self, is_made_good, &loss, NULL); /* another thread is recovering */
        return;
    }
    /* LINK_DOWN: nothing that was posted before will still arrive. OK: all has. */
    if (atomic_load_explicit(&direct->known, memory_order_relaxed) != last_posted(ring, direct) &&
        !read_back(ring, side)) {
        uint64_t sequence = last_posted(ring, direct);
        quoit_self_wait(ring->engine.self, proxy_has_seen, &loss, NULL);
        uint64_t arrived = ask_for_mark(ring, side), known = atomic_load_explicit(&direct->known, memory_order_relaxed);
        quoit_assert(arrived <= sequence);
        if (arrived < known) /* puts lost earlier were sent again by requests, and left no mark */
            arrived = known;
        send_lost(ring, side, arrived, sequence);
        raise_known(direct, sequence);
    }
    atomic_store_explicit(&direct->is_recovering, false, memory_order_release); /* pairs with is_made_good() */
    if (ring->engine.self->has_threads)
        quoit_park_wake(&ring->engine.self->shared->park);
}

void quoit_posted_complete(struct quoit_ring_engine *ring, enum quoit_side side, uint64_t sequence)
{
    struct quoit_direct *direct = &ring->direct[side];
    while (atomic_load_explicit(&direct->known, memory_order_acquire) < sequence)
        if (!atomic_load_explicit(&direct->is_open, memory_order_relaxed) || !read_back(ring, side))
            quoit_posted_recover(ring, side);
}

/* With the lock held. NULL: the journal is full. */
static struct quoit_journal_entry *reserve(struct quoit_direct *direct, const struct quoit_peer *peer, uint64_t offset,
                                           size_t bytes)
{
    struct quoit_journal_entry *entry = quoit_journal_reserve(
        direct->journal, (uint32_t)bytes, atomic_load_explicit(&direct->known, memory_order_acquire));
    if (entry != NULL) {
        entry->offset = offset;
        entry->local = peer->local;
    }
    return entry;
}

/* With the lock held: numbers the entry, which is filled, and passes it to the port. */
static enum quoit_status number_and_send(struct quoit_direct *direct, struct quoit_context *context,
                                         const struct quoit_peer *peer, struct quoit_journal_entry *entry, size_t bytes)
{
    const struct quoit_ring_peer *own = peer->of_engine;
    struct quoit_ring_engine *ring = quoit_ring_engine_of(peer);
    uint64_t sequence = atomic_load_explicit(&direct->posted, memory_order_relaxed) + 1;
    entry->sequence = sequence;
    atomic_store_explicit(&direct->posted, sequence, memory_order_relaxed);
    atomic_store_explicit(&context->ring.posted[own->side], sequence, memory_order_relaxed);
    return quoit_port_write_marked(ring->ports[own->side], QUOIT_WINDOW_MEMORY, own->window_offset + entry->offset,
                                   entry->data, bytes, direct->mark_offset, sequence);
}

/* A word is read before the lock is taken, so that it is read once. False: the journal is full. */
static bool send_word(struct quoit_direct *direct, struct quoit_context *context, const struct quoit_peer *peer,
                      uint64_t offset, uint64_t word, enum quoit_status *status_out)
{
    quoit_biased_hold *hold = lock(quoit_ring_engine_of(peer), direct);
    struct quoit_journal_entry *entry = reserve(direct, peer, offset, sizeof word);
    if (entry != NULL) {
        memcpy(entry->data, &word, sizeof word);
        *status_out = number_and_send(direct, context, peer, entry, sizeof word);
    }
    quoit_biased_unlock(hold);
    return entry != NULL;
}

/* The source may be large and may fault, so it is copied with no lock held. */
static bool send_bytes(struct quoit_direct *direct, struct quoit_context *context, const struct quoit_peer *peer,
                       uint64_t offset, const void *source, size_t bytes, enum quoit_status *status_out)
{
    struct quoit_ring_engine *ring = quoit_ring_engine_of(peer);
    quoit_biased_hold *hold = lock(ring, direct);
    struct quoit_journal_entry *entry = reserve(direct, peer, offset, bytes);
    quoit_biased_unlock(hold);
    if (entry == NULL)
        return false;
    memcpy(entry->data, source, bytes);
    quoit_observe(copied, bytes);
    hold = lock(ring, direct);
    *status_out = number_and_send(direct, context, peer, entry, bytes);
    quoit_biased_unlock(hold);
    return true;
}

static bool send(struct quoit_direct *direct, struct quoit_context *context, const struct quoit_peer *peer,
                 uint64_t offset, const void *source, size_t bytes, enum quoit_status *status_out)
{
    uint64_t word;
    if (bytes != sizeof word)
        return send_bytes(direct, context, peer, offset, source, bytes, status_out);
    memcpy(&word, source, sizeof word);
    return send_word(direct, context, peer, offset, word, status_out);
}

enum quoit_posted_status quoit_posted_put(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset,
                                          const void *source, size_t bytes)
{
    const struct quoit_ring_peer *own = peer->of_engine;
    struct quoit_ring_engine *ring = quoit_ring_engine_of(peer);
    struct quoit_direct *direct = &ring->direct[own->side];
    enum quoit_status status = QUOIT_OK;
    if (bytes > QUOIT_JOURNAL_PUT_MAX)
        return QUOIT_POSTED_NOT;
    if (__builtin_expect(!send(direct, context, peer, offset, source, bytes, &status), 0)) {
        quoit_posted_complete(ring, own->side, last_posted(ring, direct));
        if (!send(direct, context, peer, offset, source, bytes, &status))
            return QUOIT_POSTED_NOT;
    }
    if (__builtin_expect(status == QUOIT_OK, 1))
        return QUOIT_POSTED;
    quoit_assert(status == QUOIT_LINK_DOWN);
    atomic_store_explicit(&direct->is_open, false, memory_order_relaxed);
    quoit_posted_complete(ring, own->side, atomic_load_explicit(&direct->posted, memory_order_relaxed));
    return QUOIT_POSTED_AGAIN;
}

bool quoit_posted_confirm(struct quoit_ring_engine *ring, enum quoit_side side)
{
    return read_back(ring, side);
}

bool quoit_posted_bind(struct quoit_ring_engine *ring, enum quoit_side side, uint32_t epoch)
{
    struct quoit_direct *direct = &ring->direct[side];
    if (atomic_load_explicit(&direct->known, memory_order_relaxed) != last_posted(ring, direct))
        quoit_posted_recover(ring, side);
    quoit_biased_hold *hold = lock(ring, direct);
    bool is_bound = atomic_load_explicit(&direct->known, memory_order_relaxed) ==
                        atomic_load_explicit(&direct->posted, memory_order_relaxed) &&
                    quoit_port_bind(ring->ports[side], epoch) == QUOIT_OK;
    if (is_bound) {
        atomic_store_explicit(&direct->epoch, epoch, memory_order_relaxed);
        atomic_store_explicit(&direct->is_open, true, memory_order_relaxed);
    }
    quoit_biased_unlock(hold);
    return is_bound;
}

void quoit_posted_attend(struct quoit_ring_engine *ring)
{
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        struct quoit_direct *direct = &ring->direct[side];
        if (atomic_load_explicit(&direct->known, memory_order_relaxed) !=
                atomic_load_explicit(&direct->posted, memory_order_relaxed) &&
            header_epoch(ring, side) != atomic_load_explicit(&direct->epoch, memory_order_relaxed) &&
            !atomic_load_explicit(&direct->is_recovering, memory_order_relaxed))
            quoit_posted_recover(ring, side);
    }
}

void quoit_posted_complete_all(struct quoit_ring_engine *ring)
{
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        if (ring->direct[side].journal != NULL)
            quoit_posted_complete(ring, side, last_posted(ring, &ring->direct[side]));
}

enum quoit_status quoit_posted_open(struct quoit_ring_engine *ring, enum quoit_side side)
{
    struct quoit_direct *direct = &ring->direct[side];
    const struct quoit_self *self = ring->engine.self;
    direct->journal = aligned_alloc(_Alignof(struct quoit_journal), sizeof *direct->journal);
    if (direct->journal == NULL)
        return QUOIT_NO_MEMORY;
    direct->journal->head = direct->journal->tail = 0;
    direct->mark_offset = quoit_layout_mark(side, self->local);
    /* An earlier initialization of this process has left its last mark at the neighbour. */
    direct->posted = direct->known = atomic_load_explicit(&self->shared->posted_count[side], memory_order_relaxed);
    return QUOIT_OK;
}

void quoit_posted_close(struct quoit_ring_engine *ring, enum quoit_side side)
{
    struct quoit_direct *direct = &ring->direct[side];
    if (direct->journal == NULL)
        return;
    atomic_store_explicit(&ring->engine.self->shared->posted_count[side], direct->posted, memory_order_relaxed);
    free(direct->journal);
    direct->journal = NULL;
}
