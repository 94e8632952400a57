/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/ring/guest.h"
#include "base/assert.h"
#include "base/log.h"
#include "engine/ring/channel.h"
#include "engine/ring/context.h"
#include "env/clock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOT_COUNT  32u     /* operations under way */
#define SLOT_BYTES  4096u   /* of one: a larger one gains little */
#define OPEN_AFTER  10000u  /* operations: it takes about as long to open the end as they lose through the proxy */
#define WAKE_NS     200000u /* between two wakes of one PE: waits stay awake about so long before they sleep */
#define NO_PE       UINT32_MAX
#define LOST_LIMITS 3u      /* times the limit after which the proxies have found a host lost, if it is */

/* An operation, by its slot, which is its cookie. */
struct guest_op {
    struct quoit_context *context; /* of a put; NULL: a get */
    uint64_t offset;               /* in the segment */
    uint32_t bytes;
    uint32_t pe;
    _Atomic uint32_t state; /* enum op_state. Writer: who progresses; reader: who waits for a get */
};
enum op_state { OP_UNDER_WAY, OP_DONE, OP_LOST };

struct guest_host {
    struct quoit_net_window *window; /* NULL: not connected, */
    bool is_refused;                 /* and never will be */
};

/* The puts of which a PE is not told yet. */
struct guest_wake {
    uint64_t from, to; /* in its segment */
    uint64_t sent_ns;  /* the last one */
    uint32_t next;     /* of those that wait */
    bool waits;
};

enum guest_state { GUEST_CLOSED, GUEST_OPEN, GUEST_REFUSED };

struct quoit_guest {
    struct quoit_ring_engine *ring;
    const struct quoit_contacts *contacts;
    uint32_t bytes_max;
    _Atomic uint32_t left_count;      /* operations until the end is opened */
    struct quoit_context context;     /* of the wakes */
    _Atomic bool is_waking;           /* a thread sends them */
    _Atomic uint32_t under_way_count; /* operations. Writers: with the lock, */
    _Atomic uint32_t wake_count;      /* and PEs whose wake waits */
    pthread_mutex_t lock;             /* of all that follows */
    enum guest_state state;
    struct quoit_net *net;
    struct guest_host *hosts; /* [host_count] */
    char *slots;              /* registered */
    struct guest_op ops[SLOT_COUNT];
    uint32_t free[SLOT_COUNT];
    uint32_t free_count;
    struct guest_wake *wakes; /* [pe_count] */
    uint32_t first_wake;      /* a list; NO_PE: none waits */
    uint64_t lost_ns;         /* when a put was lost with its connection; 0: none was */
    uint32_t lost_pe;
};

static char *slot_of(const struct quoit_guest *guest, uint32_t slot)
{
    return guest->slots + (size_t)slot * SLOT_BYTES;
}

static void count_one(_Atomic uint64_t *count, _Atomic uint64_t *byte_count, uint64_t bytes)
{
    atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(byte_count, bytes, memory_order_relaxed);
}

/* Wakes */

/* Under the lock. Merges the range with what waits, if a request can name both: else the PE sees the one by itself. */
static void want_wake(struct quoit_guest *guest, uint32_t pe, uint64_t offset, uint32_t bytes)
{
    struct guest_wake *wake = &guest->wakes[pe];
    uint64_t from = offset, to = offset + bytes;
    if (wake->waits && wake->from < from)
        from = wake->from;
    if (wake->waits && wake->to > to)
        to = wake->to;
    if (to - from > guest->bytes_max) {
        from = offset;
        to = offset + bytes;
    }
    wake->from = from;
    wake->to = to;
    if (wake->waits)
        return;
    wake->waits = true;
    wake->next = guest->first_wake;
    guest->first_wake = pe;
    atomic_fetch_add_explicit(&guest->wake_count, 1, memory_order_relaxed);
}

