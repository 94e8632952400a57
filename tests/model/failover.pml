/* SPDX-License-Identifier: BSD-3-Clause */
/* failover.pml - what a ring of three hosts does when links go down and come back: incarnations, news, sending again.
 *
 * Aim: every request is executed exactly once and in order, and completes; nothing lands after it was executed; both
 * ends have cleaned a link before either writes to it. Method: spin visits every state of one lane. A run may end only
 * where IS_HOME holds; whatever else ends it is an invalid end state. A step is one call of src/ring, or one move of
 * src/node/links.c; its name stands at the step. check.py runs the sizes, and the variants that must fail.
 * docs/design/model.md says what is left out and why that is sound.
 *
 * Host 0 sends requests to host 1, over link 0 or, the other way round, over link 2, host 2 and link 1. Each may land
 * its payload on its last hop. An end is named 2 * host + side; link l joins the right end of host l and the left one
 * of host l + 1. A queue is named by the end that reads it.
 *
 * Sizes (each by -D): REQUESTS, ASKS (bit n: request n asks), SLOTS, CUTS_0, CUTS_1, CUTS_2 (how often each link may be
 *   cut), STAYS (the link whose last cut is for ever; 3: none), BEGINS (the link that is down at the start; 3: none).
 * Variants, each of which breaks the protocol: NO_RESEND, NO_REPEAT_CHECK, NO_GENERATION, NO_SETTLE, LAND_AGAIN,
 *   NEWS_LATER, KEEP_ANSWERS.
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

/* The phases of struct quoit_link. The lane follows at once, so there is no STOPPING. */
#define UP       0
#define AWAY     1
#define DOWN     2
#define CLEAN    3

typedef Frame {
    byte generation;
    byte number;  /* request: of the flow; reply: all up to it are executed; news: the end */
    byte more;    /* request: 1 if it is sent again, so ORDERED; reply: the question, 0: an acknowledgement; news: the state */
    bit is_news;
}
typedef Queue {
    byte filled; /* the oldest first */
    Frame slots[SLOTS];
}
typedef End {
    byte phase;
    byte bound;       /* the epoch of the link to which the opening is bound */
    byte incarnation; /* proposed, or agreed */
    byte owed;        /* struct quoit_ring_link: bit e: news of end e for the neighbour */
    byte heard;
    bit is_confirmed;
    Queue queue[2];   /* read here: requests, replies */
}
typedef Host {
    byte state[ENDS]; /* struct quoit_ring_links: what it knows of the ends */
}

End end[ENDS];
Host host[HOSTS];
bit is_cut[HOSTS]; /* of links */
byte epoch[HOSTS]; /* counts on when the link comes up */
byte cuts[HOSTS];  /* that are left */

/* Host 0: bit n is request n */
byte sent, acknowledged, plain, asking, again;
/* Host 1 */
byte executed, told, waiting_count, waiting[2];
byte kept; /* the last question that was executed: fetch_max is 1 */

hidden byte i, j, gen, number, more, way, is_new;

#define GENERATION(h) \
    (host[h].state[0] + host[h].state[1] + host[h].state[2] + host[h].state[3] + host[h].state[4] + host[h].state[5])
#define STATE(e, whose) host[HOST(e)].state[whose]
#define IS_OWN_UP(e)  ((STATE(e, e) & 1) == 0)                          /* quoit_ring_links_is_up() */
#define IS_OPEN(e)    (IS_OWN_UP(e) && STATE(e, e) == STATE(e, PEER(e))) /* quoit_ring_links_is_open() */
#define IS_FAR_UP(h, link) \
    ((host[h].state[2 * (link) + 1] & 1) == 0 && host[h].state[2 * (link) + 1] == host[h].state[(2 * (link) + 2) % ENDS])

