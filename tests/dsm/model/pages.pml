/* SPDX-License-Identifier: BSD-3-Clause */
/* pages - the versions and notices of shared pages, in every order of events: docs/design/dsm.md.
 *
 * PE 0 writes one page of two words in two intervals and releases lock A after each. PE 1 acquires A, writes the second
 * word of the page in an interval of its own, and releases lock B. PE 2 has an old copy, acquires B and reads. The home is
 * a fourth PE: memory at the end of one channel for each writer, which delays what was put but keeps it in order. PE 2
 * must read what PE 0 had written when PE 1 acquired, and what PE 1 wrote.
 *
 * Variants leave out one step each and must fail: NO_NOTICE, NO_VERSION, NO_FENCE (a version may pass its data),
 * PAGE_FIRST (the page is read before the version), NO_CAUSALITY (PE 1 hands on its own notices only), ONE_VERSION (one
 * word a page for all writers). */
#define INTERVALS 2

mtype = { WORD, VERSION };
chan to_home[2] = [4] of { mtype, byte };
chan late[2] = [4] of { mtype, byte }; /* NO_FENCE: data that a version may pass */

byte home_word[2];
byte home_version[2];
byte log[2];   /* notices that a PE has published */
byte lock_a;   /* how often PE 0 released it */
byte known_a;  /* what its releaser knew of log[0] */
bool lock_b;
byte known_b[2];
byte seen_by_1;

proctype network(byte writer)
{
    mtype kind;
    byte value;
end:
    do
    :: to_home[writer]?kind, value ->
        if
        :: kind == WORD -> home_word[writer] = value
        :: else ->
#ifdef ONE_VERSION
            home_version[0] = value; home_version[1] = value
#else
            home_version[writer] = value
#endif
        fi
    :: late[writer]?kind, value -> home_word[writer] = value
    od
}

inline release(writer, value)
{
#ifdef NO_FENCE
    late[writer]!WORD, value;
#else
    to_home[writer]!WORD, value;
#endif
    to_home[writer]!VERSION, value;
#ifndef NO_NOTICE
    log[writer] = value;
#endif
}

proctype pe0()
{
    byte i;
    for (i : 1 .. INTERVALS) {
        release(0, i);
        atomic { known_a = log[0]; lock_a = i }
    }
}

proctype pe1()
{
    byte known;
    atomic { lock_a > 0; known = known_a; seen_by_1 = lock_a }
    release(1, 1);
    atomic {
#ifndef NO_CAUSALITY
        known_b[0] = known;
#endif
        known_b[1] = log[1];
        lock_b = true
    }
}

inline read_page()
{
    word[0] = home_word[0];
    word[1] = home_word[1]
}

proctype pe2()
{
    byte word[2], version[2], need[2];
    atomic { lock_b; need[0] = known_b[0]; need[1] = known_b[1] }
    if
    :: need[0] == 0 && need[1] == 0 -> skip /* no notice: the old copy stays */
    :: else ->
        do
        ::
#ifdef PAGE_FIRST
            read_page();
#endif
            version[0] = home_version[0];
            version[1] = home_version[1];
#ifndef PAGE_FIRST
            read_page();
#endif
            if
#ifdef NO_VERSION
            :: true -> break
#else
            :: version[0] >= need[0] && version[1] >= need[1] -> break
            :: else -> skip
#endif
            fi
        od
    fi;
    assert(word[0] >= seen_by_1);
    assert(word[1] == 1)
}

init {
    atomic {
        run network(0); run network(1);
        run pe0(); run pe1(); run pe2()
    }
}
