/* SPDX-License-Identifier: BSD-3-Clause */
#include <shmem.h>
#include <stdio.h>

static long from_left, from_right;

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes();
    shmem_ctx_t one, two;
    shmem_team_t team;
    if (shmem_ctx_create(SHMEM_CTX_PRIVATE, &one) != 0 || shmem_team_create_ctx(SHMEM_TEAM_WORLD, 0, &two) != 0)
        shmem_global_exit(1); /* or go on with SHMEM_CTX_DEFAULT */
    shmem_ctx_get_team(two, &team);

    shmem_ctx_session_start(one, SHMEM_CTX_SESSION_BATCH, NULL, 0); /* a hint: several operations follow */
    shmem_ctx_long_p(one, &from_left, me, (me + 1) % pes);
    shmem_ctx_session_stop(one);
    shmem_ctx_long_p(two, &from_right, me, (me + pes - 1) % pes);
    shmem_ctx_quiet(one); /* what went by `one` has arrived; what went by `two` need not have */
    shmem_ctx_quiet(two);
    shmem_sync_all();

    printf("PE %d: %ld and %ld\n", me, from_left, from_right);
    int is_wrong = from_left != (me + pes - 1) % pes || from_right != (me + 1) % pes || team != SHMEM_TEAM_WORLD;
    shmem_ctx_destroy(two);
    shmem_ctx_destroy(one);
    shmem_finalize();
    return is_wrong;
}
