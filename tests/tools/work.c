/* SPDX-License-Identifier: BSD-3-Clause */
/* work.c - the program that runs under each tool: puts, gets, atomics and collectives, on the heap and on globals,
 * beside private memory that comes and goes, all checked against a model.
 *
 *   work [DEED [PE]]
 *
 * Data are pure functions of round, PE and index, so that each PE knows what every other PE must have sent, and no
 * check depends on the library. DEED is what PE (the last one unless given) does wrong once the checked rounds are
 * over, for the tool to find; the line of each is marked "planted". Status 0: every byte was right, on every PE, and
 * the deed was survived.
 */
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <shmem.h>

#define ROUNDS       4
#define SLICE_BYTES  3001 /* a PE's part of an array that all PEs write: odd, so that most are not aligned */
#define BLOCKS       16
#define BUSY_SECONDS 0.4

/* symmetric */
static uint8_t global_bytes[3 * SLICE_BYTES];
static long global_counter, global_ticket, global_flag;
static int errors;

struct world {
    int me, pes;
    uint8_t *slices;  /* symmetric: [writer][SLICE_BYTES] */
    uint32_t *words;  /* symmetric: [pes] */
    uint32_t *spread; /* symmetric: [pes] */
    long *sums;       /* symmetric: [0] is what a PE contributes, [1] the sum */
};

static uint32_t value_of(int round, int pe, size_t index)
{
    uint32_t value = (uint32_t)index * 2654435761u + (uint32_t)pe * 40503u + (uint32_t)round * 97u;
    value ^= value >> 15;
    return value * 2246822519u ^ value >> 13;
}

static void check(int is_right, const struct world *world, int round, const char *what)
{
    if (!is_right && errors++ < 10)
        fprintf(stderr, "PE %d, round %d: wrong %s\n", world->me, round, what);
}

static void check_bytes(const uint8_t *bytes, size_t count, int round, int writer, const struct world *world,
                        const char *what)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++)
        wrong += bytes[i] != (uint8_t)value_of(round, writer, i);
    check(wrong == 0, world, round, what);
}

static uint8_t *bytes_of(int round, int pe, size_t count)
{
    uint8_t *bytes = malloc(count);
    for (size_t i = 0; bytes && i < count; i++)
        bytes[i] = (uint8_t)value_of(round, pe, i);
    return bytes;
}

static void put_and_get(const struct world *world, int round)
{
    uint8_t *mine = bytes_of(round, world->me, SLICE_BYTES), *theirs = malloc(SLICE_BYTES);
    for (int pe = 0; pe < world->pes; pe++)
        shmem_putmem(world->slices + (size_t)world->me * SLICE_BYTES, mine, SLICE_BYTES, pe);
    int right = (world->me + 1) % world->pes, left = (world->me + world->pes - 1) % world->pes;
    shmem_uint8_put_nbi(global_bytes + SLICE_BYTES, mine, SLICE_BYTES, right);
    for (int i = 0; i < 4; i++) {
        shmem_uint32_p(&world->words[world->me], value_of(round, world->me, (size_t)i), right);
        shmem_fence();
    }
    shmem_barrier_all();
    for (int pe = 0; pe < world->pes; pe++)
        check_bytes(world->slices + (size_t)pe * SLICE_BYTES, SLICE_BYTES, round, pe, world, "bytes that were put");
    check_bytes(global_bytes + SLICE_BYTES, SLICE_BYTES, round, left, world, "bytes that were put into a global");
    check(world->words[left] == value_of(round, left, 3), world, round, "word");
    check(global_bytes[SLICE_BYTES - 1] == 0 && global_bytes[2 * SLICE_BYTES] == 0, world, round, "byte beside a put");
    for (int pe = 0; theirs && pe < world->pes; pe++) {
        memset(theirs, 0, SLICE_BYTES);
        shmem_getmem(theirs, world->slices + (size_t)left * SLICE_BYTES, SLICE_BYTES, pe);
        check_bytes(theirs, SLICE_BYTES, round, left, world, "bytes that a get returned");
        check(shmem_uint32_g(&world->words[(pe + world->pes - 1) % world->pes], pe) ==
                  value_of(round, (pe + world->pes - 1) % world->pes, 3),
              world, round, "word of another PE");
    }
    shmem_barrier_all();
    free(mine);
    free(theirs);
}

