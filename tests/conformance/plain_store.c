/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a waiting PE sees stores through shmem_ptr, which wake no PE. Method: the others have time to fall asleep before
 * PE 0 asks for the pointer, and again before it stores; a store that goes undetected hangs the test. */
#include "check.h"

#include <time.h>

#define REST_NS 20000000

static long flag[2];

static void rest(void)
{
    const struct timespec pause = {0, REST_NS};
    nanosleep(&pause, NULL);
}

static void store(long *object, long value, int pe)
{
    long *there = shmem_ptr(object, pe);
    rest();
    if (there)
        __atomic_store_n(there, value, __ATOMIC_RELEASE);
    else
        shmem_long_p(object, value, pe);
}

int main(void)
{
    check_begin();
    for (int round = 0; round < 2; round++) {
        shmem_barrier_all();
        if (me != 0) {
            shmem_long_wait_until(&flag[round], SHMEM_CMP_NE, 0);
            CHECK(flag[round] == me + round, "round %d: %ld", round, flag[round]);
            continue;
        }
        rest();
        for (int pe = 1; pe < npes; pe++)
            store(&flag[round], pe + round, pe);
    }
    return check_end("plain_store");
}
