/* SPDX-License-Identifier: BSD-3-Clause */
/* ring.pml - the flow control of one lane of the ring: slots, credits, bubble, transit, answers, acknowledgements.
 *
 * Aim: every run ends with every request complete and every credit home, and no slot is overwritten.
 * Method: spin visits every state. A run may end only where IS_HOME holds; whatever else ends it is an invalid end
 * state. A step is one call of src/ring by the lane of one host, with the write that follows from it; the function's
 * name stands at the step. All links stay up. check.py runs the sizes, and the variants that must fail.
 * docs/design/model.md says what is left out and why that is sound.
 *
 * A direction is a cycle of requests and the cycle of their replies, which run the other way. A queue is named by
 * direction, class and the host that reads it; a flow by direction, the host of the end in question, and the hops
 * between its ends (1 or 2).
 *
 * Sizes (each by -D): HOSTS, SLOTS, DIRECTIONS, PENDING (answers that may wait on a host), OUTSTANDING (requests under
 *   way from a host), ONE_HOP and TWO_HOPS (requests of each flow of so many hops, at most 3), ASKS_ONE_HOP and
 *   ASKS_TWO_HOPS (bit n: request n of such a flow asks), or ANY_KIND: each may ask or not.
 * Choices: ANY_TURN: an acknowledgement may overtake answers at any time, not only after 16.
 * Savings: SETTLE: steps whose order cannot matter are taken at once. ROTATE: states that are the same but for the
 *   numbers of the hosts are one state.
 * Variants, each of which breaks the protocol: NO_BUBBLE, NO_REPLY_BUBBLE, REPLY_BEHIND_REQUEST, NO_ROOM_CHECK,
 *   LOST_CREDIT, EARLY_CREDIT.
 */
#define REQUEST 0
#define REPLY   1

#define TOTAL (HOSTS * DIRECTIONS * (ONE_HOP + TWO_HOPS))

/* A frame: hops between the ends of its flow, hops still to go, its number in the flow (a reply: all up to it are
 * executed), and more: of a request whether it asks, of an answer the number of its question, 0 for an
 * acknowledgement. */
#define FRAME(hops, to_go, number, more) ((hops) - 1 + 2 * (to_go) + 4 * (number) + 16 * (more))
#define ONE_HOP_LESS(frame) ((frame) - 2)
#define HOPS(frame)   (((frame) & 1) + 1)
#define TO_GO(frame)  (((frame) >> 1) & 1)
#define NUMBER(frame) (((frame) >> 2) & 3)
#define MORE(frame)   ((frame) >> 4)

typedef Queue {
    byte used;         /* struct quoit_ring_outbound of the writer: sent_total - credited_total */
    byte untold;       /* struct quoit_ring_inbound: consumed_total less what the writer took note of */
    byte filled;       /* slots that hold a frame, the oldest first */
    byte slots[SLOTS];
}

typedef FlowOut { /* struct quoit_ring_flow_out */
    byte sent;
    byte acknowledged;
    byte plain;  /* the two lists: bit n is request n */
    byte asking;
}

typedef FlowIn { /* struct quoit_ring_flow_in */
    byte executed;
    byte told;
}

typedef Waiting { /* a list of struct quoit_ring_replies */
    byte count;
    byte answers[PENDING];
}

typedef Lane { /* struct quoit_ring, and its inbound queues */
    Queue queue[2 * DIRECTIONS];
    FlowOut flow_out[2 * DIRECTIONS];
    FlowIn flow_in[2 * DIRECTIONS];
    Waiting waiting[DIRECTIONS];
    byte under_way; /* struct quoit_ring_pool: entries that are not free */
}

Lane lane[HOSTS];
byte completed_total; /* in all of the ring */
byte used_total;
#ifdef LOST_CREDIT
byte is_lost;
#endif

/* Of use within a step only, so not part of the state. */
hidden byte i, at, at_host, frame, number, question, is_changed;

