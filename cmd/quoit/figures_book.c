/* SPDX-License-Identifier: BSD-3-Clause */
#include "figures.h"

#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "env/clock.h"
#include "env/limits.h"

#define WORKERS_MAX 16
#define STEPS       5 /* the papers' five experiments */
#define LOOK_NS     100000000u
#define CHUNK_OURS  32768u
#define SEED        1

void figures_book_open(struct figures_book *book)
{
    memset(book, 0, sizeof *book);
    book->runs =
        mmap(NULL, FIGURES_RUNS_MAX * sizeof *book->runs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    quoit_assert(book->runs != MAP_FAILED);
    book->is_collecting = true;
}

void figures_book_close(struct figures_book *book)
{
    munmap(book->runs, FIGURES_RUNS_MAX * sizeof *book->runs);
}

static bool is_same(const struct figures_key *a, const struct figures_key *b)
{
    return strcmp(a->workload, b->workload) == 0 && a->protocol == b->protocol && a->is_copied == b->is_copied &&
           a->has_page_dma == b->has_page_dma && a->host_count == b->host_count && a->lane_count == b->lane_count &&
           a->bytes == b->bytes;
}

double figures_value(struct figures_book *book, const struct figures_key *key, const char *metric)
{
    uint32_t i = 0;
    while (i < book->run_count && !is_same(&book->runs[i].key, key))
        i++;
    if (i == book->run_count) {
        quoit_assert(book->is_collecting);
        quoit_assert(i < FIGURES_RUNS_MAX);
        book->runs[book->run_count++].key = *key;
    }
    if (book->is_collecting)
        return 0;
    const struct sim_result *result = &book->runs[i].result;
    for (uint32_t m = 0; m < result->metric_count; m++)
        if (strcmp(result->metrics[m].name, metric) == 0)
            return result->metrics[m].sum / (double)result->metrics[m].count;
    quoit_assert(!"a workload without this metric");
    return 0;
}

struct figures_relation *figures_relate(struct figures_book *book, const char *figure, const char *name, ...)
{
    quoit_assert(book->relation_count < FIGURES_RELATIONS_MAX);
    struct figures_relation *relation = &book->relations[book->relation_count++];
    *relation = (struct figures_relation){.figure = figure, .unit = "", .high = INFINITY, .other = NAN};
    va_list list;
    va_start(list, name);
    vsnprintf(relation->name, sizeof relation->name, name, list);
    va_end(list);
    return relation;
}

/* Making the runs: a world is one a process, so each worker is a process that takes the next run until none is left. */

static void make_run(const struct figures_book *book, struct figures_run *run)
{
    const struct figures_key *key = &run->key;
    struct sim_plan plan;
    struct sim_config config;
    bool is_papers = key->protocol == FIGURES_PAPERS;
    sim_plan_default(&plan);
    plan.model = book->model;
    plan.workload = sim_workload_find(key->workload);
    quoit_assert(plan.workload != NULL);
    plan.host_count = key->host_count;
    plan.lane_count = key->lane_count;
    plan.bytes = key->bytes;
    plan.step_count = STEPS;
    /* The papers send each put as one transfer; ours cuts it. */
    plan.chunk_bytes = is_papers && key->bytes > CHUNK_OURS ? (uint32_t)key->bytes : CHUNK_OURS;
    plan.protocol = is_papers ? QUOIT_PROTOCOL_SCRATCHPAD : QUOIT_PROTOCOL_QUEUE;
    plan.barrier = is_papers ? QUOIT_BARRIER_PAPERS : QUOIT_BARRIER_AUTO;
    plan.payload = key->is_copied ? QUOIT_PAYLOAD_COPY : QUOIT_PAYLOAD_DMA;
    plan.has_page_dma = key->has_page_dma;
    sim_config_choose(&plan, SEED, &config);
    config.check_all_every = 0;
    sim_run(&config, &run->result);
    run->is_done = true;
}

static void work(const struct figures_book *book, _Atomic uint32_t *next)
{
    for (;;) {
        uint32_t i = atomic_fetch_add(next, 1);
        if (i >= book->run_count)
            return;
        make_run(book, &book->runs[i]);
    }
}

static void show_progress(const struct figures_book *book)
{
    uint32_t done_count = 0;
    for (uint32_t i = 0; i < book->run_count; i++)
        done_count += book->runs[i].is_done;
    fprintf(stderr, "\r%u of %u runs ", done_count, book->run_count);
}

/* Waits for all workers; false if one of them died. */
static bool wait_for(const struct figures_book *book, uint32_t worker_count)
{
    bool is_good = true, shows = isatty(STDERR_FILENO) == 1;
    while (worker_count > 0) {
        int status;
        pid_t pid = waitpid(-1, &status, shows ? WNOHANG : 0);
        if (pid > 0) {
            worker_count--;
            is_good &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
        } else if (pid == 0) {
            show_progress(book);
            quoit_clock_sleep_ns(LOOK_NS);
        } else {
            return false;
        }
    }
    if (shows)
        fprintf(stderr, "\r%40s\r", "");
    return is_good;
}

static void report_failure(const struct figures_run *run)
{
    const struct figures_key *key = &run->key;
    fprintf(stderr, "quoit figures: workload %s, %s protocol%s, %u hosts, %u lanes, %llu bytes: %s\n", key->workload,
            key->protocol == FIGURES_PAPERS ? "papers'" : "our", key->is_copied ? ", copied" : "", key->host_count,
            key->lane_count, (unsigned long long)key->bytes,
            run->is_done ? run->result.failure : "the code under test crashed");
}

bool figures_book_make(struct figures_book *book)
{
    uint32_t worker_count = quoit_limits_core_count();
    worker_count = worker_count < WORKERS_MAX ? worker_count : WORKERS_MAX;
    _Atomic uint32_t *next = mmap(NULL, sizeof *next, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    quoit_assert(next != MAP_FAILED);
    fflush(NULL);
    for (uint32_t i = 0; i < worker_count; i++) {
        pid_t pid = fork();
        quoit_assert(pid >= 0);
        if (pid == 0) {
            work(book, next);
            _exit(0);
        }
    }
    bool is_good = wait_for(book, worker_count);
    munmap(next, sizeof *next);
    for (uint32_t i = 0; i < book->run_count; i++) {
        if (!book->runs[i].is_done || !book->runs[i].result.is_ok) {
            report_failure(&book->runs[i]);
            return false;
        }
    }
    book->is_collecting = false;
    return is_good;
}
