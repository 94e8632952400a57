/* SPDX-License-Identifier: BSD-3-Clause */
/* collectives.c - how long one call of each collective takes over all PEs, 8 B to 1 MiB a PE.
 *
 * Use: collectives WHERE [SAMPLES]     WHERE is a word for the output
 * The standard API alone, so that bench/compare can build it with other libraries: the calls of teams where the library
 * has them (1.5), else, or with -DBENCH_ACTIVE_SET, those of active sets. Calls follow each other as in a program that
 * computes little; only after CALLS_MAX of them is there a barrier, as the work arrays of active sets want it. The time
 * is that of PE 0. bytes is what one PE gives: to all (broadcast, reduce, collect, fcollect), or to each (alltoall).
 * What came is compared with what it should be after each size.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <shmem.h>

#include "samples.h"

#if SHMEM_MAJOR_VERSION == 1 && SHMEM_MINOR_VERSION < 5 && !defined(BENCH_ACTIVE_SET)
#define BENCH_ACTIVE_SET
#endif

#define CALLS_MAX   16
#define SAMPLES_MAX 100
#define BATCH_NS    400000.0 /* short, so that some meet no disturbance */
#define BATCH_CALLS 1024

static int me, npes;
static uint64_t *source, *dest;
static long calls; /* symmetric: how many PE 0 chose */

#ifdef BENCH_ACTIVE_SET
#define SYNC_SIZE 1024 /* at least every SHMEM_*_SYNC_SIZE, which are constants of the library */
static long syncs[CALLS_MAX][SYNC_SIZE];
static long work[(1 << 17) + 1024];
#define SET 0, 0, npes
static void begin(void)
{
    for (int i = 0; i < CALLS_MAX; i++)
        for (int at = 0; at < SYNC_SIZE; at++)
            syncs[i][at] = SHMEM_SYNC_VALUE;
}
static void broadcast(size_t count, int i)
{
    shmem_broadcast64(dest, source, count, 0, SET, syncs[i]);
}
static void reduce(size_t count, int i)
{
    shmem_long_sum_to_all((long *)dest, (long *)source, (int)count, SET, work, syncs[i]);
}
static void collect(size_t count, int i)
{
    shmem_collect64(dest, source, count, SET, syncs[i]);
}
static void fcollect(size_t count, int i)
{
    shmem_fcollect64(dest, source, count, SET, syncs[i]);
}
static void alltoall(size_t count, int i)
{
    shmem_alltoall64(dest, source, count, SET, syncs[i]);
}
#else
static void begin(void)
{
}
static void broadcast(size_t count, int i)
{
    (void)i;
    shmem_uint64_broadcast(SHMEM_TEAM_WORLD, dest, source, count, 0);
}
static void reduce(size_t count, int i)
{
    (void)i;
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, (long *)dest, (long *)source, count);
}
static void collect(size_t count, int i)
{
    (void)i;
    shmem_uint64_collect(SHMEM_TEAM_WORLD, dest, source, count);
}
static void fcollect(size_t count, int i)
{
    (void)i;
    shmem_uint64_fcollect(SHMEM_TEAM_WORLD, dest, source, count);
}
static void alltoall(size_t count, int i)
{
    (void)i;
    shmem_uint64_alltoall(SHMEM_TEAM_WORLD, dest, source, count);
}
#endif
static void barrier(size_t count, int i)
{
    (void)count;
    (void)i;
    shmem_barrier_all();
}

static uint64_t given(int pe, size_t at)
{
    return (uint64_t)pe * 1000003 + at * 7 + 1;
}

static uint64_t expect_broadcast(size_t count, size_t at)
{
    (void)count;
    return given(0, at);
}
static uint64_t expect_reduce(size_t count, size_t at)
{
    uint64_t sum = 0;
    (void)count;
    for (int pe = 0; pe < npes; pe++)
        sum += given(pe, at);
    return sum;
}
static uint64_t expect_collect(size_t count, size_t at)
{
    return given((int)(at / count), at % count);
}
static uint64_t expect_alltoall(size_t count, size_t at)
{
    return given((int)(at / count), (size_t)me * count + at % count);
}

