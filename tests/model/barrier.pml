/* SPDX-License-Identifier: BSD-3-Clause */
/* barrier.pml - the barriers between hosts: exchange, arrivals, dissemination, and the papers' by doorbells.
 *
 * Aim: no host leaves a barrier before all have entered it, and every host leaves every barrier. Method: spin visits every
 * state of a few barriers in a row, since flags and doorbells are those of the barrier before. A run may end only when all
 * hosts have left the last one, and none goes on for ever. Each step is named for its function in src/coll/team.c,
 * src/coll/schedule.c, src/papers/barrier.c and src/papers/doorbell.c. A step is what a host does between two waits: to
 * see a flag late equals to act late, and a message that leaves late equals one that arrives late. Messages arrive in
 * order, at any later time: links that fail are failover.pml's. docs/design/model.md says what is left out.
 *
 * Sizes (each by -D): HOSTS, BARRIERS.
 * Kinds: EXCHANGE, ARRIVALS, DISSEMINATE, DOORBELLS. With DEAD_LINK (of ARRIVALS) what crosses the link between the last
 *   host and host 0 never arrives: the barrier is complete without it.
 * Variants, each of which breaks a barrier: FEW_ROUNDS (of EXCHANGE and DISSEMINATE), NO_BASE and NO_FORWARD (of
 *   ARRIVALS), EARLY_LEAVE, NO_WAKE and NO_LAST_LOOK (of DOORBELLS).
 */
#define NEXT     0
#define PREVIOUS 1
#define RIGHT_OF(h) (((h) + 1) % HOSTS)
#define LEFT_OF(h)  (((h) + HOSTS - 1) % HOSTS)
#define LEAST(a, b) ((a) < (b) -> (a) : (b))

byte entered[HOSTS]; /* barriers */

/* Its own host has entered it; so must have all others. */
inline leave(h)
{
    d_step {
        for (k : 0 .. HOSTS - 1) {
            assert(entered[k] >= entered[h])
        }
        k = 0;
        printf("host %d leaves barrier %d\n", h, entered[h])
    }
}
inline enter(h)
{
    d_step {
        entered[h]++;
        printf("host %d enters barrier %d\n", h, entered[h])
    }
}

#ifndef DOORBELLS
/* struct quoit_team_flags: values only grow. A lane of flags: one of the two travels, or of the rounds of dissemination. */
#ifdef DISSEMINATE
#define LANES 3
#else
#define LANES 2
#endif
byte flag[HOSTS * LANES];
chan wire[HOSTS * LANES] = [4] of { byte }; /* by the flag that it sets */

#define FLAG(h, lane) flag[(h) * LANES + (lane)]
#define TO(h, travel) ((travel) == NEXT -> RIGHT_OF(h) : LEFT_OF(h))
/* send_to(): the fence and the put with its signal */
#define SEND(to, lane, value) wire[(to) * LANES + (lane)] ! (value)

proctype Wire(byte at)
{
    byte value;
end:
accept:
    do
    :: atomic { wire[at] ? value -> flag[at] = value; value = 0 }
    od
}
#endif

#ifdef EXCHANGE
/* quoit_team_exchange() without blocks, quoit_team_round() */
#ifdef FEW_ROUNDS
#define ROUNDS (HOSTS / 2 - 1)
#else
#define ROUNDS (HOSTS / 2)
#endif
#define SENDS_PREVIOUS(round) (HOSTS % 2 == 1 || (round) + 1 != HOSTS / 2)
inline meet(h)
{
    round = 0;
    do
    :: round < ROUNDS ->
        atomic {
            value++;
            SEND(TO(h, NEXT), NEXT, value);
            if
            :: SENDS_PREVIOUS(round) -> SEND(TO(h, PREVIOUS), PREVIOUS, value)
            :: else
            fi
        };
        atomic { FLAG(h, NEXT) >= value && (!SENDS_PREVIOUS(round) || FLAG(h, PREVIOUS) >= value) -> round++ }
    :: else -> break
    od
}
#endif

#ifdef DISSEMINATE
/* disseminate() */
#ifdef FEW_ROUNDS
#define IS_ROUND(round) ((2 << (round)) < HOSTS)
#else
#define IS_ROUND(round) ((1 << (round)) < HOSTS)
#endif
inline meet(h)
{
    round = 0;
    value++;
    do
    :: IS_ROUND(round) ->
        SEND((h + (1 << round)) % HOSTS, round, value);
        atomic { FLAG(h, round) >= value -> round++ }
    :: else -> break
    od
}
#endif

#ifdef ARRIVALS
/* sync_by_arrivals(), quoit_schedule_arrivals_advertise() */
#ifdef NO_BASE
#define KNOWN(h, travel) LEAST(FLAG(h, travel), HOSTS - 1)
#else
#define KNOWN(h, travel) (FLAG(h, travel) <= value -> 0 : LEAST(FLAG(h, travel) - value, HOSTS - 1))
#endif
#define ADVERTISED(count) LEAST((count) + 1, HOSTS - 1)
#ifdef DEAD_LINK
#define IS_DEAD(h, travel) ((travel) == NEXT -> (h) == HOSTS - 1 : (h) == 0)
#else
#define IS_DEAD(h, travel) false
#endif
inline advertise(h, travel)
{
    if
    :: IS_DEAD(h, travel)
    :: else -> SEND(TO(h, travel), travel, value + ADVERTISED(known[travel]))
    fi
}
inline look(h, travel)
{
    before = ADVERTISED(known[travel]);
    known[travel] = KNOWN(h, travel);
    if
#ifndef NO_FORWARD
    :: ADVERTISED(known[travel]) != before -> advertise(h, travel)
#endif
    :: else
    fi;
    before = 0
}
inline meet(h)
{
    atomic {
        value = (entered[h] - 1) * HOSTS; /* base */
        advertise(h, NEXT);
        advertise(h, PREVIOUS)
    };
    do
    :: atomic {
        known[NEXT] + known[PREVIOUS] < HOSTS - 1 &&
            (KNOWN(h, NEXT) != known[NEXT] || KNOWN(h, PREVIOUS) != known[PREVIOUS]) ->
        look(h, NEXT);
        look(h, PREVIOUS)
    }
    :: atomic {
        known[NEXT] + known[PREVIOUS] >= HOSTS - 1 ->
        known[NEXT] = 0;
        known[PREVIOUS] = 0;
        break
    }
    od
}
#endif

