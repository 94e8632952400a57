/* SPDX-License-Identifier: BSD-3-Clause */
/* direct ROUNDS: with --network-direct yes. In each round a PE puts a word to the next PE, fences, puts the round's
 * number behind it, and waits for those of the PE before it; the word must be there by then. A put and its quiet, and a
 * get, follow: the value must come back. Every PE forks in round 10: the child ends by exit(), its parent goes on.
 * ROUNDS 0: for ever. Prints a line when it has started. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define FORK_ROUND 10

static long word, number, echo;

/* LeakSanitizer asks for it, where there is one. It looks at the end of the child, which has no thread of UCX: what
 * only the stack of that thread points to is not lost. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libucs";
}

static void fork_once(int me)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        exit(7);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7) {
        printf("PE %d: its child ended with %d\n", me, status);
        shmem_global_exit(1);
    }
}

static void fail(int me, long round, const char *what, long found)
{
    printf("PE %d: in round %ld %s is %ld\n", me, round, what, found);
    shmem_global_exit(1);
}

int main(int argc, char **argv)
{
    shmem_init();
    int me = shmem_my_pe(), pe_count = shmem_n_pes(), next = (me + 1) % pe_count;
    long rounds = argc > 1 ? atol(argv[1]) : 0;
    if (me == 0) {
        printf("begun\n");
        fflush(stdout);
    }
    for (long round = 1; rounds == 0 || round <= rounds; round++) {
        if (round == FORK_ROUND) {
            shmem_barrier_all();
            fork_once(me);
            shmem_barrier_all();
        }
        shmem_long_p(&word, round * 1000 + me, next);
        shmem_fence();
        shmem_long_p(&number, round, next);
        shmem_long_wait_until(&number, SHMEM_CMP_EQ, round);
        long expected = round * 1000 + (me + pe_count - 1) % pe_count;
        if (word != expected)
            fail(me, round, "the word before the number", word);
        shmem_long_p(&echo, -round, next);
        shmem_quiet();
        long found = shmem_long_g(&echo, next);
        if (found != -round)
            fail(me, round, "what was put and got", found);
        shmem_barrier_all();
    }
    shmem_finalize();
    return 0;
}
