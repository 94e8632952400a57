/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: the simulated port takes the time of the model, and loses writes in flight when its cable is cut. The contract
 * common to all ports is tested by src/port/port_test.c (sim.port_contract). Two clients of a link have its wire and
 * its cuts in common, and the end of one is not the other's. Method: a world of two hosts without proxies, or two of
 * them; tasks drive both ends of one link and inspect the other host's memory as time passes. */
#include "sim/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define WINDOW_AT    (1u << 20) /* in host memory */
#define WINDOW_BYTES 65536u
#define PARK_AT      4096u

struct rig {
    struct sim_world *world;
    struct quoit_port *left;  /* host 0's end to the right */
    struct quoit_port *right; /* host 1's end of the same link */
    char *there;              /* the window in host 1's memory */
    bool has_ended;
};

static void connect_ends(struct rig *rig)
{
    struct sim_host *hosts = rig->world->hosts;
    assert_int_equal(quoit_port_open(&hosts[0].proxy_config.ports[QUOIT_RIGHT], &rig->left), QUOIT_OK);
    assert_int_equal(quoit_port_open(&hosts[1].proxy_config.ports[QUOIT_LEFT], &rig->right), QUOIT_OK);
    assert_false(quoit_port_link_is_up(rig->left));
    quoit_port_link_enable(rig->left);
    assert_false(quoit_port_link_is_up(rig->left));
    quoit_port_link_enable(rig->right);
    assert_true(quoit_port_link_is_up(rig->left));
    assert_int_equal(quoit_port_set_translation(rig->right, QUOIT_WINDOW_SLOTS, WINDOW_AT, WINDOW_BYTES), QUOIT_OK);
    rig->there = hosts[1].memory + WINDOW_AT;
}

static void run_rig(void (*test)(void *arg), bool has_direct_puts)
{
    struct sim_plan plan;
    struct sim_config config;
    struct rig rig = {0};
    sim_plan_default(&plan);
    plan.host_count = plan.pe_count = 2;
    plan.workload = sim_workload_find("raw");
    plan.has_direct_puts = has_direct_puts;
    sim_config_choose(&plan, 1, &config);
    rig.world = sim_world_new(&config, NULL);
    sim_task_start(&rig.world->hosts[1], "test", test, &rig); /* the park of its sleep */
    assert_true(sim_world_quiesce(rig.world));
    assert_true(rig.has_ended);
    quoit_port_close(rig.left);
    quoit_port_close(rig.right);
    sim_world_free(rig.world);
}

static void wait_ns(struct rig *rig, uint64_t duration_ns)
{
    sim_block(rig->world, rig->world->now_ns + duration_ns);
}

