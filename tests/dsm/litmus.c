/* SPDX-License-Identifier: BSD-3-Clause */
/* litmus - small programs whose outcome release consistency forbids or requires, one after another, each in rounds.
 *
 * Variables of one program lie in separate pages, or share one where false sharing is tested. Rounds are separated by
 * barriers. A wrong outcome prints the program, the round and the values read.
 *
 * Use: litmus [--rounds N] [--only NAME]. DSM_DELAY varies the interleavings.
 */
#include <dsm.h>
#include <errno.h>
#include <pthread.h>
#include <shmem.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE       4096
#define LOCK_COUNT 65536
#define WORDS      512
#define KIND_COUNT 15 /* of enum dsm_protocol and enum dsm_copies, with each enum dsm_word */

struct page {
    uint64_t words[WORDS];
};

/* The variables of a program; x to z are in separate pages. */
struct shared {
    struct page x, y, z, several;
    dsm_lock_t a, b, c;
    dsm_cond_t cond;
    dsm_sem_t sem, free;
    dsm_flag_t flag;
    dsm_once_t once[64];
    dsm_rwlock_t rw;
    dsm_barrier_t some;
    uint64_t counter, pointer;
    uint64_t *kinds[KIND_COUNT];
    struct page *block;
    dsm_flag_t arrived[64], steps;
    dsm_lock_t locks[LOCK_COUNT];
    uint64_t counts[LOCK_COUNT];
};

static struct {
    struct shared *s;
    int me, pe_count, rounds;
    bool is_only;
    const char *name;
    uint64_t round;
} test = {.rounds = 10};

#define S (test.s)

static void check(uint64_t seen, uint64_t expected, const char *what)
{
    if (seen == expected)
        return;
    fprintf(stderr, "litmus: %s, round %llu, PE %d: %s is %llu, but %llu is required\n", test.name,
            (unsigned long long)test.round, test.me, what, (unsigned long long)seen, (unsigned long long)expected);
    _exit(1);
}

/* The PE of a role: roles rotate round by round, so homes differ. */
static int part(int number)
{
    return (int)(((uint64_t)number + test.round) % (uint64_t)test.pe_count);
}

static uint64_t locked_read(dsm_lock_t *lock, uint64_t *word)
{
    dsm_lock(lock);
    uint64_t value = *word;
    dsm_unlock(lock);
    return value;
}

static void mp_lock(uint64_t n)
{
    if (test.me == part(0)) {
        S->x.words[1] = n;
        dsm_lock(&S->a);
        S->y.words[0] = n;
        dsm_unlock(&S->a);
    } else {
        while (locked_read(&S->a, &S->y.words[0]) != n)
            continue;
        check(S->x.words[1], n, "the message");
    }
}

static void mp_flag(uint64_t n)
{
    if (test.me == part(0)) {
        for (int i = 0; i < WORDS; i++)
            S->x.words[i] = n + (uint64_t)i;
        dsm_flag_set(&S->flag, n);
    } else {
        dsm_flag_wait(&S->flag, n);
        for (int i = 0; i < WORDS; i++)
            check(S->x.words[i], n + (uint64_t)i, "a word of the message");
    }
}

/* Waiters for several values of one flag: each is woken by its own, and not before. */
static void mp_steps(uint64_t n)
{
    int count = test.pe_count;
    uint64_t step = (uint64_t)(test.me - part(0) + count) % (uint64_t)count, base = n * 64;
    if (step != 0) {
        dsm_flag_wait(&S->steps, base + step);
        check(dsm_flag_get(&S->steps), base + step, "the flag");
        check(S->x.words[step], base + step, "the message");
        dsm_sem_post(&S->sem);
        return;
    }
    for (uint64_t i = 1; i < (uint64_t)count; i++) {
        S->x.words[i] = base + i;
        dsm_flag_set(&S->steps, base + i);
        dsm_sem_wait(&S->sem);
    }
}

static void mp_barrier(uint64_t n)
{
    if (test.me == part(0))
        S->x.words[7] = n;
    dsm_barrier_all();
    check(S->x.words[7], n, "the message");
}

