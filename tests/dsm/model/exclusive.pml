/* SPDX-License-Identifier: BSD-3-Clause */
/* exclusive - a home that does not watch its pages until another PE fetches them: src/dsm/exclusive.h.
 *
 * PE 0 is the home of a page of one word. In each of its intervals it writes the word, looks at the count of marks, tells
 * of the page if it must, and releases the lock. PE 1 fetches the page at any time, which sets the mark first, counts it,
 * and then reads. It then acquires the lock, and drops its copy if a notice says so. What it reads must be at least what the
 * home had written when it released the lock that PE 1 acquired. Stores of the home reach memory when its buffer is
 * written back; a fence waits for that.
 *
 * Variants leave out one step each and must fail: NO_MARK (the home never learns of the fetch), FETCH_FIRST (the mark comes
 * after the fetch), NO_FENCE (the home looks at the count while its store is still in its buffer), COUNT_FIRST (the count
 * comes before the mark, and the home finds nothing), NO_LOG (the home watches the page from then on, but does not tell of
 * what it wrote before). */
#define INTERVALS 3

byte memory;     /* the word */
byte buffered;   /* 0: nothing; else what the home stored last and others do not see yet */
bool mark;
byte mark_count;
byte notices;    /* of the page, by the home */
byte released;   /* how many intervals the home released, and how many notices it had published then */
byte known;

active proctype write_back()
{
end:
    do
    :: atomic { buffered != 0 -> memory = buffered; buffered = 0 }
    od
}

inline store(value)
{
    atomic { if :: buffered != 0 -> memory = buffered :: else fi; buffered = value }
}

inline fence()
{
    atomic { if :: buffered != 0 -> memory = buffered; buffered = 0 :: else fi }
}

active proctype home()
{
    byte i, seen, count;
    bool is_watched;
    for (i : 1 .. INTERVALS) {
        store(i);
#ifndef NO_FENCE
        fence();
#endif
        count = mark_count;
        if
        :: is_watched -> notices++ /* the detector reports the store */
        :: !is_watched && count != seen ->
            seen = count;
            if
            :: mark ->
                is_watched = true;
#ifndef NO_LOG
                notices++
#endif
            :: else
            fi
        :: else
        fi;
        fence(); /* the release of the lock itself */
        atomic { known = notices; released = i }
    }
}

active proctype reader()
{
    byte copy, at, applied;
#ifdef FETCH_FIRST
    copy = memory;
#endif
#ifdef COUNT_FIRST
    mark_count++;
#endif
#ifndef NO_MARK
    mark = true;
#endif
#ifndef COUNT_FIRST
    mark_count++;
#endif
#ifndef FETCH_FIRST
    copy = memory;
#endif
    do
    :: atomic { released > at -> at = released;
        if
        :: known > applied -> applied = known; copy = memory
        :: else
        fi };
        assert(copy >= at);
        if
        :: at == INTERVALS -> break
        :: else
        fi
    od
}
