/* SPDX-License-Identifier: BSD-3-Clause */
/* fair [ROUNDS]: locks are granted in the order of requests, however PEs are scheduled.
 *
 * In each round one PE holds the lock and makes the others request it in a random order, one after another: it signals
 * one, and waits until that one has joined the queue before it signals the next. (The tail of the queue is in the low
 * half of the lock on one PE; it is zero on the others: src/shmem/lock.c.) Then it clears the lock and requests it
 * again at once, which must put it behind all others. Each PE that acquires the lock appends itself to a list on PE 0;
 * the list must have that order.
 */
#include <inttypes.h>
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define PES_MAX 256

static long lock;
static long turn;          /* the round in which this PE may request the lock */
static int notes[PES_MAX]; /* on PE 0 */
static int note_count;
static int order[PES_MAX];

/* The same on all PEs, and different in each round. */
static void shuffle(int count, int holder, uint64_t *state)
{
    int last = 0;
    for (int pe = 0; pe < count; pe++)
        if (pe != holder)
            order[last++] = pe;
    order[last] = holder;
    for (int i = last - 1; i > 0; i--) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        int other = (int)((*state >> 33) % (uint64_t)(i + 1)), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

static int last_of_queue(void)
{
    int last = 0;
    for (int pe = 0; pe < shmem_n_pes(); pe++)
        last |= shmem_int_atomic_fetch((const int *)(const void *)&lock, pe);
    return last - 1;
}

static void note(void)
{
    int at = shmem_int_atomic_fetch_inc(&note_count, 0);
    shmem_int_p(&notes[at], shmem_my_pe(), 0);
    shmem_quiet();
    shmem_clear_lock(&lock);
}

static void hold(long round)
{
    shmem_set_lock(&lock);
    for (int i = 0; i + 1 < shmem_n_pes(); i++) {
        shmem_long_p(&turn, round, order[i]);
        while (last_of_queue() != order[i])
            ;
    }
    shmem_clear_lock(&lock);
    shmem_set_lock(&lock);
    note();
}

static void check(long round)
{
    for (int i = 0; i < shmem_n_pes(); i++)
        if (notes[i] != order[i]) {
            printf("fair: round %ld: PE %d got the lock in place %d, but PE %d asked there\n", round, notes[i], i,
                   order[i]);
            shmem_global_exit(1);
        }
    note_count = 0;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 20;
    uint64_t state = 7;
    shmem_init();
    int me = shmem_my_pe(), count = shmem_n_pes();
    if (count > PES_MAX)
        shmem_global_exit(2);
    for (long round = 1; round <= rounds; round++) {
        int holder = (int)(round % count);
        shuffle(count, holder, &state);
        if (me == holder) {
            hold(round);
        } else {
            shmem_long_wait_until(&turn, SHMEM_CMP_EQ, round);
            shmem_set_lock(&lock);
            note();
        }
        shmem_barrier_all();
        if (me == 0)
            check(round);
        shmem_barrier_all();
    }
    if (me == 0)
        printf("fair: %ld rounds of %d PEs\n", rounds, count);
    shmem_finalize();
    return 0;
}