/* A synchronises with B by one lock, B with C by another: C sees what A wrote. */
static void wrc(uint64_t n)
{
    if (test.me == part(0)) {
        dsm_lock(&S->a);
        S->x.words[0] = n;
        dsm_unlock(&S->a);
    } else if (test.me == part(1)) {
        while (locked_read(&S->a, &S->x.words[0]) != n)
            continue;
        dsm_lock(&S->b);
        S->y.words[0] = n;
        dsm_unlock(&S->b);
    } else {
        while (locked_read(&S->b, &S->y.words[0]) != n)
            continue;
        check(S->x.words[0], n, "what the first wrote");
    }
}

static void isa2(uint64_t n)
{
    if (test.pe_count < 3)
        return;
    if (test.me == part(0)) {
        S->x.words[0] = n;
        dsm_flag_set(&S->flag, 2 * n);
    } else if (test.me == part(1)) {
        dsm_flag_wait(&S->flag, 2 * n);
        dsm_sem_post(&S->sem);
    } else if (test.me == part(2)) {
        dsm_sem_wait(&S->sem);
        check(S->x.words[0], n, "what the first wrote");
    }
}

/* The same over two locks, where the second PE reads another word than the one that the third checks. */
static void isa2_locks(uint64_t n)
{
    if (test.pe_count < 3)
        return;
    if (test.me == part(0)) {
        S->x.words[20] = n;
        dsm_lock(&S->a);
        S->y.words[20] = n;
        dsm_unlock(&S->a);
    } else if (test.me == part(1)) {
        while (locked_read(&S->a, &S->y.words[20]) != n)
            continue;
        dsm_lock(&S->b);
        S->z.words[20] = n;
        dsm_unlock(&S->b);
    } else {
        while (locked_read(&S->b, &S->z.words[20]) != n)
            continue;
        check(S->x.words[20], n, "what the first wrote");
    }
}

/* The values of one word never go backwards. */
static void corr(uint64_t n)
{
    uint64_t last = 0;
    for (int i = 0; i < 20; i++) {
        dsm_lock(&S->a);
        if (S->z.words[3] / 1000 == n)
            check(S->z.words[3] >= last, 1, "not older");
        else
            S->z.words[3] = n * 1000;
        last = ++S->z.words[3];
        dsm_unlock(&S->a);
    }
}

/* Writes under one lock in order: the last one remains, on every PE. */
static void coww(uint64_t n)
{
    dsm_lock(&S->a);
    S->z.words[5] = n * 100;
    S->z.words[5] = n * 100 + (uint64_t)test.me;
    S->z.words[6] = S->z.words[5];
    dsm_unlock(&S->a);
    dsm_barrier_all();
    check(S->z.words[5], S->z.words[6], "the last write");
}

/* All PEs write one page at once, each its own bytes of each word; the home among them. */
static void several_writers(uint64_t n)
{
    unsigned char *bytes = (unsigned char *)S->several.words;
    for (int i = test.me; i < PAGE; i += test.pe_count)
        bytes[i] = (unsigned char)(n * 7 + (uint64_t)i);
    dsm_barrier_all();
    for (int i = 0; i < PAGE; i++)
        check(bytes[i], (unsigned char)(n * 7 + (uint64_t)i), "a byte of the page");
}

/* One lock per PE, all in one page that all PEs write meanwhile. */
static void home_writes(uint64_t n)
{
    if (test.me == part(0))
        S->several.words[0] = 0;
    dsm_barrier_all();
    for (uint64_t i = 1; i <= 10; i++) {
        dsm_lock(&S->a);
        S->several.words[0]++;
        dsm_unlock(&S->a);
        S->several.words[1 + test.me] = n * 16 + i;
    }
    dsm_barrier_all();
    check(S->several.words[0], 10 * (uint64_t)test.pe_count, "the count");
    for (int pe = 0; pe < test.pe_count; pe++)
        check(S->several.words[1 + pe], n * 16 + 10, "a PE's word");
}

/* A third PE reads a page while its diff is travelling to the home: it sees the whole diff or waits. */
static void torn(uint64_t n)
{
    if (test.me == part(0)) {
        dsm_lock(&S->a);
        for (int i = 0; i < WORDS; i += 2)
            S->y.words[i] = n;
        S->pointer = n;
        dsm_unlock(&S->a);
    } else {
        while (locked_read(&S->a, &S->pointer) != n)
            continue;
        for (int i = 0; i < WORDS; i += 2)
            check(S->y.words[i], n, "a word of the page");
    }
}

