/* SPDX-License-Identifier: BSD-3-Clause */
/* profile.h - where the time of a PE went, in its host's memory: what `oshrun --profile` records.
 *
 * A call is an API routine from entry to return; of calls inside one another the outermost counts. Counts, bytes and
 * times of calls are exact, by site: a routine and the place that called it. So are counts and bytes to each peer. What
 * grows with the run is kept at a fixed size: of the collectives of a group every meeting_step-th, a power of two that
 * doubles when there is no room, and of the run a histogram of bins whose width doubles.
 *
 * Times are those of quoit_clock_now_ns(). A PE that is killed leaves what its finished calls were.
 *
 * Threads: any of the PE may write, one at a time by `lock`; others read after the PE has ended. Errors: none; what
 * finds no room is counted.
 */
#ifndef QUOIT_TRACE_PROFILE_H
#define QUOIT_TRACE_PROFILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    uint64_t call_id; /* address of the routine's name in the PE; 0: free */
    uint64_t from;    /* return address in the PE, or a line of a file */
    uint64_t address; /* that in its object's file; 0 of a line */
    uint64_t count;
    uint64_t bytes;
    uint64_t ns; /* in the routine, `wait_ns` of it waiting */
    uint64_t wait_ns;
    uint64_t most_ns; /* of the longest call */
    uint32_t object;  /* index; 0: the program, or unknown if address is 0 or this is a line */
    uint32_t unused;
    char call[QUOIT_PROFILE_CALL_BYTES];
};
_Static_assert(sizeof(struct quoit_profile_site) == 120, "15 words");

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

/* After each shmem_init; the first one counts. */
void quoit_profile_begin(struct quoit_profile *profile, uint64_t now_ns);

/* The calling thread enters a routine (NULL: not counted). False: it is in one already, and nothing is recorded. */
bool quoit_profile_enter(const char *call, const void *from, uint64_t bytes);
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
 * count, and each text ends, whatever the PE has written. */
void quoit_profile_mend(struct quoit_profile *profile);

#endif
