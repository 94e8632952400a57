/* SPDX-License-Identifier: BSD-3-Clause */
/* locked_atomics.c - the atomics that libqdsm uses, as a library may make them that can only read and write words:
 * under a lock of each PE, slowly. What a processor changes of the word in between is lost, as OpenSHMEM permits.
 * Linked into a program, these take the place of the library's. */
#include <sched.h>
#include <shmem.h>
#include <time.h>

#define BETWEEN_NS 20000

static unsigned long lock_word;

static unsigned long begin(const unsigned long *word, int pe)
{
    while (pshmem_ulong_atomic_compare_swap(&lock_word, 0, 1, pe) != 0)
        sched_yield();
    unsigned long value = pshmem_ulong_atomic_fetch(word, pe);
    nanosleep(&(struct timespec){0, BETWEEN_NS}, NULL);
    return value;
}

static void end(unsigned long *word, unsigned long value, int pe)
{
    pshmem_ulong_atomic_set(word, value, pe);
    pshmem_quiet();
    pshmem_ulong_atomic_set(&lock_word, 0, pe);
}

void shmem_ulong_atomic_set(unsigned long *dest, unsigned long value, int pe)
{
    begin(dest, pe);
    end(dest, value, pe);
}

unsigned long shmem_ulong_atomic_swap(unsigned long *dest, unsigned long value, int pe)
{
    unsigned long before = begin(dest, pe);
    end(dest, value, pe);
    return before;
}

unsigned long shmem_ulong_atomic_compare_swap(unsigned long *dest, unsigned long cond, unsigned long value, int pe)
{
    unsigned long before = begin(dest, pe);
    end(dest, before == cond ? value : before, pe);
    return before;
}

unsigned long shmem_ulong_atomic_fetch_add(unsigned long *dest, unsigned long value, int pe)
{
    unsigned long before = begin(dest, pe);
    end(dest, before + value, pe);
    return before;
}

void shmem_ulong_atomic_or(unsigned long *dest, unsigned long value, int pe)
{
    end(dest, begin(dest, pe) | value, pe);
}

void shmem_ulong_atomic_and(unsigned long *dest, unsigned long value, int pe)
{
    end(dest, begin(dest, pe) & value, pe);
}

void shmem_ulong_atomic_inc(unsigned long *dest, int pe)
{
    end(dest, begin(dest, pe) + 1, pe);
}