static void first_touch(uint64_t n)
{
    uint64_t *block = NULL;
    if (test.me == 0)
        S->pointer = (uintptr_t)(block = dsm_malloc(8 * PAGE));
    dsm_barrier_all();
    block = (uint64_t *)S->pointer;
    for (int page = 0; page < 8; page++)
        block[page * WORDS + test.me] = n + (uint64_t)page;
    dsm_barrier_all();
    for (int page = 0; page < 8; page++) {
        for (int pe = 0; pe < test.pe_count; pe++)
            check(block[page * WORDS + pe], n + (uint64_t)page, "a word of a page that all touch first");
    }
    dsm_barrier_all();
    if (test.me == test.pe_count - 1)
        dsm_free(block);
}

/* The condition may be signalled before any PE waits: the predicate decides. */
static void condition(uint64_t n)
{
    dsm_lock(&S->c);
    if (test.me == part(0)) {
        S->x.words[9] = n;
        dsm_cond_broadcast(&S->cond);
    }
    while (S->x.words[9] != n)
        dsm_cond_wait(&S->cond, &S->c);
    dsm_unlock(&S->c);
    dsm_lock(&S->a);
    check((uint64_t)dsm_cond_timedwait(&S->cond, &S->a, 200000), ETIMEDOUT, "a wait that nobody ends");
    dsm_unlock(&S->a);
}

static void free_again(uint64_t n)
{
    for (int pe = 0; pe < test.pe_count; pe++) {
        if (test.me == pe) {
            uint64_t *block = dsm_malloc_placed(2 * PAGE, DSM_ON_PE, part(pe));
            check(block != NULL, 1, "a block");
            block[0] = n + (uint64_t)pe;
            block[WORDS] = n;
            S->pointer = (uintptr_t)block;
        }
        dsm_barrier_all();
        uint64_t *block = (uint64_t *)S->pointer;
        check(block[0], n + (uint64_t)pe, "the block's first word");
        check(block[WORDS], n, "its second page");
        dsm_barrier_all();
        if (test.me == part(pe + 1))
            dsm_free(block);
        dsm_barrier_all();
    }
}

static void many_locks(uint64_t n)
{
    int count = n % 4 == 0 ? LOCK_COUNT / 64 : 64;
    for (int i = 0; i < count; i++) {
        int at = (i * 64 + test.me) % LOCK_COUNT;
        dsm_lock(&S->locks[at]);
        S->counts[at]++;
        dsm_unlock(&S->locks[at]);
    }
}

/* 64 K locks acquired and released one after another, each PE starting at another one; then the data they protected.
 * Run alone: over a ring it takes seconds. */
static void all_locks(uint64_t n)
{
    if (!test.is_only)
        return;
    if (test.me == part(0))
        memset(S->counts, 0, sizeof S->counts);
    dsm_barrier_all();
    for (int i = 0; i < LOCK_COUNT; i++) {
        int at = (i + test.me * (LOCK_COUNT / test.pe_count)) % LOCK_COUNT;
        dsm_lock(&S->locks[at]);
        S->counts[at] += n;
        dsm_unlock(&S->locks[at]);
    }
    dsm_barrier_all();
    for (int i = 0; i < LOCK_COUNT; i++)
        check(S->counts[i], n * (uint64_t)test.pe_count, "what a lock protected");
}

static void trying(uint64_t n)
{
    (void)n;
    if (test.me == part(0))
        dsm_lock(&S->a);
    dsm_barrier_all();
    if (test.me != part(0)) {
        check((uint64_t)dsm_trylock(&S->a), EBUSY, "trylock");
        check((uint64_t)dsm_timedlock(&S->a, 300000), ETIMEDOUT, "timedlock");
        check((uint64_t)dsm_sem_trywait(&S->free), EBUSY, "sem_trywait");
        check((uint64_t)dsm_sem_timedwait(&S->free, 300000), ETIMEDOUT, "sem_timedwait");
    }
    dsm_barrier_all();
    if (test.me == part(0))
        dsm_unlock(&S->a);
    else
        check((uint64_t)dsm_timedlock(&S->a, 20000000000ull), 0, "timedlock of a free lock");
    if (test.me != part(0))
        dsm_unlock(&S->a);
}

