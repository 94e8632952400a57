/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a seed determines a run: the same trace each time, a different one for another seed; and the checks find
 * mistakes.
 * Method: seeds are run twice and their traces compared as hashes and, for some, as text; canaries make one mistake in
 * each of many runs: each run in which the mistake was made must fail, and fail again in the same way. */
#include "sim/run.h"
#include "sim/canary.h"
#include "sim/fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Under sanitizers, where a run takes five times as long: each kind of run, with fewer seeds. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS(count) ((count) / 4)
#else
#define SEEDS(count) (count)
#endif

static void run(const struct sim_plan *plan, uint64_t seed, struct sim_result *result)
{
    struct sim_config config, second;
    sim_config_choose(plan, seed, &config);
    bool has_second = sim_config_choose_second(plan, &config, &second);
    sim_run(&config, has_second ? &second : NULL, result);
}

static void test_same_seed_same_trace(void **state)
{
    (void)state;
    struct sim_plan plan;
    uint64_t hashes[SEEDS(30)];
    sim_plan_default(&plan);
    for (uint64_t seed = 0; seed < SEEDS(30); seed++) {
        struct sim_result first, second;
        run(&plan, seed, &first);
        run(&plan, seed, &second);
        assert_true(first.is_ok);
        assert_int_equal(first.trace_hash, second.trace_hash);
        assert_int_equal(first.event_count, second.event_count);
        hashes[seed] = first.trace_hash;
        for (uint64_t other = 0; other < seed; other++)
            assert_int_not_equal(hashes[seed], hashes[other]);
    }
}

/* Two jobs on the same links, each fault by itself for both; one that ends leaves the other alone. */
static void test_two_clients(void **state)
{
    (void)state;
    struct sim_plan plan;
    sim_plan_default(&plan);
    plan.client_count = 2;
    plan.fault_count = 1;
    plan.step_count = 2;
    for (uint32_t i = 0; i < sim_fault_count; i++) {
        uint32_t cut_off_count = 0, lost_count = 0;
        plan.faults[0] = &sim_faults[i];
        bool is_outage = sim_faults[i].kind != SIM_FAULT_DELAY,
             ends_client = sim_faults[i].strike_max == 1 && !is_outage;
        for (uint64_t seed = 0; seed < (is_outage ? 3 : ends_client ? 5 : 1); seed++) {
            struct sim_result result, again;
            run(&plan, seed, &result);
            if (!result.is_ok)
                fail_msg("fault %s, seed %llu: %s", sim_faults[i].name, (unsigned long long)seed, result.failure);
            cut_off_count += result.is_cut_off;
            lost_count += result.has_lost_client;
            if (seed != 0)
                continue;
            run(&plan, seed, &again);
            assert_int_equal(result.trace_hash, again.trace_hash);
        }
        assert_int_equal(cut_off_count > 0, sim_faults[i].kind == SIM_FAULT_FINAL);
        assert_int_equal(lost_count > 0, ends_client);
    }
}

static char *trace_of(struct sim_plan *plan, uint64_t seed)
{
    char *text;
    size_t bytes;
    struct sim_result result;
    plan->trace = open_memstream(&text, &bytes);
    assert_non_null(plan->trace);
    run(plan, seed, &result);
    fclose(plan->trace);
    return text;
}

static void test_traces_are_equal_byte_for_byte(void **state)
{
    (void)state;
    struct sim_plan plan;
    sim_plan_default(&plan);
    plan.step_count = 2;
    plan.host_count = 4;
    for (uint64_t seed = 100; seed < 104; seed++) {
        char *first = trace_of(&plan, seed), *second = trace_of(&plan, seed);
        assert_true(strlen(first) > 10000);
        assert_string_equal(first, second);
        free(first);
        free(second);
    }
}

/* Some of the runs that a fault may end must have ended by it, others not. */
static void test_every_fault_alone(void **state)
{
    (void)state;
    struct sim_plan plan;
    sim_plan_default(&plan);
    plan.fault_count = 1;
    plan.step_count = 3;
    for (uint32_t i = 0; i < sim_fault_count; i++) {
        uint32_t cut_off_count = 0;
        bool may_end = sim_faults[i].kind == SIM_FAULT_FINAL;
        plan.faults[0] = &sim_faults[i];
        for (uint64_t seed = 0; seed < (may_end ? 8 : SEEDS(8)); seed++) {
            struct sim_result result;
            run(&plan, seed, &result);
            if (!result.is_ok)
                fail_msg("fault %s, seed %llu: %s", sim_faults[i].name, (unsigned long long)seed, result.failure);
            cut_off_count += result.is_cut_off;
        }
        assert_int_equal(cut_off_count > 0, may_end);
    }
}

