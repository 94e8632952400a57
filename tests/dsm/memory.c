/* SPDX-License-Identifier: BSD-3-Clause */
/* memory - shared pages occupy memory where they are used, and DSM_MEMORY is not taken at the start.
 *
 * What a host's memory really occupies is what mincore(2) says of the file that all processes of the host map. After
 * each step every PE compares it with a model: pages that a PE uses are in its memory, and in that of their home. Every
 * word read is compared with what was written.
 *
 * Use: memory            prints "memory: right" if all PEs found it so
 *      memory lack FILE  FILE is mounted over /proc/meminfo: once it says that little is free, the last PE is appointed
 * the home of a page that PE 0 uses; on another host only that one has not looked before memory much FILE  likewise,
 * and then PE 0 writes more than it may without looking again */
#include <dsm.h>
#include <shmem.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MIB         ((size_t)1 << 20)
#define PAGE_BYTES  ((size_t)4096)
#define PES_MAX     16
#define START_BYTES (6 * MIB) /* of each PE, at most: the places of its locks, its log and small tables */
#define SLACK_BYTES (3 * MIB) /* of a host, at most: parts of chunks, versions, pages of small tables */
#define FIRST_BYTES MIB       /* of each PE's heap: taken by the first shmem_malloc, and part of frames now */

static size_t used[PES_MAX]; /* by the model: bytes of shared pages in the memory of each PE */
static size_t before;        /* what the host occupied with none */
static int me, count, is_direct;
static char *block_of_heap;

static void fail(const char *what, size_t seen, size_t least, size_t most)
{
    fprintf(stderr, "memory: PE %d: %s: %zu KiB, but %zu to %zu KiB are right\n", me, what, seen >> 10, least >> 10,
            most >> 10);
    shmem_global_exit(3);
}

/* A line of /proc/self/maps: the addresses, and the number of the file. */
static int read_mapping(FILE *file, uintptr_t *from, uintptr_t *to, size_t *inode)
{
    char line[512];
    return fgets(line, sizeof line, file) && sscanf(line, "%zx-%zx %*s %*s %*s %zu", from, to, inode) == 3;
}

/* The largest mapping of the file in which an own symmetric object lies is that of the host's whole memory. */
static size_t resident(void)
{
    static unsigned char is_here[16384];
    uintptr_t from, to, own = (uintptr_t)block_of_heap;
    size_t inode, own_inode = 0, sum = 0;
    char *start = NULL, *end = NULL;
    FILE *file = fopen("/proc/self/maps", "r");
    while (file && read_mapping(file, &from, &to, &inode))
        own_inode = own >= from && own < to ? inode : own_inode;
    if (file)
        rewind(file);
    while (file && read_mapping(file, &from, &to, &inode)) {
        if (inode == own_inode && to - from > (size_t)(end - start)) {
            start = (char *)from;
            end = (char *)to;
        }
    }
    for (char *at = start; at < end; at += sizeof is_here * PAGE_BYTES) {
        size_t pages = (size_t)(end - at) / PAGE_BYTES;
        pages = pages < sizeof is_here ? pages : sizeof is_here;
        if (mincore(at, pages * PAGE_BYTES, is_here) != 0)
            shmem_global_exit(4);
        for (size_t i = 0; i < pages; i++)
            sum += is_here[i] & 1 ? PAGE_BYTES : 0;
    }
    if (file)
        fclose(file);
    return sum;
}

static int is_here(int pe)
{
    return shmem_ptr(&before, pe) != NULL;
}

/* Between two barriers nobody uses a page. */
static void compare(const char *what)
{
    size_t expected = 0, first = 0;
    dsm_barrier_all();
    size_t seen = resident() - before;
    for (int pe = 0; pe < count; pe++) {
        expected += is_here(pe) ? used[pe] : 0;
        first += is_here(pe) ? FIRST_BYTES : 0;
    }
    if (seen + first < expected || seen > expected + SLACK_BYTES)
        fail(what, seen, expected - first, expected + SLACK_BYTES);
    dsm_barrier_all();
}

static void write_words(uint64_t *words, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes / sizeof *words; i++)
        words[i] = seed + i * 0x9e3779b97f4a7c15ull;
}

