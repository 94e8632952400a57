/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: collectives of the public header give what a sequential program would, byte for byte, on any number of hosts,
 * one after another without a barrier, on the world and on teams made by splits (also splits of splits). Method: all
 * PEs draw the same operations from one seed; contents are functions of (step, rank, position), so each PE computes
 * what it must get. After each operation the source is overwritten at once, and dest is compared and filled anew.
 * Arguments: SEED STEPS; a failure is replayed with the seed that it prints. */
#include "base/prng.h"

#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES_MAX  (1u << 20)
#define TEAMS_DEEP 3

static uint64_t seed, step_index;
static struct quoit_prng common, private;
static unsigned char *source, *dest, *model, *block;
static shmem_team_t team;
static int rank, size;

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 33)) * 0xff51afd7ed558ccdu;
    z = (z ^ (z >> 33)) * 0xc4ceb9fe1a85ec53u;
    return z ^ (z >> 33);
}

static void fill(int of_rank, unsigned char *to, size_t bytes)
{
    uint64_t key = mix(seed * 7919 + step_index) + (uint64_t)of_rank * 0x9e3779b97f4a7c15u;
    for (size_t at = 0; at < bytes; at++)
        to[at] = (unsigned char)(key >> (at % 8 * 8)) ^ (unsigned char)(at * 131 + at / 256);
}

static void use(shmem_team_t used)
{
    team = used;
    rank = shmem_team_my_pe(team);
    size = shmem_team_n_pes(team);
}

static void delay(void)
{
    if (quoit_prng_choose(&private, 10) == 0)
        nanosleep(&(struct timespec){.tv_nsec = (long)quoit_prng_choose(&private, 400000)}, NULL);
}

/* Then the source is anyone's again. */
static void check(const char *what, size_t source_bytes, size_t bytes)
{
    memset(source, 0x3c, source_bytes);
    delay();
    for (size_t i = 0; i < bytes; i++) {
        if (dest[i] != model[i]) {
            fprintf(stderr, "PE %d, rank %d of %d, step %llu, seed %llu: %s of %zu bytes differs at byte %zu\n",
                    shmem_my_pe(), rank, size, (unsigned long long)step_index, (unsigned long long)seed, what, bytes,
                    i);
            shmem_global_exit(1);
        }
    }
    if (dest[bytes] != 0x5a) {
        fprintf(stderr, "PE %d, rank %d of %d, step %llu, seed %llu: %s of %zu bytes wrote past its end\n",
                shmem_my_pe(), rank, size, (unsigned long long)step_index, (unsigned long long)seed, what, bytes);
        shmem_global_exit(1);
    }
}

/* A dest of `bytes`; the byte behind it is watched. */
static void prepare(size_t bytes)
{
    memset(dest, 0xee, bytes);
    dest[bytes] = 0x5a;
    delay();
}

static size_t draw(size_t most)
{
    size_t limit = (size_t)1 << quoit_prng_choose(&common, 21);
    return quoit_prng_choose(&common, (limit < most ? limit : most) + 1);
}

static void broadcast(void)
{
    size_t bytes = draw(BYTES_MAX);
    int root = (int)quoit_prng_choose(&common, (uint64_t)size);
    fill(root, model, bytes);
    fill(rank, source, bytes);
    prepare(bytes);
    shmem_broadcastmem(team, dest, source, bytes, root);
    check("broadcast", bytes, bytes);
}

static void collect(void)
{
    size_t most = draw(BYTES_MAX / (size_t)size), own = 0, total = 0;
    int is_equal = (int)quoit_prng_choose(&common, 2);
    for (int i = 0; i < size; i++) {
        size_t bytes = is_equal ? most : quoit_prng_choose(&common, most + 1);
        fill(i, model + total, bytes);
        own = i == rank ? bytes : own;
        total += bytes;
    }
    fill(rank, source, own);
    prepare(total);
    if (is_equal)
        shmem_fcollectmem(team, dest, source, own);
    else
        shmem_collectmem(team, dest, source, own);
    check(is_equal ? "fcollect" : "collect", own, total);
}

static void alltoall(void)
{
    size_t bytes = draw(BYTES_MAX / (size_t)size), all = bytes * (size_t)size;
    for (int i = 0; i < size; i++) {
        fill(i, block, all);
        memcpy(model + (size_t)i * bytes, block + (size_t)rank * bytes, bytes);
    }
    fill(rank, source, all);
    prepare(all);
    shmem_alltoallmem(team, dest, source, bytes);
    check("alltoall", all, all);
}

