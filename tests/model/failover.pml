/* SPDX-License-Identifier: BSD-3-Clause */
/* failover.pml - a ring of three hosts whose links go down and come back: epochs, link-state updates, retransmission.
 *
 * Aim: every request is executed exactly once and in order, and completes; nothing lands after it was executed, at
 * whatever time a posted write or DMA arrives; after a quiet all is executed; both ends have zeroed a link's slots
 * before either writes to it. Method: spin visits every state of one lane. A run may
 * end only where IS_COMPLETE holds; any other end is an invalid end state. A step is one call of src/ring, or one
 * transition of src/link/service.c, named beside it. check.py runs the sizes, and the variants that must fail.
 * docs/design/model.md says what is left out and why that is sound.
 *
 * Host 0 sends requests to host 1, over link 0 or, in the other direction, over link 2, host 2 and link 1. Each may
 * land its payload on its last hop. End 2 * host + side is a host's end of a link; link l joins the right end of host l
 * to the left end of host l + 1. A queue belongs to the end that reads it.
 *
 * Sizes (each by -D): REQUESTS, FETCHES (bit n: request n needs a response), QUIETS (bit n: a quiet stands before
 *   request n), SLOTS, REPLY_SLOTS, UPDATES (states in one TOPOLOGY frame), CUTS_0, CUTS_1, CUTS_2 (outages of each link),
 *   STAYS (the link whose last outage is final; 3: none), BEGINS (the link that is down at the start; 3: none).
 * Options: DMA (payload lands by DMA, of each frame by itself, and the frame is there when it has landed), EAGER (an update leaves at once,
 *   see below), LATE_LANE (the lane follows its manager at any later time), PLAIN (none of the reductions that forget
 *   what has no effect any more).
 * MOVES: moves.h has the moves of one run of the production code, by moves.py: each must be a step that is possible here.
 * Variants, each of which breaks the protocol: NO_RESEND, NO_REPEAT_CHECK, NO_VERSION, NO_QUIESCE, LAND_RESENT,
 *   UPDATES_LATER, KEEP_RESPONSES, NO_REST, EARLY_QUIET, ACK_AGAIN (a run that goes on for ever).
 */
#define HOSTS 3
#define ENDS  6
#define LEFT  0
#define RIGHT 1
#define REQUEST 0
#define REPLY   1

#define HOST(end)     ((end) / 2)
#define LINK(end)     (((end) & 1) -> (end) / 2 : ((end) / 2 + 2) % HOSTS)
#define PEER(end)     (((end) & 1) -> ((end) + 1) % ENDS : ((end) + ENDS - 1) % ENDS)
#define OPPOSITE(end) ((end) ^ 1)

/* enum quoit_link_state. A lane that follows at once leaves no DRAINING. */
#define UP       0
#define ABSENT   1
#define PROPOSED 2
#define CLEAN    3
#define DRAINING 4

/* Numbers of requests, and sets of them: request n is bit n, in a run of the code bit n % WINDOW. */
#ifdef MOVES
#include "moves.h"
#define LATE_LANE
#define PLAIN
#define NUMBER      int
#define SET         int
#define WINDOW      31
#define BIT(n)      (1 << ((n) % WINDOW))
#define FIRST(n)    ((n) > WINDOW - 1 -> (n) - (WINDOW - 1) : 1) /* a request before it is complete when n is sent */
#define IS_FETCH(n) ((fetches & BIT(n)) != 0)
#define WAITING     64
#else
#define NUMBER      byte
#define SET         byte
#define BIT(n)      (1 << (n))
#define FIRST(n)    1
#define IS_FETCH(n) (FETCHES & (1 << (n)))
#define WAITING     2
#endif

typedef Frame {
    NUMBER version; /* the sender's topology version */
    NUMBER number;  /* request: its number in the flow; reply: all up to it are executed */
    NUMBER more;    /* request: 1 if retransmitted, so ORDERED; reply: the request that it responds to, 0: an
                   * acknowledgement only */
    bit lands;    /* request: its payload is a posted write before it, which may still be on its way */
    bit is_update;
    bit flies;    /* by DMA: the slot is taken, and the frame is written when its payload is there */
    bit is_lost;  /* that never was: the link was lost */
}
typedef Update {
    byte state[ENDS]; /* 0: not in this frame */
}
typedef Queue {
    byte filled; /* the oldest first */
    Frame slots[REPLY_SLOTS]; /* of requests SLOTS are used */
}
typedef End {
    byte link_state;
    bit is_bound;   /* to the port epoch of now: what is written arrives */
    byte epoch;     /* of the link: proposed or agreed */
    byte pending;   /* struct quoit_ring_link; bit e: the update about end e for the neighbour */
    NUMBER adopted;
    bit is_confirmed;
    byte dma_count; /* DMA under way through this end */
    Queue queue[2]; /* inbound: requests, replies */
    Update updates[REPLY_SLOTS]; /* of inbound replies */
}
typedef Host {
    byte state[ENDS]; /* struct quoit_ring_links: its view of all ends */
}

End end[ENDS];
Host host[HOSTS];
bit is_cut[HOSTS]; /* of links */
byte cuts[HOSTS];  /* outages still to come */

/* Host 0 */
NUMBER sent, acknowledged;
SET plain, fetching, resending;
/* Host 1 */
NUMBER executed, ack_sent;
byte waiting_count;
NUMBER waiting[WAITING];
NUMBER cached; /* struct quoit_ring_response_cache: the last fetching request executed; fetch_max is 1 */

hidden byte i, j, r, out, is_new, again;
hidden NUMBER version, number, more;
hidden int up_to, at_bit;

#define VERSION(h) \
    (host[h].state[0] + host[h].state[1] + host[h].state[2] + host[h].state[3] + host[h].state[4] + host[h].state[5])
#define STATE(e, whose) host[HOST(e)].state[whose]
#define IS_OWN_UP(e)  ((STATE(e, e) & 1) == 0)                          /* quoit_ring_links_is_up() */
#define IS_OPEN(e)    (IS_OWN_UP(e) && STATE(e, e) == STATE(e, PEER(e))) /* quoit_ring_links_is_open() */
#define IS_FAR_UP(h, link) \
    ((host[h].state[2 * (link) + 1] & 1) == 0 &&                                                                     \
     host[h].state[2 * (link) + 1] == host[h].state[(2 * (link) + 2) % ENDS])