/* Requests of direction 0 and replies of direction 1 run up. */
#define NEXT(d, class, h) (((h) + 1 + ((d) ^ (class)) * (HOSTS - 2)) % HOSTS)
#define IN(d, class, h)   lane[h].queue[2 * (d) + (class)]
#define OUT(d, class, h)  IN(d, class, NEXT(d, class, h))
#define FLOW_OUT(d, h, hops) lane[h].flow_out[2 * (d) + (hops) - 1]
#define FLOW_IN(d, h, hops)  lane[h].flow_in[2 * (d) + (hops) - 1]
#define WAITING(d, h)        lane[h].waiting[d]

#define FREE(d, class, h)       (SLOTS - OUT(d, class, h).used) /* quoit_ring_free_slots() */
#define HEAD(d, class, h)       IN(d, class, h).slots[0]
#define IS_HERE(d, class, h)    (IN(d, class, h).filled > 0 && TO_GO(HEAD(d, class, h)) == 0)
#define IS_PASSING(d, class, h) (IN(d, class, h).filled > 0 && TO_GO(HEAD(d, class, h)) > 0)
#define IS_OWING(d, h, hops)    (FLOW_IN(d, h, hops).executed != FLOW_IN(d, h, hops).told)

/* quoit_ring_replies_has_room() */
#if DIRECTIONS == 2
#define HAS_ROOM(h) (WAITING(0, h).count + WAITING(1, h).count < PENDING)
#else
#define HAS_ROOM(h) (WAITING(0, h).count < PENDING)
#endif

/* quoit_ring_may_inject() and quoit_ring_may_transit(), without the rest */
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
#define MAY_PASS(d, class, h) (IS_PASSING(d, class, h) && FREE(d, class, h) >= 1 && MAY_LOOK(d, class, h))

#ifdef REPLY_BEHIND_REQUEST
#define MAY_LOOK(d, class, h) (class == REQUEST || IN(d, REQUEST, h).filled == 0)
#else
#define MAY_LOOK(d, class, h) true
#endif

#define MAY_SUBMIT(d, h, hops, count) \
    (FLOW_OUT(d, h, hops).sent < count && lane[h].under_way < OUTSTANDING && MAY_INJECT_REQUEST(d, h))
#ifdef NO_ROOM_CHECK
#define MAY_EXECUTE(d, h) IS_HERE(d, REQUEST, h)
#else
#define MAY_EXECUTE(d, h) (IS_HERE(d, REQUEST, h) && (!MORE(HEAD(d, REQUEST, h)) || HAS_ROOM(h)))
#endif
#define MAY_SINK(d, h)   (IS_HERE(d, REPLY, h) && MAY_LOOK(d, REPLY, h))
#define MAY_ANSWER(d, h) (WAITING(d, h).count > 0 && MAY_INJECT_REPLY(d, h))
#ifdef ANY_TURN
#define IS_TURN_OF_ACK(d, h) true
#else
#define IS_TURN_OF_ACK(d, h) (WAITING(d, h).count == 0)
#endif
#define MAY_TELL(d, h, hops) (IS_OWING(d, h, hops) && IS_TURN_OF_ACK(d, h) && MAY_INJECT_REPLY(d, h))
#ifdef EARLY_CREDIT
#define MAY_CREDIT(d, class, h) (IN(d, class, h).used > 0)
#else
#define MAY_CREDIT(d, class, h) (IN(d, class, h).untold > 0)
#endif

/* quoit_ring_take_slot(), send() of ring.c, and send() of src/node/lane.c. The writer goes by what it knows (used); the
 * other assertions are about the slots as they are. */
inline put(d, class, h, f)
{
    assert(OUT(d, class, h).used < SLOTS);
    assert(OUT(d, class, h).filled < SLOTS);
#if !defined(EARLY_CREDIT) && !defined(LOST_CREDIT)
    assert(OUT(d, class, h).used == OUT(d, class, h).filled + OUT(d, class, h).untold);
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
    IN(d, class, h).untold++
#endif
}

