/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives that move elements: of each type and by the routines for memory, over teams and active sets. */
#include "collectives.h"

#include <shmem/types.h>
#include <string.h>

/* The routines of one type, all in one form. */
struct type {
    const char *name;
    size_t bytes;
    int (*broadcast)(const struct group *group, void *dest, const void *source, size_t count, int root);
    int (*collect)(const struct group *group, void *dest, const void *source, size_t count);
    int (*fcollect)(const struct group *group, void *dest, const void *source, size_t count);
    int (*alltoall)(const struct group *group, void *dest, const void *source, size_t count);
    int (*alltoalls)(const struct group *group, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,
                     size_t count);
};

#define FORM(N, PREFIX, SUFFIX)                                                                                        \
    static int broadcast_##N(const struct group *group, void *dest, const void *source, size_t count, int root)        \
    {                                                                                                                  \
        return shmem_##PREFIX##broadcast##SUFFIX(group->team, dest, source, count, root);                              \
    }                                                                                                                  \
    static int collect_##N(const struct group *group, void *dest, const void *source, size_t count)                    \
    {                                                                                                                  \
        return shmem_##PREFIX##collect##SUFFIX(group->team, dest, source, count);                                      \
    }                                                                                                                  \
    static int fcollect_##N(const struct group *group, void *dest, const void *source, size_t count)                   \
    {                                                                                                                  \
        return shmem_##PREFIX##fcollect##SUFFIX(group->team, dest, source, count);                                     \
    }                                                                                                                  \
    static int alltoall_##N(const struct group *group, void *dest, const void *source, size_t count)                   \
    {                                                                                                                  \
        return shmem_##PREFIX##alltoall##SUFFIX(group->team, dest, source, count);                                     \
    }                                                                                                                  \
    static int alltoalls_##N(const struct group *group, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,  \
                             size_t count)                                                                             \
    {                                                                                                                  \
        return shmem_##PREFIX##alltoalls##SUFFIX(group->team, dest, source, dst, sst, count);                          \
    }
#define X(N, T) FORM(N, N##_, )
QUOIT_RMA_TYPES(X)
#undef X
FORM(mem, , mem)

#define SET group->start, group->log_stride, group->size, group->sync
#define SET_FORM(BITS)                                                                                                 \
    static int broadcast_##BITS(const struct group *group, void *dest, const void *source, size_t count, int root)     \
    {                                                                                                                  \
        shmem_broadcast##BITS(dest, source, count, root, SET);                                                         \
        return 0;                                                                                                      \
    }                                                                                                                  \
    static int collect_##BITS(const struct group *group, void *dest, const void *source, size_t count)                 \
    {                                                                                                                  \
        shmem_collect##BITS(dest, source, count, SET);                                                                 \
        return 0;                                                                                                      \
    }                                                                                                                  \
    static int fcollect_##BITS(const struct group *group, void *dest, const void *source, size_t count)                \
    {                                                                                                                  \
        shmem_fcollect##BITS(dest, source, count, SET);                                                                \
        return 0;                                                                                                      \
    }                                                                                                                  \
    static int alltoall_##BITS(const struct group *group, void *dest, const void *source, size_t count)                \
    {                                                                                                                  \
        shmem_alltoall##BITS(dest, source, count, SET);                                                                \
        return 0;                                                                                                      \
    }                                                                                                                  \
    static int alltoalls_##BITS(const struct group *group, void *dest, const void *source, ptrdiff_t dst,              \
                                ptrdiff_t sst, size_t count)                                                           \
    {                                                                                                                  \
        shmem_alltoalls##BITS(dest, source, dst, sst, count, SET);                                                     \
        return 0;                                                                                                      \
    }
SET_FORM(32)
SET_FORM(64)

#define ROW(N, BYTES) {#N, BYTES, broadcast_##N, collect_##N, fcollect_##N, alltoall_##N, alltoalls_##N},
#define X(N, T)       ROW(N, sizeof(T))
static const struct type types[] = {QUOIT_RMA_TYPES(X) ROW(mem, 1)};
static const struct type set_types[] = {ROW(32, 4) ROW(64, 8)};
#undef X

static const struct type *draw_type(struct group *group)
{
    if (group->team == SHMEM_TEAM_INVALID)
        return &set_types[quoit_prng_choose(&group->prng, sizeof set_types / sizeof set_types[0])];
    return &types[quoit_prng_choose(&group->prng, sizeof types / sizeof types[0])];
}

