/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: the promises of port.h about DMA, for every driver of rig_drivers; where a port has no channel, that it takes
 * nothing. Method: as in port_test.c. */
#include "port/port_suite.h"

#define SOURCE_AT 0xc0000 /* what engines read, behind the model */

/* Of host 0: any engine can read it. */
static uint8_t *dma_source(struct setup *s)
{
    return s->rig.memory[0] + SOURCE_AT;
}

static void poll_one(struct quoit_port *port, uint32_t channel, struct quoit_dma_done *done_out)
{
    uint64_t deadline_ns = quoit_clock_now_ns() + 20000000000u;
    while (quoit_port_dma_poll(port, channel, done_out, 1) == 0) {
        assert_true(quoit_clock_now_ns() < deadline_ns);
        quoit_clock_sleep_ns(20000);
    }
}

static void test_dma_is_checked(void **state)
{
    struct setup *s = *state;
    struct quoit_port *port = s->ports[0];
    struct quoit_port_limits limits;
    quoit_port_limits(port, &limits);
    uint64_t word = 0, end = limits.window_bytes[QUOIT_WINDOW_SLOTS];
    assert_int_equal(quoit_port_dma_submit(port, limits.dma_channel_count, QUOIT_WINDOW_SLOTS, 0, &word, 8, 0),
                     QUOIT_INVALID);
    if (limits.dma_channel_count == 0)
        return;
    assert_int_equal(quoit_port_dma_submit(port, 0, QUOIT_WINDOW_SLOTS, end - 4, &word, 8, 0), QUOIT_OUT_OF_RANGE);
    assert_int_equal(quoit_port_dma_submit(port, 0, QUOIT_WINDOW_COUNT, 0, &word, 8, 0), QUOIT_INVALID);
    assert_int_equal(quoit_port_dma_submit(port, 0, QUOIT_WINDOW_SLOTS, 0, dma_source(s), 0, 0), QUOIT_INVALID);
}

/* Memory that is not the host's: it is copied, or refused. */
static void test_dma_of_other_memory(void **state)
{
    struct setup *s = *state;
    struct quoit_dma_done done;
    uint8_t source[100];
    memset(source, 0x77, sizeof source);
    if (limits_of(s->ports[0]).dma_channel_count == 0)
        return;
    translate(s, 1);
    enum quoit_status status = quoit_port_dma_submit(s->ports[0], 0, QUOIT_WINDOW_MEMORY, 3, source, sizeof source, 9);
    if (status == QUOIT_OK) {
        poll_one(s->ports[0], 0, &done);
        assert_int_equal(done.status, QUOIT_OK);
        memset(s->model[1] + SEGMENTS_AT + 3, 0x77, sizeof source);
    } else
        assert_int_equal(status, QUOIT_UNSUPPORTED);
    assert_memory_is_model(s);
}

/* Later descriptors overwrite earlier ones, so the result shows the order, as do the cookies. */
static void test_dma_copies_in_order(void **state)
{
    struct setup *s = *state;
    struct quoit_port_limits limits;
    quoit_port_limits(s->ports[0], &limits);
    translate(s, 1);
    uint8_t *source = dma_source(s);
    for (uint32_t channel = 0; channel < limits.dma_channel_count; channel++) {
        struct quoit_dma_done done;
        for (uint32_t i = 0; i < QUOIT_DMA_DEPTH; i++) {
            uint64_t at = 256 * (i % 8) + channel, bytes = 1024 - i;
            memset(source + i * 1024, (int)(i + channel * 100), 1024);
            assert_int_equal(quoit_port_dma_submit(s->ports[0], channel, QUOIT_WINDOW_MEMORY, at, source + i * 1024,
                                                   bytes, 1000 + i),
                             QUOIT_OK);
            memcpy(s->model[1] + SEGMENTS_AT + at, source + i * 1024, bytes);
        }
        assert_int_equal(quoit_port_dma_submit(s->ports[0], channel, QUOIT_WINDOW_MEMORY, 0, source, 8, 0), QUOIT_FULL);
        for (uint32_t i = 0; i < QUOIT_DMA_DEPTH; i++) {
            poll_one(s->ports[0], channel, &done);
            assert_int_equal(done.cookie, 1000 + i);
            assert_int_equal(done.status, QUOIT_OK);
        }
        assert_int_equal(quoit_port_dma_poll(s->ports[0], channel, &done, 1), 0);
        assert_memory_is_model(s);
    }
}

/* Both ends have channels of their own: here the other one alone. */
static void test_dma_of_the_other_end(void **state)
{
    struct setup *s = *state;
    struct quoit_dma_done done;
    uint8_t *source = s->rig.memory[1] + SOURCE_AT;
    if (limits_of(s->ports[1]).dma_channel_count == 0)
        return;
    translate(s, 0);
    for (uint32_t i = 0; i < 1000; i++)
        source[i] = (uint8_t)(i * 13 + 5);
    assert_int_equal(quoit_port_dma_submit(s->ports[1], 0, QUOIT_WINDOW_MEMORY, 77, source, 1000, 1), QUOIT_OK);
    poll_one(s->ports[1], 0, &done);
    assert_int_equal(done.status, QUOIT_OK);
    memcpy(s->model[0] + SEGMENTS_AT + 77, source, 1000);
    assert_memory_is_model(s);
}

