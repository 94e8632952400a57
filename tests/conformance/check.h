/* SPDX-License-Identifier: BSD-3-Clause */
/* check.h - shared by the conformance programs. Each runs with any number of PEs on any number of hosts, compares
 * results with the specification, and prints the first mismatches, and one line of PE 0 at the end. The status is 1 if
 * any PE found a mismatch.
 */
#ifndef CHECK_H
#define CHECK_H

#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_failed_count;
static int me, npes;

#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition) && check_failed_count++ < 5) {                                                                \
            fprintf(stderr, "%s:%d: PE %d of %d: %s: ", __FILE__, __LINE__, me, npes, #condition);                     \
            fprintf(stderr, __VA_ARGS__);                                                                              \
            fputc('\n', stderr);                                                                                       \
        }                                                                                                              \
    } while (0)

/* A number that differs between PEs, elements and calls, and that every type holds exactly or wraps alike. */
#define VALUE(TYPE, PE, I, SALT) ((TYPE)(((PE)*37 + (int)(I)*5 + (SALT)) % 113))

static inline void check_begin(void)
{
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
}

static inline int check_end(const char *what)
{
    shmem_barrier_all();
    int failed_count = check_failed_count;
    if (me == 0 && failed_count == 0)
        printf("%s: ok on %d PEs\n", what, npes);
    shmem_finalize();
    return failed_count == 0 ? 0 : 1;
}

#endif
