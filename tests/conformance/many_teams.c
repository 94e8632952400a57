/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: teams keep synchronising however many have been created. Method: linked with the library's internals, PEs start
 * with a count of 2^24 - 3 created teams, just below the end of 24-bit numbers, then create more, one after another and
 * nested; after each sync a PE sees what another one, which arrives late, stored before it. */
#include "check.h"

#include <unistd.h>

#include "shmem/job.h"

static long turn;

static void check_sync(shmem_team_t team, long value)
{
    int team_me = shmem_team_my_pe(team);
    int size = shmem_team_n_pes(team);
    if (team_me == size - 1) {
        usleep(3000);
        for (int rank = 0; rank < size; rank++)
            shmem_long_atomic_set(&turn, value, shmem_team_translate_pe(team, rank, SHMEM_TEAM_WORLD));
        shmem_quiet();
    }
    shmem_team_sync(team);
    CHECK(shmem_long_atomic_fetch(&turn, me) == value, "sync %ld let this PE go on too early", value);
    shmem_team_sync(team);
}

int main(void)
{
    check_begin();
    quoit_job.team_flag = (uint64_t)((1 << 24) - 3) << QUOIT_TEAM_FLAG_BITS;
    for (long i = 1; i <= 12; i++) {
        shmem_team_t team, inner;
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &team);
        check_sync(team, 10 * i);
        shmem_team_split_strided(team, npes - 1, -1, npes, NULL, 0, &inner);
        check_sync(inner, 10 * i + 1);
        check_sync(team, 10 * i + 2);
        shmem_team_destroy(i % 2 ? team : inner);
        check_sync(i % 2 ? inner : team, 10 * i + 3);
        shmem_team_destroy(i % 2 ? inner : team);
        if (i == 6)
            quoit_job.team_flag += 2ull << QUOIT_TEAM_FLAG_BITS;
    }
    return check_end("many teams");
}
