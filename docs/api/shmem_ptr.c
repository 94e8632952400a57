/* SPDX-License-Identifier: BSD-3-Clause */
#include <shmem.h>
#include <stdio.h>

static long counter;

int main(void)
{
    int major, minor, local;
    char name[SHMEM_MAX_NAME_LEN];
    shmem_init();
    shmem_info_get_version(&major, &minor);
    shmem_info_get_name(name);
    shmem_pcontrol(1); /* for tools that profile: nothing without one */

    int right = (shmem_my_pe() + 1) % shmem_n_pes();
    long *there = shmem_ptr(&counter, right); /* NULL where PE `right` is on another host */
    if (there)
        *there = 7; /* a plain store into its memory */
    else
        shmem_long_p(&counter, 7, right);
    shmem_barrier_all();
    printf("PE %d: %s, OpenSHMEM %d.%d, counter %ld\n", shmem_my_pe(), name, major, minor, counter);

    int is_wrong = counter != 7 || !shmem_pe_accessible(right) || !shmem_addr_accessible(&counter, right) ||
                   shmem_addr_accessible(&local, right);
    shmem_finalize();
    return is_wrong;
}
