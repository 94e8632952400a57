/* SPDX-License-Identifier: BSD-3-Clause */
/* threads.c - eight threads of each PE do everything at once: SHMEM_THREAD_MULTIPLE.
 *
 * Use: threads [--seconds S] [--seed N]     (2 seconds, seed 1)
 * Aim: no byte, count or order is lost when threads share a PE. Method: thread t of PE p owns a cell on each PE, which
 * no other thread writes, and a mailbox for the thread of its index on each PE; sums and the lock's counter are shared
 * by all. According to their index threads use the default context, contexts of their own that they destroy and
 * recreate meanwhile (private ones, and some of a team in reverse PE order), or one of two serialized contexts that
 * several threads share under a mutex. Threads that share no context also split a team of their own, reduce over it,
 * and destroy it, all at the same time; one of them allocates and frees blocks of the heap. A cell is read back at
 * once; every byte of a mailbox is compared when its signal is seen; after the run the sums are compared with what was
 * added.
 */
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <shmem.h>

#include "base/prng.h"

#define THREADS    8
#define CELL_BYTES 4096
#define SUM_WORDS  200

/* Symmetric, one for each thread of each PE. */
struct cell {
    unsigned char bytes[CELL_BYTES];
    uint64_t words[8];
};
struct mailbox {
    uint64_t signal;   /* written by the sender: rounds */
    uint64_t accepted; /* at the sender: by the receiver */
    unsigned char bytes[CELL_BYTES];
};

struct thread {
    pthread_t id;
    int number;
    struct quoit_prng prng;
    shmem_ctx_t ctx;
    bool is_ctx_own;                /* created and destroyed by this thread */
    bool is_ctx_backward;           /* of the team in reverse PE order */
    pthread_mutex_t *ctx_lock;      /* NULL: no other thread uses ctx */
    uint64_t *added;                /* [pe_count] to the sums */
    unsigned char mail[CELL_BYTES]; /* the expected contents of the mailbox */
    uint64_t ctx_count;
    shmem_team_t team; /* of all PEs; split by this thread only */
    uint64_t team_count;
    uint64_t locked_count;
    uint64_t round_count;
};

static struct {
    int me;
    int pe_count;
    uint64_t seed;
    double seconds;
    struct cell *cells;        /* [pe_count][THREADS] at each PE: of thread t of PE p */
    struct mailbox *mailboxes; /* [THREADS] */
    uint64_t *sums;            /* [THREADS + 1]: each thread's, and one for all */
    pthread_mutex_t shared[2];
    pthread_mutex_t lock_turn; /* a lock belongs to a PE: its threads take turns */
    shmem_team_t backward;     /* all PEs, in reverse order */
} test;

static long lock;                   /* symmetric */
static uint64_t locked;             /* symmetric: counter under the lock, at PE 0 */
static uint64_t flag[THREADS];      /* symmetric: of plain waits */
static uint64_t tally[4], total[4]; /* symmetric */

static void fail(const struct thread *thread, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "threads: PE %d of %d, thread %d, round %llu: %s (again: threads --seed %llu)\n", test.me,
            test.pe_count, thread ? thread->number : -1, (unsigned long long)(thread ? thread->round_count : 0), text,
            (unsigned long long)test.seed);
    shmem_global_exit(1);
    abort();
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct cell *own_cell(const struct thread *thread)
{
    return &test.cells[test.me * THREADS + thread->number];
}

static void fill(struct thread *thread, unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i += 8) {
        uint64_t word = quoit_prng_next(&thread->prng);
        memcpy(bytes + i, &word, count - i < 8 ? count - i : 8);
    }
}

/* The number of a PE in the team of the thread's context. */
static int in_ctx(const struct thread *thread, int pe)
{
    return thread->is_ctx_backward ? test.pe_count - 1 - pe : pe;
}

/* Puts of all forms into this thread's cell at a PE; after a quiet of this context alone, gets of all forms see them.
 */