/* quoit_ring_links_side_to(): the end by which frames of host 0 leave for host 1, and of host 1 for host 0 */
#define ROUTE_0 ((!IS_FAR_UP(0, 0) && IS_FAR_UP(0, 2) && IS_FAR_UP(0, 1)) -> 0 : 1)
#define ROUTE_1 ((!IS_FAR_UP(1, 0) && IS_FAR_UP(1, 2) && IS_FAR_UP(1, 1)) -> 3 : 2)
#define IS_REACHABLE_0 (IS_FAR_UP(0, 0) || (IS_FAR_UP(0, 2) && IS_FAR_UP(0, 1)))

/* is_side_quiesced() of topology.c */
#define IS_SIDE_QUIESCED(e)                                                 \
    (STATE(e, PEER(e)) / 2 != STATE(e, e) / 2 || (STATE(e, PEER(e)) & 1) || \
     (IS_OWN_UP(e) && end[e].adopted >= VERSION(HOST(e))))
#ifdef NO_QUIESCE
#define IS_QUIESCED true
#else
#define IS_QUIESCED (IS_SIDE_QUIESCED(2) && IS_SIDE_QUIESCED(3))
#endif

/* A write through an end arrives, or is lost with its link: a port that was bound when the link was cut stays so. */
#define REACHES(e)  end[e].is_bound
#define HAS_LOST(e) (!end[e].is_bound)

#define SLOTS_OF(class) ((class) == REPLY -> REPLY_SLOTS : SLOTS)
#define FREE(e, class) (SLOTS_OF(class) - end[PEER(e)].queue[class].filled)
#ifdef UPDATES_LATER
#define MAY_FOLLOW_UPDATES(e) true
#else
#define MAY_FOLLOW_UPDATES(e) (end[e].pending == 0) /* must_wait_for_update() */
#endif
#define MAY_INJECT_REQUEST(e) (IS_OPEN(e) && FREE(e, REQUEST) >= 2)
#define MAY_INJECT_REPLY(e)   (IS_OPEN(e) && MAY_FOLLOW_UPDATES(e) && FREE(e, REPLY) >= 2)

#define HEAD(e, class) end[e].queue[class].slots[0]
/* A lane polls a side only while its ring has it up. */
#define HAS_FRAME(e, class) (end[e].queue[class].filled > 0 && IS_OWN_UP(e) && IS_THERE(e, class))
#if defined(DMA) || defined(MOVES)
#define IS_THERE(e, class) (!HEAD(e, class).flies && !HEAD(e, class).is_lost)
#else
#define IS_THERE(e, class) true
#endif

#define CLEAR_SLOT(e, class, at)               \
    end[e].queue[class].slots[at].version = 0; \
    end[e].queue[class].slots[at].number = 0;  \
    end[e].queue[class].slots[at].more = 0;    \
    end[e].queue[class].slots[at].lands = 0;   \
    end[e].queue[class].slots[at].is_update = 0; \
    end[e].queue[class].slots[at].flies = 0;   \
    end[e].queue[class].slots[at].is_lost = 0; \
    if                                         \
    :: class == REPLY ->                       \
        for (j : 0 .. ENDS - 1) {              \
            end[e].updates[at].state[j] = 0    \
        }                                      \
    :: else                                    \
    fi
inline write(e, class, g, n, m, lands_on, update)
{
    if
    :: REACHES(e) ->
        i = end[PEER(e)].queue[class].filled;
        assert(i < SLOTS_OF(class));
        end[PEER(e)].queue[class].slots[i].version = g;
        end[PEER(e)].queue[class].slots[i].number = n;
        end[PEER(e)].queue[class].slots[i].more = m;
        end[PEER(e)].queue[class].slots[i].lands = lands_on;
        end[PEER(e)].queue[class].slots[i].is_update = update;
        end[PEER(e)].queue[class].filled++
    :: else
    fi
}
inline consume(e, class)
{
    for (i : 1 .. REPLY_SLOTS - 1) {
        end[e].queue[class].slots[i - 1].version = end[e].queue[class].slots[i].version;
        end[e].queue[class].slots[i - 1].number = end[e].queue[class].slots[i].number;
        end[e].queue[class].slots[i - 1].more = end[e].queue[class].slots[i].more;
        end[e].queue[class].slots[i - 1].lands = end[e].queue[class].slots[i].lands;
        end[e].queue[class].slots[i - 1].is_update = end[e].queue[class].slots[i].is_update;
        end[e].queue[class].slots[i - 1].flies = end[e].queue[class].slots[i].flies;
        end[e].queue[class].slots[i - 1].is_lost = end[e].queue[class].slots[i].is_lost;
        if
        :: class == REPLY ->
            for (j : 0 .. ENDS - 1) {
                end[e].updates[i - 1].state[j] = end[e].updates[i].state[j]
            }
        :: else
        fi
    }
    CLEAR_SLOT(e, class, REPLY_SLOTS - 1);
    end[e].queue[class].filled--
}
inline sweep(e, class)
{
    for (i : 0 .. REPLY_SLOTS - 1) {
        CLEAR_SLOT(e, class, i)
    }
    end[e].queue[class].filled = 0
}