/* quoit_ring_links_way(): the end by which host 0 reaches host 1, and host 1 host 0 */
#define WAY_0 ((!IS_FAR_UP(0, 0) && IS_FAR_UP(0, 2) && IS_FAR_UP(0, 1)) -> 0 : 1)
#define WAY_1 ((!IS_FAR_UP(1, 0) && IS_FAR_UP(1, 2) && IS_FAR_UP(1, 1)) -> 3 : 2)
#define IS_REACHED_0 (IS_FAR_UP(0, 0) || (IS_FAR_UP(0, 2) && IS_FAR_UP(0, 1)))

/* is_side_settled() */
#define IS_SIDE_SETTLED(e)                                                                        \
    (STATE(e, PEER(e)) / 2 != STATE(e, e) / 2 || (STATE(e, PEER(e)) & 1) || \
     (IS_OWN_UP(e) && end[e].heard >= GENERATION(HOST(e))))
#ifdef NO_SETTLE
#define IS_SETTLED true
#else
#define IS_SETTLED (IS_SIDE_SETTLED(2) && IS_SIDE_SETTLED(3))
#endif

/* What is written through an end arrives, or is lost with its link. */
#define REACHES(e) (!is_cut[LINK(e)] && end[e].bound == epoch[LINK(e)])
#define HAS_LOST(e) (is_cut[LINK(e)] || end[e].bound != epoch[LINK(e)])

#define FREE(e, class) (SLOTS - end[PEER(e)].queue[class].filled)
#ifdef NEWS_LATER
#define MAY_FOLLOW_NEWS(e) true
#else
#define MAY_FOLLOW_NEWS(e) (end[e].owed == 0) /* must_wait_for_news() */
#endif
#define MAY_INJECT_REQUEST(e) (IS_OPEN(e) && FREE(e, REQUEST) >= 2)
#define MAY_INJECT_REPLY(e)   (IS_OPEN(e) && MAY_FOLLOW_NEWS(e) && FREE(e, REPLY) >= 2)

#define HEAD(e, class) end[e].queue[class].slots[0]
/* A lane looks at a side only while its ring has it up. */
#define IS_HERE(e, class) (end[e].queue[class].filled > 0 && IS_OWN_UP(e))

#define CLEAR_SLOT(e, class, at)              \
    end[e].queue[class].slots[at].generation = 0;    \
    end[e].queue[class].slots[at].number = 0;        \
    end[e].queue[class].slots[at].more = 0;          \
    end[e].queue[class].slots[at].is_news = 0
inline write(e, class, g, n, m, news)
{
    if
    :: REACHES(e) ->
        i = end[PEER(e)].queue[class].filled;
        assert(i < SLOTS);
        end[PEER(e)].queue[class].slots[i].generation = g;
        end[PEER(e)].queue[class].slots[i].number = n;
        end[PEER(e)].queue[class].slots[i].more = m;
        end[PEER(e)].queue[class].slots[i].is_news = news;
        end[PEER(e)].queue[class].filled++
    :: else
    fi
}
inline consume(e, class)
{
    for (i : 1 .. SLOTS - 1) {
        end[e].queue[class].slots[i - 1].generation = end[e].queue[class].slots[i].generation;
        end[e].queue[class].slots[i - 1].number = end[e].queue[class].slots[i].number;
        end[e].queue[class].slots[i - 1].more = end[e].queue[class].slots[i].more;
        end[e].queue[class].slots[i - 1].is_news = end[e].queue[class].slots[i].is_news
    }
    CLEAR_SLOT(e, class, SLOTS - 1);
    end[e].queue[class].filled--
}
inline sweep(e, class)
{
    for (i : 0 .. SLOTS - 1) {
        CLEAR_SLOT(e, class, i)
    }
    end[e].queue[class].filled = 0
}

/* A request leaves by an end whose neighbour is host 1: payload may land there. may_land of send() in ring.c */
#ifdef LAND_AGAIN
#define IS_FIRST(m) true
#else
#define IS_FIRST(m) ((m) == 0)
#endif
inline land(e, n, m)
{
    if
    :: HOST(PEER(e)) == 1 && IS_FIRST(m) && end[e].is_confirmed && REACHES(e) ->
        assert(executed < n) /* else it undoes what came after it */
    :: else
    fi
}

