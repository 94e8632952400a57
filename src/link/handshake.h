/* SPDX-License-Identifier: BSD-3-Clause */
/* handshake.h - the exchange of neighbours through the scratchpads while a link comes up. Private to link.
 *
 * As in the papers, neighbours exchange their host numbers and windows; here also a digest of what their clients must
 * agree on, so that two hosts that disagree never exchange a frame, and their progress in bringing up the link. Going
 * down wipes the scratchpads, so the exchange is repeated each time.
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

/* Doorbell bits of the writer that the other end may ring. */
struct quoit_handshake_bits {
    uint64_t client;  /* of the client */
    uint64_t control; /* one bit, of the service; 0: it has none */
};

/* Whose port is at the other end. 0: it has not said so. */
struct quoit_handshake_neighbour {
    uint32_t host; /* + 1 */
    uint32_t side; /* + 1 */
};

/* Introduces this host to the neighbour, before the first word. */
void quoit_handshake_introduce(struct quoit_port *port, uint32_t host, const struct quoit_client *client,
                               enum quoit_side side, struct quoit_handshake_bits bits);
/* Reads the neighbour's bits into *bits; those of its client must be unchanged if *bits has them (not 0). INVALID, with
 * a line logged: the neighbour is the wrong one or of another job, its bits have changed, or the port lacks them.
 * LINK_DOWN: the link has left `port_epoch`, so the scratchpads may have been wiped during the read. */
QUOIT_MUST_USE enum quoit_status quoit_handshake_check(struct quoit_port *port, uint32_t neighbour,
                                                       const struct quoit_client *client, enum quoit_side side,
                                                       uint32_t port_epoch, struct quoit_handshake_bits *bits_inout);
struct quoit_handshake_neighbour quoit_handshake_neighbour(struct quoit_port *port);
void quoit_handshake_write(struct quoit_port *port, struct quoit_handshake_word word);
/* The neighbour's current word. */
struct quoit_handshake_word quoit_handshake_read(struct quoit_port *port);

#endif
