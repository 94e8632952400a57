/* SPDX-License-Identifier: BSD-3-Clause */
/* lanes.pml - a context of one PE whose requests to a neighbour use two lanes: split puts, fence, quiet, and a link that
 * goes down and comes back, which each lane follows at its own time.
 *
 * Aim: what a fence orders lands in that order; after a quiet all is executed; a lane's requests are executed once and in
 * order; every run ends. Method: spin visits every state. A run may end only where all is done. A step is one call of
 * src/engine/ring (channel.c, context.h, ring_engine.c), of src/ring, or one transition of src/link/service.c; it is named
 * beside it. check.py runs the sizes, and the variants that must fail. docs/design/model.md says what is left out.
 *
 * The program: OPERATIONS times a put, which is one request on lane 0 or, if it may be split, two, one on each lane;
 * between two of them nothing, a fence or a quiet; a quiet at the end. Part n is the request of put n on lane 0, part
 * n + OPERATIONS its request on lane 1.
 *
 * A lane's topology is the number of changes that its two ends of the link have followed: 0 up, 1 one end down, 2 both
 * down, 3 one up again, 4 both. A change voids the frames in flight, and is known at both ends at once: late
 * updates are the subject of failover.pml.
 *
 * Sizes (each by -D): OPERATIONS (3 at most), CUTS (0 or 1).
 * MOVES: moves.h has the moves of one run of the production code, by moves.py: each must be a step that is possible here.
 *   A part is numbered as it is submitted, and a put has any number of parts.
 * Variants, each of which breaks the protocol: NO_OFF_LANE_WAIT (a fence waits for no other lane), SPLIT_FENCED (a put is
 *   split while a fence stands before it), NO_ORDERED (payload may land early after a fence), QUIET_OF_LANE (a quiet waits
 *   for lane 0 only), LAND_RESENT.
 */
#define LANES 2
#ifdef MOVES
#include "moves.h"
#define NUMBER int
#define PARTS  OPERATIONS
#define WINDOW 31 /* more than slots */
#else
#define NUMBER byte
#define WINDOW 3
#define PARTS (2 * OPERATIONS)
#define BIT(part) (1 << (part))
#endif

typedef Lane {
    NUMBER count;             /* requests that were submitted */
    NUMBER part[OPERATIONS];  /* which, in order */
    bit ordered[OPERATIONS];
    NUMBER sent;              /* in this topology */
    NUMBER sent_once;         /* in any: what is sent again is ORDERED */
    NUMBER taken, written;    /* frames [taken, written) are in the slots */
    NUMBER executed, done;    /* at host 1; what host 0 knows of it */
    NUMBER flying;            /* requests whose payload is on its way, by posted writes or DMA: bit n % WINDOW */
    byte topology;
    bit is_lost;            /* a frame was lost in this topology, so all after it are */
}
Lane lane[LANES];
bit is_cut, is_back;
byte cuts = CUTS;

byte next = 1;       /* the put to come */
bit is_marked;       /* context.h: fence_mark */
bit may_choose = 1;  /* a fence or a quiet may stand here */
NUMBER before[PARTS + 1]; /* `fenced` when the part was submitted */
#ifdef MOVES
int fenced;          /* all parts up to this one stand before the last fence */
int submitted;       /* the last part */
bit landed[PARTS + 1];
int landed_up_to;    /* all parts up to this one have landed */
#define HAVE_LANDED   (landed_up_to == submitted)
#define IS_SUBMITTED(number) submitted = (number)
#else
byte fenced;         /* parts before the last fence, by bits; PARTS <= 6 */
byte submitted, landed;
#define HAVE_LANDED   (landed == submitted)
#define IS_SUBMITTED(number) submitted = submitted | BIT((number) - 1)
#endif

hidden NUMBER i, k, p;

#define OUTSTANDING (lane[0].count - lane[0].done + lane[1].count - lane[1].done)
#define OFF_LANE    (lane[1].count - lane[1].done)
#define IS_FENCED   is_marked /* quoit_ring_context_is_fenced() */

#ifdef NO_OFF_LANE_WAIT
#define MAY_FENCE true
#else
#define MAY_FENCE (OFF_LANE == 0)
#endif
#ifdef QUIET_OF_LANE
#define IS_QUIET (lane[0].count == lane[0].done)
#else
#define IS_QUIET (OUTSTANDING == 0)
#endif
#ifdef SPLIT_FENCED
#define MAY_SPLIT true
#else
#define MAY_SPLIT (!IS_FENCED)
#endif

