/* SPDX-License-Identifier: BSD-3-Clause */
/* shared.pml - users of one link of a shared ring: shares, their memory, death, and cuts that hit all of them.
 *
 * Aim: whatever a user does, up to its death at any instant, the others' requests are executed exactly once, in order, and
 * complete; no frame is executed for another user; a share is free again after its user's death. Method: spin visits every
 * state of two users and a third, which waits for a share. A run may end only where IS_COMPLETE holds. A step is one of
 * src/share/share.c, of src/link/service.c or of a lane; it is named beside it. check.py runs the sizes, and the variants
 * that must fail. docs/design/model.md says what is left out.
 *
 * Each user sends REQUESTS requests from host 0 (end 0) to host 1 (end 1) by its part of the link. Its slots lie in its
 * memory at host 1. User 0 may die or stop; user 1 does neither; user 2 attaches when there is a share. A link comes up in
 * one step here, and epochs, versions and the other route are those of failover.pml, which each user has to itself.
 *
 * Sizes (each by -D): REQUESTS, SLOTS, SHARES (of the ring), CUTS (of the link, which comes back), DIES, STOPS (user 0 may).
 * Variants, each of which breaks a promise of share.h or the protocol: POOL (one count of free slots for all users),
 *   KEEP_SHARE (a share does not end with its user), REUSE (its memory is given to the next at once), SWEEP_ALL (a
 *   user's coming up zeroes the slots of all), CUT_ALL (the end of a share cuts the link of all, for ever),
 *   NO_REPEAT_CHECK, WRONG_MEMORY (user 0 writes by a descriptor of another share).
 */
#define USERS 3
#define NONE  255

#define AWAITED 0
#define LIVES   1
#define DEAD    2 /* its connection has ended, and the owner has not seen it */
#define ENDED   3

#ifdef POOL
#define SLOTS_MAX (2 * SLOTS)
#define FREE(u)   (SLOTS_MAX - user[0].used - user[1].used - user[2].used)
#else
#define SLOTS_MAX SLOTS
#define FREE(u)   (SLOTS - user[u].used)
#endif

typedef Frame {
    byte owner;
    byte number;
}
typedef Slots { /* in memory of host 1 */
    byte filled;
    Frame slots[SLOTS_MAX];
}
typedef User {
    byte status;
    byte memory;       /* which slots are its own */
    byte next;         /* the request to send; the first one that is not acknowledged when the link comes up */
    byte acknowledged;
    byte executed;
    byte used;         /* the sender's count of taken slots */
    byte consumed;     /* the reader's count of credits to return */
    byte flying;       /* posted writes, which arrive in order, also after the user's death */
    byte wire[SLOTS_MAX];
    bit is_up[2];
    bit is_bound[2];   /* to the port epoch of now */
    bit is_clean;      /* both ends have zeroed the slots, in the port epoch of now */
}
User user[USERS];
Slots memory[USERS];
bit is_cut, is_stopped;
byte cuts = CUTS, shares_taken = 2;

hidden byte i, k, owner, number;

#define RUNS(u) (user[u].status == LIVES && !(u == 0 && is_stopped))
#define IS_WHOLE(u) (user[u].is_up[0] && user[u].is_up[1] && user[u].is_bound[0] && user[u].is_bound[1])

#ifdef WRONG_MEMORY
#define TARGET(u) (u == 0 -> user[1].memory : user[u].memory)
#else
#define TARGET(u) user[u].memory
#endif

inline zero(m)
{
    memory[m].filled = 0;
    for (k : 0 .. SLOTS_MAX - 1) {
        memory[m].slots[k].owner = 0;
        memory[m].slots[k].number = 0
    }
    skip
}
inline lose_wire(u)
{
    user[u].flying = 0;
    for (k : 0 .. SLOTS_MAX - 1) {
        user[u].wire[k] = 0
    }
    skip
}

/* quoit_ring_submit(), quoit_ring_next_resend(): a write through an end that is not bound is lost */
inline send(u)
{
    if
    :: user[u].is_bound[0] ->
        user[u].wire[user[u].flying] = user[u].next;
        user[u].flying++
    :: else
    fi;
    user[u].used++;
    printf("host 0: user %d sends request %d\n", u, user[u].next);
    user[u].next++
}
inline arrive(u)
{
    i = TARGET(u);
#if !defined(REUSE) && !defined(WRONG_MEMORY) && !defined(SWEEP_ALL)
    assert(memory[i].filled < SLOTS_MAX);
#endif
    if
    :: memory[i].filled < SLOTS_MAX ->
        memory[i].slots[memory[i].filled].owner = u;
        memory[i].slots[memory[i].filled].number = user[u].wire[0];
        memory[i].filled++
    :: else
    fi;
    for (k : 1 .. SLOTS_MAX - 1) {
        user[u].wire[k - 1] = user[u].wire[k]
    }
    user[u].wire[SLOTS_MAX - 1] = 0;
    user[u].flying--
}
/* quoit_ring_receive() */
inline execute(u)
{
    i = user[u].memory;
    owner = memory[i].slots[0].owner;
    number = memory[i].slots[0].number;
    for (k : 1 .. SLOTS_MAX - 1) {
        memory[i].slots[k - 1].owner = memory[i].slots[k].owner;
        memory[i].slots[k - 1].number = memory[i].slots[k].number
    }
    memory[i].slots[SLOTS_MAX - 1].owner = 0;
    memory[i].slots[SLOTS_MAX - 1].number = 0;
    memory[i].filled--;
    user[u].consumed++;
    printf("host 1: user %d executes request %d of user %d\n", u, number, owner);
    assert(owner == u);
    assert(number <= user[u].executed + 1);
#ifdef NO_REPEAT_CHECK
    assert(number == user[u].executed + 1); /* else it is executed twice */
#endif
    if
    :: number == user[u].executed + 1 -> user[u].executed = number
    :: else
    fi
}
/* begin_down() of one end: what it has not seen by now is lost */
inline go_down(u, e)
{
    user[u].is_up[e] = 0;
    lose_wire(u);
    printf("host %d: the link of user %d went down\n", e, u)
}
/* step_absent(), make_clean() of both ends, see failover.pml */
inline make_clean(u)
{
    user[u].is_bound[0] = 1;
    user[u].is_bound[1] = 1;
    user[u].is_clean = 1;
    user[u].used = 0;
    user[u].consumed = 0;
#ifdef SWEEP_ALL
    for (i : 0 .. USERS - 1) {
        zero(i)
    }
    skip
#else
    i = user[u].memory;
    zero(i)
#endif
}
inline come_up(u, e)
{
    user[u].is_up[e] = 1;
    if
    :: e == 0 -> user[u].next = user[u].acknowledged + 1
    :: else
    fi;
    printf("host %d: the link of user %d is up\n", e, u)
}

