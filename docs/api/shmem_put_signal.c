/* SPDX-License-Identifier: BSD-3-Clause */
#include <shmem.h>
#include <stdio.h>

static long data[4];
static uint64_t arrived;

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes(), right = (me + 1) % pes;
    long row[4] = {me, me + 1, me + 2, me + 3};

    /* The signal is seen after the data: no barrier is needed. */
    shmem_long_put_signal(data, row, 4, &arrived, 1, SHMEM_SIGNAL_SET, right);
    shmem_signal_wait_until(&arrived, SHMEM_CMP_EQ, 1);
    int left = (me + pes - 1) % pes, is_wrong = data[3] != left + 3;
    printf("PE %d: %ld to %ld\n", me, data[0], data[3]);
    shmem_sync_all(); /* everybody has read: now the next round may write */

    /* In bytes, in words of 64 bits, and without waiting until `row` may be used again. */
    shmem_putmem_signal(data, row, sizeof row, &arrived, 1, SHMEM_SIGNAL_ADD, right);
    shmem_put64_signal(data, row, 4, &arrived, 1, SHMEM_SIGNAL_ADD, right);
    shmem_long_put_signal_nbi(data, row, 4, &arrived, 1, SHMEM_SIGNAL_ADD, right);
    shmem_put64_signal_nbi(data, row, 4, &arrived, 1, SHMEM_SIGNAL_ADD, right);
    shmem_putmem_signal_nbi(data, row, sizeof row, &arrived, 1, SHMEM_SIGNAL_ADD, right);
    shmem_signal_add(&arrived, 10, right); /* a signal alone */
    shmem_signal_wait_until(&arrived, SHMEM_CMP_GE, 16);
    shmem_barrier_all();
    is_wrong |= shmem_signal_fetch(&arrived) != 16;
    shmem_sync_all();
    shmem_signal_set(&arrived, 0, right);
    shmem_finalize();
    return is_wrong;
}