static void reduce(void)
{
    size_t count = draw(BYTES_MAX) / 8;
    int is_in_place = quoit_prng_choose(&common, 3) == 0;
    uint64_t *sum = (uint64_t *)model, *term = (uint64_t *)block;
    memset(sum, 0, count * 8);
    for (int i = 0; i < size; i++) {
        fill(i, block, count * 8);
        for (size_t at = 0; at < count; at++)
            sum[at] += term[at];
    }
    prepare(count * 8);
    fill(rank, is_in_place ? dest : source, count * 8);
    shmem_uint64_sum_reduce(team, (uint64_t *)dest, (uint64_t *)(is_in_place ? dest : source), count);
    check("sum", count * 8, count * 8);
}

static void scan(void)
{
    size_t count = draw(BYTES_MAX / 8) / 4;
    int is_inclusive = (int)quoit_prng_choose(&common, 2);
    uint32_t *sum = (uint32_t *)model, *term = (uint32_t *)block;
    memset(sum, 0, count * 4);
    for (int i = 0; i < rank + is_inclusive; i++) {
        fill(i, block, count * 4);
        for (size_t at = 0; at < count; at++)
            sum[at] += term[at];
    }
    fill(rank, source, count * 4);
    prepare(count * 4);
    if (is_inclusive)
        shmem_uint32_sum_inscan(team, (uint32_t *)dest, (uint32_t *)source, count);
    else
        shmem_uint32_sum_exscan(team, (uint32_t *)dest, (uint32_t *)source, count);
    check("scan", count * 4, count * 4);
}

/* A put to the next rank is there after quiet and sync. */
static void barrier(void)
{
    static long news;
    int next = shmem_team_translate_pe(team, (rank + 1) % size, SHMEM_TEAM_WORLD);
    shmem_team_sync(team);
    shmem_long_p(&news, (long)step_index, next);
    shmem_quiet();
    shmem_team_sync(team);
    if (news != (long)step_index) {
        fprintf(stderr, "PE %d, step %llu, seed %llu: a put before sync came after it\n", shmem_my_pe(),
                (unsigned long long)step_index, (unsigned long long)seed);
        shmem_global_exit(1);
    }
    shmem_team_sync(team);
}

static void step(int depth);

/* The PEs of the team fall apart by turns; each new team works on its own, and may split again. */
static void split(int depth)
{
    shmem_team_t parent = team;
    int stride = 1 + (int)quoit_prng_choose(&common, (uint64_t)size);
    int count = (int)quoit_prng_choose(&common, 6);
    shmem_team_t made = SHMEM_TEAM_INVALID;
    for (int first = 0; first < stride; first++) {
        shmem_team_t other;
        shmem_team_split_strided(parent, first, stride, (size - first + stride - 1) / stride, NULL, 0, &other);
        if (other != SHMEM_TEAM_INVALID)
            made = other;
    }
    if (made == SHMEM_TEAM_INVALID) {
        fprintf(stderr, "PE %d, step %llu, seed %llu: no team came of a split\n", shmem_my_pe(),
                (unsigned long long)step_index, (unsigned long long)seed);
        shmem_global_exit(1);
    }
    uint64_t saved_step = step_index;
    struct quoit_prng saved = common;
    common.state ^= (uint64_t)(rank % stride) * 0x9e3779b97f4a7c15u;
    use(made);
    for (int i = 0; i < count; i++)
        step(depth + 1);
    shmem_team_destroy(made);
    common = saved;
    step_index = saved_step + 1000;
    use(parent);
    shmem_team_sync(team);
}

static void step(int depth)
{
    static void (*const operations[])(void) = {broadcast, collect, alltoall, reduce, scan, barrier};
    step_index++;
    if (depth < TEAMS_DEEP && quoit_prng_choose(&common, 15) == 0)
        split(depth);
    else
        operations[quoit_prng_choose(&common, sizeof operations / sizeof operations[0])]();
}

int main(int argc, char **argv)
{
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int step_count = argc > 2 ? atoi(argv[2]) : 100;
    shmem_init();
    common.state = seed;
    private.state = seed * 1000 + (uint64_t)shmem_my_pe();
    source = shmem_malloc(BYTES_MAX + 64);
    dest = shmem_malloc(BYTES_MAX + 64);
    model = malloc(BYTES_MAX + 64);
    block = malloc(BYTES_MAX + 64);
    use(SHMEM_TEAM_WORLD);
    for (int i = 0; i < step_count; i++)
        step(0);
    shmem_barrier_all();
    if (shmem_my_pe() == 0)
        printf("collectives: %d steps on %d PEs, seed %llu: ok\n", step_count, size, (unsigned long long)seed);
    shmem_finalize();
    return 0;
}