static void read_words(const uint64_t *words, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes / sizeof *words; i++) {
        if (words[i] != seed + i * 0x9e3779b97f4a7c15ull)
            fail("a word", i * sizeof *words, 0, bytes);
    }
}

/* A PE uses `bytes` of pages whose home is another PE, or itself. */
static void count_use(int pe, int home, size_t bytes, int is_first)
{
    if (is_direct)
        home = pe = 0;
    used[home] += is_first ? bytes : 0;
    used[pe] += pe != home ? bytes : 0;
}

static void check_start(size_t start)
{
    int here = 0;
    for (int pe = 0; pe < count; pe++)
        here += is_here(pe);
    if (before - start > (size_t)here * START_BYTES)
        fail("the start", before - start, 0, (size_t)here * START_BYTES);
}

static void check_pages(void)
{
    const int last = count - 1;
    uint64_t *block = dsm_all_malloc(64 * MIB);
    compare("a block that nobody used");
    if (me == 0)
        write_words(block, 12 * MIB, 1);
    count_use(0, 0, 12 * MIB, 1);
    compare("pages that their home wrote");
    if (me == last)
        read_words(block + MIB / 8, 2 * MIB, 1 + MIB / 8 * 0x9e3779b97f4a7c15ull);
    count_use(last, 0, 2 * MIB, 0);
    compare("copies");
    uint64_t **placed = dsm_all_malloc(sizeof *placed);
    if (me == 0) {
        placed[0] = dsm_malloc_placed(32 * MIB, DSM_ON_PE, last);
        placed[1] = dsm_malloc_placed(32 * MIB, DSM_CYCLIC, 0);
    }
    compare("placed blocks that nobody used");
    if (me == 0)
        write_words(placed[0], 4 * MIB, 2);
    count_use(0, last, 4 * MIB, 1);
    compare("pages of a home that has not used them");
    if (me == 1 % count)
        read_words(placed[0], 4 * MIB, 2);
    if (1 % count != last)
        count_use(1 % count, last, 4 * MIB, 0);
    compare("copies of those");
    if (me == last)
        read_words(placed[0], 4 * MIB, 2);
    compare("a home that uses its pages then");
    if (me == 0)
        write_words(placed[1], 4 * MIB, 3);
    for (int pe = 0; pe < count; pe++)
        count_use(0, pe, 4 * MIB / (size_t)count, 1);
    compare("pages of several homes");
    if (me == last)
        read_words(placed[1], 4 * MIB, 3);
}

static void set_free(const char *file, const char *text)
{
    dsm_barrier_all();
    if (me == 0) {
        FILE *forged = fopen(file, "w");
        if (!forged || fputs(text, forged) < 0 || fclose(forged) != 0)
            shmem_global_exit(5);
    }
    dsm_barrier_all();
}

/* PE 0 has looked at what is free, and may take some more. */
static void check_lack(const char *file, int is_much)
{
    uint64_t *block = dsm_all_malloc(64 * MIB), **placed = dsm_all_malloc(sizeof *placed);
    if (me == 0) {
        write_words(block, MIB, 1);
        *placed = dsm_malloc_placed(MIB, DSM_ON_PE, count - 1);
    }
    set_free(file, "MemAvailable: 1024 kB\n");
    if (me == 0 && is_much)
        write_words(block, 64 * MIB, 1);
    else if (me == 0)
        write_words(*placed, PAGE_BYTES, 2);
    dsm_barrier_all();
}

int main(int argc, char **argv)
{
    int provided;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    me = shmem_my_pe();
    count = shmem_n_pes();
    block_of_heap = shmem_malloc(64);
    size_t start = resident();
    shmem_barrier_all();
    dsm_init();
    const char *protocol = getenv("DSM_PROTOCOL");
    is_direct = protocol && strcmp(protocol, "direct") == 0;
    dsm_barrier_all();
    before = resident();
    dsm_barrier_all();
    if (count > PES_MAX)
        return 2;
    if (argc > 2)
        check_lack(argv[2], strcmp(argv[1], "much") == 0);
    else {
        check_start(start);
        check_pages();
    }
    dsm_finalize();
    shmem_free(block_of_heap);
    if (me == 0)
        printf("memory: right\n");
    shmem_finalize();
    return 0;
}
