/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/ring/pe_endpoint.h"
#include "base/assert.h"
#include "base/log.h"
#include "engine/ring/channel.h"
#include "engine/ring/context.h"
#include "env/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOT_COUNT 32u   /* operations under way */
#define DATA_BYTES 4096u /* of one: a larger one gains little */
#define SLOT_BYTES (QUOIT_FRAME_BYTES + DATA_BYTES)
#define FRAMES_MAX 16u     /* of a context, under way */
#define LOOK_EVERY 8u      /* looks of waits for other things, which make way for the proxy: each is a system call */
#define LOSS_NS    8000u   /* of an operation through the proxies; with so many as take the opening the end is opened */
#define WAKE_NS    200000u /* between two wakes of one PE: waits stay awake about so long before they sleep */
#define NO_PE      UINT32_MAX

/* OP_FRAME: the host's proxy executes it and acknowledges, OP_ASK: responds with a value. */
enum op_kind { OP_PUT, OP_GET, OP_FRAME, OP_ASK };
enum op_state { OP_UNDER_WAY, OP_DONE, OP_LOST };

/* An operation, by its slot, which is its cookie. */
struct pe_endpoint_op {
    enum op_kind kind;
    struct quoit_context *context; /* PUT, FRAME: who counts it */
    uint64_t offset;               /* PUT, GET: in the segment */
    uint32_t bytes;
    uint32_t pe;
    uint32_t host;
    uint32_t sequence;      /* FRAME: its acknowledgement */
    uint64_t value;         /* ASK: the response */
    _Atomic uint32_t state; /* enum op_state. Writer: who progresses; reader: who waits for a GET or ASK */
};

struct pe_endpoint_host {
    struct quoit_net_window *window; /* NULL: not connected, */
    bool is_refused;                 /* and never will be */
    uint32_t sent_sequence;          /* of frames that are acknowledged */
    bool is_patient;                 /* the last one's acknowledgement may wait for others */
};

/* The puts of which a PE is not told yet. */
struct pe_endpoint_wake {
    uint64_t from, to; /* in its segment */
    uint64_t due_ns;   /* no earlier than then; 0: none was sent yet */
    uint32_t next;     /* of those that wait */
    bool waits;
};

enum pe_endpoint_state { PE_ENDPOINT_CLOSED, PE_ENDPOINT_OPEN, PE_ENDPOINT_REFUSED };

struct quoit_pe_endpoint {
    struct quoit_ring_engine *ring;
    const struct quoit_contacts *contacts;
    uint32_t bytes_max;
    _Atomic uint32_t left_count;  /* operations until the end is opened */
    struct quoit_context context; /* of the wakes */
    _Atomic bool is_waking;       /* a thread sends them */
    _Atomic uint32_t look_count;
    _Atomic uint32_t under_way_count; /* operations. Writers: with the lock, */
    _Atomic uint32_t wake_count;      /* and PEs whose wake waits */
    pthread_mutex_t lock;             /* of all that follows */
    enum pe_endpoint_state state;
    struct quoit_net *net;
    struct pe_endpoint_host *hosts; /* [host_count] */
    char *slots;                    /* registered */
    struct pe_endpoint_op ops[SLOT_COUNT];
    uint32_t free[SLOT_COUNT];
    uint32_t free_count;
    struct pe_endpoint_wake *wakes; /* [pe_count] */
    uint32_t first_wake;            /* a list; NO_PE: none waits */
    uint64_t lost_ns;               /* when a put or frame was lost with its connection; 0: none was */
    uint32_t lost_pe;
};

static char *slot_of(const struct quoit_pe_endpoint *pe_endpoint, uint32_t slot)
{
    return pe_endpoint->slots + (size_t)slot * SLOT_BYTES;
}

static char *data_of(const struct quoit_pe_endpoint *pe_endpoint, uint32_t slot)
{
    return slot_of(pe_endpoint, slot) + QUOIT_FRAME_BYTES;
}

static void count_one(_Atomic uint64_t *count, _Atomic uint64_t *byte_count, uint64_t bytes)
{
    atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(byte_count, bytes, memory_order_relaxed);
}

/* Wakes */

/* Under the lock. Merges the range with what waits, if a request can name both: else the PE sees the one by itself. */
static void want_wake(struct quoit_pe_endpoint *pe_endpoint, uint32_t pe, uint64_t offset, uint32_t bytes)
{
    struct pe_endpoint_wake *wake = &pe_endpoint->wakes[pe];
    uint64_t from = offset, to = offset + bytes;
    if (wake->waits && wake->from < from)
        from = wake->from;
    if (wake->waits && wake->to > to)
        to = wake->to;
    if (to - from > pe_endpoint->bytes_max) {
        from = offset;
        to = offset + bytes;
    }
    wake->from = from;
    wake->to = to;
    if (wake->waits)
        return;
    wake->waits = true;
    wake->next = pe_endpoint->first_wake;
    pe_endpoint->first_wake = pe;
    atomic_fetch_add_explicit(&pe_endpoint->wake_count, 1, memory_order_relaxed);
}

