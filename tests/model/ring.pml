/* SPDX-License-Identifier: BSD-3-Clause */
/* ring.pml - the flow control of one lane of the ring: slots, credits, bubble, transit, responses, acknowledgements.
 *
 * Aim: every run ends with every request complete and every credit returned, and no slot is overwritten.
 * Method: spin visits every state. A run may end only where IS_COMPLETE holds; any other end is an invalid end state. A
 * step is one call of src/ring by the lane of one host, with the write that follows from it; the function is named
 * beside the step. All links stay up. check.py runs the sizes, and the variants that must fail. docs/design/model.md
 * says what is left out and why that is sound.
 *
 * A direction is a cycle of requests and the cycle of their replies, which travel in the opposite direction. A queue is
 * identified by direction, class and the host that reads it; a flow by direction, the host of this half, and the hops
 * between its ends (1 or 2).
 *
 * Sizes (each by -D): HOSTS, SLOTS, DIRECTIONS, PENDING (responses that may wait on a host), OUTSTANDING (outstanding
 *   requests of a host), ONE_HOP and TWO_HOPS (requests of each flow of that length, at most 3), FETCHES_ONE_HOP and
 *   FETCHES_TWO_HOPS (bit n: request n of such a flow needs a response), or ANY_KIND: each may or may not.
 * Choices: ANY_TURN: an acknowledgement may overtake responses at any time, not only after 16.
 * Reductions: REDUCE: steps whose order cannot matter are taken at once. ROTATE: states that differ only by a rotation
 *   of the hosts are one state.
 * MOVES: moves.h has the moves of one run of the production code, by moves.py: each must be a step that is possible here.
 * Variants, each of which breaks the protocol: NO_BUBBLE, NO_REPLY_BUBBLE, REPLY_BEHIND_REQUEST, NO_ROOM_CHECK,
 *   LOST_CREDIT, EARLY_CREDIT.
 */
#define REQUEST 0
#define REPLY   1
#ifdef MOVES
#include "moves.h"
#endif

#define TOTAL (HOSTS * DIRECTIONS * (ONE_HOP + TWO_HOPS))

/* A frame: hops between the ends of its flow, hops still to go, its number in the flow (a reply: all up to it are
 * executed), and more: of a request whether it needs a response, of a response the number of its request, 0 for an
 * acknowledgement only. */
#ifdef MOVES
#define WORD        int
#define NUMBER_BITS 5
#else
#define WORD        byte
#define NUMBER_BITS 2
#endif
#define NUMBER_MAX ((1 << NUMBER_BITS) - 1)
#define FRAME(hops, to_go, number, more) \
    ((hops) - 1 + 2 * (to_go) + 4 * (number) + (4 << NUMBER_BITS) * (more))
#define ONE_HOP_LESS(frame) ((frame) - 2)
#define HOPS(frame)   (((frame) & 1) + 1)
#define TO_GO(frame)  (((frame) >> 1) & 1)
#define NUMBER(frame) (((frame) >> 2) & NUMBER_MAX)
#define MORE(frame)   ((frame) >> (2 + NUMBER_BITS))

typedef Queue {
    byte used;         /* struct quoit_ring_outbound of the writer: sent_total - credited_total */
    byte unadvertised; /* struct quoit_ring_inbound: consumed_total - advertised_total */
    byte filled;       /* slots that hold a frame, the oldest first */
    WORD slots[SLOTS];
}

typedef FlowOut { /* struct quoit_ring_flow_out */
    byte sent;
    byte acknowledged;
    WORD plain;  /* the two lists: bit n for request n */
    WORD fetching;
}

typedef FlowIn { /* struct quoit_ring_flow_in */
    byte executed;
    byte acknowledged;
}

typedef Pending { /* struct quoit_ring_replies: one list */
    byte count;
    WORD responses[PENDING];
}

typedef Lane { /* struct quoit_ring, and its inbound queues */
    Queue queue[2 * DIRECTIONS];
    FlowOut flow_out[2 * DIRECTIONS];
    FlowIn flow_in[2 * DIRECTIONS];
    Pending pending[DIRECTIONS];
    byte outstanding; /* struct quoit_ring_pool: entries in use */
}

