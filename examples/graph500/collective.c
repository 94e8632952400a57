/* SPDX-License-Identifier: BSD-3-Clause */
/* collective.c - collectives by the active sets of OpenSHMEM 1.4, so that older libraries run them too. */
#include "graph500.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <shmem.h>

#define WORDS 1024 /* of a reduction */
#define WORK  (WORDS / 2 + 1 > SHMEM_REDUCE_MIN_WRKDATA_SIZE ? WORDS / 2 + 1 : SHMEM_REDUCE_MIN_WRKDATA_SIZE)

/* Symmetric. A call may start on one PE while another has not left the previous one, so two sets alternate. */
static long reduce_sync[2][SHMEM_REDUCE_SYNC_SIZE], collect_sync[SHMEM_COLLECT_SYNC_SIZE];
static long long reduce_work[2][WORK], from_here[2][WORDS], result[2][WORDS];
static int turn;

static void prepare(void)
{
    static bool is_ready;
    if (is_ready)
        return;
    for (int i = 0; i < 2 * SHMEM_REDUCE_SYNC_SIZE; i++)
        (&reduce_sync[0][0])[i] = SHMEM_SYNC_VALUE;
    for (int i = 0; i < SHMEM_COLLECT_SYNC_SIZE; i++)
        collect_sync[i] = SHMEM_SYNC_VALUE;
    is_ready = true;
    shmem_barrier_all();
}

static int64_t of_all(int64_t value, int is_max)
{
    prepare();
    turn ^= 1;
    from_here[turn][0] = value;
    if (is_max)
        shmem_longlong_max_to_all(result[turn], from_here[turn], 1, 0, 0, shmem_n_pes(), reduce_work[turn],
                                  reduce_sync[turn]);
    else
        shmem_longlong_sum_to_all(result[turn], from_here[turn], 1, 0, 0, shmem_n_pes(), reduce_work[turn],
                                  reduce_sync[turn]);
    return result[turn][0];
}

int64_t sum_of_all(int64_t value)
{
    return of_all(value, 0);
}

int64_t max_of_all(int64_t value)
{
    return of_all(value, 1);
}

void or_of_all(uint64_t *words, size_t count)
{
    prepare();
    for (size_t at = 0; at < count; at += WORDS) {
        size_t part = count - at < WORDS ? count - at : WORDS;
        turn ^= 1;
        memcpy(from_here[turn], words + at, part * sizeof(*words));
        shmem_longlong_or_to_all(result[turn], from_here[turn], (int)part, 0, 0, shmem_n_pes(), reduce_work[turn],
                                 reduce_sync[turn]);
        memcpy(words + at, result[turn], part * sizeof(*words));
    }
}

void collect_from_all(uint32_t *to, const uint32_t *from, size_t count)
{
    prepare();
    shmem_barrier_all(); /* `to` is unused on every PE, and so is the only collect_sync */
    shmem_fcollect32(to, from, count, 0, 0, shmem_n_pes(), collect_sync);
}

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void *memory(size_t count, size_t bytes)
{
    void *p = calloc(count > 0 ? count : 1, bytes);
    if (p == NULL) {
        fprintf(stderr, "graph500: no memory for %zu times %zu bytes\n", count, bytes);
        shmem_global_exit(2);
    }
    return p;
}

void *symmetric(size_t count, size_t bytes)
{
    void *p = shmem_calloc(count > 0 ? count : 1, bytes);
    if (p == NULL) {
        if (shmem_my_pe() == 0)
            fprintf(stderr, "graph500: no room for %zu times %zu symmetric bytes; give more by SHMEM_SYMMETRIC_SIZE\n",
                    count, bytes);
        shmem_global_exit(2);
    }
    return p;
}