/* Takes one that is due out of the list. NO_PE: none is. */
static uint32_t take_wake(struct quoit_pe_endpoint *pe_endpoint, bool is_last, uint64_t now_ns,
                          struct pe_endpoint_wake *wake_out)
{
    uint32_t *at = &pe_endpoint->first_wake, pe = NO_PE;
    pthread_mutex_lock(&pe_endpoint->lock);
    while (*at != NO_PE && !is_last && now_ns < pe_endpoint->wakes[*at].due_ns)
        at = &pe_endpoint->wakes[*at].next;
    if (*at != NO_PE) {
        struct pe_endpoint_wake *wake = &pe_endpoint->wakes[*at];
        pe = *at;
        *at = wake->next;
        wake->waits = false;
        wake->due_ns = now_ns + WAKE_NS;
        *wake_out = *wake;
        atomic_fetch_sub_explicit(&pe_endpoint->wake_count, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&pe_endpoint->lock);
    return pe;
}

static struct quoit_peer peer_of(const struct quoit_pe_endpoint *pe_endpoint, uint32_t pe)
{
    const struct quoit_job_config *job = &pe_endpoint->ring->engine.self->layout.job;
    uint16_t host = (uint16_t)quoit_job_config_host_of_pe(job, pe);
    return (struct quoit_peer){.engine = &pe_endpoint->ring->engine,
                               .of_engine = &pe_endpoint->ring->peers[pe],
                               .pe = pe,
                               .host = host,
                               .local = (uint16_t)(pe - quoit_job_config_first_pe(job, host))};
}

/* A put whose payload is there already: executed at the other host, it wakes the PE. */
static void send_wake(struct quoit_pe_endpoint *pe_endpoint, uint32_t pe, const struct pe_endpoint_wake *wake)
{
    const struct quoit_peer peer = peer_of(pe_endpoint, pe);
    struct quoit_slot slot;
    quoit_channel_take(&pe_endpoint->context, &peer, &slot);
    slot.request->frame.kind = QUOIT_FRAME_PUT;
    slot.request->frame.flags = QUOIT_FRAME_LANDED;
    slot.request->frame.offset = wake->from;
    slot.request->frame.bytes = (uint32_t)(wake->to - wake->from);
    quoit_channel_submit(pe_endpoint->ring, &slot);
}

/* Taking a request slot may wait, and a wait comes here. */
static void send_wakes(struct quoit_pe_endpoint *pe_endpoint, bool is_last)
{
    struct pe_endpoint_wake wake;
    uint32_t pe;
    if (atomic_exchange_explicit(&pe_endpoint->is_waking, true, memory_order_acquire))
        return;
    while ((pe = take_wake(pe_endpoint, is_last, quoit_clock_now_ns(), &wake)) != NO_PE)
        send_wake(pe_endpoint, pe, &wake);
    atomic_store_explicit(&pe_endpoint->is_waking, false, memory_order_release);
}

/* The end */

/* All of these within progress, under the lock. */

static void count_under_way(struct quoit_pe_endpoint *pe_endpoint, bool is_more)
{
    struct quoit_self *self = pe_endpoint->ring->engine.self;
    uint32_t difference = is_more ? 1 : UINT32_MAX;
    atomic_fetch_add_explicit(&pe_endpoint->under_way_count, difference, memory_order_relaxed);
    atomic_fetch_add_explicit(&self->shared->under_way_count, difference, memory_order_relaxed);
}

/* A put or frame stays under way: nobody knows whether it has arrived. */
static void be_lost(struct quoit_pe_endpoint *pe_endpoint, const struct pe_endpoint_op *op)
{
    pe_endpoint->lost_ns = pe_endpoint->lost_ns ? pe_endpoint->lost_ns : quoit_clock_now_ns();
    pe_endpoint->lost_pe = op->pe;
}

/* Somebody waits for it, and frees the slot. */
static void end_wait(struct quoit_pe_endpoint *pe_endpoint, struct pe_endpoint_op *op, enum op_state state)
{
    count_under_way(pe_endpoint, false);
    atomic_store_explicit(&op->state, state, memory_order_release); /* pairs with op_is_done() */
}

static _Atomic uint64_t *count_of(const struct pe_endpoint_op *op)
{
    struct quoit_ring_context *context = &op->context->ring;
    return op->kind == OP_PUT ? &context->pe_endpoint_put_count : &context->pe_endpoint_frame_count;
}

static void end_op(struct quoit_pe_endpoint *pe_endpoint, struct pe_endpoint_op *op)
{
    count_under_way(pe_endpoint, false);
    atomic_store_explicit(&op->state, OP_DONE, memory_order_relaxed);
    pe_endpoint->free[pe_endpoint->free_count++] = (uint32_t)(op - pe_endpoint->ops);
    atomic_fetch_sub_explicit(count_of(op), 1, memory_order_release);
}

static void on_done(void *arg, uint32_t host, uint64_t cookie, enum quoit_status status)
{
    struct quoit_pe_endpoint *pe_endpoint = arg;
    struct pe_endpoint_op *op = &pe_endpoint->ops[cookie];
    (void)host;
    if (op->kind == OP_GET) {
        end_wait(pe_endpoint, op, status == QUOIT_OK ? OP_DONE : OP_LOST);
    } else if (status != QUOIT_OK) {
        be_lost(pe_endpoint, op);
    } else {
        want_wake(pe_endpoint, op->pe, op->offset, op->bytes);
        end_op(pe_endpoint, op);
    }
}

static bool awaits(const struct pe_endpoint_op *op, enum op_kind kind, uint32_t host)
{
    return op->kind == kind && op->host == host &&
           atomic_load_explicit(&op->state, memory_order_relaxed) == OP_UNDER_WAY;
}

static void on_lost(void *arg, uint32_t host, enum quoit_status status)
{
    struct quoit_pe_endpoint *pe_endpoint = arg;
    quoit_log(QUOIT_LOG_INFO, "the PE's own connection to host %u is lost: %s", host, quoit_status_text(status));
    pe_endpoint->hosts[host] = (struct pe_endpoint_host){.is_refused = true};
    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++)
        if (awaits(&pe_endpoint->ops[slot], OP_FRAME, host) || awaits(&pe_endpoint->ops[slot], OP_ASK, host))
            be_lost(pe_endpoint, &pe_endpoint->ops[slot]);
}

