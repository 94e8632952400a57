/* SPDX-License-Identifier: BSD-3-Clause */
#include <shmem.h>
#include <stdio.h>

static long counter, tickets, owner = -1;
static unsigned long bits;

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes();

    /* All PEs at PE 0, with no lock. */
    shmem_long_atomic_inc(&counter, 0);
    shmem_long_atomic_add(&counter, 7, 0);
    long before_two = shmem_long_atomic_fetch_add(&counter, 2, 0);
    long ticket = shmem_long_atomic_fetch_inc(&tickets, 0);          /* another number on each PE */
    long before = shmem_long_atomic_compare_swap(&owner, -1, me, 0); /* -1 on the PE that came first alone */
    shmem_ulong_atomic_or(&bits, 1ul << me, 0);
    unsigned long seen = shmem_ulong_atomic_fetch_or(&bits, 0, 0);
    shmem_barrier_all();
    int is_wrong = shmem_long_atomic_fetch(&counter, 0) != 10 * pes || !(seen >> me & 1) || before_two < 8 ||
                   ticket >= pes || (before == -1) != (shmem_long_atomic_fetch(&owner, 0) == me);
    if (before == -1)
        printf("PE %d came first, ticket %ld\n", me, ticket);
    shmem_barrier_all();

    /* Without waiting for the result: it is there after the next quiet. */
    long was[4];
    unsigned long masks[3];
    shmem_long_atomic_fetch_nbi(&was[0], &counter, 0);
    shmem_long_atomic_fetch_inc_nbi(&was[1], &counter, 0);
    shmem_long_atomic_fetch_add_nbi(&was[2], &counter, -1, 0);
    shmem_long_atomic_compare_swap_nbi(&was[3], &owner, -2, me, 0);
    shmem_ulong_atomic_fetch_and_nbi(&masks[0], &bits, ~0ul, 0);
    shmem_ulong_atomic_fetch_or_nbi(&masks[1], &bits, 0, 0);
    shmem_ulong_atomic_fetch_xor_nbi(&masks[2], &bits, 0, 0);
    shmem_quiet();
    is_wrong |= was[0] < 10 * pes || masks[0] != (1ul << pes) - 1;
    shmem_barrier_all();

    /* Each PE in its own word. */
    shmem_ulong_atomic_set(&bits, 12, me);
    shmem_ulong_atomic_and(&bits, 10, me);                            /* 8 */
    shmem_ulong_atomic_xor(&bits, 1, me);                             /* 9 */
    unsigned long first = shmem_ulong_atomic_fetch_and(&bits, 8, me); /* gives 9, leaves 8 */
    unsigned long next = shmem_ulong_atomic_fetch_xor(&bits, 3, me);  /* gives 8, leaves 11 */
    unsigned long last = shmem_ulong_atomic_swap(&bits, 0, me), none = 1;
    shmem_ulong_atomic_swap_nbi(&none, &bits, 5, me);
    shmem_quiet();
    is_wrong |= first != 9 || next != 8 || last != 11 || none != 0 || bits != 5;
    shmem_finalize();
    return is_wrong;
}
