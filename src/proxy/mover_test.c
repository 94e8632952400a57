/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: the promises of mover.h. Method: one host's movers over an emulated link, the neighbour's memory compared with
 * what was moved; an engine that fails each descriptor, a link that is cut, lanes that share channels, a sleeping lane.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "env/clock.h"
#include "env/wait.h"
#include "proxy/mover.h"
#include "port/port_rig.h"

#define TO          QUOIT_RIGHT
#define SEGMENTS_AT 0x40000
#define FROM        0x60000 /* sources, in the own memory */
#define DMA_BYTES   256
#define EACH        1024
#define MS          1000000u

struct setup {
    struct rig rig;
    struct quoit_port *ports[2];
    struct quoit_layout layout;
    struct quoit_mover movers[QUOIT_LANES_MAX];
};

static void open_lanes(struct setup *s, uint32_t lane_count)
{
    const struct quoit_job_config job = {
        .host_count = 2, .pe_count = 2, .lane_count = lane_count, .slot_count = 2, .chunk_bytes = 64};
    assert_int_equal(quoit_layout_make(&job, 0, &s->layout), QUOIT_OK);
    assert_true(s->layout.channels < SEGMENTS_AT);
    const struct quoit_lane_group group = {
        .layout = &s->layout, .memory = s->rig.memory[0], .ports = {s->ports[0], s->ports[0]}, .dma_bytes = DMA_BYTES};
    assert_int_equal(quoit_movers_open(s->movers, &group), QUOIT_OK);
}

static void open_movers(struct setup *s, uint32_t lane_count, const struct quoit_port_knobs *knobs)
{
    memset(s, 0, sizeof *s);
    rig_make(&s->rig, &rig_drivers[0]);
    s->rig.knobs = *knobs;
    rig_connect(&s->rig, s->ports);
    assert_int_equal(quoit_port_set_translation(s->ports[1], QUOIT_WINDOW_MEMORY, SEGMENTS_AT, 0x20000), QUOIT_OK);
    open_lanes(s, lane_count);
    for (uint32_t i = 0; i < 0x20000; i++)
        s->rig.memory[0][FROM + i] = (uint8_t)(i * 7 + i / 256 + 1);
}

static void close_movers(struct setup *s)
{
    rig_disconnect(s->ports);
    rig_destroy(&s->rig);
}

static bool start(struct setup *s, uint32_t lane, uint32_t place, size_t bytes, uint32_t *index_out)
{
    const struct quoit_move move = {.side = TO,
                                    .window = QUOIT_WINDOW_MEMORY,
                                    .offset = (uint64_t)place * EACH,
                                    .source = (const char *)s->rig.memory[0] + FROM + (size_t)place * EACH,
                                    .bytes = bytes};
    return quoit_mover_start(&s->movers[lane], &move, index_out);
}

static void assert_arrived(struct setup *s, uint32_t place)
{
    assert_memory_equal(s->rig.memory[1] + SEGMENTS_AT + place * EACH, s->rig.memory[0] + FROM + place * EACH, EACH);
}

static enum quoit_status end_of(struct setup *s, uint32_t lane, uint32_t *index_out)
{
    enum quoit_status status;
    while (!quoit_mover_next(&s->movers[lane], index_out, &status))
        quoit_wait_yield();
    return status;
}

static void test_what_is_taken_arrives(void **state)
{
    struct setup s;
    uint32_t index, places[QUOIT_MOVES_MAX];
    (void)state;
    open_movers(&s, 1, &(struct quoit_port_knobs){.dma_latency_ns = 10 * MS});
    assert_false(start(&s, 0, 0, DMA_BYTES - 1, &index));
    for (uint32_t place = 0; place < QUOIT_MOVES_MAX; place++) {
        assert_true(start(&s, 0, place, EACH, &index));
        places[index] = place;
    }
    assert_false(start(&s, 0, 0, EACH, &index)); /* all are under way */
    for (uint32_t i = 0; i < QUOIT_MOVES_MAX; i++) {
        assert_int_equal(end_of(&s, 0, &index), QUOIT_OK);
        assert_arrived(&s, places[index]);
    }
    const struct quoit_host_header *header = (const struct quoit_host_header *)(void *)s.rig.memory[0];
    assert_int_equal(atomic_load(&header->dma_bytes[TO]), DMA_BYTES);
    close_movers(&s);
}

static void test_nothing_starts_until_it_rests(void **state)
{
    struct setup s;
    uint32_t index;
    (void)state;
    open_movers(&s, 1, &(struct quoit_port_knobs){.dma_latency_ns = 10 * MS});
    assert_true(quoit_mover_rest(&s.movers[0]));
    assert_true(start(&s, 0, 0, EACH, &index));
    assert_true(start(&s, 0, 1, EACH, &index));
    assert_false(quoit_mover_rest(&s.movers[0]));
    assert_false(start(&s, 0, 2, EACH, &index));
    assert_int_equal(end_of(&s, 0, &index), QUOIT_OK);
    assert_false(start(&s, 0, 2, EACH, &index));
    assert_int_equal(end_of(&s, 0, &index), QUOIT_OK);
    assert_true(start(&s, 0, 2, EACH, &index));
    assert_int_equal(end_of(&s, 0, &index), QUOIT_OK);
    close_movers(&s);
}

