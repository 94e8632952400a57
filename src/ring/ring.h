/* SPDX-License-Identifier: BSD-3-Clause */
/* ring.h - the protocol of one lane on one host: routes, credits, forwarding, flows, acknowledgement. Pure.
 *
 * What it is: a state machine without clock, threads, memory allocation or I/O. The proxy (or the simulator) passes it
 * the frames that arrived and the requests of its PEs; each call returns a verdict that says what to do, and the proxy
 * does it (copies payload, writes slots, executes on memory) before the next call. Lanes share nothing.
 *
 * The ring: host h has LEFT neighbour h-1 and RIGHT neighbour h+1 (modulo host_count >= 2). Each side has, per class,
 * an outbound queue (slots in the neighbour's memory) and an inbound queue (slots in ours) of slot_count slots each.
 * Inbound queues are FIFOs.
 *
 * Promises:
 * - Requests of one (source PE, destination PE) leave by one side and are executed in the order of submission. They
 *   take the shorter direction; if both are equally long, the parity of `spread` decides, which the caller keeps
 *   constant for each pair of PEs.
 * - No deadlock with slot_count >= 2: transit needs one free slot, injection leaves one free (a bubble) in that queue,
 *   per class; replies never wait behind requests; a request that needs a reply is accepted only while the reply has a
 *   place to wait.
 * - No starvation of injection: when transit has kept an injection waiting for transit_pause_after_ns, transit of that
 *   queue pauses for at most transit_pause_ns, repeatedly, until an injection succeeds.
 * - Every request is acknowledged: a flow is (source host, destination host, side while all links are up); its requests
 *   are numbered 1, 2, ...; ACK, DATA and VALUE carry the number up to which all are executed. A request completes when
 *   it is acknowledged or, if it needs a response, when the response arrives.
 * - Nothing is lost and nothing is executed twice when a link goes down or comes back, at any instant, any number of
 *   times: hosts advertise link-state updates, traffic is re-routed in the other direction, and each source
 * retransmits, in order, what is not acknowledged or responded to. See docs/design/failover.md. With two links down
 * some hosts are unreachable: their requests wait, and the caller decides to end the job.
 *
 * Ownership: the ring lives in memory that the caller provides and frees; it keeps no pointer to a frame.
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
#define QUOIT_RING_RESPONSES_BEFORE_ACK 16 /* on one side while an ACK is pending */

struct quoit_ring_config {
    uint32_t host_self;
    uint32_t slot_count;        /* per queue, the same on all hosts; >= QUOIT_RING_SLOTS_MIN */
    uint32_t outstanding_max;   /* outstanding requests of the local PEs, 0..QUOIT_RING_OUTSTANDING_MAX; beyond it
                                 * submit returns NO_RESOURCE. A request is outstanding until its completion is taken */
    uint32_t pending_reply_max; /* replies waiting for a slot, >= 1 */
    uint32_t fetch_max; /* AMO_FETCH of one flow under way at once, >= 1, the same on all hosts; submit beyond it
                           is NO_RESOURCE. The response cache of each flow holds this many old values */
    uint64_t transit_pause_after_ns;
    uint64_t transit_pause_ns;        /* longer than a neighbour takes to consume a slot and advertise the credit */
    struct quoit_frame_limits limits; /* limits.host_count >= 2; pe_counts must outlive the ring */
};

struct quoit_ring; /* lives in memory provided by the caller */

/* Bytes that a ring of this configuration needs; and its start in zeroed, 64-byte aligned memory of that size. */
size_t quoit_ring_bytes(const struct quoit_ring_config *config);
struct quoit_ring *quoit_ring_init(void *memory, const struct quoit_ring_config *config);

enum quoit_verdict_kind {
    QUOIT_VERDICT_NO_RESOURCE, /* not now: offer it again after a change, or at retry_at_ns (0: only after a change) */
    QUOIT_VERDICT_SEND,        /* write `frame` (sequence included) to outbound slot `slot_index` of `side`, `class` */
    QUOIT_VERDICT_DELIVER,     /* it is for a PE of this host: execute it now */
    QUOIT_VERDICT_CONSUMED     /* nothing to do: an ACK, a TOPOLOGY, a repeated or an outdated frame */
};