Lane lane[HOSTS];
WORD completed_total; /* of all hosts */
byte used_total;
#ifdef LOST_CREDIT
byte is_lost;
#endif

/* Used within a step only, so not part of the state. */
hidden byte i, at, at_host, number, response, has_reduced;
hidden WORD frame;

/* Requests of direction 0 and replies of direction 1 travel to the right. */
#define NEXT(d, class, h) (((h) + 1 + ((d) ^ (class)) * (HOSTS - 2)) % HOSTS)
#define IN(d, class, h)   lane[h].queue[2 * (d) + (class)]
#define OUT(d, class, h)  IN(d, class, NEXT(d, class, h))
#define FLOW_OUT(d, h, hops) lane[h].flow_out[2 * (d) + (hops) - 1]
#define FLOW_IN(d, h, hops)  lane[h].flow_in[2 * (d) + (hops) - 1]
#define PENDING_REPLIES(d, h)        lane[h].pending[d]

#define FREE(d, class, h)       (SLOTS - OUT(d, class, h).used) /* quoit_ring_free_slots() */
#define HEAD(d, class, h)       IN(d, class, h).slots[0]
#define HAS_ARRIVED(d, class, h)    (IN(d, class, h).filled > 0 && TO_GO(HEAD(d, class, h)) == 0)
#define IS_IN_TRANSIT(d, class, h) (IN(d, class, h).filled > 0 && TO_GO(HEAD(d, class, h)) > 0)
#define IS_ACK_PENDING(d, h, hops)    (FLOW_IN(d, h, hops).executed != FLOW_IN(d, h, hops).acknowledged)

/* quoit_ring_replies_has_room() */
#if DIRECTIONS == 2
#define HAS_ROOM(h) (PENDING_REPLIES(0, h).count + PENDING_REPLIES(1, h).count < PENDING)
#else
#define HAS_ROOM(h) (PENDING_REPLIES(0, h).count < PENDING)
#endif

/* quoit_ring_may_inject() and quoit_ring_may_transit(), without the pause */
#ifdef NO_BUBBLE
#define MAY_INJECT_REQUEST(d, h) (FREE(d, REQUEST, h) >= 1)
#else
#define MAY_INJECT_REQUEST(d, h) (FREE(d, REQUEST, h) >= 2)
#endif
#ifdef NO_REPLY_BUBBLE
#define MAY_INJECT_REPLY(d, h) (FREE(d, REPLY, h) >= 1)
#else
#define MAY_INJECT_REPLY(d, h) (FREE(d, REPLY, h) >= 2)
#endif
#define MAY_FORWARD(d, class, h) (IS_IN_TRANSIT(d, class, h) && FREE(d, class, h) >= 1 && MAY_POLL(d, class, h))

#ifdef REPLY_BEHIND_REQUEST
#define MAY_POLL(d, class, h) (class == REQUEST || IN(d, REQUEST, h).filled == 0)
#else
#define MAY_POLL(d, class, h) true
#endif

#define MAY_SUBMIT(d, h, hops, count) \
    (FLOW_OUT(d, h, hops).sent < count && lane[h].outstanding < OUTSTANDING && MAY_INJECT_REQUEST(d, h))
#ifdef NO_ROOM_CHECK
#define MAY_EXECUTE(d, h) HAS_ARRIVED(d, REQUEST, h)
#else
#define MAY_EXECUTE(d, h) (HAS_ARRIVED(d, REQUEST, h) && (!MORE(HEAD(d, REQUEST, h)) || HAS_ROOM(h)))
#endif
#define MAY_TAKE_REPLY(d, h)   (HAS_ARRIVED(d, REPLY, h) && MAY_POLL(d, REPLY, h))
#define MAY_RESPOND(d, h) (PENDING_REPLIES(d, h).count > 0 && MAY_INJECT_REPLY(d, h))
#ifdef ANY_TURN
#define IS_TURN_OF_ACK(d, h) true
#else
#define IS_TURN_OF_ACK(d, h) (PENDING_REPLIES(d, h).count == 0)
#endif
#define MAY_ACKNOWLEDGE(d, h, hops) (IS_ACK_PENDING(d, h, hops) && IS_TURN_OF_ACK(d, h) && MAY_INJECT_REPLY(d, h))
#ifdef EARLY_CREDIT
#define MAY_CREDIT(d, class, h) (IN(d, class, h).used > 0)
#else
#define MAY_CREDIT(d, class, h) (IN(d, class, h).unadvertised > 0)
#endif

