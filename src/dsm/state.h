/* SPDX-License-Identifier: BSD-3-Clause */
/* state.h - all that libqdsm knows on one PE.
 *
 * Two views of one memory: `frames` is a symmetric block, always accessible, through which the library and other PEs
 * work; the program sees the same pages in `space`, at the same addresses on every PE, under the access that the page's
 * state allows. Space is handed out in chunks of 256 KiB: a chunk that is touched gets a slot of `frames`, the same on
 * all PEs, so "page" below is an index into frames, and any PE can be the home of any page without allocating.
 *
 * Positions: the log of PE w is endless, one entry a notice. known[w] is how much of it this PE has applied; known[me]
 * is how much it has published. A page's version, at its home, is for each writer the position after its last notice
 * whose diff has arrived.
 *
 * Threads: `lock` guards every field that is not symmetric, save the options, which never change, and the objects of
 * sync.h, which have a lock of their own. The service thread takes no lock at all. */
#ifndef QUOIT_DSM_STATE_H
#define QUOIT_DSM_STATE_H

#include <pthread.h>
#include <shmem.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/prng.h"
#include "dsm/habit.h"
#include "dsm/options.h"
#include "dsm/page.h"
#include "dsm/recent.h"

#define QUOIT_DSM_CHUNK_BYTES_LEAST (256ull << 10)
#define QUOIT_DSM_PES_MAX           QUOIT_DSM_RECENT_WRITERS
#define QUOIT_DSM_NO_HOME           (-1)
#define QUOIT_DSM_MARK_PAGES        64 /* pages of one word of marks */
#define QUOIT_DSM_CALL_WORDS        8  /* of 64 system calls */

/* What time is spent on; see stats.h. */
enum quoit_dsm_span {
    QUOIT_DSM_COMPUTE,
    QUOIT_DSM_FETCHING,
    QUOIT_DSM_DIFFING,
    QUOIT_DSM_LOCKING,
    QUOIT_DSM_MEETING,
    QUOIT_DSM_SPAN_COUNT
};

#define QUOIT_DSM_COUNTS(X)                                                                                            \
    X(read_faults)                                                                                                     \
    X(write_faults)                                                                                                    \
    X(chunk_faults)                                                                                                    \
    X(fetched_pages)                                                                                                   \
    X(prefetched_pages)                                                                                                \
    X(updated_pages)                                                                                                   \
    X(version_retries)                                                                                                 \
    X(lost_swaps)                                                                                                      \
    X(exclusive_ends)                                                                                                  \
    X(releases)                                                                                                        \
    X(scans)                                                                                                           \
    X(locks)                                                                                                           \
    X(locks_retaken)                                                                                                   \
    X(locks_waited)                                                                                                    \
    X(locks_handed)                                                                                                    \
    X(known_reads)                                                                                                     \
    X(log_reads)                                                                                                       \
    X(forwarded)                                                                                                       \
    X(diff_pages)                                                                                                      \
    X(diff_runs)                                                                                                       \
    X(diff_bytes)                                                                                                      \
    X(notices_sent)                                                                                                    \
    X(notices_seen)                                                                                                    \
    X(invalidations)                                                                                                   \
    X(useless_invalidations)                                                                                           \
    X(false_sharing)                                                                                                   \
    X(migrations)                                                                                                      \
    X(log_overruns)                                                                                                    \
    X(served)                                                                                                          \
    X(checkpoint_pages)                                                                                                \
    X(races)

struct quoit_dsm_stats {
    uint64_t span_ns[QUOIT_DSM_SPAN_COUNT];
    uint64_t service_ns;
#define X(name) uint64_t name;
    QUOIT_DSM_COUNTS(X)
#undef X
};

/* What happened to one page on this PE. */
#define QUOIT_DSM_PAGE_COUNTS(X)                                                                                       \
    X(read_faults)                                                                                                     \
    X(write_faults)                                                                                                    \
    X(fetches)                                                                                                         \
    X(diffs)                                                                                                           \
    X(diff_bytes)                                                                                                      \
    X(invalidations)                                                                                                   \
    X(useless_invalidations)                                                                                           \
    X(false_sharing)

