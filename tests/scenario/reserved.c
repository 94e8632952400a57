/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of shmemx_reserve: what they occupy, as mincore(2) sees it in the file of the host, and what they contain.
 *
 * Use: reserved             every rule of shmemx.h; prints "reserved: right" if all PEs found it so
 *      reserved lack FILE   FILE is mounted over /proc/meminfo: written while the job runs, so that nothing is free
 *      reserved all         as much as there is, MiB by MiB; prints "reserved: N MiB", N of the PE that got fewest */
#include <shmem.h>
#include <shmemx.h>

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define KIB         ((size_t)1 << 10)
#define MIB         ((size_t)1 << 20)
#define BLOCK_BYTES (64 * MIB)
#define SLACK_BYTES (4 * MIB) /* where the kernel makes huge pages by itself */

static int me, count;
static long word, least;

static void must(int is_right, const char *what, size_t seen, size_t expected)
{
    if (is_right)
        return;
    fprintf(stderr, "reserved: PE %d: %s: %zu KiB, but %zu KiB are right\n", me, what, seen / KIB, expected / KIB);
    shmem_global_exit(3);
}

/* Bytes in memory of the pages of a range that this PE's own symmetric memory has, whichever process brought them
 * there. */
static size_t resident(const char *start, size_t bytes)
{
    static unsigned char is_here[BLOCK_BYTES / 4096 + 1];
    size_t before = (uintptr_t)start % 4096, pages = (before + bytes + 4095) / 4096, sum = 0;
    if (mincore((void *)(uintptr_t)(start - before), pages * 4096, is_here) != 0)
        shmem_global_exit(4);
    for (size_t i = 0; i < pages; i++)
        sum += is_here[i] & 1 ? 4096 : 0;
    return sum;
}

static void occupies(const char *what, const char *start, size_t bytes, size_t expected)
{
    size_t seen = resident(start, bytes);
    must(seen >= expected && seen <= expected + SLACK_BYTES, what, seen, expected);
}

static void is_filled(const char *what, const char *start, size_t bytes, int value)
{
    for (size_t i = 0; i < bytes; i++)
        must(start[i] == (char)value, what, i, bytes);
}

static void takes(const char *what, char *start, size_t bytes, int pe, int expected)
{
    int error = shmemx_take(start, bytes, pe);
    must(error == expected, what, (size_t)error * KIB, (size_t)expected * KIB);
}

/* Own memory, and that of the next PE: on the same host or another one. */
static void check_taking(char *block)
{
    int next = (me + 1) % count;
    occupies("a new block", block, BLOCK_BYTES, 0);
    takes("own pages", block + MIB + 100, 100000, me, 0);
    occupies("own pages", block, 8 * MIB, 25 * 4096);
    occupies("exactly those", block + MIB, 100100, 25 * 4096);
    is_filled("own pages", block + MIB, 100100, 0);
    memset(block + MIB + 100, me + 1, 100000);
    takes("own pages again", block + MIB, 128 * KIB, me, 0);
    is_filled("taken again", block + MIB + 100, 100000, me + 1);
    shmem_barrier_all();
    takes("pages of the next PE", block + 16 * MIB + 4, 5 * MIB, next, 0);
    takes("and again", block + 16 * MIB + 4, 5 * MIB, next, 0);
    shmem_barrier_all();
    occupies("pages that the PE before took", block + 16 * MIB, 16 * MIB, 5 * MIB + 4096);
    is_filled("pages that the PE before took", block + 16 * MIB, 5 * MIB + 4096, 0);
    takes("nothing", block, 0, next, 0);
}

/* Memory that nobody took is taken by the process that uses it. */
static void check_untaken(char *block)
{
    static char there[8 * KIB];
    int next = (me + 1) % count, before = (me + count - 1) % count;
    memset(there, me + 1, sizeof there);
    shmem_putmem(block + 40 * MIB, there, sizeof there, next);
    shmem_barrier_all();
    is_filled("a put to untaken pages", block + 40 * MIB, sizeof there, before + 1);
    shmem_getmem(there, block + 48 * MIB, sizeof there, next);
    is_filled("a get of untaken pages", there, sizeof there, 0);
    occupies("a block of which little was used", block, BLOCK_BYTES, 5 * MIB);
}

