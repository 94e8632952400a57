/* SPDX-License-Identifier: BSD-3-Clause */
/* guard.c - a malloc that puts each block at the end of a mapping, ahead of a page without access, as Electric Fence
 * does. A block of a multiple of 16 bytes ends at that page exactly; freed ones are unmapped. */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_BYTES  4096u
#define ALIGN_BYTES 16u

struct head { /* in the page ahead of the one in which the block begins */
    void *mapping;
    size_t mapping_bytes, block_bytes;
};

static uintptr_t round_up(uintptr_t value, size_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static struct head *head_of(void *block)
{
    return (struct head *)((uintptr_t)block / PAGE_BYTES * PAGE_BYTES - PAGE_BYTES);
}

static void *allocate(size_t align, size_t bytes)
{
    if (align < ALIGN_BYTES)
        align = ALIGN_BYTES;
    if (bytes > PTRDIFF_MAX / 2 || align > PTRDIFF_MAX / 4) {
        errno = ENOMEM;
        return NULL;
    }
    size_t slack = align > PAGE_BYTES ? align : 0;
    size_t block_bytes = round_up(bytes ? bytes : 1, slack ? PAGE_BYTES : align);
    size_t data_bytes = round_up(block_bytes, PAGE_BYTES), mapping_bytes = data_bytes + 2 * PAGE_BYTES + slack;
    char *mapping = mmap(NULL, mapping_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED)
        return NULL;
    char *data = (char *)round_up((uintptr_t)mapping + PAGE_BYTES, slack ? align : PAGE_BYTES);
    mprotect(data + data_bytes, PAGE_BYTES, PROT_NONE);
    char *block = data + data_bytes - block_bytes;
    *head_of(block) = (struct head){.mapping = mapping, .mapping_bytes = mapping_bytes, .block_bytes = block_bytes};
    return block;
}

void *malloc(size_t bytes)
{
    return allocate(ALIGN_BYTES, bytes);
}

void *calloc(size_t count, size_t bytes)
{
    size_t all;
    return __builtin_mul_overflow(count, bytes, &all) ? NULL : allocate(ALIGN_BYTES, all);
}

void free(void *block)
{
    int before = errno;
    if (block)
        munmap(head_of(block)->mapping, head_of(block)->mapping_bytes);
    errno = before;
}

void *realloc(void *block, size_t bytes)
{
    void *grown = allocate(ALIGN_BYTES, bytes);
    if (block && grown) {
        memcpy(grown, block, bytes < head_of(block)->block_bytes ? bytes : head_of(block)->block_bytes);
        free(block);
    }
    return grown;
}

void *reallocarray(void *block, size_t count, size_t bytes)
{
    size_t all;
    return __builtin_mul_overflow(count, bytes, &all) ? NULL : realloc(block, all);
}

void *aligned_alloc(size_t align, size_t bytes)
{
    return allocate(align, bytes);
}

void *memalign(size_t align, size_t bytes)
{
    return allocate(align, bytes);
}

int posix_memalign(void **block_out, size_t align, size_t bytes)
{
    *block_out = allocate(align, bytes);
    return *block_out ? 0 : ENOMEM;
}

size_t malloc_usable_size(void *block)
{
    return block ? head_of(block)->block_bytes : 0;
}