/* Few locks, taken by each way at random, by one PE several times in a row or by several at once. A counter and its
 * copy in another page say whether a holder was alone and saw what the one before it wrote. */
static void ways(uint64_t n)
{
    enum { LOCKS = 3, STEPS_OF_WAYS = 40 };
    static uint64_t state;
    uint64_t taken[LOCKS] = {0};
    if (test.me == part(0))
        memset(&S->x, 0, sizeof S->x), memset(&S->y, 0, sizeof S->y), memset(&S->z, 0, sizeof S->z);
    dsm_barrier_all();
    for (int i = 0; i < STEPS_OF_WAYS; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u + n + (uint64_t)test.me;
        uint64_t at = (state >> 33) % 7 % LOCKS, way = (state >> 40) % 4; /* one lock more often than the others */
        dsm_lock_t *lock = &S->locks[at];
        if (way == 0 && dsm_trylock(lock) != 0)
            continue;
        if (way == 1 && dsm_timedlock(lock, (state >> 50) % 200000) != 0)
            continue;
        if (way > 1)
            dsm_lock(lock);
        uint64_t count = S->x.words[at];
        check(S->y.words[at], count, "the copy of a counter");
        S->x.words[at] = count + 1;
        if (way == 3)
            nanosleep(&(struct timespec){0, 1000}, NULL);
        S->y.words[at] = count + 1;
        dsm_unlock(lock);
        taken[at]++;
    }
    for (int at = 0; at < LOCKS; at++)
        S->z.words[test.me * LOCKS + at] = taken[at];
    dsm_barrier_all();
    for (int at = 0; at < LOCKS; at++) {
        uint64_t sum = 0;
        for (int pe = 0; pe < test.pe_count; pe++)
            sum += S->z.words[pe * LOCKS + at];
        check(S->x.words[at], sum, "the counter of a lock");
    }
}

/* A buffer of one element, with two semaphores. */
static void semaphores(uint64_t n)
{
    static uint64_t sum;
    if (test.pe_count < 2)
        return;
    if (test.me == part(0)) {
        for (uint64_t i = 1; i <= 10; i++) {
            S->y.words[100] = n + i;
            dsm_sem_post(&S->sem);
            dsm_sem_wait(&S->free);
        }
    } else if (test.me == part(1)) {
        for (uint64_t i = 1; i <= 10; i++) {
            dsm_sem_wait(&S->sem);
            check(S->y.words[100], n + i, "the item");
            sum += S->y.words[100];
            dsm_sem_post(&S->free);
        }
    }
}

static void readers(uint64_t n)
{
    for (uint64_t i = 0; i < 6; i++) {
        if ((i + (uint64_t)test.me + n) % 3 == 0) {
            dsm_wrlock(&S->rw);
            for (int k = 0; k < 4; k++)
                S->z.words[200 + k * 3]++;
            dsm_rwunlock(&S->rw);
        } else {
            dsm_rdlock(&S->rw);
            for (int k = 1; k < 4; k++)
                check(S->z.words[200 + k * 3], S->z.words[200], "a word that writers keep equal");
            dsm_rwunlock(&S->rw);
        }
    }
}

static void run_once(void)
{
    S->z.words[50]++;
}

static void once(uint64_t n)
{
    (void)n;
    if (test.round >= 64)
        return;
    dsm_once(&S->once[test.round], run_once);
    check(S->z.words[50], test.round + 1, "how often it ran");
}

static void some(uint64_t n)
{
    int count = test.pe_count > 2 ? test.pe_count - 1 : test.pe_count;
    if (test.me >= count)
        return;
    for (uint64_t i = 0; i < 4; i++) {
        S->several.words[100 + test.me] = n * 8 + i;
        dsm_barrier_wait(&S->some, (uint64_t)count);
        for (int pe = 0; pe < count; pe++)
            check(S->several.words[100 + pe], n * 8 + i, "a word before the barrier");
        dsm_barrier_wait(&S->some, (uint64_t)count);
    }
}

static void adding(uint64_t n)
{
    (void)n;
    uint64_t before = S->counter;
    dsm_barrier_all();
    for (int i = 0; i < 10; i++)
        dsm_fetch_add(&S->counter, 3);
    dsm_barrier_all();
    check(S->counter - before, 30 * (uint64_t)test.pe_count, "the sum");
}

