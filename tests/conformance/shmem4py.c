/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: shmem4py 1.0 builds against this header. Method: the steps of its source file libshmem.c for an implementation
 * whose name it does not know: where one of its macros is undefined it defines the routines itself, which the compiler
 * rejects if the header declares them; where the macro is defined, it uses the routine. */
#include <shmem.h>

#ifndef PySHMEM_HAVE_shmem_malloc_with_hints
static void *shmem_malloc_with_hints(size_t size, long hints)
{
    return hints ? NULL : shmem_malloc(size);
}
#endif
#ifndef PySHMEM_HAVE_shmem_amo_nbi
static void shmem_int_atomic_fetch_inc_nbi(int *fetch, int *dest, int pe)
{
    *fetch = *dest + pe;
}
#endif
#ifndef PySHMEM_HAVE_shmem_put_signal
static void shmem_ctx_putmem_signal(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, uint64_t *sig_addr,
                                    uint64_t signal, int sig_op, int pe)
{
}
#endif
#ifndef PySHMEM_HAVE_shmem_signal_fetch
static uint64_t shmem_signal_fetch(const uint64_t *sig_addr)
{
    return *sig_addr;
}
#endif
#ifndef PySHMEM_HAVE_shmem_signal_wait_until
static uint64_t shmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t value)
{
    return *sig_addr;
}
#endif
#ifndef PySHMEM_HAVE_SHMEM_CTX_INVALID
#error "SHMEM_CTX_INVALID would be defined again"
#endif
#ifndef PySHMEM_HAVE_shmem_team_t
typedef void *shmem_team_t;
#endif
#ifndef PySHMEM_HAVE_shmem_broadcastmem
static int shmem_broadcastmem(shmem_team_t team, void *dest, const void *source, size_t size, int root)
{
    return -1;
}
#endif
#ifndef PySHMEM_HAVE_shmem_collectmem
static int shmem_collectmem(shmem_team_t team, void *dest, const void *source, size_t size)
{
    return -1;
}
#endif
#ifndef PySHMEM_HAVE_shmem_fcollectmem
static int shmem_fcollectmem(shmem_team_t team, void *dest, const void *source, size_t size)
{
    return -1;
}
#endif
#ifndef PySHMEM_HAVE_shmem_alltoallmem
static int shmem_alltoallmem(shmem_team_t team, void *dest, const void *source, size_t size)
{
    return -1;
}
#endif
#ifndef PySHMEM_HAVE_shmem_alltoallsmem
static int shmem_alltoallsmem(shmem_team_t team, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,
                              size_t size)
{
    return -1;
}
#endif
#ifndef PySHMEM_HAVE_shmem_pcontrol
static void shmem_pcontrol(int level, ...)
{
}
#endif
/* Families: one routine of each represents all. */
#define FAMILY(HAVE) static_assert(HAVE == 1, "the header declares the family")
#include <assert.h>
FAMILY(PySHMEM_HAVE_shmem_broadcast);
FAMILY(PySHMEM_HAVE_shmem_collect);
FAMILY(PySHMEM_HAVE_shmem_fcollect);
FAMILY(PySHMEM_HAVE_shmem_alltoall);
FAMILY(PySHMEM_HAVE_shmem_alltoalls);
FAMILY(PySHMEM_HAVE_shmem_reduce);
FAMILY(PySHMEM_HAVE_shmem_wait_test_many);

typedef void any(void);
extern any *const used[];
any *const used[] = {
    (any *)shmem_malloc_with_hints, (any *)shmem_int_atomic_fetch_inc_nbi,
    (any *)shmem_ctx_putmem_signal, (any *)shmem_signal_fetch,
    (any *)shmem_signal_wait_until, (any *)shmem_broadcastmem,
    (any *)shmem_collectmem,        (any *)shmem_fcollectmem,
    (any *)shmem_alltoallmem,       (any *)shmem_alltoallsmem,
    (any *)shmem_pcontrol,          (any *)shmem_long_broadcast,
    (any *)shmem_long_collect,      (any *)shmem_long_fcollect,
    (any *)shmem_long_alltoall,     (any *)shmem_long_alltoalls,
    (any *)shmem_long_sum_reduce,   (any *)shmem_long_wait_until_some,
};

int main(void)
{
    shmem_team_t team = SHMEM_TEAM_INVALID;
    shmem_ctx_t ctx = SHMEM_CTX_INVALID;
    return team != SHMEM_TEAM_INVALID || ctx != SHMEM_CTX_INVALID;
}