#ifdef MOVES
inline land(number)
{
    assert(before[number] <= landed_up_to);
    for (k : number + 1 .. submitted) {
        assert(!landed[k] || before[k] < number)
    }
    landed[number] = 1;
    do
    :: landed_up_to < submitted && landed[landed_up_to + 1] -> landed_up_to++
    :: else -> break
    od
}
#else
inline land(number)
{
    assert((before[number] & ~landed) == 0); /* what a fence orders before it has landed */
    for (k : 1 .. PARTS) {
        assert(!(landed & BIT(k - 1)) || !(before[k] & BIT(number - 1))) /* and it overwrites nothing ordered after it */
    }
    landed = landed | BIT(number - 1)
}
#endif

/* quoit_channel_submit() */
inline submit(l, number)
{
    lane[l].part[lane[l].count] = number;
#ifndef NO_ORDERED
    lane[l].ordered[lane[l].count] = IS_FENCED;
#endif
    before[number] = fenced;
    IS_SUBMITTED(number);
    lane[l].count++;
    printf("PE: submits part %d on lane %d\n", number, l)
}

/* quoit_ring_submit(), quoit_ring_next_resend(). Nothing is executed, so nothing need be sent, while one end is down and
 * the other is not: is_side_quiesced() of topology.c. */
#define MAY_SEND(l) (lane[l].topology != 1 && lane[l].sent < lane[l].count)
#ifdef LAND_RESENT
#define MAY_LAND(l) (!lane[l].ordered[lane[l].sent])
#else
#define MAY_LAND(l) (!lane[l].ordered[lane[l].sent] && lane[l].sent >= lane[l].sent_once)
#endif
#define FLIES(l, n) (lane[l].flying & (1 << ((n) % WINDOW)))
#define REACHES(l)  (!lane[l].is_lost && !(is_cut && lane[l].topology == 0))
inline send(l, lands)
{
    if
    :: REACHES(l) ->
        lane[l].written = lane[l].sent + 1;
        if
        :: lands -> lane[l].flying = lane[l].flying | (1 << (lane[l].sent % WINDOW))
        :: else
        fi
    :: else -> lane[l].is_lost = 1
    fi;
    printf("lane %d: host 0 sends request %d, payload lands: %d\n", l, lane[l].sent, lands);
    lane[l].sent++;
    if
    :: lane[l].sent > lane[l].sent_once -> lane[l].sent_once = lane[l].sent
    :: else
    fi
}
/* DMA arrives in any order. */
inline arrive(l, n)
{
    p = lane[l].part[n];
    lane[l].flying = lane[l].flying & ~(1 << ((n) % WINDOW));
    land(p);
    printf("lane %d: the payload of part %d lands\n", l, p)
}
/* receive_request(), receive_repeated() */
inline take(l)
{
    i = lane[l].taken;
    assert(i <= lane[l].executed); /* no gap */
    lane[l].flying = lane[l].flying & ~(1 << (i % WINDOW));
    if
    :: i == lane[l].executed ->
        p = lane[l].part[i];
        land(p); /* again, if it has: with the same bytes */
        lane[l].executed++
    :: else
    fi;
    lane[l].taken++;
    printf("lane %d: host 1 receives request %d\n", l, i)
}
/* adopt(): frames in flight are void, and all that is not done is sent again */
inline change(l)
{
    lane[l].topology++;
    lane[l].sent = lane[l].done;
    lane[l].taken = lane[l].done;
    lane[l].written = lane[l].done;
    lane[l].is_lost = 0;
    if
    :: lane[l].topology == 2 -> lane[l].flying = 0 /* both ends are down: what has not arrived is lost */
    :: else
    fi;
    printf("lane %d: topology %d\n", l, lane[l].topology)
}

/* DRAINING of service.c: both lanes of both hosts have followed */
#define HAVE_FOLLOWED (lane[0].topology == 2 && lane[1].topology == 2)

inline cut(l, loses)
{
    if
    :: loses && lane[l].written > lane[l].taken ->
        lane[l].written = lane[l].taken;
        lane[l].flying = 0;
        lane[l].is_lost = 1
    :: else
    fi
}