/* quoit_ring_submit(): quoit_ring_pool_take(), quoit_ring_flow_send(), send() */
inline submit(d, h, hops, asks)
{
    number = FLOW_OUT(d, h, hops).sent + 1;
    FLOW_OUT(d, h, hops).sent = number;
    lane[h].under_way++;
    if
    :: asks ->
        FLOW_OUT(d, h, hops).asking = FLOW_OUT(d, h, hops).asking | (1 << number);
        frame = FRAME(hops, hops - 1, number, 1)
    :: else ->
        FLOW_OUT(d, h, hops).plain = FLOW_OUT(d, h, hops).plain | (1 << number);
        frame = FRAME(hops, hops - 1, number, 0)
    fi;
    put(d, REQUEST, h, frame);
    printf("host %d submits request %d, %d hops, asks: %d\n", h, number, hops, MORE(frame))
}

/* quoit_ring_receive(): receive_transit() */
inline pass(d, class, h)
{
    frame = ONE_HOP_LESS(HEAD(d, class, h));
    take(d, class, h);
    put(d, class, h, frame);
    printf("host %d passes on a frame of class %d\n", h, class)
}

/* quoit_ring_receive(): receive_request(), and at once quoit_ring_reply() if it asks */
inline execute(d, h)
{
    frame = HEAD(d, REQUEST, h);
    take(d, REQUEST, h);
    FLOW_IN(d, h, HOPS(frame)).executed++;
    assert(NUMBER(frame) == FLOW_IN(d, h, HOPS(frame)).executed);
    if
    :: MORE(frame) ->
        assert(HAS_ROOM(h)); /* quoit_ring_replies_append() */
        WAITING(d, h).answers[WAITING(d, h).count] = FRAME(HOPS(frame), 0, NUMBER(frame), 0);
        WAITING(d, h).count++
    :: else
    fi;
    printf("host %d executes request %d, %d hops\n", h, NUMBER(frame), HOPS(frame))
}

/* quoit_ring_next_completion() */
inline complete(h)
{
    lane[h].under_way--;
    completed_total++
}

/* quoit_ring_flow_acknowledge() */
inline acknowledge(d, h, hops)
{
    assert(number >= FLOW_OUT(d, h, hops).acknowledged);
    assert(number <= FLOW_OUT(d, h, hops).sent);
    FLOW_OUT(d, h, hops).acknowledged = number;
    for (at : 1 .. 3) {
        if
        :: at <= number && (FLOW_OUT(d, h, hops).plain & (1 << at)) ->
            FLOW_OUT(d, h, hops).plain = FLOW_OUT(d, h, hops).plain - (1 << at);
            complete(h)
        :: else
        fi
    }
}

/* quoit_ring_receive(): receive_reply(), quoit_ring_flow_answer(). The answer is for the oldest open question. */
inline sink(d, h)
{
    frame = HEAD(d, REPLY, h);
    number = NUMBER(frame);
    question = MORE(frame);
    take(d, REPLY, h);
    if
    :: question ->
        assert((FLOW_OUT(d, h, HOPS(frame)).asking & ((2 << question) - 1)) == 1 << question);
        assert(number >= question);
        FLOW_OUT(d, h, HOPS(frame)).asking = FLOW_OUT(d, h, HOPS(frame)).asking - (1 << question);
        complete(h)
    :: else -> assert(number != FLOW_OUT(d, h, HOPS(frame)).acknowledged)
    fi;
    acknowledge(d, h, HOPS(frame));
    printf("host %d takes a reply up to %d, answers: %d, %d hops\n", h, number, question, HOPS(frame))
}

/* quoit_ring_flow_tell(), send() */
inline reply(d, h, hops, answered)
{
    number = FLOW_IN(d, h, hops).executed;
    FLOW_IN(d, h, hops).told = number;
    frame = FRAME(hops, hops - 1, number, answered);
    put(d, REPLY, h, frame);
    printf("host %d replies up to %d, answers: %d, %d hops\n", h, number, answered, hops)
}

/* quoit_ring_next_reply(): send_reply(), quoit_ring_replies_pop() */
inline answer(d, h)
{
    frame = WAITING(d, h).answers[0];
    question = NUMBER(frame);
    for (at : 1 .. PENDING - 1) {
        WAITING(d, h).answers[at - 1] = WAITING(d, h).answers[at];
    }
    WAITING(d, h).answers[PENDING - 1] = 0;
    WAITING(d, h).count--;
    i = HOPS(frame);
    reply(d, h, i, question)
}

