/* SPDX-License-Identifier: BSD-3-Clause */
/* ending - how a job on shared pages ends after an error: `ending HOW`. The tests check status and message. */
#include <dsm.h>
#include <errno.h>
#include <shmem.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS (1 << 16)

static dsm_lock_t *lock;
static long *words;

/* Works under a lock until the job is ended, or for ever. */
static void work(long rounds)
{
    for (long i = 0; i < rounds; i++) {
        dsm_lock(lock);
        words[i % WORDS]++;
        dsm_unlock(lock);
    }
}

/* A forked child ends as a program does; whether it does at once, and the PE goes on. */
static bool is_child_apart(void)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static long address_space_kib(void)
{
    char line[256];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && kib == 0 && fgets(line, sizeof line, status))
        sscanf(line, "VmSize: %ld", &kib);
    if (status)
        fclose(status);
    return kib;
}

/* The library begins and ends several times; whether its memory stays the same. */
static bool is_restartable(void)
{
    enum { TIMES = 12, PAGES = 64 };
    long kib = 0;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &(int){0});
    for (int i = 0; i < TIMES; i++) {
        dsm_init();
        char *block = dsm_all_malloc(PAGES * 4096);
        for (int page = dsm_my_pe(); page < PAGES; page += dsm_n_pes())
            block[page * 4096] = (char)(i + 1);
        dsm_barrier_all();
        for (int page = 0; page < PAGES; page++) {
            if (block[page * 4096] != i + 1)
                return false;
        }
        dsm_finalize();
        if (i == TIMES / 2)
            kib = address_space_kib();
    }
    return address_space_kib() - kib < 4096; /* tables for 8 MiB of DSM_MEMORY take more each time */
}

/* A file ends before its mapping does. */
static void read_behind_file(void)
{
    FILE *file = tmpfile();
    volatile char *mapped = file ? mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(file), 0) : MAP_FAILED;
    if (mapped == MAP_FAILED)
        exit(8);
    (void)mapped[0];
}

static void say_nothing(void)
{
}

static void say_worked(void)
{
    if (dsm_my_pe() == dsm_n_pes() - 1)
        puts("worked");
}

/* The status of a program that begins the library in a way of its own; -1: it does not. */
static int begin_otherwise(const char *how)
{
    if (strcmp(how, "restarts") == 0) {
        bool is_right = is_restartable();
        if (is_right && shmem_my_pe() == shmem_n_pes() - 1)
            puts("worked");
        shmem_finalize();
        return is_right ? 0 : 7;
    }
    if (strcmp(how, "fork-workers") == 0) {
        dsm_workers_begin(); /* returns on PE 0 alone */
        if (!is_child_apart())
            return 6;
        dsm_workers_run(say_worked, dsm_n_pes(), NULL, NULL);
        dsm_workers_join();
        return 0;
    }
    if (strcmp(how, "no-join") == 0) {
        dsm_workers_begin();
        dsm_workers_run(say_nothing, dsm_n_pes(), NULL, NULL);
        dsm_workers_run(say_worked, dsm_n_pes(), NULL, NULL);
        return 0;
    }
    return -1;
}

/* Of one PE, whose death ends the job. Returns if `how` is another end. */
static void end_at_once(const char *how, const char *address)
{
    if (strcmp(how, "exit") == 0)
        exit(3);
    if (strcmp(how, "kill") == 0) {
        dsm_lock(lock);
        raise(SIGKILL);
    }
    if (strcmp(how, "wild") == 0)
        *(volatile int *)(uintptr_t)strtoul(address, NULL, 0) = 1; // no object is there
    if (strcmp(how, "bus") == 0)
        read_behind_file();
    if (strcmp(how, "jump") == 0) {
        words[1] = 0xc3; /* a return, on x86-64; no page of data is executed */
        ((void (*)(void))(uintptr_t)&words[1])();
    }
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "";
    if (strcmp(how, "bus") == 0) /* the kernel lets no process ignore a fault */
        signal(SIGBUS, SIG_IGN);
    if (strcmp(how, "shmem-first") == 0)
        shmem_init();
    int status = begin_otherwise(how);
    if (status >= 0)
        return status;
    lock = dsm_all_malloc(sizeof *lock);
    words = dsm_all_malloc(WORDS * sizeof *words);
    bool is_last = dsm_my_pe() == dsm_n_pes() - 1;
    work(100);
    if (is_last)
        end_at_once(how, count > 2 ? arguments[2] : "16");
    if (strcmp(how, "unlock") == 0 && is_last)
        dsm_unlock(lock);
    if (strcmp(how, "handler") == 0 && is_last)
        dsm_malloc_with(64, &(struct dsm_attributes){.protocol = DSM_PROTOCOL_ASYNC});
    if (strcmp(how, "free") == 0 && is_last)
        dsm_free(words + 8);
    if (strcmp(how, "free-start") == 0 && is_last)
        dsm_free((void *)((uintptr_t)lock & ~4095ul)); /* of shared memory: no header precedes it */
    if (strcmp(how, "migrate") == 0)
        dsm_migrate(words, 256ull << 30, 0);
    if (strcmp(how, "fork") == 0) {
        dsm_flag_t *ended = dsm_all_malloc(sizeof *ended); /* the other PEs do not end before the child */
        if (is_last && !is_child_apart())
            return 6;
        dsm_flag_set(ended, is_last);
        dsm_flag_wait(ended, 1);
    }
    if (strcmp(how, "full") == 0) {
        char *much = dsm_all_malloc(64u << 20);
        for (size_t i = 0; i < 64u << 20; i += 4096)
            much[i] = 1;
    }
    if (strcmp(how, "large") == 0) {
        errno = 0;
        if (dsm_malloc(1ull << 50) || errno != ENOMEM)
            return 4;
        char *sparse = dsm_all_malloc(30ull << 30);
        sparse[(29ull << 30) + (size_t)dsm_my_pe() * 4096] = 1;
        dsm_barrier_all();
        dsm_acquire(sparse, 30ull << 30);
        for (int pe = 0; pe < dsm_n_pes(); pe++) {
            if (sparse[(29ull << 30) + (size_t)pe * 4096] != 1)
                return 5;
        }
    }
    if (strcmp(how, "exit") == 0 || strcmp(how, "kill") == 0 || strcmp(how, "wild") == 0 || strcmp(how, "bus") == 0)
        work(1l << 40);
    if (is_last)
        printf("worked\n");
    if (strcmp(how, "shmem-first") == 0)
        shmem_finalize();
    return 0; /* without dsm_finalize: returning from main finalizes */
}
