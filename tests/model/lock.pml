/* SPDX-License-Identifier: BSD-3-Clause */
/* lock.pml - a lock of libqdsm, which stays with the PE that released it last, and carries notices to the next.
 *
 * Aim: one PE at a time holds the lock, each holder has applied the notices of all releases before, and every PE that
 * waits gets it. Method: spin visits every state of a few operations of each PE: lock and unlock, try and unlock, and the
 * return of a retained lock to its home. A step is one operation on a word in symmetric memory, with what the PE does before
 * the next one. Inlines are named for functions of src/dsm/sync.c. A run may end only when all PEs have completed their operations, and none goes on for ever.
 *
 * A release makes one notice, a bit in a set of them. What a PE has applied only grows, so a PE that reads it from the
 * releaser of a free lock does so in the step that takes the lock. A releaser writes to a node that waits what its PE has
 * not, as far as that PE has left what it had when it joined the queue (or has not, since what it had is hardly older);
 * or it has no buffer to write to.
 *
 * Sizes (each by -D): PES, THREADS and NODES (of each PE), OPERATIONS (of each thread).
 * Variants, each of which breaks the lock: NO_USES (a name does not say which use of its node it means), NO_CLAIM (a try
 *   names itself as the successor of a node whose successor it may not be), GIVE_BACK_FREE (a retained lock is given back without
 *   being taken first), STORE_FREE (release by a look and a store), READ_FIRST (what the releaser of a free lock knows is
 *   read before the lock is taken), FLAG_FIRST (a node is granted the lock before it is handed the notices), OWN_ONLY (a
 *   releaser hands over none of another PE), SHOW_AHEAD (a PE that joins the queue leaves more than it has applied).
 */
#define TOTAL (PES * NODES)
#ifdef NO_USES
#define USES 1
#else
#define USES 5
#endif
/* Names are not 0. */
#define NAME(node)  (1 + (node) + TOTAL * uses[node])
#define NODE(name)  (((name) - 1) % TOTAL)
#define PE_OF(name) (NODE(name) / NODES)
/* In a lock word: PE + 1 of the last releaser. In next: marks beside a name. */
#define RELEASED 64
#define FREE     64
#define CLAIMED  128
/* In a flag: PE + 1 of the releaser, and whether it has handed over its notices. */
#define HANDED   32
#define IS_NAME(word) ((word) != 0 && (word) < RELEASED)
mtype = { UNUSED, QUEUED, RETAINS, LEAVES };

byte lock_word;
byte next[TOTAL], flag[TOTAL], uses[TOTAL];
mtype state[TOTAL] = UNUSED;
byte retained[PES]; /* names */
byte holder;   /* process */
short all;     /* notices of all releases so far */
short known[PES];
short seen[PES * PES];  /* [PE, of] what that one had, as it left it there */
short handed[TOTAL];    /* to a node */
#ifdef OWN_ONLY
short written[PES];
#define TO_HAND (known[me] & written[me])
#else
#define TO_HAND known[me]
#endif

#define MINE(i) (me * NODES + (i))

inline drop(node)
{
    state[node] = UNUSED;
    next[node] = 0;
    flag[node] = 0;
    handed[node] = 0
}

/* The node's PE sees that another one has taken the lock. */
inline leave(node, word)
{
    if
    :: word >= CLAIMED -> state[node] = LEAVES
    :: else -> drop(node)
    fi
}

/* The first node that is unused, or one that has left its lock. */
inline take_node()
{
    name = 0;
    do
    :: name < NODES && state[MINE(name)] == LEAVES && next[MINE(name)] < CLAIMED -> drop(MINE(name))
    :: name < NODES && state[MINE(name)] == UNUSED -> break
    :: else -> name++; assert(name < NODES)
    od;
    name = MINE(name);
    uses[name] = (uses[name] + 1) % USES;
    state[name] = QUEUED;
    name = NAME(name)
}

/* The name is 0 unless this PE keeps the lock and nobody has taken it. */
inline take_retained()
{
    name = retained[me];
    retained[me] = 0;
    if
    :: name == 0
    :: name != 0 && next[NODE(name)] == FREE + name ->
        next[NODE(name)] = 0;
        state[NODE(name)] = QUEUED
    :: else ->
        leave(NODE(name), next[NODE(name)]);
        name = 0
    fi
}

inline acquire_from(pe)
{
    known[me] = known[me] | known[pe]
}

inline acquire(grant)
{
    if
    :: grant >= HANDED ->
        known[me] = known[me] | handed[NODE(name)];
        handed[NODE(name)] = 0
    :: grant > 0 && grant < HANDED -> acquire_from(grant - 1)
    :: else
    fi
}

inline hold()
{
    assert(holder == 0);
    assert(known[me] == all);
    holder = _pid;
    printf("PE %d holds the lock by node %d\n", me, NODE(name))
}

inline release()
{
    assert(holder == _pid);
    holder = 0;
#ifdef OWN_ONLY
    written[me] = written[me] | (all + 1);
#endif
    known[me] = known[me] | (all + 1);
    all = 2 * all + 1;
    printf("PE %d releases the lock\n", me)
}

inline retain_or_free()
{
    if
    :: after == 0 ->
        next[NODE(name)] = FREE + name;
        if
        :: retained[me] != 0 -> leave(NODE(retained[me]), next[NODE(retained[me])])
        :: else
        fi;
        retained[me] = name;
        state[NODE(name)] = RETAINS
    :: else ->
        assert(IS_NAME(after));
        drop(NODE(name))
    fi;
    name = 0
}

