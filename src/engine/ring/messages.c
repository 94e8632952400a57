/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/ring/messages.h"
#include "base/log.h"
#include "engine/ring/channel.h"
#include "env/clock.h"
#include "host/rendezvous_slot.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SENDS_BEFORE                                                                                                   \
    32u /* through the proxies, to a PE before it is invited: what they lose makes up for connecting                   \
         */

struct quoit_messages {
    struct quoit_ring_engine *ring;
    uint64_t notice_ns;
    struct quoit_context context; /* of connection requests */
    _Atomic uint32_t read_count;  /* mails */
    _Atomic bool has_any;         /* something may come by a connection */
    pthread_mutex_t lock;         /* of all that follows */
    struct quoit_sockets *sockets;
    uint64_t lost_ns;      /* when one was found broken that a message needs; 0: none was */
    uint32_t *left_counts; /* [pe_count]; sends until the PE is invited */
};

static struct quoit_rendezvous_slot *own_rendezvous_slot(const struct quoit_self *self)
{
    return (struct quoit_rendezvous_slot *)(void *)(self->segment + quoit_layout_rendezvous_slot());
}

/* Opening */

static bool is_tcp(const struct quoit_contacts *contacts)
{
    return contacts && contacts->is_told && !contacts->is_rdma && strncmp(contacts->network.provider, "tcp", 3) == 0;
}

enum quoit_status quoit_messages_open(struct quoit_ring_engine *ring, enum quoit_pe_endpoint_use use)
{
    const struct quoit_self *self = ring->engine.self;
    const struct quoit_contacts *contacts = quoit_memory_contacts(&self->layout, self->memory);
    struct quoit_ports ports;
    if (use == QUOIT_PE_ENDPOINT_NO || !is_tcp(contacts) || quoit_contacts_pe_endpoint_count(&self->layout.job) == 0 ||
        !quoit_ports_read(contacts->ports, &ports))
        return QUOIT_OK;
    struct quoit_messages *messages = calloc(1, sizeof *messages);
    if (!messages)
        return QUOIT_NO_MEMORY;
    ring->messages = messages;
    messages->ring = ring;
    messages->notice_ns = contacts->notice_ns;
    pthread_mutex_init(&messages->lock, NULL);
    messages->left_counts = calloc(self->pe_count, sizeof *messages->left_counts);
    if (!messages->left_counts)
        return QUOIT_NO_MEMORY;
    for (uint32_t pe = 0; pe < self->pe_count && use == QUOIT_PE_ENDPOINT_AUTO; pe++)
        messages->left_counts[pe] = SENDS_BEFORE;
    const struct quoit_sockets_config config = {.place = contacts->place,
                                                .ports = ports,
                                                .segment_bytes = &contacts->segment_bytes,
                                                .self = self->pe,
                                                .count = self->pe_count,
                                                .memory = self->segment,
                                                .memory_bytes = self->layout.segment_stride};
    enum quoit_status status = quoit_sockets_open(&config, &messages->sockets);
    if (status != QUOIT_OK)
        quoit_messages_close(ring);
    return status == QUOIT_NO_MEMORY ? status : QUOIT_OK;
}

void quoit_messages_close(struct quoit_ring_engine *ring)
{
    struct quoit_messages *messages = ring->messages;
    if (!messages)
        return;
    quoit_sockets_close(messages->sockets);
    pthread_mutex_destroy(&messages->lock);
    free(messages->left_counts);
    free(messages);
    ring->messages = NULL;
}

void quoit_messages_finish(struct quoit_ring_engine *ring)
{
    if (ring->messages)
        quoit_channel_wait64(ring, &ring->messages->context.ring.outstanding_count);
}

/* Connecting */

/* With the lock not held: this waits for the proxies. */
static void deliver(struct quoit_messages *messages, const struct quoit_peer *peer,
                    const struct quoit_connection_request *connection_request)
{
    const uint64_t rendezvous_slot = quoit_layout_rendezvous_slot();
    const struct quoit_atomic take = {.op = QUOIT_AMO_ADD,
                                      .size = 8,
                                      .offset = rendezvous_slot + offsetof(struct quoit_rendezvous_slot, taken_count),
                                      .operand = 1};
    uint64_t index = 0;
    quoit_relayed_amo(&messages->context, peer, &take, &index, false);
    if (index >= QUOIT_MAILS)
        return;
    uint64_t mail = rendezvous_slot + offsetof(struct quoit_rendezvous_slot, mails) + index * sizeof(struct quoit_mail);
    const struct quoit_signal is_there = {
        .offset = mail + offsetof(struct quoit_mail, is_there), .value = 1, .op = QUOIT_AMO_SET};
    quoit_relayed_put_signal(&messages->context, peer, mail + offsetof(struct quoit_mail, connection_request),
                             connection_request, sizeof *connection_request, &is_there, false);
}

static void read_mails(struct quoit_messages *messages)
{
    const struct quoit_rendezvous_slot *rendezvous_slot = own_rendezvous_slot(messages->ring->engine.self);
    uint32_t read_count = atomic_load_explicit(&messages->read_count, memory_order_relaxed);
    for (; read_count < QUOIT_MAILS; read_count++) {
        const struct quoit_mail *mail = &rendezvous_slot->mails[read_count];
        if (atomic_load_explicit(&mail->is_there, memory_order_acquire) == 0)
            break;
        enum quoit_status status = quoit_sockets_join(messages->sockets, &mail->connection_request);
        if (status != QUOIT_OK)
            quoit_log(QUOIT_LOG_INFO, "a connection request of PE %u leads nowhere: %s", mail->connection_request.from,
                      quoit_status_text(status));
    }
    atomic_store_explicit(&messages->read_count, read_count, memory_order_relaxed);
}