static void add_and_reduce(const struct world *world, int round)
{
    for (int pe = 0; pe < world->pes; pe++)
        for (int i = 0; i <= world->me; i++)
            shmem_long_atomic_add(&global_counter, i + 1, pe);
    long before = shmem_long_atomic_fetch_inc(&global_ticket, (world->me + 1) % world->pes); /* nobody else's */
    check(before == round, world, round, "value that an atomic returned");
    shmem_barrier_all();
    long expected = 0;
    for (int pe = 0; pe < world->pes; pe++)
        expected += (long)(pe + 1) * (pe + 2) / 2;
    check(global_counter == expected * (round + 1), world, round, "sum of atomic adds");
    world->sums[0] = (world->me + 1) * (round + 2L);
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &world->sums[1], &world->sums[0], 1);
    check(world->sums[1] == (long)world->pes * (world->pes + 1) / 2 * (round + 2), world, round, "reduction");
    world->words[0] = value_of(round, world->me, 7);
    shmem_uint32_fcollect(SHMEM_TEAM_WORLD, world->spread, world->words, 1);
    for (int pe = 0; pe < world->pes; pe++)
        check(world->spread[pe] == value_of(round, pe, 7), world, round, "word of a collection");
    shmem_barrier_all();
    shmem_uint32_broadcast(SHMEM_TEAM_WORLD, world->spread, world->words, 1, round % world->pes);
    check(world->spread[0] == value_of(round, round % world->pes, 7), world, round, "word of a broadcast");
    shmem_barrier_all();
}

/* Blocks of many sizes, private and symmetric, each of which keeps what is in it while others come and go. */
static void allocate(const struct world *world, int round)
{
    uint8_t *blocks[BLOCKS];
    size_t sizes[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        sizes[i] = 1 + value_of(round, world->me, i) % (i % 4 ? 500 : 200000);
        blocks[i] = bytes_of(round + (int)i, world->me, sizes[i]);
    }
    uint8_t *symmetric = shmem_malloc(5000);
    shmem_putmem(symmetric, blocks[0], sizes[0] < 5000 ? sizes[0] : 5000, world->me);
    for (size_t i = 0; i < BLOCKS; i += 2) {
        blocks[i] = realloc(blocks[i], sizes[i] + 700);
        check_bytes(blocks[i], sizes[i], round + (int)i, world->me, world, "bytes of a block that grew");
        free(blocks[i]);
    }
    for (size_t i = 1; i < BLOCKS; i += 2) {
        check_bytes(blocks[i], sizes[i], round + (int)i, world->me, world, "bytes of a block");
        free(blocks[i]);
    }
    check_bytes(symmetric, sizes[0] < 5000 ? sizes[0] : 5000, round, world->me, world, "bytes of a symmetric block");
    shmem_free(symmetric);
}

/* What goes wrong on purpose. The functions are not inlined, for tools that name them. */

#define PLANTED __attribute__((noinline, noclone, used)) static

PLANTED void overflow(volatile int count)
{
    volatile char *block = malloc((size_t)count);
    block[count] = 1; /* planted: overflow */
    free((void *)block);
}

PLANTED void overread(volatile int count)
{
    volatile char *block = calloc(1, (size_t)count);
    global_flag = block[count]; /* planted: overread */
    free((void *)block);
}

PLANTED void leak(int bytes)
{
    volatile char *block = malloc((size_t)bytes); /* planted: leak */
    block[0] = 1;
    block = NULL;
}

