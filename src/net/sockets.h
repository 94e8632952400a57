/* SPDX-License-Identifier: BSD-3-Clause */
/* sockets.h - TCP connections between processes of a job on different hosts, for messages into memory.
 *
 * What it is: a message is payload for an offset of the receiver's memory and a word there, the flag, that is stored
 * behind it. Both ends of a connection send. No thread and no other process takes part: what has come is received when
 * the receiver looks, so a message is for one that waits for it.
 *
 * Connecting: one end invites: it listens, and the caller carries the connection request to the other one, which joins.
 * If both invite, the connection request of the lower number is taken. A connection request that is not taken costs
 * nothing but a port. Order: messages of a connection are received in the order in which they were sent. Loss: a
 * connection that breaks is LOST for good, and nobody knows what of the last messages was received. The end of the
 * other process breaks it too, after all that it had sent. Who is alive is for others to watch. Trust: who connects and
 * does not show the token of a connection request within a second is dropped. A message for an offset beyond the memory
 * breaks its connection.
 *
 * Threads: one at a time.
 */
#ifndef QUOIT_NET_SOCKETS_H
#define QUOIT_NET_SOCKETS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "net/places.h"
#include "net/ports.h"

#define QUOIT_SOCKETS_TOKEN_BYTES 16u
#define QUOIT_SOCKETS_NO_FLAG     UINT64_MAX

struct pollfd;
struct quoit_sockets;

struct quoit_sockets_config {
    struct quoit_net_place place;          /* where others can call; its port is not used */
    struct quoit_ports ports;              /* at one of which it listens */
    const _Atomic uint32_t *segment_bytes; /* that a packet carries at most; NULL, 0: no limit is known */
    uint32_t self;                         /* number of this process, */
    uint32_t count;                        /* of so many */
    char *memory;                          /* what messages write to; it stays mapped until close */
    uint64_t memory_bytes;
};

/* What the other process needs to connect; opaque to the caller. */
struct quoit_connection_request {
    uint32_t from;
    struct quoit_wire_address address;
    uint8_t token[QUOIT_SOCKETS_TOKEN_BYTES];
};

enum quoit_socket_state {
    QUOIT_SOCKET_NONE,
    QUOIT_SOCKET_INVITED,
    QUOIT_SOCKET_JOINING,
    QUOIT_SOCKET_OPEN,
    QUOIT_SOCKET_LOST
};

struct quoit_socket_message {
    uint64_t offset;
    const void *source; /* it stays unchanged until the message is sent */
    uint64_t bytes;
    uint64_t flag; /* its offset, a multiple of 8; QUOIT_SOCKETS_NO_FLAG: none */
    uint64_t value;
    uint64_t sent_bytes; /* 0; of header and payload, kept by quoit_sockets_send() */
};

/* UNSUPPORTED: the place has no address. */
QUOIT_MUST_USE enum quoit_status quoit_sockets_open(const struct quoit_sockets_config *config,
                                                    struct quoit_sockets **sockets_out);
/* NULL is allowed. What was sent is delivered all the same. */
void quoit_sockets_close(struct quoit_sockets *sockets);

/* A connection request for `peer`. SYSTEM: no port or descriptor is left. */
QUOIT_MUST_USE enum quoit_status quoit_sockets_invite(struct quoit_sockets *sockets, uint32_t peer,
                                                      struct quoit_connection_request *connection_request_out);
/* Begins to connect. INVALID: these bytes are no connection request to this process. SYSTEM: it cannot connect. */
QUOIT_MUST_USE enum quoit_status quoit_sockets_join(struct quoit_sockets *sockets,
                                                    const struct quoit_connection_request *connection_request);
enum quoit_socket_state quoit_sockets_state(const struct quoit_sockets *sockets, uint32_t peer);
/* Whether something may come. */
bool quoit_sockets_has_any(const struct quoit_sockets *sockets);

/* Hands the message, or more of it, to the kernel. FULL: not all yet: the same message again, and no other, after a
 * look; the other process may be waiting for this one to receive. GONE: the connection is not open. */
QUOIT_MUST_USE enum quoit_status quoit_sockets_send(struct quoit_sockets *sockets, uint32_t peer,
                                                    struct quoit_socket_message *message);
/* Receives what has come. Returns how many flags were stored. */
uint32_t quoit_sockets_look(struct quoit_sockets *sockets);
/* For poll(2), up to two: readable when an open connection has something to receive, writable when a message to the
 * peer that was FULL may go on. Returns how many; 0: there is no open connection with the peer. */
uint32_t quoit_sockets_poll(const struct quoit_sockets *sockets, uint32_t peer, struct pollfd *fds_out);

#endif