/* A request leaves by an end whose neighbour is host 1: its payload may land there. may_land of send() in ring.c */
#ifdef LAND_RESENT
#define MAY_LAND(m) true
#else
#define MAY_LAND(m) ((m) == 0)
#endif
#define LANDS(e, m) (HOST(PEER(e)) == 1 && MAY_LAND(m) && end[e].is_confirmed)
#define WRITTEN(e, class, at) end[PEER(e)].queue[class].slots[at]
#define FLIES(e, at)          (WRITTEN(e, REQUEST, at).flies && end[e].dma_count)
inline begin_dma(e, class, at)
{
    WRITTEN(e, class, at).flies = 1;
    end[e].dma_count++
}
#ifdef MOVES
#define DOES_LAND(e, class, at) WRITTEN(e, class, at).lands /* else into its slot */
#else
#define DOES_LAND(e, class, at) true
#endif
/* announce_departures(): the payload has landed, or is lost with its link */
inline finish_dma(e, class, at)
{
    end[e].dma_count--;
    WRITTEN(e, class, at).flies = 0;
    if
    :: REACHES(e) -> assert(!DOES_LAND(e, class, at) || executed < WRITTEN(e, class, at).number)
    :: else -> WRITTEN(e, class, at).is_lost = 1
    fi
}
/* It may land at once, or as late as the frame is seen: see execute(). */
inline send_request(e, g, n, m)
{
    if
    :: LANDS(e, m) && REACHES(e) ->
        assert(executed < n); /* else it overwrites a later put */
#ifdef DMA
        write(e, REQUEST, g, n, m, 0, 0);
        i = end[PEER(e)].queue[REQUEST].filled - 1;
        begin_dma(e, REQUEST, i)
#else
        write(e, REQUEST, g, n, m, 1, 0)
#endif
    :: else -> write(e, REQUEST, g, n, m, 0, 0)
    fi
}
/* quoit_mover_rest(): a lane takes no update and follows no link before its DMA has ended. */
#ifdef NO_REST
#define IS_AT_REST(h) true
#else
#define IS_AT_REST(h) (end[2 * (h)].dma_count == 0 && end[2 * (h) + 1].dma_count == 0)
#endif

/* adopt(): frames in flight are void */
inline adopt(h)
{
    if
    :: h == 0 ->
#ifndef NO_RESEND
        resending = plain | fetching
#endif
    :: h == 1 ->
#ifndef KEEP_RESPONSES
        waiting_count = 0;
        for (j : 0 .. WAITING - 1) {
            waiting[j] = 0
        }
#endif
    :: else
    fi
}
inline mark_pending(e, whose)
{
    if
    :: IS_OWN_UP(e) -> end[e].pending = end[e].pending | (1 << (whose))
    :: else
    fi
}
/* change() of topology.c */
inline change(where, whose, to)
{
    assert(to > host[where].state[whose]);
    host[where].state[whose] = to;
    mark_pending(2 * (where), whose);
    mark_pending(2 * (where) + 1, whose)
}

/* quoit_ring_link_down() */
inline ring_down(e)
{
    end[e].pending = 0;
    end[e].adopted = 0;
    end[e].is_confirmed = 0;
    change(HOST(e), e, STATE(e, e) + 1);
    adopt(HOST(e))
}
/* quoit_ring_link_up() */
inline ring_up(e)
{
    assert(!IS_OWN_UP(e));
    change(HOST(e), e, 2 * end[e].epoch);
    for (i : 0 .. ENDS - 1) {
        if
        :: STATE(e, i) > 0 -> mark_pending(e, i)
        :: else
        fi
    }
    adopt(HOST(e))
}

/* service.c: what the neighbour has sent in this port epoch; a host that is UP has sent CLEAN before */
#define HAS_SENT(e)       (end[e].is_bound && end[PEER(e)].is_bound)
#define HAS_SENT_PROPOSED(e)  (HAS_SENT(e) && end[PEER(e)].link_state == PROPOSED)
#define HAS_SENT_CLEAN(e) (HAS_SENT(e) && (end[PEER(e)].link_state == CLEAN || end[PEER(e)].link_state == UP))
#define IS_OTHER_CLEAN(e) (HAS_SENT_CLEAN(e) && end[PEER(e)].epoch == end[e].epoch)

/* begin_down(), and at once follow_links() of src/proxy/queue.c */
inline begin_down(e)
{
    end[e].link_state = ABSENT;
    end[e].epoch++;
    ring_down(e);
    printf("host %d: link %d went down\n", HOST(e), LINK(e))
}
/* LATE_LANE: the two by themselves. A lane that was late does not see a link that was up for a short time only. */
inline drain(e)
{
    end[e].link_state = DRAINING;
    end[e].epoch++;
    printf("host %d: link %d is draining\n", HOST(e), LINK(e))
}
inline follow_down(e)
{
    if
    :: IS_OWN_UP(e) -> ring_down(e)
    :: else
    fi;
    end[e].link_state = ABSENT; /* has_followed() */
    printf("host %d: link %d went down\n", HOST(e), LINK(e))
}
#define MAY_PROPOSE(e) (end[e].link_state == ABSENT && !is_cut[LINK(e)])
/* step_absent() */
inline propose(e)
{
    end[e].is_bound = 1;
    end[e].link_state = PROPOSED
}
#define MAY_CLEAN(e)                  \
    (end[e].link_state == PROPOSED && \
     (HAS_SENT_PROPOSED(e) || (HAS_SENT_CLEAN(e) && end[PEER(e)].epoch >= end[e].epoch)))
/* make_clean() */
inline clean(e)
{
    if
    :: end[PEER(e)].epoch > end[e].epoch -> end[e].epoch = end[PEER(e)].epoch
    :: else
    fi;
    sweep(e, REQUEST);
    sweep(e, REPLY);
    end[e].link_state = CLEAN;
    printf("host %d: link %d is clean\n", HOST(e), LINK(e))
}
inline come_up(e)
{
    end[e].link_state = UP;
    ring_up(e);
    printf("host %d: link %d is up in epoch %d\n", HOST(e), LINK(e), end[e].epoch)
}
inline agree(e)
{
    end[e].link_state = UP;
    printf("host %d: the manager has link %d up in epoch %d\n", HOST(e), LINK(e), end[e].epoch)
}
inline follow_up(e)
{
    ring_up(e);
    printf("host %d: link %d is up in epoch %d\n", HOST(e), LINK(e), end[e].epoch)
}

