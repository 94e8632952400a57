/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: with more PEs than processors a polling loop takes little more time than a wait. Method: a word travels around
 * all PEs; each detects its arrival by one of the routines that poll, or waits for it. All routines take turns, several
 * times over, and the smallest time of each is compared, since other processes use this machine too. One routine polls
 * a condition that holds until it becomes false.
 *
 * Use: poll [MOST]      the largest allowed ratio to the time of shmem_int_wait_until (4)
 */
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS  40
#define BATCHES 9
#define SKIP_NS 400000000 /* a longer batch is not repeated */

static int word;             /* symmetric */
static uint64_t signal_word; /* symmetric */
static long lock;            /* symmetric */
static int me, npes, next;
static volatile int *const seen = &word;

static void wait_until(int round)
{
    shmem_int_wait_until(&word, SHMEM_CMP_GE, round);
}
static void test(int round)
{
    while (!shmem_int_test(&word, SHMEM_CMP_GE, round))
        ;
}
static void test_while_it_holds(int round)
{
    while (shmem_int_test(&word, SHMEM_CMP_LT, round))
        ;
}
static void test_any(int round)
{
    while (shmem_int_test_any(&word, 1, NULL, SHMEM_CMP_GE, round) == SIZE_MAX)
        ;
}
static void get(int round)
{
    while (shmem_int_g(&word, me) < round)
        ;
}
static void fetch(int round)
{
    while (shmem_int_atomic_fetch(&word, me) < round)
        ;
}
static void compare_swap(int round)
{
    while (shmem_int_atomic_compare_swap(&word, round, round, me) != round)
        ;
}
static void signal_fetch(int round)
{
    while (shmem_signal_fetch(&signal_word) < (uint64_t)round)
        ;
}
static void quiet(int round)
{
    while (*seen < round)
        shmem_quiet();
}
static void fence(int round)
{
    while (*seen < round)
        shmem_fence();
}
static void test_lock(int round)
{
    (void)round;
    while (shmem_test_lock(&lock))
        ;
    shmem_clear_lock(&lock);
}

static const struct {
    const char *name;
    void (*find_out)(int round);
} ways[] = {
    {"wait_until", wait_until},
    {"test", test},
    {"test, while it holds", test_while_it_holds},
    {"test_any", test_any},
    {"g", get},
    {"atomic_fetch", fetch},
    {"atomic_compare_swap", compare_swap},
    {"signal_fetch", signal_fetch},
    {"quiet", quiet},
    {"fence", fence},
    {"test_lock", test_lock},
};
#define WAY_COUNT (sizeof ways / sizeof ways[0])

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void pass_on(int round)
{
    shmem_int_p(&word, round, next);
    shmem_signal_set(&signal_word, (uint64_t)round, next);
}

/* Nanoseconds of a round. For a lock all PEs compete instead. */
static int64_t batch(size_t way)
{
    shmem_barrier_all();
    word = 0;
    signal_word = 0;
    shmem_barrier_all();
    int64_t begin_ns = now_ns();
    for (int round = 1; round <= ROUNDS; round++) {
        if (ways[way].find_out == test_lock) {
            test_lock(round);
            continue;
        }
        if (me == 0)
            pass_on(round);
        ways[way].find_out(round);
        if (me != 0)
            pass_on(round);
    }
    shmem_barrier_all();
    return (now_ns() - begin_ns) / ROUNDS;
}

int main(int argc, char **argv)
{
    int64_t least_ns[WAY_COUNT];
    static int is_slow[WAY_COUNT]; /* symmetric: broadcast by PE 0 */
    double most = argc > 1 ? strtod(argv[1], NULL) : 4;
    int status = 0;
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    next = (me + 1) % npes;
    for (size_t way = 0; way < WAY_COUNT; way++)
        least_ns[way] = INT64_MAX;
    for (int i = 0; i < BATCHES; i++)
        for (size_t way = 0; way < WAY_COUNT; way++) {
            if (is_slow[way])
                continue;
            int64_t ns = batch(way);
            least_ns[way] = ns < least_ns[way] ? ns : least_ns[way];
            if (me == 0 && ns * ROUNDS > SKIP_NS)
                is_slow[way] = 1;
            shmem_broadcastmem(SHMEM_TEAM_WORLD, &is_slow[way], &is_slow[way], sizeof is_slow[way], 0);
        }
    for (size_t way = 0; me == 0 && way < WAY_COUNT; way++) {
        double times = (double)least_ns[way] / (double)least_ns[0];
        printf("%-22s%12.2f us a round of %d PEs%8.2f x\n", ways[way].name, (double)least_ns[way] / 1e3, npes, times);
        if (times > most) {
            fprintf(stderr, "poll: %s takes %.1f times as long as wait_until, but at most %.1f are allowed\n",
                    ways[way].name, times, most);
            status = 1;
        }
    }
    shmem_finalize();
    return status;
}
