/* SPDX-License-Identifier: BSD-3-Clause */
/* direct.pml - direct puts of one PE to a neighbour, over posted writes, while the link is lost and comes back.
 *
 * Aim: each put lands once, in the order that fences require; a sequence counted as known has arrived; every put, fence
 * and quiet ends. Method: spin visits every state of one PE of host 0, its link to host 1, and both hosts' view of the
 * link. A step is one call of src/engine/ring/posted.c or of the port, one transition of src/link/service.c, or one
 * event of a request; it is named beside the step. check.py runs the sizes, and the variants that must fail.
 * docs/design/model.md says what is left out.
 *
 * The program: OPERATIONS times a put or an atomic, which is always a request; between two of them nothing, a fence or
 * a quiet; a quiet at the end. The link goes down CUTS times at any instant and comes back at any later one, or never
 * after the last (STAYS). Posted writes arrive in order, also after the outage began, until a call of the PE has
 * returned LINK_DOWN or host 1 has detected the loss, as port.h promises (Loss).
 *
 * Requests travel in the other direction, or over the link if it is up again, and are executed once and in order, as
 * failover.pml shows. Only the time matters here: not before host 1 has adopted the state of the link that host 0 had
 * when it sent; see is_side_quiesced() of topology.c.
 *
 * Sizes (each by -D): OPERATIONS (3 at most), JOURNAL (entries), CUTS, STAYS, TWICE (with SPLIT: the put whose mark was
 *   lost may land twice, before anything ordered after it), NO_WAIT (the PE does not wait for its proxy before it reads
 *   the mark: nothing depends on it).
 * MOVES: moves.h has the moves of one run of the production code, by moves.py: each must be a step that is possible here.
 * Variants, each of which breaks the protocol or a promise of the port: EARLY_READ (the mark is read before a call
 *   returned LINK_DOWN), LATE (posted writes arrive after LINK_DOWN), SPLIT (bytes arrive without their mark), NO_MARK,
 *   SEND_ALL (every entry not known to have arrived is sent again), FORGET_KNOWN (every entry above the mark is),
 *   MAY_LAND (what is sent again is not ORDERED), REUSE (of an entry not known to have arrived), NO_READ_BACK,
 *   NO_FENCE, UNBOUND (the opening follows the port epoch).
 */
#define READ_MARK 0 /* the request that fetches the mark; others are the number of their operation */
#ifdef MOVES
#include "moves.h"
#define NUMBER int
#else
#define NUMBER byte
#endif

/* States of ends as in failover.pml: 2 i while up in epoch i of the link, 2 i + 1 after it went down. */
byte target, lane;     /* host 0: as the manager publishes it; as the lane has adopted it */
byte published = 1;    /* the port port_epoch to which PEs may bind; 0: none */
byte state_1, known_1; /* host 1: of its own end; of host 0's, as far as it has learned */
bit is_agreed;         /* both ends are CLEAN, with: */
byte agreed, bound_0 = 1, bound_1 = 1;

bit is_cut;
byte port_epoch = 1, cuts = CUTS;

/* The PE */
NUMBER posted, known;
byte bound = 1;
bit is_open = 1;
NUMBER journal[JOURNAL]; /* the operation of sequence s at s % JOURNAL */
NUMBER fenced;           /* context->ring.fenced */
NUMBER next = 1, last_fenced; /* the next operation; the last one before the latest fence */

/* On the wire: sequences (posted - on_wire, posted] */
NUMBER on_wire, first_on_wire;
bit is_half; /* SPLIT: the bytes of the first have arrived */

/* At host 1 */
NUMBER mark;
#ifdef MOVES
bit landed[OPERATIONS + 1], direct[OPERATIONS + 1];
int before[OPERATIONS + 1]; /* all operations up to this one are ordered before it */
int landed_up_to;           /* all operations up to this one have landed */
#else
byte landed;                 /* bit n: operation n has landed */
byte before[OPERATIONS + 1]; /* the operations that a fence orders before it */
byte direct;                 /* bit n: operation n has a sequence */
#endif

/* Requests, the oldest first */
typedef Request {
    NUMBER what;
    byte sent;  /* the state that the lane had adopted when it took the request, plus 1; 0: not taken yet */
    byte seen;  /* the state that host 1 had learned when it executed the request, plus 1; 0: not executed yet */
    byte lands; /* 1: its payload may land before it is executed, 2: it has */
}
Request requests[OPERATIONS];
NUMBER request_count;
NUMBER response;
bit has_response;

hidden NUMBER i;

#define REACHES (!is_cut && bound == port_epoch)