static bool take_ack(struct quoit_pe_endpoint *pe_endpoint, uint32_t host, uint32_t sequence)
{
    if ((int32_t)(pe_endpoint->hosts[host].sent_sequence - sequence) < 0)
        return false;
    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        struct pe_endpoint_op *op = &pe_endpoint->ops[slot];
        if (awaits(op, OP_FRAME, host) && (int32_t)(sequence - op->sequence) >= 0)
            end_op(pe_endpoint, op);
    }
    return true;
}

static bool take_value(struct quoit_pe_endpoint *pe_endpoint, uint32_t host, const struct quoit_frame *frame)
{
    if (frame->token >= SLOT_COUNT || !awaits(&pe_endpoint->ops[frame->token], OP_ASK, host))
        return false;
    pe_endpoint->ops[frame->token].value = frame->operand;
    end_wait(pe_endpoint, &pe_endpoint->ops[frame->token], OP_DONE);
    return true;
}

/* What the proxy of the host responds. */
static void on_message(void *arg, uint32_t host, const void *message, uint32_t bytes)
{
    struct quoit_pe_endpoint *pe_endpoint = arg;
    struct quoit_frame frame;
    bool is_right = bytes % sizeof frame == 0;
    for (uint32_t at = 0; at < bytes && is_right; at += (uint32_t)sizeof frame) {
        memcpy(&frame, (const char *)message + at, sizeof frame);
        is_right = (frame.kind == QUOIT_FRAME_ACK && take_ack(pe_endpoint, host, frame.flow_sequence)) ||
                   (frame.kind == QUOIT_FRAME_VALUE && take_value(pe_endpoint, host, &frame));
    }
    if (!is_right)
        on_lost(pe_endpoint, host, QUOIT_INVALID);
}

static void open_end(struct quoit_pe_endpoint *pe_endpoint)
{
    const struct quoit_self *self = pe_endpoint->ring->engine.self;
    char problem[QUOIT_NET_PROBLEM_BYTES];
    const struct quoit_net_config config = {.driver = pe_endpoint->contacts->network.driver,
                                            .provider = pe_endpoint->contacts->network.provider,
                                            .device = pe_endpoint->contacts->network.device,
                                            .ports = pe_endpoint->contacts->ports,
                                            .is_pe_endpoint = true,
                                            .pe_endpoint = self->pe,
                                            .segment_bytes = pe_endpoint->contacts->segment_bytes,
                                            .tag = pe_endpoint->contacts->tag,
                                            .host = self->host,
                                            .host_count = self->layout.job.host_count,
                                            .memory = pe_endpoint->slots,
                                            .memory_bytes = (uint64_t)SLOT_COUNT * SLOT_BYTES,
                                            .on_done = on_done,
                                            .on_message = on_message,
                                            .on_lost = on_lost,
                                            .arg = pe_endpoint};
    enum quoit_status status = quoit_net_open(&config, &pe_endpoint->net, problem);
    pe_endpoint->state = status == QUOIT_OK ? PE_ENDPOINT_OPEN : PE_ENDPOINT_REFUSED;
    if (status != QUOIT_OK)
        quoit_log(QUOIT_LOG_INFO, "the PE has no end of its own on the network: %s", problem);
}