static void step_cell(struct thread *thread, int pe)
{
    int to = in_ctx(thread, pe);
    unsigned char sent[CELL_BYTES], got[CELL_BYTES];
    struct cell *cell = own_cell(thread);
    size_t bytes = 1 + quoit_prng_choose(&thread->prng, CELL_BYTES);
    size_t at = quoit_prng_choose(&thread->prng, CELL_BYTES - bytes + 1);
    size_t half = bytes / 2;
    fill(thread, sent, bytes);
    shmem_ctx_putmem_nbi(thread->ctx, cell->bytes + at, sent, half, to);
    shmem_ctx_putmem(thread->ctx, cell->bytes + at + half, sent + half, bytes - half, to);
    shmem_ctx_quiet(thread->ctx);
    memset(got, 0, bytes);
    if (quoit_prng_choose(&thread->prng, 2) == 0) {
        shmem_ctx_getmem(thread->ctx, got, cell->bytes + at, bytes, to);
    } else {
        shmem_ctx_getmem_nbi(thread->ctx, got, cell->bytes + at, bytes, to);
        shmem_ctx_quiet(thread->ctx);
    }
    if (memcmp(sent, got, bytes) != 0)
        fail(thread, "%zu bytes at %zu of the own cell at PE %d came back different", bytes, at, pe);
}

/* A fence orders words to one PE; an atomic fetch on the same context comes after both. */
static void step_words(struct thread *thread, int pe)
{
    struct cell *cell = own_cell(thread);
    uint64_t value = quoit_prng_next(&thread->prng), old;
    int to = in_ctx(thread, pe);
    shmem_ctx_uint64_p(thread->ctx, &cell->words[0], value, to);
    shmem_ctx_fence(thread->ctx);
    shmem_ctx_uint64_atomic_set(thread->ctx, &cell->words[0], value + 1, to);
    shmem_ctx_fence(thread->ctx);
    old = shmem_ctx_uint64_atomic_swap(thread->ctx, &cell->words[0], 7, to);
    if (old != value + 1)
        fail(thread, "a word at PE %d was %llx after a fence, but %llx was set", pe, (unsigned long long)old,
             (unsigned long long)value + 1);
    shmem_ctx_uint64_atomic_fetch_add_nbi(thread->ctx, &old, &cell->words[0], 1, to);
    shmem_ctx_quiet(thread->ctx);
    if (old != 7)
        fail(thread, "a non-blocking fetch at PE %d gave %llu, not 7", pe, (unsigned long long)old);
}

/* Strided elements, there and back. */
static void step_strided(struct thread *thread, int pe)
{
    struct cell *cell = own_cell(thread);
    uint64_t sent[8], got[8] = {0};
    int to = in_ctx(thread, pe);
    ptrdiff_t stride = 1 + (ptrdiff_t)quoit_prng_choose(&thread->prng, 2);
    size_t count = 1 + quoit_prng_choose(&thread->prng, 4);
    fill(thread, (unsigned char *)sent, sizeof sent);
    shmem_ctx_uint64_iput(thread->ctx, cell->words, sent, stride, stride, count, to);
    shmem_ctx_quiet(thread->ctx);
    shmem_ctx_uint64_iget(thread->ctx, got, cell->words, stride, stride, count, to);
    for (size_t i = 0; i < count * (size_t)stride; i++)
        if (got[i] != (i % (size_t)stride ? 0 : sent[i]))
            fail(thread, "word %zu of %zu with stride %td at PE %d came back different", i, count, stride, pe);
}

static void step_sums(struct thread *thread, int pe)
{
    uint64_t value = quoit_prng_next(&thread->prng);
    shmem_ctx_uint64_atomic_add(thread->ctx, &test.sums[THREADS], value, in_ctx(thread, pe));
    shmem_ctx_uint64_atomic_fetch_add(thread->ctx, &test.sums[thread->number], value, in_ctx(thread, pe));
    thread->added[pe] += value;
}