#ifdef MOVES
inline land(n)
{
    assert(!landed[n]); /* once */
    assert(before[n] <= landed_up_to); /* fences order puts */
    for (i : landed_up_to + 1 .. n - 1) {
        assert(!(direct[n] && direct[i]) || landed[i]) /* puts land in order */
    }
    landed[n] = 1;
    do
    :: landed_up_to < OPERATIONS && landed[landed_up_to + 1] -> landed_up_to++
    :: else -> break
    od
}
#else
inline land(n)
{
#ifdef TWICE
    if
    :: landed & (1 << (n)) ->
        assert((landed & direct) < (2 << (n)));
        for (i : (n) + 1 .. OPERATIONS) {
            assert(!(landed & (1 << i)) || !(before[i] & (1 << (n))))
        }
    :: else
    fi;
#else
    assert((landed & (1 << (n))) == 0); /* once */
#endif
    assert((before[n] & ~landed) == 0);                                            /* fences order puts */
    assert(!(direct & (1 << (n))) || (direct & ((1 << (n)) - 1) & ~landed) == 0); /* puts land in order */
    landed = landed | (1 << (n))
}
#endif

/* PE */

inline submit(n, early)
{
    requests[request_count].what = n;
    requests[request_count].sent = 0;
    requests[request_count].seen = 0;
    requests[request_count].lands = early;
    request_count++
}

#ifdef MOVES
#define ALL_KNOWN_LANDED true /* asserted at each quiet */
#else
#define ALL_KNOWN_LANDED (known != posted || (direct & ~landed) == 0)
#endif

/* A call has returned LINK_DOWN. */
#ifdef LATE
#define LOSE_THE_REST skip
#else
#define LOSE_THE_REST LOSE_WIRE
#endif
#define LOSE_WIRE      \
    on_wire = 0;       \
    first_on_wire = 0; \
    is_half = 0

/* read_back(): OK once everything sent has arrived */
inline read_back(is_ok)
{
    if
#ifdef NO_READ_BACK
    :: d_step { REACHES -> known = posted; is_ok = 1 }
#else
    :: d_step { REACHES && on_wire == 0 -> known = posted; is_ok = 1; assert(ALL_KNOWN_LANDED) }
#endif
    :: d_step { !REACHES -> is_ok = 0; LOSE_THE_REST }
    fi
}

/* quoit_posted_recover() */
inline recover()
{
    is_open = 0;
    if
    :: known == posted
    :: else ->
#ifdef EARLY_READ
        ok = 0;
#else
        read_back(ok);
#endif
        if
        :: ok
        :: else ->
#ifndef NO_WAIT
            published != bound; /* proxy_has_seen() */
#endif
            d_step { submit(READ_MARK, 0); printf("PE: reads the mark by a request\n") }
            d_step { has_response -> has_response = 0; arrived = response; response = 0 }
            d_step {
                assert(arrived <= posted);
                if
#ifdef FORGET_KNOWN
                :: true
#else
                :: arrived < known -> arrived = known
                :: else
#endif
                fi;
#ifdef SEND_ALL
                arrived = known;
#endif
                printf("PE: %d have arrived of %d\n", arrived, posted)
            }
            /* send_lost() */
            do
            :: arrived < posted && request_count < OPERATIONS ->
               d_step {
                   arrived++;
                   number = journal[arrived % JOURNAL];
#ifdef MAY_LAND
                   submit(number, 1);
#else
                   submit(number, 0);
#endif
                   printf("PE: sends %d again, by a request\n", number)
               }
            :: arrived == posted -> break
            od;
            request_count == 0;
            d_step { known = posted; assert(ALL_KNOWN_LANDED); arrived = 0; number = 0 }
        fi;
        ok = 0
    fi
}

/* quoit_posted_complete() */
inline complete(up_to)
{
    do
    :: known >= up_to -> break
    :: known < up_to ->
        if
        :: is_open -> read_back(ok)
        :: !is_open -> ok = 0
        fi;
        if
        :: ok -> ok = 0
        :: !ok -> recover()
        fi
    od
}

#ifdef UNBOUND
#define FOLLOW bound = port_epoch
#else
#define FOLLOW skip
#endif
#ifdef MOVES
#define ADD_DIRECT(n) direct[n] = 1
#else
#define ADD_DIRECT(n) direct = direct | (1 << (n))
#endif
#define NONE_RELAYED (request_count == 0) /* relayed_count in quoit_channel_open_direct() */