PLANTED void undefined(volatile int number)
{
    number = INT_MAX - 4 + number; /* planted: undefined */
    global_flag = number;
}

PLANTED void stack(volatile int count)
{
    volatile char block[16];
    for (int i = 0; i < count + 40; i++)
        block[i] = 'x'; /* planted: stack */
    global_flag = block[count];
}

PLANTED void fortify(volatile int count)
{
    char block[8];
    char *text = calloc(1, 64);
    memset(text, 'x', (size_t)count + 40);
    strcpy(block, text); /* planted: fortify */
    printf("%s\n", block);
    free(text);
}

static volatile int raced;

static void *race(void *unused)
{
    for (int i = 0; i < 1000; i++)
        raced++; /* planted: race */
    return unused;
}

PLANTED void race_two(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, race, NULL) != 0)
        return;
    race(NULL);
    pthread_join(thread, NULL);
}

PLANTED void crash(volatile int *nowhere)
{
    *nowhere = 1; /* planted: crash */
}

PLANTED void busy(void)
{
    volatile uint32_t sum = 0;
    for (clock_t begin = clock(); (double)(clock() - begin) < BUSY_SECONDS * CLOCKS_PER_SEC;)
        for (size_t i = 0; i < 200000; i++)
            sum = sum * 31 + (uint32_t)i;
    global_flag = (long)sum & 1;
}

/* Until a debugger sets `is_released`. The line that it reads is written first, so that it knows when to attach. */
static volatile int is_released;

PLANTED void await_debugger(int me)
{
    printf("PE %d waits, process %ld\n", me, (long)getpid());
    fflush(stdout);
    while (!is_released) { /* planted: wait */
        struct timespec millisecond = {.tv_nsec = 1000000};
        nanosleep(&millisecond, NULL);
    }
}

static int do_deed(const char *deed, const struct world *world)
{
    if (strcmp(deed, "overflow") == 0)
        overflow(48);
    else if (strcmp(deed, "overread") == 0)
        overread(40);
    else if (strcmp(deed, "leak") == 0)
        leak(54321);
    else if (strcmp(deed, "undefined") == 0)
        undefined(40);
    else if (strcmp(deed, "stack") == 0)
        stack(40);
    else if (strcmp(deed, "fortify") == 0)
        fortify(1);
    else if (strcmp(deed, "race") == 0)
        race_two();
    else if (strcmp(deed, "crash") == 0)
        crash(NULL);
    else if (strcmp(deed, "busy") == 0)
        busy();
    else if (strcmp(deed, "wait") == 0)
        await_debugger(world->me);
    else
        return 0;
    return 1;
}

int main(int count, char **words)
{
    shmem_init();
    struct world world = {.me = shmem_my_pe(), .pes = shmem_n_pes()};
    world.slices = shmem_calloc((size_t)world.pes, SLICE_BYTES);
    world.words = shmem_calloc((size_t)world.pes, sizeof *world.words);
    world.spread = shmem_calloc((size_t)world.pes, sizeof *world.spread);
    world.sums = shmem_calloc(2, sizeof *world.sums);
    for (int round = 0; round < ROUNDS; round++) {
        put_and_get(&world, round);
        add_and_reduce(&world, round);
        allocate(&world, round);
    }
    int pe = count > 2 ? atoi(words[2]) : world.pes - 1;
    if (count > 1 && pe == world.me && !do_deed(words[1], &world)) {
        fprintf(stderr, "work: no deed is called %s\n", words[1]);
        shmem_global_exit(2);
    }
    shmem_barrier_all();
    shmem_free(world.sums);
    shmem_free(world.spread);
    shmem_free(world.words);
    shmem_free(world.slices);
    printf("PE %d of %d: %s\n", world.me, world.pes, errors ? "wrong" : "right");
    shmem_finalize();
    return errors != 0;
}