/* Takes one that is due out of the list. NO_PE: none is. */
static uint32_t take_wake(struct quoit_guest *guest, bool is_last, uint64_t now_ns, struct guest_wake *wake_out)
{
    uint32_t *at = &guest->first_wake, pe = NO_PE;
    pthread_mutex_lock(&guest->lock);
    while (*at != NO_PE && !is_last && now_ns - guest->wakes[*at].sent_ns < WAKE_NS)
        at = &guest->wakes[*at].next;
    if (*at != NO_PE) {
        struct guest_wake *wake = &guest->wakes[*at];
        pe = *at;
        *at = wake->next;
        wake->waits = false;
        wake->sent_ns = now_ns;
        *wake_out = *wake;
        atomic_fetch_sub_explicit(&guest->wake_count, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&guest->lock);
    return pe;
}

/* A put whose payload is there already: executed at the other host, it wakes the PE. */
static void send_wake(struct quoit_guest *guest, uint32_t pe, const struct guest_wake *wake)
{
    const struct quoit_job_config *job = &guest->ring->engine.self->layout.job;
    uint16_t host = (uint16_t)quoit_job_config_host_of_pe(job, pe);
    const struct quoit_peer peer = {.engine = &guest->ring->engine,
                                    .of_engine = &guest->ring->peers[pe],
                                    .pe = pe,
                                    .host = host,
                                    .local = (uint16_t)(pe - quoit_job_config_first_pe(job, host))};
    struct quoit_slot slot;
    quoit_channel_take(&guest->context, &peer, &slot);
    slot.request->frame.kind = QUOIT_FRAME_PUT;
    slot.request->frame.flags = QUOIT_FRAME_LANDED;
    slot.request->frame.offset = wake->from;
    slot.request->frame.bytes = (uint32_t)(wake->to - wake->from);
    quoit_channel_submit(guest->ring, &slot);
}

/* Taking a request slot may wait, and a wait comes here. */
static void send_wakes(struct quoit_guest *guest, bool is_last)
{
    struct guest_wake wake;
    uint32_t pe;
    if (atomic_exchange_explicit(&guest->is_waking, true, memory_order_acquire))
        return;
    while ((pe = take_wake(guest, is_last, quoit_clock_now_ns(), &wake)) != NO_PE)
        send_wake(guest, pe, &wake);
    atomic_store_explicit(&guest->is_waking, false, memory_order_release);
}

/* The end */

/* Within progress, under the lock. A lost put stays under way. */
static void on_done(void *arg, uint32_t host, uint64_t cookie, enum quoit_status status)
{
    struct quoit_guest *guest = arg;
    struct guest_op *op = &guest->ops[cookie];
    (void)host;
    if (!op->context) {
        atomic_fetch_sub_explicit(&guest->under_way_count, 1, memory_order_relaxed);
        atomic_store_explicit(&op->state, status == QUOIT_OK ? OP_DONE : OP_LOST,
                              memory_order_release); /* pairs with get_is_done() */
        return;
    }
    if (status != QUOIT_OK) { /* nobody knows whether it has arrived */
        guest->lost_ns = guest->lost_ns ? guest->lost_ns : quoit_clock_now_ns();
        guest->lost_pe = op->pe;
        return;
    }
    atomic_fetch_sub_explicit(&guest->under_way_count, 1, memory_order_relaxed);
    want_wake(guest, op->pe, op->offset, op->bytes);
    guest->free[guest->free_count++] = (uint32_t)cookie;
    atomic_fetch_sub_explicit(&op->context->ring.guest_count, 1, memory_order_release);
}

static void on_lost(void *arg, uint32_t host, enum quoit_status status)
{
    struct quoit_guest *guest = arg;
    quoit_log(QUOIT_LOG_INFO, "the PE's own connection to host %u is lost: %s", host, quoit_status_text(status));
    guest->hosts[host] = (struct guest_host){.is_refused = true};
}

static void open_end(struct quoit_guest *guest)
{
    const struct quoit_self *self = guest->ring->engine.self;
    char problem[QUOIT_NET_PROBLEM_BYTES];
    const struct quoit_net_config config = {.driver = guest->contacts->network.driver,
                                            .provider = guest->contacts->network.provider,
                                            .device = guest->contacts->network.device,
                                            .is_guest = true,
                                            .host = self->host,
                                            .host_count = self->layout.job.host_count,
                                            .memory = guest->slots,
                                            .memory_bytes = (uint64_t)SLOT_COUNT * SLOT_BYTES,
                                            .on_done = on_done,
                                            .on_lost = on_lost,
                                            .arg = guest};
    enum quoit_status status = quoit_net_open(&config, &guest->net, problem);
    guest->state = status == QUOIT_OK ? GUEST_OPEN : GUEST_REFUSED;
    if (status != QUOIT_OK)
        quoit_log(QUOIT_LOG_INFO, "the PE has no end of its own on the network: %s", problem);
}

/* Under the lock. NULL: the host is not reached. */
static struct quoit_net_window *window_of(struct quoit_guest *guest, uint32_t host)
{
    struct guest_host *own = &guest->hosts[host];
    const struct quoit_contact *contact = &guest->contacts->hosts[host];
    if (guest->state == GUEST_CLOSED)
        open_end(guest);
    if (guest->state == GUEST_REFUSED || own->window || own->is_refused)
        return own->window;
    enum quoit_status status = quoit_net_connect(guest->net, host, &contact->address);
    if (status == QUOIT_OK)
        status = quoit_net_attach(guest->net, host, &contact->key, &own->window);
    if (status != QUOIT_OK)
        quoit_log(QUOIT_LOG_INFO, "the PE does not reach host %u by itself: %s", host, quoit_status_text(status));
    own->is_refused = status != QUOIT_OK;
    return own->window;
}

/* Operations */

static bool serves(struct quoit_guest *guest, uint64_t offset, size_t bytes)
{
    if (!guest || bytes == 0 || bytes > guest->bytes_max ||
        offset < guest->ring->engine.self->layout.segment_data)
        return false;
    uint32_t left_count = atomic_load_explicit(&guest->left_count, memory_order_relaxed);
    if (left_count == 0)
        return true;
    atomic_store_explicit(&guest->left_count, left_count - 1, memory_order_relaxed); /* threads may lose counts */
    return false;
}

#define NO_SLOT UINT32_MAX

/* NO_SLOT: none is free, or the host is not reached. */
static uint32_t take_slot(struct quoit_guest *guest, uint32_t host)
{
    uint32_t slot = NO_SLOT;
    pthread_mutex_lock(&guest->lock);
    if (window_of(guest, host) && guest->free_count > 0)
        slot = guest->free[--guest->free_count];
    pthread_mutex_unlock(&guest->lock);
    return slot;
}

static void free_slot(struct quoit_guest *guest, uint32_t slot)
{
    pthread_mutex_lock(&guest->lock);
    guest->free[guest->free_count++] = slot;
    pthread_mutex_unlock(&guest->lock);
}

/* False: not now. A network that is connecting has no room, and needs progress. */
static bool begin(struct quoit_guest *guest, const struct quoit_peer *peer, uint32_t slot)
{
    const struct quoit_layout *layout = &guest->ring->engine.self->layout;
    const struct guest_op *op = &guest->ops[slot];
    uint64_t offset = guest->contacts->hosts[peer->host].segments + peer->local * layout->segment_stride + op->offset;
    pthread_mutex_lock(&guest->lock);
    const struct quoit_net_window *window = guest->hosts[peer->host].window;
    const struct quoit_net_region *region = quoit_net_region(guest->net);
    enum quoit_status status = QUOIT_GONE;
    if (window && op->context)
        status = quoit_net_put(guest->net, window, offset, slot_of(guest, slot), region, op->bytes, slot);
    else if (window)
        status = quoit_net_get(guest->net, window, offset, slot_of(guest, slot), region, op->bytes, slot);
    if (status == QUOIT_OK)
        atomic_fetch_add_explicit(&guest->under_way_count, 1, memory_order_relaxed);
    else if (status == QUOIT_FULL)
        quoit_net_progress(guest->net);
    pthread_mutex_unlock(&guest->lock);
    return status == QUOIT_OK;
}

bool quoit_guest_put(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset, const void *source,
                     size_t bytes)
{
    struct quoit_ring_engine *ring = quoit_ring_engine_of(peer);
    struct quoit_guest *guest = ring->guest;
    /* One at a time: of a row of puts the others share requests, many a message. */
    if (!serves(guest, offset, bytes) || quoit_ring_context_is_fenced(&context->ring) ||
        atomic_load_explicit(&context->ring.guest_count, memory_order_relaxed) != 0)
        return false;
    uint32_t slot = take_slot(guest, peer->host);
    if (slot == NO_SLOT)
        return false;
    memcpy(slot_of(guest, slot), source, bytes);
    guest->ops[slot] =
        (struct guest_op){.context = context, .offset = offset, .bytes = (uint32_t)bytes, .pe = peer->pe};
    /* After the copy, whose faults may call quiet. */
    atomic_fetch_add_explicit(&context->ring.guest_count, 1, memory_order_relaxed);
    if (begin(guest, peer, slot)) {
        struct quoit_guest_count *counts = &ring->engine.self->shared->guest;
        count_one(&counts->put_count, &counts->put_bytes, bytes);
        return true;
    }
    atomic_fetch_sub_explicit(&context->ring.guest_count, 1, memory_order_relaxed);
    free_slot(guest, slot);
    return false;
}

/* The proxies watch every host, and end the job when one is lost. If none is, this connection alone broke. */
static void end_if_lost(const struct quoit_guest *guest)
{
    uint64_t limit_ns = LOST_LIMITS * guest->contacts->lost_limit_ns;
    if (guest->lost_ns == 0 || quoit_clock_now_ns() - guest->lost_ns < limit_ns)
        return;
    quoit_say("PE %u: its connection to the host of PE %u broke with a put under way; --network-direct no has none "
              "[Q0223]",
              guest->ring->engine.self->pe, guest->lost_pe);
    _exit(1);
}

/* The waits for operations see what the look of another thread, or their own in quoit_guest_progress(), has found. */
static bool get_is_done(void *arg)
{
    const struct guest_op *op = arg;
    return atomic_load_explicit(&op->state, memory_order_acquire) != OP_UNDER_WAY;
}

static bool puts_are_done(void *arg)
{
    const struct quoit_context *context = arg;
    return atomic_load_explicit(&context->ring.guest_count, memory_order_acquire) == 0;
}

bool quoit_guest_get(struct quoit_context *context, const struct quoit_peer *peer, void *destination, uint64_t offset,
                     size_t bytes)
{
    struct quoit_ring_engine *ring = quoit_ring_engine_of(peer);
    struct quoit_guest *guest = ring->guest;
    (void)context;
    if (!serves(guest, offset, bytes))
        return false;
    uint32_t slot = take_slot(guest, peer->host);
    if (slot == NO_SLOT)
        return false;
    struct guest_op *op = &guest->ops[slot];
    *op = (struct guest_op){.offset = offset, .bytes = (uint32_t)bytes, .pe = peer->pe};
    bool is_done = begin(guest, peer, slot);
    if (is_done) {
        quoit_self_wait_polling(ring->engine.self, get_is_done, op);
        is_done = atomic_load_explicit(&op->state, memory_order_acquire) == OP_DONE;
    }
    if (is_done) {
        struct quoit_guest_count *counts = &ring->engine.self->shared->guest;
        memcpy(destination, slot_of(guest, slot), bytes);
        count_one(&counts->get_count, &counts->get_bytes, bytes);
    }
    free_slot(guest, slot);
    return is_done;
}

void quoit_guest_complete(struct quoit_ring_engine *ring, struct quoit_context *context)
{
    if (atomic_load_explicit(&context->ring.guest_count, memory_order_acquire) == 0)
        return;
    quoit_self_wait_polling(ring->engine.self, puts_are_done, context);
    quoit_guest_progress(ring);
}

void quoit_guest_progress(struct quoit_ring_engine *ring)
{
    struct quoit_guest *guest = ring->guest;
    if (!guest)
        return;
    if (atomic_load_explicit(&guest->under_way_count, memory_order_relaxed) != 0 &&
        pthread_mutex_trylock(&guest->lock) == 0) {
        quoit_net_progress(guest->net);
        end_if_lost(guest);
        pthread_mutex_unlock(&guest->lock);
    }
    if (atomic_load_explicit(&guest->wake_count, memory_order_relaxed) != 0)
        send_wakes(guest, false);
}

void quoit_guest_finish(struct quoit_ring_engine *ring)
{
    struct quoit_guest *guest = ring->guest;
    if (!guest)
        return;
    send_wakes(guest, true);
    quoit_channel_wait64(ring, &guest->context.ring.outstanding_count);
}

/* Opening */

/* Adapters may write into it at any time, so a forked child must not share its pages. */
static char *make_slots(void)
{
    size_t bytes = (size_t)SLOT_COUNT * SLOT_BYTES;
    char *slots = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slots == MAP_FAILED)
        return NULL;
    if (madvise(slots, bytes, MADV_DONTFORK) == 0)
        return slots;
    munmap(slots, bytes);
    return NULL;
}