/* Posted: not arrived at once, arrived after a read, in order at every instant between. */
static void writes(void *arg)
{
    struct rig *rig = arg;
    unsigned char data[20000];
    uint64_t word;
    connect_ends(rig);
    for (uint32_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(1 + i % 251);
    uint64_t start_ns = rig->world->now_ns;
    assert_int_equal(quoit_port_write(rig->left, QUOIT_WINDOW_SLOTS, 100, data, sizeof data), QUOIT_OK);
    assert_int_equal(quoit_port_write64(rig->left, QUOIT_WINDOW_SLOTS, 40000, 77), QUOIT_OK);
    uint64_t copy_ns = sim_model_time(rig->world->model.write_ps_per_byte, sizeof data);
    assert_in_range(rig->world->now_ns - start_ns, copy_ns, copy_ns + 1000);
    assert_int_equal(rig->there[100 + sizeof data - 1], 0);
    memcpy(&word, rig->there + 40000, 8);
    assert_int_equal(word, 0);
    while (word == 0) {
        wait_ns(rig, 1);
        memcpy(&word, rig->there + 40000, 8);
    }
    assert_memory_equal(rig->there + 100, data, sizeof data);
    assert_int_equal(quoit_port_write(rig->left, QUOIT_WINDOW_SLOTS, 50000, data, 4000), QUOIT_OK);
    assert_int_equal(quoit_port_read(rig->left, QUOIT_WINDOW_SLOTS, 53992, &word, 8), QUOIT_OK);
    assert_memory_equal(&word, data + 3992, 8);
    assert_memory_equal(rig->there + 50000, data, 4000);
    rig->has_ended = true;
}

static void doorbells(void *arg)
{
    struct rig *rig = arg;
    struct quoit_park *park = (struct quoit_park *)(rig->world->hosts[1].memory + PARK_AT);
    struct quoit_port_vector vector = {.park_offset = PARK_AT, .park_stride = 64, .park_count = 1};
    connect_ends(rig);
    assert_int_equal(quoit_port_set_vector(rig->right, 3, &vector), QUOIT_OK);
    quoit_port_ring(rig->left, 1u << 3);
    wait_ns(rig, 20000);
    assert_int_equal(quoit_port_doorbell_read(rig->right), 1u << 3);
    uint32_t key = quoit_park_prepare(park);
    quoit_port_doorbell_unmask(rig->right, 1u << 3); /* it is set already */
    quoit_park_sleep(park, key, 0);
    key = quoit_park_prepare(park);
    quoit_port_ring(rig->left, 1u << 3); /* sticky: set before, so no park is woken */
    wait_ns(rig, 20000);
    assert_int_equal(atomic_load(&park->epoch), key);
    quoit_port_doorbell_clear(rig->right, 1u << 3);
    assert_int_equal(quoit_port_doorbell_read(rig->right), 0);
    uint64_t start_ns = rig->world->now_ns;
    for (int i = 0; i < 10; i++)
        quoit_port_ring(rig->left, 1u << 3);
    quoit_park_sleep(park, key, 0);
    const struct sim_model *model = &rig->world->model;
    uint64_t least_ns = model->link_latency_ns + model->interrupt_ns + model->thread_wake_ns;
    assert_in_range(rig->world->now_ns - start_ns, least_ns, least_ns + 3000);
    assert_int_equal(atomic_load(&park->epoch), key + 1);
    rig->has_ended = true;
}

/* A cable cut in the middle of a write: whole words of its start have arrived, nothing after them. */
static void cuts(void *arg)
{
    struct rig *rig = arg;
    struct sim_end *end = rig->world->hosts[0].ends[QUOIT_RIGHT];
    const char *back = rig->world->hosts[0].memory + WINDOW_AT;
    uint64_t data[500], word;
    struct quoit_dma_done done;
    connect_ends(rig);
    assert_int_equal(quoit_port_set_translation(rig->left, QUOIT_WINDOW_SLOTS, WINDOW_AT, WINDOW_BYTES), QUOIT_OK);
    memset(data, 7, sizeof data);
    assert_int_equal(quoit_port_bind(rig->left, quoit_port_link_epoch(rig->left)), QUOIT_OK);
    assert_int_equal(quoit_port_dma_submit(rig->right, 0, QUOIT_WINDOW_SLOTS, 0, data, sizeof data, 5), QUOIT_OK);
    assert_int_equal(quoit_port_write(rig->left, QUOIT_WINDOW_SLOTS, 0, data, sizeof data), QUOIT_OK);
    assert_int_equal(quoit_port_write64(rig->left, QUOIT_WINDOW_SLOTS, 8192, 99), QUOIT_OK);
    assert_int_equal(quoit_port_write64(rig->right, QUOIT_WINDOW_SLOTS, 64, 99), QUOIT_OK);
    assert_int_equal(quoit_port_write64(rig->right, QUOIT_WINDOW_SLOTS, 128, 99), QUOIT_OK);
    sim_link_cut(end, true);
    assert_false(quoit_port_link_is_up(rig->right));
    uint32_t count = 0;
    for (; count < 500; count++)
        if (memcpy(&word, rig->there + 8 * count, 8) && word != data[0])
            break;
    for (uint32_t i = count; i <= 1024; i++)
        assert_true(memcpy(&word, rig->there + 8 * i, 8) && word == 0);
    assert_in_range(count, 1, 499); /* with this seed */
    sim_link_cut(end, false);
    assert_true(quoit_port_link_is_up(rig->right));
    assert_int_equal(quoit_port_set_translation(rig->right, QUOIT_WINDOW_SLOTS, WINDOW_AT, WINDOW_BYTES), QUOIT_OK);
    assert_int_equal(quoit_port_set_translation(rig->left, QUOIT_WINDOW_SLOTS, WINDOW_AT, WINDOW_BYTES), QUOIT_OK);
    assert_int_equal(quoit_port_write64(rig->left, QUOIT_WINDOW_SLOTS, 8192, 99), QUOIT_LINK_DOWN); /* it is bound */
    assert_false(quoit_port_ring(rig->left, 1));
    wait_ns(rig, 20000);
    assert_int_equal(quoit_port_dma_poll(rig->right, 0, &done, 1), 1); /* issued before the cut */
    assert_int_equal(done.status, QUOIT_LINK_DOWN);
    assert_true(memcpy(&word, rig->there + 8192, 8) &&
                word == 0); /* nothing in flight survives the link, at either end */
    assert_true(memcpy(&word, back + 128, 8) && word == 0);
    assert_int_equal(quoit_port_bind(rig->left, quoit_port_link_epoch(rig->left)), QUOIT_OK);
    assert_int_equal(quoit_port_write64(rig->left, QUOIT_WINDOW_SLOTS, 8192, 98), QUOIT_OK);
    wait_ns(rig, 5000);
    assert_true(memcpy(&word, rig->there + 8192, 8) && word == 98);
    rig->has_ended = true;
}

struct cutter {
    struct rig *rig;
    uint64_t after_ns;
};

static void cut_later(void *arg)
{
    struct cutter *cutter = arg;
    wait_ns(cutter->rig, cutter->after_ns);
    sim_link_cut(cutter->rig->world->hosts[0].ends[QUOIT_RIGHT], true);
}

/* Writes that return when they have arrived: after OK the data is there; after LINK_DOWN a word is not. */
static void direct_writes(void *arg)
{
    struct rig *rig = arg;
    struct quoit_port_limits limits;
    char data[9000];
    uint64_t word;
    connect_ends(rig);
    memset(data, 3, sizeof data);
    quoit_port_limits(rig->left, &limits);
    assert_true(limits.capabilities & QUOIT_PORT_ARRIVES_ON_RETURN);
    assert_int_equal(quoit_port_write(rig->left, QUOIT_WINDOW_SLOTS, 16, data, sizeof data), QUOIT_OK);
    assert_memory_equal(rig->there + 16, data, sizeof data);
    assert_int_equal(quoit_port_write64(rig->left, QUOIT_WINDOW_SLOTS, 0, 5), QUOIT_OK);
    assert_true(memcpy(&word, rig->there, 8) && word == 5);
    struct cutter cutter = {.rig = rig, .after_ns = rig->world->model.link_latency_ns / 2};
    sim_task_start(&rig->world->hosts[0], "cutter", cut_later, &cutter);
    assert_int_equal(quoit_port_write64(rig->left, QUOIT_WINDOW_SLOTS, 0, 6), QUOIT_LINK_DOWN);
    assert_true(memcpy(&word, rig->there, 8) && word == 5);
    rig->has_ended = true;
}

/* Work that takes longer or shorter by chance, but a write that returns when it has arrived never returns before. */
static void jittered_writes(void *arg)
{
    struct rig *rig = arg;
    uint64_t word;
    connect_ends(rig);
    rig->world->model.jitter_percent = 50;
    for (uint64_t i = 1; i <= 100; i++) {
        assert_int_equal(quoit_port_write64(rig->left, QUOIT_WINDOW_SLOTS, 0, i), QUOIT_OK);
        memcpy(&word, rig->there, 8);
        assert_int_equal(word, i);
    }
    rig->has_ended = true;
}

#define TEST(name)                                                                                                     \
    static void test_##name(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        run_rig(name, name == direct_writes || name == jittered_writes);                                               \
    }