static void migrating(uint64_t n)
{
    if (test.me == part(0))
        S->y.words[300] = n;
    dsm_migrate(&S->y, sizeof S->y, part(1));
    check(S->y.words[300], n, "a word of a page that moved");
    check((uint64_t)dsm_home(&S->y.words[300]) * (getenv("DSM_TEST_HOMES") != NULL),
          (uint64_t)part(1) * (getenv("DSM_TEST_HOMES") != NULL), "its home");
}

/* A page whose home does not know that it is: it was placed by another PE, and a third wrote it before the home touched
 * it. The second page is looked at first, since its diff arrives last. */
static void placed(uint64_t n)
{
    if (test.pe_count < 3)
        return;
    if (test.me == part(0))
        S->block = dsm_malloc_placed(2 * PAGE, DSM_ON_PE, part(2));
    dsm_barrier_all();
    if (test.me == part(1)) {
        struct page *block = S->block;
        dsm_lock(&S->a);
        for (int i = 0; i < WORDS; i++)
            block[0].words[i] = block[1].words[i] = n + (uint64_t)i;
        S->y.words[30] = n;
        dsm_unlock(&S->a);
    } else if (test.me == part(2)) {
        while (locked_read(&S->a, &S->y.words[30]) != n)
            continue;
        for (int page = 1; page >= 0; page--) {
            for (int i = 0; i < WORDS; i++)
                check(S->block[page].words[i], n + (uint64_t)i, "a word of a page at its home");
        }
    }
}

/* A PE that asked only for the home of a page, and may have got its content too, sees what is written later. */
static void asked(uint64_t n)
{
    uint64_t *words = dsm_all_malloc(PAGE);
    if (test.me == part(0))
        words[7] = n;
    dsm_barrier_all();
    if (test.me != part(0))
        dsm_home(words);
    dsm_barrier_all();
    if (test.me == part(0))
        words[7] = n + 1;
    dsm_barrier_all();
    check(words[7], n + 1, "a word of a page whose home was asked for");
}

/* One PE after the other writes a word of every second page: with DSM_LOG=64 more notices than a log holds. Run alone.
 */
static void scattered(uint64_t n)
{
    enum { PAGES = 160 };
    if (!test.is_only)
        return;
    struct page *block = dsm_all_malloc(PAGES * sizeof *block);
    for (uint64_t step = 0; step < 4; step++) {
        for (uint64_t i = 0; test.me == part((int)step) && i < PAGES; i += 2)
            block[i].words[9] = n * 1000 + step * 200 + i;
        dsm_barrier_all();
        for (uint64_t i = 0; i < PAGES; i += 2)
            check(block[i].words[9], n * 1000 + step * 200 + i, "a word of scattered pages");
        dsm_barrier_all();
    }
    dsm_all_free(block);
}

/* A thread of PE 1 writes pages of PE 0 while the PE is in a barrier, which PE 0 enters afterwards. The diffs may still
 * be on their way when the barrier ends: a new copy must have them nevertheless. */
static long written;

static void *write_meanwhile(void *argument)
{
    uint64_t n = *(const uint64_t *)argument;
    nanosleep(&(struct timespec){0, 2000000}, NULL);
    dsm_lock(&S->a);
    for (int i = 0; i < WORDS; i++)
        S->block[0].words[i] = S->block[1].words[i] = n + (uint64_t)i;
    dsm_unlock(&S->a);
    for (int pe = 0; pe < test.pe_count; pe++)
        shmem_long_atomic_set(&written, (long)n, pe);
    return NULL;
}

static void meanwhile(uint64_t n)
{
    pthread_t thread;
    if (!test.is_only || test.pe_count < 2)
        return;
    if (test.round == 0 && test.me == 0)
        S->block = dsm_malloc_placed(2 * PAGE, DSM_ON_PE, 0);
    dsm_barrier_all();
    if (test.me == 1)
        check((uint64_t)pthread_create(&thread, NULL, write_meanwhile, &n), 0, "pthread_create");
    else
        shmem_long_wait_until(&written, SHMEM_CMP_EQ, (long)n);
    dsm_barrier_all();
    if (test.me != 1)
        return;
    pthread_join(thread, NULL);
    dsm_acquire(S->block, 2 * PAGE);
    for (int page = 1; page >= 0; page--) {
        for (int i = 0; i < WORDS; i++)
            check(S->block[page].words[i], n + (uint64_t)i, "a word that another thread wrote");
    }
}

