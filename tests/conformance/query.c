/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: set-up and queries (9.1, 9.2). Method: results compared with each other and with the constants; a load through
 * shmem_ptr sees what a put wrote. */
#include "check.h"

static long word = 5;
static const int constant = 1;

int main(void)
{
    int is_there = 7, provided = 7, level, major, minor;
    char name[SHMEM_MAX_NAME_LEN];
    shmem_query_initialized(&is_there);
    CHECK(is_there == 0, "initialized before init");
    CHECK(shmem_init_thread(SHMEM_THREAD_SINGLE - 1, &provided) != 0, "init_thread below the lowest level");
    CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE + 1, &provided) != 0, "init_thread above the highest level");
    shmem_query_initialized(&is_there);
    CHECK(is_there == 0 && provided == 7, "initialized by a call that failed, or %d is not 7", provided);
    CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0, "init_thread");
    CHECK(provided >= SHMEM_THREAD_SINGLE && provided <= SHMEM_THREAD_MULTIPLE, "level %d", provided);
    shmem_query_initialized(&is_there);
    CHECK(is_there == 1, "not initialized after init");
    shmem_init(); /* a second initialization; the finalize below leaves the library running */
    shmem_finalize();
    check_begin();
    shmem_query_thread(&level);
    CHECK(level == provided, "level %d, provided %d", level, provided);
    CHECK(_my_pe() == me && _num_pes() == npes && me >= 0 && me < npes, "numbers");
    shmem_info_get_version(&major, &minor);
    CHECK(major == SHMEM_MAJOR_VERSION && minor == SHMEM_MINOR_VERSION, "version %d.%d", major, minor);
    shmem_info_get_name(name);
    CHECK(strcmp(name, SHMEM_VENDOR_STRING) == 0, "name %s", name);
    shmem_pcontrol(1);

    long *heap = shmem_malloc(sizeof *heap), stack = 0;
    CHECK(word == 5, "a variable's first value is %ld", word);
    for (int pe = -1; pe <= npes; pe++) {
        int is_pe = pe >= 0 && pe < npes;
        CHECK(shmem_pe_accessible(pe) == is_pe, "pe_accessible(%d)", pe);
        CHECK(shmem_addr_accessible(heap, pe) == is_pe, "heap on %d", pe);
        CHECK(shmem_addr_accessible(&word, pe) == is_pe, "global on %d", pe);
        CHECK(shmem_addr_accessible(&stack, pe) == 0, "stack on %d", pe);
        CHECK(shmem_addr_accessible(&constant, pe) == 0, "constant on %d", pe);
    }
    CHECK(shmem_ptr(heap, me) == heap && shmem_ptr(&word, me) == &word, "the own addresses");
    CHECK(shmem_ptr(&stack, me) == NULL, "the stack");
    *heap = me;
    word = me + 1000;
    shmem_barrier_all();
    for (int pe = 0; pe < npes; pe++) {
        const long *there = shmem_ptr(heap, pe), *global = shmem_ptr(&word, pe);
        CHECK((there == NULL) == (global == NULL), "heap and globals of %d", pe);
        CHECK(!there || *there == pe, "heap of %d through shmem_ptr", pe);
        CHECK(!global || *global == pe + 1000, "global of %d through shmem_ptr", pe);
        CHECK(shmem_long_g(&word, pe) == pe + 1000, "global of %d", pe);
    }
    shmem_finalize(); /* check_begin's; check_end makes the last one */
    return check_end("query");
}
