/* SPDX-License-Identifier: BSD-3-Clause */
/* handed - locks that PEs queue for, whose releasers hand the notices over.
 *
 * Under each of a few locks a count grows, and with each count change some pages, which the count determines: few, or
 * more than a releaser remembers. The holder compares all pages with a model that follows from the count. Under the
 * first lock it also sets the mark of the count; under the others it writes which counts of the first lock it has seen,
 * and finds the marks of those that an earlier holder has: so what a PE knows by one lock goes on by another.
 *
 * Use: handed [--steps N] [--threads N]. A failure prints PE, lock, count and both values.
 */
#include <dsm.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOCKS       3
#define PAGES       80 /* of each lock, in every second page: a notice each */
#define WORDS       512
#define THREADS_MAX 80
#define HOLD_NS     100000

struct page {
    uint64_t words[WORDS];
};

struct of_lock {
    struct page head; /* the count; the latest count of the first lock that a holder had seen */
    struct page pages[2 * PAGES];
};

struct shared {
    dsm_lock_t locks[LOCKS];
    struct page marks; /* [count of the first lock]: 1, a single byte that changes once */
    struct of_lock of[LOCKS];
};

static struct {
    struct shared *shared;
    int steps, threads, me, pe_count;
} test = {.steps = 20, .threads = 1};

/* What a thread knows: for each lock the last count, and that at which each page was written last. */
struct model {
    int thread;
    uint64_t seen[LOCKS], last[LOCKS][PAGES];
};

static void check(uint64_t seen, uint64_t expected, const char *what, int lock, uint64_t count)
{
    if (seen == expected)
        return;
    fprintf(stderr, "handed: PE %d, lock %d, count %llu: %s is %llu, but %llu is required\n", test.me, lock,
            (unsigned long long)count, what, (unsigned long long)seen, (unsigned long long)expected);
    _exit(1);
}

/* How many pages a count changes, and which. */
static int width_of(uint64_t count)
{
    return count % 8 == 7 ? PAGES : 1 + (int)(count % 4);
}

static int page_of(uint64_t count, int i)
{
    return (int)((count * 5 + (uint64_t)i) % PAGES);
}

static void compare(struct model *model, int lock)
{
    const struct of_lock *of = &test.shared->of[lock];
    uint64_t count = of->head.words[0];
    check(count >= model->seen[lock], 1, "whether the count is not less than before", lock, count);
    for (uint64_t at = model->seen[lock] + 1; at <= count; at++) {
        for (int i = 0; i < width_of(at); i++)
            model->last[lock][page_of(at, i)] = at;
    }
    model->seen[lock] = count;
    for (int page = 0; page < PAGES; page++)
        check(of->pages[2 * page].words[lock], model->last[lock][page], "a page", lock, count);
    for (uint64_t at = 1; at <= of->head.words[1]; at++)
        check(test.shared->marks.words[at], 1, "a mark", lock, at);
}

static void change(const struct model *model, int lock)
{
    struct of_lock *of = &test.shared->of[lock];
    uint64_t count = ++of->head.words[0];
    for (int i = 0; i < width_of(count); i++)
        of->pages[2 * page_of(count, i)].words[lock] = count;
    if (lock == 0)
        test.shared->marks.words[count] = 1;
    else if (of->head.words[1] < model->seen[0])
        of->head.words[1] = model->seen[0];
}

static void *run_thread(void *argument)
{
    struct model *model = argument;
    for (int step = 0; step < test.steps; step++) {
        int lock = (step + model->thread) % LOCKS;
        dsm_lock(&test.shared->locks[lock]);
        compare(model, lock);
        change(model, lock);
        nanosleep(&(struct timespec){0, HOLD_NS}, NULL); /* so that others come to wait */
        dsm_unlock(&test.shared->locks[lock]);
    }
    return NULL;
}

int main(int count, char **words)
{
    static struct model models[THREADS_MAX];
    for (int i = 1; i + 1 < count; i += 2) {
        if (strcmp(words[i], "--steps") == 0)
            test.steps = atoi(words[i + 1]);
        else if (strcmp(words[i], "--threads") == 0)
            test.threads = atoi(words[i + 1]);
    }
    test.shared = dsm_all_malloc(sizeof *test.shared);
    test.me = dsm_my_pe();
    test.pe_count = dsm_n_pes();
    int total = test.steps * test.threads * test.pe_count;
    if (test.threads > THREADS_MAX || total >= WORDS) {
        fprintf(stderr, "handed: at most %d threads, and %d steps of all\n", THREADS_MAX, WORDS - 1);
        return 2;
    }
    pthread_t threads[THREADS_MAX];
    for (int i = 1; i < test.threads; i++) {
        models[i].thread = i;
        check((uint64_t)pthread_create(&threads[i], NULL, run_thread, &models[i]), 0, "pthread_create", 0, 0);
    }
    run_thread(&models[0]); /* alone it is the only thread of the PE */
    for (int i = 1; i < test.threads; i++)
        pthread_join(threads[i], NULL);
    dsm_barrier_all();
    uint64_t sum = 0;
    for (int lock = 0; lock < LOCKS; lock++) {
        compare(&models[0], lock);
        sum += test.shared->of[lock].head.words[0];
    }
    check(sum, (uint64_t)total, "the sum of the counts", 0, 0);
    dsm_finalize();
    return 0;
}
