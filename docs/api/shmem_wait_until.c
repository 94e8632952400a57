/* SPDX-License-Identifier: BSD-3-Clause */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

static long flag, *flags;

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes(), is_wrong = 0;
    shmem_long_p(&flag, 5, (me + 1) % pes);
    shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 5); /* local memory, which another PE changes */
    is_wrong |= !shmem_long_test(&flag, SHMEM_CMP_GT, 4);

    /* Each PE sets its own flag on PE 0, which takes them in the order in which they come. */
    flags = shmem_calloc(pes, sizeof *flags);
    long *ones = malloc(pes * sizeof *ones);
    int *status = calloc(pes, sizeof *status);
    size_t *which = calloc(pes, sizeof *which);
    for (int i = 0; i < pes; i++)
        ones[i] = 1;
    shmem_long_p(&flags[me], 1, 0);
    for (int left = me == 0 ? pes : 0; left > 0; left--) {
        size_t i = shmem_long_wait_until_any(flags, pes, status, SHMEM_CMP_EQ, 1);
        printf("PE %zu has come\n", i);
        status[i] = 1; /* not looked at again */
    }
    if (me == 0) {
        shmem_long_wait_until_all(flags, pes, NULL, SHMEM_CMP_EQ, 1);
        is_wrong |= shmem_long_wait_until_some(flags, pes, which, NULL, SHMEM_CMP_EQ, 1) == 0;
        is_wrong |= !shmem_long_test_all(flags, pes, NULL, SHMEM_CMP_EQ, 1);
        is_wrong |= shmem_long_test_any(flags, pes, NULL, SHMEM_CMP_EQ, 1) >= (size_t)pes;
        is_wrong |= shmem_long_test_some(flags, pes, which, NULL, SHMEM_CMP_NE, 1) != 0;

        /* With a value of its own for each flag. */
        shmem_long_wait_until_all_vector(flags, pes, NULL, SHMEM_CMP_EQ, ones);
        is_wrong |= shmem_long_wait_until_any_vector(flags, pes, NULL, SHMEM_CMP_EQ, ones) >= (size_t)pes;
        is_wrong |= shmem_long_wait_until_some_vector(flags, pes, which, NULL, SHMEM_CMP_EQ, ones) == 0;
        is_wrong |= !shmem_long_test_all_vector(flags, pes, NULL, SHMEM_CMP_EQ, ones);
        is_wrong |= shmem_long_test_any_vector(flags, pes, NULL, SHMEM_CMP_EQ, ones) >= (size_t)pes;
        is_wrong |= shmem_long_test_some_vector(flags, pes, which, NULL, SHMEM_CMP_EQ, ones) == 0;
    }
    shmem_free(flags);
    free(which);
    free(status);
    free(ones);
    shmem_finalize();
    return is_wrong;
}