/* A completion that is OK is of bytes that are there, or are behind a word that is written now. */
static void test_dma_completes_behind_its_bytes(void **state)
{
    struct setup *s = *state;
    struct quoit_dma_done done;
    if (limits_of(s->ports[0]).dma_channel_count == 0)
        return;
    translate(s, 1);
    uint8_t *source = dma_source(s), *target = s->rig.memory[1] + SEGMENTS_AT;
    volatile uint64_t *word = (volatile uint64_t *)(void *)(s->rig.memory[1] + SLOTS_AT);
    for (uint64_t round = 1; round <= rig_rounds(&s->rig, 200); round++) {
        uint64_t bytes = 1 + round * 977 % 60000;
        memset(source, (int)round, bytes);
        assert_int_equal(quoit_port_dma_submit(s->ports[0], 0, QUOIT_WINDOW_MEMORY, round, source, bytes, round),
                         QUOIT_OK);
        poll_one(s->ports[0], 0, &done);
        assert_int_equal(done.cookie, round);
        assert_int_equal(done.status, QUOIT_OK);
        assert_int_equal(quoit_port_write64(s->ports[0], QUOIT_WINDOW_SLOTS, 0, round), QUOIT_OK);
        for (uint64_t deadline_ns = quoit_clock_now_ns() + RIG_PATIENCE_NS; *word != round; quoit_clock_sleep_ns(1000))
            assert_true(quoit_clock_now_ns() < deadline_ns);
        assert_memory_equal(target + round, source, bytes);
        memset(s->model[1] + SEGMENTS_AT + round, (int)round, bytes);
    }
    memcpy(s->model[1] + SLOTS_AT, (void *)(uintptr_t)word, 8);
    assert_memory_is_model(s);
}

/* Copies are under way when the link goes: each ends once, in order, the lost ones behind the others, and after the
 * completion of the last one nothing of them arrives. */
static void test_dma_ends_with_the_link(void **state)
{
    struct setup *s = *state;
    struct quoit_dma_done done;
    uint32_t lost_count = 0;
    if (limits_of(s->ports[0]).dma_channel_count == 0)
        return;
    for (uint32_t round = 0; round < 3; round++) {
        translate(s, 1);
        for (uint32_t i = 0; i < QUOIT_DMA_DEPTH; i++) {
            memset(dma_source(s) + i * 1024, (int)(round * 80 + i), 1024);
            assert_int_equal(
                quoit_port_dma_submit(s->ports[0], 0, QUOIT_WINDOW_MEMORY, i * 1024, dma_source(s) + i * 1024, 1024, i),
                QUOIT_OK);
        }
        set_link(s, round % 2, false);
        const uint8_t *found = s->rig.memory[1] + SEGMENTS_AT, *old = s->model[1] + SEGMENTS_AT;
        bool is_lost = false;
        for (uint32_t i = 0; i < QUOIT_DMA_DEPTH; i++) {
            poll_one(s->ports[0], 0, &done);
            assert_int_equal(done.cookie, i);
            assert_true(done.status == QUOIT_LINK_DOWN || (done.status == QUOIT_OK && !is_lost));
            is_lost = done.status == QUOIT_LINK_DOWN;
            lost_count += is_lost;
        }
        assert_int_equal(quoit_port_dma_poll(s->ports[0], 0, &done, 1), 0);
        for (uint32_t at = 0; at < QUOIT_DMA_DEPTH * 1024; at++)
            assert_true(found[at] == old[at] || found[at] == dma_source(s)[at]);
        memcpy(s->model[1], s->rig.memory[1], RIG_LAST);
        set_link(s, round % 2, true);
        translate(s, 1);
        quoit_clock_sleep_ns(20000000);
        assert_memory_is_model(s);
    }
    printf("lost %u copies\n", lost_count);
}

static void test_dma_fails_when_the_link_is_down(void **state)
{
    struct setup *s = *state;
    struct quoit_port_limits limits;
    quoit_port_limits(s->ports[0], &limits);
    if (limits.dma_channel_count == 0)
        return;
    translate(s, 1);
    const uint64_t value = 0x1111111111111111u;
    uint8_t *word = dma_source(s);
    memcpy(word, &value, 8);
    struct quoit_dma_done done;
    arrive(s);
    set_link(s, 1, false);
    assert_int_equal(quoit_port_dma_submit(s->ports[0], 0, QUOIT_WINDOW_MEMORY, 0, word, 8, 1), QUOIT_OK);
    poll_one(s->ports[0], 0, &done);
    assert_int_equal(done.status, QUOIT_LINK_DOWN);
    set_link(s, 1, true);
    translate(s, 1);
    assert_int_equal(quoit_port_dma_submit(s->ports[0], 0, QUOIT_WINDOW_MEMORY, 8, word, 8, 2), QUOIT_OK);
    poll_one(s->ports[0], 0, &done);
    assert_int_equal(done.status, QUOIT_OK);
    assert_int_equal(done.cookie, 2);
    memcpy(s->model[1] + SEGMENTS_AT + 8, word, 8);
    assert_memory_is_model(s);
}

