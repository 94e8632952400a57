/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded into a program (LD_PRELOAD), records what it asks of malloc into $HEAP_RECORD.NAME.PID, for heap_replay.c;
 * calls of the symmetric heap are recorded likewise, into a file of their own: $HEAP_RECORD.NAME.PID.shmem. */
#include "heap_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pshmem.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t bytes), *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes), *__libc_memalign(size_t align, size_t bytes);
extern void __libc_free(void *block);

/* Those of the library, if the program has it. */
#pragma weak pshmem_malloc
#pragma weak pshmem_calloc
#pragma weak pshmem_align
#pragma weak pshmem_realloc
#pragma weak pshmem_free

struct book {
    const char *ending;
    int fd; /* 0: not opened yet */
    uint32_t count;
    struct heap_event events[4096];
};

static struct book books[2] = {{.ending = ""}, {.ending = ".shmem"}};
static atomic_flag lock = ATOMIC_FLAG_INIT;
static _Atomic int is_off; /* in a child made by fork, which must not write its copy of the buffers */

static void enter(void)
{
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
        ;
}

static void leave(void)
{
    atomic_flag_clear_explicit(&lock, memory_order_release);
}

static void flush(struct book *book)
{
    const char *base = getenv("HEAP_RECORD");
    char name[512];
    if (book->fd == 0 && base) {
        snprintf(name, sizeof name, "%s.%s.%d%s", base, program_invocation_short_name, (int)getpid(), book->ending);
        book->fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    }
    size_t bytes = book->count * sizeof book->events[0];
    if (book->fd > 0 && write(book->fd, book->events, bytes) != (ssize_t)bytes)
        abort(); /* an incomplete recording is useless */
    book->count = 0;
}

static void put(struct book *book, enum heap_deed deed, const void *block, const void *old, size_t bytes, size_t align)
{
    if (atomic_load(&is_off))
        return;
    if (book->count == sizeof book->events / sizeof book->events[0])
        flush(book);
    book->events[book->count++] = (struct heap_event){
        .deed = deed, .align = (uint32_t)align, .block = (uintptr_t)block, .old = (uintptr_t)old, .bytes = bytes};
}

static void stop(void)
{
    atomic_store(&is_off, 1);
}

__attribute__((constructor)) static void begin(void)
{
    pthread_atfork(NULL, NULL, stop);
}

__attribute__((destructor)) static void end(void)
{
    enter();
    for (int i = 0; i < 2; i++)
        if (books[i].count && !atomic_load(&is_off))
            flush(&books[i]);
    leave();
}

#pragma GCC visibility push(default)
void *malloc(size_t bytes)
{
    enter();
    void *block = __libc_malloc(bytes);
    put(&books[0], HEAP_TAKE, block, NULL, bytes, 0);
    leave();
    return block;
}

void *calloc(size_t count, size_t bytes)
{
    enter();
    void *block = __libc_calloc(count, bytes);
    put(&books[0], HEAP_TAKE, block, NULL, count * bytes, 0);
    leave();
    return block;
}

void *realloc(void *old, size_t bytes)
{
    enter();
    void *block = __libc_realloc(old, bytes);
    put(&books[0], HEAP_RESIZE, block, old, bytes, 0);
    leave();
    return block;
}

static void *aligned(size_t align, size_t bytes)
{
    enter();
    void *block = __libc_memalign(align, bytes);
    put(&books[0], HEAP_TAKE, block, NULL, bytes, align);
    leave();
    return block;
}

void *memalign(size_t align, size_t bytes)
{
    return aligned(align, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
    return aligned(align, bytes);
}

int posix_memalign(void **block_out, size_t align, size_t bytes)
{
    *block_out = aligned(align, bytes);
    return *block_out ? 0 : ENOMEM;
}

void free(void *block)
{
    enter();
    if (block)
        put(&books[0], HEAP_GIVE, block, NULL, 0, 0);
    __libc_free(block);
    leave();
}

void *shmem_malloc(size_t bytes)
{
    void *block = pshmem_malloc(bytes);
    put(&books[1], HEAP_TAKE, block, NULL, bytes, 0);
    return block;
}

void *shmem_calloc(size_t count, size_t bytes)
{
    void *block = pshmem_calloc(count, bytes);
    put(&books[1], HEAP_TAKE, block, NULL, count * bytes, 0);
    return block;
}

void *shmem_align(size_t align, size_t bytes)
{
    void *block = pshmem_align(align, bytes);
    put(&books[1], HEAP_TAKE, block, NULL, bytes, align);
    return block;
}

void *shmem_realloc(void *old, size_t bytes)
{
    void *block = pshmem_realloc(old, bytes);
    put(&books[1], HEAP_RESIZE, block, old, bytes, 0);
    return block;
}

void shmem_free(void *block)
{
    if (block)
        put(&books[1], HEAP_GIVE, block, NULL, 0, 0);
    pshmem_free(block);
}