struct deed {
    const char *name;
    void (*call)(size_t count, int i);
    uint64_t (*expect)(size_t count, size_t at); /* NULL: no data */
    int gets_all;                                /* dest is as long as what all PEs give */
};

static double batch_ns(const struct deed *deed, size_t count)
{
    shmem_barrier_all();
    double start = bench_now_ns();
    for (long i = 0; i < calls; i++) {
        deed->call(count, (int)(i % CALLS_MAX));
        if (i % CALLS_MAX == CALLS_MAX - 1 && deed->expect)
            shmem_barrier_all();
    }
    double ns = bench_now_ns() - start;
    shmem_barrier_all();
    return ns / (double)calls;
}

static void check(const struct deed *deed, size_t count)
{
    size_t length = count * (deed->gets_all ? (size_t)npes : 1);
    if (!deed->expect || (me == 0 && deed->expect == expect_broadcast)) /* the root's own dest is not always written */
        return;
    for (size_t at = 0; at < length; at++)
        if (dest[at] != deed->expect(count, at)) {
            fprintf(stderr, "collectives: %s of %zu bytes: element %zu of PE %d is wrong\n", deed->name, count * 8, at,
                    me);
            shmem_global_exit(1);
        }
}

static void measure(const struct deed *deed, size_t bytes, int sample_count, const char *where)
{
    double ns[SAMPLES_MAX];
    size_t count = bytes / 8;
    memset(dest, 0xa5, bytes * (size_t)npes);
    calls = 4;
    batch_ns(deed, count);
    long chosen = (long)(BATCH_NS / batch_ns(deed, count));
    chosen = chosen < 4 ? 4 : chosen > BATCH_CALLS ? BATCH_CALLS : chosen;
    if (me == 0)
        for (int pe = 0; pe < npes; pe++)
            shmem_long_p(&calls, chosen, pe);
    shmem_barrier_all();
    for (int i = 0; i < sample_count; i++)
        ns[i] = batch_ns(deed, count);
    check(deed, count);
    if (me != 0)
        return;
    printf("{\"where\": \"%s\", \"what\": \"%s\", \"pes\": %d, \"bytes\": %zu, \"ns\": [", where, deed->name, npes,
           deed->expect ? bytes : 0);
    for (int i = 0; i < sample_count; i++)
        printf("%s%.1f", i == 0 ? "" : ", ", ns[i]);
    printf("]}\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const struct deed deeds[] = {{"broadcast", broadcast, expect_broadcast, 0},
                                        {"reduce", reduce, expect_reduce, 0},
                                        {"collect", collect, expect_collect, 1},
                                        {"fcollect", fcollect, expect_collect, 1},
                                        {"alltoall", alltoall, expect_alltoall, 1}};
    static const struct deed empty = {"barrier", barrier, NULL, 0};
    static const size_t sizes[] = {8, 1 << 10, 1 << 16, 1 << 20};
    int sample_count = argc > 2 ? atoi(argv[2]) : 15;
    if (argc < 2 || sample_count < 1 || sample_count > SAMPLES_MAX) {
        fprintf(stderr, "use: collectives WHERE [SAMPLES]\n");
        return 2;
    }
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    size_t most = (size_t)npes << 20;
    source = (uint64_t *)shmem_malloc(most);
    dest = (uint64_t *)shmem_malloc(most);
    if (!source || !dest)
        shmem_global_exit(1);
    begin();
    for (size_t at = 0; at < most / 8; at++)
        source[at] = given(me, at);
    measure(&empty, 8, sample_count, argv[1]);
    for (size_t d = 0; d < sizeof deeds / sizeof deeds[0]; d++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            measure(&deeds[d], sizes[s], sample_count, argv[1]);
    shmem_free(dest);
    shmem_free(source);
    shmem_finalize();
    return 0;
}
