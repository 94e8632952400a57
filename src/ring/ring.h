/* SPDX-License-Identifier: BSD-3-Clause */
/* ring.h - the protocol of one lane on one host: routes, credits, forwarding, flows, acknowledgement. Pure.
 *
 * What it is: a state machine without clock, thread, memory allocation or I/O. The proxy (or the simulator) shows it
 * the frames that arrived and the requests of its PEs; it answers with a verdict that says what to do with each; the
 * proxy does it (copies payload, writes slots, executes at memory) before it calls again. Lanes share nothing.
 *
 * The ring: host h has LEFT neighbour h-1 and RIGHT neighbour h+1 (modulo host_count >= 2). Each side has for each
 * class an outbound queue (slots in the neighbour's memory) and an inbound queue (slots in ours), slot_count slots
 * each. Inbound queues are first in, first out.
 *
 * Promises:
 * - Requests of one (source PE, destination PE) take one side and are executed in the order of submission. Shortest
 *   way; where both ways are equally long the side is the parity of `spread`, which the caller keeps the same for each
 *   pair of PEs.
 * - No deadlock with slot_count >= 2: transit needs one free slot, injection leaves one free (a bubble) in that queue,
 *   per class; replies never wait behind requests; a request that needs a reply is only accepted while there is room
 * for the reply to wait.
 * - Injection does not starve: when transit has kept an injection waiting for transit_pause_after_ns, transit of that
 * queue pauses for at most transit_pause_ns, again and again, until an injection succeeded.
 * - Every request is acknowledged: a flow is (source host, destination host, side it takes while all links are up); its
 *   requests are numbered 1, 2, ...; ACK, DATA and VALUE carry the number up to which all are executed. A request is
 *   complete when it is acknowledged, or, if it needs a response, when that is here.
 * - Nothing is lost and nothing is executed twice when a link goes down or comes back, at any instant, any number of
 *   times: the hosts advertise it to each other, traffic is re-routed the other way round, and each source sends again
 *   what is not acknowledged or responded to, in order. See docs/design/failover.md. With two links down some hosts
 * cannot be reached: their requests wait, and it is the caller's to end the job.
 *
 * Threads: one at a time. Errors: INVALID for a frame that no correct peer sends (fatal for the job).
 */
#ifndef QUOIT_RING_RING_H
#define QUOIT_RING_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "wire/frame.h"

enum quoit_side { QUOIT_LEFT, QUOIT_RIGHT, QUOIT_SIDE_COUNT };

#define QUOIT_RING_SLOTS_MIN            2
#define QUOIT_RING_HOSTS_MAX            1024
#define QUOIT_RING_OUTSTANDING_MAX      (1u << 16)
#define QUOIT_RING_RESPONSES_BEFORE_ACK 16 /* after so many answers on a side an acknowledgement that waits is next */

struct quoit_ring_config {
    uint32_t host_self;
    uint32_t slot_count;        /* per queue, the same on all hosts; >= QUOIT_RING_SLOTS_MIN */
    uint32_t outstanding_max;   /* requests of the own PEs under way at once, 0..QUOIT_RING_OUTSTANDING_MAX; submit
                                   beyond it is NO_RESOURCE. A request stays under way until its completion is taken */
    uint32_t pending_reply_max; /* replies waiting for a slot, >= 1 */
    uint32_t
        fetch_max; /* AMO_FETCH of one flow under way at once, >= 1, the same on all hosts; submit beyond it
                      is NO_RESOURCE. Each host keeps so many old values for each flow, in case it is asked again */
    uint64_t transit_pause_after_ns;
    uint64_t transit_pause_ns;        /* longer than a neighbour takes to consume a slot and tell the credit */
    struct quoit_frame_limits limits; /* limits.host_count >= 2; pe_counts must outlive the ring */
};

struct quoit_ring; /* lives in memory that the caller gives */

/* Bytes a ring of this configuration needs, and its start in zeroed, 64-byte aligned memory of that size. */
size_t quoit_ring_bytes(const struct quoit_ring_config *config);
struct quoit_ring *quoit_ring_init(void *memory, const struct quoit_ring_config *config);

