/* SPDX-License-Identifier: BSD-3-Clause */
/* limits.c - the machine's own times, measured by PE 0 and a twin: a process forked before the library starts, so that
 * neither disturbs the other. The twin is placed on another processor to measure a cache line transfer, and on the same
 * one to measure a context switch. */
#include "perf.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS      24
#define LINE_TRIPS  400
#define YIELD_TRIPS 200
#define CALLS       20000

struct job {
    long trips;
    int processor; /* -1: the twin ends */
    bool yields;
};

/* Written in turn: by PE 0 `ball`, by the twin `back`. */
struct table {
    _Alignas(256) _Atomic long ball;
    _Alignas(256) _Atomic long back;
};

struct perf_twin {
    struct table *table;
    unsigned char *memory; /* the twin's own, at the same address here, of PERF_GLOBAL_BYTES: what CMA writes to */
    pid_t pid;
    int pipe;
};

static void stand_on(int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    sched_setaffinity(0, sizeof set, &set);
}

/* Waits for a store; with one processor only the other process can make it. */
static void await(_Atomic long *word, long value, bool yields)
{
    for (long looks = 1; *(volatile _Atomic long *)word != value; looks++)
        if (yields || looks % 65536 == 0) /* after this long no process runs there */
            sched_yield();
}

static _Noreturn void be_twin(struct table *table, int pipe)
{
    struct job job;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* PE 0 may be killed while its twin waits for `ball` */
    while (read(pipe, &job, sizeof job) == (ssize_t)sizeof job && job.processor >= 0) {
        stand_on(job.processor);
        for (long trip = 1; trip <= job.trips; trip++) {
            await(&table->ball, trip, job.yields);
            table->back = trip;
        }
    }
    _exit(0);
}

struct perf_twin *perf_limits_fork(void)
{
    int ends[2];
    struct perf_twin *twin = calloc(1, sizeof *twin);
    struct table *table = mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    void *memory = mmap(NULL, PERF_GLOBAL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!twin || table == MAP_FAILED || memory == MAP_FAILED || pipe(ends) != 0)
        return free(twin), NULL;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[1]);
        be_twin(table, ends[0]);
    }
    close(ends[0]);
    if (pid < 0)
        return free(twin), NULL;
    *twin = (struct perf_twin){table, memory, pid, ends[1]};
    return twin;
}

void perf_limits_end(struct perf_twin *twin)
{
    close(twin->pipe); /* the twin ends at the end of its input */
    waitpid(twin->pid, NULL, 0);
    munmap(twin->memory, PERF_GLOBAL_BYTES);
    munmap(twin->table, sizeof *twin->table);
    free(twin);
}

