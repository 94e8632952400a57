/* SPDX-License-Identifier: BSD-3-Clause */
/* service.h - the ring service of a host: owns its two ports, brings the links up, and up again after each loss.
 *
 * What it is: the ports, the scratchpad exchange with the neighbours, and the state of both links (state.h). It serves
 * one client at a time, the proxy of a job or an Ethernet device, which attaches with what it needs of the ports, and
 * may outlive it. Clients at the same time have shares of the ring, each with ports and a service of its own
 * (share/share.h). The service knows nothing of requests, PEs or lanes.
 *
 * A side moves through the states of state.h; the service waits for its client to follow, and the client does not wait
 * for the service:
 *   UP -> DRAINING: the port went down; the client is notified, and confirms that it writes and reads nothing more.
 *   -> ABSENT -> PROPOSED: this opening is bound to the new port epoch; the neighbour is informed that this end is
 *     down, and an epoch of the link is proposed.
 *   -> CLEAN: the neighbour sent the same, so no end writes: the slots are cleaned, the windows offered. -> UP.
 * A link that goes down again on the way returns to ABSENT. Its scratchpads are wiped and the opening is bound to an
 * epoch, so no word of an earlier attempt is taken for one of this.
 *
 * An end goes down only when its own port shows a new epoch or no link, which both ends see, and never because the
 * other end reported that it is down: such a report may be older than the link, and then only one end would go down.
 *
 * What a client leaves behind is reclaimed: its windows are closed, its doorbell bits masked, and the neighbours see
 * the link go down.
 *
 * Doorbell bits: a client says how many it needs, and the service takes them from each port's mask (port.h), the lowest
 * first. The two ends of a link may use different bits: each sends the other the mask of its client, which the record
 * publishes; the clients define what each bit of a mask means. The highest bit is the service's own unless the client
 * needs it: with it the neighbour's service announces new scratchpad contents. Without it the service polls every
 * 100 us while a link comes up.
 *
 * A bridge may lose a ring. Where a driver does not promise that rings arrive, the manager wakes what those of a client
 * would wake every 100 ms, so that none sleeps for longer over what has arrived.
 *
 * Threads: open, attach, start, detach and close belong to one thread at a time, and to none while manage() runs,
 * except that attach and detach may be called from the client's callbacks. wake() may be called from any thread.
 * Errors: TIMEOUT names the neighbour that did not come; INVALID: a neighbour of another job or the wrong one, with a
 * line logged.
 */
#ifndef QUOIT_LINK_SERVICE_H
#define QUOIT_LINK_SERVICE_H

#include "base/status.h"
#include "link/state.h"
#include "port/port.h"
#include "ring/ring.h"

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
struct quoit_window_range {
    uint64_t offset;
    uint64_t bytes;
};

/* Callbacks come from the manager. */
struct quoit_client {
    const char *name;
    uint32_t digest; /* of what both ends must agree on; the neighbour's client must have the same */
    struct quoit_window_range windows[QUOIT_SIDE_COUNT][QUOIT_WINDOW_COUNT];
    uint32_t doorbell_least; /* bits of each port without which it cannot work */
    uint32_t doorbell_most;  /* for which it has a use */
    /* What each of `bits`, those of one port, wakes: entries of the vector by the number of the bit. From attach() and
     * the manager. */
    void (*vectors)(void *arg, uint64_t bits, struct quoit_port_vector vectors_out[QUOIT_DOORBELL_COUNT]);
    bool has_failover;         /* false: a link that goes down is LOST */
    uint64_t cut_off_limit_ns; /* how long at least two links may be down without a break before cut_off() */
    /* The record of that side has changed: the client must follow `target`. */
    void (*changed)(void *arg, enum quoit_side side);
    /* Whether the whole client has done what `target` asks for. */
    bool (*has_followed)(void *arg, enum quoit_side side);
    /* No end writes, and no doorbell bit of the client's is set: reset the range of that side. */
    void (*clean)(void *arg, enum quoit_side side);
    /* QUOIT_DEAD_LINKS(): two links that the client knows to be down, of however many; 0: not two. NULL: it never
     * knows.
     */
    uint64_t (*dead_links)(void *arg);
    /* Called once: the ring has been cut for longer than the limit, and these are down; or the same link twice: it is
     * LOST. NULL: the client goes on. */
    void (*cut_off)(void *arg, uint32_t first_link, uint32_t second_link);
    void *arg;
};

/* Opens both ports and enables the links. On failure nothing is left open. */
QUOIT_MUST_USE enum quoit_status quoit_service_open(const struct quoit_service_config *config,
                                                    struct quoit_service **service_out);
/* After the manager has ended. NULL is allowed. */
void quoit_service_close(struct quoit_service *service);

/* Takes what the client asks for; `client` is copied. FULL: another client is attached. OUT_OF_RANGE, with a line
 * logged: more than a window of the port holds, or where it cannot be put, or than the port has doorbell bits. */
QUOIT_MUST_USE enum quoit_status quoit_service_attach(struct quoit_service *service, const struct quoit_client *client);
/* Reclaims what the client had. The neighbours see the links go down, and they are IDLE until the next client attaches.
 * The client must not write any more. */
void quoit_service_detach(struct quoit_service *service);
/* Before start(), for a client with failover: this link is known to be down, so start() does not wait for it. For the
 * client it begins as one that was up and went down before it looked: its epoch is 1, and the neighbour is taken to
 * have the doorbell bits that this end has, which is checked when the link comes up. */
void quoit_service_expect_down(struct quoit_service *service, enum quoit_side side);
/* Brings both links UP for the first time under the client, without a manager. */
QUOIT_MUST_USE enum quoit_status quoit_service_start(struct quoit_service *service, uint64_t timeout_ns);
/* The manager: looks after the links until *is_stopping or a failure. */
QUOIT_MUST_USE enum quoit_status quoit_service_manage(struct quoit_service *service, _Atomic uint32_t *is_stopping);
/* Makes the manager check: a client has followed, the ring has learned something, or *is_stopping was set. */
void quoit_service_wake(struct quoit_service *service);

struct quoit_port *quoit_service_port(const struct quoit_service *service, enum quoit_side side);
/* The doorbell bits of that port which the client has; 0: there is no client. */
uint64_t quoit_service_doorbells(const struct quoit_service *service, enum quoit_side side);

#endif
