/* SPDX-License-Identifier: BSD-3-Clause */
/* garbage PE SEED WHAT: after a barrier that PE overwrites memory that it shares with its proxy, at random for a while;
 * the others put and enter barriers. WHAT is "memory": all of its host's before the segments
 * (header, records, channels, staging, slots); or "links": the registers of both links. One PE a host. */
#include <shmem.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES         20000
#define RUNTIME_BYTES (4u << 20) /* the library's part of a segment, before the variables */
#define ROUND_COUNT   2000
#define WORDS_A_LOOK  1024

static char here[BYTES], there[BYTES];
static uint64_t chance;

static uint64_t next(void)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return chance;
}

static uint64_t word(void)
{
    switch (next() % 4) {
    case 0:
        return 0;
    case 1:
        return UINT64_MAX;
    case 2:
        return next() >> next() % 64;
    default:
        return next();
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

struct range {
    uint64_t *words;
    size_t count;
};

/* A line of /proc/self/maps that is shared and writable; false: there are no more. */
struct mapping {
    unsigned long start, end, offset, inode;
    bool is_link;
};
static bool next_mapping(FILE *maps, struct mapping *mapping_out)
{
    char line[512], rights[5];
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %4s %lx %*s %lu", &mapping_out->start, &mapping_out->end, rights,
                   &mapping_out->offset, &mapping_out->inode) == 5 &&
            strcmp(rights, "rw-s") == 0) {
            mapping_out->is_link = strstr(line, "memfd:quoit-link") != NULL;
            return true;
        }
    return false;
}

/* The file that holds the program's variables is the host's memory: they are mapped at the program's place, and the
 * whole file elsewhere. */
static struct mapping find_variables(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    struct mapping mapping = {0}, found = {0};
    while (maps && next_mapping(maps, &mapping))
        if (mapping.start <= (uintptr_t)here && (uintptr_t)here < mapping.end)
            found = mapping;
    if (maps)
        fclose(maps);
    return found;
}

static int find(const char *what, struct range *ranges, int most)
{
    const struct mapping variables = find_variables();
    bool is_memory = strcmp(what, "memory") == 0;
    struct mapping mapping;
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && count < most && next_mapping(maps, &mapping)) {
        if (!is_memory && mapping.is_link)
            ranges[count++] = (struct range){(uint64_t *)mapping.start, (mapping.end - mapping.start) / 8};
        if (is_memory && mapping.inode == variables.inode && mapping.offset == 0)
            ranges[count++] = (struct range){(uint64_t *)mapping.start, (variables.offset - RUNTIME_BYTES) / 8};
    }
    if (maps)
        fclose(maps);
    return count;
}

static void scribble(const char *what, double seconds)
{
    struct range ranges[16];
    int count = find(what, ranges, 16);
    printf("%d ranges\n", count);
    fflush(stdout);
    for (double end = now() + seconds; count > 0 && now() < end;)
        for (int i = 0; i < WORDS_A_LOOK; i++) {
            const struct range *range = &ranges[next() % (unsigned)count];
            size_t most = next() % 2 && range->count > 65536 ? 65536 : range->count; /* the front, where most is */
            ((volatile uint64_t *)range->words)[next() % most] = word();
        }
}

int main(int argc, char **argv)
{
    shmem_init();
    int me = shmem_my_pe(), pe_count = shmem_n_pes();
    if (argc < 4)
        return 1;
    chance = strtoull(argv[2], NULL, 0) * 2654435761u + 1;
    shmem_barrier_all();
    if (me == atoi(argv[1]))
        scribble(argv[3], 0.2);
    for (int round = 0; round < ROUND_COUNT; round++) {
        for (int pe = 0; pe < pe_count; pe++)
            shmem_putmem(there, here, BYTES, pe);
        shmem_barrier_all();
    }
    return 0;
}
