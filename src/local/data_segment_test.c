/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: variables keep address and value when they are shared, the file shows every write, nothing between two segments
 * is touched, and forked children have variables of their own; what is not shared is explained. Method: shares this
 * program's own variables through a memfd. */
#include "local/data_segment.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static long initialised = 1234567;
static char zeroed[100000];
static const long constant = 99;
static int *volatile pointer_to_variable;
static int pointed = 5;
#define LARGE_BYTES (256u << 20)
static char large[LARGE_BYTES];                        /* mostly untouched */
static _Alignas(1 << 16) char aligned[10] = "aligned"; /* the linker leaves a hole before it */
static _Thread_local int own;
static int *const relocated[2] = {&pointed, &pointed}; /* the loader writes it, and makes it read-only */

/* Memory allocated for the file. */
static uint64_t memory_bytes(int fd)
{
    struct stat file;
    return fstat(fd, &file) == 0 ? (uint64_t)file.st_blocks * 512 : UINT64_MAX;
}

/* Memory that this process has touched. */
static uint64_t resident_bytes(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return 0; /* a sanitizer has touched more */
#else
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*u %lu", &pages) != 1)
        return UINT64_MAX;
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
#endif
}

/* Maps a page into the hole before the program's second segment; NULL: the linker left none. */
static char *fill_hole(const struct quoit_data_segments *segments)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (segments->program_count < 2)
        return NULL;
    char *wanted = segments->list[1].base - page;
    char *at = mmap(wanted, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return at == wanted ? memset(at, 0x5a, page) : NULL;
}

static void check_kind(const struct quoit_data_segments *segments, const void *address, enum quoit_object_kind kind)
{
    assert_int_equal(quoit_data_segments_explain(segments, address).kind, kind);
    assert_int_equal(quoit_data_segments_at(segments, address) != NULL, kind == QUOIT_OBJECT_SHARED);
}

static void test_each_kind_of_object(void **state)
{
    (void)state;
    struct quoit_data_segments segments;
    int on_stack;
    assert_int_equal(quoit_data_segments_find(&segments), QUOIT_OK);
    check_kind(&segments, &initialised, QUOIT_OBJECT_SHARED);
    check_kind(&segments, aligned, QUOIT_OBJECT_SHARED);
    check_kind(&segments, &large[LARGE_BYTES - 1], QUOIT_OBJECT_SHARED);
    check_kind(&segments, &constant, QUOIT_OBJECT_READ_ONLY);
    check_kind(&segments, &relocated[1], QUOIT_OBJECT_READ_ONLY);
    check_kind(&segments, (void *)(uintptr_t)test_each_kind_of_object, QUOIT_OBJECT_READ_ONLY);
    check_kind(&segments, &own, QUOIT_OBJECT_THREAD_LOCAL);
    check_kind(&segments, stdout, QUOIT_OBJECT_RUNTIME);
    check_kind(&segments, &on_stack, QUOIT_OBJECT_NONE);
    check_kind(&segments, NULL, QUOIT_OBJECT_NONE);
    free(segments.list);
}

static void test_share_and_fork(void **state)
{
    (void)state;
    struct quoit_data_segments segments;
    assert_int_equal(quoit_data_segments_find(&segments), QUOIT_OK);
    assert_ptr_equal(quoit_data_segments_main(&segments), quoit_data_segments_at(&segments, zeroed));
    const struct quoit_data_segment segment = *quoit_data_segments_main(&segments);
#ifdef __SANITIZE_THREAD__
    assert_int_equal(segments.count, segments.program_count); /* the sanitizer's thread is running */
#else
    assert_true(segments.count > segments.program_count); /* cmocka has variables too */
#endif
    uint64_t bytes = 0, start = 8192;
    for (uint32_t i = 0; i < segments.count; bytes += segments.list[i++].bytes)
        if (segments.list[i].base == segment.base)
            start += bytes;
    assert_int_equal(bytes, segments.bytes);
    assert_true(segment.bytes > sizeof zeroed);
    assert_true((char *)&initialised >= segment.base && (char *)&initialised < segment.base + segment.bytes);
    assert_true(zeroed >= segment.base && zeroed + sizeof zeroed <= segment.base + segment.bytes);
    assert_false((char *)&constant >= segment.base && (char *)&constant < segment.base + segment.bytes);

    const char *hole = fill_hole(&segments);
    zeroed[77] = 42;
    pointer_to_variable = &pointed;
    large[LARGE_BYTES / 2] = 43;
    int fd = memfd_create("variables", 0);
    assert_int_equal(ftruncate(fd, (off_t)(8192 + segments.bytes)), 0);
    char *view = mmap(NULL, 8192 + segments.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_int_equal(quoit_data_segments_share(&segments, fd, 8192, view + 8192), QUOIT_OK);
    assert_int_equal(initialised, 1234567);
    assert_int_equal(zeroed[77], 42);
    assert_int_equal(*pointer_to_variable, 5);
    assert_int_equal(large[LARGE_BYTES / 2], 43);
    assert_true(memory_bytes(fd) < LARGE_BYTES / 8);
    assert_int_equal((uintptr_t)aligned % (1 << 16), 0);
    assert_string_equal(aligned, "aligned");
    for (long i = 0; hole && i < sysconf(_SC_PAGESIZE); i++)
        assert_int_equal(hole[i], 0x5a);

    volatile long *seen = (volatile long *)(view + start + ((char *)&initialised - segment.base));
    *seen = 31;
    assert_int_equal(*(volatile long *)&initialised, 31);
    *(volatile long *)&initialised = 32;
    assert_int_equal(*seen, 32);

    int to_child[2];
    assert_int_equal(pipe(to_child), 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        *(volatile long *)&initialised = 1000; /* must not reach the parent */
        if (read(to_child[0], &byte, 1) != 1)  /* the parent has changed zeroed[78] by now */
            _exit(2);
        if (memory_bytes(fd) >= LARGE_BYTES / 8 || resident_bytes() >= LARGE_BYTES / 8)
            _exit(4);
        _exit(large[LARGE_BYTES / 2] == 43 && large[LARGE_BYTES / 4] == 0 && *(volatile char *)&zeroed[78] == 0 &&
                      *(volatile char *)&zeroed[77] == 42
                  ? 0
                  : 3);
    }
    *(volatile char *)&zeroed[78] = 1; /* must not reach the child */
    assert_int_equal(write(to_child[1], "x", 1), 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(*(volatile long *)&initialised, 32);
    assert_int_equal(*seen, 32);
}

static void *no_work(void *arg)
{
    assert_int_equal(read(*(int *)arg, &(char){0}, 1), 0);
    return NULL;
}

/* A library's thread may be writing to its variables at any time. */
static void test_libraries_stay_when_there_are_threads(void **state)
{
    (void)state;
    struct quoit_data_segments segments;
    pthread_t thread;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pthread_create(&thread, NULL, no_work, &ends[0]), 0);
    assert_int_equal(quoit_data_segments_find(&segments), QUOIT_OK);
    assert_int_equal(segments.count, segments.program_count);
    assert_int_equal(segments.libraries, QUOIT_LIBRARIES_HAVE_THREADS);
    free(segments.list);
    close(ends[1]);
    assert_int_equal(pthread_join(thread, NULL), 0);
    close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_libraries_stay_when_there_are_threads),
                                       cmocka_unit_test(test_each_kind_of_object),
                                       cmocka_unit_test(test_share_and_fork)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