enum quoit_verdict_kind {
    QUOIT_VERDICT_NO_RESOURCE, /* not now: offer it again after something changed or retry_at_ns passed (0: no time)
                                */
    QUOIT_VERDICT_SEND,        /* write `frame` (sequence included) to outbound slot `slot_index` of `side`, `class` */
    QUOIT_VERDICT_DELIVER,     /* it is for a PE of this host: execute it now */
    QUOIT_VERDICT_CONSUMED /* the frame is done with and there is nothing to do: an ACK, a TOPOLOGY, a repeated or an
                              outdated frame */
};

struct quoit_verdict {
    enum quoit_verdict_kind kind;
    enum quoit_side side;     /* SEND: where out */
    enum quoit_class class;   /* SEND */
    uint32_t slot_index;      /* SEND */
    bool may_land;            /* SEND of a put: the payload may be written straight to its destination, which is a PE of
                                 the neighbour: then add the flag LANDED and leave the payload out of the slot */
    uint64_t retry_at_ns;     /* NO_RESOURCE */
    uint64_t cookie;          /* DELIVER of DATA or VALUE: the cookie of the request that it answers; SEND of
                                 next_resend(): the cookie of the request */
    struct quoit_frame frame; /* SEND: the header to write. DELIVER: the frame */
};

/* A request of a PE of this host for another host: kind, op, size, dest_host, source_pe, dest_pe, bytes, offset and
 * operands are the caller's; the rest is filled in. `spread` decides the side where both ways are as long. `cookie`
 * comes back at completion. SEND (payload is the caller's) or NO_RESOURCE. The caller has checked the request: one that
 * quoit_frame_check() would refuse is an assertion. `trace` and the flag ORDERED are carried as given. */
void quoit_ring_submit(struct quoit_ring *ring, const struct quoit_frame *request, uint32_t spread, uint64_t cookie,
                       uint64_t now_ns, struct quoit_verdict *verdict_out);

/* The request that should be sent again next after a change of the topology: SEND with its cookie (payload is the
 * caller's, as at submit; it must not have changed), or NO_RESOURCE if there is none or no slot for it. While some wait
 * for a side, submit holds what would go out of that side: so poll this first. O(1), but a change costs O(hosts). */
void quoit_ring_next_resend(struct quoit_ring *ring, uint64_t now_ns, struct quoit_verdict *verdict_out);

/* The side a request to `dest_host` takes while all links are up, for direct puts too, so that they keep order with it.
 */
enum quoit_side quoit_ring_route(uint32_t host_self, uint32_t host_count, uint32_t dest_host, uint32_t spread);

/* The sequence that the next frame of an inbound queue will carry; its slot is (sequence - 1) % slot_count. */
uint64_t quoit_ring_expected(const struct quoit_ring *ring, enum quoit_side side, enum quoit_class class);

/* The frame that arrived next in an inbound queue. SEND (payload: the inbound slot's, to be copied on), DELIVER, or
 * NO_RESOURCE (the same frame must be offered again), or CONSUMED. Unless it is NO_RESOURCE the slot counts as
 * consumed: the caller must be done with it before it returns the credit. A delivered GET*, AMO_FETCH must be answered
 * by quoit_ring_reply() at once. The link of that side is up. */
QUOIT_MUST_USE enum quoit_status quoit_ring_receive(struct quoit_ring *ring, enum quoit_side side,
                                                    enum quoit_class class, const struct quoit_frame *frame,
                                                    uint64_t now_ns, struct quoit_verdict *verdict_out);

/* Responds to a delivered request: DATA for gets, VALUE (operand = value) for fetching atomics. Always has room. */
void quoit_ring_reply(struct quoit_ring *ring, const struct quoit_frame *request, uint64_t value);

/* The next TOPOLOGY, reply or acknowledgement that should go out, SEND, or NO_RESOURCE if there is none or no slot for
 * it. A DATA frame to be sent keeps `offset`, `operand` and `bytes` of its request, and `size` of a strided one (0: not
 * strided); source_pe is the PE whose memory the payload is read from, now. Acknowledgements are sent when nothing else
 * is, so that one covers many, but none waits for more than QUOIT_RING_RESPONSES_BEFORE_ACK answers of its side. */
