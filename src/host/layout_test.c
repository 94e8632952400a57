/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: nothing in a host's memory overlaps, for all job configs. Method: random job configs; collects every range that
 * is written by anybody, sorts them, and requires them to be disjoint, inside the total, and aligned for what they
 * hold. */
#include "host/doorbells.h"
#include "host/layout.h"
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct range {
    uint64_t start;
    uint64_t end;
};

struct ranges {
    struct range list[20000];
    size_t count;
};

static void add(struct ranges *ranges, uint64_t start, uint64_t bytes, uint64_t align)
{
    assert_true(ranges->count < sizeof ranges->list / sizeof ranges->list[0]);
    assert_int_equal(start % align, 0);
    ranges->list[ranges->count++] = (struct range){start, start + bytes};
}

static int by_start(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

static void add_slots(struct ranges *ranges, const struct quoit_layout *layout, int side)
{
    const struct quoit_job_config *job = &layout->job;
    for (uint32_t lane = 0; lane < job->lane_count; lane++) {
        for (int class = 0; class < QUOIT_CLASS_COUNT; class ++) {
            add(ranges, layout->slots[side] + quoit_layout_credit(layout, lane, class), 8, 64);
            for (uint32_t i = 0; i < job->slot_count; i++) {
                uint64_t at = quoit_layout_slot(layout, lane, class, i);
                assert_true(at + quoit_slot_bytes(job->chunk_bytes) <= layout->slots_bytes);
                add(ranges, layout->slots[side] + at, quoit_slot_bytes(job->chunk_bytes), 64);
            }
        }
    }
}

static void check_layout(struct ranges *ranges, const struct quoit_job_config *job, uint32_t host)
{
    struct quoit_layout layout;
    char *zero = NULL;
    ranges->count = 0;
    assert_int_equal(quoit_layout_make(job, host, &layout), QUOIT_OK);
    add(ranges, 0, sizeof(struct quoit_host_header), 64);
    for (uint32_t lane = 0; lane < job->lane_count; lane++)
        add(ranges, (uint64_t)((char *)quoit_memory_lane(&layout, zero, lane) - zero), sizeof(struct quoit_lane_shared),
            64);
    for (uint32_t local = 0; local < layout.local_count; local++) {
        add(ranges, (uint64_t)((char *)quoit_memory_pe(&layout, zero, local) - zero), sizeof(struct quoit_pe_shared),
            64);
        add(ranges, quoit_layout_segment(&layout, local), layout.segment_heap + job->heap_bytes, 2 << 20);
        for (uint32_t lane = 0; lane < job->lane_count && quoit_job_config_has_proxies(job); lane++) {
            add(ranges, (uint64_t)((char *)quoit_memory_channel(&layout, zero, local, lane) - zero),
                sizeof(struct quoit_channel), 64);
            for (uint32_t i = 0; i < QUOIT_REQUESTS_A_CHANNEL; i++)
                add(ranges, quoit_layout_staging(&layout, local, lane, i), job->chunk_bytes, 64);
        }
    }
    for (int side = 0; side < QUOIT_SIDE_COUNT && job->host_count > 1; side++)
        add_slots(ranges, &layout, side);
    qsort(ranges->list, ranges->count, sizeof ranges->list[0], by_start);
    for (size_t i = 1; i < ranges->count; i++)
        assert_true(ranges->list[i - 1].end <= ranges->list[i].start);
    assert_true(ranges->list[ranges->count - 1].end <= layout.total_bytes);
    assert_true(layout.segment_data >= QUOIT_RUNTIME_BYTES);
    assert_true(layout.segment_heap >= layout.segment_data + job->data_bytes);
}

static void test_nothing_overlaps(void **state)
{
    (void)state;
    struct quoit_prng prng = {.state = 7};
    struct ranges *ranges = malloc(sizeof *ranges);
    for (int i = 0; i < 200; i++) {
        uint32_t host_count = 1 + (uint32_t)quoit_prng_choose(&prng, 6);
        struct quoit_job_config job = {
            .host_count = host_count,
            .pe_count = host_count + (uint32_t)quoit_prng_choose(&prng, 12),
            .lane_count = 1u << quoit_prng_choose(&prng, 4),
            .slot_count = 2 + (uint32_t)quoit_prng_choose(&prng, 15),
            .chunk_bytes = 64 * (1 + (uint32_t)quoit_prng_choose(&prng, 600)),
            .data_bytes = 4096 * quoit_prng_choose(&prng, 1000),
            .heap_bytes = 4096 * quoit_prng_choose(&prng, 100000),
        };
        for (uint32_t host = 0; host < host_count; host++)
            check_layout(ranges, &job, host);
    }
    free(ranges);
}

/* Blocks: every PE is on exactly one host, in order, and counts differ by at most one. */
static void test_pes_lie_in_blocks(void **state)
{
    (void)state;
    for (uint32_t hosts = 1; hosts <= 9; hosts++) {
        for (uint32_t pes = hosts; pes <= 40; pes++) {
            struct quoit_job_config job = {.host_count = hosts, .pe_count = pes};
            uint32_t next = 0;
            for (uint32_t host = 0; host < hosts; host++) {
                assert_int_equal(quoit_job_config_first_pe(&job, host), next);
                for (uint32_t i = 0; i < quoit_job_config_pes_of_host(&job, host); i++, next++)
                    assert_int_equal(quoit_job_config_host_of_pe(&job, next), host);
                assert_in_range(quoit_job_config_pes_of_host(&job, host), pes / hosts, pes / hosts + 1);
            }
            assert_int_equal(next, pes);
        }
    }
}

/* Numbers of its own for each host: every PE is on exactly one host, in order. */
static void test_pes_lie_where_they_are_placed(void **state)
{
    (void)state;
    struct quoit_job_config job = {.host_count = 4,
                                   .pe_count = 10,
                                   .lane_count = 1,
                                   .slot_count = 2,
                                   .chunk_bytes = 64,
                                   .rows = {{1, 1}, {2, 6}, {3, 1}, {4, 2}}};
    const uint32_t counts[] = {1, 6, 1, 2};
    struct quoit_layout layout;
    uint32_t next = 0;
    for (uint32_t host = 0; host < 4; host++) {
        assert_int_equal(quoit_layout_make(&job, host, &layout), QUOIT_OK);
        assert_int_equal(layout.first_pe, next);
        assert_int_equal(layout.local_count, counts[host]);
        for (uint32_t i = 0; i < counts[host]; i++, next++)
            assert_int_equal(quoit_job_config_host_of_pe(&job, next), host);
    }
    assert_int_equal(next, job.pe_count);
    assert_int_equal(quoit_job_config_most_pes(&job), 6);
    job.rows[2].end_host = 2; /* a row without a host */
    assert_int_equal(quoit_layout_make(&job, 0, &layout), QUOIT_INVALID);
    job.rows[2].end_host = 3;
    job.rows[3].pes_a_host = 1; /* a PE without a host */
    assert_int_equal(quoit_layout_make(&job, 0, &layout), QUOIT_INVALID);
    job.rows[3] = (struct quoit_host_row){3, 2}; /* and one beyond it */
    assert_int_equal(quoit_layout_make(&job, 0, &layout), QUOIT_INVALID);
    job.rows[3] = (struct quoit_host_row){5, 1}; /* hosts that the job does not have */
    assert_int_equal(quoit_layout_make(&job, 0, &layout), QUOIT_INVALID);
    job.rows[3] = (struct quoit_host_row){4, QUOIT_LOCAL_PES_MAX + 1}; /* too many on one */
    job.pe_count = 8 + QUOIT_LOCAL_PES_MAX + 1;
    assert_int_equal(quoit_layout_make(&job, 0, &layout), QUOIT_INVALID);
}

/* Hosts are added one at a time, with numbers that repeat and change. */
static void test_hosts_are_added(void **state)
{
    (void)state;
    struct quoit_prng chance = {.state = 7};
    for (uint32_t run = 0; run < 50; run++) {
        struct quoit_job_config job = {.lane_count = 1, .slot_count = 2, .chunk_bytes = 64};
        uint32_t counts[QUOIT_JOB_HOSTS_MAX],
            host_count = 1 + (uint32_t)quoit_prng_choose(&chance, QUOIT_JOB_HOSTS_MAX);
        uint32_t row_count = 0, pe = 0;
        for (uint32_t host = 0; host < host_count; host++) {
            bool is_other = host == 0 || (row_count < QUOIT_HOST_ROWS_MAX && quoit_prng_choose(&chance, 8) == 0);
            counts[host] = is_other ? (uint32_t)quoit_prng_choose(&chance, 9) : counts[host - 1];
            row_count += host == 0 || counts[host] != counts[host - 1];
            assert_true(quoit_job_config_add_host(&job, counts[host]));
        }
        assert_int_equal(job.host_count, host_count);
        assert_true(quoit_job_config_has_sound_places(&job));
        for (uint32_t host = 0; host < host_count; host++) {
            assert_int_equal(quoit_job_config_first_pe(&job, host), pe);
            assert_int_equal(quoit_job_config_pes_of_host(&job, host), counts[host]);
            for (uint32_t end = pe + counts[host]; pe < end; pe++)
                assert_int_equal(quoit_job_config_host_of_pe(&job, pe), host);
        }
        assert_int_equal(job.pe_count, pe);
    }
}

static void test_there_are_so_many_hosts_and_rows(void **state)
{
    (void)state;
    struct quoit_job_config job = {0}, rows = {0};
    for (uint32_t host = 0; host < QUOIT_JOB_HOSTS_MAX; host++)
        assert_true(quoit_job_config_add_host(&job, 2));
    assert_false(quoit_job_config_add_host(&job, 2));
    assert_int_equal(job.pe_count, 2 * QUOIT_JOB_HOSTS_MAX);
    for (uint32_t host = 0; host < QUOIT_HOST_ROWS_MAX; host++)
        assert_true(quoit_job_config_add_host(&rows, 1 + host % 2));
    assert_false(quoit_job_config_add_host(&rows, 1));
    assert_true(quoit_job_config_add_host(&rows, 2));
    assert_int_equal(rows.host_count, QUOIT_HOST_ROWS_MAX + 1);
    assert_true(quoit_job_config_has_sound_places(&rows));
}

/* Hosts without PEs, whichever they are: every PE is on one of the others. */
static void test_hosts_without_pes(void **state)
{
    (void)state;
    for (uint32_t bare = 1; bare < 31; bare++) {
        struct quoit_job_config job = {.lane_count = 1, .slot_count = 2, .chunk_bytes = 64};
        struct quoit_layout layout;
        for (uint32_t host = 0; host < 5; host++)
            assert_true(quoit_job_config_add_host(&job, bare >> host & 1 ? 0 : 2));
        for (uint32_t host = 0, next = 0; host < 5; host++) {
            assert_int_equal(quoit_layout_make(&job, host, &layout), QUOIT_OK);
            assert_int_equal(layout.local_count, bare >> host & 1 ? 0 : 2);
            assert_int_equal(layout.first_pe, next);
            for (uint32_t i = 0; i < layout.local_count; i++, next++)
                assert_int_equal(quoit_job_config_host_of_pe(&job, next), host);
        }
        assert_int_equal(quoit_job_config_most_pes(&job), 2);
    }
}

/* Every division of up to 6 hosts into rings: each host has the ring that the bits say, goes round it, and has lanes
 * and slots for what it has. */
static void test_rings_of_a_job(void **state)
{
    (void)state;
    for (uint32_t host_count = 2; host_count <= 6; host_count++) {
        for (uint64_t starts = 3; starts < UINT64_C(1) << host_count; starts += 2) {
            const struct quoit_job_config job = {.host_count = host_count,
                                                 .pe_count = 2 * host_count,
                                                 .lane_count = 4,
                                                 .slot_count = 2,
                                                 .chunk_bytes = 64,
                                                 .ring_starts = starts};
            uint32_t first = 0;
            assert_true(quoit_job_config_has_network(&job));
            for (uint32_t host = 0; host < host_count; host++) {
                struct quoit_layout layout;
                uint32_t end = host + 1;
                while (end < host_count && (starts >> end & 1) == 0)
                    end++;
                first = starts >> host & 1 ? host : first;
                assert_int_equal(quoit_layout_make(&job, host, &layout), QUOIT_OK);
                assert_int_equal(layout.ring.first, first);
                assert_int_equal(layout.ring.count, end - first);
                assert_int_equal(quoit_layout_neighbour(&layout, QUOIT_RIGHT), host + 1 == end ? first : host + 1);
                assert_int_equal(quoit_layout_neighbour(&layout, QUOIT_LEFT), host == first ? end - 1 : host - 1);
                assert_int_equal(layout.link_lane_count, end - first > 1 ? 4 : 0);
                assert_int_equal(layout.lane_count, layout.link_lane_count + 1);
                assert_int_equal(layout.slots_bytes > 0, end - first > 1);
                for (uint32_t other = 0; other < host_count; other++)
                    assert_int_equal(quoit_layout_is_on_ring(&layout, other), other >= first && other < end);
            }
        }
    }
}

static void test_bad_rings_are_refused(void **state)
{
    (void)state;
    const struct quoit_job_config good = {
        .host_count = 4, .pe_count = 4, .lane_count = 1, .slot_count = 2, .chunk_bytes = 64, .ring_starts = 5};
    struct quoit_layout layout;
    assert_int_equal(quoit_layout_make(&good, 0, &layout), QUOIT_OK);
    struct quoit_job_config bad[] = {good, good, good, good, good, good};
    bad[0].ring_starts = 1;    /* a single one */
    bad[1].ring_starts = 6;    /* host 0 is on none */
    bad[2].ring_starts = 0x11; /* begins beyond the hosts */
    bad[3].protocol = QUOIT_PROTOCOL_SCRATCHPAD;
    bad[4].barrier = QUOIT_BARRIER_PAPERS;
    bad[5].host_count = bad[5].pe_count = 65; /* more than bits */
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(quoit_layout_make(&bad[i], 0, &layout), QUOIT_INVALID);
}

/* With a loopback a single host has what several have, but links; and there is none without a network. */
static void test_a_host_with_a_loopback(void **state)
{
    (void)state;
    struct quoit_job_config job = {.host_count = 1,
                                   .pe_count = 3,
                                   .lane_count = 1,
                                   .slot_count = 2,
                                   .chunk_bytes = 64,
                                   .protocol = QUOIT_PROTOCOL_NETWORK,
                                   .has_loopback = true};
    struct ranges *ranges = malloc(sizeof *ranges);
    struct quoit_layout layout;
    check_layout(ranges, &job, 0);
    free(ranges);
    assert_true(quoit_job_config_has_proxies(&job));
    assert_true(quoit_job_config_has_network(&job));
    assert_int_equal(quoit_layout_make(&job, 0, &layout), QUOIT_OK);
    assert_int_equal(layout.lane_count, 1);
    assert_int_equal(layout.link_lane_count, 0);
    assert_int_equal(layout.slots_bytes, 0);
    assert_false(quoit_layout_has_links(&layout));
    job.has_loopback = false;
    assert_false(quoit_job_config_has_proxies(&job));
    assert_int_equal(quoit_layout_make(&job, 0, &layout), QUOIT_OK);
    assert_int_equal(layout.link_lane_count, 1); /* as the config says; nobody opens it */
    job.has_loopback = true;
    job.protocol = QUOIT_PROTOCOL_QUEUE;
    assert_int_equal(quoit_layout_make(&job, 0, &layout), QUOIT_INVALID);
    job.host_count = 2;
    assert_int_equal(quoit_layout_make(&job, 0, &layout), QUOIT_INVALID);
    job.host_count = 3;
    job.ring_starts = 5;
    assert_int_equal(quoit_layout_make(&job, 0, &layout), QUOIT_OK);
}

static void test_bad_configs_are_refused(void **state)
{
    (void)state;
    const struct quoit_job_config good = {
        .host_count = 2, .pe_count = 2, .lane_count = 1, .slot_count = 2, .chunk_bytes = 64};
    struct quoit_layout layout;
    assert_int_equal(quoit_layout_make(&good, 0, &layout), QUOIT_OK);
    struct quoit_job_config bad[] = {good, good, good, good, good, good};
    bad[0].host_count = 0;
    bad[1].pe_count = 1;
    bad[2].lane_count = 3;
    bad[3].slot_count = 1;
    bad[4].chunk_bytes = 65;
    bad[5].heap_bytes = 1;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(quoit_layout_make(&bad[i], 0, &layout), QUOIT_INVALID);
    assert_int_equal(quoit_layout_make(&good, 2, &layout), QUOIT_INVALID);
}

/* The bounds are allowed; one step beyond, and what is not a power of two, is refused. */
static void test_bounds_of_the_trace(void **state)
{
    (void)state;
    static const struct {
        uint32_t count;
        enum quoit_status status;
    } cases[] = {{0, QUOIT_OK},
                 {QUOIT_TRACE_EVENTS_MIN, QUOIT_OK},
                 {QUOIT_TRACE_EVENTS_MIN / 2, QUOIT_INVALID},
                 {QUOIT_TRACE_EVENTS_MIN + 1, QUOIT_INVALID},
                 {QUOIT_TRACE_EVENTS_MAX, QUOIT_OK},
                 {2 * QUOIT_TRACE_EVENTS_MAX, QUOIT_INVALID}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct quoit_job_config job = {.host_count = 2,
                                             .pe_count = 2,
                                             .lane_count = 1,
                                             .slot_count = 2,
                                             .chunk_bytes = 64,
                                             .trace_count = cases[i].count};
        struct quoit_layout layout;
        assert_int_equal(quoit_layout_make(&job, 0, &layout), cases[i].status);
    }
}

/* The bits of one end, by what they are for. */
static void test_doorbells_have_a_bit_for_each_use(void **state)
{
    (void)state;
    struct quoit_job_config job = {
        .host_count = 3, .pe_count = 3, .lane_count = 4, .protocol = QUOIT_PROTOCOL_SCRATCHPAD};
    assert_int_equal(quoit_doorbells_least(&job), 4 + 1);
    job.barrier = QUOIT_BARRIER_PAPERS;
    assert_int_equal(quoit_doorbells_least(&job), 4 + QUOIT_DOORBELLS_OF_BARRIER + 1);
    job = (struct quoit_job_config){.host_count = 3, .pe_count = 3, .lane_count = 4};
    assert_int_equal(quoit_doorbells_least(&job), 1 + 1);
    assert_int_equal(quoit_doorbells_most(&job, 2), 4 + 2);
    assert_int_equal(quoit_doorbells_most(&job, 100), 4 + QUOIT_DOORBELLS_OF_PES);
    struct quoit_doorbells doorbells = quoit_doorbells_of(&job, 0x2b);
    assert_int_equal(doorbells.lane_count, 3);
    assert_int_equal(doorbells.rest_count, 1);
    doorbells = quoit_doorbells_of(&job, 0x3ff); /* no more for lanes than there are: PEs share what is left */
    assert_int_equal(doorbells.lane_count, 4);
    assert_int_equal(doorbells.rest, 4);
    assert_int_equal(doorbells.rest_count, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_overlaps),
        cmocka_unit_test(test_pes_lie_in_blocks),
        cmocka_unit_test(test_pes_lie_where_they_are_placed),
        cmocka_unit_test(test_rings_of_a_job),
        cmocka_unit_test(test_bad_rings_are_refused),
        cmocka_unit_test(test_a_host_with_a_loopback),
        cmocka_unit_test(test_bad_configs_are_refused),
        cmocka_unit_test(test_hosts_are_added),
        cmocka_unit_test(test_there_are_so_many_hosts_and_rows),
        cmocka_unit_test(test_hosts_without_pes),
        cmocka_unit_test(test_bounds_of_the_trace),
        cmocka_unit_test(test_doorbells_have_a_bit_for_each_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
