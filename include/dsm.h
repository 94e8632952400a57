/* SPDX-License-Identifier: BSD-3-Clause */
/* dsm.h - shared memory for the PEs of an OpenSHMEM job, used with plain loads and stores. Link with -lqdsm.
 *
 * What it is: a page-based distributed shared memory with home-based lazy release consistency. A pointer from
 * dsm_malloc is good on every PE. What a PE wrote before it released a lock, signalled, or entered a barrier is seen by
 * whoever acquired that lock, was woken, or left that barrier afterwards, and by all who then synchronise with that
 * one. Programs without data races behave as with threads; a spin on a plain variable may never end: use a flag.
 *
 * Synchronisation objects are 8-byte values, zero at first, anywhere in shared memory, any number of them; only their
 * address counts. init routines are needed only where an object takes the place of an older one.
 *
 * Threads: any thread of a PE may call any routine, and touch shared memory, at any time; dsm_barrier_all,
 * dsm_all_malloc, dsm_all_free, dsm_finalize: one thread of each PE. dsm_init comes by itself with the first other call
 * of the PE; it is collective. Errors: a wrong use ends the job with a message that names routine, argument and value.
 * System calls that get a pointer into shared memory: see docs/dsm.md. Times are in nanoseconds. */
#ifndef QUOIT_DSM_H
#define QUOIT_DSM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* --- Start and end: collective. shmem_init_thread(SHMEM_THREAD_MULTIPLE) is called if the program did not. finalize
 * waits for all PEs; it ends OpenSHMEM too if dsm_init began it. A return from main is a finalize. */
void dsm_init(void);
void dsm_finalize(void);
int dsm_my_pe(void);
int dsm_n_pes(void);

/* --- Memory. Any PE, any time; the block lives until dsm_free by any PE. NULL with errno ENOMEM if the addresses of
 * DSM_SPACE are used up; memory is taken where it is touched. The all forms are collective with equal arguments and
 * give the same pointer to all PEs. */
enum dsm_placement {
    DSM_DEFAULT, /* as DSM_HOME says */
    DSM_BLOCK,   /* PE 0 has the first part of the pages, the last PE the last */
    DSM_CYCLIC,  /* page after page, from PE to PE */
    DSM_ON_PE,   /* all on `pe` */
};
void *dsm_malloc(size_t bytes);
void *dsm_calloc(size_t count, size_t bytes);
void *dsm_aligned_alloc(size_t alignment, size_t bytes); /* alignment: a power of two up to 2 MiB */
void *dsm_malloc_placed(size_t bytes, enum dsm_placement placement, int pe);
void dsm_free(void *ptr);
void *dsm_all_malloc(size_t bytes);
void dsm_all_free(void *ptr);

/* --- Pages. home: the PE where the page of an address lives; an untouched page gets its home by the question. prefetch
 * brings pages here without a fault for each. migrate is collective with equal arguments: the range's pages live on
 * `pe` from now on. acquire and release of a range, for programs that synchronise by other means: release returns when
 * the own writes to the range are at the homes; after acquire, loads see what the homes have. */
int dsm_home(const void *address);
void dsm_prefetch(const void *address, size_t bytes);
void dsm_migrate(void *address, size_t bytes, int pe);
void dsm_acquire(const void *address, size_t bytes);
void dsm_release(const void *address, size_t bytes);

/* Adds to a word of shared memory, atomically against other dsm_fetch_add, and returns the value before. Orders nothing
 * else. Plain loads of the word see it after the next synchronisation. */
uint64_t dsm_fetch_add(uint64_t *word, uint64_t value);

/* --- Locks. try and timed return 0, or EBUSY, ETIMEDOUT. A timed one does not queue. */
typedef struct {
    uint64_t word;
} dsm_lock_t, dsm_rwlock_t, dsm_cond_t, dsm_sem_t, dsm_flag_t, dsm_once_t, dsm_barrier_t;

void dsm_lock_init(dsm_lock_t *lock);
void dsm_lock(dsm_lock_t *lock);
int dsm_trylock(dsm_lock_t *lock);
int dsm_timedlock(dsm_lock_t *lock, uint64_t timeout_ns);
void dsm_unlock(dsm_lock_t *lock);

void dsm_rwlock_init(dsm_rwlock_t *lock);
void dsm_rdlock(dsm_rwlock_t *lock); /* waits behind writers that wait */
void dsm_wrlock(dsm_rwlock_t *lock);
void dsm_rwunlock(dsm_rwlock_t *lock);

/* --- Condition variables: as POSIX has them, without spurious wakeups. timedwait returns 0 or ETIMEDOUT, with the
 * lock. */
void dsm_cond_init(dsm_cond_t *cond);
void dsm_cond_wait(dsm_cond_t *cond, dsm_lock_t *lock);
int dsm_cond_timedwait(dsm_cond_t *cond, dsm_lock_t *lock, uint64_t timeout_ns);
void dsm_cond_signal(dsm_cond_t *cond);
void dsm_cond_broadcast(dsm_cond_t *cond);

/* --- Semaphores, flags that only grow, and routines that run once in the job. */
void dsm_sem_init(dsm_sem_t *sem, uint64_t value);
void dsm_sem_wait(dsm_sem_t *sem);
int dsm_sem_trywait(dsm_sem_t *sem);
int dsm_sem_timedwait(dsm_sem_t *sem, uint64_t timeout_ns);
void dsm_sem_post(dsm_sem_t *sem);

void dsm_flag_init(dsm_flag_t *flag);
void dsm_flag_set(dsm_flag_t *flag, uint64_t value);
uint64_t dsm_flag_get(dsm_flag_t *flag);
void dsm_flag_wait(dsm_flag_t *flag, uint64_t least); /* until the value is at least so much */

void dsm_once(dsm_once_t *once, void (*routine)(void));

/* --- Barriers. of all PEs; or of any `count` callers, threads or PEs, that name the same object. */
void dsm_barrier_all(void);
void dsm_barrier_init(dsm_barrier_t *barrier);
void dsm_barrier_wait(dsm_barrier_t *barrier, uint64_t count);

/* --- Programs of one process that creates others (share/quoit/c.m4.qdsm). begin, before main does anything: returns on
 * PE 0 alone; the other PEs end in it. run: the PEs below `count`, PE 0 last and in this call, run the routine, the
 * others with PE 0's globals between the two addresses as they are now. join waits for all of them. */
void dsm_workers_begin(void);
void dsm_workers_run(void (*routine)(void), int count, void *globals, void *globals_end);
void dsm_workers_join(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