/* adopt(): all that is under way is void */
inline adopt(h)
{
    if
    :: h == 0 ->
#ifndef NO_RESEND
        again = plain | asking
#endif
    :: h == 1 ->
#ifndef KEEP_ANSWERS
        waiting_count = 0;
        waiting[0] = 0;
        waiting[1] = 0
#endif
    :: else
    fi
}
inline owe(e, whose)
{
    if
    :: IS_OWN_UP(e) -> end[e].owed = end[e].owed | (1 << (whose))
    :: else
    fi
}
/* change() of topology.c */
inline change(where, whose, to)
{
    assert(to > host[where].state[whose]);
    host[where].state[whose] = to;
    owe(2 * (where), whose);
    owe(2 * (where) + 1, whose)
}

/* quoit_ring_link_down() */
inline ring_down(e)
{
    end[e].owed = 0;
    end[e].heard = 0;
    end[e].is_confirmed = 0;
    change(HOST(e), e, STATE(e, e) + 1);
    adopt(HOST(e))
}
/* quoit_ring_link_up() */
inline ring_up(e)
{
    assert(!IS_OWN_UP(e));
    change(HOST(e), e, 2 * end[e].incarnation);
    for (i : 0 .. ENDS - 1) {
        if
        :: STATE(e, i) > 0 -> owe(e, i)
        :: else
        fi
    }
    adopt(HOST(e))
}

/* links.c. What the neighbour told in this epoch; a host that is up again has said CLEAN before. */
#define HAS_TOLD(e)       (!HAS_LOST(e) && end[PEER(e)].bound == epoch[LINK(e)])
#define HAS_TOLD_DOWN(e)  (HAS_TOLD(e) && end[PEER(e)].phase == DOWN)
#define HAS_TOLD_CLEAN(e) (HAS_TOLD(e) && (end[PEER(e)].phase == CLEAN || end[PEER(e)].phase == UP))
#define IS_OTHER_CLEAN(e) (HAS_TOLD_CLEAN(e) && end[PEER(e)].incarnation == end[e].incarnation)

inline begin_down(e)
{
    end[e].phase = AWAY;
    end[e].incarnation++;
    ring_down(e);
    printf("host %d: link %d went down\n", HOST(e), LINK(e))
}
#define MAY_APPROACH(e) (end[e].phase == AWAY && !is_cut[LINK(e)])
inline approach(e)
{
    end[e].bound = epoch[LINK(e)];
    end[e].phase = DOWN
}
#define MAY_CLEAN(e)                                                                                                  \
    (end[e].phase == DOWN &&                                                                                          \
     (HAS_TOLD_DOWN(e) || (HAS_TOLD_CLEAN(e) && end[PEER(e)].incarnation >= end[e].incarnation)))
inline clean(e)
{
    if
    :: end[PEER(e)].incarnation > end[e].incarnation -> end[e].incarnation = end[PEER(e)].incarnation
    :: else
    fi;
    sweep(e, REQUEST);
    sweep(e, REPLY);
    end[e].phase = CLEAN;
    printf("host %d: link %d is clean\n", HOST(e), LINK(e))
}
inline come_up(e)
{
    end[e].phase = UP;
    ring_up(e);
    printf("host %d: link %d is up in incarnation %d\n", HOST(e), LINK(e), end[e].incarnation)
}

/* quoit_ring_next_reply(): send_news() */
inline tell_news(e)
{
    j = 0;
    do
    :: (end[e].owed & (1 << j)) == 0 -> j++
    :: else -> break
    od;
    end[e].owed = end[e].owed - (1 << j);
    gen = GENERATION(HOST(e));
    write(e, REPLY, gen, j, STATE(e, j), 1);
    printf("host %d tells host %d of end %d: %d\n", HOST(e), HOST(PEER(e)), j, STATE(e, j))
}
/* quoit_ring_links_learn() */
inline learn(e)
{
    gen = HEAD(e, REPLY).generation;
    number = HEAD(e, REPLY).number;
    more = HEAD(e, REPLY).more;
    consume(e, REPLY);
    is_new = more > STATE(e, number);
    assert(!is_new || HOST(number) != HOST(e));
    if
    :: number == e && more == STATE(e, e) -> end[e].is_confirmed = 1
    :: else
    fi;
    if
    :: gen > end[e].heard -> end[e].heard = gen
    :: else
    fi;
    if
    :: is_new -> change(HOST(e), number, more); adopt(HOST(e))
    :: else
    fi
}

