/* SPDX-License-Identifier: BSD-3-Clause */
/* wrong.c - a library with one error, selected by WRONG in the environment, to test the benchmark's verification: these
 * routines interpose on the library's, which are called by their pshmem_ names. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <shmem.h>

static bool is_wrong(const char *name)
{
    const char *wrong = getenv("WRONG");
    return wrong && strcmp(wrong, name) == 0;
}

void shmem_putmem(void *dest, const void *source, size_t bytes, int pe)
{
    pshmem_putmem(dest, source, bytes - is_wrong("putmem"), pe); /* the last byte is lost */
}

void shmem_getmem(void *dest, const void *source, size_t bytes, int pe)
{
    pshmem_getmem(dest, source, bytes - is_wrong("getmem"), pe);
}

/* One byte too many. */
void shmem_putmem_nbi(void *dest, const void *source, size_t bytes, int pe)
{
    pshmem_putmem_nbi(dest, source, bytes + is_wrong("putmem_nbi"), pe);
}

/* From this PE's memory. */
void shmem_getmem_nbi(void *dest, const void *source, size_t bytes, int pe)
{
    pshmem_getmem_nbi(dest, source, bytes, is_wrong("getmem_nbi") ? pshmem_my_pe() : pe);
}

long shmem_long_atomic_fetch_add(long *dest, long value, int pe)
{
    return pshmem_long_atomic_fetch_add(dest, value + is_wrong("fetch_add"), pe);
}

void shmem_long_atomic_add(long *dest, long value, int pe)
{
    if (!is_wrong("add")) /* nothing is added */
        pshmem_long_atomic_add(dest, value, pe);
}

long shmem_long_atomic_swap(long *dest, long value, int pe)
{
    return pshmem_long_atomic_swap(dest, value, pe) - is_wrong("swap");
}

void shmem_putmem_signal(void *dest, const void *source, size_t bytes, uint64_t *signal, uint64_t value, int how,
                         int pe)
{
    pshmem_putmem_signal(dest, source, bytes - is_wrong("putmem_signal"), signal, value, how, pe);
}

void shmem_sync_all(void)
{
    if (!is_wrong("sync"))
        pshmem_sync_all();
}

int shmem_uint64_broadcast(shmem_team_t team, uint64_t *dest, const uint64_t *source, size_t count, int root)
{
    return pshmem_uint64_broadcast(team, dest, source, count, root + is_wrong("broadcast"));
}

int shmem_long_sum_reduce(shmem_team_t team, long *dest, const long *source, size_t count)
{
    int status = pshmem_long_sum_reduce(team, dest, source, count);
    dest[count - 1] += is_wrong("reduce");
    return status;
}

int shmem_uint64_collect(shmem_team_t team, uint64_t *dest, const uint64_t *source, size_t count)
{
    int status = pshmem_uint64_collect(team, dest, source, count);
    dest[0] ^= is_wrong("collect");
    return status;
}

int shmem_uint64_fcollect(shmem_team_t team, uint64_t *dest, const uint64_t *source, size_t count)
{
    int status = pshmem_uint64_fcollect(team, dest, source, count);
    dest[count] ^= is_wrong("fcollect");
    return status;
}

int shmem_uint64_alltoall(shmem_team_t team, uint64_t *dest, const uint64_t *source, size_t count)
{
    return pshmem_uint64_alltoall(team, dest, source, count - is_wrong("alltoall"));
}

int shmem_uint64_alltoalls(shmem_team_t team, uint64_t *dest, const uint64_t *source, ptrdiff_t dst, ptrdiff_t sst,
                           size_t count)
{
    return pshmem_uint64_alltoalls(team, dest, source, dst - is_wrong("alltoalls"), sst, count);
}
