/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a tool can interpose between program and library (10). Method: this program defines some routines itself, on top
 * of their pshmem_ twins, as a profiling library would; calls by name and by type-generic name must reach them and do
 * their work, and no routine of the library may call another under an interposed name. */
#include <pshmem.h>

#include "check.h"

static int put_count, barrier_count, add_count, malloc_count, quiet_count;

void shmem_long_put(long *dest, const long *source, size_t nelems, int pe)
{
    put_count++;
    pshmem_long_put(dest, source, nelems, pe);
}

void shmem_barrier_all(void)
{
    barrier_count++;
    pshmem_barrier_all();
}

void shmem_quiet(void)
{
    quiet_count++;
    pshmem_quiet();
}

long shmem_long_atomic_fetch_add(long *dest, long value, int pe)
{
    add_count++;
    return pshmem_long_atomic_fetch_add(dest, value, pe);
}

void *shmem_malloc(size_t size)
{
    malloc_count++;
    return pshmem_malloc(size);
}

static void call_everything(void)
{
    long source[4] = {me, me + 1, me + 2, me + 3};
    long *dest = shmem_malloc(sizeof source), *zeroed = shmem_calloc(1, sizeof *zeroed);
    int next = (me + 1) % npes, before = (me + npes - 1) % npes;
    shmem_pcontrol(2, "any", 3.0);
    shmem_long_put(dest, source, 2, next);
    shmem_put(dest + 2, source + 2, 2, next); /* the type-generic name */
    shmem_barrier_all();
    for (int i = 0; i < 4; i++)
        CHECK(dest[i] == before + i, "element %d is %ld", i, dest[i]);
    shmem_atomic_fetch_add(zeroed, 5, next);
    shmem_sync_all();
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, dest, zeroed, 1);
    CHECK(*dest == 5L * npes, "the sum is %ld", *dest);
    shmem_quiet();
    shmem_free(zeroed);
    shmem_free(dest);
}

int main(void)
{
    check_begin();
    call_everything();
    CHECK(malloc_count == 1 && put_count == 2 && barrier_count == 1 && add_count == 1 && quiet_count == 1,
          "%d mallocs, %d puts, %d barriers, %d additions, %d quiets", malloc_count, put_count, barrier_count,
          add_count, quiet_count);
    return check_end("profile");
}
