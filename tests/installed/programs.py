# SPDX-License-Identifier: BSD-3-Clause
"""Programs that the tests of the installed copy build: C++, generic routines of C11, shared pages alone."""

CXX = """#include <shmem.h>
#include <iostream>
int main()
{
    shmem_init();
    std::cout << "hello from PE " << shmem_my_pe() << " of " << shmem_n_pes() << "\\n";
    shmem_finalize();
}
"""

# Each PE puts to the next by a generic routine and fetches from it by another.
C11 = """#include <shmem.h>
#include <stdio.h>
static double from;
static long count;
int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes(), next = (me + 1) % n;
    shmem_p(&from, me + 0.5, next);
    shmem_atomic_add(&count, 1L, 0);
    shmem_barrier_all();
    if (shmem_g(&from, next) != me + 0.5 || shmem_atomic_fetch(&count, 0) != n)
        shmem_global_exit(1);
    if (me == 0)
        printf("%d PEs of generic\\n", n);
    shmem_finalize();
    return 0;
}
"""

# Names no routine of shmem.h, so that a linker with --as-needed leaves libshmem out of what the program needs.
DSM = """#include <dsm.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    int n = dsm_n_pes(), *word = dsm_all_malloc((size_t)n * sizeof *word), sum = 0;
    word[dsm_my_pe()] = 7 + dsm_my_pe();
    dsm_barrier_all();
    for (int pe = 0; pe < n; pe++)
        sum += word[pe];
    if (dsm_my_pe() == 0)
        printf("sum of %d PEs is %d\\n", n, sum);
    return sum != 7 * n + n * (n - 1) / 2;
}
"""
DSM_2 = "sum of 2 PEs is 15\n"
