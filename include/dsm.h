/* SPDX-License-Identifier: BSD-3-Clause */
/* dsm.h - shared memory for the PEs of an OpenSHMEM job, used with plain loads and stores. Link with -lqdsm.
 *
 * What it is: a page-based distributed shared memory with home-based lazy release consistency (HLRC). A pointer from
 * dsm_malloc is valid on every PE. A PE's writes before it releases a lock, signals, or enters a barrier are visible to
 * the PE that then acquires the lock, is woken, or leaves the barrier, and to all PEs that synchronise with that one
 * later. Programs without data races behave as with threads. A loop that reads a plain variable may never end: use a
 * flag.
 *
 * Synchronisation objects are zero-initialised 8-byte values, anywhere in shared memory, in any number; only their
 * address identifies them. The init routines are needed only where an object replaces an older one at the same address.
 *
 * Threads: any thread of a PE may call any routine and access shared memory at any time, but see dsm_migrate;
 * dsm_barrier_all, dsm_all_malloc, dsm_all_free, dsm_migrate, dsm_checkpoint, dsm_restart and dsm_finalize are called
 * by one thread of each PE. The PE's first call of any other routine runs dsm_init, which is collective. Errors: misuse
 * ends the job with a message that names routine, argument and value. System calls with pointers into shared memory:
 * see docs/dsm.md. Times are in nanoseconds, sizes in bytes.
 */
#ifndef QUOIT_DSM_H
#define QUOIT_DSM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* --- Start and end: collective. init calls shmem_init_thread(SHMEM_THREAD_MULTIPLE) if the program has not initialized
 * OpenSHMEM; runs with handlers (see dsm_malloc_with) need that level. finalize waits for all PEs; it finalizes
 * OpenSHMEM too if dsm_init initialized it. A return from main finalizes implicitly. */
void dsm_init(void);
void dsm_finalize(void);
int dsm_my_pe(void);
int dsm_n_pes(void);

/* --- Memory. Any PE, any time. A block lives until any PE calls dsm_free. NULL with errno ENOMEM if the address range
 * of DSM_SPACE is exhausted; memory is allocated where it is first touched. The all forms are collective with equal
 * arguments and return the same pointer on all PEs. */
enum dsm_placement {
    DSM_DEFAULT, /* as DSM_HOME sets it */
    DSM_BLOCK,   /* contiguous parts of the pages, PE 0 first */
    DSM_CYCLIC,  /* pages dealt out to the PEs in turn */
    DSM_ON_PE,   /* all on `pe` */
};
void *dsm_malloc(size_t bytes);
void *dsm_calloc(size_t count, size_t bytes);
void *dsm_aligned_alloc(size_t alignment, size_t bytes); /* alignment: a power of two up to 2 MiB */
void *dsm_malloc_placed(size_t bytes, enum dsm_placement placement, int pe);
/* A block whose pages are kept coherent otherwise than the rest of the run. A protocol with a handler (ASYNC, ARDMAR,
 * DRAW) needs a run with handlers: DSM_PROTOCOL is one of these, or DSM_HANDLER=on. Copies are dropped at an acquire
 * that brings a notice of a write and fetched again when they are touched, or brought up to date at the acquire, by
 * gets, for pages that are used after every acquire. Where DSM_PROTOCOL is direct there are no copies, and protocol
 * and copies have no effect. */
enum dsm_protocol {
    DSM_PROTOCOL_RUN, /* as DSM_PROTOCOL says */
    DSM_PROTOCOL_ASYNC,
    DSM_PROTOCOL_ARDMAR,
    DSM_PROTOCOL_DRAW,
    DSM_PROTOCOL_NEWGENDSM,
};
enum dsm_copies {
    DSM_COPIES_RUN, /* as DSM_COPIES says */
    DSM_COPIES_INVALIDATE,
    DSM_COPIES_UPDATE,
};
/* The smallest aligned unit that two PEs write apart from each other between two synchronisations. Releases between
 * hosts send changed words whole, so values of 4 or 8 bytes travel in fewer and longer pieces than their changed bytes
 * would. Where two PEs change bytes of one word nevertheless, one of the changes may be lost. */
enum dsm_word {
    DSM_WORD_RUN, /* as DSM_WORD says */
    DSM_WORD_1,   /* any byte, as C11's memory model has it */
    DSM_WORD_4,
    DSM_WORD_8,
};
struct dsm_attributes {
    enum dsm_placement placement;
    int pe; /* of DSM_ON_PE */
    enum dsm_protocol protocol;
    enum dsm_copies copies;
    enum dsm_word word;
};
void *dsm_malloc_with(size_t bytes, const struct dsm_attributes *attributes);
void dsm_free(void *ptr);
void *dsm_all_malloc(size_t bytes);
void dsm_all_free(void *ptr);

/* A variable of the program, not of a library, that is shared: DSM_SHARED double sum; all PEs start with PE 0's initial
 * value. It is not a symmetric object of OpenSHMEM, and its address may differ from PE to PE. Before dsm_init it is
 * private. The section dsm_shared_end pads the variables to whole pages. */
#define DSM_SHARED __attribute__((section("dsm_shared")))
__asm__(".pushsection dsm_shared,\"aw\",%progbits\n.balign 4096\n.popsection\n"
        ".pushsection dsm_shared_end,\"awG\",%progbits,dsm_shared_end,comdat\n.balign 4096\n.quad 0\n.popsection\n");