static void step_lock(struct thread *thread)
{
    pthread_mutex_lock(&test.lock_turn);
    shmem_set_lock(&lock);
    uint64_t value = shmem_uint64_g(&locked, 0);
    shmem_uint64_p(&locked, value + 1, 0);
    shmem_clear_lock(&lock);
    pthread_mutex_unlock(&test.lock_turn);
    thread->locked_count++;
}

/* The message of thread `number` of a PE in a round: its length and place in the mailbox. */
struct letter {
    size_t at, bytes;
    struct quoit_prng prng; /* of the contents */
};

static struct letter letter_of(int pe, int number, uint64_t round)
{
    struct quoit_prng prng = {.state = test.seed + round * 1000003u + (uint64_t)(pe * THREADS + number) * 97};
    uint64_t limit = (uint64_t)1 << quoit_prng_choose(&prng, 13);
    size_t bytes = quoit_prng_choose(&prng, limit + 1);
    return (struct letter){quoit_prng_choose(&prng, CELL_BYTES - bytes + 1), bytes, prng};
}

static void write_letter(struct letter *letter, unsigned char *to)
{
    for (size_t i = 0; i < letter->bytes; i++)
        to[i] = (unsigned char)quoit_prng_next(&letter->prng);
}

/* Data before its signal, in each form that guarantees it. */
static void send_letter(struct thread *thread, struct letter *letter, uint64_t round, int pe)
{
    static unsigned char letters[THREADS][CELL_BYTES]; /* symmetric */
    struct mailbox *box = &test.mailboxes[thread->number];
    unsigned char private[CELL_BYTES];
    unsigned char *sent = round % 2 ? letters[thread->number] : private;
    int to = in_ctx(thread, pe);
    write_letter(letter, sent);
    switch (quoit_prng_choose(&thread->prng, 3)) {
    case 0:
        shmem_ctx_putmem_signal(thread->ctx, box->bytes + letter->at, sent, letter->bytes, &box->signal, round,
                                SHMEM_SIGNAL_SET, to);
        break;
    case 1:
        shmem_ctx_putmem_signal_nbi(thread->ctx, box->bytes + letter->at, sent, letter->bytes, &box->signal, 1,
                                    SHMEM_SIGNAL_ADD, to);
        break;
    default:
        shmem_ctx_putmem_nbi(thread->ctx, box->bytes + letter->at, sent, letter->bytes, to);
        shmem_ctx_fence(thread->ctx);
        shmem_ctx_signal_set(thread->ctx, &box->signal, round, to);
    }
    shmem_ctx_quiet(thread->ctx);
}

static void await(struct thread *thread, uint64_t *word, uint64_t value)
{
    switch (quoit_prng_choose(&thread->prng, 4)) {
    case 0:
        shmem_uint64_wait_until(word, SHMEM_CMP_GE, value);
        break;
    case 1:
        shmem_signal_wait_until(word, SHMEM_CMP_GE, value);
        break;
    case 2:
        shmem_uint64_wait_until_any(word, 1, NULL, SHMEM_CMP_EQ, value);
        break;
    default:
        while (!shmem_uint64_test(word, SHMEM_CMP_EQ, value))
            sched_yield();
    }
}

/* All threads of one index send around their ring of PEs and wait for their own message, then for a plain flag. */
static void step_mail(struct thread *thread)
{
    struct mailbox *box = &test.mailboxes[thread->number];
    uint64_t round = ++thread->round_count;
    int next = (test.me + 1) % test.pe_count, before = (test.me + test.pe_count - 1) % test.pe_count;
    struct letter mine = letter_of(test.me, thread->number, round), theirs = letter_of(before, thread->number, round);
    send_letter(thread, &mine, round, next);
    await(thread, &box->signal, round);
    write_letter(&theirs, thread->mail + theirs.at);
    for (int i = 0; i < CELL_BYTES; i++)
        if (box->bytes[i] != thread->mail[i])
            fail(thread, "byte %d of the mailbox is %d, not %d; PE %d sent %zu bytes to %zu", i, box->bytes[i],
                 thread->mail[i], before, theirs.bytes, theirs.at);
    shmem_ctx_uint64_atomic_inc(thread->ctx, &box->accepted, in_ctx(thread, before)); /* the buffer may be reused */
    await(thread, &box->accepted, round);
    shmem_ctx_uint64_atomic_set(thread->ctx, &flag[thread->number], round, in_ctx(thread, next));
    await(thread, &flag[thread->number], round);
}