/* quoit_ring_submit() and quoit_ring_next_resend() */
inline send(e, n, m)
{
    gen = GENERATION(0);
    land(e, n, m);
    write(e, REQUEST, gen, n, m, 0);
    printf("host 0 sends request %d by side %d, again: %d, generation %d\n", n, e, m, gen)
}
inline submit(e)
{
    sent++;
    if
    :: ASKS & (1 << sent) -> asking = asking | (1 << sent)
    :: else -> plain = plain | (1 << sent)
    fi;
    send(e, sent, 0)
}
inline resend(e)
{
    number = 1;
    do
    :: (again & (1 << number)) == 0 -> number++
    :: else -> break
    od;
    again = again - (1 << number);
    send(e, number, 1)
}

/* receive_request() of ring.c: a gap is a mistake, a number that was executed is repeated */
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
        :: ASKS & (1 << number) -> kept = number
        :: else
        fi
    :: else ->
        assert(!(ASKS & (1 << number)) || kept == number); /* quoit_ring_response_cache_find() */
        if
        :: number - 1 < told -> told = number - 1
        :: else
        fi
#endif
    fi;
    if
    :: ASKS & (1 << number) -> waiting[waiting_count] = number; waiting_count++
    :: else
    fi;
    printf("host 1 takes request %d\n", number)
}

/* send_reply() */
inline reply_up_to(e, question)
{
    told = executed;
    gen = GENERATION(1);
    write(e, REPLY, gen, told, question, 0);
    printf("host 1 acknowledges %d by side %d, answers %d, generation %d\n", told, e, question, gen)
}
inline answer(e)
{
    more = waiting[0];
    waiting[0] = waiting[1];
    waiting[1] = 0;
    waiting_count--;
    reply_up_to(e, more)
}

/* receive_reply() */
inline sink(e)
{
    number = HEAD(e, REPLY).number;
    more = HEAD(e, REPLY).more;
    consume(e, REPLY);
    assert(number >= acknowledged && number <= sent);
    assert(number <= executed);
    if
    :: more ->
        assert((asking & ((2 << more) - 1)) == 1 << more); /* the oldest question, */
        assert((again & (1 << more)) == 0);                /* asked in this generation */
        asking = asking - (1 << more)
    :: else
    fi;
    acknowledged = number;
    plain = plain & ~((2 << number) - 1);
    again = again & (plain | asking);
    printf("host 0 takes a reply up to %d, answers %d\n", number, more)
}

/* receive_transit(): host 2 passes on what it has not to drop */
inline pass_request(e)
{
    gen = HEAD(e, REQUEST).generation;
    number = HEAD(e, REQUEST).number;
    more = HEAD(e, REQUEST).more;
    consume(e, REQUEST);
    land(OPPOSITE(e), number, more);
    write(OPPOSITE(e), REQUEST, gen, number, more, 0);
    printf("host 2 passes on request %d of generation %d\n", number, gen)
}
inline pass_reply(e)
{
    gen = HEAD(e, REPLY).generation;
    number = HEAD(e, REPLY).number;
    more = HEAD(e, REPLY).more;
    consume(e, REPLY);
    write(OPPOSITE(e), REPLY, gen, number, more, 0);
    printf("host 2 passes on a reply of generation %d\n", gen)
}