struct quoit_dsm_page_stats {
#define X(name) uint32_t name;
    QUOIT_DSM_PAGE_COUNTS(X)
#undef X
};

/* In how many epochs in a row, of those that wrote a page at all, one PE was the only one. */
struct quoit_dsm_streak {
    uint32_t age;
    int16_t writer; /* PE + 1 */
    uint16_t count;
};

/* What this PE reaches of another by loads and stores; all NULL if nothing. */
struct quoit_dsm_peer {
    char *masters;
    uint64_t *version;
    uint64_t *log;
    uint64_t *known;
};

/* Private memory of the fields that have an entry a page, a slot or a chunk. */
#define QUOIT_DSM_TABLE_ROOM 32
struct quoit_dsm_table {
    void *start;
    size_t bytes;
};

struct quoit_dsm_detector;
struct quoit_dsm_service;
struct quoit_dsm_syncs;
struct quoit_dsm_checkpoint;
struct quoit_dsm_races;

struct quoit_dsm {
    struct quoit_dsm_options options;
    int me, pe_count;
    enum quoit_dsm_protocol protocol;
    bool is_direct;

    uint32_t page_shift, chunk_shift;
    uint64_t chunk_bytes, page_bytes, page_count, chunk_pages, slot_count, chunk_count;
    char *space;
    uint64_t space_bytes;
    uint64_t heap_bytes; /* of space, for allocations; behind them the program's shared variables, if it has any */
    char *globals;       /* where the program sees those */
    uint64_t globals_bytes;
    char *globals_held; /* their values while they are nowhere else */

    /* Symmetric. Others read log, known and recent; they write frames, version and seen, and compare-and-swap homes and
     * chunks. */
    char *frames;
    char *masters;     /* where homes keep their pages: frames; with DSM_RACES a block of its own */
    uint64_t *version; /* [page][writer] */
    uint64_t *homes;   /* [page]: at the page's directory PE; see quoit_dsm_home_word */
    uint64_t *marks;   /* [page / 64], at the home: a bit for each page that another PE has fetched; see exclusive.h */
    uint64_t *chunks;  /* [chunk / PEs]: slot + 1, at PE chunk % PEs; 0: not touched yet */
    uint64_t *log;
    uint64_t *known;                /* [writer] */
    struct quoit_dsm_recent recent; /* behind known, so that one get reads both */
    uint64_t *seen;                 /* [PE][writer] of known of each PE, as it was when that PE last wrote it here */
    uint64_t *heads;                /* [2][PE]: positions that the barrier hands round, by the parity of the barrier */
    uint64_t *words;                /* a few words: see enum quoit_dsm_word */
    struct quoit_dsm_peer *peers;
    shmem_ctx_t gets; /* of get_begin, if has_gets; OpenSHMEM 1.4 has no value for none */
    bool has_gets;

    struct quoit_dsm_table tables[QUOIT_DSM_TABLE_ROOM];
    uint32_t table_count;

