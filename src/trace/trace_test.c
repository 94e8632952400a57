/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a ring delivers every event once, in order and whole, or counts it as lost; an unfinished event is not
 * delivered. Method: each rule by hand, then concurrent writers and a reader, where the fields of each event follow
 * from its number. */
#include "trace/trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define EVENTS          64
#define WRITERS         3
#define EVENTS_A_WRITER 200000

static struct quoit_trace_ring *new_ring(void)
{
    struct quoit_trace_ring *ring = calloc(1, quoit_trace_ring_bytes(EVENTS));
    assert_non_null(ring);
    ring->event_count = EVENTS;
    return ring;
}

static void write_one(struct quoit_trace_ring *ring, uint32_t writer, uint64_t number)
{
    struct quoit_trace_event event = {.kind = QUOIT_TRACE_SEND, .pe = writer, .value = number, .flow = ~number};
    event.name[QUOIT_TRACE_NAME_BYTES - 1] = (char)(number & 0x7f);
    quoit_trace_write(ring, &event);
}

static void the_newest_are_lost_and_counted(void **state)
{
    (void)state;
    struct quoit_trace_ring *ring = new_ring();
    struct quoit_trace_event event;
    assert_false(quoit_trace_take(ring, EVENTS, &event));
    for (uint64_t round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < EVENTS + 5; i++)
            write_one(ring, 7, i);
        assert_int_equal(ring->lost_count, 5 * (round + 1));
        for (uint64_t i = 0; i < EVENTS; i++) {
            assert_true(quoit_trace_take(ring, EVENTS, &event));
            assert_int_equal(event.value, i);
            assert_int_equal(event.pe, 7);
            assert_true(event.tid != 0);
        }
        assert_false(quoit_trace_take(ring, EVENTS, &event));
    }
    free(ring);
}

static void an_unfinished_event_is_not_given(void **state)
{
    (void)state;
    struct quoit_trace_ring *ring = new_ring();
    struct quoit_trace_event event;
    write_one(ring, 0, 1);
    atomic_fetch_add(&ring->reserved_count, 1); /* a writer killed at this point */
    write_one(ring, 0, 3);
    assert_true(quoit_trace_take(ring, EVENTS, &event));
    assert_false(quoit_trace_take(ring, EVENTS, &event));
    free(ring);
}

static void names_nest(void **state)
{
    (void)state;
    struct quoit_trace_ring *ring = new_ring();
    struct quoit_trace_event event;
    uint64_t outer = quoit_trace_enter(ring, "outer", 8, 3);
    uint64_t inner = quoit_trace_enter(ring, "a name that is much longer than what an event has room for", 0, 0);
    quoit_trace_leave(ring, inner, 2);
    quoit_trace_leave(ring, outer, 0);
    const struct {
        uint32_t depth;
        enum quoit_trace_kind kind;
        uint64_t begin_ns;
    } expected[] = {{0, QUOIT_TRACE_ENTER, outer},
                    {1, QUOIT_TRACE_ENTER, inner},
                    {1, QUOIT_TRACE_LEAVE, inner},
                    {0, QUOIT_TRACE_LEAVE, outer}};
    for (size_t i = 0; i < 4; i++) {
        assert_true(quoit_trace_take(ring, EVENTS, &event));
        assert_int_equal(event.depth, expected[i].depth);
        assert_int_equal(event.kind, expected[i].kind);
        assert_int_equal(event.begin_ns, expected[i].begin_ns);
        assert_true(event.kind == QUOIT_TRACE_ENTER || event.end_ns >= event.begin_ns);
        assert_true(strlen(event.name) < QUOIT_TRACE_NAME_BYTES);
    }
    assert_true(outer <= inner);
    free(ring);
}

struct writer {
    struct quoit_trace_ring *ring;
    uint32_t index;
    pthread_t thread;
};

static void *write_many(void *arg)
{
    const struct writer *writer = arg;
    for (uint64_t i = 1; i <= EVENTS_A_WRITER; i++)
        write_one(writer->ring, writer->index, i);
    return NULL;
}

static void each_event_comes_once_and_whole(void **state)
{
    (void)state;
    struct quoit_trace_ring *ring = new_ring();
    struct writer writers[WRITERS];
    uint64_t last[WRITERS] = {0}, taken = 0;
    struct quoit_trace_event event;
    for (uint32_t i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.ring = ring, .index = i};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_many, &writers[i]), 0);
    }
    while (taken + atomic_load(&ring->lost_count) < WRITERS * EVENTS_A_WRITER) {
        if (!quoit_trace_take(ring, EVENTS, &event))
            continue;
        taken++;
        assert_in_range(event.pe, 0, WRITERS - 1);
        assert_true(event.value > last[event.pe]); /* in order, none twice */
        assert_int_equal(event.flow, ~event.value);
        assert_int_equal(event.name[QUOIT_TRACE_NAME_BYTES - 1], event.value & 0x7f);
        last[event.pe] = event.value;
    }
    assert_false(quoit_trace_take(ring, EVENTS, &event));
    for (uint32_t i = 0; i < WRITERS; i++)
        pthread_join(writers[i].thread, NULL);
    assert_true(taken >= EVENTS);
    free(ring);
}

static void flows_of_pes_differ(void **state)
{
    (void)state;
    assert_int_equal(quoit_trace_flow(5, 0), 0);
    assert_true(quoit_trace_flow(0, 1) != quoit_trace_flow(1, 1));
    assert_true(quoit_trace_flow(0, UINT32_MAX) != quoit_trace_flow(0, 1));
    assert_true(quoit_trace_flow(0, 1) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_are_lost_and_counted),
        cmocka_unit_test(an_unfinished_event_is_not_given),
        cmocka_unit_test(names_nest),
        cmocka_unit_test(each_event_comes_once_and_whole),
        cmocka_unit_test(flows_of_pes_differ),
    };
    return cmocka_run_group_tests_name("trace.trace", tests, NULL, NULL);
}
