/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: events come in order of time, tie and number, whatever was added and removed. Method: random additions and
 * removals, compared with a plain array that is searched for the minimum. */
#include "sim/event.h"
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define EVENT_COUNT 300
#define STEP_COUNT  20000

static struct sim_event *least(struct sim_event *events)
{
    struct sim_event *found = NULL;
    for (int i = 0; i < EVENT_COUNT; i++) {
        struct sim_event *event = &events[i];
        if (!sim_event_is_scheduled(event))
            continue;
        if (!found || event->at_ns < found->at_ns ||
            (event->at_ns == found->at_ns &&
             (event->tie < found->tie || (event->tie == found->tie && event->number < found->number))))
            found = event;
    }
    return found;
}

static void test_order(void **state)
{
    (void)state;
    struct quoit_prng prng = {.state = 4};
    static struct sim_event events[EVENT_COUNT];
    struct sim_queue queue = {0};
    for (int i = 0; i < STEP_COUNT; i++) {
        struct sim_event *event = &events[quoit_prng_choose(&prng, EVENT_COUNT)];
        if (!sim_event_is_scheduled(event))
            sim_queue_add(&queue, event, quoit_prng_choose(&prng, 50), quoit_prng_choose(&prng, 3));
        else if (quoit_prng_choose(&prng, 2))
            sim_queue_remove(&queue, event);
        if (quoit_prng_choose(&prng, 4) == 0) {
            struct sim_event *expected = least(events);
            assert_ptr_equal(sim_queue_next(&queue), expected);
        }
    }
    for (struct sim_event *expected = least(events); expected; expected = least(events))
        assert_ptr_equal(sim_queue_next(&queue), expected);
    assert_null(sim_queue_next(&queue));
    sim_queue_free(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
