/* SPDX-License-Identifier: BSD-3-Clause */
/* service.h - the ring service of a host: owns its two ports, brings the links up, and up again after each loss.
 *
 * What it is: the ports, the scratchpad exchange with the neighbours, the state of both links (state.h), and the leases
 * of window ranges and doorbell bits. It may outlive jobs: a client (the proxy of a job; later an Ethernet device)
 * attaches with what it wants of the ports, and detaches. The service knows nothing of requests, PEs or lanes.
 *
 * A side walks through the states of state.h; the clients follow and it waits for them, never they for it:
 * UP -> DRAINING (the port went down; each client is told, and answers that it writes nothing more and looks at
 * nothing) -> ABSENT -> PROPOSED (the own opening is bound to the new port epoch; we told the neighbour that we are
 * down and propose an epoch of the link) -> CLEAN (the neighbour said the same, so nobody writes: the slots were
 * cleaned, the windows offered) -> UP. A link that goes down again on the way goes back to ABSENT. What was told is
 * wiped with it and the opening is bound, so no word of an earlier attempt is ever taken for one of this.
 *
 * An end goes down only when its own port shows a new epoch or no link, which both ends see, never because the other
 * end was heard to be down: the other way round it would go down alone when the word is older than the link.
 *
 * Leases: each doorbell bit has one client, and each window one client and one range of memory. A client that asks for
 * what is taken is refused (FULL) and nothing is changed. What a client leaves behind is taken back: its windows are
 * closed, its bits masked, and the neighbours see the link go down.
 *
 * Doorbell bits: a client says how many it needs, and the service finds them in what each port has (any mask, see
 * port.h) and what is free, from the lowest on. The two ends of a link may find different ones. Each tells the other
 * the mask of its client of the windows, which the record publishes; what each bit of a mask means is the clients'
 * affair. One bit, the highest, is the service's own while no client needs it: by it the neighbour's service tells that
 * it has written to the scratchpads. Without it the service looks every 100 us while a link comes up.
 *
 * Threads: open, attach, start, detach and close belong to one thread at a time, and while manage() runs to none, save
 * that attach and detach may be called from the client's callbacks. wake() may be called from any thread.
 * Errors: TIMEOUT names who did not come; INVALID: a neighbour of another job or the wrong one, with a line logged.
 */
#ifndef QUOIT_LINK_SERVICE_H
#define QUOIT_LINK_SERVICE_H

#include "base/status.h"
#include "link/state.h"
#include "port/port.h"
#include "ring/ring.h"

#define QUOIT_CLIENTS_MAX 8
struct quoit_service; /* opaque */

struct quoit_service_config {
    uint32_t host;
    uint32_t host_count;
    struct quoit_port_config ports[QUOIT_SIDE_COUNT]; /* the driver of each side */
    struct quoit_link_record *records;                /* [QUOIT_SIDE_COUNT], where the state is published */
    struct quoit_park *park;                          /* where the manager sleeps; in the memory of the ports, */
    uint64_t park_offset;                             /* there */
};

/* A range of the host's memory that the neighbour may write; bytes 0: none. */
struct quoit_lease_range {
    uint64_t offset;
    uint64_t bytes;
};

/* Callbacks come from the manager. */
struct quoit_client {
    const char *name;
    uint32_t digest; /* of what both ends must agree on; the neighbour's client of the windows must have the same */
    struct quoit_lease_range windows[QUOIT_SIDE_COUNT][QUOIT_WINDOW_COUNT];
    uint32_t doorbell_least; /* bits of each port without which it cannot work */
    uint32_t doorbell_most;  /* for which it has a use */
    /* What each of `bits`, those of one port, wakes: entries of the vector by the number of the bit. From attach(). */
    void (*vectors)(void *arg, uint64_t bits, struct quoit_port_vector vectors_out[QUOIT_DOORBELL_COUNT]);
    bool has_failover;         /* false: a link that goes down is LOST */
    uint64_t cut_off_limit_ns; /* how long two links may be dead before cut_off() */
    /* The record of that side has changed: the client follows `target`. */
    void (*changed)(void *arg, enum quoit_side side);
    /* Whether everything of the client has done what `target` says. */
    bool (*has_followed)(void *arg, enum quoit_side side);
    /* Neither end writes: make the range of that side as new. */
    void (*clean)(void *arg, enum quoit_side side);
    /* Two links that the client knows to be dead, number + 1 each (first << 32 | second); 0: not two. */
    uint64_t (*dead_links)(void *arg);
    /* Called once: two links are dead for longer than the limit; or twice the same one: it is LOST. */
    void (*cut_off)(void *arg, uint32_t first_link, uint32_t second_link);
    void *arg;
};

/* Opens both ports and enables the links. On failure nothing is left open. */
QUOIT_MUST_USE enum quoit_status quoit_service_open(const struct quoit_service_config *config,
                                                    struct quoit_service **service_out);
/* After the manager has ended. NULL is allowed. */
void quoit_service_close(struct quoit_service *service);

/* Leases what the client asks for; `client` is copied. FULL: taken by another client. OUT_OF_RANGE, with a line logged:
 * more than a window of the port holds, or than it has doorbell bits. */
QUOIT_MUST_USE enum quoit_status quoit_service_attach(struct quoit_service *service, const struct quoit_client *client,
                                                      uint32_t *lease_out);
/* Takes the leases back. If it had windows, the links go down for the neighbours, and are IDLE until the next such
 * client comes. The client does not write any more. */
void quoit_service_detach(struct quoit_service *service, uint32_t lease);
/* Brings both links UP for the first time under the client of the windows, without a manager. */
QUOIT_MUST_USE enum quoit_status quoit_service_start(struct quoit_service *service, uint64_t timeout_ns);
/* The manager: looks after the links until *is_stopping, or something fails. */
QUOIT_MUST_USE enum quoit_status quoit_service_manage(struct quoit_service *service, _Atomic uint32_t *is_stopping);
/* Makes the manager look: a client has followed, knows more of the ring, or *is_stopping was set. */
void quoit_service_wake(struct quoit_service *service);

struct quoit_port *quoit_service_port(const struct quoit_service *service, enum quoit_side side);
/* The doorbell bits of that port which the client has. */
uint64_t quoit_service_doorbells(const struct quoit_service *service, uint32_t lease, enum quoit_side side);

#endif
