/* SPDX-License-Identifier: BSD-3-Clause */
/* pages ROUNDS: in each round a PE writes its own PAGES pages, reads those of the next PE, and takes a lock, each in a
 * line whose comment the test looks for. Pages have their homes at their writers. */
#include <dsm.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

#define PAGES 5
#define BYTES 4096

/* Of a PE. */
static char *page_of(char *pages, int pe, int page)
{
    return pages + (size_t)(pe * PAGES + page) * BYTES;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    dsm_init(); /* /init */
    int me = dsm_my_pe(), n = dsm_n_pes();
    long rounds = atol(argv[1]);
    char *pages = dsm_all_malloc((size_t)(n * PAGES + 3) * BYTES); /* /malloc */
    pages = (char *)(((uintptr_t)pages + BYTES) / BYTES * BYTES);
    for (int pe = 0; pe < n; pe++)
        dsm_migrate(page_of(pages, pe, 0), PAGES * BYTES, pe); /* /migrate */
    long *counter = (long *)(void *)page_of(pages, n, 0);
    dsm_lock_t *lock = (dsm_lock_t *)(void *)page_of(pages, n, 1);
    long sum = 0;
    for (long round = 0; round < rounds; round++) {
        for (int page = 0; page < PAGES; page++)
            *page_of(pages, me, page) = (char)(round + 1); /* /write */
        dsm_barrier_all();                                 /* /written */
        for (int page = 0; page < PAGES; page++)
            sum += *page_of(pages, (me + 1) % n, page); /* /read */
        dsm_lock(lock);                                 /* /lock */
        *counter += 1;                                  /* /count */
        dsm_unlock(lock);                               /* /unlock */
        dsm_barrier_all();                              /* /done */
    }
    if (sum != PAGES * rounds * (rounds + 1) / 2 || *counter != n * rounds)
        return 1;
    shmem_barrier_all(); /* /own */
    dsm_finalize();      /* /end */
    return 0;
}