/* Under the lock. NULL: the host is not reached. */
static struct quoit_net_window *window_of(struct quoit_pe_endpoint *pe_endpoint, uint32_t host)
{
    struct pe_endpoint_host *own = &pe_endpoint->hosts[host];
    const struct quoit_contact *contact = &pe_endpoint->contacts->hosts[host];
    if (pe_endpoint->state == PE_ENDPOINT_CLOSED)
        open_end(pe_endpoint);
    if (pe_endpoint->state == PE_ENDPOINT_REFUSED || own->window || own->is_refused)
        return own->window;
    enum quoit_status status = quoit_net_connect(pe_endpoint->net, host, &contact->address);
    if (status == QUOIT_OK)
        status = quoit_net_attach(pe_endpoint->net, host, &contact->key, &own->window);
    if (status != QUOIT_OK)
        quoit_log(QUOIT_LOG_INFO, "the PE does not reach host %u by itself: %s", host, quoit_status_text(status));
    own->is_refused = status != QUOIT_OK;
    return own->window;
}

/* Operations */

/* NULL: there is none, or it does not serve the peer. Those of the own host are left to the proxy. */
static struct quoit_pe_endpoint *pe_endpoint_for(const struct quoit_peer *peer)
{
    const struct quoit_ring_peer *own = peer->of_engine;
    return own->is_loopback ? NULL : quoit_ring_engine_of(peer)->pe_endpoint;
}

static bool serves(struct quoit_pe_endpoint *pe_endpoint, uint64_t offset, size_t bytes, bool is_framed)
{
    if (!pe_endpoint || bytes > pe_endpoint->bytes_max ||
        offset < pe_endpoint->ring->engine.self->layout.segment_data ||
        (is_framed ? !pe_endpoint->contacts->takes_pe_endpoints : bytes == 0))
        return false;
    uint32_t left_count = atomic_load_explicit(&pe_endpoint->left_count, memory_order_relaxed);
    if (left_count == 0)
        return true;
    atomic_store_explicit(&pe_endpoint->left_count, left_count - 1, memory_order_relaxed); /* threads may lose counts */
    return false;
}

/* Whether nothing of the context, which the operation must not pass, is on its way through the own proxy. */
static bool is_alone(struct quoit_pe_endpoint *pe_endpoint, struct quoit_context *context)
{
    _Atomic uint64_t *outstanding_count = &context->ring.outstanding_count;
    if (atomic_load_explicit(outstanding_count, memory_order_acquire) != 0)
        quoit_channel_reap(pe_endpoint->ring);
    return atomic_load_explicit(outstanding_count, memory_order_acquire) == 0;
}

/* Puts go one at a time: of a row the others share requests, many a message. */
static bool has_room(struct quoit_pe_endpoint *pe_endpoint, struct quoit_context *context,
                     const struct quoit_frame *frame)
{
    uint32_t most = frame->kind == QUOIT_FRAME_PUT ? 1 : FRAMES_MAX;
    return atomic_load_explicit(&context->ring.pe_endpoint_put_count, memory_order_relaxed) +
                   atomic_load_explicit(&context->ring.pe_endpoint_frame_count, memory_order_relaxed) <
               most &&
           is_alone(pe_endpoint, context);
}

#define NO_SLOT UINT32_MAX

/* NO_SLOT: none is free, or the host is not reached. */
static uint32_t take_slot(struct quoit_pe_endpoint *pe_endpoint, const struct quoit_peer *peer, enum op_kind kind)
{
    uint32_t slot = NO_SLOT;
    pthread_mutex_lock(&pe_endpoint->lock);
    if (window_of(pe_endpoint, peer->host) && pe_endpoint->free_count > 0) {
        slot = pe_endpoint->free[--pe_endpoint->free_count];
        /* Not under way yet. */
        pe_endpoint->ops[slot] =
            (struct pe_endpoint_op){.kind = kind, .pe = peer->pe, .host = peer->host, .state = OP_DONE};
    }
    pthread_mutex_unlock(&pe_endpoint->lock);
    return slot;
}

static void free_slot(struct quoit_pe_endpoint *pe_endpoint, uint32_t slot)
{
    pthread_mutex_lock(&pe_endpoint->lock);
    pe_endpoint->free[pe_endpoint->free_count++] = slot;
    pthread_mutex_unlock(&pe_endpoint->lock);
}

/* Under the lock. */
static enum quoit_status send_frame(struct quoit_pe_endpoint *pe_endpoint, uint32_t slot)
{
    struct pe_endpoint_op *op = &pe_endpoint->ops[slot];
    struct pe_endpoint_host *host = &pe_endpoint->hosts[op->host];
    struct quoit_frame frame;
    memcpy(&frame, slot_of(pe_endpoint, slot), sizeof frame);
    uint32_t bytes = QUOIT_FRAME_BYTES + ((quoit_frame_payload_bytes(&frame) + 7) & ~7u);
    frame.flow_sequence = op->kind == OP_FRAME ? host->sent_sequence + 1 : 0;
    memcpy(slot_of(pe_endpoint, slot), &frame, sizeof frame);
    enum quoit_status status = quoit_net_send(pe_endpoint->net, op->host, slot_of(pe_endpoint, slot), bytes);
    if (status != QUOIT_OK)
        return status;
    struct quoit_pe_endpoint_count *counts = &pe_endpoint->ring->engine.self->shared->pe_endpoint;
    count_one(&counts->message_count, &counts->message_bytes, bytes);
    host->sent_sequence += op->kind == OP_FRAME;
    op->sequence = host->sent_sequence;
    host->is_patient = (frame.flags & QUOIT_FRAME_PATIENT) != 0;
    return QUOIT_OK;
}