/* Thread 0 allocates blocks of the heap, which may have to grow, while the others continue; data put into a block must
 * arrive. */
static void step_heap(struct thread *thread)
{
    struct quoit_prng prng = {.state = test.seed * 104729 + thread->round_count};
    size_t count = 1 + quoit_prng_choose(&prng, (uint64_t)1 << quoit_prng_choose(&prng, 15));
    int next = (test.me + 1) % test.pe_count, before = (test.me + test.pe_count - 1) % test.pe_count;
    uint64_t *block = shmem_malloc(count * sizeof *block), *sent = malloc(count * sizeof *sent);
    if (!block || !sent)
        fail(thread, "no memory");
    for (size_t i = 0; i < count; i++)
        sent[i] = thread->round_count * 1000003u + (uint64_t)test.me * 97 + i;
    shmem_uint64_put(block, sent, count, next);
    shmem_barrier_all();
    for (size_t i = 0; i < count; i++)
        if (block[i] != thread->round_count * 1000003u + (uint64_t)before * 97 + i)
            fail(thread, "word %d of a block of %d from PE %d is wrong", (int)i, (int)count, before);
    free(sent);
    shmem_free(block);
}

/* The PEs split into one or two teams in turn, and each reduces over its team. */
static void step_team(struct thread *thread)
{
    static uint64_t given[THREADS][SUM_WORDS], got[THREADS][SUM_WORDS]; /* symmetric */
    struct quoit_prng prng = {.state = test.seed * 7919 + thread->round_count * 16 + (uint64_t)thread->number};
    int stride = 1 + (int)quoit_prng_choose(&prng, test.pe_count > 1 ? 2 : 1);
    uint64_t key = quoit_prng_next(&prng), count = 1 + quoit_prng_choose(&prng, SUM_WORDS);
    shmem_team_t part = SHMEM_TEAM_INVALID;
    for (int first = 0; first < stride; first++) {
        shmem_team_t other;
        if (shmem_team_split_strided(thread->team, first, stride, (test.pe_count - first + stride - 1) / stride, NULL,
                                     0, &other) != 0)
            fail(thread, "a split failed");
        part = other == SHMEM_TEAM_INVALID ? part : other;
    }
    uint64_t size = (uint64_t)shmem_team_n_pes(part), rank = (uint64_t)shmem_team_my_pe(part);
    if (rank != (uint64_t)(test.me / stride))
        fail(thread, "PE %d of the part is PE %d of all", (int)rank, test.me);
    for (uint64_t i = 0; i < count; i++)
        given[thread->number][i] = key * (rank + 1) + i;
    if (shmem_uint64_sum_reduce(part, got[thread->number], given[thread->number], count) != 0)
        fail(thread, "a sum failed");
    for (uint64_t i = 0; i < count; i++)
        if (got[thread->number][i] != key * (size * (size + 1) / 2) + size * i)
            fail(thread, "word %d of a sum over %d PEs is wrong", (int)i, (int)size);
    shmem_team_destroy(part);
    thread->team_count++;
}

static void step(struct thread *thread)
{
    int pe = (int)quoit_prng_choose(&thread->prng, (size_t)test.pe_count);
    if (thread->ctx_lock)
        pthread_mutex_lock(thread->ctx_lock);
    switch (quoit_prng_choose(&thread->prng, 4)) {
    case 0:
        step_cell(thread, pe);
        break;
    case 1:
        step_words(thread, pe);
        break;
    case 2:
        step_strided(thread, pe);
        break;
    default:
        step_sums(thread, pe);
    }
    if (thread->ctx_lock)
        pthread_mutex_unlock(thread->ctx_lock);
    if (quoit_prng_choose(&thread->prng, 32) == 0)
        step_lock(thread);
}

