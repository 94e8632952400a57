/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: the variables of a program and of a library are symmetric whatever the linker made of them, and nothing else of
 * their objects' address ranges is touched. Method: each PE writes a pattern into all of its variables, puts another
 * one into a part of its neighbour's, and compares every byte with what the patterns say, as it compares what it gets;
 * pages that it has mapped into the holes between the objects' PT_LOADs keep their bytes. A forked child changes its
 * copies alone. */
#define _GNU_SOURCE
#include <link.h>
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "variables.h"

#define OBJECTS   2
#define HOLES_MAX 16

static int me = -1; /* until shmem_init */

#define WANT(condition, ...)                                                                                           \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "PE %d: ", me);                                                                            \
            fprintf(stderr, __VA_ARGS__);                                                                              \
            fprintf(stderr, "\n");                                                                                     \
            _exit(3);                                                                                                  \
        }                                                                                                              \
    } while (0)

static const struct variable *find(int object, int index)
{
    return object == 0 ? &variables_of_program()[index] : &variables_of_library()[index];
}

/* What PE `pe` writes at byte i of a variable in a round. */
static unsigned char pattern(int round, int pe, int object, int index, size_t i)
{
    uint32_t mix =
        (uint32_t)i * 2654435761u + (uint32_t)(round * 7919 + pe * 104729 + object * 1299709 + index * 15485863);
    mix ^= mix >> 15;
    return (unsigned char)(mix * 2246822519u >> 24);
}

/* The part that the left neighbour puts: begins and ends inside a page, and crosses pages where there are several. */
static size_t part_from(const struct variable *variable)
{
    return variable->bytes / 5 + 1;
}

static size_t part_bytes(const struct variable *variable)
{
    return variable->bytes * 3 / 4;
}

/* After the puts of its left neighbour. */
static unsigned char expected(int owner, int pes, int object, int index, size_t i)
{
    const struct variable *variable = find(object, index);
    if (i - part_from(variable) < part_bytes(variable))
        return pattern(2, (owner + pes - 1) % pes, object, index, i);
    return pattern(1, owner, object, index, i);
}

static void check_initial(const char *when)
{
    for (int object = 0; object < OBJECTS; object++)
        for (int index = 0; index < VARIABLES; index++) {
            const struct variable *v = find(object, index);
            WANT((uintptr_t)v->at % v->alignment == 0, "%s of object %d is at %p %s", v->name, object, (void *)v->at,
                 when);
            WANT(v->at[0] == v->first && v->at[v->bytes - 1] == v->last, "the ends of %s of object %d are %d and %d %s",
                 v->name, object, v->at[0], v->at[v->bytes - 1], when);
            for (size_t i = 1; i < v->bytes - 1; i++)
                WANT(v->at[i] == 0, "byte %zu of %s of object %d is %d %s", i, v->name, object, v->at[i], when);
        }
}

static void fill(int round)
{
    for (int object = 0; object < OBJECTS; object++)
        for (int index = 0; index < VARIABLES; index++)
            for (size_t i = 0; i < find(object, index)->bytes; i++)
                find(object, index)->at[i] = pattern(round, me, object, index, i);
}

static void check_own(int pes, const char *when)
{
    for (int object = 0; object < OBJECTS; object++)
        for (int index = 0; index < VARIABLES; index++)
            for (size_t i = 0; i < find(object, index)->bytes; i++)
                WANT(find(object, index)->at[i] == expected(me, pes, object, index, i),
                     "byte %zu of %s of object %d is %d, not %d, %s", i, find(object, index)->name, object,
                     find(object, index)->at[i], expected(me, pes, object, index, i), when);
}

static void put_parts(int to)
{
    unsigned char *values = malloc(1 << 20);
    for (int object = 0; object < OBJECTS; object++)
        for (int index = 0; index < VARIABLES; index++) {
            const struct variable *v = find(object, index);
            size_t from = part_from(v), bytes = part_bytes(v);
            for (size_t i = 0; i < bytes; i++)
                values[i] = pattern(2, me, object, index, from + i);
            WANT(shmem_addr_accessible(v->at, to) && shmem_addr_accessible(v->at + v->bytes - 1, to),
                 "%s of object %d is not symmetric", v->name, object);
            shmem_uchar_p(v->at + from, values[0], to);
            shmem_putmem(v->at + from + 1, values + 1, bytes - 1, to);
            shmem_quiet();
        }
    free(values);
}