void quoit_ring_next_reply(struct quoit_ring *ring, uint64_t now_ns, struct quoit_verdict *verdict_out);

/* Cookies of requests completed since the last call: all requests, those that were answered by DATA or VALUE too.
 * Within a flow acknowledged requests complete in order of submission, and so do answered ones. False: none. */
bool quoit_ring_next_completion(struct quoit_ring *ring, uint64_t *cookie_out);

/* Credits. keep_slots: the payload of the last `count` consumed slots of an inbound queue is still being read; they
 * count as not consumed until the caller says less. consumed_total: how many slots of an inbound queue this side has
 * consumed since the start; the caller writes it to the neighbour, who gives it to credit() as the total consumed of
 * its outbound queue. A total that goes back or beyond what was sent is INVALID. credit_due: whether the neighbour
 * should be told now: it is true when a quarter of the slots (at least one) were consumed since the last time it was
 * told, or always when is_idle. "The start" is the last link_up() of that side; while the link is down nothing is due,
 * and credit() must not be called. */
void quoit_ring_keep_slots(struct quoit_ring *ring, enum quoit_side side, enum quoit_class class, uint32_t count);
uint64_t quoit_ring_consumed_total(const struct quoit_ring *ring, enum quoit_side side, enum quoit_class class);
bool quoit_ring_credit_due(const struct quoit_ring *ring, enum quoit_side side, enum quoit_class class, bool is_idle);
void quoit_ring_credit_told(struct quoit_ring *ring, enum quoit_side side, enum quoit_class class);
QUOIT_MUST_USE enum quoit_status quoit_ring_credit(struct quoit_ring *ring, enum quoit_side side,
                                                   enum quoit_class class, uint64_t consumed_total);

/* Links. All are up at the start, in epoch 0. At each outage the two ends of a link do this, for every lane:
 *
 * - Down: an end that sees that the link went down, even if it is back already, calls link_down().
 *   From then on it writes nothing through that side, and looks at nothing there. Frames in the slots are given up.
 * - Clean: when both ends are down, each zeroes the credits and slots of that side in its own memory, and then says to
 *   the other that it did. In the same exchange they agree on the number of the next epoch of this link.
 * - Up: an end that knows that the other one has zeroed calls link_up(), the two in any order and not at once.
 *
 * Between link_down() and link_up() there is no receive() and no credit() of that side. Neither call waits; each costs
 * O(hosts + pending replies). A slot that could not be written because the link is down is lost like one under way: the
 * link_down() that must follow repairs it. */
void quoit_ring_link_down(struct quoit_ring *ring, enum quoit_side side);
/* `epoch` is larger than any before of this link, and the same at both ends. */
void quoit_ring_link_up(struct quoit_ring *ring, enum quoit_side side, uint32_t epoch);
/* Whether this end of the link is up: what the last of the two calls said. Each end must see an outage by itself: an
 * update may be stuck behind what waits for a dead link. While one end has gone down and the other has not, the former
 * executes no requests: the other may still land. */
bool quoit_ring_link_is_up(const struct quoit_ring *ring, enum quoit_side side);

/* What this host knows of all links; link l joins host l and host l + 1. A link is up while both ends are, in the same
 * epoch. */
struct quoit_ring_topology {
    uint32_t generation;    /* grows with every change that this host learns */
    uint32_t dead_count;    /* links that are down. More than one cuts hosts off; for a moment it may seem so, when
                               the update that one is back comes after the update that another broke */
    uint32_t dead_links[2]; /* the first of them */
};
void quoit_ring_topology(const struct quoit_ring *ring, struct quoit_ring_topology *topology_out);

/* True when nothing is under way here: no outstanding request, no completion to be taken, no pending reply or
 * acknowledgement, no pending link-state update, all credits home and the neighbours told of all of theirs. */
bool quoit_ring_is_quiescent(const struct quoit_ring *ring);
/* Asserts everything that must hold between two calls (after receive() of a request that asks: after its reply()).
 * Visits every host and every request under way, so it is for tests. */
void quoit_ring_check_invariants(const struct quoit_ring *ring);

#endif
