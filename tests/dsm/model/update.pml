/* SPDX-License-Identifier: BSD-3-Clause */
/* update - copies that an acquire brings up to date in place, in every order of events: bring_up_to_date() of
 * src/dsm/coherence.c.
 *
 * PE 0 writes the first word of a page in three intervals and releases a lock after each. PE 1 has a copy and a twin of it
 * and never gives them up: at an acquire it sends what it has written itself, waits for the versions, reads the page from
 * its home and stores what differs from the twin into copy and twin. A second thread of PE 1 stores the second word of
 * the copy at any time, under no lock. The home is a third PE: memory at the end of one channel for each writer.
 *
 * After an acquire the copy must have what PE 0 had written when it released, and what the thread stored; at the end the
 * home must have both.
 *
 * Variants leave out one step each and must fail: NO_UPDATE (a notice changes nothing), NO_VERSION, PAGE_FIRST (the page is
 * read before the version), NO_OWN_VERSION (PE 1 does not wait for its own diff, and takes the home's older word for
 * another PE's write), WHOLE_PAGE (the page replaces copy and twin), KEEP_TWIN (the twin stays, so that the next diff sends
 * PE 0's word back). */
#define INTERVALS 3

mtype = { WORD, VERSION };
chan from_0 = [4] of { mtype, byte, byte };
chan from_1 = [4] of { mtype, byte, byte };

byte home[2];
byte version[2];
byte notices;    /* of PE 0's log, published */
byte released;   /* how often PE 0 released the lock */
byte known;      /* notices at that time */
byte copy[2];
bool has_stored;

proctype network(byte writer; chan wire)
{
    mtype kind;
    byte at, value;
end:
    do
    :: wire?kind, at, value ->
        if
        :: kind == WORD -> home[at] = value
        :: else -> version[writer] = value
        fi
    od
}

proctype pe0()
{
    byte i;
    for (i : 1 .. INTERVALS) {
        from_0!WORD, 0, i;
        from_0!VERSION, 0, i;
        notices = i;
        atomic { known = notices; released = i }
    }
}

proctype thread()
{
    copy[1] = 1;
    has_stored = true
}

/* Each word is read once, so that what is sent is what the twin has. */
inline send_word(at)
{
    value = copy[at];
    if
    :: value != twin[at] -> twin[at] = value; from_1!WORD, at, value; is_changed = true
    :: else
    fi
}

inline release()
{
    is_changed = false;
    send_word(0);
    send_word(1);
    if
    :: is_changed -> own++; from_1!VERSION, 0, own
    :: else
    fi
}

inline read_page()
{
    page[0] = home[0];
    page[1] = home[1]
}

inline store_word(at)
{
    if
#ifdef WHOLE_PAGE
    :: true -> copy[at] = page[at]; twin[at] = page[at]
#else
    :: page[at] != twin[at] -> copy[at] = page[at];
#ifndef KEEP_TWIN
        twin[at] = page[at]
#endif
    :: else
#endif
    fi
}

inline update()
{
    do
    ::
#ifdef PAGE_FIRST
        read_page();
#endif
        seen[0] = version[0];
        seen[1] = version[1];
#ifndef PAGE_FIRST
        read_page();
#endif
        if
#ifdef NO_VERSION
        :: true -> break
#endif
#ifdef NO_OWN_VERSION
        :: seen[0] >= need -> break
#else
        :: seen[0] >= need && seen[1] >= own -> break
#endif
        :: else -> skip
        fi
    od;
    store_word(0);
    store_word(1)
}

proctype pe1()
{
    byte twin[2], page[2], seen[2], value, own, need, at;
    bool is_changed, had_stored;
    do
    :: atomic { released > at -> at = released; need = known; had_stored = has_stored };
        release();
#ifndef NO_UPDATE
        update();
#endif
        assert(copy[0] >= at);
        assert(!had_stored || copy[1] == 1);
        if
        :: at == INTERVALS -> break
        :: else
        fi
    od;
    has_stored;
    release();
    version[0] == INTERVALS && version[1] == own;
    assert(home[0] == INTERVALS);
    assert(home[1] == 1)
}

init {
    atomic {
        run network(0, from_0); run network(1, from_1);
        run pe0(); run thread(); run pe1()
    }
}