    pthread_mutex_t lock;
    const struct quoit_dsm_detector *detector;
    int userfault_fd, pagemap_fd;
    int32_t *slot_of_chunk; /* slot + 1; 0: not mapped here */
    uint32_t *mapped;       /* chunks that the program's view has, in order */
    uint64_t mapped_count;
    uint32_t *chunk_of_slot;
    uint8_t *is_taken;   /* [page] this PE's memory of it was taken; see quoit_dsm_take. A handler sets it too */
    uint8_t *has_rows;   /* [slot] likewise that of its versions */
    bool *has_room;      /* [page] likewise that of its twin */
    uint8_t *states;     /* [page] enum quoit_dsm_state; changed by quoit_dsm_page_set */
    uint32_t *open_in;   /* [slot] pages that are open and watched */
    uint8_t *idle_scans; /* [slot] how many scans in a row found no write, or more; of the async detector, see there */
    uint8_t *apart_for;  /* [slot] how many more releases scan it without its pages in exclusive mode; see there */
    uint32_t *exclusive_in; /* [slot] pages in exclusive mode */
    uint64_t *marked;       /* [page / 64] marks that this PE has set at homes */
    uint64_t marks_seen;    /* the count of marks at the last review */
    bool *has_twin;         /* [page] */
    bool *was_used; /* [page] since the copy was fetched an access faulted there, or behind the pages it came with */
    struct quoit_dsm_habit *habits; /* [page] */
    uint16_t *known_homes;          /* [page] last known home + 1; 0: none */
    uint8_t *kind_of;               /* [page] learned with the home; see quoit_dsm_kind */
    uint32_t *stale;                /* pages to bring up to date before the acquire ends */
    bool *is_stale;                 /* [page] */
    uint64_t stale_count;
    char *twins;       /* [page] */
    uint64_t *needs;   /* [page][writer] */
    uint32_t *need_of; /* [page] the epoch that its needs belong to */
    int16_t *writers;  /* [page] of this epoch: PE + 1, -1: several; NULL where homes do not migrate, see home.h */
    uint32_t *written; /* pages whose writers is not 0 */
    uint64_t written_count;
    struct quoit_dsm_streak *streaks; /* [page] the same on all PEs */
    uint32_t streaks_age;             /* older ones are void */
    bool has_doubt;                   /* writers may be incomplete; published at the next barrier */
    uint64_t *heads_before;           /* [PE] of the last barrier */
    uint32_t *dirty;                  /* pages that the detector reported since the last release */
    uint64_t dirty_count;
    uint32_t *extra; /* pages changed by dsm_fetch_add since the last release */
    uint64_t extra_count, extra_room;
    uint32_t epoch;
    uint32_t barrier_count;
    uint64_t applied_count; /* positions of other PEs' logs applied so far */
    uint64_t *shown;        /* [PE] applied_count when this PE last wrote its row of seen there */
    uint64_t settled;       /* position of the own log up to which all diffs are known to have arrived */
    uint64_t opened_page; /* first of the pages that the last fault opened; a program that goes on will fault behind */
    uint64_t opened_count;
    uint32_t window;       /* pages that it may open */
    uint32_t acquires;     /* so far, of which notices were applied */
    uint64_t arrived_page; /* came along with the answer of its directory under this lock; UINT64_MAX: none */

    _Atomic(char *) spare; /* private memory of calls.c, while no call has it; that and the next change without lock */
    _Atomic uint64_t failed_calls[QUOIT_DSM_CALL_WORDS]; /* that were reported, a bit each */

    struct quoit_dsm_service *service;
    struct quoit_dsm_syncs *syncs;
    struct quoit_dsm_races *races;           /* NULL: not asked for */
    struct quoit_dsm_checkpoint *checkpoint; /* NULL before the first */
    struct quoit_dsm_stats stats;
    struct quoit_dsm_page_stats *page_stats; /* [page] */
    struct quoit_prng prng;
    uint64_t started_ns;
    uint64_t creations; /* calls of dsm_workers_run so far */
    uint64_t meetings;  /* barriers that this PE entered since the last */
    bool is_held;       /* before the first lock of a creation: see workers.c */
    bool is_running;    /* on PE 0: a creation that was not joined */
};

enum quoit_dsm_word {
    QUOIT_DSM_NEXT_SLOT,
    QUOIT_DSM_AGREE,
    QUOIT_DSM_NEXT_COMMON,
    QUOIT_DSM_MARK_COUNT,   /* how often marks of this PE were set */
    QUOIT_DSM_CREATE_WORDS, /* four: struct creation */
    QUOIT_DSM_GO = QUOIT_DSM_CREATE_WORDS + 4,
    QUOIT_DSM_WORD_COUNT
};

static inline uint64_t quoit_dsm_page_of_slot(const struct quoit_dsm *dsm, int32_t slot)
{
    return (uint64_t)slot * dsm->chunk_pages;
}

/* Shared memory as offsets, the same on all PEs: of an address, UINT64_MAX if it is not shared; and back. */
static inline uint64_t quoit_dsm_offset_of(const struct quoit_dsm *dsm, const void *address)
{
    uint64_t offset = (uintptr_t)address - (uintptr_t)dsm->space;
    if (__builtin_expect(offset < dsm->heap_bytes, 1))
        return offset;
    offset = (uintptr_t)address - (uintptr_t)dsm->globals;
    return offset < dsm->globals_bytes ? dsm->heap_bytes + offset : UINT64_MAX;
}