/* quoit_ring_next_reply(): send_link_update(), quoit_ring_links_advertise() */
inline advertise(e)
{
    version = VERSION(HOST(e));
    number = end[PEER(e)].queue[REPLY].filled;
    write(e, REPLY, version, 0, 0, 0, 1);
    more = 0;
    for (j : 0 .. ENDS - 1) {
        if
        :: (end[e].pending & (1 << j)) && more < UPDATES ->
            more++;
            end[e].pending = end[e].pending - (1 << j);
            if
            :: REACHES(e) -> end[PEER(e)].updates[number].state[j] = STATE(e, j)
            :: else
            fi;
            printf("host %d advertises to host %d that end %d is in state %d\n", HOST(e), HOST(PEER(e)), j, STATE(e, j))
        :: else
        fi
    }
    skip
}
/* receive_link_update(), quoit_ring_links_learn() */
inline learn(e)
{
    is_new = 0;
    if
    :: HEAD(e, REPLY).version > end[e].adopted -> end[e].adopted = HEAD(e, REPLY).version
    :: else
    fi;
    for (r : 0 .. ENDS - 1) {
        number = end[e].updates[0].state[r];
        assert(number <= STATE(e, r) || HOST(r) != HOST(e));
        if
        :: r == e && number == STATE(e, e) -> end[e].is_confirmed = 1
        :: number > STATE(e, r) -> change(HOST(e), r, number); is_new = 1
        :: else
        fi
    }
    consume(e, REPLY);
    if
    :: is_new -> adopt(HOST(e))
    :: else
    fi
}

/* quoit_ring_submit() and quoit_ring_next_resend() */
inline send(e, n, m)
{
    version = VERSION(0);
    send_request(e, version, n, m);
    printf("host 0 sends request %d by end %d, retransmitted: %d, version %d\n", n, e, m, version)
}
inline submit(e)
{
    assert(!(QUIETS & (2 << sent)) || executed == sent); /* after a quiet */
    sent++;
    if
    :: IS_FETCH(sent) -> fetching = fetching | BIT(sent)
    :: else -> plain = plain | BIT(sent)
    fi;
    send(e, sent, 0)
}
inline resend(e)
{
    number = FIRST(sent);
    do
    :: (resending & BIT(number)) == 0 -> number++
    :: else -> break
    od;
    resending = resending - BIT(number);
    send(e, number, 1)
}

/* The payload of an executed request may still land: its frame is not seen, the link stands, and no update is seen that
 * its host wrote after it. */
#define MAY_STILL_LAND(e, at)                                                                                \
    (end[e].queue[REQUEST].slots[at].lands && end[e].queue[REQUEST].slots[at].number <= executed && REACHES(e) && \
     (end[e].adopted < VERSION(1) || end[e].queue[REQUEST].slots[at].version >= VERSION(1)))
/* receive_request(), receive_repeated(): a gap is an error of the peer, a number already executed is repeated */
inline execute(e)
{
    number = HEAD(e, REQUEST).number;
    consume(e, REQUEST);
    assert(number <= executed + 1);
    if
#ifdef NO_REPEAT_CHECK
    :: true -> assert(number == executed + 1); executed = number
#else
    :: number == executed + 1 ->
        executed = number;
        if
        :: IS_FETCH(number) -> cached = number
        :: else
        fi
    :: else ->
#ifndef MOVES
        assert(!IS_FETCH(number) || cached == number); /* quoit_ring_response_cache_find() */
#endif
        if
        :: number - 1 < ack_sent -> ack_sent = number - 1
        :: else
        fi
#endif
    fi;
    for (i : 0 .. SLOTS - 1) {
        assert(!MAY_STILL_LAND(2, i));
        assert(!MAY_STILL_LAND(3, i))
    }
    if
    :: IS_FETCH(number) ->
        assert(waiting_count < WAITING);
        waiting[waiting_count] = number;
        waiting_count++
    :: else
    fi;
    printf("host 1 receives request %d\n", number)
}

/* send_reply() */
inline reply_up_to(e, response)
{
    ack_sent = executed;
    version = VERSION(1);
    write(e, REPLY, version, ack_sent, response, 0, 0);
    printf("host 1 acknowledges up to %d by end %d, responds to %d, version %d\n", ack_sent, e, response, version)
}
inline respond(e)
{
    more = waiting[0];
    for (i : 1 .. WAITING - 1) {
        waiting[i - 1] = waiting[i]
    }
    waiting[WAITING - 1] = 0;
    waiting_count--;
    reply_up_to(e, more)
}

/* The set of all requests up to n. */
inline find_up_to(n)
{
#ifdef MOVES
    up_to = 0;
    for (at_bit : FIRST(sent) .. n) {
        up_to = up_to | BIT(at_bit)
    }
#else
    up_to = (2 << (n)) - 1
#endif
}
/* receive_reply() */
inline take_reply(e)
{
    number = HEAD(e, REPLY).number;
    more = HEAD(e, REPLY).more;
    consume(e, REPLY);
    assert(number >= acknowledged && number <= sent);
    assert(number <= executed);
    if
    :: more ->
        find_up_to(more);
        assert((fetching & up_to) == BIT(more)); /* a response to the oldest, */
        assert((resending & BIT(more)) == 0); /* sent in this version */
        fetching = fetching - BIT(more)
    :: else
    fi;
    acknowledged = number;
    find_up_to(number);
    plain = plain & ~up_to;
    resending = resending & (plain | fetching);
    printf("host 0 receives a reply up to %d, response to %d\n", number, more)
}

/* receive_transit(): host 2 forwards what it need not drop */
inline forward_request(e)
{
    version = HEAD(e, REQUEST).version;
    number = HEAD(e, REQUEST).number;
    more = HEAD(e, REQUEST).more;
    consume(e, REQUEST);
    send_request(OPPOSITE(e), version, number, more);
    printf("host 2 forwards request %d of version %d\n", number, version)
}
inline forward_reply(e)
{
    version = HEAD(e, REPLY).version;
    number = HEAD(e, REPLY).number;
    more = HEAD(e, REPLY).more;
    consume(e, REPLY);
    write(OPPOSITE(e), REPLY, version, number, more, 0, 0);
    printf("host 2 forwards a reply of version %d\n", version)
}

