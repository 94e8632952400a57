/* SPDX-License-Identifier: BSD-3-Clause */
/* profile.h - where the time of a PE went, in its host's memory: what `oshrun --profile` records.
 *
 * A call is an API routine from entry to return; of calls inside one another the outermost counts. Counts and bytes are
 * exact, by site: a routine and the place that called it. So are counts and bytes to each peer. Waits and collectives
 * are timed each. Of other calls the clock is read for some, at random, as soon as a site has so many that reading it
 * would cost more than a hundredth of the time; the others count as the one that was timed after them
 * (docs/design/profile.md). What grows with the run is kept at a fixed size: of the collectives of a group every
 * meeting_step-th, a power of two that doubles when there is no room, and of the run a histogram of bins whose width
 * doubles.
 *
 * Times are those of quoit_clock_now_ns(). A PE that is killed leaves what its finished calls were.
 *
 * Threads: any of the PE may write, one at a time by `lock`; sums of calls that are not timed are added to without it,
 * atomically if there are several threads. Others read after the PE has ended. Errors: none; what finds no room is
 * counted.
 */
#ifndef QUOIT_TRACE_PROFILE_H
#define QUOIT_TRACE_PROFILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/prng.h"

#define QUOIT_PROFILE_SITES        1024u /* of which three quarters are used; a power of two */
#define QUOIT_PROFILE_OBJECTS      64u
#define QUOIT_PROFILE_GROUPS       64u
#define QUOIT_PROFILE_MEETINGS     2048u
#define QUOIT_PROFILE_BINS         256u
#define QUOIT_PROFILE_BIN_NS       100000u /* at first */
#define QUOIT_PROFILE_CALL_BYTES   48
#define QUOIT_PROFILE_OBJECT_BYTES 256
#define QUOIT_PROFILE_NO_SITE      UINT32_MAX

enum quoit_profile_kind { QUOIT_PROFILE_PUT, QUOIT_PROFILE_GET, QUOIT_PROFILE_AMO, QUOIT_PROFILE_KIND_COUNT };

/* A routine and the place that called it. */
struct quoit_profile_site {
    uint64_t call_id; /* address of the routine's name in the PE, written last; 0: free */
    uint64_t from;    /* return address in the PE, or a line of a file */
    uint64_t count;
    uint64_t bytes;
    uint64_t next_count;    /* after so many calls the next one is timed */
    uint64_t covered_count; /* calls whose time is in `ns` */
    uint64_t timed_count;   /* calls that were timed */
    uint64_t timed_ns;      /* the end of the last one that was timed as due */
    uint64_t ns;            /* in the routine, `wait_ns` of it waiting */
    uint64_t wait_ns;
    uint64_t most_ns;  /* of the longest call that was timed */
    uint64_t address;  /* `from` in its object's file; 0 of a line */
    uint32_t interval; /* one of so many calls is timed */
    uint32_t window;   /* the last one in which it was timed */
    uint32_t object;   /* index; 0: the program, or unknown if address is 0 or this is a line */
    uint32_t unused;
    char call[QUOIT_PROFILE_CALL_BYTES];
};
_Static_assert(sizeof(struct quoit_profile_site) == 160, "20 words");

/* What the PE asked to be moved to, from and at another PE. */
struct quoit_profile_peer {
    uint64_t count[QUOIT_PROFILE_KIND_COUNT];
    uint64_t bytes[QUOIT_PROFILE_KIND_COUNT];
};

/* The members of a team or active set: PEs start, start + stride, ... */
struct quoit_profile_group {
    uint32_t start;
    uint32_t stride;
    uint32_t size;
    uint32_t unused;
    uint64_t count; /* of its collectives so far, the same on all members */
};

struct quoit_profile_meeting {
    uint64_t number; /* of the group's collectives, from 0 */
    uint64_t begin_ns;
    uint64_t end_ns;
    uint32_t group;
    uint32_t site;
};

struct quoit_profile_bin {
    uint64_t call_ns;
    uint64_t wait_ns; /* of that */
};

struct quoit_profile {
    _Atomic uint32_t lock;
    uint32_t site_count;
    uint32_t object_count; /* with the program, which is 0 and has no name here */
    uint32_t group_count;
    uint32_t meeting_count;
    uint32_t meeting_step;
    uint64_t begin_ns; /* the end of the first shmem_init; 0: there was none */
    uint64_t end_ns;   /* of the last call */
    uint64_t bin_ns;   /* width */
    uint64_t heap_bytes_most;
    uint64_t unplaced_count; /* calls for which no site was free */
    uint64_t unplaced_ns;
    uint64_t clock_ns;         /* what reading the clock takes; 0 in virtual time, where every call is timed */
    uint64_t window_begin_ns;  /* of the time in which sites are counted, */
    uint32_t window;           /* its number, */
    uint32_t active_count;     /* how many sites were timed in it, */
    uint32_t active_count_old; /* and in the one before */
    uint32_t has_threads;
    struct quoit_prng prng;
    struct quoit_profile_bin bins[QUOIT_PROFILE_BINS]; /* from begin_ns on */
    char objects[QUOIT_PROFILE_OBJECTS][QUOIT_PROFILE_OBJECT_BYTES];
    struct quoit_profile_group groups[QUOIT_PROFILE_GROUPS];
    struct quoit_profile_meeting meetings[QUOIT_PROFILE_MEETINGS];
    struct quoit_profile_site sites[QUOIT_PROFILE_SITES];
    struct quoit_profile_peer peers[]; /* of each PE of the job */
};

