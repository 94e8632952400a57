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

# Rounds in which each byte gets another writer, which changes what the one before has left: every page is written by all PEs.
# Each PE writes what it sees at the end into a file. DSM_SHARED bytes lie among the program's own variables.
DSM_BYTES = """#include <dsm.h>
#include <stdio.h>
#define BYTES 40000
#define MARKED 6000
#define ROUNDS 6
DSM_SHARED unsigned char marked[MARKED] = {9, 8, 7};
static unsigned char change(unsigned at, unsigned round) { return (unsigned char)((at * 2654435761u + round * 40503u) >> 13); }
int main(int argc, char **argv)
{
    unsigned n = (unsigned)dsm_n_pes(), me = (unsigned)dsm_my_pe();
    unsigned char *bytes = (unsigned char *)dsm_all_malloc(BYTES);
    char name[4096];
    for (unsigned round = 1; round <= ROUNDS; round++) {
        for (unsigned i = 0; i < BYTES; i++)
            if ((i / 3 + round) % n == me)
                bytes[i] = (unsigned char)(bytes[i] * 3 + change(i, round));
        for (unsigned i = 0; i < MARKED; i++)
            if ((i / 3 + round) % n == me)
                marked[i] = (unsigned char)(marked[i] * 3 + change(i, round + 100));
        dsm_barrier_all();
    }
    snprintf(name, sizeof name, "%s.%u", argv[1], me);
    FILE *file = argc == 2 ? fopen(name, "wb") : NULL;
    for (unsigned i = 0; file && i < BYTES; i++)
        putc(bytes[i], file);
    for (unsigned i = 0; file && i < MARKED; i++)
        putc(marked[i], file);
    return !file || fclose(file) != 0;
}
"""


def dsm_bytes():
    """What DSM_BYTES writes, however many PEs it has."""
    def after(start, first_round):
        left = list(start)
        for number in range(first_round + 1, first_round + 7):
            for i, before in enumerate(left):
                left[i] = (before * 3 + (((i * 2654435761 + number * 40503) & 0xffffffff) >> 13)) & 0xff
        return bytes(left)
    return after(bytes(40000), 0) + after(bytes([9, 8, 7]) + bytes(5997), 100)