/* Through a private buffer. */
static void get_all(int from, int pes)
{
    unsigned char *values = malloc(1 << 20);
    for (int object = 0; object < OBJECTS; object++)
        for (int index = 0; index < VARIABLES; index++) {
            const struct variable *v = find(object, index);
            shmem_getmem(values, v->at, v->bytes, from);
            for (size_t i = 0; i < v->bytes; i++)
                WANT(values[i] == expected(from, pes, object, index, i),
                     "byte %zu of %s of object %d of PE %d came as %d", i, v->name, object, from, values[i]);
        }
    free(values);
}

/* From variable to variable, since a symmetric source may be read in place: every PE puts those of its library into its
 * neighbour's of the program, which have the same sizes. */
static void copy_across(int to, int pes)
{
    for (int index = 0; index < VARIABLES; index++)
        shmem_putmem(find(0, index)->at, find(1, index)->at, find(1, index)->bytes, to);
    shmem_barrier_all();
    for (int index = 0; index < VARIABLES; index++)
        for (size_t i = 0; i < find(0, index)->bytes; i++)
            WANT(find(0, index)->at[i] == expected((me + pes - 1) % pes, pes, 1, index, i),
                 "byte %zu of %s was copied wrongly", i, find(0, index)->name);
}

struct holes {
    unsigned char *at[HOLES_MAX];
    int count;
    int is_past_program;
};

/* Maps a page at the start of each hole between two PT_LOADs of an object. The loader has reserved those of a library;
 * in those of the program something may be mapped. */
static int fill_holes(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    struct holes *holes = arg;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), end = 0;
    int is_program = !holes->is_past_program++;
    (void)bytes;
    if (!is_program && !strstr(info->dlpi_name, "libobjects"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *load = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + load->p_vaddr;
        if (load->p_type != PT_LOAD)
            continue;
        if (end && from / page * page > end && holes->count < HOLES_MAX) {
            void *at = mmap((void *)end, page, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | (is_program ? MAP_FIXED_NOREPLACE : MAP_FIXED), -1, 0);
            if (at == (void *)end)
                memset(holes->at[holes->count++] = at, 0xa5, page);
        }
        end = (from + load->p_memsz + page - 1) / page * page;
    }
    return 0;
}

static void check_holes(const struct holes *holes)
{
    long page = sysconf(_SC_PAGESIZE);
    for (int i = 0; i < holes->count; i++) {
        for (long byte = 0; byte < page; byte++)
            WANT(holes->at[i][byte] == 0xa5, "byte %ld of a page in a hole has changed", byte);
        WANT(!shmem_addr_accessible(holes->at[i], 0), "a page in a hole is symmetric");
    }
}

static void check_child(int pes)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        check_own(pes, "in a child");
        fill(5);
        _exit(0);
    }
    WANT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0,
         "the child's status is %d", status);
    check_own(pes, "after a child");
}

int main(void)
{
    struct holes holes = {.count = 0};
    dl_iterate_phdr(fill_holes, &holes);
    check_initial("before shmem_init");
    shmem_init();
    check_initial("after shmem_init");
    me = shmem_my_pe();
    int pes = shmem_n_pes(), right = (me + 1) % pes;
    fill(1);
    shmem_barrier_all();
    put_parts(right);
    shmem_barrier_all();
    check_own(pes, "after the puts");
    get_all(right, pes);
    check_child(pes);
    shmem_barrier_all();
    copy_across(right, pes);
    check_holes(&holes);
    int hole_count = holes.count;
    shmem_finalize();
    if (me == 0)
        printf("%d variables, %d holes\n", OBJECTS * VARIABLES, hole_count);
    return 0;
}
