/* SPDX-License-Identifier: BSD-3-Clause */
/* busy [ROUNDS | until FILE]: every PE puts to every other, adds to a counter of its neighbour, and enters barriers;
 * for ever without an argument, or until FILE.end exists, with the number of the last round in FILE. Prints a line when
 * it has started. */
#include <fcntl.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES 20000

static char here[BYTES], there[BYTES];
static long counter, is_over;

/* Of PE 0. Read by all after the next barrier. */
static void look_for_end(const char *path, int fd, long round)
{
    char end[4096];
    snprintf(end, sizeof end, "%s.end", path);
    if (pwrite(fd, &round, sizeof round, 0) != (ssize_t)sizeof round)
        abort();
    for (int pe = 0; pe < shmem_n_pes() && access(end, F_OK) == 0; pe++)
        shmem_long_p(&is_over, 1, pe);
}

int main(int argc, char **argv)
{
    shmem_init();
    int me = shmem_my_pe(), pe_count = shmem_n_pes();
    const char *path = argc > 2 && strcmp(argv[1], "until") == 0 ? argv[2] : NULL;
    int fd = path && me == 0 ? open(path, O_WRONLY | O_CREAT, 0600) : -1;
    long rounds = argc > 1 && !path ? atol(argv[1]) : -1;
    char *heap = shmem_malloc(BYTES);
    shmem_barrier_all();
    if (me == 0) {
        printf("begun\n");
        fflush(stdout);
    }
    long ends = 0;
    for (long round = 0; round != rounds && !ends; round++) {
        if (fd >= 0)
            look_for_end(path, fd, round);
        for (int pe = 0; pe < pe_count; pe++)
            shmem_putmem(pe % 2 ? there : heap, here, BYTES, pe);
        shmem_long_atomic_inc(&counter, (me + 1) % pe_count);
        shmem_barrier_all();
        ends = is_over; /* the same on all: PE 0 may write it again after the next barrier */
        if (counter != round + 1) {
            printf("PE %d: counter is %ld in round %ld\n", me, counter, round);
            return 1;
        }
        shmem_barrier_all();
    }
    shmem_finalize();
    return 0;
}