/* quoit_channel_open_direct(), quoit_posted_bind() */
inline open_direct()
{
    if
    :: published != 0 && NONE_RELAYED ->
        if
        :: known != posted -> recover()
        :: else
        fi;
        d_step {
            if
            :: published != 0 && !is_cut && published == port_epoch -> bound = published; is_open = 1
            :: else
            fi
        }
    :: !(published != 0 && NONE_RELAYED)
    fi
}

inline post()
{
    FOLLOW;
    posted++;
    journal[posted % JOURNAL] = next;
    ADD_DIRECT(next);
    if
    :: REACHES ->
        assert(on_wire == 0 || first_on_wire + on_wire == posted);
        if
        :: on_wire == 0 -> first_on_wire = posted
        :: else
        fi;
        on_wire++
    :: else -> is_open = 0; LOSE_THE_REST
    fi;
    printf("PE: puts %d directly as %d, arrives: %d\n", next, posted, is_open)
}
/* quoit_posted_put() */
inline put_direct()
{
#ifndef REUSE
    if
    :: posted - known == JOURNAL -> complete(posted) /* reserve() */
    :: else
    fi;
#endif
    atomic { post() }
    if
    :: is_open
    :: !is_open -> complete(posted)
    fi
}

/* quoit_channel_take(), quoit_channel_submit() */
inline relay()
{
#ifndef NO_FENCE
    complete(fenced); /* keep_fence() */
#endif
    atomic { submit(next, 0); printf("PE: sends %d by a request\n", next) }
}

#ifndef MOVES
active proctype PE()
{
    byte arrived, number;
    bit ok, is_put;
    do
    :: next <= OPERATIONS ->
        d_step { before[next] = (1 << (last_fenced + 1)) - 2; is_put = 0 }
        if
        :: is_put = 1;
           if
           :: is_open
           :: !is_open -> open_direct()
           fi
        :: true
        fi;
        if
        :: is_put && is_open -> put_direct()
        :: !(is_put && is_open) -> relay()
        fi;
        is_put = 0;
        if
        :: true
        :: request_count == 0 -> fenced = posted; last_fenced = next /* fence() waits for relayed requests */
        :: request_count == 0 -> /* quiet() */
           complete(posted);
           atomic { assert(landed == (2 << next) - 2); last_fenced = next }
        :: known != posted && (!REACHES || published != bound) ->
           recover() /* a doorbell is refused: quoit_posted_attend() */
        fi;
        next++
    :: next > OPERATIONS -> break
    od;
    request_count == 0;
    complete(posted);
    assert(landed == (2 << OPERATIONS) - 2)
}
#endif

/* The link, the managers, the lanes and the requests */

#define HAS_LOST_0 (is_cut || bound_0 != port_epoch)
#define HAS_LOST_1 (is_cut || bound_1 != port_epoch)
#define IS_UP(state) (((state) & 1) == 0)
#define LARGER(a, b) ((a) > (b) -> (a) : (b))

/* is_side_quiesced(): whether host 1 executes requests sent with the state that it has learned */
#define IS_QUIESCED (known_1 / 2 != state_1 / 2 || !IS_UP(known_1) || IS_UP(state_1))
#define HAS_ADOPTED (lane == target) /* poll_pe() */
#ifdef NO_MARK
#define WRITE_MARK skip
#else
#define WRITE_MARK mark = first_on_wire
#endif
#define OPERATION_OF(sequence) journal[(sequence) % JOURNAL]

inline take_from_wire()
{
    on_wire--;
    first_on_wire = (on_wire == 0 -> 0 : first_on_wire + 1)
}

#define MAY_GO_DOWN_0 (IS_UP(target) && HAS_LOST_0)
#define MAY_GO_DOWN_1 (IS_UP(state_1) && HAS_LOST_1)
#define MAY_AGREE \
    (!is_cut && !IS_UP(target) && lane == target && published == 0 && !IS_UP(state_1) && HAS_LOST_0 && HAS_LOST_1)
#define MAY_COME_UP_0 (is_agreed && !IS_UP(target) && !HAS_LOST_0)
#define MAY_COME_UP_1 (is_agreed && !IS_UP(state_1) && !HAS_LOST_1)
/* service.c: begin_down(), make_clean() of both, come_up() */
inline go_down_0()
{
    target++;
    printf("host 0: the link went down\n")
}
inline go_down_1()
{
    state_1++;
    LOSE_WIRE;
    printf("host 1: the link went down\n")
}
inline agree()
{
    agreed = LARGER(target, state_1) + 1;
    bound_0 = port_epoch;
    bound_1 = port_epoch;
    is_agreed = 1
}
/* A posted write arrives. */
inline arrive()
{
    land(OPERATION_OF(first_on_wire));
    WRITE_MARK;
    take_from_wire()
}
inline cut() { is_cut = 1; printf("the link is cut\n") }
inline mend() { is_cut = 0; port_epoch++; printf("the link is back\n") }