/* quoit_shared_ring_cut(): for all shares in one step */
inline cut(loses)
{
    is_cut = 1;
    for (i : 0 .. USERS - 1) {
        user[i].is_bound[0] = 0;
        user[i].is_bound[1] = 0;
        user[i].is_clean = 0;
        if
        :: loses -> lose_wire(i)
        :: else
        fi
    }
    printf("the link is cut\n")
}
/* quoit_share_end(): no write is accepted any more; one that was may still arrive */
inline end_share(u)
{
    user[u].status = ENDED;
    user[u].is_bound[0] = 0;
    user[u].is_bound[1] = 0;
#ifndef KEEP_SHARE
    shares_taken--;
#endif
#ifdef CUT_ALL
    cuts = 0;
    cut(0);
#endif
    printf("the link: the share of user %d ends\n", u)
}
/* quoit_share_take() */
inline attach(u)
{
    user[u].status = LIVES;
    shares_taken++;
#ifdef REUSE
    user[u].memory = user[0].memory;
#endif
    printf("the link: user %d attaches\n", u)
}

#define IS_DONE(u)    (user[u].acknowledged == REQUESTS && user[u].used == 0 && user[u].flying == 0 && user[u].consumed == 0)
#define IS_SETTLED(u) (user[u].status != LIVES || (IS_DONE(u) && IS_WHOLE(u)))
#define IS_COMPLETE                                                                                     \
    (IS_DONE(1) && IS_WHOLE(1) && (IS_SETTLED(0) || is_stopped) && user[0].status != DEAD && user[0].flying == 0 && \
     (user[0].status == LIVES || (user[2].status == LIVES && IS_DONE(2) && IS_WHOLE(2))))

#define STEPS(u)                                                                                            \
    :: d_step { RUNS(u) && user[u].is_up[0] && user[u].next <= REQUESTS && FREE(u) >= 1 -> send(u) }        \
    :: d_step { user[u].flying > 0 -> arrive(u) }                                                           \
    :: d_step { RUNS(u) && user[u].is_up[1] && memory[user[u].memory].filled > 0 -> execute(u) }            \
    :: d_step { RUNS(u) && IS_WHOLE(u) && user[u].consumed > 0 -> user[u].consumed--; user[u].used-- }      \
    :: d_step { RUNS(u) && IS_WHOLE(u) && user[u].acknowledged < user[u].executed ->                        \
        user[u].acknowledged = user[u].executed }                                                           \
    :: d_step { RUNS(u) && user[u].is_up[0] && !user[u].is_bound[0] -> go_down(u, 0) }                      \
    :: d_step { RUNS(u) && user[u].is_up[1] && !user[u].is_bound[1] -> go_down(u, 1) }                      \
    :: d_step { RUNS(u) && !is_cut && !user[u].is_up[0] && !user[u].is_up[1] && !user[u].is_clean -> make_clean(u) } \
    :: d_step { RUNS(u) && user[u].is_clean && !user[u].is_up[0] -> come_up(u, 0) }                         \
    :: d_step { RUNS(u) && user[u].is_clean && !user[u].is_up[1] -> come_up(u, 1) }

active proctype Link()
{
    d_step {
        for (i : 0 .. USERS - 1) {
            user[i].memory = i;
            user[i].next = 1
        }
        for (i : 0 .. 1) {
            user[i].status = LIVES;
            user[i].is_up[0] = 1;
            user[i].is_up[1] = 1;
            user[i].is_bound[0] = 1;
            user[i].is_bound[1] = 1;
            user[i].is_clean = 1
        }
    }
accept:
    do
    STEPS(0)
    STEPS(1)
    STEPS(2)
    :: d_step { DIES && user[0].status == LIVES && !is_stopped -> user[0].status = DEAD; printf("the link: user 0 dies\n") }
    :: d_step { STOPS && user[0].status == LIVES && !is_stopped -> is_stopped = 1; printf("the link: user 0 stops\n") }
    :: d_step { user[0].status == DEAD -> end_share(0) }
    :: d_step { user[2].status == AWAITED && shares_taken < SHARES -> attach(2) }
    :: d_step { cuts > 0 && !is_cut -> cuts--; cut(0) }
    :: d_step { cuts > 0 && !is_cut -> cuts--; cut(1) }
#ifndef CUT_ALL
    :: d_step { is_cut -> is_cut = 0; printf("the link is back\n") }
#endif
    :: IS_COMPLETE -> break
    od
}