/* The kernel may take the page table entry of a page away: after it was read, and after it was written. */
static void drop_entry(struct page *page)
{
    check((uint64_t)madvise(page, sizeof *page, MADV_DONTNEED), 0, "madvise");
}

static void dropped(uint64_t n)
{
    uint64_t *word = &S->several.words[150 + test.me];
    for (uint64_t step = 0; step < 3; step++) {
        uint64_t before = *word;
        drop_entry(&S->several);
        *word = step == 0 ? n : before + 1;
    }
    drop_entry(&S->several);
    dsm_barrier_all();
    for (int pe = 0; pe < test.pe_count; pe++)
        check(S->several.words[150 + pe], n + 2, "a word of a page whose entries were dropped");
}

static void ranges(uint64_t n)
{
    static long ready;
    const char *races = getenv("DSM_RACES");
    if (races && strcmp(races, "reads") == 0) /* which does not see what orders these */
        return;
    if (test.me == part(0)) {
        S->z.words[400] = n;
        dsm_release(&S->z.words[400], 8);
        for (int pe = 0; pe < test.pe_count; pe++)
            shmem_long_atomic_set(&ready, (long)n, pe);
    }
    shmem_long_wait_until(&ready, SHMEM_CMP_EQ, (long)n);
    dsm_acquire(&S->z.words[400], 8);
    check(S->z.words[400], n, "a word that was released");
}

/* Blocks of every kind that the run has, each with its protocol and its copies: messages by lock, flag and barrier,
 * with several writers in a page. */
#define KIND_BYTES (2 * PAGE)

static bool has_kind(int kind)
{
    enum dsm_protocol protocol = (enum dsm_protocol)(kind / 3);
    const char *handler = getenv("DSM_HANDLER"), *run = getenv("DSM_PROTOCOL");
    return protocol == DSM_PROTOCOL_RUN || protocol == DSM_PROTOCOL_NEWGENDSM || handler ||
           (run && strcmp(run, "newgendsm") != 0 && !getenv("DSM_RACES"));
}

static void kinds(uint64_t n)
{
    for (int kind = 0; test.round == 0 && kind < KIND_COUNT; kind++) {
        struct dsm_attributes with = {kind % 2 ? DSM_CYCLIC : DSM_DEFAULT, 0, (enum dsm_protocol)(kind / 3),
                                      (enum dsm_copies)(kind % 3), (enum dsm_word)(kind % 4)};
        if (test.me == part(kind) && has_kind(kind))
            S->kinds[kind] = dsm_malloc_with(KIND_BYTES, &with);
    }
    dsm_barrier_all();
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        uint64_t *words = S->kinds[kind];
        for (int i = test.me; words && i < KIND_BYTES / 8; i += test.pe_count)
            words[i] = n + (uint64_t)(i * kind);
    }
    dsm_barrier_all();
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        uint64_t *words = S->kinds[kind];
        for (int i = 0; words && i < KIND_BYTES / 8; i++)
            check(words[i], n + (uint64_t)(i * kind), "a word that a barrier shows");
    }
    dsm_barrier_all();
    for (int pe = 0; pe < test.pe_count; pe++) {
        dsm_lock(&S->a);
        for (int kind = 0; kind < KIND_COUNT; kind++) {
            if (S->kinds[kind])
                S->kinds[kind][5 + 600 * (pe % 2)]++;
        }
        dsm_unlock(&S->a);
    }
    dsm_flag_set(&S->arrived[test.me], n);
    for (int pe = 0; pe < test.pe_count; pe++)
        dsm_flag_wait(&S->arrived[pe], n);
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        uint64_t all = (uint64_t)(test.pe_count * test.pe_count);
        if (S->kinds[kind])
            check(S->kinds[kind][5] + S->kinds[kind][605], 2 * n + (uint64_t)(610 * kind) + all, "the counts of locks");
    }
}