/* A lane that has nothing else to move copies a little more than one that has. */
static void test_a_lane_with_more_to_move_copies_less(void **state)
{
    struct setup s;
    uint32_t index;
    (void)state;
    open_movers(&s, 1, &(struct quoit_port_knobs){.dma_latency_ns = 10 * MS});
    s.movers[0].queued_bytes[TO] = DMA_BYTES / 2;
    quoit_mover_begin_step(&s.movers[0]);
    assert_false(start(&s, 0, 0, DMA_BYTES - 1, &index));
    assert_true(start(&s, 0, 1, DMA_BYTES / 2, &index)); /* the second payload of a step */
    quoit_mover_begin_step(&s.movers[0]);
    assert_true(start(&s, 0, 2, DMA_BYTES / 2, &index)); /* one is under way */
    assert_false(start(&s, 0, 3, DMA_BYTES / 2 - 1, &index));
    assert_int_equal(end_of(&s, 0, &index), QUOIT_OK);
    assert_int_equal(end_of(&s, 0, &index), QUOIT_OK);
    quoit_mover_begin_step(&s.movers[0]);
    assert_false(start(&s, 0, 0, DMA_BYTES - 1, &index));
    close_movers(&s);
}

static void test_a_failed_descriptor_is_made_good(void **state)
{
    struct setup s;
    uint32_t index;
    (void)state;
    open_movers(&s, 1, &(struct quoit_port_knobs){.dma_failures = 1000});
    for (uint32_t place = 0; place < 20; place++) {
        assert_true(start(&s, 0, place, EACH, &index));
        assert_int_equal(end_of(&s, 0, &index), QUOIT_OK);
        assert_arrived(&s, place);
    }
    close_movers(&s);
}

/* What the engine has moved is not copied once more: the neighbour may have replaced it. */
static void test_what_has_arrived_is_not_written_again(void **state)
{
    struct setup s;
    uint32_t index;
    (void)state;
    open_movers(&s, 1, &(struct quoit_port_knobs){0});
    uint8_t *there = s.rig.memory[1] + SEGMENTS_AT;
    struct quoit_park *park = &quoit_memory_lane(&s.layout, s.rig.memory[0], 0)->park;
    uint32_t key = quoit_park_prepare(park);
    assert_true(start(&s, 0, 0, EACH, &index));
    while (!quoit_park_was_woken(park, key)) /* equal bytes are no end: a copy may write some of them twice */
        quoit_wait_yield();
    assert_arrived(&s, 0);
    memset(there, 0xee, EACH);
    assert_int_equal(end_of(&s, 0, &index), QUOIT_OK);
    for (uint32_t i = 0; i < EACH; i++)
        assert_int_equal(there[i], 0xee);
    close_movers(&s);
}

static void test_a_lost_link_is_reported(void **state)
{
    struct setup s;
    uint32_t index;
    uint64_t held_ns;
    enum quoit_status status;
    (void)state;
    do { /* again if this thread was held up until the descriptor's time had come */
        open_movers(&s, 1, &(struct quoit_port_knobs){.dma_latency_ns = 20 * MS});
        uint64_t begin_ns = quoit_clock_now_ns();
        assert_true(start(&s, 0, 0, EACH, &index));
        assert_int_equal(quoit_port_cut(s.ports[0]), QUOIT_OK);
        held_ns = quoit_clock_now_ns() - begin_ns;
        status = end_of(&s, 0, &index);
        close_movers(&s);
    } while (held_ns >= 20 * MS);
    assert_int_equal(status, QUOIT_LINK_DOWN);
}

/* Lanes 0, 2 and 4, 6 share a channel: the one that polls must forward the others' completions. */
static void test_lanes_share_channels(void **state)
{
    struct setup s;
    uint32_t index, indices[QUOIT_LANES_MAX];
    (void)state;
    open_movers(&s, QUOIT_LANES_MAX, &(struct quoit_port_knobs){0});
    for (uint32_t round = 0; round < 50; round++) {
        for (uint32_t lane = 0; lane < QUOIT_LANES_MAX; lane++)
            assert_true(start(&s, lane, round + lane, EACH, &indices[lane]));
        for (uint32_t lane = QUOIT_LANES_MAX; lane-- > 0;) {
            assert_int_equal(end_of(&s, lane, &index), QUOIT_OK);
            assert_int_equal(index, indices[lane]);
            assert_arrived(&s, round + lane);
        }
    }
    close_movers(&s);
}

struct sleeper {
    struct setup *setup;
    uint32_t lane;
    enum quoit_status status;
};

static bool has_ended(void *arg)
{
    struct sleeper *sleeper = arg;
    uint32_t index;
    return quoit_mover_next(&sleeper->setup->movers[sleeper->lane], &index, &sleeper->status);
}