TEST(writes)
TEST(doorbells)
TEST(cuts)
TEST(direct_writes)
TEST(jittered_writes)
#undef TEST

#define SHARED_BYTES 20000
#define SHARED_AT_NS 50000 /* both have connected */

static uint64_t write_and_read(struct rig *rig)
{
    static const char data[SHARED_BYTES];
    uint64_t word;
    wait_ns(rig, SHARED_AT_NS - rig->world->now_ns);
    assert_int_equal(quoit_port_write(rig->left, QUOIT_WINDOW_SLOTS, 0, data, sizeof data), QUOIT_OK);
    assert_int_equal(quoit_port_read(rig->left, QUOIT_WINDOW_SLOTS, 0, &word, sizeof word), QUOIT_OK);
    return rig->world->now_ns - SHARED_AT_NS;
}

/* Its writes are half of what the wire carries; it sees the cut, and is the one that ends. */
static void use_as_second(void *arg)
{
    struct rig *rig = arg;
    connect_ends(rig);
    write_and_read(rig);
    wait_ns(rig, 2 * SHARED_AT_NS);
    assert_false(quoit_port_link_is_up(rig->left));
    wait_ns(rig, 3 * SHARED_AT_NS);
    assert_true(quoit_port_link_is_up(rig->left));
    assert_int_equal(quoit_port_link_epoch(rig->left), 2);
    rig->has_ended = true;
    wait_ns(rig, 20 * SHARED_AT_NS);
    fail(); /* it is dead */
}