static void test_canaries_are_found(void **state)
{
    (void)state;
    struct sim_plan plan;
    sim_plan_default(&plan);
    plan.workload = sim_workload_find("mix");
    for (uint32_t i = 0; i < sim_canary_count; i++) {
        uint32_t sung_count = 0, found_count = 0;
        plan.canary = &sim_canaries[i];
        if (plan.canary->sleep)
            continue; /* detected in fewer runs: see the next test */
        for (uint64_t seed = 0; seed < 14; seed++) {
            struct sim_result result, again;
            run(&plan, seed, &result);
            sung_count += result.has_canary_sung;
            found_count += !result.is_ok;
            if (result.has_canary_sung && result.is_ok && !plan.canary->may_do_no_harm)
                fail_msg("canary %s, seed %llu: nothing was noticed", plan.canary->name, (unsigned long long)seed);
            if (!result.has_canary_sung && !result.is_ok)
                fail_msg("canary %s, seed %llu: %s", plan.canary->name, (unsigned long long)seed, result.failure);
            if (seed >= 3)
                continue;
            run(&plan, seed, &again);
            assert_string_equal(result.failure, again.failure);
            assert_int_equal(result.trace_hash, again.trace_hash);
        }
        assert_in_range(sung_count, 6, 14);
        assert_in_range(found_count, 6, 14);
    }
}

/* The next ring wakes a lane that slept through one, so only a run that waits for that very frame stalls. The same runs
 * without the mistake pass. */
static void test_a_sleep_without_a_second_look_is_found(void **state)
{
    (void)state;
    uint32_t found_count = 0;
    struct sim_plan plan;
    sim_plan_default(&plan);
    plan.workload = sim_workload_find("mix");
    for (uint64_t seed = 0; seed < 14; seed++) {
        struct sim_result broken, right;
        plan.canary = sim_canary_find("blind-sleep");
        run(&plan, seed, &broken);
        plan.model.register_write_ns = plan.canary->register_write_ns;
        plan.canary = NULL;
        run(&plan, seed, &right);
        if (!right.is_ok)
            fail_msg("seed %llu: %s", (unsigned long long)seed, right.failure);
        found_count += !broken.is_ok;
    }
    assert_in_range(found_count, 1, 14);
}

/* Where a mistake has an opportunity in the papers' protocol: responses of the receiver, execution, the scratchpads. */
static void test_canaries_are_found_in_the_papers_protocol(void **state)
{
    (void)state;
    static const char *const names[] = {"credit", "duplicate", "loss"};
    struct sim_plan plan;
    sim_plan_default(&plan);
    plan.workload = sim_workload_find("mix");
    plan.protocol = QUOIT_PROTOCOL_SCRATCHPAD;
    plan.host_count = 4;
    plan.pe_count = 4;
    plan.step_count = 2;
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        plan.canary = sim_canary_find(names[i]);
        for (uint64_t seed = 0; seed < 8; seed++) {
            struct sim_result result;
            run(&plan, seed, &result);
            assert_true(result.has_canary_sung);
            if (result.is_ok)
                fail_msg("canary %s, seed %llu: nothing was noticed", names[i], (unsigned long long)seed);
        }
    }
}

static void test_measuring(void **state)
{
    (void)state;
    struct sim_plan plan;
    struct sim_result result;
    sim_plan_default(&plan);
    for (uint32_t i = 0; i < sim_workload_count; i++) {
        if (!sim_workloads[i]->measures)
            continue;
        plan.workload = sim_workloads[i];
        run(&plan, 1, &result);
        assert_true(result.is_ok);
        assert_true(result.metric_count > 0);
    }
}

/* The steps of a put add up to less than the whole, which includes the return of the acknowledgement. */
static void test_measuring_the_papers_protocol(void **state)
{
    (void)state;
    struct sim_plan plan;
    struct sim_result result;
    double mean[QUOIT_PUT_STEP_COUNT] = {0}, sum = 0;
    sim_plan_default(&plan);
    plan.workload = &sim_workload_bandwidth;
    plan.protocol = QUOIT_PROTOCOL_SCRATCHPAD;
    run(&plan, 1, &result);
    assert_true(result.is_ok);
    for (uint32_t i = 0; i < result.metric_count; i++)
        for (enum quoit_put_step step = 0; step < QUOIT_PUT_STEP_COUNT; step++)
            if (strcmp(result.metrics[i].name, quoit_put_step_name(step)) == 0)
                mean[step] = result.metrics[i].sum / (double)result.metrics[i].count;
    for (enum quoit_put_step step = 0; step < QUOIT_PUT_TURNAROUND; step++)
        sum += mean[step];
    assert_true(mean[QUOIT_PUT_PAYLOAD] > 0 && mean[QUOIT_PUT_SCRATCHPADS] > 0 && mean[QUOIT_PUT_DOORBELL] > 0);
    assert_true(sum < mean[QUOIT_PUT_TURNAROUND]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_seed_same_trace),
        cmocka_unit_test(test_traces_are_equal_byte_for_byte),
        cmocka_unit_test(test_every_fault_alone),
        cmocka_unit_test(test_two_clients),
        cmocka_unit_test(test_canaries_are_found),
        cmocka_unit_test(test_a_sleep_without_a_second_look_is_found),
        cmocka_unit_test(test_canaries_are_found_in_the_papers_protocol),
        cmocka_unit_test(test_measuring),
        cmocka_unit_test(test_measuring_the_papers_protocol),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
