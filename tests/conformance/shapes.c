/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: every collective on every team that up to 12 PEs can form: all starts, all sizes, strides of both signs (9.4,
 * 9.10). Method: the members call each collective on numbers derived from their PE, and compare all of dest with the
 * result of a loop over the members; PEs outside verify that their memory is unchanged. Lengths, roots and strides
 * differ from team to team. */
#include "check.h"

#define MOST_PES 12
#define LONGEST  9

static int64_t source[MOST_PES * LONGEST * 2], dest[MOST_PES * LONGEST * 3];
static int team_count;

struct shape {
    int start, stride, size, rank;
    shmem_team_t team;
};

static int64_t given(int pe, int at)
{
    return pe * 1000 + at * 7 + team_count;
}

static int pe_of(const struct shape *shape, int rank)
{
    return shape->start + rank * shape->stride;
}

static void set_up(const struct shape *shape)
{
    CHECK(shmem_team_sync(shape->team) == 0, "sync");
    for (int i = 0; i < MOST_PES * LONGEST * 2; i++)
        source[i] = given(me, i);
    for (int i = 0; i < MOST_PES * LONGEST * 3; i++)
        dest[i] = -1;
    CHECK(shmem_team_sync(shape->team) == 0, "sync");
}

#define EXPECT(what, at, value)                                                                                        \
    CHECK(dest[at] == (value), "%s in team %d:%d:%d, element %d is %lld", what, shape->start, shape->stride,           \
          shape->size, (int)(at), (long long)dest[at])

static void run_moves(const struct shape *shape, int count)
{
    int root = team_count % shape->size, at = 0;
    set_up(shape);
    CHECK(shmem_int64_broadcast(shape->team, dest, source, (size_t)count, root) == 0, "broadcast");
    for (int i = 0; i < count; i++)
        EXPECT("broadcast", i, given(pe_of(shape, root), i));
    EXPECT("broadcast", count, -1);
    set_up(shape);
    CHECK(shmem_int64_fcollect(shape->team, dest, source, (size_t)count) == 0, "fcollect");
    for (int rank = 0; rank < shape->size; rank++)
        for (int i = 0; i < count; i++)
            EXPECT("fcollect", rank * count + i, given(pe_of(shape, rank), i));
    EXPECT("fcollect", shape->size * count, -1);
    set_up(shape);
    CHECK(shmem_int64_collect(shape->team, dest, source, (size_t)(me % 3 * count / 2)) == 0, "collect");
    for (int rank = 0; rank < shape->size; rank++) {
        for (int i = 0; i < pe_of(shape, rank) % 3 * count / 2; i++)
            EXPECT("collect", at + i, given(pe_of(shape, rank), i));
        at += pe_of(shape, rank) % 3 * count / 2;
    }
    EXPECT("collect", at, -1);
}

static void run_exchanges(const struct shape *shape, int count)
{
    int dst = 1 + team_count % 3, sst = 1 + team_count % 2;
    set_up(shape);
    CHECK(shmem_int64_alltoall(shape->team, dest, source, (size_t)count) == 0, "alltoall");
    for (int rank = 0; rank < shape->size; rank++)
        for (int i = 0; i < count; i++)
            EXPECT("alltoall", rank * count + i, given(pe_of(shape, rank), shape->rank * count + i));
    EXPECT("alltoall", shape->size * count, -1);
    set_up(shape);
    CHECK(shmem_int64_alltoalls(shape->team, dest, source, dst, sst, (size_t)count) == 0, "alltoalls");
    for (int rank = 0; rank < shape->size; rank++)
        for (int i = 0; i < count; i++) {
            int at = (rank * count + i) * dst;
            EXPECT("alltoalls", at, given(pe_of(shape, rank), (shape->rank * count + i) * sst));
            for (int gap = 1; gap < dst; gap++)
                EXPECT("alltoalls between", at + gap, -1);
        }
}

static void run_sums(const struct shape *shape, int count)
{
    set_up(shape);
    for (int form = 0; form < 5; form++) {
        CHECK(shmem_team_sync(shape->team) == 0, "sync");
        int last = form == 3 ? shape->rank + 1 : form == 4 ? shape->rank : shape->size;
        int failed = form == 0   ? shmem_int64_sum_reduce(shape->team, dest, source, (size_t)count)
                     : form == 1 ? shmem_int64_max_reduce(shape->team, dest, source, (size_t)count)
                     : form == 2 ? shmem_int64_xor_reduce(shape->team, dest, source, (size_t)count)
                     : form == 3 ? shmem_int64_sum_inscan(shape->team, dest, source, (size_t)count)
                                 : shmem_int64_sum_exscan(shape->team, dest, source, (size_t)count);
        CHECK(failed == 0, "reduction %d", form);
        for (int i = 0; i < count; i++) {
            int64_t wanted = 0;
            for (int rank = 0; rank < last; rank++) {
                int64_t value = given(pe_of(shape, rank), i);
                wanted = form == 1 ? (value > wanted ? value : wanted) : form == 2 ? wanted ^ value : wanted + value;
            }
            EXPECT("reduction or scan", i, wanted);
        }
        EXPECT("reduction or scan", count, -1);
    }
    CHECK(shmem_team_sync(shape->team) == 0, "sync");
    CHECK(shmem_int64_min_reduce(shape->team, source, source, (size_t)count) == 0, "in place");
    int lowest = pe_of(shape, shape->stride < 0 ? shape->size - 1 : 0);
    for (int i = 0; i < count; i++)
        CHECK(source[i] == given(lowest, i), "min in place, element %d", i);
}

static void run_team(int start, int stride, int size)
{
    struct shape shape = {.start = start, .stride = stride, .size = size, .rank = -1};
    int status = shmem_team_split_strided(SHMEM_TEAM_WORLD, start, stride, size, NULL, 0, &shape.team);
    CHECK(status == 0, "split %d:%d:%d", start, stride, size);
    for (int rank = 0; rank < size; rank++)
        if (pe_of(&shape, rank) == me)
            shape.rank = rank;
    CHECK((shape.team != SHMEM_TEAM_INVALID) == (shape.rank >= 0), "membership of %d:%d:%d", start, stride, size);
    team_count++;
    if (shape.team == SHMEM_TEAM_INVALID)
        return;
    int count = 1 + team_count % LONGEST;
    run_moves(&shape, count < LONGEST ? count : LONGEST - 1);
    run_exchanges(&shape, count < LONGEST ? count : LONGEST - 1);
    run_sums(&shape, count);
    shmem_team_destroy(shape.team);
}

int main(void)
{
    check_begin();
    int pes = npes < MOST_PES ? npes : MOST_PES;
    for (int start = 0; start < pes; start++)
        for (int stride = 1 - pes; stride < pes; stride++)
            for (int size = 1; size <= pes; size++) {
                int last = start + stride * (size - 1);
                if (last >= 0 && last < pes && (stride != 0 || size == 1))
                    run_team(start, stride, size);
            }
    return check_end("shapes");
}