/* False: not now. A network that is connecting has no room, and needs progress. */
static bool begin(struct quoit_pe_endpoint *pe_endpoint, const struct quoit_peer *peer, uint32_t slot)
{
    const struct quoit_layout *layout = &pe_endpoint->ring->engine.self->layout;
    struct pe_endpoint_op *op = &pe_endpoint->ops[slot];
    uint64_t offset =
        pe_endpoint->contacts->hosts[peer->host].segments + peer->local * layout->segment_stride + op->offset;
    pthread_mutex_lock(&pe_endpoint->lock);
    const struct quoit_net_window *window = pe_endpoint->hosts[peer->host].window;
    const struct quoit_net_region *region = quoit_net_region(pe_endpoint->net);
    enum quoit_status status = QUOIT_GONE;
    if (window && op->kind == OP_PUT)
        status = quoit_net_put(pe_endpoint->net, window, offset, data_of(pe_endpoint, slot), region, op->bytes, slot);
    else if (window && op->kind == OP_GET)
        status = quoit_net_get(pe_endpoint->net, window, offset, data_of(pe_endpoint, slot), region, op->bytes, slot);
    else if (window)
        status = send_frame(pe_endpoint, slot);
    if (status == QUOIT_OK) {
        atomic_store_explicit(&op->state, OP_UNDER_WAY, memory_order_relaxed);
        count_under_way(pe_endpoint, true);
    } else if (status == QUOIT_FULL) {
        quoit_net_progress(pe_endpoint->net);
    }
    pthread_mutex_unlock(&pe_endpoint->lock);
    return status == QUOIT_OK;
}

/* What the context counts until it has arrived. After the copy of its payload, whose faults may call quiet. */
static bool begin_counted(struct quoit_pe_endpoint *pe_endpoint, struct quoit_context *context,
                          const struct quoit_peer *peer, uint32_t slot)
{
    struct pe_endpoint_op *op = &pe_endpoint->ops[slot];
    op->context = context;
    atomic_fetch_add_explicit(count_of(op), 1, memory_order_relaxed);
    if (begin(pe_endpoint, peer, slot))
        return true;
    atomic_fetch_sub_explicit(count_of(op), 1, memory_order_relaxed);
    free_slot(pe_endpoint, slot);
    return false;
}

/* A slot with the frame in it, and room for its payload. */
static uint32_t take_frame(struct quoit_pe_endpoint *pe_endpoint, const struct quoit_peer *peer, enum op_kind kind,
                           struct quoit_frame frame)
{
    const struct quoit_self *self = pe_endpoint->ring->engine.self;
    uint32_t slot = take_slot(pe_endpoint, peer, kind), bytes = quoit_frame_payload_bytes(&frame);
    if (slot == NO_SLOT)
        return NO_SLOT;
    frame.source_host = (uint16_t)self->host;
    frame.source_pe = (uint16_t)self->local;
    frame.dest_host = peer->host;
    frame.dest_pe = peer->local;
    frame.token = slot;
    memcpy(slot_of(pe_endpoint, slot), &frame, sizeof frame);
    if (bytes > 0)
        memset(data_of(pe_endpoint, slot) + ((bytes - 1) & ~7u), 0, 8);
    return slot;
}

/* Puts, signals, and atomics without a result. */
static bool send_counted(struct quoit_context *context, const struct quoit_peer *peer, struct quoit_frame frame,
                         const void *payload)
{
    struct quoit_pe_endpoint *pe_endpoint = quoit_ring_engine_of(peer)->pe_endpoint;
    uint32_t bytes = quoit_frame_payload_bytes(&frame);
    uint64_t offset = frame.kind == QUOIT_FRAME_PUT_SIGNAL ? frame.operand2 : frame.offset;
    if (!serves(pe_endpoint, offset, bytes, true) || !has_room(pe_endpoint, context, &frame))
        return false;
    uint32_t slot = take_frame(pe_endpoint, peer, OP_FRAME, frame);
    if (slot == NO_SLOT)
        return false;
    if (payload)
        memcpy(data_of(pe_endpoint, slot), payload, bytes);
    return begin_counted(pe_endpoint, context, peer, slot);
}

