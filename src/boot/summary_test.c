/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: an answer that fits its host and round is stored whole and for that host alone; any other changes nothing, and
 * what is stored can be printed. Method: answers of hosts with different numbers of PEs, in turns changed in one
 * respect, and filled by chance; the whole summary is compared with a copy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "boot/summary.h"

#define ROUND 7

static const uint32_t pes_of[] = {1, 4, 2};
#define HOSTS (sizeof pes_of / sizeof pes_of[0])

static struct quoit_summary *make(uint8_t protocol, size_t *bytes_out)
{
    struct quoit_job_config job = {.lane_count = 1, .slot_count = 16, .chunk_bytes = 4096, .protocol = protocol};
    job.data_bytes = 4096;
    job.heap_bytes = 1 << 20;
    for (uint32_t host = 0; host < HOSTS; host++)
        assert_true(quoit_job_config_add_host(&job, pes_of[host]));
    *bytes_out = quoit_summary_bytes(&job);
    struct quoit_summary *summary = calloc(1, *bytes_out);
    assert_non_null(summary);
    summary->descriptor.job = job;
    return summary;
}

static struct quoit_summary_answer *answer_of(const struct quoit_summary *summary, uint32_t host, size_t *bytes_out)
{
    const struct quoit_job_config *job = &summary->descriptor.job;
    struct quoit_layout layout;
    assert_int_equal(quoit_layout_make(job, host, &layout), QUOIT_OK);
    *bytes_out = quoit_summary_answer_bytes(job, host);
    struct quoit_summary_answer *answer = calloc(1, *bytes_out);
    assert_non_null(answer);
    answer->round = ROUND;
    answer->taken_ns = 1000 + host;
    answer->host.network = (struct quoit_network_survey){.host = host, .put_count = 5 + host};
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT && quoit_layout_has_links(&layout); side++) {
        uint32_t neighbour = quoit_layout_neighbour(&layout, side);
        answer->host.directions[side] = (struct quoit_direction){
            .link = side == QUOIT_RIGHT ? host : neighbour, .from = host, .to = neighbour, .side = side};
    }
    for (uint32_t i = 0; i < pes_of[host]; i++) {
        answer->pes[i].pid = 100 * host + i + 1;
        strcpy(answer->pes[i].call, "shmem_barrier_all");
        answer->pes[i].is_waiting = true;
    }
    return answer;
}

static void test_each_host_in_its_place(void **state)
{
    (void)state;
    for (uint8_t protocol = 0; protocol < QUOIT_PROTOCOL_COUNT; protocol++) {
        size_t bytes, answer_bytes;
        struct quoit_summary *summary = make(protocol, &bytes);
        for (uint32_t host = HOSTS; host-- > 0;) {
            struct quoit_summary_answer *answer = answer_of(summary, host, &answer_bytes);
            assert_true(quoit_summary_take(summary, host, ROUND, answer, answer_bytes));
            free(answer);
        }
        for (uint32_t host = 0, pe = 0; host < HOSTS; host++) {
            const struct quoit_summary_host *record = quoit_summary_host(&summary->descriptor.job, summary, host);
            assert_int_equal(atomic_load(&record->round), ROUND);
            assert_int_equal(record->taken_ns, 1000 + host);
            assert_int_equal(record->survey.network.put_count, 5 + host);
            for (uint32_t i = 0; i < pes_of[host]; i++, pe++) {
                const struct quoit_summary_pe *stored = quoit_summary_pe(&summary->descriptor.job, summary, pe);
                assert_int_equal(stored->survey.pid, 100 * host + i + 1);
            }
        }
        free(summary);
    }
}

/* One respect in which an answer is wrong; false: there are no more. */
static bool spoil(uint32_t which, struct quoit_summary_answer *answer, size_t *bytes)
{
    switch (which) {
    case 0:
        answer->round++;
        break;
    case 1:
        answer->round = 0;
        break;
    case 2:
        *bytes -= sizeof answer->pes[0];
        break;
    case 3:
        *bytes = sizeof answer->round;
        break;
    case 4:
        *bytes = 0;
        break;
    case 5:
        answer->host.directions[QUOIT_LEFT].from++;
        break;
    case 6:
        answer->host.directions[QUOIT_RIGHT].to = UINT32_MAX;
        break;
    case 7:
        answer->host.directions[QUOIT_LEFT].side = (enum quoit_side)77;
        break;
    case 8:
        answer->host.directions[QUOIT_RIGHT].link = 1000;
        break;
    default:
        return false;
    }
    return true;
}

