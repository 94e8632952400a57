/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a report names each PE that it has to name once, and no other, in lines of those at one place; and how a PE
 * ended by what is known of it. Method: random sets of PEs, whose lists are read back; random places, whose lines are
 * counted beside a model; statuses of waitpid() with and without a record.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "boot/positions.h"

#define PES_MAX 12u
#define ROUNDS  2000

static uint64_t chance = 11;

static uint32_t choose(uint32_t n)
{
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(chance >> 33) % n;
}

static bool is_in(const void *arg, uint32_t pe)
{
    return *(const uint64_t *)arg >> pe & 1;
}

/* The PEs of "PE 3" or "PEs 0-2,5". */
static uint64_t read_list(const char *text)
{
    uint64_t set = 0;
    const char *at = strchr(text, ' ') + 1;
    while (*at >= '0' && *at <= '9') {
        char *end;
        unsigned long first = strtoul(at, &end, 10), last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
        assert_true(first <= last && last < 64);
        for (; first <= last; first++)
            set |= UINT64_C(1) << first;
        at = *end == ',' ? end + 1 : end;
    }
    return set;
}

static void test_lists(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        char text[QUOIT_POSITIONS_LIST_BYTES];
        uint32_t first = choose(40), count = 1 + choose(PES_MAX);
        uint64_t all = (UINT64_C(1) << (first + count)) - (UINT64_C(1) << first);
        uint64_t set = (((uint64_t)choose(1u << 31) << 31) | choose(1u << 31)) & (choose(2) ? all : UINT64_MAX);
        uint32_t wanted = (uint32_t)__builtin_popcountll(set & all);
        assert_int_equal(quoit_positions_list(first, count, is_in, &set, text), wanted);
        assert_int_equal(strncmp(text, "PEs ", 4) == 0, wanted != 1);
        if (!strstr(text, ",..."))
            assert_int_equal(read_list(text), set & all);
        else
            assert_int_equal(read_list(text) & ~(set & all), 0);
    }
}

struct world {
    struct quoit_position list[PES_MAX];
    struct quoit_pe_shared records[PES_MAX];
};

static const struct quoit_pe_shared *shared_of(const void *arg, uint32_t index)
{
    return &((const struct world *)arg)->records[index];
}

static const char *executable_of(const void *arg, uint32_t index)
{
    (void)arg;
    (void)index;
    return NULL;
}

/* Each PE stands in one line, with those of the same call, but the one that is left out and those that have ended. */
static void test_places(void **state)
{
    static const char *const calls[] = {"", "shmem_quiet", "shmem_barrier_all"};
    static struct world world;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct quoit_report report;
        uint32_t first = choose(20), count = 1 + choose(PES_MAX), except = first + choose(count + 1), kinds[PES_MAX];
        uint64_t wanted[4] = {0};
        memset(&world, 0, sizeof world);
        for (uint32_t i = 0; i < count; i++) {
            kinds[i] = choose(4); /* 3: has ended */
            world.list[i].is_alive = kinds[i] < 3;
            world.list[i].phase = QUOIT_PHASE_RUNNING;
            if (kinds[i] < 3)
                strcpy(world.list[i].call, calls[kinds[i]]);
            if (first + i != except)
                wanted[kinds[i]] |= UINT64_C(1) << (first + i);
        }
        const struct quoit_positions positions = {.list = world.list,
                                                  .first = first,
                                                  .count = count,
                                                  .shared_of = shared_of,
                                                  .executable_of = executable_of,
                                                  .arg = &world};
        assert_true(quoit_report_open(&report, "test"));
        bool has_alive = quoit_positions_write(&report, &positions, except, false);
        quoit_report_close(&report);
        assert_int_equal(has_alive, (wanted[0] | wanted[1] | wanted[2]) != 0);
        for (char *rest = report.text, *line; (line = strsep(&rest, "\n")) && *line;) {
            uint32_t kind = strstr(line, "running") ? 0 : strstr(line, "shmem_quiet") ? 1 : 2;
            uint64_t found = read_list(line + 2);
            assert_int_equal(found, wanted[kind]);
            assert_non_null(strstr(line, __builtin_popcountll(found) == 1 ? " was " : " were "));
            wanted[kind] = 0;
        }
        assert_int_equal(wanted[0] | wanted[1] | wanted[2], 0);
        free(report.text);
    }
}

static void check_failed(int wait_status, int signal_number, const char *wanted)
{
    static struct quoit_pe_shared shared;
    struct quoit_report report;
    const struct quoit_report_pe pe = {
        .pe = 3, .host = "east", .wait_status = wait_status, .has_begun = true, .shared = &shared};
    atomic_store(&shared.crash.signal, (uint32_t)signal_number);
    assert_true(quoit_report_open(&report, "quoit"));
    quoit_report_failed(&report, &pe, 0);
    quoit_report_close(&report);
    assert_memory_equal(report.text, "quoit: PE 3 on east ", 20);
    assert_memory_equal(report.text + 20, wanted, strlen(wanted));
    free(report.text);
}

static void test_ends(void **state)
{
    (void)state;
    check_failed(W_EXITCODE(4, 0), 0, "exited with status 4 before shmem_finalize ");
    check_failed(W_EXITCODE(0, 0), 0, "ended with status 0, but without shmem_finalize ");
    check_failed(W_EXITCODE(0, SIGKILL), 0, "was killed by SIGKILL (kill -9, or memory ran out) ");
    check_failed(W_EXITCODE(0, SIGFPE), SIGFPE, "was killed by SIGFPE ");
    check_failed(W_EXITCODE(128 + SIGABRT, 0), SIGABRT, "was killed by SIGABRT "); /* a shell is in between */
    check_failed(W_EXITCODE(128 + SIGABRT, 0), 0, "exited with status 134 ");
    check_failed(QUOIT_REPORT_STATUS_NONE, 0, "ended before shmem_finalize: killed, or by _exit or exec ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lists), cmocka_unit_test(test_places),
                                       cmocka_unit_test(test_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
