/* SPDX-License-Identifier: BSD-3-Clause */
/* beside - what a job gets of a link: the rate of large puts from PE 0 to PE 1, then the time of barriers between the
 * two; bench/ethernet_jobs runs it alone and beside Ethernet. Use: beside SECONDS, of each. Prints MB/s and us. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BYTES       (1u << 20)
#define PUTS_A_LOOK 4
#define BARRIERS    100

static double now_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    shmem_init();
    char *block = shmem_malloc(BYTES);
    int *goes_on = shmem_malloc(sizeof *goes_on);
    *goes_on = 1;
    shmem_barrier_all();
    if (shmem_my_pe() == 0) {
        long put_count = 0;
        double begin = now_s();
        for (; now_s() < begin + seconds; put_count += PUTS_A_LOOK) {
            for (int i = 0; i < PUTS_A_LOOK; i++)
                shmem_putmem(block, block, BYTES, 1);
            shmem_quiet();
        }
        printf("%.1f ", (double)put_count * BYTES / 1e6 / (now_s() - begin));
    }
    long barrier_count = 0;
    shmem_barrier_all();
    double begin = now_s();
    while (*goes_on) { /* PE 0 decides, and says so in the barriers' shadow */
        for (int i = 0; i < BARRIERS; i++)
            shmem_barrier_all();
        barrier_count += BARRIERS;
        if (shmem_my_pe() == 0)
            shmem_int_p(goes_on, *goes_on = now_s() < begin + seconds, 1);
        shmem_barrier_all();
    }
    if (shmem_my_pe() == 0)
        printf("%.2f\n", 1e6 * (now_s() - begin) / (double)barrier_count);
    shmem_finalize();
    return 0;
}