static void test_others_change_nothing(void **state)
{
    (void)state;
    for (uint32_t host = 0; host < HOSTS; host++) {
        uint32_t which = 0;
        for (bool is_spoiled = true; is_spoiled; which++) {
            size_t bytes, answer_bytes;
            struct quoit_summary *summary = make(QUOIT_PROTOCOL_QUEUE, &bytes), *before = malloc(bytes);
            struct quoit_summary_answer *answer = answer_of(summary, host, &answer_bytes);
            assert_non_null(before);
            memcpy(before, summary, bytes);
            is_spoiled = spoil(which, answer, &answer_bytes);
            assert_int_equal(quoit_summary_take(summary, host, ROUND, answer, answer_bytes), !is_spoiled);
            assert_int_equal(memcmp(before, summary, bytes) == 0, is_spoiled);
            free(answer);
            free(before);
            free(summary);
        }
        assert_int_equal(which, 10);
    }
    size_t bytes, answer_bytes;
    struct quoit_summary *summary = make(QUOIT_PROTOCOL_NETWORK, &bytes);
    struct quoit_summary_answer *answer = answer_of(summary, 1, &answer_bytes);
    answer->host.network.host = 2;
    assert_false(quoit_summary_take(summary, 1, ROUND, answer, answer_bytes));
    free(answer);
    free(summary);
}

static void test_any_bytes_can_be_printed(void **state)
{
    (void)state;
    struct quoit_prng random = {1};
    size_t bytes, answer_bytes;
    struct quoit_summary *summary = make(QUOIT_PROTOCOL_NETWORK, &bytes);
    for (uint32_t turn = 0; turn < 2000; turn++) {
        char text[QUOIT_WAIT_DESC_TEXT_BYTES];
        struct quoit_summary_answer *answer = answer_of(summary, 1, &answer_bytes);
        for (size_t at = offsetof(struct quoit_summary_answer, pes); at < answer_bytes; at++)
            ((unsigned char *)answer)[at] = (unsigned char)quoit_prng_next(&random);
        assert_true(quoit_summary_take(summary, 1, ROUND, answer, answer_bytes));
        for (uint32_t pe = pes_of[0]; pe < pes_of[0] + pes_of[1]; pe++) {
            const struct quoit_pe_survey *stored = &quoit_summary_pe(&summary->descriptor.job, summary, pe)->survey;
            assert_true(strnlen(stored->call, sizeof stored->call) < sizeof stored->call);
            for (const char *c = stored->call; *c; c++)
                assert_in_range(*c, ' ', '~');
            quoit_wait_desc_describe(&stored->wait_desc, NULL, text);
            assert_true(strnlen(text, sizeof text) < sizeof text);
        }
        free(answer);
    }
    free(summary);
}

static void test_programs(void **state)
{
    (void)state;
    size_t bytes;
    char path[QUOIT_SUMMARY_PATH_BYTES + 1];
    struct quoit_summary *summary = make(QUOIT_PROTOCOL_NETWORK, &bytes);
    memset(path, 'p', sizeof path);
    path[QUOIT_SUMMARY_PATH_BYTES] = '\0';
    assert_int_equal(quoit_summary_program(summary, NULL), QUOIT_SUMMARY_PROGRAMS_MAX);
    assert_int_equal(quoit_summary_program(summary, path), QUOIT_SUMMARY_PROGRAMS_MAX);
    path[QUOIT_SUMMARY_PATH_BYTES - 1] = '\0';
    for (int turn = 0; turn < 2; turn++)
        for (uint32_t i = 0; i <= QUOIT_SUMMARY_PROGRAMS_MAX; i++) {
            path[0] = (char)('a' + i);
            assert_int_equal(quoit_summary_program(summary, path), i);
            if (i < QUOIT_SUMMARY_PROGRAMS_MAX)
                assert_string_equal(summary->programs[i], path);
        }
    free(summary);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_host_in_its_place),
        cmocka_unit_test(test_others_change_nothing),
        cmocka_unit_test(test_any_bytes_can_be_printed),
        cmocka_unit_test(test_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