/* The root of an active set keeps its dest. */
void collective_broadcast(struct group *group)
{
    struct operation operation;
    const struct type *type = draw_type(group);
    size_t count = collective_count(group, type->bytes, BYTES_MAX), bytes = count * type->bytes;
    int root = (int)quoit_prng_choose(&group->prng, (uint64_t)group->size);
    bool is_in_place = quoit_prng_choose(&group->prng, 4) == 0;
    collective_begin(&operation, group, type->bytes, bytes, bytes, is_in_place);
    collective_fill(&operation, group->rank, 0, operation.source, bytes);
    if (group->team != SHMEM_TEAM_INVALID || group->rank != root || is_in_place)
        collective_fill(&operation, root, 0, operation.model, bytes);
    int status = type->broadcast(group, operation.dest, operation.source, count, root);
    collective_end(&operation, "broadcast", type->name, status);
}

void collective_collect(struct group *group)
{
    struct operation operation;
    const struct type *type = draw_type(group);
    size_t most = collective_count(group, type->bytes, BYTES_MAX / (size_t)group->size);
    bool is_equal = quoit_prng_choose(&group->prng, 2) == 0;
    size_t counts[group->size], total = 0, at = 0;
    for (int rank = 0; rank < group->size; rank++) {
        counts[rank] = is_equal || quoit_prng_choose(&group->prng, 3) == 0
                           ? most
                           : quoit_prng_choose(&group->prng, 4) * quoit_prng_choose(&group->prng, most + 1) / 3;
        total += counts[rank] * type->bytes;
    }
    collective_begin(&operation, group, type->bytes, counts[group->rank] * type->bytes, total, false);
    collective_fill(&operation, group->rank, 0, operation.source, operation.source_bytes);
    for (int rank = 0; rank < group->size; at += counts[rank++] * type->bytes)
        collective_fill(&operation, rank, 0, operation.model + at, counts[rank] * type->bytes);
    int status =
        (is_equal ? type->fcollect : type->collect)(group, operation.dest, operation.source, counts[group->rank]);
    collective_end(&operation, is_equal ? "fcollect" : "collect", type->name, status);
}

void collective_alltoall(struct group *group)
{
    struct operation operation;
    const struct type *type = draw_type(group);
    size_t count = collective_count(group, type->bytes, BYTES_MAX / (size_t)group->size), bytes = count * type->bytes;
    size_t all = bytes * (size_t)group->size;
    collective_begin(&operation, group, type->bytes, all, all, false);
    collective_fill(&operation, group->rank, 0, operation.source, all);
    for (int rank = 0; rank < group->size; rank++)
        collective_fill(&operation, rank, (size_t)group->rank * bytes, operation.model + (size_t)rank * bytes, bytes);
    int status = type->alltoall(group, operation.dest, operation.source, count);
    collective_end(&operation, "alltoall", type->name, status);
}

/* Nothing need lie between the last element and the next stride. */
void collective_alltoalls(struct group *group)
{
    struct operation operation;
    const struct type *type = draw_type(group);
    size_t dst = 1 + quoit_prng_choose(&group->prng, 4), sst = 1 + quoit_prng_choose(&group->prng, 4);
    size_t size = (size_t)group->size;
    size_t count = collective_count(group, type->bytes, BYTES_MAX / (dst > sst ? dst : sst) / size);
    size_t last = count == 0 ? 0 : size * count - 1, first = count == 0 ? 0 : 1;
    collective_begin(&operation, group, type->bytes, (last * sst + first) * type->bytes,
                     (last * dst + first) * type->bytes, false);
    collective_fill(&operation, group->rank, 0, operation.source, operation.source_bytes);
    for (size_t rank = 0; rank < size; rank++)
        for (size_t i = 0; i < count; i++)
            collective_fill(&operation, (int)rank, ((size_t)group->rank * count + i) * sst * type->bytes,
                            operation.model + (rank * count + i) * dst * type->bytes, type->bytes);
    int status = type->alltoalls(group, operation.dest, operation.source, (ptrdiff_t)dst, (ptrdiff_t)sst, count);
    collective_end(&operation, "alltoalls", type->name, status);
}