enum quoit_status quoit_guest_open(struct quoit_ring_engine *ring, enum quoit_guest_use use)
{
    struct quoit_self *self = ring->engine.self;
    const struct quoit_job_config *job = &self->layout.job;
    const struct quoit_contacts *contacts = quoit_memory_contacts(&self->layout, self->memory);
    if (!contacts || !contacts->is_told || use == QUOIT_GUEST_NO || (use == QUOIT_GUEST_AUTO && !contacts->is_rdma))
        return QUOIT_OK;
    struct quoit_guest *guest = calloc(1, sizeof *guest);
    if (!guest)
        return QUOIT_NO_MEMORY;
    ring->guest = guest;
    guest->ring = ring;
    guest->contacts = contacts;
    guest->bytes_max = job->chunk_bytes < SLOT_BYTES ? job->chunk_bytes : SLOT_BYTES;
    guest->left_count = use == QUOIT_GUEST_YES ? 0 : OPEN_AFTER;
    guest->first_wake = NO_PE;
    pthread_mutex_init(&guest->lock, NULL);
    while (guest->free_count < SLOT_COUNT) {
        guest->free[guest->free_count] = guest->free_count;
        guest->free_count++;
    }
    guest->hosts = calloc(job->host_count, sizeof *guest->hosts);
    guest->wakes = calloc(self->pe_count, sizeof *guest->wakes);
    guest->slots = make_slots();
    return guest->hosts && guest->wakes && guest->slots ? QUOIT_OK : QUOIT_NO_MEMORY;
}

void quoit_guest_close(struct quoit_ring_engine *ring)
{
    struct quoit_guest *guest = ring->guest;
    if (!guest)
        return;
    quoit_net_close(guest->net);
    if (guest->slots)
        munmap(guest->slots, (size_t)SLOT_COUNT * SLOT_BYTES);
    pthread_mutex_destroy(&guest->lock);
    free(guest->wakes);
    free(guest->hosts);
    free(guest);
    ring->guest = NULL;
}