int perf_processor_count(void)
{
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* Half a round trip between this process and the twin on `processor`. */
static double trip_ns(const struct perf_twin *twin, int processor, long trips, bool yields)
{
    struct job job = {trips, processor, yields};
    double start = 0;
    twin->table->ball = twin->table->back = 0;
    if (write(twin->pipe, &job, sizeof job) != (ssize_t)sizeof job)
        return 0;
    for (long trip = 1; trip <= trips; trip++) {
        twin->table->ball = trip;
        await(&twin->table->back, trip, yields);
        if (trip == trips / 4) /* the twin has moved there and is warm */
            start = perf_now_ns();
    }
    return (perf_now_ns() - start) / (double)(trips - trips / 4) / 2;
}

static void empty(long *word)
{
    (void)word;
}

static void add(long *word)
{
    __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
}

static double calls_ns(void (*function)(long *))
{
    void (*volatile hidden)(long *) = function; /* so that the compiler calls it */
    long word = 0;
    double start = perf_now_ns();
    for (int i = 0; i < CALLS; i++)
        hidden(&word);
    return (perf_now_ns() - start) / CALLS;
}

static double clock_ns(void)
{
    double start = perf_now_ns();
    for (int i = 0; i < CALLS / 10; i++)
        perf_now_ns();
    return (perf_now_ns() - start) / (CALLS / 10 + 1);
}

/* Any other processor on which a process may run; this one if there is no other. */
static int other_processor(int own)
{
    for (int at = perf_processor_count() - 1; at >= 0; at--) {
        cpu_set_t set, back;
        CPU_ZERO(&set);
        CPU_SET(at, &set);
        sched_getaffinity(0, sizeof back, &back);
        if (at != own && sched_setaffinity(0, sizeof set, &set) == 0) {
            sched_setaffinity(0, sizeof back, &back);
            return at;
        }
    }
    return own;
}

void perf_limits_measure(struct perf *perf)
{
    double ns[PERF_MACHINE_COUNT][ROUNDS];
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    int own = sched_getcpu(), other = other_processor(own);
    stand_on(own);
    for (int round = 0; round < ROUNDS; round++) {
        ns[PERF_TIMER][round] = clock_ns();
        ns[PERF_CALL][round] = calls_ns(empty);
        ns[PERF_ADD][round] = calls_ns(add);
        ns[PERF_SWITCH][round] = trip_ns(perf->twin, own, YIELD_TRIPS, true);
        ns[PERF_LINE][round] = other == own ? ns[PERF_SWITCH][round] : trip_ns(perf->twin, other, LINE_TRIPS, false);
    }
    sched_setaffinity(0, sizeof before, &before);
    for (int i = 0; i < PERF_MACHINE_COUNT; i++)
        perf_summarise(ns[i], ROUNDS, &perf->machine[i]);
}

/* With k PEs on each processor, each but the last must be switched to once; the signal spreads by doubling. */
double perf_meeting_ns(const struct perf *perf)
{
    int processors = perf_processor_count(), at_once = perf->npes < processors ? perf->npes : processors;
    int a_processor = (perf->npes + at_once - 1) / at_once;
    double ns = (a_processor - 1) * perf->machine[PERF_SWITCH].median;
    for (int reached = 1; reached < at_once; reached *= 2)
        ns += perf->machine[PERF_LINE].median;
    return ns > 0 ? ns : perf->machine[PERF_CALL].median;
}

/* What the kernel does for programs that share no memory: cross-memory attach. */

static bool cma_moves(const struct perf *perf, unsigned char *own, size_t bytes, bool writes)
{
    struct iovec here = {own, bytes}, there = {perf->twin->memory, bytes};
    ssize_t done = (writes ? process_vm_writev : process_vm_readv)(perf->twin->pid, &here, 1, &there, 1, 0);
    return done == (ssize_t)bytes;
}

bool perf_cma_is_allowed(const struct perf *perf)
{
    return cma_moves(perf, perf->copy_from, 1, true);
}

static void cma(struct perf *perf, struct perf_row *row, long count)
{
    for (long i = 0; i < count; i++)
        if (!cma_moves(perf, perf->from[PERF_HEAP], row->bytes, true))
            perf_fail(perf, "process_vm_writev of %zu bytes failed", row->bytes);
}

static void copy(struct perf *perf, struct perf_row *row, long count)
{
    void *(*volatile hidden)(void *, const void *, size_t) = memcpy;
    for (long i = 0; i < count; i++)
        hidden(perf->copy_to, perf->copy_from, row->bytes);
}

static bool verify_cma(struct perf *perf, struct perf_row *row)
{
    return perf->me != 0 || (cma_moves(perf, perf->copy_to, row->bytes, false) &&
                             perf_is_given(perf, row, perf->copy_to, 0, row->bytes, 0));
}

const struct perf_test perf_machine_tests[] = {
    {"cma", "not the library: process_vm_writev to a process that shares no memory", "memcpy of the same size",
     PERF_ONE, PERF_BYTES_RATE, 1, PERF_GLOBAL_BYTES, false, false, perf_fill, cma, copy, verify_cma},
    {NULL, NULL, NULL, PERF_ONE, PERF_NO_RATE, 0, 0, false, false, NULL, NULL, NULL, NULL},
};