#if OPERATIONS > 3 && !defined(MOVES)
#error "STEPS knows three requests of a lane"
#endif
#define ARRIVE(l, n) :: d_step { FLIES(l, n) -> arrive(l, n) }
#define STEPS(l)                                                                                                  \
    :: d_step { MAY_SEND(l) -> send(l, 0) }                                                                       \
    :: d_step { MAY_SEND(l) && MAY_LAND(l) -> send(l, 1) }                                                        \
    ARRIVE(l, 0) ARRIVE(l, 1) ARRIVE(l, 2)                                                                        \
    :: d_step { lane[l].topology != 1 && lane[l].taken < lane[l].written -> take(l) }                             \
    :: d_step { lane[l].topology != 1 && lane[l].done < lane[l].executed -> know(l) }                             \
    :: d_step { CUTS && !cuts && lane[l].topology < 2 && is_cut -> change(l) }                                    \
    :: d_step { is_back && lane[l].topology >= 2 && lane[l].topology < 4 && !lane[l].flying -> change(l) }

#define IS_COMPLETE                                                                                              \
    (next > OPERATIONS && OUTSTANDING == 0 && lane[0].flying == 0 && lane[1].flying == 0 && HAVE_LANDED && \
     (cuts == CUTS || (lane[0].topology == 4 && lane[1].topology == 4)))

inline fence()
{
    is_marked = OUTSTANDING != 0;
    fenced = submitted;
    printf("PE: fence\n")
}
inline quiet()
{
    assert(lane[0].executed == lane[0].count && lane[1].executed == lane[1].count);
    assert(HAVE_LANDED);
    fenced = submitted;
    printf("PE: quiet\n")
}
inline know(l)
{
    lane[l].done++;
    is_marked = is_marked && OUTSTANDING != 0; /* the next request clears the mark before it counts itself */
    printf("lane %d: host 0 knows that %d are executed\n", l, lane[l].done)
}

#ifdef MOVES
/* The moves of the requests of one PE to a neighbour, while all links stay up. moves.h defines MOVE_COUNT, load_moves()
 * and OPERATIONS, parts of a lane. What lands early lands at once. */
int move[MOVE_COUNT];
hidden int at_move, value;
hidden byte kind, which, lands, is_ordered;

inline follow_move(l)
{
    if
    :: kind == 0 -> assert(l == 0 || MAY_SPLIT); submit(l, value)
    :: kind == 1 ->
        assert(MAY_SEND(l) && lane[l].sent == value);
        assert(is_ordered || !lane[l].ordered[value]);
        assert(!lands || (MAY_LAND(l) && !is_ordered));
        send(l, lands);
        if
        :: lands -> arrive(l, value)
        :: else
        fi
    :: kind == 2 -> assert(lane[l].taken < lane[l].written && lane[l].taken == value); take(l)
    :: kind == 3 -> assert(lane[l].done < lane[l].executed); know(l)
    :: kind == 4 -> assert(MAY_FENCE); fence()
    :: kind == 5 -> assert(IS_QUIET); quiet()
    fi
}

init
{
    load_moves();
    do
    :: at_move < MOVE_COUNT ->
        d_step {
            printf("move %d\n", at_move);
            kind = move[at_move] & 7;
            which = (move[at_move] >> 3) & 1;
            lands = (move[at_move] >> 4) & 1;
            is_ordered = (move[at_move] >> 5) & 1;
            value = move[at_move] >> 6;
            follow_move(which);
            at_move++
        }
    :: else -> break
    od;
    assert(IS_QUIET && HAVE_LANDED);
    printf("%d moves, %d requests complete\n", MOVE_COUNT, lane[0].done + lane[1].done)
}
#else
active proctype Lanes()
{
accept:
    do
    STEPS(0)
    STEPS(1)
    :: d_step { next <= OPERATIONS -> submit(0, next); next++; may_choose = 1 }
    :: d_step { next <= OPERATIONS && MAY_SPLIT -> submit(0, next); submit(1, next + OPERATIONS); next++; may_choose = 1 }
    :: d_step { next <= OPERATIONS && may_choose && submitted && MAY_FENCE ->
        fence(); may_choose = 0
    }
    :: d_step { may_choose && submitted && IS_QUIET ->
        quiet(); may_choose = 0
    }
    :: d_step { cuts > 0 -> cuts--; is_cut = 1; printf("the link is cut\n") }
    :: d_step {
        cuts > 0 -> cuts--; is_cut = 1; cut(0, 1); cut(1, 1); printf("the link is cut, and everything in flight is lost\n")
    }
    :: d_step { is_cut && HAVE_FOLLOWED -> is_cut = 0; is_back = 1; printf("the link is back\n") }
    :: IS_COMPLETE && IS_QUIET -> break
    od
}
#endif