/* Each lane in turn sleeps without limit; only the completion can wake it. */
static void test_a_completion_wakes_the_lane(void **state)
{
    struct setup s;
    uint32_t index;
    (void)state;
    open_movers(&s, QUOIT_LANES_MAX, &(struct quoit_port_knobs){.dma_latency_ns = 5 * MS});
    for (uint32_t lane = 0; lane < QUOIT_LANES_MAX; lane++) {
        struct sleeper sleeper = {.setup = &s, .lane = lane, .status = QUOIT_SYSTEM};
        struct quoit_waiter waiter = {.park = &quoit_memory_lane(&s.layout, s.rig.memory[0], lane)->park};
        assert_true(start(&s, lane, lane, EACH, &index));
        assert_true(quoit_wait_until(&waiter, has_ended, &sleeper, 0));
        assert_int_equal(sleeper.status, QUOIT_OK);
        assert_arrived(&s, lane);
    }
    close_movers(&s);
}

/* Lanes that share a channel are woken by it at once, and one may find nothing there because another one just takes its
 * completion. Here the channel wakes nobody. */
static void test_who_takes_a_completion_wakes_its_lane(void **state)
{
    struct setup s;
    uint32_t index;
    (void)state;
    open_movers(&s, QUOIT_LANES_MAX, &(struct quoit_port_knobs){.dma_latency_ns = MS});
    const uint32_t channel_count = s.ports[0]->limits.dma_channel_count;
    for (uint32_t channel = 0; channel < channel_count; channel++)
        assert_int_equal(quoit_port_set_vector(s.ports[0], QUOIT_VECTOR_DMA(channel), &(struct quoit_port_vector){0}),
                         QUOIT_OK);
    struct quoit_park *park = &quoit_memory_lane(&s.layout, s.rig.memory[0], channel_count)->park;
    uint32_t key = quoit_park_prepare(park);
    assert_true(start(&s, channel_count, 0, EACH, &index));
    assert_true(start(&s, 0, 1, EACH, &index));
    assert_false(quoit_park_was_woken(park, key));
    assert_int_equal(end_of(&s, 0, &index), QUOIT_OK);
    assert_true(quoit_park_was_woken(park, key));
    quoit_park_cancel(park);
    assert_int_equal(end_of(&s, channel_count, &index), QUOIT_OK);
    close_movers(&s);
}

/* More channels than lanes, as of a port with an engine that has many: noted here, moved by nothing. */
enum { CHANNELS = 4 };
static struct quoit_port_vector channel_vectors[CHANNELS];
static uint32_t last_channel;

static void note_vector(struct quoit_port *port, uint32_t index, const struct quoit_port_vector *vector)
{
    (void)port;
    channel_vectors[index - QUOIT_VECTOR_DMA(0)] = *vector;
}

static enum quoit_status note_channel(struct quoit_port *port, uint32_t channel, enum quoit_window window,
                                      uint64_t offset, const void *source, size_t bytes, uint64_t cookie)
{
    (void)port, (void)window, (void)offset, (void)source, (void)bytes, (void)cookie;
    last_channel = channel;
    return QUOIT_OK;
}

/* The lane, and no other, sleeps on the park that a completion of any of its channels wakes. */
static void test_each_lane_has_channels_of_its_own(void **state)
{
    struct setup s;
    uint32_t index;
    (void)state;
    open_movers(&s, 1, &(struct quoit_port_knobs){0});
    s.ports[0]->ops.set_vector = note_vector;
    s.ports[0]->ops.dma_submit = note_channel;
    const uint32_t channel_count = s.ports[0]->limits.dma_channel_count;
    s.ports[0]->limits.dma_channel_count = CHANNELS;
    open_lanes(&s, 2);
    for (uint32_t i = 0; i < 2 * CHANNELS; i++) {
        assert_true(start(&s, i % 2, i, EACH, &index));
        const struct quoit_port_vector *vector = &channel_vectors[last_channel];
        const struct quoit_park *park = &quoit_memory_lane(&s.layout, s.rig.memory[0], i % 2)->park;
        assert_int_equal(vector->park_count, 1);
        assert_ptr_equal(s.rig.memory[0] + vector->park_offset, park);
    }
    s.ports[0]->limits.dma_channel_count = channel_count;
    close_movers(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_taken_arrives),
        cmocka_unit_test(test_nothing_starts_until_it_rests),
        cmocka_unit_test(test_a_lane_with_more_to_move_copies_less),
        cmocka_unit_test(test_a_failed_descriptor_is_made_good),
        cmocka_unit_test(test_what_has_arrived_is_not_written_again),
        cmocka_unit_test(test_a_lost_link_is_reported),
        cmocka_unit_test(test_lanes_share_channels),
        cmocka_unit_test(test_a_completion_wakes_the_lane),
        cmocka_unit_test(test_who_takes_a_completion_wakes_its_lane),
        cmocka_unit_test(test_each_lane_has_channels_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
