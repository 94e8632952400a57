/* SPDX-License-Identifier: BSD-3-Clause */
/* descriptors.c - a tool that owns the lowest free descriptors of each process from its start, and uses them at any
 * time, in forked children too: as libunwind, which writes to a pipe of its own in order to learn whether an address
 * can be read. One that has become another's descriptor ends the process with a message. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PIPES 4

void *__libc_malloc(size_t bytes), *__libc_calloc(size_t count, size_t bytes),
    *__libc_realloc(void *block, size_t bytes);
void __libc_free(void *block);

static int ends[PIPES][2];
static int is_ready;

static void use(int which)
{
    char byte = 'q', back = 0;
    if (write(ends[which][1], &byte, 1) == 1 && read(ends[which][0], &back, 1) == 1 && back == byte)
        return;
    is_ready = 0;
    dprintf(STDERR_FILENO, "descriptors: %d and %d are no longer the tool's pipe, in process %ld\n", ends[which][0],
            ends[which][1], (long)getpid());
    _exit(99);
}

__attribute__((constructor)) static void open_all(void)
{
    for (int i = 0; i < PIPES; i++)
        if (pipe2(ends[i], O_CLOEXEC | O_NONBLOCK) < 0)
            return;
    is_ready = 1;
}

__attribute__((destructor)) static void report(void)
{
    for (int i = 0; is_ready && i < PIPES; i++)
        use(i);
    if (is_ready && getenv("TOOLS_REPORT"))
        dprintf(STDERR_FILENO, "descriptors: from %d on\n", ends[0][0]);
}

static void use_next(void)
{
    static unsigned calls;
    if (is_ready)
        use((int)(calls++ % PIPES));
}

void *malloc(size_t bytes)
{
    use_next();
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    use_next();
    return __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
    use_next();
    return __libc_realloc(block, bytes);
}

void free(void *block)
{
    use_next();
    __libc_free(block);
}