/* quoit_ring_receive(): an older frame is dropped; a newer one waits */
#ifdef NO_VERSION
#define IS_OUTDATED(e, class) false
#define IS_CURRENT(e, class) true
#else
#define IS_OUTDATED(e, class) (HEAD(e, class).version < VERSION(HOST(e)))
#define IS_CURRENT(e, class) (HEAD(e, class).version == VERSION(HOST(e)))
#endif
#define IS_UPDATE(e)        (HAS_FRAME(e, REPLY) && HEAD(e, REPLY).is_update)
#define IS_REPLY(e)       (HAS_FRAME(e, REPLY) && !HEAD(e, REPLY).is_update)
#define IS_REPLY_CURRENT(e)   (IS_REPLY(e) && IS_CURRENT(e, REPLY))
#define IS_REQUEST_CURRENT(e) (HAS_FRAME(e, REQUEST) && IS_CURRENT(e, REQUEST))
#define IS_ROOM(e)        (waiting_count < 2)
/* Before the next request, if a quiet stands there. */
#ifdef EARLY_QUIET
#define IS_QUIET true
#else
#define IS_QUIET (!(QUIETS & (2 << sent)) || (plain | fetching) == 0)
#endif

#ifdef ACK_AGAIN
#define IS_ACK_DUE true
#else
#define IS_ACK_DUE (ack_sent != executed)
#endif

#define MAY_FOLLOW_UP(e)   (end[e].link_state == UP && !IS_OWN_UP(e))
#define MAY_FOLLOW_DOWN(e) (end[e].link_state == DRAINING)
#ifdef LATE_LANE
#define MANAGE(e)                                                                        \
    :: d_step { end[e].link_state == UP && HAS_LOST(e) -> drain(e) }                     \
    :: d_step { MAY_FOLLOW_DOWN(e) && IS_AT_REST(HOST(e)) -> follow_down(e) }            \
    :: d_step { MAY_PROPOSE(e) -> propose(e) }                                           \
    :: d_step { MAY_CLEAN(e) -> clean(e) }                                               \
    :: d_step { end[e].link_state == CLEAN && IS_OTHER_CLEAN(e) -> agree(e) }            \
    :: d_step { MAY_FOLLOW_UP(e) && IS_AT_REST(HOST(e)) -> follow_up(e) }
#else
#define MANAGE(e)                                                                                  \
    :: d_step { end[e].link_state == UP && HAS_LOST(e) && IS_AT_REST(HOST(e)) -> begin_down(e) }   \
    :: d_step { MAY_PROPOSE(e) -> propose(e) }                                                     \
    :: d_step { MAY_CLEAN(e) -> clean(e) }                                                         \
    :: d_step { end[e].link_state == CLEAN && IS_OTHER_CLEAN(e) && IS_AT_REST(HOST(e)) -> come_up(e) }
#endif

#define LEARN(e)                                                             \
    :: d_step { end[e].pending != 0 && FREE(e, REPLY) >= 1 -> advertise(e) } \
    :: d_step { IS_UPDATE(e) && IS_AT_REST(HOST(e)) -> learn(e) }            \
    :: d_step { IS_REPLY(e) && HEAD(e, REPLY).version > VERSION(HOST(e)) -> assert(false) }

inline cut(l, right, left)
{
    cuts[l]--;
    is_cut[l] = 1;
    end[right].is_bound = 0;
    end[left].is_bound = 0
}
#define CUT(l, right, left)                                                                             \
    :: d_step { cuts[l] > 0 && !is_cut[l] -> cut(l, right, left); printf("link %d is cut\n", l) }       \
    :: d_step {                                                                                         \
        cuts[l] > 0 && !is_cut[l] ->                                                                    \
        cut(l, right, left); printf("link %d is cut, and everything in flight on it is lost\n", l);     \
        sweep(right, REQUEST); sweep(right, REPLY); sweep(left, REQUEST); sweep(left, REPLY)            \
    }                                                                                                   \
    :: d_step { is_cut[l] && (STAYS != l || cuts[l] > 0) -> is_cut[l] = 0; printf("link %d is back\n", l) }

#define IS_IDLE(e)                                                                                  \
    (end[e].pending == 0 && end[e].dma_count == 0 && end[e].queue[REQUEST].filled == 0 && end[e].queue[REPLY].filled == 0 && \
     ((end[e].link_state == UP && IS_OWN_UP(e) && !HAS_LOST(e)) || \
      (is_cut[LINK(e)] && STAYS == LINK(e) && end[e].link_state == ABSENT)))
#define HAS_TOPOLOGY_OF_1(h)                                                         \
    (host[h].state[0] == host[1].state[0] && host[h].state[1] == host[1].state[1] && \
     host[h].state[2] == host[1].state[2] && host[h].state[3] == host[1].state[3] && \
     host[h].state[4] == host[1].state[4] && host[h].state[5] == host[1].state[5])
#define IS_COMPLETE                                                                                                       \
    (sent == REQUESTS && executed == REQUESTS && (plain | fetching) == 0 && ack_sent == executed && waiting_count == 0 && \
     IS_IDLE(0) && IS_IDLE(1) && IS_IDLE(2) && IS_IDLE(3) && IS_IDLE(4) && IS_IDLE(5) && HAS_TOPOLOGY_OF_1(0) &&          \
     HAS_TOPOLOGY_OF_1(2))

/* Reductions, after each step. What has no effect any more is forgotten, so that states which differ in nothing else are
 * one (versions and states only grow, and are only compared):
 * - the version and contents of an outdated frame, and states in an update that its reader knows;
 * - an adopted version below the own one;
 * - epochs that all hosts have left behind: those of a link, and all versions, are counted from there.
 * - an adopted version and a confirmation at an end that neither executes nor lands;
 * - a frame without effect, wherever it stands among the replies.
 * With EAGER an update leaves as soon as there is one, and REPLY_SLOTS are so many that it always finds a slot, which is
 * asserted. No run of SLOTS slots is lost by that: where the code sends one frame later, with the newest states, here
 * are several in a row, and the neighbour may take them in one go, which has the same effect. Replies find room in the
 * same states, or in more.
 * Steps that are certain to happen and disable no other step are taken at once:
 * - an outdated frame is dropped, save one whose payload may still land; an update that says nothing is taken;
 * - an end that was PROPOSED or CLEAN when the link was lost returns to ABSENT: its words in the scratchpads are gone;
 * - on a link that will not be cut again, the steps of an end before it comes up: no host writes or reads there. */
