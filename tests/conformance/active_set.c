/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: the collectives of active sets (9.10, deprecated). Method: over all PEs, over the even ones and over those from
 * PE 1 on, compared with what a sequential program would say; pSync must be as it was at the end. Then a sum, a
 * broadcast and a collection over every set that the PEs can form, twice, which are more than the library can keep. */
#include "check.h"

#define COUNT 5
#define PES   64

static long psync[SHMEM_SYNC_SIZE], barrier_sync[SHMEM_BARRIER_SYNC_SIZE];
static uint32_t source32[PES * COUNT * 3], dest32[PES * COUNT * 3];
static uint64_t source64[PES * COUNT * 3], dest64[PES * COUNT * 3];

struct set {
    int start, log_stride, size;
};

static int rank_in(struct set set)
{
    int distance = me - set.start, stride = 1 << set.log_stride;
    return distance >= 0 && distance % stride == 0 && distance / stride < set.size ? distance / stride : -1;
}

#define MEMBERS set.start, set.log_stride, set.size
#define SET     MEMBERS, psync
#define X(BITS)                                                                                                        \
    static void run_##BITS(struct set set, int rank)                                                                   \
    {                                                                                                                  \
        int all = set.size * COUNT;                                                                                    \
        for (int i = 0; i < all * 3; i++) {                                                                            \
            source##BITS[i] = VALUE(uint##BITS##_t, rank, i, 4);                                                       \
            dest##BITS[i] = 999;                                                                                       \
        }                                                                                                              \
        shmem_barrier(MEMBERS, barrier_sync);                                                                          \
        int root = set.size - 1;                                                                                       \
        shmem_broadcast##BITS(dest##BITS, source##BITS, COUNT, root, SET);                                             \
        for (int i = 0; i < COUNT; i++)                                                                                \
            CHECK(dest##BITS[i] == (rank == root ? 999 : VALUE(uint##BITS##_t, root, i, 4)), "broadcast" #BITS);       \
        shmem_barrier(MEMBERS, barrier_sync);                                                                          \
        shmem_fcollect##BITS(dest##BITS, source##BITS, COUNT, SET);                                                    \
        for (int pe = 0; pe < set.size; pe++)                                                                          \
            for (int i = 0; i < COUNT; i++)                                                                            \
                CHECK(dest##BITS[pe * COUNT + i] == VALUE(uint##BITS##_t, pe, i, 4), "fcollect" #BITS);                \
        shmem_barrier(MEMBERS, barrier_sync);                                                                          \
        shmem_collect##BITS(dest##BITS, source##BITS, (size_t)(rank % 3), SET);                                        \
        for (int pe = 0, at = 0; pe < set.size; at += pe % 3, pe++)                                                    \
            for (int i = 0; i < pe % 3; i++)                                                                           \
                CHECK(dest##BITS[at + i] == VALUE(uint##BITS##_t, pe, i, 4), "collect" #BITS);                         \
        shmem_barrier(MEMBERS, barrier_sync);                                                                          \
        shmem_alltoall##BITS(dest##BITS, source##BITS, COUNT, SET);                                                    \
        for (int pe = 0; pe < set.size; pe++)                                                                          \
            for (int i = 0; i < COUNT; i++)                                                                            \
                CHECK(dest##BITS[pe * COUNT + i] == VALUE(uint##BITS##_t, pe, rank * COUNT + i, 4), "alltoall" #BITS); \
        shmem_barrier(MEMBERS, barrier_sync);                                                                          \
        shmem_alltoalls##BITS(dest##BITS, source##BITS, 2, 3, COUNT, SET);                                             \
        for (int pe = 0; pe < set.size; pe++)                                                                          \
            for (int i = 0; i < COUNT; i++)                                                                            \
                CHECK(dest##BITS[(pe * COUNT + i) * 2] == VALUE(uint##BITS##_t, pe, (rank * COUNT + i) * 3, 4),        \
                      "alltoalls" #BITS);                                                                              \
        shmem_barrier(MEMBERS, barrier_sync);                                                                          \
    }
X(32)
X(64)
#undef X

static void run_nothing(struct set set)
{
    shmem_broadcast64(NULL, NULL, 0, 0, SET);
    shmem_barrier(MEMBERS, barrier_sync);
    shmem_collect64(NULL, NULL, 0, SET);
    shmem_barrier(MEMBERS, barrier_sync);
    shmem_fcollect64(NULL, NULL, 0, SET);
    shmem_barrier(MEMBERS, barrier_sync);
    shmem_alltoall64(NULL, NULL, 0, SET);
    shmem_barrier(MEMBERS, barrier_sync);
    shmem_alltoalls64(NULL, NULL, 1, 1, 0, SET);
    shmem_barrier(MEMBERS, barrier_sync);
}

static void run_set(struct set set, int rank)
{
    static long work[SHMEM_REDUCE_MIN_WRKDATA_SIZE], sum[COUNT], term[COUNT];
    int root = set.size / 2, total = 0;
    for (int i = 0; i < COUNT; i++) {
        term[i] = (rank + 1) * (i + 1);
        source64[i] = VALUE(uint64_t, rank, i, 4);
        dest64[i] = 999;
    }
    for (int member = 1; member <= set.size; member++)
        total += member;
    shmem_barrier(MEMBERS, barrier_sync);
    shmem_long_sum_to_all(sum, term, COUNT, MEMBERS, work, psync);
    for (int i = 0; i < COUNT; i++)
        CHECK(sum[i] == (long)total * (i + 1), "sum over %d, %d, %d: %ld", MEMBERS, sum[i]);
    shmem_barrier(MEMBERS, barrier_sync);
    shmem_broadcast64(dest64, source64, COUNT, root, SET);
    for (int i = 0; i < COUNT; i++)
        CHECK(dest64[i] == (rank == root ? 999 : VALUE(uint64_t, root, i, 4)), "broadcast over %d, %d, %d", MEMBERS);
    shmem_barrier(MEMBERS, barrier_sync);
    shmem_fcollect64(dest64, source64, COUNT, SET);
    for (int i = 0; i < set.size * COUNT; i++)
        CHECK(dest64[i] == VALUE(uint64_t, i / COUNT, i % COUNT, 4), "fcollect over %d, %d, %d", MEMBERS);
    shmem_barrier(MEMBERS, barrier_sync);
}

static void run_every_set(void)
{
    int pes = npes < 12 ? npes : 12;
    for (int turn = 0; turn < 2; turn++)
        for (int start = 0; start < pes; start++)
            for (int log_stride = 0; 1 << log_stride < pes; log_stride++)
                for (int size = 1; start + ((size - 1) << log_stride) < pes; size++) {
                    struct set set = {start, log_stride, size};
                    int rank = rank_in(set);
                    if (rank >= 0)
                        run_set(set, rank);
                    shmem_barrier_all();
                }
}

/* Two pSyncs by turns and no barrier: a root must not begin a third broadcast while others are in the first, and dest
 * may be looked at and cleared until the own next call. */
static void run_by_turns(void)
{
    static long turns[2][SHMEM_BCAST_SYNC_SIZE];
    static uint64_t from, to[2];
    for (uint64_t round = 1; round <= 300; round++) {
        from = round;
        shmem_broadcast64(&to[round % 2], &from, 1, 0, 0, 0, npes, turns[round % 2]);
        CHECK(me == 0 || to[round % 2] == round, "round %d gave %d", (int)round, (int)to[round % 2]);
        to[round % 2] = 0;
    }
    shmem_barrier_all();
}

int main(void)
{
    check_begin();
    const struct set sets[] = {{0, 0, npes}, {0, 1, (npes + 1) / 2}, {npes > 1, 0, npes > 1 ? npes - 1 : 1}};
    for (int s = 0; s < 3; s++) {
        struct set set = sets[s];
        int rank = rank_in(set);
        if (rank >= 0) {
            run_nothing(set);
            run_32(set, rank);
            run_64(set, rank);
            for (int i = 0; i < 10; i++)
                (shmem_sync)(MEMBERS, barrier_sync);
        }
        shmem_barrier_all();
        for (int i = 0; i < SHMEM_SYNC_SIZE; i++)
            CHECK(psync[i] == SHMEM_SYNC_VALUE && barrier_sync[i] == SHMEM_SYNC_VALUE, "pSync[%d] is %ld at the end", i,
                  psync[i]);
        shmem_barrier_all();
    }
    run_every_set();
    run_by_turns();
    return check_end("active_set");
}