#define MAY_EXECUTE(n) \
    (request_count > n && requests[n].seen == 0 && requests[n].sent != 0 && requests[n].sent <= known_1 + 1)
inline execute(n)
{
    requests[n].seen = known_1 + 1;
    if
    :: requests[n].what == READ_MARK -> response = mark
    :: requests[n].what != READ_MARK && requests[n].lands != 2 -> land(requests[n].what)
    fi;
    printf("host 1: executes %d\n", requests[n].what)
}
#define EXECUTE(n, earlier)                                                                  \
    :: d_step {                                                                              \
        MAY_EXECUTE(n) && IS_QUIESCED && earlier ->                                          \
        execute(n)                                                                           \
    }
#define TAKE(n, earlier) \
    :: d_step { request_count > n && requests[n].sent == 0 && earlier && HAS_ADOPTED -> requests[n].sent = lane + 1 }

/* A request is complete. */
inline pop(n)
{
    for (i : (n) + 1 .. OPERATIONS - 1) {
        requests[i - 1].what = requests[i].what;
        requests[i - 1].sent = requests[i].sent;
        requests[i - 1].seen = requests[i].seen;
        requests[i - 1].lands = requests[i].lands
    }
    requests[OPERATIONS - 1].what = 0;
    requests[OPERATIONS - 1].sent = 0;
    requests[OPERATIONS - 1].seen = 0;
    requests[OPERATIONS - 1].lands = 0;
    request_count--
}

#ifndef MOVES
active proctype World()
{
end:
accept:
    do
    :: d_step { cuts > 0 && !is_cut -> cuts--; cut() }
    :: d_step { is_cut && (!STAYS || cuts > 0) -> mend() }
    /* a posted write arrives, also after the outage began, until host 1 has detected it */
    :: d_step {
        on_wire > 0 ->
#ifdef SPLIT
        if
        :: is_half -> is_half = 0; WRITE_MARK; take_from_wire()
        :: else -> is_half = 1; land(OPERATION_OF(first_on_wire))
        fi
#else
        arrive()
#endif
    }
    :: d_step { MAY_GO_DOWN_0 -> go_down_0() }
    :: d_step { !IS_UP(target) && published != 0 -> published = 0 }
    :: d_step { lane != target -> lane = target }
    :: d_step { MAY_GO_DOWN_1 -> go_down_1() }
    :: d_step { MAY_AGREE -> agree() }
    :: d_step { MAY_COME_UP_0 -> target = agreed; published = port_epoch }
    :: d_step { MAY_COME_UP_1 -> state_1 = agreed }
    /* link-state updates, in the other direction */
    :: d_step { known_1 < lane -> known_1 = lane }
    /* requests */
    TAKE(0, true) TAKE(1, requests[0].sent) TAKE(2, requests[1].sent)
    EXECUTE(0, true) EXECUTE(1, requests[0].seen) EXECUTE(2, requests[1].seen)
    :: d_step { /* a response lost with an older topology version is requested again */
        request_count > 0 && requests[0].what == READ_MARK && requests[0].seen != 0 && requests[0].seen <= known_1 ->
        requests[0].seen = 0; response = 0
    }
    :: d_step {
        request_count > 0 && requests[0].seen != 0 ->
        if
        :: requests[0].what == READ_MARK -> has_response = 1
        :: else
        fi;
        pop(0)
    }
#ifdef MAY_LAND
    /* the last hop lands the payload before the request is executed */
    :: d_step {
        request_count > 1 && requests[1].lands == 1 && requests[1].sent != 0 ->
        requests[1].lands = 2;
        land(requests[1].what)
    }
#endif
    od
}
#else
/* The moves of one PE, of the end of the link by which it puts, and of its requests to that neighbour. moves.h defines
 * MOVE_COUNT and load_moves(), OPERATIONS and JOURNAL, which are no limits here: journals hold bytes. */
int move[MOVE_COUNT];
hidden int at_move, value;
hidden byte kind, flag;
byte submitted[OPERATIONS]; /* the target when the request was submitted: the PE may have read it */
bit is_recovering;
int lost_to, sent_again;    /* of the recovery under way: the last sequence sent before it, and the last one sent again */