static inline char *quoit_dsm_address_of(const struct quoit_dsm *dsm, uint64_t offset)
{
    return offset < dsm->heap_bytes ? dsm->space + offset : dsm->globals + (offset - dsm->heap_bytes);
}

/* What of a chunk is mapped: all of it, but for the last of the variables. */
static inline uint64_t quoit_dsm_chunk_used(const struct quoit_dsm *dsm, uint64_t chunk)
{
    uint64_t end = dsm->heap_bytes + dsm->globals_bytes, start = chunk << dsm->chunk_shift;
    return end - start < dsm->chunk_bytes ? end - start : dsm->chunk_bytes;
}

/* The home of a page as far as this PE knows it, or QUOIT_DSM_NO_HOME. */
static inline int quoit_dsm_home_known(const struct quoit_dsm *dsm, uint64_t page)
{
    return dsm->known_homes[page] - 1;
}

static inline void quoit_dsm_home_set(struct quoit_dsm *dsm, uint64_t page, int home)
{
    dsm->known_homes[page] = (uint16_t)(home + 1);
}

static inline void quoit_dsm_page_set(struct quoit_dsm *dsm, uint64_t page, enum quoit_dsm_state state)
{
    uint64_t slot = page / dsm->chunk_pages;
    enum quoit_dsm_state before = (enum quoit_dsm_state)dsm->states[page];
    dsm->open_in[slot] -= before == QUOIT_DSM_CLEAN || before == QUOIT_DSM_DIRTY;
    dsm->open_in[slot] += state == QUOIT_DSM_CLEAN || state == QUOIT_DSM_DIRTY;
    dsm->exclusive_in[slot] -= before == QUOIT_DSM_EXCLUSIVE;
    dsm->exclusive_in[slot] += state == QUOIT_DSM_EXCLUSIVE;
    dsm->states[page] = (uint8_t)state;
}

/* Where the program sees a page. */
static inline char *quoit_dsm_page_address(const struct quoit_dsm *dsm, uint64_t page)
{
    uint64_t chunk = dsm->chunk_of_slot[page / dsm->chunk_pages];
    return quoit_dsm_address_of(dsm, chunk << dsm->chunk_shift) + (page % dsm->chunk_pages << dsm->page_shift);
}

static inline char *quoit_dsm_frame(const struct quoit_dsm *dsm, uint64_t page)
{
    return dsm->frames + (page << dsm->page_shift);
}

/* The page at its home: a symmetric address. */
static inline char *quoit_dsm_master(const struct quoit_dsm *dsm, uint64_t page)
{
    return dsm->masters + (page << dsm->page_shift);
}

static inline char *quoit_dsm_twin(const struct quoit_dsm *dsm, uint64_t page)
{
    return dsm->twins + (page << dsm->page_shift);
}

/* The one piece of process state: the API has no handle, and a fault handler no argument. NULL outside init..finalize.
 */
extern struct quoit_dsm *quoit_dsm;

/* Programs count the processes that they create under a lock, and number 0 belongs to the creator: the first lock of
 * the others waits for the first unlock of PE 0. hold: before a lock. go: after an unlock, and before a wait. meet:
 * before a barrier; PE 0 lets those lock that have to come there first. */
void quoit_dsm_workers_hold(struct quoit_dsm *dsm);
void quoit_dsm_workers_go(struct quoit_dsm *dsm);
void quoit_dsm_workers_meet(struct quoit_dsm *dsm);

/* checkpoint.c: what is known of the files that were written. */
void quoit_dsm_checkpoint_forget(struct quoit_dsm *dsm);

/* The running library, started if it is not yet; for every routine of dsm.h. */
struct quoit_dsm *quoit_dsm_running(const char *call);

/* The user's mistake, or a limit: says it with the PE and ends the job. */
__attribute__((noreturn, format(printf, 1, 2))) void quoit_dsm_wrong(const char *format, ...);

#endif