/* quoit_ring_take_slot(), send() of ring.c, and send() of src/proxy/queue.c. The writer decides by its own count
 * (used); the other assertions inspect the slots themselves. */
inline put(d, class, h, f)
{
    assert(OUT(d, class, h).used < SLOTS);
    assert(OUT(d, class, h).filled < SLOTS);
#if !defined(EARLY_CREDIT) && !defined(LOST_CREDIT)
    assert(OUT(d, class, h).used == OUT(d, class, h).filled + OUT(d, class, h).unadvertised);
#endif
    OUT(d, class, h).slots[OUT(d, class, h).filled] = f;
    OUT(d, class, h).filled++;
    OUT(d, class, h).used++;
    used_total++
}

/* consume() of ring.c */
inline take(d, class, h)
{
    for (at : 1 .. SLOTS - 1) {
        IN(d, class, h).slots[at - 1] = IN(d, class, h).slots[at];
    }
    IN(d, class, h).slots[SLOTS - 1] = 0;
    IN(d, class, h).filled--;
#ifndef EARLY_CREDIT
    IN(d, class, h).unadvertised++
#endif
}

/* quoit_ring_submit(): quoit_ring_pool_take(), quoit_ring_flow_send(), send() */
inline submit(d, h, hops, fetches)
{
    number = FLOW_OUT(d, h, hops).sent + 1;
    FLOW_OUT(d, h, hops).sent = number;
    lane[h].outstanding++;
    if
    :: fetches ->
        FLOW_OUT(d, h, hops).fetching = FLOW_OUT(d, h, hops).fetching | (1 << number);
        frame = FRAME(hops, hops - 1, number, 1)
    :: else ->
        FLOW_OUT(d, h, hops).plain = FLOW_OUT(d, h, hops).plain | (1 << number);
        frame = FRAME(hops, hops - 1, number, 0)
    fi;
    put(d, REQUEST, h, frame);
    printf("host %d submits request %d, %d hops, fetches: %d\n", h, number, hops, MORE(frame))
}

/* quoit_ring_receive(): receive_transit() */
inline forward(d, class, h)
{
    frame = ONE_HOP_LESS(HEAD(d, class, h));
    take(d, class, h);
    put(d, class, h, frame);
    printf("host %d forwards a frame of class %d\n", h, class)
}

/* quoit_ring_receive(): receive_request(), and at once quoit_ring_reply() if it needs a response */
inline execute(d, h)
{
    frame = HEAD(d, REQUEST, h);
    take(d, REQUEST, h);
    FLOW_IN(d, h, HOPS(frame)).executed++;
    assert(NUMBER(frame) == FLOW_IN(d, h, HOPS(frame)).executed);
    if
    :: MORE(frame) ->
        assert(HAS_ROOM(h)); /* quoit_ring_replies_append() */
        PENDING_REPLIES(d, h).responses[PENDING_REPLIES(d, h).count] = FRAME(HOPS(frame), 0, NUMBER(frame), 0);
        PENDING_REPLIES(d, h).count++
    :: else
    fi;
    printf("host %d executes request %d, %d hops\n", h, NUMBER(frame), HOPS(frame))
}

/* quoit_ring_next_completion() */
inline complete(h)
{
    lane[h].outstanding--;
    completed_total++
}

/* quoit_ring_flow_acknowledge() */
inline acknowledge(d, h, hops)
{
    assert(number >= FLOW_OUT(d, h, hops).acknowledged);
    assert(number <= FLOW_OUT(d, h, hops).sent);
    FLOW_OUT(d, h, hops).acknowledged = number;
    for (at : 1 .. NUMBER_MAX) {
        if
        :: at <= number && (FLOW_OUT(d, h, hops).plain & (1 << at)) ->
            FLOW_OUT(d, h, hops).plain = FLOW_OUT(d, h, hops).plain - (1 << at);
            complete(h)
        :: else
        fi
    }
}

