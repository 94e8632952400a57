/* SPDX-License-Identifier: BSD-3-Clause */
/* closed - a thread of PE 1 writes copies while its PE is in a barrier, whose notices close them: they are no pages
 * that the PE has written when it releases next, and stay closed. Word 7 of the first page reaches PE 0, its home, with
 * the diffs of the barrier: what is written from then on is written in it.
 *
 * Use: closed [ROUNDS]. For DSM_COPIES=invalidate, and two PEs or more.
 */
#include <dsm.h>
#include <pthread.h>
#include <sched.h>
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PAGE_BYTES 4096
#define WORDS      (PAGE_BYTES / 8)
#define PAGES      4
#define SIGNAL     7 /* words of a page */
#define OF_PE_0    61
#define OF_THREAD  60

static uint64_t *pages[PAGES];
static long begun, written; /* rounds */

static void check(long round, int page, int word, uint64_t expected)
{
    uint64_t seen = pages[page][word];
    if (seen == expected)
        return;
    fprintf(stderr, "closed: round %ld, PE %d: word %d of page %d is %llu, but %llu is required\n", round, dsm_my_pe(),
            word, page, (unsigned long long)seen, (unsigned long long)expected);
    _exit(1);
}

static void *write_copies(void *argument)
{
    long round = *(const long *)argument;
    shmem_long_wait_until(&begun, SHMEM_CMP_EQ, round);
    for (int page = 1; page < PAGES; page++)
        pages[page][OF_THREAD] = (uint64_t)round;
    shmem_long_atomic_set(&written, round, 0);
    return NULL;
}

static void run_pe_0(long round)
{
    for (int page = 1; page < PAGES; page++)
        pages[page][OF_PE_0] = (uint64_t)round;
    while (__atomic_load_n(&pages[0][SIGNAL], __ATOMIC_ACQUIRE) != (uint64_t)round)
        sched_yield();
    shmem_long_atomic_set(&begun, round, 1);
    shmem_long_wait_until(&written, SHMEM_CMP_EQ, round);
    dsm_barrier_all();
}

static void run_pe_1(long round)
{
    pthread_t thread;
    pages[0][SIGNAL] = (uint64_t)round;
    if (pthread_create(&thread, NULL, write_copies, &round) != 0)
        abort();
    dsm_barrier_all();
    pthread_join(thread, NULL);
    dsm_release(pages[0], PAGES * PAGE_BYTES);
    for (int page = 1; page < PAGES; page++) {
        check(round, page, OF_PE_0, (uint64_t)round);
        check(round, page, OF_THREAD, (uint64_t)round);
    }
}

int main(int count, char **words)
{
    uint64_t **shared = dsm_all_malloc(sizeof *shared);
    if (dsm_my_pe() == 0)
        *shared = dsm_malloc_placed(PAGES * PAGE_BYTES, DSM_ON_PE, 0);
    dsm_barrier_all();
    for (int page = 0; page < PAGES; page++)
        pages[page] = *shared + page * WORDS;
    for (long round = 1, rounds = count > 1 ? atol(words[1]) : 12; round <= rounds; round++) {
        for (int page = 1; page < PAGES; page++) /* which makes a copy of it */
            check(round, page, OF_PE_0, (uint64_t)round - 1);
        dsm_barrier_all();
        if (dsm_my_pe() == 0)
            run_pe_0(round);
        else if (dsm_my_pe() == 1)
            run_pe_1(round);
        else
            dsm_barrier_all();
        dsm_barrier_all();
    }
    dsm_finalize();
    return 0;
}