#define IS_SURE(e) (cuts[LINK(e)] == 0 && STAYS != LINK(e))
#if defined(PLAIN) || defined(NO_VERSION)
#define FORGET skip
#else
#define FORGET c_code { forget(&now); }
c_decl {
    static void forget();
}
c_code {
    static int version_of(State *state, int host)
    {
        int version = 0;
        for (int whose = 0; whose < ENDS; whose++)
            version += state->host[host].state[whose];
        return version;
    }
    static void forget_updates(State *state, int e, int at)
    {
        int needs_confirmation = e == 1 || e == 4; /* what they send may land */
        for (int whose = 0; whose < ENDS; whose++) {
            unsigned char *update = &state->end[e].updates[at].state[whose];
            int known = state->host[e / 2].state[whose];
            if (*update < known || (*update == known && !(whose == e && needs_confirmation)))
                *update = 0;
        }
    }
    static void forget_of_end(State *state, int e)
    {
        int version = version_of(state, e / 2);
        int needs_adopted = e == 2 || e == 3; /* they execute */
        if (e != 1 && e != 4)
            state->end[e].is_confirmed = 0;
        if (!needs_adopted || state->end[e].adopted < version)
            state->end[e].adopted = 0;
        for (int at = 0; at < REPLY_SLOTS; at++) {
            struct Frame *request = &state->end[e].queue[REQUEST].slots[at];
            struct Frame *reply = &state->end[e].queue[REPLY].slots[at];
            if (request->version < version) {
                request->version = 0;
                if (!request->lands && !request->flies)
                    request->number = request->more = 0;
            }
            if (reply->version < version || (reply->is_update && !needs_adopted))
                reply->version = reply->number = reply->more = 0;
            forget_updates(state, e, at);
        }
    }
    /* A lane that polls takes such a frame without effect. */
    static int is_void(State *state, int e, int at)
    {
        static const struct Update nothing;
        struct Frame *frame = &state->end[e].queue[REPLY].slots[at];
        return frame->version == 0 && (!frame->is_update || !memcmp(&state->end[e].updates[at], &nothing, sizeof nothing));
    }
    static void drop_void(State *state, int e)
    {
        struct Queue *queue = &state->end[e].queue[REPLY];
        struct Update *updates = state->end[e].updates;
        int count = 0;
        if (state->host[e / 2].state[e] & 1)
            return;
        for (int at = 0; at < queue->filled; at++) {
            if (is_void(state, e, at))
                continue;
            queue->slots[count] = queue->slots[at];
            updates[count++] = updates[at];
        }
        memset(&queue->slots[count], 0, (REPLY_SLOTS - count) * sizeof queue->slots[0]);
        memset(&updates[count], 0, (REPLY_SLOTS - count) * sizeof updates[0]);
        queue->filled = count;
    }
    static void subtract(unsigned char *value, int by)
    {
        *value = *value > by ? *value - by : 0;
    }
    static void rebase(State *state, int right, int left)
    {
        for (int h = 0; h < HOSTS; h++)
            if (state->host[h].state[right] < 4 || state->host[h].state[left] < 4)
                return;
        state->end[right].epoch--;
        state->end[left].epoch--;
        for (int h = 0; h < HOSTS; h++) {
            state->host[h].state[right] -= 2;
            state->host[h].state[left] -= 2;
        }
        for (int e = 0; e < ENDS; e++) {
            subtract(&state->end[e].adopted, 4);
            for (int at = 0; at < REPLY_SLOTS; at++) {
                subtract(&state->end[e].queue[REQUEST].slots[at].version, 4);
                subtract(&state->end[e].queue[REPLY].slots[at].version, 4);
                subtract(&state->end[e].updates[at].state[right], 2);
                subtract(&state->end[e].updates[at].state[left], 2);
            }
        }
        rebase(state, right, left);
    }
    static void forget(State *state)
    {
        for (int e = 0; e < ENDS; e++) {
            forget_of_end(state, e);
            drop_void(state, e);
        }
        for (int link = 0; link < HOSTS; link++)
            rebase(state, 2 * link + 1, (2 * link + 2) % ENDS);
    }
}
#endif
#define MAY_BE_DROPPED(e) (HAS_FRAME(e, REQUEST) && IS_OUTDATED(e, REQUEST))
#define HAS_LANDED(e)     (!HEAD(e, REQUEST).lands || end[e].adopted >= VERSION(HOST(e)))
#ifdef EAGER
#define IS_EAGER(e) (end[e].pending != 0)
#else
#define IS_EAGER(e) false
#endif
#define SETTLE(e)                                                                                           \
    do                                                                                                      \
    :: IS_EAGER(e) -> assert(FREE(e, REPLY) >= 1); advertise(e); again = 1                                  \
    :: IS_REPLY(e) && IS_OUTDATED(e, REPLY) -> consume(e, REPLY); again = 1                                 \
    :: MAY_BE_DROPPED(e) && HAS_LANDED(e) -> consume(e, REQUEST); again = 1                                 \
    :: (end[e].link_state == PROPOSED || end[e].link_state == CLEAN) && HAS_LOST(e) ->                      \
        end[e].link_state = ABSENT; again = 1                                                               \
    :: IS_SURE(e) && MAY_PROPOSE(e) -> propose(e); again = 1                                                \
    :: IS_SURE(e) && MAY_CLEAN(e) -> clean(e); again = 1                                                    \
    :: end[e].link_state == ABSENT && end[e].queue[REQUEST].filled + end[e].queue[REPLY].filled > 0 ->      \
        sweep(e, REQUEST); sweep(e, REPLY)                                                                  \
    :: else -> break                                                                                        \
    od