/* --- Pages. home: the PE that is the home of the page at an address; the query itself assigns a home to an untouched
 * page. prefetch fetches pages without a fault for each. migrate is collective with equal arguments: `pe` becomes the
 * home of the range's pages, which no other thread of the job accesses meanwhile. acquire and release of a range serve
 * programs that synchronise by other means: release returns when this PE's writes to the range are at the homes; after
 * acquire, loads return what the homes hold. */
int dsm_home(const void *address);
void dsm_prefetch(const void *address, size_t bytes);
void dsm_migrate(void *address, size_t bytes, int pe);
void dsm_acquire(const void *address, size_t bytes);
void dsm_release(const void *address, size_t bytes);

/* --- Atomics on an aligned word of shared memory: each returns the value before, and is atomic with respect to the
 * others. They order nothing else. Plain loads of the word see the result after the next synchronisation; no plain
 * store may change it meanwhile. compare_swap stores the value if the word is `expected`. */
uint64_t dsm_fetch(const uint64_t *word);
uint64_t dsm_fetch_add(uint64_t *word, uint64_t value);
uint64_t dsm_swap(uint64_t *word, uint64_t value);
uint64_t dsm_compare_swap(uint64_t *word, uint64_t expected, uint64_t value);

/* --- Locks. The try forms return 0 or EBUSY, timedlock 0 or ETIMEDOUT. A timed waiter does not join the lock's queue.
 */
typedef struct {
    uint64_t word;
} dsm_lock_t, dsm_rwlock_t, dsm_cond_t, dsm_sem_t, dsm_flag_t, dsm_once_t, dsm_barrier_t;

void dsm_lock_init(dsm_lock_t *lock);
void dsm_lock(dsm_lock_t *lock);
int dsm_trylock(dsm_lock_t *lock);
int dsm_timedlock(dsm_lock_t *lock, uint64_t timeout_ns);
void dsm_unlock(dsm_lock_t *lock);

void dsm_rwlock_init(dsm_rwlock_t *lock);
void dsm_rdlock(dsm_rwlock_t *lock); /* waits behind waiting writers */
void dsm_wrlock(dsm_rwlock_t *lock);
int dsm_tryrdlock(dsm_rwlock_t *lock); /* EBUSY also where a writer waits */
int dsm_trywrlock(dsm_rwlock_t *lock);
void dsm_rwunlock(dsm_rwlock_t *lock);

/* --- Condition variables: as in POSIX, without spurious wakeups. timedwait returns 0 or ETIMEDOUT, holding the lock.
 */
void dsm_cond_init(dsm_cond_t *cond);
void dsm_cond_wait(dsm_cond_t *cond, dsm_lock_t *lock);
int dsm_cond_timedwait(dsm_cond_t *cond, dsm_lock_t *lock, uint64_t timeout_ns);
void dsm_cond_signal(dsm_cond_t *cond);
void dsm_cond_broadcast(dsm_cond_t *cond);

/* --- Semaphores; flags, whose values only grow; and routines that run once in the job. */
void dsm_sem_init(dsm_sem_t *sem, uint64_t value);
void dsm_sem_wait(dsm_sem_t *sem);
int dsm_sem_trywait(dsm_sem_t *sem);
int dsm_sem_timedwait(dsm_sem_t *sem, uint64_t timeout_ns);
void dsm_sem_post(dsm_sem_t *sem);

void dsm_flag_init(dsm_flag_t *flag);
void dsm_flag_set(dsm_flag_t *flag, uint64_t value);
uint64_t dsm_flag_get(dsm_flag_t *flag);
void dsm_flag_wait(dsm_flag_t *flag, uint64_t least); /* until the value is at least `least` */

void dsm_once(dsm_once_t *once, void (*routine)(void));

/* --- Barriers. barrier_all: all PEs. barrier_wait: any `count` callers, threads or PEs, that name the same object. */
void dsm_barrier_all(void);
void dsm_barrier_init(dsm_barrier_t *barrier);
void dsm_barrier_wait(dsm_barrier_t *barrier, uint64_t count);

/* --- Checkpoints: collective, with the same path on all PEs, in a file system that all reach. checkpoint is a barrier
 * that also writes what changed of shared memory and of objects, to PATH and PATH.*; it returns 0, or an errno value:
 * EBUSY if a lock is held or a thread waits; the checkpoint before stands then. restart, in a new job of the same
 * program: ENOENT if there is none; else shared memory, allocations, DSM_SHARED variables and objects are as they were.
 * The number of PEs may differ. Private memory is the program's to restore; blocks that are allocated first, in the
 * same order as then, have the same addresses. */
int dsm_checkpoint(const char *path);
int dsm_restart(const char *path);

/* --- For fork-style programs, in which one process creates the others (share/quoit/c.m4.qdsm). begin is called first
 * in main: it returns on PE 0 alone; the other PEs stay in it until the end. run executes the routine on the PEs below
 * `count`: on the others with a copy of PE 0's globals between the two addresses, then on PE 0 within this call, which
 * gets its first lock before the others theirs. join waits for all of them; so do the next run and the end of the
 * program, if it did not. In a program that is linked statically the range must not include variables of libqdsm and of
 * the C library, as that from __data_start to _end does: run ends the job. */
void dsm_workers_begin(void);
void dsm_workers_run(void (*routine)(void), int count, void *globals, void *globals_end);
void dsm_workers_join(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
