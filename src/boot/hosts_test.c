/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: hosts, PE numbers and the job config follow from what the ranks say, however a launcher places them. Method:
 * ranks in blocks, in turns, and at random, against a count of our own. */
#include "boot/hosts.h"
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PES 48u

static struct quoit_hosts *make(const uint32_t *machines, uint32_t count)
{
    struct quoit_hosts *hosts;
    assert_int_equal(quoit_hosts_open(count, &hosts), QUOIT_OK);
    for (uint32_t rank = 0; rank < count; rank++) {
        char machine[16], name[16];
        snprintf(machine, sizeof machine, "m%u", machines[rank]);
        snprintf(name, sizeof name, "n%u", machines[rank]);
        struct quoit_hosts_entry entry = {.machine = machine,
                                          .name = name,
                                          .data_bytes = 4096 * (1 + rank % 3),
                                          .heap_share = (machines[rank] + 1ull) << 30};
        assert_int_equal(quoit_hosts_add(hosts, &entry), QUOIT_OK);
    }
    return hosts;
}

static void check_ranks(const struct quoit_hosts *hosts, uint32_t host, const uint32_t *wanted, uint32_t count)
{
    uint32_t ranks[PES];
    assert_int_equal(hosts->list[host].pe_count, count);
    quoit_hosts_ranks(hosts, host, ranks);
    assert_memory_equal(ranks, wanted, count * sizeof ranks[0]);
}

static void test_blocks_and_turns(void **state)
{
    (void)state;
    struct quoit_job_config job;
    struct quoit_hosts *hosts = make((const uint32_t[]){7, 7, 7, 2, 2}, 5);
    assert_int_equal(hosts->count, 2);
    assert_string_equal(hosts->list[1].name, "n2");
    assert_int_equal(hosts->list[1].lowest_rank, 3);
    check_ranks(hosts, 0, (const uint32_t[]){0, 1, 2}, 3);
    assert_true(quoit_hosts_configure(hosts, &job));
    assert_int_equal(job.host_count, 2);
    assert_int_equal(quoit_job_config_first_pe(&job, 1), 3);
    assert_int_equal(quoit_job_config_pes_of_host(&job, 1), 2);
    assert_int_equal(job.data_bytes, 3 * 4096);
    assert_true(job.heap_bytes < 3ull << 29); /* host 1 has 3 GiB for two */
    assert_true(job.heap_bytes > 1ull << 30);
    quoit_hosts_close(hosts);

    hosts = make((const uint32_t[]){4, 5, 6, 4, 5, 4}, 6);
    assert_int_equal(hosts->count, 3);
    check_ranks(hosts, 0, (const uint32_t[]){0, 3, 5}, 3);
    check_ranks(hosts, 1, (const uint32_t[]){1, 4}, 2);
    check_ranks(hosts, 2, (const uint32_t[]){2}, 1);
    quoit_hosts_close(hosts);
}

static void test_random(void **state)
{
    (void)state;
    struct quoit_prng chance = {.state = 20};
    for (int run = 0; run < 200; run++) {
        uint32_t machines[PES], seen = 0, all[PES] = {0};
        for (uint32_t rank = 0; rank < PES; rank++)
            machines[rank] = rank == 0 ? 0 : (uint32_t)quoit_prng_choose(&chance, 6);
        machines[1] = 1;
        struct quoit_hosts *hosts = make(machines, PES);
        struct quoit_job_config job;
        assert_true(quoit_hosts_configure(hosts, &job));
        assert_true(quoit_job_config_has_sound_places(&job));
        for (uint32_t host = 0; host < hosts->count; host++) {
            uint32_t ranks[PES], count = hosts->list[host].pe_count;
            quoit_hosts_ranks(hosts, host, ranks);
            assert_int_equal(ranks[0], hosts->list[host].lowest_rank);
            assert_int_equal(quoit_job_config_first_pe(&job, host), seen);
            for (uint32_t i = 0; i < count; i++) {
                all[ranks[i]]++;
                assert_int_equal(machines[ranks[i]], machines[ranks[0]]);
                assert_true(i == 0 || ranks[i] > ranks[i - 1]);
            }
            seen += count;
        }
        for (uint32_t rank = 0; rank < PES; rank++)
            assert_int_equal(all[rank], 1);
        quoit_hosts_close(hosts);
    }
}

static void test_limits(void **state)
{
    (void)state;
    struct quoit_hosts *hosts;
    uint32_t count = QUOIT_JOB_HOSTS_MAX + 1;
    assert_int_equal(quoit_hosts_open(3000, &hosts), QUOIT_OK);
    for (uint32_t i = 0; i < count; i++) {
        char machine[16];
        snprintf(machine, sizeof machine, "m%u", i);
        struct quoit_hosts_entry entry = {.machine = machine, .name = "n"};
        assert_int_equal(quoit_hosts_add(hosts, &entry), i < QUOIT_JOB_HOSTS_MAX ? QUOIT_OK : QUOIT_FULL);
    }
    struct quoit_hosts_entry entry = {.machine = "m5", .name = "n"};
    for (uint32_t i = 1; i < QUOIT_LOCAL_PES_MAX; i++)
        assert_int_equal(quoit_hosts_add(hosts, &entry), QUOIT_OK);
    assert_int_equal(quoit_hosts_add(hosts, &entry), QUOIT_FULL);
    quoit_hosts_close(hosts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks_and_turns), cmocka_unit_test(test_random),
                                       cmocka_unit_test(test_limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