/* quoit_ring_receive(): what is older counts no more; what is newer waits */
#ifdef NO_GENERATION
#define IS_OLD(e, class) false
#define IS_NOW(e, class) true
#else
#define IS_OLD(e, class) (HEAD(e, class).generation < GENERATION(HOST(e)))
#define IS_NOW(e, class) (HEAD(e, class).generation == GENERATION(HOST(e)))
#endif
#define IS_NEWS(e)        (IS_HERE(e, REPLY) && HEAD(e, REPLY).is_news)
#define IS_REPLY(e)       (IS_HERE(e, REPLY) && !HEAD(e, REPLY).is_news)
#define IS_REPLY_NOW(e)   (IS_REPLY(e) && IS_NOW(e, REPLY))
#define IS_REQUEST_NOW(e) (IS_HERE(e, REQUEST) && IS_NOW(e, REQUEST))
#define IS_ROOM(e)        (waiting_count < 2)

#define MANAGE(e)                                                                                                     \
    :: d_step { end[e].phase == UP && HAS_LOST(e) -> begin_down(e) }                                \
    :: d_step { MAY_APPROACH(e) -> approach(e) }                                                    \
    :: d_step { MAY_CLEAN(e) -> clean(e) }                                                          \
    :: d_step { end[e].phase == CLEAN && IS_OTHER_CLEAN(e) -> come_up(e) }

#define LISTEN(e)                                                                                                     \
    :: d_step { end[e].owed != 0 && FREE(e, REPLY) >= 1 -> tell_news(e) }                                             \
    :: d_step { IS_NEWS(e) -> learn(e) }                                                                              \
    :: d_step { IS_REPLY(e) && HEAD(e, REPLY).generation > GENERATION(HOST(e)) -> assert(false) }

#define CUT(l, right, left)                                                                                                        \
    :: d_step { cuts[l] > 0 && !is_cut[l] -> cuts[l]--; is_cut[l] = 1; printf("link %d is cut\n", l) }                \
    :: d_step {                                                                                                       \
        cuts[l] > 0 && !is_cut[l] ->                                                                                  \
        cuts[l]--; is_cut[l] = 1; printf("link %d is cut, and all on it is lost\n", l);                               \
        sweep(right, REQUEST); sweep(right, REPLY); sweep(left, REQUEST); sweep(left, REPLY)                          \
    }                                                                                                                 \
    :: d_step {                                                                                                       \
        is_cut[l] && (STAYS != l || cuts[l] > 0) -> is_cut[l] = 0; epoch[l]++; printf("link %d is whole\n", l)        \
    }

#define IS_QUIET(e)                                                                                                   \
    (end[e].owed == 0 && end[e].queue[REQUEST].filled == 0 && end[e].queue[REPLY].filled == 0 &&                                    \
     ((end[e].phase == UP && !HAS_LOST(e)) || (is_cut[LINK(e)] && STAYS == LINK(e) && end[e].phase == AWAY)))
#define KNOWS_AS_1(h)                                                                                                 \
    (host[h].state[0] == host[1].state[0] && host[h].state[1] == host[1].state[1] &&                                  \
     host[h].state[2] == host[1].state[2] && host[h].state[3] == host[1].state[3] &&                                  \
     host[h].state[4] == host[1].state[4] && host[h].state[5] == host[1].state[5])
#define IS_HOME                                                                                                       \
    (sent == REQUESTS && executed == REQUESTS && (plain | asking) == 0 && told == executed && waiting_count == 0 &&   \
     IS_QUIET(0) && IS_QUIET(1) && IS_QUIET(2) && IS_QUIET(3) && IS_QUIET(4) && IS_QUIET(5) && KNOWS_AS_1(0) &&       \
     KNOWS_AS_1(2))

/* After each step, what is sure to happen and only permits happens at once:
 * - what is outdated is thrown away: a generation only grows;
 * - an end that was on the way up when the link was lost goes back: nobody sees any more what it told;
 * - of a link that is cut no more, what an end does before it comes up: nobody writes and nobody looks there. */