struct quoit_verdict {
    enum quoit_verdict_kind kind;
    enum quoit_side side;     /* SEND: outbound side */
    enum quoit_class class;   /* SEND */
    uint32_t slot_index;      /* SEND */
    bool may_land;            /* SEND of a put: the payload may be written directly to its destination, a PE of the
                               * neighbour: then set the flag LANDED and leave the payload out of the slot */
    uint64_t retry_at_ns;     /* NO_RESOURCE */
    uint64_t cookie;          /* DELIVER of DATA or VALUE: the cookie of its request; SEND of next_resend(): the cookie
                               * of the request */
    struct quoit_frame frame; /* SEND: the header to write. DELIVER: the frame */
};

/* A request of a local PE for another host: the caller fills in kind, op, size, dest_host, source_pe, dest_pe, bytes,
 * offset and operands, the ring the rest. `spread` decides the side if both directions are equally long. `cookie` is
 * returned on completion. SEND (the payload is the caller's) or NO_RESOURCE. The caller has checked the request: one
 * that quoit_frame_check() would refuse fails an assertion. `trace` and the flag ORDERED are carried unchanged. */
void quoit_ring_submit(struct quoit_ring *ring, const struct quoit_frame *request, uint32_t spread, uint64_t cookie,
                       uint64_t now_ns, struct quoit_verdict *verdict_out);

/* The next request to retransmit after a change of the topology: SEND with its cookie (the payload is the caller's, as
 * at submit, and must not have changed), or NO_RESOURCE if there is none or no slot for it. While a side has some
 * pending, submit refuses what would leave by that side, so call this first. O(1), but a change costs O(hosts). */
void quoit_ring_next_resend(struct quoit_ring *ring, uint64_t now_ns, struct quoit_verdict *verdict_out);

/* The side by which a request to `dest_host` leaves while all links are up; also for direct puts, so that they keep
 * order with requests.
 */
enum quoit_side quoit_ring_route(uint32_t host_self, uint32_t host_count, uint32_t dest_host, uint32_t spread);

/* The sequence that the next frame of an inbound queue will carry; its slot is (sequence - 1) % slot_count. */
uint64_t quoit_ring_expected(const struct quoit_ring *ring, enum quoit_side side, enum quoit_class class);

/* The next frame of an inbound queue. SEND (the payload is the inbound slot's, to be forwarded), DELIVER, NO_RESOURCE
 * (offer the same frame again), or CONSUMED. Except after NO_RESOURCE the slot counts as consumed: the caller must be
 * done with it before it returns the credit. A delivered GET* or AMO_FETCH must be followed by quoit_ring_reply() at
 * once. The link of that side is up. */
QUOIT_MUST_USE enum quoit_status quoit_ring_receive(struct quoit_ring *ring, enum quoit_side side,
                                                    enum quoit_class class, const struct quoit_frame *frame,
                                                    uint64_t now_ns, struct quoit_verdict *verdict_out);

/* Responds to a delivered request: DATA for gets, VALUE (operand = value) for fetching atomics. Always has room. */
void quoit_ring_reply(struct quoit_ring *ring, const struct quoit_frame *request, uint64_t value);

/* The next TOPOLOGY, reply or acknowledgement to send: SEND, or NO_RESOURCE if there is none or no slot for it. A DATA
 * frame to be sent has `offset`, `operand` and `bytes` of its request, and `size` if strided (0: not strided);
 * source_pe is the PE whose memory the payload is read from, now. Acknowledgements are sent when nothing else is, so
 * one covers many requests, but none waits for more than QUOIT_RING_RESPONSES_BEFORE_ACK responses on its side. */
void quoit_ring_next_reply(struct quoit_ring *ring, uint64_t now_ns, struct quoit_verdict *verdict_out);