static bool has_mail(const struct quoit_messages *messages)
{
    uint32_t read_count = atomic_load_explicit(&messages->read_count, memory_order_relaxed);
    const struct quoit_rendezvous_slot *rendezvous_slot = own_rendezvous_slot(messages->ring->engine.self);
    return read_count < QUOIT_MAILS &&
           atomic_load_explicit(&rendezvous_slot->mails[read_count].is_there, memory_order_relaxed) != 0;
}

/* Under the lock. */
static void look(struct quoit_messages *messages)
{
    if (has_mail(messages))
        read_mails(messages);
    if (quoit_sockets_look(messages->sockets) != 0)
        quoit_park_wake(messages->ring->engine.self->waiter.park); /* another thread may wait for it */
    atomic_store_explicit(&messages->has_any, quoit_sockets_has_any(messages->sockets), memory_order_relaxed);
}

void quoit_messages_receive(struct quoit_ring_engine *ring)
{
    struct quoit_messages *messages = ring->messages;
    if (!messages || (!atomic_load_explicit(&messages->has_any, memory_order_relaxed) && !has_mail(messages)) ||
        pthread_mutex_trylock(&messages->lock) != 0)
        return;
    look(messages);
    pthread_mutex_unlock(&messages->lock);
}

bool quoit_messages_await(const struct quoit_peer *peer, uint64_t limit_ns)
{
    struct quoit_messages *messages = quoit_ring_engine_of(peer)->messages;
    if (!messages)
        return false;
    struct pollfd fds[2];
    pthread_mutex_lock(&messages->lock);
    uint32_t count = quoit_sockets_poll(messages->sockets, peer->pe, fds);
    pthread_mutex_unlock(&messages->lock);
    const struct timespec limit = {.tv_sec = (time_t)(limit_ns / 1000000000), .tv_nsec = (long)(limit_ns % 1000000000)};
    if (count > 0)
        (void)ppoll(fds, count, &limit, NULL);
    return count > 0;
}

/* Sending */

/* Whether the message may go by a connection. One that is lost is as good: nobody knows what has arrived. */
static bool is_connected(struct quoit_messages *messages, const struct quoit_peer *peer)
{
    struct quoit_connection_request connection_request;
    bool invites = false;
    pthread_mutex_lock(&messages->lock);
    enum quoit_socket_state state = quoit_sockets_state(messages->sockets, peer->pe);
    if (state == QUOIT_SOCKET_NONE && messages->left_counts[peer->pe] > 0) {
        messages->left_counts[peer->pe]--;
    } else if (state == QUOIT_SOCKET_NONE) {
        invites = quoit_sockets_invite(messages->sockets, peer->pe, &connection_request) == QUOIT_OK;
        atomic_store_explicit(&messages->has_any, true, memory_order_relaxed);
    }
    pthread_mutex_unlock(&messages->lock);
    if (invites)
        deliver(messages, peer, &connection_request);
    return state == QUOIT_SOCKET_OPEN;
}

struct sending {
    struct quoit_messages *messages;
    const struct quoit_peer *peer;
    struct quoit_socket_message message;
};

/* The other PE may itself be sending, and receive only what fits meanwhile: so this one looks too. */
static bool has_sent(void *arg)
{
    struct sending *sending = arg;
    struct quoit_messages *messages = sending->messages;
    pthread_mutex_lock(&messages->lock);
    enum quoit_status status = quoit_sockets_send(messages->sockets, sending->peer->pe, &sending->message);
    if (status == QUOIT_GONE) {
        messages->lost_ns = messages->lost_ns ? messages->lost_ns : quoit_clock_now_ns();
        quoit_ring_end_if_lost(messages->ring, messages->lost_ns, messages->notice_ns, "PE", sending->peer->pe);
    }
    if (status != QUOIT_OK)
        look(messages);
    pthread_mutex_unlock(&messages->lock);
    return status == QUOIT_OK;
}

bool quoit_messages_send(struct quoit_context *context, const struct quoit_peer *peer,
                         const struct quoit_message *message, bool *is_direct)
{
    struct quoit_ring_engine *ring = quoit_ring_engine_of(peer);
    struct quoit_messages *messages = ring->messages;
    if (!messages || (!*is_direct && !is_connected(messages, peer)))
        return false;
    if (!*is_direct)
        ring->engine.ops->quiet(&ring->engine, context);
    *is_direct = true;
    struct sending sending = {.messages = messages,
                              .peer = peer,
                              .message = {.offset = message->offset,
                                          .source = message->source,
                                          .bytes = message->bytes,
                                          .flag = message->has_flag ? message->flag : QUOIT_SOCKETS_NO_FLAG,
                                          .value = message->value}};
    if (!has_sent(&sending)) {
        _Atomic uint32_t *under_way_count = &ring->engine.self->shared->under_way_count;
        atomic_fetch_add_explicit(under_way_count, 1, memory_order_relaxed);
        quoit_self_wait_message(ring->engine.self, has_sent, &sending, NULL, 0, peer);
        atomic_fetch_sub_explicit(under_way_count, 1, memory_order_relaxed);
    }
    struct quoit_pe_endpoint_count *counts = &ring->engine.self->shared->pe_endpoint;
    atomic_fetch_add_explicit(&counts->message_count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&counts->message_bytes, message->bytes, memory_order_relaxed);
    return true;
}
