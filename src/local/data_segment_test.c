/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: variables keep address and value when they are shared, the file shows every write, and forked children have
 * variables of their own. Method: shares this program's own variables through a memfd. */
#include "local/data_segment.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
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
static char large[LARGE_BYTES]; /* mostly untouched */

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

static void test_share_and_fork(void **state)
{
    (void)state;
    struct quoit_data_segments segments;
    quoit_data_segments_find(&segments);
    const struct quoit_data_segment segment = segments.segment[0];
#ifdef __SANITIZE_THREAD__
    assert_int_equal(segments.count, 1); /* the sanitizer's thread is running */
#else
    assert_true(segments.count >= 2); /* cmocka has variables too */
#endif
    assert_true(segments.count < QUOIT_DATA_SEGMENTS_MAX);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < segments.count; i++)
        bytes += segments.segment[i].bytes;
    assert_int_equal(bytes, segments.bytes);
    assert_true(segment.bytes > sizeof zeroed);
    assert_true((char *)&initialised >= segment.base && (char *)&initialised < segment.base + segment.bytes);
    assert_true(zeroed >= segment.base && zeroed + sizeof zeroed <= segment.base + segment.bytes);
    assert_false((char *)&constant >= segment.base && (char *)&constant < segment.base + segment.bytes);

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

    volatile long *seen = (volatile long *)(view + 8192 + ((char *)&initialised - segment.base));
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
    quoit_data_segments_find(&segments);
    assert_int_equal(segments.count, 1);
    assert_int_equal(segments.segment[0].bytes, segments.bytes);
    close(ends[1]);
    assert_int_equal(pthread_join(thread, NULL), 0);
    close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_libraries_stay_when_there_are_threads),
                                       cmocka_unit_test(test_share_and_fork)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
