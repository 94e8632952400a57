/* SPDX-License-Identifier: BSD-3-Clause */
/* busy_target - what an atomic takes while its target waits in the library, and while it computes for half a second and
 * calls nothing. bench/network runs it with each library. Prints one line of JSON: the times of every call, in us. */
#include <shmem.h>
#include <stdio.h>
#include <time.h>

#define WAITED_COUNT 2000
#define SAMPLES_MAX  65536
#define COMPUTE_US   500000.0

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static long word, ready, begun;

static double add_us(void)
{
    double begin = now_us();
    shmem_long_atomic_fetch_add(&word, 1, 1);
    return now_us() - begin;
}

static void print(const char *name, const double *us, int count, const char *end)
{
    printf("\"%s\": [", name);
    for (int i = 0; i < count; i++)
        printf("%s%.2f", i ? ", " : "", us[i]);
    printf("]%s", end);
}

static void measure(void)
{
    static double waited[WAITED_COUNT], computed[SAMPLES_MAX];
    int count = 0;
    for (int i = 0; i < WAITED_COUNT; i++)
        waited[i] = add_us();
    shmem_long_p(&ready, 1, 1);
    shmem_quiet();
    shmem_long_wait_until(&begun, SHMEM_CMP_EQ, 1);
    for (double end = now_us() + 0.8 * COMPUTE_US; count < SAMPLES_MAX && now_us() < end; count++)
        computed[count] = add_us();
    printf("{");
    print("waits", waited, WAITED_COUNT, ", ");
    print("computes", computed, count, "}\n");
    fflush(stdout);
}

static void be_target(void)
{
    shmem_long_wait_until(&ready, SHMEM_CMP_EQ, 1);
    shmem_long_p(&begun, 1, 0);
    shmem_quiet();
    for (double end = now_us() + COMPUTE_US; now_us() < end;)
        ;
}

int main(void)
{
    shmem_init();
    if (shmem_my_pe() == 0)
        measure();
    else if (shmem_my_pe() == 1)
        be_target();
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