#define REDUCE                                                                              \
    d_step {                                                                                \
        again = 1;                                                                          \
        do                                                                                  \
        :: again ->                                                                         \
            again = 0;                                                                      \
            FORGET;                                                                         \
            for (r : 0 .. ENDS - 1) { SETTLE(r) }                                           \
        :: else -> break                                                                    \
        od;                                                                                 \
        FORGET                                                                              \
    }

/* DMA ends in any order. Its slots may have been swept with all that was lost: then only the lane's count is left. */
#if defined(DMA) && SLOTS != 2
#error "FINISH knows two slots"
#endif
#define FINISH(e)                                                                      \
    :: d_step { FLIES(e, 0) -> finish_dma(e, REQUEST, 0) }                             \
    :: d_step { FLIES(e, 1) -> finish_dma(e, REQUEST, 1) }                             \
    :: d_step {                                                                        \
        end[e].dma_count > WRITTEN(e, REQUEST, 0).flies + WRITTEN(e, REQUEST, 1).flies -> \
        end[e].dma_count--                                                             \
    }

/* Every host knows that this link is down. */
inline begin_absent(e)
{
    end[e].link_state = ABSENT;
    end[e].epoch = 2;
    end[e].is_bound = 0;
    end[e].is_confirmed = 0
}

#ifdef MOVES
/* The moves of one flow, source and destination as hosts 0 and 1, and of all links. moves.h defines MOVE_COUNT,
 * load_moves(), and INITIAL_UP: bit e: the ring has end e up when it starts. */
int move[MOVE_COUNT];
hidden int at_move, fetches, before, its_number, its_version;
hidden byte kind, at_end, at_link, at_peer, flag;

inline lose_proposal(e)
{
    if
    :: (end[e].link_state == PROPOSED || end[e].link_state == CLEAN) && HAS_LOST(e) -> end[e].link_state = ABSENT
    :: else
    fi
}
inline note_kind(n, is_fetch)
{
    assert(((plain | fetching) & BIT(n)) == 0); /* else more are outstanding than a set holds */
    fetches = (fetches | BIT(n)) ^ ((is_fetch) -> 0 : BIT(n))
}
inline take_request(e, is_delivered)
{
    assert(HAS_FRAME(e, REQUEST) && HEAD(e, REQUEST).number == its_number && HEAD(e, REQUEST).version == its_version);
    before = executed;
    if
    :: IS_OUTDATED(e, REQUEST) -> consume(e, REQUEST)
    :: else ->
        assert(IS_CURRENT(e, REQUEST));
        if
        :: HOST(e) == 1 -> assert(IS_QUIESCED); execute(e)
        :: else -> assert(!IS_OPEN(OPPOSITE(e))); consume(e, REQUEST)
        fi
    fi;
    assert((executed != before) == is_delivered)
}
inline take_any_reply(e)
{
    assert(IS_REPLY(e) && HEAD(e, REPLY).number == its_number && HEAD(e, REPLY).version == its_version);
    if
    :: IS_OUTDATED(e, REPLY) -> consume(e, REPLY)
    :: else ->
        assert(IS_CURRENT(e, REPLY));
        if
        :: HOST(e) == 0 -> take_reply(e)
        :: else -> assert(!IS_OPEN(OPPOSITE(e))); consume(e, REPLY)
        fi
    fi
}
/* The payload of the frame that was just written through this end goes by DMA. Number 0: of another flow. */
inline leave(e, class)
{
    before = end[PEER(e)].queue[class].filled - 1;
    if
    :: its_number && REACHES(e) ->
        assert(before >= 0 && WRITTEN(e, class, before).number == its_number);
        begin_dma(e, class, before)
    :: else -> end[e].dma_count++
    fi
}
/* Its frame is gone if the reader has swept its slots meanwhile. */
inline has_left(e, class)
{
    before = 0;
    do
    :: before < SLOTS_OF(class) &&
        !(its_number && WRITTEN(e, class, before).flies && WRITTEN(e, class, before).number == its_number) -> before++
    :: else -> break
    od;
    if
    :: before < SLOTS_OF(class) -> finish_dma(e, class, before)
    :: else -> end[e].dma_count--
    fi
}
inline follow_move(e)
{
    if
    :: kind == 0 -> at_link = LINK(e); at_peer = PEER(e); assert(!is_cut[at_link]); cuts[at_link] = 1; cut(at_link, e, at_peer)
    :: kind == 1 -> assert(is_cut[LINK(e)]); is_cut[LINK(e)] = 0
    :: kind == 2 -> lose_proposal(e); assert(MAY_PROPOSE(e)); propose(e)
    :: kind == 3 -> assert(MAY_CLEAN(e)); clean(e); assert(end[e].epoch == its_number)
    :: kind == 4 -> assert(end[e].link_state == CLEAN && IS_OTHER_CLEAN(e)); agree(e)
    :: kind == 5 -> assert(end[e].link_state == UP && HAS_LOST(e)); drain(e)
    :: kind == 6 && flag -> assert(MAY_FOLLOW_UP(e) && IS_AT_REST(HOST(e))); follow_up(e); assert(VERSION(HOST(e)) == its_version)
    :: kind == 6 && !flag ->
        assert(MAY_FOLLOW_DOWN(e) && IS_AT_REST(HOST(e))); follow_down(e); assert(VERSION(HOST(e)) == its_version);
        sweep(e, REQUEST); sweep(e, REPLY) /* nothing reads it any more, and what is in flight is lost */
    :: kind == 7 ->
        assert(end[e].pending != 0 && FREE(e, REPLY) >= 1 && VERSION(HOST(e)) == its_version); advertise(e)
    :: kind == 8 -> assert(IS_UPDATE(e) && HEAD(e, REPLY).version == its_version && IS_AT_REST(HOST(e))); learn(e)
    :: kind == 9 ->
        assert(!resending && IS_REACHABLE_0 && ROUTE_0 == e && MAY_INJECT_REQUEST(e) && VERSION(0) == its_version);
        note_kind(its_number, flag); submit(e); assert(sent == its_number)
    :: kind == 10 ->
        assert(resending && IS_REACHABLE_0 && ROUTE_0 == e && MAY_INJECT_REQUEST(e) && VERSION(0) == its_version);
        resend(e); assert(number == its_number)
    :: kind == 11 -> take_request(e, flag)
    :: kind == 12 -> take_any_reply(e)
    :: kind == 13 ->
        assert(IS_REQUEST_CURRENT(e) && HEAD(e, REQUEST).number == its_number && HEAD(e, REQUEST).version == its_version);
        assert(IS_OPEN(OPPOSITE(e)) && FREE(OPPOSITE(e), REQUEST) >= 1); forward_request(e)
    :: kind == 14 ->
        assert(IS_REPLY_CURRENT(e) && HEAD(e, REPLY).number == its_number && HEAD(e, REPLY).version == its_version);
        assert(IS_OPEN(OPPOSITE(e)) && MAY_FOLLOW_UPDATES(OPPOSITE(e)) && FREE(OPPOSITE(e), REPLY) >= 1);
        forward_reply(e)
    :: kind == 15 ->
        assert(waiting_count > 0 && ROUTE_1 == e && MAY_INJECT_REPLY(e) && VERSION(1) == its_version);
        respond(e); assert(ack_sent == its_number)
    :: kind == 16 ->
        assert(ack_sent != executed && ROUTE_1 == e && MAY_INJECT_REPLY(e) && VERSION(1) == its_version);
        reply_up_to(e, 0); assert(ack_sent == its_number)
    :: kind == 17 -> leave(e, flag)
    :: kind == 18 -> assert(end[e].dma_count > 0); has_left(e, flag)
    fi
}