/* quoit_ring_receive(): receive_reply(), quoit_ring_flow_complete(). A response is to the oldest open request. */
inline take_reply(d, h)
{
    frame = HEAD(d, REPLY, h);
    number = NUMBER(frame);
    response = MORE(frame);
    take(d, REPLY, h);
    if
    :: response ->
        assert((FLOW_OUT(d, h, HOPS(frame)).fetching & ((2 << response) - 1)) == 1 << response);
        assert(number >= response);
        FLOW_OUT(d, h, HOPS(frame)).fetching = FLOW_OUT(d, h, HOPS(frame)).fetching - (1 << response);
        complete(h)
    :: else -> assert(number != FLOW_OUT(d, h, HOPS(frame)).acknowledged)
    fi;
    acknowledge(d, h, HOPS(frame));
    printf("host %d receives a reply up to %d, response to %d, %d hops\n", h, number, response, HOPS(frame))
}

/* quoit_ring_flow_take_ack(), send() */
inline reply(d, h, hops, responds_to)
{
    number = FLOW_IN(d, h, hops).executed;
    FLOW_IN(d, h, hops).acknowledged = number;
    frame = FRAME(hops, hops - 1, number, responds_to);
    put(d, REPLY, h, frame);
    printf("host %d replies up to %d, responds to %d, %d hops\n", h, number, responds_to, hops)
}

/* quoit_ring_next_reply(): send_reply(), quoit_ring_replies_pop() */
inline respond(d, h)
{
    frame = PENDING_REPLIES(d, h).responses[0];
    response = NUMBER(frame);
    for (at : 1 .. PENDING - 1) {
        PENDING_REPLIES(d, h).responses[at - 1] = PENDING_REPLIES(d, h).responses[at];
    }
    PENDING_REPLIES(d, h).responses[PENDING - 1] = 0;
    PENDING_REPLIES(d, h).count--;
    i = HOPS(frame);
    reply(d, h, i, response)
}

/* src/proxy/queue.c: return_credits() of the reader (quoit_ring_credit_advertised()), take_credits() of the writer
 * (quoit_ring_credit()); one slot at a time, at any time after it was consumed */
inline credit(d, class, h)
{
#ifndef EARLY_CREDIT
    IN(d, class, h).unadvertised--;
#endif
    assert(IN(d, class, h).used > 0);
    IN(d, class, h).used--;
    used_total--;
    printf("host %d returns a credit of class %d\n", h, class)
}

/* REDUCE: after each step, steps that happen in any order happen at once. Such a step commutes with every step of any
 * host that can come before it, and disables none of them:
 * - a credit returns: this only enables steps;
 * - a reply is received: no other step removes it, and this only enables steps;
 * - a request is executed whose flow has no pending ACK or response: no reply with another number can leave before. If
 *   it needs a response, no ACK may be pending that the response would overtake, and the entry for the response must be
 *   free and needed by no other direction;
 * - a frame is forwarded into a queue into which this host will inject no more. */
#if defined(REDUCE) && (defined(LOST_CREDIT) || defined(EARLY_CREDIT))
#error "REDUCE returns credits before they can be lost or early"
#endif
#ifdef REDUCE
#define HAS_SUBMITTED(d, h) (FLOW_OUT(d, h, 1).sent == ONE_HOP && FLOW_OUT(d, h, 2).sent == TWO_HOPS)
#define HAS_REPLIED(d, h) \
    (FLOW_IN(d, h, 1).acknowledged == ONE_HOP && FLOW_IN(d, h, 2).acknowledged == TWO_HOPS && \
     PENDING_REPLIES(d, h).count == 0)
#define MAY_FETCH_EARLY(d, h) (DIRECTIONS == 1 && !IS_ACK_PENDING(d, h, 1) && !IS_ACK_PENDING(d, h, 2))