/* Replaces this thread's context while the other threads continue. Outstanding operations of the old one are completed.
 */
static void renew_ctx(struct thread *thread)
{
    long options = quoit_prng_choose(&thread->prng, 2) ? SHMEM_CTX_PRIVATE : 0;
    bool is_backward = quoit_prng_choose(&thread->prng, 2) == 0;
    if (thread->ctx != SHMEM_CTX_INVALID)
        shmem_ctx_destroy(thread->ctx);
    if ((is_backward ? shmem_team_create_ctx(test.backward, options, &thread->ctx)
                     : shmem_ctx_create(options, &thread->ctx)) != 0)
        fail(thread, "no context");
    thread->is_ctx_backward = is_backward;
    thread->ctx_count++;
}

static void run_rounds(struct thread *thread, int round_count)
{
    for (int round = 0; round < round_count; round++) {
        if (thread->is_ctx_own && quoit_prng_choose(&thread->prng, 4) == 0)
            renew_ctx(thread);
        for (int i = 0; i < 8; i++)
            step(thread);
        if (thread->ctx_lock) /* waiting for a message or a team must not keep others from sending theirs */
            continue;
        step_mail(thread);
        if (thread->round_count % 4 == 0)
            step_team(thread);
        if (thread->number == 0 && thread->round_count % 8 == 0)
            step_heap(thread);
    }
}

static pthread_barrier_t all_threads;
static int rounds_next; /* decided by PE 0 for all; 0: the end */
static int rounds_of_all;

/* Thread 0 agrees with the other PEs how many rounds come next, so that all do the same number. */
static void *run(void *arg)
{
    struct thread *thread = arg;
    double end = seconds_now() + test.seconds;
    if (thread->is_ctx_own)
        renew_ctx(thread);
    for (;;) {
        pthread_barrier_wait(&all_threads);
        if (thread->number == 0) {
            rounds_next = seconds_now() < end ? 4 : 0;
            shmem_int_broadcast(SHMEM_TEAM_WORLD, &rounds_of_all, &rounds_next, 1, 0);
        }
        pthread_barrier_wait(&all_threads);
        if (rounds_of_all == 0)
            break;
        run_rounds(thread, rounds_of_all);
    }
    shmem_ctx_quiet(thread->ctx);
    if (thread->is_ctx_own)
        shmem_ctx_destroy(thread->ctx);
    return NULL;
}

static void parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"seconds", required_argument, NULL, 's'}, {"seed", required_argument, NULL, 'n'}, {NULL, 0, NULL, 0}};
    int option;
    test.seed = 1;
    test.seconds = 2;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 's')
            test.seconds = atof(optarg);
        else if (option == 'n')
            test.seed = strtoull(optarg, NULL, 0);
        else
            exit(2);
    }
}

static void *symmetric(size_t count, size_t bytes)
{
    void *memory = shmem_calloc(count, bytes);
    if (!memory)
        fail(NULL, "no symmetric memory");
    return memory;
}

/* The contributions of all threads of all PEs to the sums of each PE are complete. */
static void check_sums(struct thread *threads)
{
    size_t pe_count = (size_t)test.pe_count;
    uint64_t *mine = symmetric(pe_count * (THREADS + 1), sizeof *mine);
    uint64_t *all = symmetric(pe_count * (THREADS + 1), sizeof *all);
    for (int t = 0; t < THREADS; t++) {
        tally[0] += threads[t].locked_count;
        tally[1] += threads[t].round_count;
        tally[2] += threads[t].ctx_count;
        tally[3] += threads[t].team_count;
        for (size_t pe = 0; pe < pe_count; pe++) {
            mine[pe * (THREADS + 1) + (size_t)t] = threads[t].added[pe];
            mine[pe * (THREADS + 1) + THREADS] += threads[t].added[pe];
        }
    }
    shmem_uint64_sum_reduce(SHMEM_TEAM_WORLD, all, mine, pe_count * (THREADS + 1));
    shmem_uint64_sum_reduce(SHMEM_TEAM_WORLD, total, tally, 4);
    for (size_t t = 0; t <= THREADS; t++)
        if (test.sums[t] != all[(size_t)test.me * (THREADS + 1) + t])
            fail(NULL, "sum %zu is %llu, but %llu was added", t, (unsigned long long)test.sums[t],
                 (unsigned long long)all[(size_t)test.me * (THREADS + 1) + t]);
    if (test.me == 0 && locked != total[0])
        fail(NULL, "the counter under the lock is %llu, but %llu were counted", (unsigned long long)locked,
             (unsigned long long)total[0]);
    shmem_free(all);
    shmem_free(mine);
}

