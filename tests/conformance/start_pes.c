/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: the names that predate the prefix shmem_ (appendix F), and the end of a job by shmem_global_exit (9.1). Method:
 * old names compared with new ones; then the last PE ends the job while the others wait for a flag that never comes:
 * the job's status is that of the last PE. */
#include "check.h"

static long never;
static long failed_count;

int main(void)
{
    int is_initialized;
    start_pes(0);
    start_pes(0); /* no effect: a single finalize is the last */
    shmem_finalize();
    shmem_query_initialized(&is_initialized);
    CHECK(!is_initialized, "initialized after the only finalize");
    start_pes(0);
    me = _my_pe();
    npes = _num_pes();
    CHECK(me == shmem_my_pe() && npes == shmem_n_pes() && me < npes, "PE %d of %d", me, npes);
    long *block = shmalloc(8 * sizeof *block), *aligned = shmemalign(4096, 64);
    CHECK(block && aligned && (uintptr_t)aligned % 4096 == 0, "the old heap");
    for (int i = 0; i < 8; i++)
        block[i] = me * 10 + i;
    block = shrealloc(block, 1000 * sizeof *block);
    for (int i = 0; i < 8; i++)
        CHECK(shmem_long_g(&block[i], (me + 1) % npes) == (me + 1) % npes * 10 + i, "shrealloc keeps element %d", i);
    shmem_barrier_all();
    shfree(aligned);
    shfree(block);
    shmem_long_atomic_add(&failed_count, check_failed_count, npes - 1);
    shmem_barrier_all();
    if (me != npes - 1)
        shmem_long_wait_until(&never, SHMEM_CMP_NE, 0);
    if (failed_count == 0)
        printf("start_pes: ok on %d PEs\n", npes);
    fflush(stdout);
    shmem_global_exit(failed_count == 0 ? 0 : 1);
}