inline reduce_credit(d, class, h)
{
    do
    :: MAY_CREDIT(d, class, h) -> credit(d, class, h); has_reduced = 1
    :: else -> break
    od
}
inline reduce_reply(d, h)
{
    do
    :: MAY_TAKE_REPLY(d, h) -> take_reply(d, h); has_reduced = 1
    :: HAS_REPLIED(d, h) && MAY_FORWARD(d, REPLY, h) -> forward(d, REPLY, h); has_reduced = 1
    :: else -> break
    od
}
inline reduce_request(d, h)
{
    do
    :: HAS_SUBMITTED(d, h) && MAY_FORWARD(d, REQUEST, h) -> forward(d, REQUEST, h); has_reduced = 1
    :: MAY_EXECUTE(d, h) ->
        frame = HEAD(d, REQUEST, h);
        number = 0; /* pending responses of this flow */
        for (at : 0 .. PENDING - 1) {
            if
            :: at < PENDING_REPLIES(d, h).count && HOPS(PENDING_REPLIES(d, h).responses[at]) == HOPS(frame) -> number++
            :: else
            fi
        }
        if
        :: number == 0 && !IS_ACK_PENDING(d, h, HOPS(frame)) && (!MORE(frame) || MAY_FETCH_EARLY(d, h)) ->
            execute(d, h);
            has_reduced = 1
        :: else -> break
        fi
    :: else -> break
    od
}
inline reduce_host(d, h)
{
    reduce_credit(d, REQUEST, h);
    reduce_credit(d, REPLY, h);
    reduce_reply(d, h);
    reduce_request(d, h)
}
inline reduce()
{
    do
    :: has_reduced = 0;
        for (at_host : 0 .. HOSTS - 1) {
            reduce_host(0, at_host);
#if DIRECTIONS == 2
            reduce_host(1, at_host);
#endif
        }
        if
        :: has_reduced == 1
        :: else -> break
        fi
    od
}
#else
inline reduce() { skip }
#endif

/* ROTATE: all hosts are alike, so a state rotated by any number of hosts has the same future. Of the HOSTS rotations of
 * a state the greatest represents all. */
#ifdef ROTATE
#define AFTER_STEP d_step { reduce(); c_code { rotate(&now); } }
c_decl {
    static void rotate();
}
c_code {
    static void rotate(State *state)
    {
        struct Lane rotated[HOSTS];
        struct Lane best[HOSTS];
        int by, h;
        memcpy(best, state->lane, sizeof best);
        for (by = 1; by < HOSTS; by++) {
            for (h = 0; h < HOSTS; h++)
                rotated[h] = state->lane[(h + by) % HOSTS];
            if (memcmp(rotated, best, sizeof best) > 0)
                memcpy(best, rotated, sizeof best);
        }
        memcpy(state->lane, best, sizeof best);
    }
}
#else
#define AFTER_STEP d_step { reduce(); skip }
#endif

#define IS_COMPLETE (completed_total == TOTAL && used_total == 0)

inline check_complete()
{
    for (at_host : 0 .. HOSTS - 1) {
        assert(lane[at_host].outstanding == 0);
        for (at : 0 .. 2 * DIRECTIONS - 1) {
            number = (at % 2 -> TWO_HOPS : ONE_HOP);
            assert(lane[at_host].queue[at].used == 0);
            assert(lane[at_host].queue[at].unadvertised == 0);
            assert(lane[at_host].queue[at].filled == 0);
            assert(lane[at_host].flow_out[at].sent == number);
            assert(lane[at_host].flow_out[at].acknowledged == number);
            assert(lane[at_host].flow_out[at].plain == 0);
            assert(lane[at_host].flow_out[at].fetching == 0);
            assert(lane[at_host].flow_in[at].executed == number);
            assert(lane[at_host].flow_in[at].acknowledged == number);
        }
        for (at : 0 .. DIRECTIONS - 1) {
            assert(lane[at_host].pending[at].count == 0);
        }
    }
    skip
}

#ifdef ANY_KIND
#define SUBMIT(d, hops, count, fetches)                                  \
    :: d_step { MAY_SUBMIT(d, h, hops, count) -> submit(d, h, hops, 1) } \
    :: d_step { MAY_SUBMIT(d, h, hops, count) -> submit(d, h, hops, 0) }
#else
#define SUBMIT(d, hops, count, fetches) \
    :: d_step { MAY_SUBMIT(d, h, hops, count) -> submit(d, h, hops, (((fetches) >> number) & 1)) }
#endif
#ifdef LOST_CREDIT
#define LOSE_CREDIT(d, class)                                                                                    \
    :: d_step {                                                                                                  \
        MAY_CREDIT(d, class, h) && !is_lost ->                                                                   \
        IN(d, class, h).unadvertised--; is_lost = 1; printf("host %d: a credit of class %d is lost\n", h, class) \
    }