inline pass_on()
{
    if
    :: after != 0 && PE_OF(after) != me ->
#ifdef FLAG_FIRST
        flag[NODE(after)] = HANDED + me + 1;
        atomic { handed[NODE(after)] = TO_HAND & ~seen[me * PES + PE_OF(after)]; after = 0 }
#else
        handed[NODE(after)] = TO_HAND & ~seen[me * PES + PE_OF(after)];
        atomic { flag[NODE(after)] = HANDED + me + 1; after = 0 }
#endif
    :: after != 0 -> atomic { flag[NODE(after)] = me + 1; after = 0 }
    :: else
    fi
}

inline unlock()
{
#ifdef STORE_FREE
    after = next[NODE(name)];
    atomic { release(); retain_or_free() }
#else
    atomic { release(); after = next[NODE(name)]; retain_or_free() }
#endif
    pass_on()
}

inline show_known()
{
    if
#ifdef SHOW_AHEAD
    :: seen[PE_OF(before) * PES + me] = all
#else
    :: seen[PE_OF(before) * PES + me] = known[me]
#endif
    :: true
    fi
#ifdef READ_FIRST
    ;
    early = known[PE_OF(before)]
#endif
}

/* One look behind the node in before. before becomes 0 once the PE holds the lock or waits for its flag. */
inline queue_behind()
{
    if
    :: PE_OF(before) != me -> atomic { show_known() }
    :: else
    fi;
accept_queue:
    do
    :: atomic {
        before != 0 ->
        after = next[NODE(before)];
        next[NODE(before)] = name;
        if
        :: after >= CLAIMED -> before = after - CLAIMED; after = 0
        :: after == FREE + before ->
#ifdef READ_FIRST
            known[me] = known[me] | early;
#else
            acquire_from(PE_OF(before));
#endif
            hold();
            before = 0;
            after = 0;
            break
        :: after == 0 -> before = 0
        :: else -> assert(false)
        fi
    }
    :: atomic { before == 0 && flag[NODE(name)] != 0 -> acquire(flag[NODE(name)]); hold(); break }
    od
}

inline lock()
{
    atomic {
        take_retained();
        if
        :: name != 0 -> hold()
        :: else -> take_node()
        fi
    }
    if
    :: holder != _pid ->
        atomic {
            before = lock_word;
            lock_word = name;
            if
            :: !IS_NAME(before) -> acquire((before & (RELEASED - 1))); hold(); before = 0
            :: else
            fi
        }
        if
        :: before != 0 -> queue_behind()
        :: else
        fi
    :: else
    fi
}

/* The name becomes 0 if the lock is not free. */
inline claim()
{
    atomic {
        if
        :: next[NODE(before)] == FREE + before ->
#ifdef NO_CLAIM
            next[NODE(before)] = name;
#else
            next[NODE(before)] = CLAIMED + name;
#endif
            acquire_from(PE_OF(before));
            hold()
        :: else ->
            drop(NODE(name));
            name = 0;
            before = 0
        fi
    }
    if
    :: name != 0 ->
        atomic {
            if
            :: lock_word == before -> lock_word = name
            :: else -> before = 0
            fi
        }
#ifndef NO_CLAIM
        if
        :: before != 0 -> next[NODE(before)] = name
        :: else
        fi;
#endif
        before = 0
    :: else
    fi
}

inline try()
{
    atomic {
        take_retained();
        if
        :: name != 0 -> hold()
        :: else
        fi
    }
    if
    :: name == 0 ->
        atomic { before = lock_word; take_node() }
        if
        :: IS_NAME(before) -> claim()
        :: else ->
            atomic {
                if
                :: lock_word == before -> lock_word = name; acquire((before & (RELEASED - 1))); hold()
                :: else ->
                    drop(NODE(name));
                    name = 0
                fi;
                before = 0
            }
        fi
    :: else
    fi;
    if
    :: name != 0 -> unlock()
    :: else
    fi
}

inline give_back()
{
#ifdef GIVE_BACK_FREE
    atomic {
        name = retained[me];
        if
        :: name != 0 && next[NODE(name)] == FREE + name && lock_word == name ->
            lock_word = RELEASED + me + 1;
            retained[me] = 0;
            state[NODE(name)] = UNUSED
        :: else
        fi;
        name = 0
    }
#else
    atomic { take_retained() }
    if
    :: name != 0 ->
        atomic {
            if
            :: lock_word == name ->
                lock_word = RELEASED + me + 1;
                drop(NODE(name));
                name = 0
            :: else
            fi
        }
    :: else
    fi;
    if
    :: name != 0 ->
        atomic { after = next[NODE(name)]; retain_or_free() }
        pass_on()
    :: else
    fi
#endif
}

proctype Thread(byte me)
{
    byte name, before, after, operations;
#ifdef READ_FIRST
    short early;
#endif
accept:
    do
    :: operations < OPERATIONS ->
        operations++;
        if
        :: lock(); unlock()
        :: try()
        :: give_back()
        fi
    :: atomic { operations == OPERATIONS -> break }
    od
}

init
{
    byte k;
    atomic {
        for (k : 0 .. PES * THREADS - 1) {
            run Thread(k / THREADS)
        }
        k = 0
    }
}
