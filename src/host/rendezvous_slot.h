/* SPDX-License-Identifier: BSD-3-Clause */
/* rendezvous_slot.h - where the PEs of other hosts leave connection requests for a PE (net/sockets.h).
 *
 * In the runtime part of its segment, zeroed at start. A writer takes the next mail by an atomic addition to
 * taken_count, writes it, and sets is_there; one that gets no mail below QUOIT_MAILS writes none. The PE reads them in
 * order.
 */
#ifndef QUOIT_HOST_RENDEZVOUS_SLOT_H
#define QUOIT_HOST_RENDEZVOUS_SLOT_H

#include <stdatomic.h>
#include <stdint.h>

#include "net/sockets.h"

#define QUOIT_MAILS 63u

struct quoit_mail {
    struct quoit_connection_request connection_request;
    _Atomic uint64_t is_there;
    uint64_t unused;
};
_Static_assert(sizeof(struct quoit_mail) == 64, "a cache line");

struct quoit_rendezvous_slot {
    _Alignas(64) _Atomic uint64_t taken_count;
    _Alignas(64) struct quoit_mail mails[QUOIT_MAILS];
};

#endif