init
{
    load_moves();
    d_step {
        for (i : 0 .. ENDS - 1) {
            end[i].link_state = ABSENT;
            end[i].is_confirmed = (INITIAL_UP >> i) & 1;
            host[HOST(i)].state[i] = 1 - ((INITIAL_UP >> i) & 1)
        }
        is_cut[0] = 1;
        is_cut[1] = 1;
        is_cut[2] = 1
    }
    do
    :: at_move < MOVE_COUNT ->
        d_step {
            printf("move %d\n", at_move);
            kind = move[at_move] & 31;
            at_end = (move[at_move] >> 5) & 7;
            flag = (move[at_move] >> 8) & 1;
            its_number = (move[at_move] >> 9) & 2047;
            its_version = move[at_move] >> 20;
            follow_move(at_end);
            at_move++
        }
    :: else -> break
    od;
    assert((plain | fetching | resending) == 0 && executed == sent && acknowledged == sent);
    for (i : 0 .. ENDS - 1) {
        assert(end[i].pending == 0 && end[i].queue[REQUEST].filled == 0 && end[i].queue[REPLY].filled == 0)
    }
    printf("%d moves, %d requests complete\n", MOVE_COUNT, executed)
}
#else
active proctype Ring()
{
    d_step {
        for (i : 0 .. ENDS - 1) {
            end[i].is_confirmed = 1;
            end[i].is_bound = 1;
            end[i].epoch = 1;
            host[0].state[i] = 2;
            host[1].state[i] = 2;
            host[2].state[i] = 2
        }
        cuts[0] = CUTS_0;
        cuts[1] = CUTS_1;
        cuts[2] = CUTS_2;
#if BEGINS < HOSTS
        is_cut[BEGINS] = 1;
        for (i : 0 .. HOSTS - 1) {
            host[i].state[2 * BEGINS + 1] = 3;
            host[i].state[(2 * BEGINS + 2) % ENDS] = 3
        }
        begin_absent(2 * BEGINS + 1);
        begin_absent((2 * BEGINS + 2) % ENDS)
#endif
    }
accept:
    do
    :: atomic {
        if
    CUT(0, 1, 2) CUT(1, 3, 4) CUT(2, 5, 0)
    MANAGE(0) MANAGE(1) MANAGE(2) MANAGE(3) MANAGE(4) MANAGE(5)
    LEARN(0) LEARN(1) LEARN(2) LEARN(3) LEARN(4) LEARN(5)
    :: d_step {
        resending && IS_REACHABLE_0 && MAY_INJECT_REQUEST(ROUTE_0) -> out = ROUTE_0; resend(out)
    }
    :: d_step {
        sent < REQUESTS && !resending && IS_REACHABLE_0 && MAY_INJECT_REQUEST(ROUTE_0) &&
            (!(FETCHES & (2 << sent)) || !fetching) && IS_QUIET -> out = ROUTE_0; submit(out)
    }
#ifdef DMA
    FINISH(1) FINISH(4)
#endif
    :: d_step { MAY_BE_DROPPED(2) -> consume(2, REQUEST) }
    :: d_step { MAY_BE_DROPPED(3) -> consume(3, REQUEST) }
    :: d_step { IS_REQUEST_CURRENT(2) && IS_QUIESCED && IS_ROOM(2) -> execute(2) }
    :: d_step { IS_REQUEST_CURRENT(3) && IS_QUIESCED && IS_ROOM(3) -> execute(3) }
    :: d_step { waiting_count > 0 && MAY_INJECT_REPLY(ROUTE_1) -> out = ROUTE_1; respond(out) }
    :: d_step { waiting_count == 0 && IS_ACK_DUE && MAY_INJECT_REPLY(ROUTE_1) ->
        out = ROUTE_1; reply_up_to(out, 0)
    }
    :: d_step { IS_REPLY_CURRENT(0) -> take_reply(0) }
    :: d_step { IS_REPLY_CURRENT(1) -> take_reply(1) }
    :: d_step { IS_REQUEST_CURRENT(5) && !IS_OPEN(4) -> consume(5, REQUEST) }
    :: d_step { IS_REQUEST_CURRENT(5) && IS_OPEN(4) && FREE(4, REQUEST) >= 1 -> forward_request(5) }
    :: d_step { IS_REPLY_CURRENT(4) && !IS_OPEN(5) -> consume(4, REPLY) }
    :: d_step { IS_REPLY_CURRENT(4) && IS_OPEN(5) && MAY_FOLLOW_UPDATES(5) && FREE(5, REPLY) >= 1 -> forward_reply(4) }
        fi;
        REDUCE
    }
    :: IS_COMPLETE -> break
    od
}
#endif