bool quoit_pe_endpoint_put(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset,
                           const void *source, size_t bytes)
{
    struct quoit_ring_engine *ring = quoit_ring_engine_of(peer);
    struct quoit_pe_endpoint *pe_endpoint = pe_endpoint_for(peer);
    if (!pe_endpoint || bytes > pe_endpoint->bytes_max)
        return false;
    const struct quoit_frame frame = {.kind = QUOIT_FRAME_PUT, .offset = offset, .bytes = (uint32_t)bytes};
    if (!pe_endpoint->contacts->is_rdma)
        return send_counted(context, peer, frame, source);
    if (!serves(pe_endpoint, offset, bytes, false) || !has_room(pe_endpoint, context, &frame))
        return false;
    uint32_t slot = take_slot(pe_endpoint, peer, OP_PUT);
    if (slot == NO_SLOT)
        return false;
    memcpy(data_of(pe_endpoint, slot), source, bytes);
    pe_endpoint->ops[slot].offset = offset;
    pe_endpoint->ops[slot].bytes = (uint32_t)bytes;
    if (!begin_counted(pe_endpoint, context, peer, slot))
        return false;
    struct quoit_pe_endpoint_count *counts = &ring->engine.self->shared->pe_endpoint;
    count_one(&counts->put_count, &counts->put_bytes, bytes);
    return true;
}

bool quoit_pe_endpoint_put_signal(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset,
                                  const void *source, size_t bytes, const struct quoit_signal *signal)
{
    const struct quoit_pe_endpoint *pe_endpoint = pe_endpoint_for(peer);
    if (!pe_endpoint || bytes > pe_endpoint->bytes_max ||
        atomic_load_explicit(&context->ring.pe_endpoint_put_count, memory_order_relaxed) != 0) /* it follows them */
        return false;
    const struct quoit_frame frame = {.kind = QUOIT_FRAME_PUT_SIGNAL,
                                      .op = (uint8_t)signal->op,
                                      .size = 8,
                                      .flags = QUOIT_FRAME_PATIENT,
                                      .bytes = (uint32_t)bytes,
                                      .offset = offset,
                                      .operand = signal->value,
                                      .operand2 = signal->offset};
    return send_counted(context, peer, frame, bytes ? source : NULL);
}

/* Unless another thread looks. */
static void look(struct quoit_pe_endpoint *pe_endpoint)
{
    if (atomic_load_explicit(&pe_endpoint->under_way_count, memory_order_relaxed) == 0 ||
        pthread_mutex_trylock(&pe_endpoint->lock) != 0)
        return;
    quoit_net_progress(pe_endpoint->net);
    if (pe_endpoint->lost_ns)
        quoit_ring_end_if_lost(pe_endpoint->ring, pe_endpoint->lost_ns, pe_endpoint->contacts->notice_ns,
                               "the host of PE", pe_endpoint->lost_pe);
    pthread_mutex_unlock(&pe_endpoint->lock);
}

/* Waits for operations, which look each time. */

static bool op_is_done(const struct pe_endpoint_op *op)
{
    return atomic_load_explicit(&op->state, memory_order_acquire) != OP_UNDER_WAY;
}

static bool is_zero(const _Atomic uint64_t *count)
{
    return atomic_load_explicit(count, memory_order_acquire) == 0;
}

struct pe_endpoint_wait {
    struct quoit_pe_endpoint *pe_endpoint;
    const struct pe_endpoint_op *op; /* until it is done, or */
    const _Atomic uint64_t *count;   /* until it is 0, or, where both are NULL, until nothing is under way */
};

static bool has_ended(void *arg)
{
    const struct pe_endpoint_wait *wait = arg;
    look(wait->pe_endpoint);
    if (wait->op)
        return op_is_done(wait->op);
    return wait->count ? is_zero(wait->count)
                       : atomic_load_explicit(&wait->pe_endpoint->under_way_count, memory_order_acquire) == 0;
}

static void wait_until(struct pe_endpoint_wait wait)
{
    quoit_self_wait_polling(wait.pe_endpoint->ring->engine.self, has_ended, &wait);
}

static void wait_for_count(struct quoit_ring_engine *ring, const _Atomic uint64_t *count)
{
    if (!is_zero(count))
        wait_until((struct pe_endpoint_wait){.pe_endpoint = ring->pe_endpoint, .count = count});
}

/* The PE of the context's last frame whose acknowledgement may be waiting; NO_PE: there is none. */
static uint32_t patient_pe(struct quoit_pe_endpoint *pe_endpoint, const struct quoit_context *context)
{
    uint32_t pe = NO_PE;
    pthread_mutex_lock(&pe_endpoint->lock);
    for (uint32_t slot = 0; slot < SLOT_COUNT && pe == NO_PE; slot++) {
        const struct pe_endpoint_op *op = &pe_endpoint->ops[slot];
        if (awaits(op, OP_FRAME, op->host) && op->context == context && pe_endpoint->hosts[op->host].is_patient &&
            op->sequence == pe_endpoint->hosts[op->host].sent_sequence)
            pe = op->pe;
    }
    pthread_mutex_unlock(&pe_endpoint->lock);
    return pe;
}

