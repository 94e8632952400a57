/* SPDX-License-Identifier: BSD-3-Clause */
/* limits WHAT: creates as many of WHAT as possible, releases one and creates it again; prints how many there were. */
#include <shmem.h>
#include <stdio.h>
#include <string.h>

#define TRIES 2000

static int count_contexts(void)
{
    static shmem_ctx_t contexts[TRIES];
    int count = 0;
    while (count < TRIES && shmem_ctx_create(0, &contexts[count]) == 0)
        count++;
    if (count == 0 || count == TRIES || contexts[count] != SHMEM_CTX_INVALID)
        return -1;
    shmem_ctx_destroy(contexts[0]);
    if (shmem_ctx_create(0, &contexts[0]) != 0)
        return -2;
    for (int i = 0; i < count; i++) {
        shmem_ctx_quiet(contexts[i]);
        shmem_ctx_destroy(contexts[i]);
    }
    return count;
}

static int split(shmem_team_t *team_out)
{
    return shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), NULL, 0, team_out);
}

static int count_teams(void)
{
    static shmem_team_t teams[TRIES];
    int count = 0;
    while (count < TRIES && split(&teams[count]) == 0)
        count++;
    if (count == 0 || count == TRIES || teams[count] != SHMEM_TEAM_INVALID)
        return -1;
    shmem_team_destroy(teams[0]);
    if (split(&teams[0]) != 0)
        return -2;
    for (int i = 0; i < count; i++) {
        shmem_team_sync(teams[i]);
        shmem_team_destroy(teams[i]);
    }
    return count;
}

int main(int argc, char **argv)
{
    shmem_init();
    int count = argc == 2 && strcmp(argv[1], "contexts") == 0 ? count_contexts() : count_teams();
    printf("%d\n", count);
    shmem_finalize();
    return 0;
}