#define IS_SURE(e) (cuts[LINK(e)] == 0 && STAYS != LINK(e))
#define SETTLE_END(e)                                                                                                 \
    do                                                                                                                \
    :: IS_REPLY(e) && IS_OLD(e, REPLY) -> consume(e, REPLY)                                                           \
    :: IS_HERE(e, REQUEST) && IS_OLD(e, REQUEST) -> consume(e, REQUEST)                                               \
    :: end[e].phase >= DOWN && HAS_LOST(e) -> end[e].phase = AWAY                                                     \
    :: IS_SURE(e) && MAY_APPROACH(e) -> approach(e)                                                                   \
    :: IS_SURE(e) && MAY_CLEAN(e) -> clean(e)                                                                         \
    :: end[e].phase == AWAY && end[e].queue[REQUEST].filled + end[e].queue[REPLY].filled > 0 ->                       \
        sweep(e, REQUEST); sweep(e, REPLY)                                                                            \
    :: else -> break                                                                                                  \
    od;
#define SETTLE                                                                                                        \
    d_step {                                                                                                          \
        SETTLE_END(0) SETTLE_END(1) SETTLE_END(2) SETTLE_END(3) SETTLE_END(4) SETTLE_END(5)                           \
        SETTLE_END(0) SETTLE_END(1) SETTLE_END(2) SETTLE_END(3) SETTLE_END(4) SETTLE_END(5)                           \
        skip                                                                                                          \
    }

/* All know that a link is down. */
inline begin_cut(e)
{
    end[e].phase = AWAY;
    end[e].incarnation = 1;
    end[e].is_confirmed = 0
}

active proctype Ring()
{
    d_step {
        for (i : 0 .. ENDS - 1) {
            end[i].is_confirmed = 1
        }
        cuts[0] = CUTS_0;
        cuts[1] = CUTS_1;
        cuts[2] = CUTS_2;
#if BEGINS < HOSTS
        is_cut[BEGINS] = 1;
        for (i : 0 .. HOSTS - 1) {
            host[i].state[2 * BEGINS + 1] = 1;
            host[i].state[(2 * BEGINS + 2) % ENDS] = 1
        }
        begin_cut(2 * BEGINS + 1);
        begin_cut((2 * BEGINS + 2) % ENDS)
#endif
    }
    do
    :: atomic {
        if
    CUT(0, 1, 2) CUT(1, 3, 4) CUT(2, 5, 0)
    MANAGE(0) MANAGE(1) MANAGE(2) MANAGE(3) MANAGE(4) MANAGE(5)
    LISTEN(0) LISTEN(1) LISTEN(2) LISTEN(3) LISTEN(4) LISTEN(5)
    :: d_step {
        again && IS_REACHED_0 && MAY_INJECT_REQUEST(WAY_0) -> way = WAY_0; resend(way)
    }
    :: d_step {
        sent < REQUESTS && !again && IS_REACHED_0 && MAY_INJECT_REQUEST(WAY_0) &&
            (!(ASKS & (2 << sent)) || !asking) -> way = WAY_0; submit(way)
    }
    :: d_step { IS_REQUEST_NOW(2) && IS_SETTLED && IS_ROOM(2) -> execute(2) }
    :: d_step { IS_REQUEST_NOW(3) && IS_SETTLED && IS_ROOM(3) -> execute(3) }
    :: d_step { waiting_count > 0 && MAY_INJECT_REPLY(WAY_1) -> way = WAY_1; answer(way) }
    :: d_step { waiting_count == 0 && told != executed && MAY_INJECT_REPLY(WAY_1) -> way = WAY_1; reply_up_to(way, 0) }
    :: d_step { IS_REPLY_NOW(0) -> sink(0) }
    :: d_step { IS_REPLY_NOW(1) -> sink(1) }
    :: d_step { IS_REQUEST_NOW(5) && !IS_OPEN(4) -> consume(5, REQUEST) }
    :: d_step { IS_REQUEST_NOW(5) && IS_OPEN(4) && FREE(4, REQUEST) >= 1 -> pass_request(5) }
    :: d_step { IS_REPLY_NOW(4) && !IS_OPEN(5) -> consume(4, REPLY) }
    :: d_step { IS_REPLY_NOW(4) && IS_OPEN(5) && MAY_FOLLOW_NEWS(5) && FREE(5, REPLY) >= 1 -> pass_reply(4) }
        fi;
        SETTLE
    }
    :: IS_HOME -> break
    od
}