/* A line of a source file in place of a return address, which is below 2^47: the file's object and the line. */
#define QUOIT_PROFILE_LINE (1ull << 63)
static inline bool quoit_profile_is_line(uint64_t from)
{
    return from >> 63;
}
static inline uint32_t quoit_profile_file_of(uint64_t from)
{
    return (uint32_t)((from & ~QUOIT_PROFILE_LINE) >> 32);
}

static inline uint64_t quoit_profile_bytes(uint32_t pe_count)
{
    return sizeof(struct quoit_profile) + pe_count * sizeof(struct quoit_profile_peer);
}

/* After each shmem_init, the first of which counts. has_threads: several threads may call. */
void quoit_profile_begin(struct quoit_profile *profile, bool has_threads);

static inline uint32_t quoit_profile_hash(uint64_t call_id, uint64_t from)
{
    return (uint32_t)(((call_id ^ from << 20) * 0x9e3779b97f4a7c15u) >> 40) & (QUOIT_PROFILE_SITES - 1);
}

struct quoit_profile_thread {
    uint32_t depth; /* of routines inside one another that the thread is in */
    uint64_t line;  /* instead of return addresses, a line of a file; 0: there is none */
};
extern _Thread_local struct quoit_profile_thread quoit_profile_thread __attribute__((tls_model("initial-exec")));

/* From where the thread's next call counts. */
static inline uint64_t quoit_profile_from(const void *return_address)
{
    return quoit_profile_thread.line == 0 ? (uintptr_t)return_address : quoit_profile_thread.line;
}

/* NULL: there is none yet. */
static inline struct quoit_profile_site *quoit_profile_find(struct quoit_profile *profile, const char *call,
                                                            uint64_t from)
{
    uint64_t call_id = (uintptr_t)call, found;
    uint32_t at = quoit_profile_hash(call_id, from);
    for (;; at = (at + 1) & (QUOIT_PROFILE_SITES - 1)) {
        struct quoit_profile_site *site = &profile->sites[at];
        found = __atomic_load_n(&site->call_id, __ATOMIC_ACQUIRE); /* pairs with release where it is placed */
        if (__builtin_expect(found == call_id && site->from == from, 1))
            return site;
        if (found == 0)
            return NULL;
    }
}

/* Whether the next call of the site is to be timed. */
static inline bool quoit_profile_is_due(const struct quoit_profile_site *site)
{
    return __atomic_load_n(&site->count, __ATOMIC_RELAXED) >= __atomic_load_n(&site->next_count, __ATOMIC_RELAXED);
}

static inline void quoit_profile_add(const struct quoit_profile *profile, uint64_t *sum, uint64_t value)
{
    if (__builtin_expect(profile->has_threads != 0, 0))
        __atomic_fetch_add(sum, value, __ATOMIC_RELAXED);
    else
        *sum += value;
}

/* A call has returned; the PE is below pe_count. */
static inline void quoit_profile_count(struct quoit_profile *profile, struct quoit_profile_site *site, uint64_t bytes)
{
    quoit_profile_add(profile, &site->count, 1);
    quoit_profile_add(profile, &site->bytes, bytes);
}
static inline void quoit_profile_count_peer(struct quoit_profile *profile, enum quoit_profile_kind kind, uint32_t pe,
                                            uint64_t bytes)
{
    quoit_profile_add(profile, &profile->peers[pe].count[kind], 1);
    quoit_profile_add(profile, &profile->peers[pe].bytes[kind], bytes);
}
/* It was counted, and timed. is_due: as one of many, not because it is another than they. */
void quoit_profile_timed(struct quoit_profile *profile, struct quoit_profile_site *site, uint64_t begin_ns,
                         uint64_t end_ns, bool is_due);

/* The calling thread enters a routine (NULL: not counted). False: it is in one already, and nothing is recorded. */
bool quoit_profile_enter(struct quoit_profile *profile, const char *call, const void *from, uint64_t bytes);
/* Of the call that quoit_profile_enter() began: to whom it goes, or its bytes and who takes part (size 0: nobody). */
void quoit_profile_note_peer(enum quoit_profile_kind kind, uint32_t pe);
void quoit_profile_note_group(uint32_t start, uint32_t stride, uint32_t size, uint64_t bytes);
/* A wait, which belongs to the call that the thread is in. */
void quoit_profile_wait(struct quoit_profile *profile, uint64_t begin_ns, uint64_t end_ns);
/* The thread leaves the routine; is_outermost: quoit_profile_enter() was true. `place` says where a new site is:
 * object and address. */
void quoit_profile_leave(struct quoit_profile *profile, uint32_t pe_count, bool is_outermost,
                         void (*place)(struct quoit_profile *profile, struct quoit_profile_site *site));
/* The index of an object, to be called by `place`; of a source file, at any time. QUOIT_PROFILE_OBJECTS: no room. */
uint32_t quoit_profile_object(struct quoit_profile *profile, const char *name);
uint32_t quoit_profile_file(struct quoit_profile *profile, const char *path);
/* The calling thread's routines are called from this line from now on; 0: from their return addresses. */
void quoit_profile_set_line(uint32_t file, uint32_t line);

/* The heap reaches so far. */
void quoit_profile_heap(struct quoit_profile *profile, uint64_t bytes);

/* For who reads from outside, before it does: from here on each count is within its bounds, each index within its
 * count, and each text ends, whatever the PE has written. Calls after the last one that was timed have their time. */
void quoit_profile_mend(struct quoit_profile *profile);

#endif