/* Blocks of the other routines are whole, wherever they lie, and do not grow with what is reserved. */
static void check_others(char *block)
{
    char *small = shmem_malloc(100 * KIB);
    occupies("a block behind", small, 100 * KIB, 100 * KIB);
    occupies("a block of which little was used", block, BLOCK_BYTES, 5 * MIB);
    shmem_free(block);
    char *large = shmem_malloc(48 * MIB);
    must(resident(large, 48 * MIB) >= 48 * MIB, "a block in freed memory", resident(large, 48 * MIB), 48 * MIB);
    memset(large, 77, 48 * MIB);
    shmem_free(large);
    char *again = shmemx_reserve(4096, 56 * MIB);
    is_filled("reserved in freed memory", again, 56 * MIB, 0);
    again[0] = 9;
    char *grown = shmem_realloc(again, 60 * MIB);
    must(resident(grown, 60 * MIB) >= 60 * MIB, "a block of shmem_realloc", resident(grown, 60 * MIB), 60 * MIB);
    is_filled("a block of shmem_realloc", grown, 1, 9);
    shmem_free(grown);
    shmem_free(small);
    char *zeroed = shmem_calloc(50, MIB);
    is_filled("shmem_calloc", zeroed, 50 * MIB, 0);
    shmem_free(zeroed);
    size_t limit = shmemx_heap_limit();
    must(shmemx_reserve(4096, limit + 1) == NULL, "more than the heap", limit + 1, limit);
    char *most = shmemx_reserve(4096, limit - MIB);
    must(most != NULL, "nearly all of the heap", 0, limit - MIB);
    shmem_free(most);
    must(shmemx_reserve(4096, 0) == NULL, "nothing", 0, 0);
}

static void set_free(const char *file, const char *text)
{
    shmem_barrier_all();
    if (me == 0) {
        FILE *forged = fopen(file, "w");
        if (!forged || fputs(text, forged) < 0 || fclose(forged) != 0)
            shmem_global_exit(5);
    }
    shmem_barrier_all();
}

static void check_lack(const char *file)
{
    int next = (me + 1) % count;
    char *block = shmemx_reserve(4096, BLOCK_BYTES);
    set_free(file, "MemAvailable: 1024 kB\n");
    takes("what the machine lacks", block, 4096, me, ENOMEM);
    takes("what the machine of the next PE lacks", block + MIB, 3 * MIB, next, ENOMEM);
    shmem_barrier_all();
    occupies("a block for which there is no memory", block, BLOCK_BYTES, 0);
    set_free(file, "MemAvailable: 16777216 kB\n");
    takes("what the machine has again", block, 4096, me, 0);
    takes("what the machine of the next PE has again", block + MIB, 3 * MIB, next, 0);
    shmem_barrier_all();
    set_free(file, "MemAvailable: 1024 kB\n");
    takes("what is taken", block, 4096, me, 0);
    takes("what is taken at the next PE", block + MIB, 3 * MIB, next, 0);
}

static void take_all(void)
{
    char *block = NULL;
    size_t bytes;
    for (bytes = 1024 * MIB; bytes > 0 && !(block = shmemx_reserve(4096, bytes)); bytes -= 8 * MIB)
        ;
    size_t got = 0;
    int error = 0;
    while (got < bytes && (error = shmemx_take(block + got, MIB, me)) == 0) {
        memset(block + got, me + 1, MIB);
        got += MIB;
    }
    if (error && error != ENOMEM)
        shmem_global_exit(6);
    word = (long)(got / MIB);
    shmem_long_min_reduce(SHMEM_TEAM_WORLD, &least, &word, 1);
    if (me == 0)
        printf("reserved: %ld MiB of %zu\n", least, bytes / MIB);
}

int main(int argc, char **argv)
{
    shmem_init();
    me = shmem_my_pe();
    count = shmem_n_pes();
    const char *how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "all") == 0) {
        take_all();
    } else {
        if (strcmp(how, "lack") == 0) {
            check_lack(argv[2]);
        } else {
            char *block = shmemx_reserve(4096, BLOCK_BYTES);
            check_taking(block);
            check_untaken(block);
            check_others(block);
        }
        shmem_barrier_all();
        if (me == 0)
            printf("reserved: right\n");
    }
    shmem_finalize();
    return 0;
}