static void use_as_first(void *arg)
{
    struct rig *rig = arg;
    struct sim_world *second = rig->world->next;
    connect_ends(rig);
    uint64_t used_ns = write_and_read(rig), wire_ns = sim_model_time(rig->world->model.link_ps_per_byte, SHARED_BYTES);
    if (second)
        assert_true(used_ns >= 2 * wire_ns);
    else
        assert_true(used_ns < 2 * wire_ns);
    wait_ns(rig, SHARED_AT_NS);
    sim_link_cut(sim_link(rig->world, 0), true);
    assert_false(quoit_port_link_is_up(rig->right));
    wait_ns(rig, 2 * SHARED_AT_NS);
    sim_link_cut(sim_link(rig->world, 0), false);
    wait_ns(rig, 4 * SHARED_AT_NS);
    if (second)
        sim_world_end_client(second);
    assert_true(quoit_port_link_is_up(rig->left));
    assert_int_equal(quoit_port_link_epoch(rig->left), 2);
    assert_int_equal(quoit_port_set_translation(rig->right, QUOIT_WINDOW_SLOTS, WINDOW_AT, WINDOW_BYTES), QUOIT_OK);
    assert_int_equal(quoit_port_write64(rig->left, QUOIT_WINDOW_SLOTS, 0, 5), QUOIT_OK);
    wait_ns(rig, SHARED_AT_NS);
    assert_int_equal(rig->there[0], 5);
    rig->has_ended = true;
}

static void run_clients(bool has_second)
{
    struct sim_plan plan;
    struct sim_config config;
    struct rig first = {0}, second = {0};
    sim_plan_default(&plan);
    plan.host_count = plan.pe_count = 2;
    plan.workload = sim_workload_find("raw");
    plan.model.link_ps_per_byte *= 10; /* so that the wire decides */
    sim_config_choose(&plan, 1, &config);
    first.world = sim_world_new(&config, has_second ? &config : NULL);
    second.world = first.world->next;
    sim_task_start(&first.world->hosts[1], "first", use_as_first, &first);
    if (has_second)
        sim_task_start(&second.world->hosts[1], "second", use_as_second, &second);
    assert_true(sim_world_quiesce(first.world));
    assert_true(first.has_ended);
    assert_int_equal(second.has_ended, has_second);
    for (struct rig *rig = &first; rig; rig = rig == &first && has_second ? &second : NULL) {
        quoit_port_close(rig->left);
        quoit_port_close(rig->right);
    }
    sim_world_free(first.world);
}

static void test_two_clients(void **state)
{
    (void)state;
    run_clients(false);
    run_clients(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writes),
        cmocka_unit_test(test_doorbells),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_direct_writes),
        cmocka_unit_test(test_jittered_writes),
        cmocka_unit_test(test_two_clients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