int main(int argc, char **argv)
{
    static struct thread threads[THREADS];
    shmem_ctx_t serialized[2];
    int provided;
    parse(argc, argv);
    if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0 || provided != SHMEM_THREAD_MULTIPLE)
        return 1;
    test.me = shmem_my_pe();
    test.pe_count = shmem_n_pes();
    test.cells = symmetric((size_t)test.pe_count * THREADS, sizeof *test.cells);
    test.mailboxes = symmetric(THREADS, sizeof *test.mailboxes);
    test.sums = symmetric(THREADS + 1, sizeof *test.sums);
    pthread_mutex_init(&test.lock_turn, NULL);
    pthread_barrier_init(&all_threads, NULL, THREADS);
    if (shmem_team_split_strided(SHMEM_TEAM_WORLD, test.pe_count - 1, -1, test.pe_count, NULL, 0, &test.backward) != 0)
        fail(NULL, "no team");
    for (int i = 0; i < 2; i++) {
        pthread_mutex_init(&test.shared[i], NULL);
        if ((i == 0 ? shmem_ctx_create(SHMEM_CTX_SERIALIZED, &serialized[i])
                    : shmem_team_create_ctx(test.backward, SHMEM_CTX_SERIALIZED, &serialized[i])) != 0)
            fail(NULL, "no context");
    }
    for (int t = 0; t < THREADS; t++) {
        threads[t].number = t;
        threads[t].prng.state = test.seed * 1000003u + (uint64_t)(test.me * THREADS + t);
        if (shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, test.pe_count, NULL, 0, &threads[t].team) != 0)
            fail(NULL, "no team");
        threads[t].added = calloc((size_t)test.pe_count, sizeof *threads[t].added);
        threads[t].is_ctx_own = t >= 2 && t < 5;
        threads[t].is_ctx_backward = t >= 5 && t % 2;
        threads[t].ctx = t < 2 ? SHMEM_CTX_DEFAULT : t < 5 ? SHMEM_CTX_INVALID : serialized[t % 2];
        threads[t].ctx_lock = t < 5 ? NULL : &test.shared[t % 2];
    }
    shmem_barrier_all();
    for (int t = 0; t < THREADS; t++)
        if (pthread_create(&threads[t].id, NULL, run, &threads[t]) != 0)
            fail(NULL, "no thread");
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t].id, NULL);
    shmem_barrier_all();
    check_sums(threads);
    if (test.me == 0)
        printf("threads: %d PEs of %d threads, %llu rounds, %llu contexts, %llu teams, seed %llu: verified\n",
               test.pe_count, THREADS, (unsigned long long)total[1], (unsigned long long)total[2],
               (unsigned long long)total[3], (unsigned long long)test.seed);
    for (int t = 0; t < THREADS; t++) {
        free(threads[t].added);
        shmem_team_destroy(threads[t].team);
    }
    for (int i = 0; i < 2; i++)
        shmem_ctx_destroy(serialized[i]);
    shmem_team_destroy(test.backward);
    shmem_free(test.sums);
    shmem_free(test.mailboxes);
    shmem_free(test.cells);
    shmem_finalize();
    return 0;
}
