/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: the variables of a shared library are symmetric, like those of the program. Method: puts, gets, strided puts,
 * atomics, a signal and a collective on variables of library.c, read here and by the library itself; a forked child has
 * a private copy of the variables, and the library's state before shmem_init is preserved. */
#include "check.h"
#include "library.h"

#include <sys/wait.h>
#include <unistd.h>

static long copy[LIBRARY_WORDS];
static long *words, *counter;

static void put_and_get(int to, int from)
{
    for (int i = 0; i < LIBRARY_WORDS; i++)
        copy[i] = VALUE(long, me, i, 3);
    shmem_long_put(words, copy, LIBRARY_WORDS, to); /* more than the fast path handles */
    shmem_barrier_all();
    long sum = 0;
    for (int i = 0; i < LIBRARY_WORDS; i++) {
        CHECK(words[i] == VALUE(long, from, i, 3), "word %d is %ld", i, words[i]);
        sum += VALUE(long, from, i, 3);
    }
    CHECK(library_sum() == sum, "the library sees a sum of %ld", library_sum());
    shmem_long_get(copy, words, LIBRARY_WORDS, to);
    for (int i = 0; i < LIBRARY_WORDS; i++)
        CHECK(copy[i] == VALUE(long, me, i, 3), "word %d got is %ld", i, copy[i]);
    shmem_barrier_all();
    shmem_long_p(&words[LIBRARY_WORDS - 1], me + 1000, to);
    CHECK(shmem_long_g(library_hidden(), to) == 11, "the static is %ld", shmem_long_g(library_hidden(), to));
    shmem_long_iput(words, copy, 3, 1, 100, to);
    shmem_barrier_all();
    CHECK(words[LIBRARY_WORDS - 1] == from + 1000, "p gave %ld", words[LIBRARY_WORDS - 1]);
    for (int i = 0; i < 100; i++)
        CHECK(words[i * 3] == VALUE(long, from, i, 3), "iput word %d is %ld", i, words[i * 3]);
}

static void atomics_and_waits(int to)
{
    for (int pe = 0; pe < npes; pe++)
        for (int i = 0; i < 50; i++)
            shmem_long_atomic_inc(counter, pe);
    shmem_long_wait_until(counter, SHMEM_CMP_EQ, 50L * npes);
    shmem_barrier_all();
    static uint64_t one = 1;
    shmem_uint64_put_signal((uint64_t *)&words[1], &one, 1, (uint64_t *)library_hidden(), 5, SHMEM_SIGNAL_SET, to);
    shmem_signal_wait_until((uint64_t *)library_hidden(), SHMEM_CMP_EQ, 5);
    CHECK(words[1] == 1, "behind the signal is %ld", words[1]);
    shmem_barrier_all();
    words[0] = me;
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &words[2], &words[0], 1);
    CHECK(words[2] == (long)npes * (npes - 1) / 2, "the sum is %ld", words[2]);
}

static void fork_and_reach(int to)
{
    *counter = 1;
    pid_t child = fork();
    if (child == 0) {
        *counter = 99;
        _exit(library_sum() == 0 ? 1 : 0);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the child ended with %d", status);
    CHECK(*counter == 1, "the child changed the counter to %ld", *counter);
    CHECK(shmem_addr_accessible(counter, to) == 1, "the counter is not accessible");
    long *there = shmem_ptr(counter, me);
    CHECK(there != NULL && *there == 1, "shmem_ptr gives %p", (void *)there);
}

int main(void)
{
    words = library_words();
    counter = library_counter();
    words[5] = 55;
    check_begin();
    CHECK(library_mapping_count() == 0, "%ld calls of mmap have not returned", library_mapping_count());
    int to = (me + 1) % npes, from = (me + npes - 1) % npes;
    CHECK(words[0] == 7 && words[5] == 55, "the words begin as %ld, %ld", words[0], words[5]);
    shmem_barrier_all();
    put_and_get(to, from);
    atomics_and_waits(to);
    fork_and_reach(to);
    return check_end("library_data");
}
