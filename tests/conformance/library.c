/* SPDX-License-Identifier: BSD-3-Clause */
#include "library.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static long words[LIBRARY_WORDS] = {7};
static long counter;

long *library_words(void)
{
    return words;
}

long *library_counter(void)
{
    return &counter;
}

long *library_hidden(void)
{
    static long hidden = 11;
    return &hidden;
}

long library_sum(void)
{
    long sum = 0;
    for (int i = 0; i < LIBRARY_WORDS; i++)
        sum += words[i];
    return sum;
}

static volatile long mapping_count;

long library_mapping_count(void)
{
    return mapping_count;
}

/* As UCX does, whose lock is held meanwhile. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((visibility("default"))) void *mmap(void *base, size_t bytes, int protection, int flags, int fd,
                                                  off_t offset)
{
    mapping_count++;
    long at = syscall(SYS_mmap, base, bytes, protection, flags, fd, offset);
    mapping_count--;
    return (void *)at;
}
#endif