/* The cookie of a request that completed since the last call, with or without a response. Within a flow, acknowledged
 * requests complete in order of submission, and so do those with responses. False: none. */
bool quoit_ring_next_completion(struct quoit_ring *ring, uint64_t *cookie_out);

/* Credits. keep_slots: the payloads of the last `count` consumed slots of an inbound queue are still being read; these
 * slots count as not consumed until the caller gives a smaller count. consumed_total: the slots of an inbound queue
 * consumed since the start; the caller writes the number to the neighbour, which passes it to credit() as the total of
 * its outbound queue. A total that goes back, or beyond what was sent, is INVALID. credit_due: whether to advertise it
 * now: when a quarter of the slots (at least one) were consumed since the last time, or always if is_idle. "The start"
 * is the last link_up() of that side; while the link is down nothing is due, and credit() must not be called. */
void quoit_ring_keep_slots(struct quoit_ring *ring, enum quoit_side side, enum quoit_class class, uint32_t count);
uint64_t quoit_ring_consumed_total(const struct quoit_ring *ring, enum quoit_side side, enum quoit_class class);
bool quoit_ring_credit_due(const struct quoit_ring *ring, enum quoit_side side, enum quoit_class class, bool is_idle);
void quoit_ring_credit_advertised(struct quoit_ring *ring, enum quoit_side side, enum quoit_class class);
QUOIT_MUST_USE enum quoit_status quoit_ring_credit(struct quoit_ring *ring, enum quoit_side side,
                                                   enum quoit_class class, uint64_t consumed_total);

/* Links. All are up at the start, in epoch 0. At each outage the two ends of a link do the following, for every lane:
 *
 * - Down: an end that detects that the link went down, even if it is back already, calls link_down(). From then on it
 *   writes nothing through that side and reads nothing there. Frames in the slots are discarded.
 * - Clean: when both ends are down, each zeroes the credits and slots of that side in its own memory, then informs
 *   the other end. In the same exchange they agree on the next epoch of this link.
 * - Up: an end that knows that the other end has zeroed calls link_up(); the two ends do so in any order.
 *
 * Between link_down() and link_up() there is no receive() and no credit() on that side. Neither call waits; each costs
 * O(hosts + pending replies). A slot that could not be written because the link is down is lost as if in flight: the
 * link_down() that must follow repairs it. */
void quoit_ring_link_down(struct quoit_ring *ring, enum quoit_side side);
/* `epoch` is larger than any before of this link, and the same at both ends. */
void quoit_ring_link_up(struct quoit_ring *ring, enum quoit_side side, uint32_t epoch);
/* Whether this end of the link is up: the last of the two calls. Each end must detect an outage itself: an update may
 * be stuck behind frames that wait for a dead link. While one end has gone down and the other has not, the former
 * executes no requests: the latter may still land payload. */
bool quoit_ring_link_is_up(const struct quoit_ring *ring, enum quoit_side side);

/* This host's view of all links; link l joins host l and host l + 1. A link is up while both ends are, in the same
 * epoch. */
struct quoit_ring_topology {
    uint32_t topology_version; /* grows with every change that this host learns */
    uint32_t dead_count;       /* links that are down. More than one cuts hosts off; briefly it may seem so, when the
                                * update that one is back arrives after the update that another one failed */
    uint32_t dead_links[2];    /* the first of them */
    uint32_t cut_count;        /* how often dead_count went from less than two to more */
};
void quoit_ring_topology(const struct quoit_ring *ring, struct quoit_ring_topology *topology_out);

/* True when nothing is outstanding here: no request, no completion to be taken, no pending reply, acknowledgement or
 * link-state update, all credits returned, and all of the neighbours' credits advertised. */
bool quoit_ring_is_quiescent(const struct quoit_ring *ring);
/* Asserts all invariants that hold between two calls (after receive() of a request that needs a response: after its
 * reply()). Visits every host and every outstanding request, so it is for tests. */
void quoit_ring_check_invariants(const struct quoit_ring *ring);

#endif