/* A put without bytes, whose acknowledgement is that of all before it. If it finds no room, theirs come later. */
static void hurry(struct quoit_pe_endpoint *pe_endpoint, struct quoit_context *context)
{
    uint32_t pe;
    while ((pe = patient_pe(pe_endpoint, context)) != NO_PE) {
        const struct quoit_peer peer = peer_of(pe_endpoint, pe);
        uint32_t slot = take_frame(pe_endpoint, &peer, OP_FRAME, (struct quoit_frame){.kind = QUOIT_FRAME_PUT});
        if (slot == NO_SLOT || !begin_counted(pe_endpoint, context, &peer, slot))
            return;
    }
}

void quoit_pe_endpoint_keep_order(struct quoit_ring_engine *ring, struct quoit_context *context)
{
    if (is_zero(&context->ring.pe_endpoint_frame_count))
        return;
    hurry(ring->pe_endpoint, context);
    wait_for_count(ring, &context->ring.pe_endpoint_frame_count);
}

/* Returns whether the response has come; false: it was not asked for, or is lost. */
static bool ask(struct quoit_pe_endpoint *pe_endpoint, const struct quoit_peer *peer, uint32_t slot)
{
    struct pe_endpoint_op *op = &pe_endpoint->ops[slot];
    if (!begin(pe_endpoint, peer, slot))
        return false;
    wait_until((struct pe_endpoint_wait){.pe_endpoint = pe_endpoint, .op = op});
    return atomic_load_explicit(&op->state, memory_order_acquire) == OP_DONE;
}

bool quoit_pe_endpoint_get(struct quoit_context *context, const struct quoit_peer *peer, void *destination,
                           uint64_t offset, size_t bytes)
{
    struct quoit_ring_engine *ring = quoit_ring_engine_of(peer);
    struct quoit_pe_endpoint *pe_endpoint = pe_endpoint_for(peer);
    (void)context;
    if (!serves(pe_endpoint, offset, bytes, false))
        return false;
    uint32_t slot = take_slot(pe_endpoint, peer, OP_GET);
    if (slot == NO_SLOT)
        return false;
    pe_endpoint->ops[slot].offset = offset;
    pe_endpoint->ops[slot].bytes = (uint32_t)bytes;
    bool is_done = ask(pe_endpoint, peer, slot);
    if (is_done) {
        struct quoit_pe_endpoint_count *counts = &ring->engine.self->shared->pe_endpoint;
        memcpy(destination, data_of(pe_endpoint, slot), bytes);
        count_one(&counts->get_count, &counts->get_bytes, bytes);
    }
    free_slot(pe_endpoint, slot);
    return is_done;
}

bool quoit_pe_endpoint_amo(struct quoit_context *context, const struct quoit_peer *peer,
                           const struct quoit_atomic *atomic, void *result_out)
{
    struct quoit_pe_endpoint *pe_endpoint = quoit_ring_engine_of(peer)->pe_endpoint;
    const struct quoit_frame frame = {.kind = result_out ? QUOIT_FRAME_AMO_FETCH : QUOIT_FRAME_AMO,
                                      .op = (uint8_t)atomic->op,
                                      .size = (uint8_t)atomic->size,
                                      .offset = atomic->offset,
                                      .operand = atomic->operand,
                                      .operand2 = atomic->compare};
    if (!result_out)
        return send_counted(context, peer, frame, NULL);
    if (!serves(pe_endpoint, atomic->offset, 0, true) || !is_alone(pe_endpoint, context))
        return false;
    uint32_t slot = take_frame(pe_endpoint, peer, OP_ASK, frame);
    if (slot == NO_SLOT)
        return false;
    bool is_done = ask(pe_endpoint, peer, slot);
    if (is_done)
        memcpy(result_out, &pe_endpoint->ops[slot].value, atomic->size); /* little-endian */
    free_slot(pe_endpoint, slot);
    return is_done;
}

/* And sends the wakes that are due. */
static void complete_puts(struct quoit_ring_engine *ring, struct quoit_context *context)
{
    if (is_zero(&context->ring.pe_endpoint_put_count))
        return;
    wait_for_count(ring, &context->ring.pe_endpoint_put_count);
    quoit_pe_endpoint_progress(ring);
}

void quoit_pe_endpoint_fence(struct quoit_ring_engine *ring, struct quoit_context *context)
{
    struct quoit_ring_context *own = &context->ring;
    complete_puts(ring, context);
    if (!is_zero(&own->pe_endpoint_frame_count))
        look(ring->pe_endpoint);
    if (is_zero(&own->pe_endpoint_frame_count))
        return;
    /* pairs with quoit_pe_endpoint_keep_fence() */
    atomic_store_explicit(&own->pe_endpoint_mark, quoit_ring_context_new_mark(own), memory_order_release);
}