/* src/node/lane.c: return_credits() of the reader (quoit_ring_credit_told()), take_credits() of the writer
 * (quoit_ring_credit()); a slot at a time, and at any time after it was consumed */
inline credit(d, class, h)
{
#ifndef EARLY_CREDIT
    IN(d, class, h).untold--;
#endif
    assert(IN(d, class, h).used > 0);
    IN(d, class, h).used--;
    used_total--;
    printf("host %d gives back a slot of class %d\n", h, class)
}

/* SETTLE: after each step, what is sure to happen in any order happens at once. Such a step commutes with every step
 * of any host that can come before it, and forbids none of them:
 * - a credit comes home: it only permits;
 * - a reply is taken: nothing else takes it, and it only permits;
 * - a request is executed whose flow owes nothing and has no answer waiting: no reply can leave before that would
 *   carry another number. If it asks, also no acknowledgement may wait that its answer would overtake, and the entry
 *   for the answer must be free and wanted by no other direction;
 * - a frame passes where the host will never inject again into the queue it goes to. */
#if defined(SETTLE) && (defined(LOST_CREDIT) || defined(EARLY_CREDIT))
#error "SETTLE gives credits back before they can be lost or early"
#endif
#ifdef SETTLE
#define HAS_SUBMITTED(d, h) (FLOW_OUT(d, h, 1).sent == ONE_HOP && FLOW_OUT(d, h, 2).sent == TWO_HOPS)
#define HAS_REPLIED(d, h) \
    (FLOW_IN(d, h, 1).told == ONE_HOP && FLOW_IN(d, h, 2).told == TWO_HOPS && WAITING(d, h).count == 0)
#define MAY_ASK_SILENTLY(d, h) (DIRECTIONS == 1 && !IS_OWING(d, h, 1) && !IS_OWING(d, h, 2))

inline settle_credit(d, class, h)
{
    do
    :: MAY_CREDIT(d, class, h) -> credit(d, class, h); is_changed = 1
    :: else -> break
    od
}
inline settle_reply(d, h)
{
    do
    :: MAY_SINK(d, h) -> sink(d, h); is_changed = 1
    :: HAS_REPLIED(d, h) && MAY_PASS(d, REPLY, h) -> pass(d, REPLY, h); is_changed = 1
    :: else -> break
    od
}
inline settle_request(d, h)
{
    do
    :: HAS_SUBMITTED(d, h) && MAY_PASS(d, REQUEST, h) -> pass(d, REQUEST, h); is_changed = 1
    :: MAY_EXECUTE(d, h) ->
        frame = HEAD(d, REQUEST, h);
        number = 0; /* answers of this flow that wait */
        for (at : 0 .. PENDING - 1) {
            if
            :: at < WAITING(d, h).count && HOPS(WAITING(d, h).answers[at]) == HOPS(frame) -> number++
            :: else
            fi
        }
        if
        :: number == 0 && !IS_OWING(d, h, HOPS(frame)) && (!MORE(frame) || MAY_ASK_SILENTLY(d, h)) ->
            execute(d, h);
            is_changed = 1
        :: else -> break
        fi
    :: else -> break
    od
}
inline settle_host(d, h)
{
    settle_credit(d, REQUEST, h);
    settle_credit(d, REPLY, h);
    settle_reply(d, h);
    settle_request(d, h)
}
inline settle()
{
    do
    :: is_changed = 0;
        for (at_host : 0 .. HOSTS - 1) {
            settle_host(0, at_host);
#if DIRECTIONS == 2
            settle_host(1, at_host);
#endif
        }
        if
        :: is_changed == 1
        :: else -> break
        fi
    od
}
#else
inline settle() { skip }
#endif

/* ROTATE: all hosts are alike, so a state turned by any number of hosts has the same future. Of the HOSTS states that
 * are one state turned, the greatest stands for all. */
