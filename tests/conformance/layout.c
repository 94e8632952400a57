/* SPDX-License-Identifier: BSD-3-Clause */
/* Built twice, with variables at different addresses: a put into a variable of a PE that runs the other program would
 * hit another variable. */
#include <shmem.h>
#include <stdio.h>

#ifdef OTHER
long pad[3] = {1}, value, secret = 7;
#else
long secret = 7, value;
#endif

int main(void)
{
    shmem_init();
    printf("PE %d: %ld %ld\n", shmem_my_pe(), secret, value);
    shmem_finalize();
    return 0;
}
