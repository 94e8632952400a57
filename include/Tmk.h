/* SPDX-License-Identifier: BSD-3-Clause */
/* Tmk.h - programs of the TreadMarks interface on libqdsm: compile with oshcc, link with -lqdsm, run with oshrun.
 *
 * Locks, conditions and barriers are numbers. What differs: the processes exist when main begins, and Tmk_startup takes
 * nothing from its arguments; a variable that Tmk_distribute sends arrives at the others in their next Tmk_barrier, not
 * at once, and must be a global of the program; pages are those of DSM_PAGE. Tmk_sched_* and the statistics are left
 * out. Any header of several source files may include this one. */
#ifndef QUOIT_TMK_H
#define QUOIT_TMK_H

#include <dsm.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NLOCKS    1024
#define NCONDS    16 /* of each lock */
#define NBARRIERS 32

#define Tmk_proc_id ((unsigned)dsm_my_pe())
#define Tmk_nprocs  ((unsigned)dsm_n_pes())

/* A variable on its way. */
struct Tmk_sent {
    struct Tmk_sent *next;
    ptrdiff_t place; /* from Tmk_of_process, the same distance in every process */
    size_t bytes;
    int from;
};

struct Tmk_shared {
    dsm_lock_t locks[NLOCKS], sending;
    dsm_cond_t conds[NLOCKS][NCONDS];
    struct Tmk_sent *first, *last;
};

/* One of the program, however many of its files include this header. */
__attribute__((weak)) struct {
    struct Tmk_shared *shared;
    struct Tmk_sent *received; /* the last one */
} Tmk_of_process;

__attribute__((noreturn, format(printf, 1, 2))) static inline void Tmk_errexit(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    exit(1);
}

static inline void Tmk_check(const char *call, const char *what, unsigned number, unsigned count)
{
    if (!Tmk_of_process.shared)
        Tmk_errexit("%s: called before Tmk_startup\n", call);
    if (number >= count)
        Tmk_errexit("%s: %s is %u, but it is 0 to %u\n", call, what, number, count - 1);
}

/* Collective. */
static inline void Tmk_startup(int argc, char *const *argv)
{
    (void)argc;
    (void)argv;
    dsm_init();
    Tmk_of_process.shared = (struct Tmk_shared *)dsm_all_malloc(sizeof *Tmk_of_process.shared);
    if (!Tmk_of_process.shared)
        Tmk_errexit("Tmk_startup: no shared memory; a larger DSM_SPACE helps\n");
    if (dsm_my_pe() == 0)
        memset(Tmk_of_process.shared, 0, sizeof *Tmk_of_process.shared);
    dsm_barrier_all();
}

/* Waits for all processes. */
__attribute__((noreturn)) static inline void Tmk_exit(int status)
{
    if (status == 0)
        dsm_finalize();
    exit(status);
}

/* Diffs of TreadMarks consist of words of 4 bytes. Blocks below a page share theirs with others. */
static inline void *Tmk_malloc(size_t bytes)
{
    struct dsm_attributes with = {DSM_DEFAULT, 0, DSM_PROTOCOL_RUN, DSM_COPIES_RUN, DSM_WORD_4};
    return bytes < 4096 ? dsm_malloc(bytes) : dsm_malloc_with(bytes, &with);
}

static inline void *Tmk_sbrk(size_t bytes)
{
    return Tmk_malloc(bytes);
}

static inline void Tmk_free(void *block)
{
    dsm_free(block);
}

static inline void Tmk_receive(void)
{
    struct Tmk_sent *last = Tmk_of_process.received;
    struct Tmk_sent *sent = last ? last->next : Tmk_of_process.shared->first;
    for (; sent; sent = sent->next) {
        if (sent->from != dsm_my_pe())
            memcpy((char *)&Tmk_of_process + sent->place, sent + 1, sent->bytes);
        Tmk_of_process.received = sent;
    }
}

static inline void Tmk_barrier(unsigned barrier)
{
    Tmk_check("Tmk_barrier", "barrier", barrier, NBARRIERS);
    dsm_barrier_all();
    Tmk_receive();
}

/* `address` is a global of the program; the others have its value after their next barrier. */
static inline void Tmk_distribute(const void *address, int bytes)
{
    extern char __executable_start[], _end[];
    uintptr_t start = (uintptr_t)address;
    Tmk_check("Tmk_distribute", "", 0, 1);
    if (bytes < 0 || start < (uintptr_t)__executable_start || start + (uintptr_t)bytes > (uintptr_t)_end)
        Tmk_errexit("Tmk_distribute: %d bytes at %p are no global of the program\n", bytes, address);
    struct Tmk_sent *sent = (struct Tmk_sent *)dsm_malloc(sizeof *sent + (size_t)bytes);
    if (!sent)
        Tmk_errexit("Tmk_distribute: no shared memory for %d bytes\n", bytes);
    sent->next = NULL;
    sent->place = (const char *)address - (const char *)&Tmk_of_process;
    sent->bytes = (size_t)bytes;
    sent->from = dsm_my_pe();
    memcpy(sent + 1, address, (size_t)bytes);
    struct Tmk_shared *shared = Tmk_of_process.shared;
    dsm_lock(&shared->sending);
    if (shared->last)
        shared->last->next = sent;
    else
        shared->first = sent;
    shared->last = sent;
    dsm_unlock(&shared->sending);
}

static inline void Tmk_lock_acquire(unsigned lock)
{
    Tmk_check("Tmk_lock_acquire", "lock", lock, NLOCKS);
    dsm_lock(&Tmk_of_process.shared->locks[lock]);
}

static inline void Tmk_lock_release(unsigned lock)
{
    Tmk_check("Tmk_lock_release", "lock", lock, NLOCKS);
    dsm_unlock(&Tmk_of_process.shared->locks[lock]);
}

/* Called with the lock; wait returns with it. */
static inline void Tmk_lock_cond_wait(unsigned lock, unsigned cond)
{
    Tmk_check("Tmk_lock_cond_wait", "lock", lock, NLOCKS);
    Tmk_check("Tmk_lock_cond_wait", "cond", cond, NCONDS);
    dsm_cond_wait(&Tmk_of_process.shared->conds[lock][cond], &Tmk_of_process.shared->locks[lock]);
}

static inline void Tmk_lock_cond_signal(unsigned lock, unsigned cond)
{
    Tmk_check("Tmk_lock_cond_signal", "lock", lock, NLOCKS);
    Tmk_check("Tmk_lock_cond_signal", "cond", cond, NCONDS);
    dsm_cond_signal(&Tmk_of_process.shared->conds[lock][cond]);
}

static inline void Tmk_lock_cond_broadcast(unsigned lock, unsigned cond)
{
    Tmk_check("Tmk_lock_cond_broadcast", "lock", lock, NLOCKS);
    Tmk_check("Tmk_lock_cond_broadcast", "cond", cond, NCONDS);
    dsm_cond_broadcast(&Tmk_of_process.shared->conds[lock][cond]);
}

#endif
