/* SPDX-License-Identifier: BSD-3-Clause */
/* port_suite.h - what the contract suite of ports shares: both ends of a link in this process, the test's model of both
 * hosts' memory, and a run of all tests over all drivers. Included by tests only. */
#ifndef QUOIT_PORT_PORT_SUITE_H
#define QUOIT_PORT_PORT_SUITE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "env/clock.h"
#include "port/port_rig.h"

#define SUITE_TESTS_MAX 64
#define SLOTS_AT        0x10000 /* where the tests translate the windows of a host to */
#define SLOTS_BYTES     0x8000
#define SEGMENTS_AT     0x40000
#define SEGMENTS_BYTES  0x20000

struct setup {
    struct rig rig;
    struct quoit_port *ports[2];
    uint8_t *model[2]; /* what each host's memory must hold */
};

static inline struct quoit_port_limits limits_of(const struct quoit_port *port)
{
    struct quoit_port_limits limits;
    quoit_port_limits(port, &limits);
    return limits;
}

static inline void translate(struct setup *s, uint32_t side)
{
    assert_int_equal(quoit_port_set_translation(s->ports[side], QUOIT_WINDOW_SLOTS, SLOTS_AT, SLOTS_BYTES), QUOIT_OK);
    assert_int_equal(quoit_port_set_translation(s->ports[side], QUOIT_WINDOW_MEMORY, SEGMENTS_AT, SEGMENTS_BYTES),
                     QUOIT_OK);
}

static inline void set_up(void **state)
{
    struct setup *s = calloc(1, sizeof *s);
    rig_make(&s->rig, *state);
    rig_connect(&s->rig, s->ports);
    for (uint32_t side = 0; side < 2; side++) {
        s->model[side] = malloc(RIG_MEMORY_BYTES);
        for (uint64_t i = 0; i < RIG_LAST; i++)
            s->rig.memory[side][i] = (uint8_t)(i * 7 + side);
        memcpy(s->model[side], s->rig.memory[side], RIG_MEMORY_BYTES);
    }
    *state = s;
}

static inline void tear_down(void **state)
{
    struct setup *s = *state;
    rig_disconnect(s->ports);
    rig_destroy(&s->rig);
    free(s->model[0]);
    free(s->model[1]);
    free(s);
}

/* What both ends have posted. */
static inline void arrive(struct setup *s)
{
    rig_arrive(&s->rig, s->ports[0]);
    rig_arrive(&s->rig, s->ports[1]);
}

static inline void assert_memory_is_model(struct setup *s)
{
    arrive(s);
    for (uint32_t side = 0; side < 2; side++)
        assert_memory_equal(s->rig.memory[side], s->model[side], RIG_LAST);
}

/* Until both ends have seen it. */
static inline void set_link(struct setup *s, uint32_t side, bool is_enabled)
{
    if (is_enabled)
        quoit_port_link_enable(s->ports[side]);
    else
        quoit_port_link_disable(s->ports[side]);
    rig_await_link(s->ports[0], is_enabled);
    rig_await_link(s->ports[1], is_enabled);
}

/* One test for one driver, wherever its world is. */
struct row {
    const struct rig_driver *driver;
    void (*test)(void **state);
};

static inline void run_body(void *arg)
{
    const struct row *row = arg;
    void *state = (void *)(uintptr_t)row->driver;
    set_up(&state);
    row->test(&state);
    tear_down(&state);
}

static inline void run_row(void **state)
{
    const struct row *row = *state;
    if (row->driver->world)
        row->driver->world->run(row->driver, run_body, *state);
    else
        run_body(*state);
}

#define SUITE_TEST(test)                                                                                               \
    {                                                                                                                  \
#test, test                                                                                                    \
    }
struct suite_test {
    const char *name;
    void (*test)(void **state);
};

/* The status of the program. */
static inline int suite_run(const struct suite_test *all, size_t count)
{
    int failures = 0;
    must(count <= SUITE_TESTS_MAX);
    for (size_t i = 0; i < RIG_DRIVER_COUNT; i++) {
        struct row rows[SUITE_TESTS_MAX];
        struct CMUnitTest tests[SUITE_TESTS_MAX] = {0}; /* what has no name is left out */
        if (rig_table_of(&rig_drivers[i]) == NULL)
            continue; /* a test driver, in a build without */
        for (size_t j = 0; j < count; j++) {
            rows[j] = (struct row){.driver = &rig_drivers[i], .test = all[j].test};
            tests[j] = (struct CMUnitTest){
                .name = all[j].name, .test_func = run_row, .initial_state = (void *)(uintptr_t)&rows[j]};
        }
        failures += cmocka_run_group_tests_name(rig_drivers[i].name, tests, NULL, NULL);
    }
    return failures;
}

#endif
