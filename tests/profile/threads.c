/* SPDX-License-Identifier: BSD-3-Clause */
/* threads THREADS CALLS: each thread of each PE puts a word to the next PE so often, and changes one there by an
 * atomic, from the same two lines. */
#include <pthread.h>
#include <shmem.h>
#include <stdlib.h>

#define THREADS_MAX 16

static long words[THREADS_MAX], sum;
static long calls;

static void *call(void *word)
{
    int next = (shmem_my_pe() + 1) % shmem_n_pes();
    for (long i = 0; i < calls; i++) {
        shmem_long_p(word, i, next);       /* /p */
        shmem_long_atomic_inc(&sum, next); /* /inc */
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS_MAX];
    int provided, count = argc == 3 ? atoi(argv[1]) : 0;
    if (count < 1 || count > THREADS_MAX)
        return 2;
    calls = atol(argv[2]);
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, call, &words[i]) != 0)
            shmem_global_exit(3);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    shmem_barrier_all();
    int status = sum == count * calls ? 0 : 1;
    shmem_finalize();
    return status;
}