#else
#define LOSE_CREDIT(d, class)
#endif

#define STEPS(d)                                                       \
    SUBMIT(d, 1, ONE_HOP, FETCHES_ONE_HOP)                             \
    SUBMIT(d, 2, TWO_HOPS, FETCHES_TWO_HOPS)                           \
    :: d_step { MAY_FORWARD(d, REQUEST, h) -> forward(d, REQUEST, h) } \
    :: d_step { MAY_FORWARD(d, REPLY, h) -> forward(d, REPLY, h) }     \
    :: d_step { MAY_EXECUTE(d, h) -> execute(d, h) }                   \
    :: d_step { MAY_TAKE_REPLY(d, h) -> take_reply(d, h) }             \
    :: d_step { MAY_RESPOND(d, h) -> respond(d, h) }                   \
    :: d_step { MAY_ACKNOWLEDGE(d, h, 1) -> reply(d, h, 1, 0) }        \
    :: d_step { MAY_ACKNOWLEDGE(d, h, 2) -> reply(d, h, 2, 0) }        \
    LOSE_CREDIT(d, REQUEST)                                            \
    LOSE_CREDIT(d, REPLY)                                              \
    :: d_step { MAY_CREDIT(d, REQUEST, h) -> credit(d, REQUEST, h) }   \
    :: d_step { MAY_CREDIT(d, REPLY, h) -> credit(d, REPLY, h) }

#ifdef MOVES
/* One move, decoded by moves.h, which also defines MOVE_COUNT and load_moves(). A TOPOLOGY is a frame with number 0: all
 * links stay up, but each host advertises at first that they came up. It takes any free slot, and is consumed at once. */
int move[MOVE_COUNT];
int at_move;

inline follow_move(kind, d, class, h, hops, fetches, said)
{
    if
    :: kind == 0 -> assert(MAY_SUBMIT(d, h, hops, NUMBER_MAX)); submit(d, h, hops, fetches); assert(number == said)
    :: kind == 1 -> assert(MAY_FORWARD(d, class, h)); forward(d, class, h); assert(NUMBER(frame) == said)
    :: kind == 2 ->
        assert(MAY_EXECUTE(d, h)); assert(HOPS(HEAD(d, REQUEST, h)) == hops); execute(d, h); assert(NUMBER(frame) == said)
    :: kind == 3 ->
        assert(MAY_TAKE_REPLY(d, h)); assert(HOPS(HEAD(d, REPLY, h)) == hops); take_reply(d, h); assert(number == said)
    :: kind == 4 -> assert(MAY_RESPOND(d, h)); respond(d, h); assert(number == said); assert(i == hops)
    :: kind == 5 -> assert(MAY_ACKNOWLEDGE(d, h, hops)); reply(d, h, hops, 0); assert(number == said)
    :: kind == 6 -> assert(MAY_CREDIT(d, class, h)); credit(d, class, h)
    :: kind == 7 -> assert(FREE(d, class, h) >= 1); put(d, class, h, 0)
    :: kind == 8 -> assert(IN(d, class, h).filled > 0 && NUMBER(HEAD(d, class, h)) == 0); take(d, class, h)
    fi
}

init
{
    load_moves();
    do
    :: at_move < MOVE_COUNT ->
        d_step {
            printf("move %d\n", at_move);
            follow_move((move[at_move] & 15), ((move[at_move] >> 4) & 1), ((move[at_move] >> 5) & 1),
                        ((move[at_move] >> 6) & 15), ((move[at_move] >> 10) & 3), ((move[at_move] >> 12) & 1),
                        (move[at_move] >> 13));
            at_move++
        }
    :: else -> break
    od;
    printf("%d moves, %d requests complete, %d slots in use\n", MOVE_COUNT, completed_total, used_total)
}
#else
/* step() of src/proxy/queue.c, one call at a time, in any order */
proctype Host(byte h)
{
accept:
    do
    :: atomic {
        if
        STEPS(0)
#if DIRECTIONS == 2
        STEPS(1)
#endif
        fi;
        AFTER_STEP
    }
    :: d_step { IS_COMPLETE -> check_complete() } -> break
    od
}

init
{
    atomic {
        for (i : 0 .. HOSTS - 1) {
            run Host(i);
        }
    }
}
#endif