#define HAS_TAKEN(n) (requests[n].sent != 0)
#define RECOVERS     3 /* `lands` of a request of the recovery */
byte recovers_count; /* such requests under way */

inline begin_request(what_it_is, manner)
{
    assert(known >= fenced || manner == RECOVERS); /* keep_fence() */
    submitted[request_count] = target;
    recovers_count = recovers_count + (manner == RECOVERS);
    submit(what_it_is, manner)
}
inline begin_operation()
{
    before[next] = last_fenced
}
/* The n-th of the requests under way; all before it were taken. */
inline take(n)
{
    assert(n < request_count && !HAS_TAKEN(n) && (n == 0 || HAS_TAKEN(n - 1)));
    assert(lane >= submitted[n]); /* poll_pe(): a lane adopts what a PE may have read before it takes a request */
    requests[n].sent = lane + 1
}
inline complete_request(n)
{
    assert(n < request_count && requests[n].seen != 0);
    if
    :: requests[n].what == READ_MARK ->
        assert(response <= lost_to);
        sent_again = LARGER(response, known) /* puts lost earlier were sent again by requests, and left no mark */
    :: else
    fi;
    recovers_count = recovers_count - (requests[n].lands == RECOVERS);
    pop(n);
    for (i : n + 1 .. OPERATIONS - 1) {
        submitted[i - 1] = submitted[i]
    }
    if
    :: is_recovering && recovers_count == 0 && sent_again == lost_to -> known = lost_to; is_recovering = 0
    :: else
    fi
}
inline follow_move()
{
    if
    :: kind == 0 -> assert(!is_cut); cut()
    :: kind == 1 -> assert(is_cut); mend()
    :: kind == 2 -> assert(MAY_GO_DOWN_0); go_down_0(); published = 0
    :: kind == 3 -> assert(lane != target); lane = target; assert(lane == value)
    :: kind == 4 -> assert(MAY_GO_DOWN_1); go_down_1()
    :: kind == 5 -> assert(MAY_AGREE); agree(); assert(agreed == value)
    :: kind == 6 -> assert(MAY_COME_UP_0); target = agreed; published = port_epoch
    :: kind == 7 -> assert(MAY_COME_UP_1); state_1 = agreed
    :: kind == 8 -> assert(known_1 < value && value <= lane); known_1 = value
    :: kind == 9 -> /* a direct put, which the port takes, or refuses */
        assert(is_open && !is_recovering && flag == REACHES);
        begin_operation(); post(); assert(posted == value); next++
    :: kind == 10 -> assert(on_wire > 0 && first_on_wire == value); arrive(); assert(mark == value)
    :: kind == 11 && flag -> assert(REACHES && on_wire == 0); known = posted
    :: kind == 11 && !flag -> assert(!REACHES); LOSE_WIRE; is_open = 0
    :: kind == 12 -> /* recover(): the proxy has seen the loss, and the mark is asked for */
        assert(!is_open && !is_recovering && known != posted && published != bound && on_wire == 0);
        is_recovering = 1; lost_to = posted; sent_again = 0; begin_request(READ_MARK, RECOVERS)
    :: kind == 13 -> /* the next of what was lost is sent again */
        assert(is_recovering && sent_again < lost_to && value == sent_again + 1);
        sent_again = value; begin_request(OPERATION_OF(value), RECOVERS)
    :: kind == 14 -> begin_operation(); begin_request(next, 0); next++
    :: kind == 15 -> take(value)
    :: kind == 16 -> assert(MAY_EXECUTE(value) && IS_QUIESCED && (value == 0 || requests[value - 1].seen != 0)); execute(value)
    :: kind == 17 -> complete_request(value)
    :: kind == 18 -> /* quoit_channel_open_direct() */
        assert(published != 0 && NONE_RELAYED && known == posted && !is_cut && published == port_epoch);
        bound = published; is_open = 1
    :: kind == 19 -> assert(NONE_RELAYED); fenced = posted; last_fenced = next - 1
    :: kind == 20 -> assert(NONE_RELAYED && known == posted && landed_up_to == next - 1); last_fenced = next - 1
    fi
}

init
{
    load_moves();
    do
    :: at_move < MOVE_COUNT ->
        d_step {
            printf("move %d\n", at_move);
            kind = move[at_move] & 31;
            flag = (move[at_move] >> 5) & 1;
            value = move[at_move] >> 6;
            follow_move();
            at_move++
        }
    :: else -> break
    od;
    assert(request_count == 0 && known == posted && landed_up_to == next - 1);
    printf("%d moves, %d requests complete\n", MOVE_COUNT, next - 1)
}
#endif