#ifdef ROTATE
#define AFTER_STEP d_step { settle(); c_code { turn(&now); } }
c_decl {
    static void turn();
}
c_code {
    static void turn(State *state)
    {
        struct Lane turned[HOSTS];
        struct Lane best[HOSTS];
        int by, h;
        memcpy(best, state->lane, sizeof best);
        for (by = 1; by < HOSTS; by++) {
            for (h = 0; h < HOSTS; h++)
                turned[h] = state->lane[(h + by) % HOSTS];
            if (memcmp(turned, best, sizeof best) > 0)
                memcpy(best, turned, sizeof best);
        }
        memcpy(state->lane, best, sizeof best);
    }
}
#else
#define AFTER_STEP d_step { settle(); skip }
#endif

#define IS_HOME (completed_total == TOTAL && used_total == 0)

inline check_home()
{
    for (at_host : 0 .. HOSTS - 1) {
        assert(lane[at_host].under_way == 0);
        for (at : 0 .. 2 * DIRECTIONS - 1) {
            number = (at % 2 -> TWO_HOPS : ONE_HOP);
            assert(lane[at_host].queue[at].used == 0);
            assert(lane[at_host].queue[at].untold == 0);
            assert(lane[at_host].queue[at].filled == 0);
            assert(lane[at_host].flow_out[at].sent == number);
            assert(lane[at_host].flow_out[at].acknowledged == number);
            assert(lane[at_host].flow_out[at].plain == 0);
            assert(lane[at_host].flow_out[at].asking == 0);
            assert(lane[at_host].flow_in[at].executed == number);
            assert(lane[at_host].flow_in[at].told == number);
        }
        for (at : 0 .. DIRECTIONS - 1) {
            assert(lane[at_host].waiting[at].count == 0);
        }
    }
    skip
}

#ifdef ANY_KIND
#define SUBMIT(d, hops, count, asks)                                          \
    :: d_step { MAY_SUBMIT(d, h, hops, count) -> submit(d, h, hops, 1) }      \
    :: d_step { MAY_SUBMIT(d, h, hops, count) -> submit(d, h, hops, 0) }
#else
#define SUBMIT(d, hops, count, asks) \
    :: d_step { MAY_SUBMIT(d, h, hops, count) -> submit(d, h, hops, (((asks) >> number) & 1)) }
#endif
#ifdef LOST_CREDIT
#define LOSE_CREDIT(d, class)                                                                              \
    :: d_step {                                                                                            \
        MAY_CREDIT(d, class, h) && !is_lost ->                                                             \
        IN(d, class, h).untold--; is_lost = 1; printf("host %d: a credit of class %d is lost\n", h, class) \
    }
#else
#define LOSE_CREDIT(d, class)
#endif

#define STEPS(d)                                                        \
    SUBMIT(d, 1, ONE_HOP, ASKS_ONE_HOP)                                 \
    SUBMIT(d, 2, TWO_HOPS, ASKS_TWO_HOPS)                               \
    :: d_step { MAY_PASS(d, REQUEST, h) -> pass(d, REQUEST, h) }        \
    :: d_step { MAY_PASS(d, REPLY, h) -> pass(d, REPLY, h) }            \
    :: d_step { MAY_EXECUTE(d, h) -> execute(d, h) }                    \
    :: d_step { MAY_SINK(d, h) -> sink(d, h) }                          \
    :: d_step { MAY_ANSWER(d, h) -> answer(d, h) }                      \
    :: d_step { MAY_TELL(d, h, 1) -> reply(d, h, 1, 0) }                \
    :: d_step { MAY_TELL(d, h, 2) -> reply(d, h, 2, 0) }                \
    LOSE_CREDIT(d, REQUEST)                                             \
    LOSE_CREDIT(d, REPLY)                                               \
    :: d_step { MAY_CREDIT(d, REQUEST, h) -> credit(d, REQUEST, h) }    \
    :: d_step { MAY_CREDIT(d, REPLY, h) -> credit(d, REPLY, h) }

/* step() of src/node/lane.c, one call at a time, in any order */
proctype Host(byte h)
{
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
    :: d_step { IS_HOME -> check_home() } -> break
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