void quoit_pe_endpoint_keep_fence(struct quoit_ring_engine *ring, struct quoit_context *context)
{
    uint32_t mark = atomic_load_explicit(&context->ring.pe_endpoint_mark, memory_order_acquire);
    if (mark == 0)
        return;
    quoit_pe_endpoint_keep_order(ring, context);
    atomic_compare_exchange_strong_explicit(&context->ring.pe_endpoint_mark, &mark, 0, memory_order_relaxed,
                                            memory_order_relaxed);
}

void quoit_pe_endpoint_complete(struct quoit_ring_engine *ring, struct quoit_context *context)
{
    quoit_pe_endpoint_keep_order(ring, context);
    complete_puts(ring, context);
}

void quoit_pe_endpoint_progress(struct quoit_ring_engine *ring)
{
    struct quoit_pe_endpoint *pe_endpoint = ring->pe_endpoint;
    if (!pe_endpoint)
        return;
    if (atomic_load_explicit(&pe_endpoint->under_way_count, memory_order_relaxed) != 0 &&
        atomic_fetch_add_explicit(&pe_endpoint->look_count, 1, memory_order_relaxed) % LOOK_EVERY == 0)
        look(pe_endpoint);
    if (atomic_load_explicit(&pe_endpoint->wake_count, memory_order_relaxed) != 0)
        send_wakes(pe_endpoint, false);
}

void quoit_pe_endpoint_finish(struct quoit_ring_engine *ring)
{
    struct quoit_pe_endpoint *pe_endpoint = ring->pe_endpoint;
    if (!pe_endpoint)
        return;
    wait_until((struct pe_endpoint_wait){.pe_endpoint = pe_endpoint});
    send_wakes(pe_endpoint, true);
    quoit_channel_wait64(ring, &pe_endpoint->context.ring.outstanding_count);
}

/* Opening */

/* Adapters may write into it at any time, so a forked child must not share its pages. NULL with errno. */
static char *make_slots(void)
{
    size_t bytes = (size_t)SLOT_COUNT * SLOT_BYTES;
    char *slots = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slots == MAP_FAILED)
        return NULL;
    if (madvise(slots, bytes, MADV_DONTFORK) == 0)
        return slots;
    int error = errno;
    munmap(slots, bytes);
    errno = error;
    return NULL;
}

void quoit_pe_endpoint_close(struct quoit_ring_engine *ring)
{
    struct quoit_pe_endpoint *pe_endpoint = ring->pe_endpoint;
    if (!pe_endpoint)
        return;
    quoit_net_close(pe_endpoint->net);
    if (pe_endpoint->slots)
        munmap(pe_endpoint->slots, (size_t)SLOT_COUNT * SLOT_BYTES);
    pthread_mutex_destroy(&pe_endpoint->lock);
    free(pe_endpoint->wakes);
    free(pe_endpoint->hosts);
    free(pe_endpoint);
    ring->pe_endpoint = NULL;
}

enum quoit_status quoit_pe_endpoint_open(struct quoit_ring_engine *ring, enum quoit_pe_endpoint_use use)
{
    struct quoit_self *self = ring->engine.self;
    const struct quoit_job_config *job = &self->layout.job;
    const struct quoit_contacts *contacts = quoit_memory_contacts(&self->layout, self->memory);
    if (!contacts || !contacts->is_told || use == QUOIT_PE_ENDPOINT_NO ||
        (!contacts->is_rdma && !contacts->takes_pe_endpoints))
        return QUOIT_OK;
    struct quoit_pe_endpoint *pe_endpoint = calloc(1, sizeof *pe_endpoint);
    if (!pe_endpoint)
        return QUOIT_NO_MEMORY;
    ring->pe_endpoint = pe_endpoint;
    pe_endpoint->ring = ring;
    pe_endpoint->contacts = contacts;
    pe_endpoint->bytes_max = job->chunk_bytes < DATA_BYTES ? job->chunk_bytes : DATA_BYTES;
    pe_endpoint->left_count = use == QUOIT_PE_ENDPOINT_YES ? 0 : (uint32_t)(contacts->opening_ns / LOSS_NS);
    pe_endpoint->first_wake = NO_PE;
    pthread_mutex_init(&pe_endpoint->lock, NULL);
    while (pe_endpoint->free_count < SLOT_COUNT) {
        pe_endpoint->free[pe_endpoint->free_count] = pe_endpoint->free_count;
        pe_endpoint->free_count++;
    }
    pe_endpoint->hosts = calloc(job->host_count, sizeof *pe_endpoint->hosts);
    pe_endpoint->wakes = calloc(self->pe_count, sizeof *pe_endpoint->wakes);
    pe_endpoint->slots = make_slots();
    if (pe_endpoint->hosts && pe_endpoint->wakes && pe_endpoint->slots)
        return QUOIT_OK;
    if (errno == ENOMEM)
        return QUOIT_NO_MEMORY;
    quoit_log(QUOIT_LOG_INFO, "madvise: %s; operations go through the proxy", strerror(errno));
    quoit_pe_endpoint_close(ring);
    return QUOIT_OK;
}
