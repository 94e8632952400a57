/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: processors that hosts share cost what the model says: a switch grows with the processes that ran meanwhile, a
 * line is fetched from the processor that has it, a page is cached until as much as the cache holds was fetched, and
 * jitter does not lengthen work on average. Method: a world without proxies, whose tasks take turns, move between
 * processors and touch memory of a host. */
#include "sim/cache.h"
#include "sim/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define PAGE_BYTES 4096u
#define TURNS      200u
#define TASKS_MAX  10u

struct rig {
    struct sim_world *world;
    uint32_t ended_count;
};

static void make_world(struct rig *rig, uint64_t processor_count, const char *const constants[], size_t constant_count)
{
    struct sim_plan plan;
    struct sim_config config;
    const char *problem;
    sim_plan_default(&plan);
    plan.host_count = plan.pe_count = 2;
    plan.workload = sim_workload_find("raw");
    for (size_t i = 0; i < constant_count; i++)
        assert_true(sim_model_set(&plan.model, constants[i], &problem));
    plan.model.shared_core_count = processor_count;
    plan.model.cache_bytes = (uint64_t)4 * PAGE_BYTES;
    sim_config_choose(&plan, 1, &config);
    *rig = (struct rig){.world = sim_world_new(&config, NULL)};
}

static void run_to_end(struct rig *rig, uint32_t task_count)
{
    assert_true(sim_world_quiesce(rig->world));
    assert_int_equal(rig->ended_count, task_count);
    sim_world_free(rig->world);
}

static void take_turns(void *arg)
{
    struct rig *rig = arg;
    sim_spend(rig->world, 1); /* until all wait for the processor */
    for (uint32_t i = 0; i < TURNS; i++)
        sim_yield(rig->world, false);
    rig->ended_count++;
}

/* ns of a turn of so many tasks on one processor. */
static uint64_t turn_ns(uint32_t task_count, bool are_threads)
{
    static const char *const constants[] = {"switch_ns=1000", "thread_switch_ns=100", "switch_of_4_ns=3000",
                                            "switch_of_8_ns=7000"};
    struct rig rig;
    make_world(&rig, 1, constants, sizeof constants / sizeof constants[0]);
    for (uint32_t i = 0; i < task_count; i++) {
        struct sim_task *task = sim_task_start(&rig.world->hosts[i % 2], "turns", take_turns, &rig);
        if (are_threads)
            task->process = 0;
    }
    struct sim_world *world = rig.world;
    assert_true(sim_world_quiesce(world));
    uint64_t ns = world->now_ns / ((uint64_t)task_count * TURNS);
    run_to_end(&rig, task_count);
    return ns;
}

