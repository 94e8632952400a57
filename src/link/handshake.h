/* SPDX-License-Identifier: BSD-3-Clause */
/* handshake.h - what neighbours tell each other through the scratchpads while a link comes up. Private to link.
 *
 * As in the papers, the neighbours tell each other who they are and what windows they have; here also a digest of what
 * their clients must agree on, so that two hosts that disagree never exchange a frame, and how far they are in bringing
 * up the link. Scratchpads are wiped when a link goes down, so all of it is told again.
 */
#ifndef QUOIT_LINK_HANDSHAKE_H
#define QUOIT_LINK_HANDSHAKE_H

#include "link/service.h"

/* The writer's progress: none, or a kind and the epoch of the link. */
enum quoit_handshake_kind { QUOIT_HANDSHAKE_NONE, QUOIT_HANDSHAKE_PROPOSED, QUOIT_HANDSHAKE_CLEAN };
struct quoit_handshake_word {
    enum quoit_handshake_kind kind;
    uint32_t epoch;
};

/* Doorbell bits by which the other end may ring. */
struct quoit_handshake_bits {
    uint64_t client;  /* of the client of the windows */
    uint64_t control; /* one bit, of the service; 0: it has none */
};

/* Introduces this host to the neighbour, before the first word. */
void quoit_handshake_introduce(struct quoit_port *port, uint32_t host, const struct quoit_client *client,
                               enum quoit_side side, struct quoit_handshake_bits bits);
/* Takes the neighbour's bits; those of its client are what they were, unless they were 0. INVALID, with a line logged:
 * the neighbour that has introduced itself is the wrong one or of another job, or names other bits than those, or such
 * as the port has not. LINK_DOWN: the link has left `port_epoch`, so what was read may have been wiped in the middle
 * and says nothing. */
QUOIT_MUST_USE enum quoit_status quoit_handshake_check(struct quoit_port *port, uint32_t neighbour,
                                                       const struct quoit_client *client, enum quoit_side side,
                                                       uint32_t port_epoch, struct quoit_handshake_bits *bits_inout);
void quoit_handshake_write(struct quoit_port *port, struct quoit_handshake_word word);
/* The neighbour's latest word. */
struct quoit_handshake_word quoit_handshake_read(struct quoit_port *port);

#endif
