/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocates 64 MiB of the symmetric heap in blocks of 1 MiB, writes them, and prints how much of the heap's mapping is
 * backed by huge pages: "PE N: K KiB"; "none here" where the kernel has no huge pages for memfds. */
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE        ((size_t)2 << 20)
#define BLOCK_BYTES ((size_t)1 << 20)
#define BLOCK_COUNT 64

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static int has_huge_pages(void)
{
    int fd = memfd_create("pages", 0);
    if (fd < 0 || ftruncate(fd, (off_t)(2 * HUGE)) != 0)
        return 0;
    /* Mapped at an address aligned like its offset. */
    char *reserve = mmap(NULL, 3 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *base = reserve + (-(uintptr_t)reserve & (HUGE - 1));
    if (mmap(base, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
        return 0;
    memset(base, 1, HUGE);
    int has = madvise(base, HUGE, MADV_COLLAPSE) == 0;
    munmap(reserve, 3 * HUGE);
    close(fd);
    return has;
}

/* Of the mapping that holds an address. */
static unsigned long huge_kib(uintptr_t address)
{
    FILE *file = fopen("/proc/self/smaps", "r");
    char line[512];
    unsigned long start, end, kib = 0;
    int is_in = 0;
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
            is_in = address >= start && address < end;
        else if (is_in && sscanf(line, "ShmemPmdMapped: %lu kB", &kib) == 1)
            break;
    }
    if (file)
        fclose(file);
    return kib;
}

int main(void)
{
    static char *blocks[BLOCK_COUNT];
    shmem_init();
    for (int i = 0; i < BLOCK_COUNT; i++) {
        blocks[i] = shmem_malloc(BLOCK_BYTES);
        memset(blocks[i], i, BLOCK_BYTES);
    }
    if (has_huge_pages())
        printf("PE %d: %lu KiB\n", shmem_my_pe(), huge_kib((uintptr_t)blocks[0]));
    else
        printf("none here\n");
    shmem_finalize();
    return 0;
}