/* Pages of PE 0 that no other PE has read: its handler marks those that PE 1 asks for while PE 2, whose come by gets,
 * marks their neighbours. A mark that is lost leaves a copy without notices. */
static void marks(uint64_t n)
{
    enum { PAGES = 48 };
    uint64_t *asked[PAGES], *got[PAGES];
    if (!test.is_only || test.pe_count < 3)
        return;
    if (test.round == 0 && test.me == 0)
        S->block = dsm_malloc(2 * sizeof asked);
    dsm_barrier_all();
    uint64_t **all = (uint64_t **)S->block;
    for (int i = 0; test.me == 0 && i < 2 * PAGES; i++) {
        struct dsm_attributes with = {DSM_ON_PE, 0, i % 2 ? DSM_PROTOCOL_NEWGENDSM : DSM_PROTOCOL_ASYNC,
                                      DSM_COPIES_INVALIDATE, DSM_WORD_RUN};
        all[i] = dsm_malloc_with(PAGE, &with);
        all[i][0] = n;
    }
    dsm_barrier_all();
    for (int i = 0; i < PAGES; i++) {
        asked[i] = all[2 * i];
        got[i] = all[2 * i + 1];
    }
    uint64_t **mine = test.me == 1 ? asked : got;
    for (uint64_t value = n; value < n + 2; value++) {
        for (int i = 0; test.me == 0 && i < PAGES; i++)
            asked[i][0] = got[i][0] = value;
        dsm_barrier_all();
        for (int i = 0; (test.me == 1 || test.me == 2) && i < PAGES; i++)
            check(mine[i][0], value, "a word of a page that is marked");
        dsm_barrier_all();
    }
}

/* Chunks that are closed and opened as a whole, in part, and by a store: PE 0 is the home and changes a word of each
 * page, the others read all pages of two chunks, in some steps all or some of two more, and sometimes write to the last
 * three. Run alone: by handlers it takes seconds. */
#define CHUNK_PAGES 64
#define CHUNKS      5
#define STEPS       12

static void read_chunk(const struct page *pages, uint64_t n, int count)
{
    for (int i = 0; i < count; i++)
        check(pages[i].words[5], n + (uint64_t)i, "a word of a chunk");
}

/* At PE 0; in S->block. */
static struct page *take_chunks(void)
{
    static const struct dsm_attributes with = {DSM_ON_PE, 0, DSM_PROTOCOL_RUN, DSM_COPIES_INVALIDATE, DSM_WORD_RUN};
    const size_t bytes = CHUNK_PAGES * sizeof(struct page);
    if (test.me == 0)
        S->block = dsm_malloc_with((CHUNKS + 1) * bytes, &with);
    dsm_barrier_all();
    return (struct page *)(((uintptr_t)S->block + bytes - 1) / bytes * bytes);
}

static void chunks(uint64_t n)
{
    if (!test.is_only)
        return;
    struct page *pages = take_chunks();
    for (uint64_t step = 0; step < STEPS; step++) {
        uint64_t value = n * 1000 + step * 100;
        for (int i = 0; test.me == 0 && i < CHUNKS * CHUNK_PAGES; i++)
            pages[i].words[5] = value + (uint64_t)(i % CHUNK_PAGES);
        dsm_barrier_all();
        bool is_writer = test.me != 0 && step % 4 == 3; /* of its own word of a page in chunks that are closed */
        for (int chunk = 2; is_writer && chunk < CHUNKS; chunk++)
            pages[chunk * CHUNK_PAGES + 7].words[100 + test.me] = value;
        read_chunk(pages, value, CHUNK_PAGES);
        read_chunk(pages + CHUNK_PAGES, value, CHUNK_PAGES);
        read_chunk(pages + 2 * CHUNK_PAGES, value, step % 2 ? CHUNK_PAGES : 1);
        read_chunk(pages + 3 * CHUNK_PAGES, value, step % 3 ? 0 : CHUNK_PAGES);
        dsm_barrier_all();
        for (int pe = 1; step % 4 == 3 && pe < test.pe_count; pe++)
            check(pages[3 * CHUNK_PAGES + 7].words[100 + pe], value, "a word that was written to a closed chunk");
        dsm_barrier_all();
    }
    if (test.me == 0)
        dsm_free(S->block);
}