#ifndef DOORBELLS
proctype Host(byte h)
{
    byte value, round, k, known[2], before;
    do
    :: atomic { entered[h] < BARRIERS -> enter(h) }; meet(h); leave(h)
    :: atomic { entered[h] == BARRIERS -> break }
    od
}

init
{
    byte k;
    atomic {
        for (k : 0 .. HOSTS * LANES - 1) {
            run Wire(k)
        }
        for (k : 0 .. HOSTS - 1) {
            run Host(k)
        }
        k = 0
    }
}
#else
#define START 1
#define END   2
mtype = { IDLE, START_AWAITED, END_AWAITED };

byte bell[HOSTS];               /* doorbell bits of the left port */
chan wire[HOSTS] = [2] of { byte }; /* to the right neighbour */
byte released[HOSTS];           /* barriers; `entered` is barrier_arrived_count */
bit is_announced[HOSTS], is_woken[HOSTS]; /* the park of lane 0 */

/* quoit_park_wake() */
inline wake(h)
{
    is_woken[h] = is_announced[h]
}

/* A bit that is set already interrupts nobody, so a signal must not be sent before the one like it was taken. */
proctype Wire(byte h)
{
    byte signal;
end:
accept:
    do
    :: atomic {
        wire[h] ? signal ->
        assert((bell[RIGHT_OF(h)] & signal) == 0);
        bell[RIGHT_OF(h)] = bell[RIGHT_OF(h)] | signal;
        wake(RIGHT_OF(h));
        signal = 0
    }
    od
}

/* host_barrier() of src/engine/ring/ring_engine.c. The wait for the release has a waker: docs/design/waiting.md. */
proctype Pe(byte h)
{
    byte k;
    do
    :: atomic { entered[h] < BARRIERS -> enter(h) };
#ifndef NO_WAKE
        d_step { wake(h) };
#endif
        atomic { released[h] >= entered[h] -> leave(h) }
    :: atomic { entered[h] == BARRIERS -> break }
    od
}

#define IS_FIRST(h) ((h) == 0)
#define IS_LAST(h)  ((h) == HOSTS - 1)
#ifdef EARLY_LEAVE
#define LEAVES_AT_START(h) true
#else
#define LEAVES_AT_START(h) IS_FIRST(h)
#endif

/* quoit_papers_barrier_step(), and step() of doorbell.c: the bit is cleared, the signal sent, the PE released */
inline take_start(h)
{
    bell[h] = bell[h] & ~START;
    wire[h] ! (IS_FIRST(h) -> END : START);
    if
    :: LEAVES_AT_START(h) -> released[h]++
    :: else
    fi;
    state = (IS_FIRST(h) -> IDLE : END_AWAITED)
}
inline take_end(h)
{
    bell[h] = bell[h] & ~END;
    if
    :: !IS_LAST(h) -> wire[h] ! END
    :: else
    fi;
    if
    :: !LEAVES_AT_START(h) -> released[h]++
    :: else
    fi;
    state = IDLE
}
/* quoit_park_cancel() */
#define STAY_AWAKE is_announced[h] = 0; is_woken[h] = 0

#define MAY_ENTER      (state == IDLE && entered[h] > released[h])
#define MAY_TAKE_START (state == START_AWAITED && (bell[h] & START))
#define MAY_TAKE_END   (state == END_AWAITED && (bell[h] & END))
#define HAS_MOVE       (MAY_ENTER || MAY_TAKE_START || MAY_TAKE_END)
inline move(h)
{
    if
    :: MAY_ENTER ->
        if
        :: IS_FIRST(h) -> wire[h] ! START
        :: else
        fi;
        state = START_AWAITED
    :: MAY_TAKE_START -> take_start(h)
    :: MAY_TAKE_END -> take_end(h)
    fi
}

/* quoit_wait_until(): look; announce the sleeper; look once more; sleep */
proctype Lane(byte h)
{
    mtype state = IDLE;
    do
    :: atomic { HAS_MOVE -> move(h) }
    :: !HAS_MOVE ->
        is_announced[h] = 1;
        if
#ifndef NO_LAST_LOOK
        :: atomic { HAS_MOVE -> STAY_AWAKE }
        :: atomic { !HAS_MOVE -> skip };
#else
        :: true ->
#endif
end:        atomic { is_woken[h] -> STAY_AWAKE }
        fi
    od
}

init
{
    byte k;
    atomic {
        for (k : 0 .. HOSTS - 1) {
            run Wire(k);
            run Lane(k);
            run Pe(k)
        }
        k = 0
    }
}
#endif
