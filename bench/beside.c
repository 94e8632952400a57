/* SPDX-License-Identifier: BSD-3-Clause */
/* beside - what a job gets of a link: the rate of large puts from PE 0 to PE 1, then the time of barriers between the
 * two; bench/ethernet_jobs runs it alone and beside Ethernet. Use: beside SECONDS, of each. Prints MB/s, and us of a
 * barrier: the mean, and the middle one of short series, most of which no other program interrupts. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BYTES       (1u << 20)
#define PUTS_A_LOOK 4
#define BARRIERS    10 /* of a series */
#define SERIES      10
#define SERIES_MAX  (1u << 20)

static double now_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int by_time(const void *one, const void *other)
{
    const double *first = one, *second = other;
    return (*first > *second) - (*first < *second);
}

static double put_rate(char *block, double seconds)
{
    long put_count = 0;
    double begin = now_s();
    for (; now_s() < begin + seconds; put_count += PUTS_A_LOOK) {
        for (int i = 0; i < PUTS_A_LOOK; i++)
            shmem_putmem(block, block, BYTES, 1);
        shmem_quiet();
    }
    return (double)put_count * BYTES / 1e6 / (now_s() - begin);
}

/* Fills `series` with the seconds of each; returns their count. */
static size_t time_barriers(int *goes_on, double seconds, double *series)
{
    size_t count = 0;
    double begin = now_s();
    while (*goes_on) { /* PE 0 decides, and says so in the barriers' shadow */
        for (int i = 0; i < SERIES; i++) {
            double start = now_s();
            for (int k = 0; k < BARRIERS; k++)
                shmem_barrier_all();
            series[count++] = now_s() - start;
        }
        if (shmem_my_pe() == 0)
            shmem_int_p(goes_on, *goes_on = now_s() < begin + seconds && count <= SERIES_MAX - SERIES, 1);
        shmem_barrier_all();
    }
    return count;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    shmem_init();
    char *block = shmem_malloc(BYTES);
    int *goes_on = shmem_malloc(sizeof *goes_on);
    double *series = malloc(SERIES_MAX * sizeof *series);
    if (!series)
        return 1;
    *goes_on = 1;
    shmem_barrier_all();
    if (shmem_my_pe() == 0)
        printf("%.1f ", put_rate(block, seconds));
    shmem_barrier_all();
    size_t count = time_barriers(goes_on, seconds, series);
    if (shmem_my_pe() == 0) {
        double sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += series[i];
        qsort(series, count, sizeof *series, by_time);
        printf("%.2f %.2f\n", 1e6 * sum / (double)(count * BARRIERS), 1e6 * series[count / 2] / BARRIERS);
    }
    free(series);
    shmem_finalize();
    return 0;
}