/* All write to the first and the last chunk. Between them lies one of which a copy without an entry was read, beside
 * chunks that only PE 0 has touched, and PE 0 writes after about as many releases without a write as freeze a chunk. */
static void gaps(uint64_t n)
{
    enum { LAST = CHUNKS - 1, RELEASES = 48, WRITES = 24 };
    if (!test.is_only)
        return;
    struct page *pages = take_chunks(), *last = pages + LAST * CHUNK_PAGES, *between = pages + 2 * CHUNK_PAGES;
    for (int i = 0; test.me == 0 && i < CHUNKS * CHUNK_PAGES; i++)
        pages[i].words[5] = n + (uint64_t)(i % CHUNK_PAGES);
    dsm_barrier_all();
    read_chunk(pages, n, CHUNK_PAGES);
    for (uint64_t step = 0; step < WRITES; step++) {
        uint64_t value = n * 1000 + step;
        for (uint64_t i = 0; test.me == 0 && i < RELEASES + step; i++) {
            dsm_lock(&S->a);
            dsm_unlock(&S->a);
        }
        if (test.me != 0) {
            check(between[9].words[5], n + 9, "a word of a chunk that is only read");
            drop_entry(&between[9]);
        }
        pages[3].words[100 + test.me] = last[3].words[100 + test.me] = value;
        dsm_barrier_all();
        for (int pe = 0; pe < test.pe_count; pe++) {
            check(pages[3].words[100 + pe], value, "a word of the first chunk");
            check(last[3].words[100 + pe], value, "a word of the last chunk");
        }
        dsm_barrier_all();
    }
    if (test.me == 0)
        dsm_free(S->block);
}

/* A page that PE 0 writes and the others read in every step, and one that they read in the first steps only. */
static void habits(uint64_t n)
{
    for (uint64_t step = 0; step < STEPS; step++) {
        if (test.me == 0)
            S->x.words[9] = S->z.words[9] = n * 1000 + step;
        dsm_barrier_all();
        check(S->x.words[9], n * 1000 + step, "a word that is read in every step");
        if (step < STEPS / 2)
            check(S->z.words[9], n * 1000 + step, "a word that is read in the first steps");
        dsm_barrier_all();
    }
}

static const struct {
    const char *name;
    void (*run)(uint64_t n);
} programs[] = {
    {"mp_lock", mp_lock},
    {"mp_flag", mp_flag},
    {"mp_steps", mp_steps},
    {"mp_barrier", mp_barrier},
    {"wrc", wrc},
    {"isa2", isa2},
    {"isa2_locks", isa2_locks},
    {"corr", corr},
    {"coww", coww},
    {"several_writers", several_writers},
    {"home_writes", home_writes},
    {"torn", torn},
    {"first_touch", first_touch},
    {"condition", condition},
    {"free_again", free_again},
    {"many_locks", many_locks},
    {"all_locks", all_locks},
    {"trying", trying},
    {"ways", ways},
    {"semaphores", semaphores},
    {"readers", readers},
    {"once", once},
    {"some", some},
    {"adding", adding},
    {"migrating", migrating},
    {"placed", placed},
    {"asked", asked},
    {"scattered", scattered},
    {"meanwhile", meanwhile},
    {"dropped", dropped},
    {"ranges", ranges},
    {"kinds", kinds},
    {"marks", marks},
    {"chunks", chunks},
    {"gaps", gaps},
    {"habits", habits},
};

int main(int count, char **words)
{
    const char *only = NULL;
    for (int i = 1; i + 1 < count; i += 2) {
        if (strcmp(words[i], "--rounds") == 0)
            test.rounds = atoi(words[i + 1]);
        else if (strcmp(words[i], "--only") == 0)
            only = words[i + 1];
    }
    test.is_only = only != NULL;
    test.s = dsm_all_malloc(sizeof *test.s);
    test.me = dsm_my_pe();
    test.pe_count = dsm_n_pes();
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        test.name = programs[i].name;
        for (test.round = 0; test.round < (uint64_t)test.rounds; test.round++) {
            if (!only || strcmp(only, test.name) == 0)
                programs[i].run((uint64_t)(i + 1) * 1000 + test.round + 1);
            dsm_barrier_all();
        }
    }
    dsm_finalize();
    return 0;
}