/* Copies are refused like all else that a bound opening sends in another epoch. */
static void test_dma_is_bound_to_an_epoch(void **state)
{
    struct setup *s = *state;
    struct quoit_port *port = s->ports[0];
    struct quoit_dma_done done;
    if (limits_of(port).dma_channel_count == 0)
        return;
    memset(dma_source(s), 0x22, 8);
    assert_int_equal(quoit_port_bind(port, quoit_port_link_epoch(port)), QUOIT_OK);
    set_link(s, 1, false);
    set_link(s, 1, true);
    translate(s, 1);
    assert_int_equal(quoit_port_dma_submit(port, 0, QUOIT_WINDOW_MEMORY, 8, dma_source(s), 8, 1), QUOIT_OK);
    poll_one(port, 0, &done);
    assert_int_equal(done.status, QUOIT_LINK_DOWN);
    assert_memory_is_model(s);
    assert_int_equal(quoit_port_bind(port, quoit_port_link_epoch(port)), QUOIT_OK);
    assert_int_equal(quoit_port_dma_submit(port, 0, QUOIT_WINDOW_MEMORY, 8, dma_source(s), 8, 2), QUOIT_OK);
    poll_one(port, 0, &done);
    assert_int_equal(done.status, QUOIT_OK);
    memset(s->model[1] + SEGMENTS_AT + 8, 0x22, 8);
    assert_memory_is_model(s);
}

/* Of the opening that submitted, and of nobody else. */
static void test_dma_completion_wakes(void **state)
{
    struct setup *s = *state;
    struct quoit_port_limits limits;
    quoit_port_limits(s->ports[0], &limits);
    translate(s, 1);
    for (uint32_t channel = 0; channel < limits.dma_channel_count; channel++) {
        struct quoit_port_vector vector = rig_vector(channel, 1);
        struct quoit_park *park = rig_park(&s->rig, 0, channel);
        struct quoit_dma_done done;
        uint8_t *word = dma_source(s);
        assert_int_equal(quoit_port_set_vector(s->ports[0], QUOIT_VECTOR_DMA(channel), &vector), QUOIT_OK);
        uint32_t key = quoit_park_prepare(park);
        struct quoit_port *other = rig_open(&s->rig, 0);
        assert_int_equal(quoit_port_dma_submit(other, channel, QUOIT_WINDOW_MEMORY, 0, word, 8, 1), QUOIT_OK);
        poll_one(other, channel, &done);
        quoit_port_close(other);
        assert_int_equal(atomic_load(&park->epoch), key);
        assert_int_equal(quoit_port_dma_submit(s->ports[0], channel, QUOIT_WINDOW_MEMORY, 0, word, 8, 1), QUOIT_OK);
        quoit_park_sleep(park, key, 0); /* for ever, unless it wakes */
        assert_int_equal(atomic_load(&park->epoch), key + 1);
        poll_one(s->ports[0], channel, &done);
        assert_int_equal(done.status, QUOIT_OK);
    }
}

static void test_close_with_dma_under_way(void **state)
{
    struct setup *s = *state;
    struct quoit_port_limits limits;
    quoit_port_limits(s->ports[0], &limits);
    translate(s, 1);
    uint64_t half_bytes = SEGMENTS_BYTES / 2; /* a channel each: a word has one writer */
    uint8_t *source = dma_source(s);
    for (uint32_t round = 0; round < 10; round++) {
        struct quoit_port *port = rig_open(&s->rig, 0);
        for (uint32_t i = 0; i < 2 * limits.dma_channel_count; i++)
            assert_int_equal(
                quoit_port_dma_submit(port, i / 2, QUOIT_WINDOW_MEMORY, i / 2 * half_bytes, source, half_bytes, i),
                QUOIT_OK);
        quoit_port_close(port);
    }
}

static const struct suite_test tests[] = {
    SUITE_TEST(test_dma_is_checked),
    SUITE_TEST(test_dma_of_other_memory),
    SUITE_TEST(test_dma_copies_in_order),
    SUITE_TEST(test_dma_of_the_other_end),
    SUITE_TEST(test_dma_completes_behind_its_bytes),
    SUITE_TEST(test_dma_ends_with_the_link),
    SUITE_TEST(test_dma_fails_when_the_link_is_down),
    SUITE_TEST(test_dma_is_bound_to_an_epoch),
    SUITE_TEST(test_dma_completion_wakes),
    SUITE_TEST(test_close_with_dma_under_way),
};

int main(void)
{
    return suite_run(tests, sizeof tests / sizeof tests[0]);
}