static void test_switches(void **state)
{
    (void)state;
    static const struct {
        uint32_t task_count;
        uint64_t ns;
    } rows[] = {{2, 1000}, {3, 2000}, {4, 3000}, {6, 5000}, {8, 7000}, {10, 7000}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_in_range(turn_ns(rows[i].task_count, false), rows[i].ns * 98 / 100, rows[i].ns * 102 / 100);
    assert_in_range(turn_ns(2, true), 98, 102);
    assert_in_range(turn_ns(TASKS_MAX, true), 98, 102);
}

static void use_lines(void *arg)
{
    struct rig *rig = arg;
    struct sim_world *world = rig->world;
    const char *line = world->memory + PAGE_BYTES, *other = line + 64;
    const char outside = 0;
    sim_task_go(world, 0);
    assert_int_equal(sim_cache_read_line_ns(world, line), 0); /* nobody has it */
    assert_int_equal(sim_cache_write_line_ns(world, line), 0);
    sim_task_go(world, 1);
    assert_int_equal(sim_cache_read_line_ns(world, line + 63), 300);
    assert_int_equal(sim_cache_read_line_ns(world, line), 0);
    assert_int_equal(sim_cache_write_line_ns(world, other), 0);
    sim_task_go(world, 0);
    assert_int_equal(sim_cache_read_line_ns(world, line), 0); /* both have it */
    assert_int_equal(sim_cache_write_line_ns(world, line), 500);
    assert_int_equal(sim_cache_write_line_ns(world, line), 0);
    sim_task_go(world, 1);
    assert_int_equal(sim_cache_write_line_ns(world, line), 500);
    assert_int_equal(sim_cache_read_line_ns(world, &outside), 0);
    rig->ended_count++;
}

static void test_lines(void **state)
{
    (void)state;
    static const char *const constants[] = {"line_read_ns=300", "line_write_ns=500"};
    struct rig rig;
    make_world(&rig, 2, constants, sizeof constants / sizeof constants[0]);
    sim_task_start(&rig.world->hosts[0], "lines", use_lines, &rig);
    run_to_end(&rig, 1);
}

static uint64_t copy_page_ns(struct sim_world *world, uint32_t to, uint32_t from)
{
    const char *memory = world->memory;
    return sim_cache_copy_ns(world, memory + (uint64_t)to * PAGE_BYTES, memory + (uint64_t)from * PAGE_BYTES,
                             PAGE_BYTES, 0);
}

/* In ns a byte: 1 read and 2 written far, 2 both; 4 read and 8 written of another processor. */
static void use_pages(void *arg)
{
    struct rig *rig = arg;
    struct sim_world *world = rig->world;
    sim_task_go(world, 0);
    assert_int_equal(copy_page_ns(world, 2, 1), 2 * PAGE_BYTES);
    for (uint32_t i = 0; i < 100; i++) /* what is cached displaces nothing */
        assert_int_equal(copy_page_ns(world, 2, 2), 0);
    assert_int_equal(copy_page_ns(world, 2, 1), 0);
    sim_task_go(world, 1);
    assert_int_equal(copy_page_ns(world, 2, 1), 12 * PAGE_BYTES);
    assert_int_equal(copy_page_ns(world, 2, 1), 0);
    for (uint32_t page = 3; page < 8; page++)
        assert_int_equal(copy_page_ns(world, page, page), 1 * PAGE_BYTES); /* its own target then */
    assert_int_equal(copy_page_ns(world, 7, 1), 1 * PAGE_BYTES);
    assert_int_equal(copy_page_ns(world, 9, 7), 2 * PAGE_BYTES); /* written far */
    rig->ended_count++;
}

static void test_caches(void **state)
{
    (void)state;
    static const char *const constants[] = {"far_read_ps_per_byte=1000", "far_write_ps_per_byte=2000",
                                            "far_both_ps_per_byte=2000", "handed_read_ps_per_byte=4000",
                                            "handed_write_ps_per_byte=8000"};
    struct rig rig;
    make_world(&rig, 2, constants, sizeof constants / sizeof constants[0]);
    sim_task_start(&rig.world->hosts[0], "pages", use_pages, &rig);
    run_to_end(&rig, 1);
}

static void work(void *arg)
{
    struct rig *rig = arg;
    struct sim_world *world = rig->world;
    uint64_t least_ns = UINT64_MAX, most_ns = 0, begin_ns = world->now_ns;
    for (uint32_t i = 0; i < 10000; i++) {
        uint64_t start_ns = world->now_ns;
        sim_spend(world, 1000);
        uint64_t ns = world->now_ns - start_ns;
        least_ns = ns < least_ns ? ns : least_ns;
        most_ns = ns > most_ns ? ns : most_ns;
    }
    assert_in_range(least_ns, 900, 905);
    assert_in_range(most_ns, 1095, 1100);
    assert_in_range(world->now_ns - begin_ns, 9950000, 10050000);
    rig->ended_count++;
}

static void test_jitter(void **state)
{
    (void)state;
    static const char *const constants[] = {"jitter_percent=10"};
    const char *problem;
    struct sim_model model;
    struct rig rig;
    make_world(&rig, 1, constants, 1);
    sim_task_start(&rig.world->hosts[0], "work", work, &rig);
    run_to_end(&rig, 1);
    assert_false(sim_model_set(&model, "jitter_percent=101", &problem));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_switches),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_caches),
        cmocka_unit_test(test_jitter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
