/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: every promise of port.h, for every driver of rig_drivers. Method: both ends in this process, each host's whole
 * memory compared with the test's model. DMA is in port_dma_test.c, what needs two processes at once in
 * port_stress_test.c. */
#include "port/port_suite.h"

static enum quoit_status write_bytes(struct setup *s, uint32_t side, enum quoit_window window, uint64_t offset,
                                     uint8_t value, size_t bytes)
{
    uint8_t *source = malloc(bytes);
    memset(source, value, bytes);
    enum quoit_status status = quoit_port_write(s->ports[side], window, offset, source, bytes);
    free(source);
    return status;
}

/* The doorbell bits of the ports, and one by its place among them. */
static uint64_t all_bells(const struct setup *s)
{
    return limits_of(s->ports[0]).doorbell_bits;
}

static uint64_t bell(const struct setup *s, uint32_t index)
{
    return rig_bell(s->ports[0], index);
}

static uint32_t number(const struct setup *s, uint32_t index)
{
    return (uint32_t)__builtin_ctzll(bell(s, index));
}

static void test_open_checks_config(void **state)
{
    struct setup *s = *state;
    struct quoit_port_ops lame = s->ports[0]->ops;
    lame.write64 = NULL;
    struct quoit_port_driver lame_driver = *rig_table(&s->rig);
    lame_driver.ops = &lame;
    const struct quoit_port_endpoint endpoint = rig_describe(&s->rig, 0);
    struct quoit_port_config config = {
        .driver = &lame_driver, .memory = {s->rig.memory[0], RIG_MEMORY_BYTES}, .endpoint = &endpoint};
    struct quoit_port *port;
    assert_int_equal(quoit_port_open(&config, &port), QUOIT_INVALID);
    config.driver = NULL;
    assert_int_equal(quoit_port_open(&config, &port), QUOIT_INVALID);
    config.driver = rig_table(&s->rig);
    config.memory.base = NULL;
    assert_int_equal(quoit_port_open(&config, &port), QUOIT_INVALID);
    quoit_port_close(NULL);
}

static void test_ranges_are_checked(void **state)
{
    struct setup *s = *state;
    struct quoit_port *port = s->ports[0];
    struct quoit_port_limits limits;
    quoit_port_limits(port, &limits);
    uint64_t end = limits.window_bytes[QUOIT_WINDOW_SLOTS], word = 0;
    assert_int_equal(end & (end - 1), 0);
    assert_int_equal(quoit_port_write(port, QUOIT_WINDOW_SLOTS, end, &word, 1), QUOIT_OUT_OF_RANGE);
    assert_int_equal(quoit_port_write(port, QUOIT_WINDOW_SLOTS, end - 4, &word, 8), QUOIT_OUT_OF_RANGE);
    assert_int_equal(quoit_port_write(port, QUOIT_WINDOW_SLOTS, UINT64_MAX, &word, 8), QUOIT_OUT_OF_RANGE);
    assert_int_equal(quoit_port_write(port, QUOIT_WINDOW_SLOTS, 8, &word, SIZE_MAX), QUOIT_OUT_OF_RANGE);
    assert_int_equal(quoit_port_write(port, QUOIT_WINDOW_COUNT, 0, &word, 8), QUOIT_INVALID);
    assert_int_equal(quoit_port_write64(port, QUOIT_WINDOW_SLOTS, end, 1), QUOIT_OUT_OF_RANGE);
    assert_int_equal(quoit_port_write64(port, QUOIT_WINDOW_SLOTS, 4, 1), QUOIT_INVALID);
    assert_int_equal(quoit_port_write64(port, QUOIT_WINDOW_COUNT, 0, 1), QUOIT_INVALID);
    assert_int_equal(quoit_port_read(port, QUOIT_WINDOW_SLOTS, end - 7, &word, 8), QUOIT_OUT_OF_RANGE);
    assert_int_equal(quoit_port_read(port, QUOIT_WINDOW_COUNT, 0, &word, 8), QUOIT_INVALID);
    assert_int_equal(quoit_port_write(port, QUOIT_WINDOW_SLOTS, end, &word, 0), QUOIT_OK);
    assert_memory_is_model(s);
}

static void test_translation_is_checked(void **state)
{
    struct setup *s = *state;
    struct quoit_port *port = s->ports[1];
    struct quoit_port_limits limits;
    quoit_port_limits(port, &limits);
    uint64_t align = limits.translation_align, end = RIG_MEMORY_BYTES;
    assert_int_equal(quoit_port_set_translation(port, QUOIT_WINDOW_SLOTS, align / 2, align), QUOIT_INVALID);
    assert_int_equal(quoit_port_set_translation(port, QUOIT_WINDOW_COUNT, 0, align), QUOIT_INVALID);
    uint64_t unit = limits.translation_bytes_align;
    assert_int_equal(quoit_port_set_translation(port, QUOIT_WINDOW_SLOTS, 0, end + unit), QUOIT_OUT_OF_RANGE);
    assert_int_equal(quoit_port_set_translation(port, QUOIT_WINDOW_SLOTS, end, unit), QUOIT_OUT_OF_RANGE);
    assert_int_equal(quoit_port_set_translation(port, QUOIT_WINDOW_SLOTS, end - align, align + unit),
                     QUOIT_OUT_OF_RANGE);
    if (unit > 1)
        assert_int_equal(quoit_port_set_translation(port, QUOIT_WINDOW_SLOTS, 0, unit / 2), QUOIT_INVALID);
    assert_int_equal(quoit_port_set_translation(port, QUOIT_WINDOW_SLOTS, 0, limits.window_bytes[0] * 2),
                     QUOIT_OUT_OF_RANGE);
    assert_int_equal(quoit_port_set_translation(port, QUOIT_WINDOW_SLOTS, end - align, align), QUOIT_OK);
}

static void test_vector_is_checked(void **state)
{
    struct setup *s = *state;
    struct quoit_port_vector vector = rig_vector(0, 2);
    assert_int_equal(quoit_port_set_vector(s->ports[0], QUOIT_VECTOR_COUNT, &vector), QUOIT_INVALID);
    assert_int_equal(quoit_port_set_vector(s->ports[0], QUOIT_VECTOR_LINK, &vector), QUOIT_INVALID);
    for (uint32_t bit = 0; bit < QUOIT_DOORBELL_COUNT; bit++)
        if ((all_bells(s) >> bit & 1) == 0)
            assert_int_equal(quoit_port_set_vector(s->ports[0], bit, &vector), QUOIT_INVALID);
    vector.park_stride = sizeof(struct quoit_park) / 2;
    assert_int_equal(quoit_port_set_vector(s->ports[0], number(s, 0), &vector), QUOIT_INVALID);
    vector = rig_vector(0, 2);
    vector.park_offset += 1;
    assert_int_equal(quoit_port_set_vector(s->ports[0], number(s, 0), &vector), QUOIT_INVALID);
    vector = rig_vector(0, 2);
    vector.park_offset = RIG_MEMORY_BYTES - sizeof(struct quoit_park);
    assert_int_equal(quoit_port_set_vector(s->ports[0], number(s, 0), &vector), QUOIT_OUT_OF_RANGE);
    vector.park_count = UINT32_MAX;
    vector.park_stride = UINT32_MAX - 63;
    assert_int_equal(quoit_port_set_vector(s->ports[0], number(s, 0), &vector), QUOIT_OUT_OF_RANGE);
    vector.park_count = 0;
    assert_int_equal(quoit_port_set_vector(s->ports[0], number(s, 0), &vector), QUOIT_OK);
}

/* Window, direction and offset are distinguished: every byte of both hosts is compared. */
static void test_writes_land_where_translated(void **state)
{
    struct setup *s = *state;
    translate(s, 0);
    translate(s, 1);
    assert_int_equal(write_bytes(s, 0, QUOIT_WINDOW_SLOTS, 24, 0xa1, 1000), QUOIT_OK);
    memset(s->model[1] + SLOTS_AT + 24, 0xa1, 1000);
    assert_int_equal(write_bytes(s, 0, QUOIT_WINDOW_MEMORY, SEGMENTS_BYTES - 5, 0xa2, 5), QUOIT_OK);
    memset(s->model[1] + SEGMENTS_AT + SEGMENTS_BYTES - 5, 0xa2, 5);
    assert_int_equal(write_bytes(s, 1, QUOIT_WINDOW_MEMORY, 3, 0xa3, 70000), QUOIT_OK);
    memset(s->model[0] + SEGMENTS_AT + 3, 0xa3, 70000);
    uint64_t value = 0x0102030405060708u;
    assert_int_equal(quoit_port_write64(s->ports[1], QUOIT_WINDOW_SLOTS, SLOTS_BYTES - 8, value), QUOIT_OK);
    memcpy(s->model[0] + SLOTS_AT + SLOTS_BYTES - 8, &value, 8);
    assert_memory_is_model(s);
}

static void assert_aborts(struct setup *s, enum quoit_window window, uint64_t offset)
{
    uint8_t got[16] = {0}, ones[16];
    memset(ones, 0xff, sizeof ones);
    assert_int_equal(write_bytes(s, 0, window, offset, 0xee, sizeof got), QUOIT_OK);
    assert_int_equal(quoit_port_write64(s->ports[0], window, offset, 0xeeeeeeeeeeeeeeeeu), QUOIT_OK);
    assert_int_equal(quoit_port_read(s->ports[0], window, offset, got, sizeof got), QUOIT_OK);
    assert_memory_equal(got, ones, sizeof got);
    assert_memory_is_model(s);
}

static void test_master_abort(void **state)
{
    struct setup *s = *state;
    assert_aborts(s, QUOIT_WINDOW_SLOTS, 0);
    translate(s, 1);
    assert_aborts(s, QUOIT_WINDOW_SLOTS, SLOTS_BYTES);
    assert_aborts(s, QUOIT_WINDOW_MEMORY, SEGMENTS_BYTES + 4096);
    struct quoit_port_limits limits;
    quoit_port_limits(s->ports[0], &limits);
    assert_aborts(s, QUOIT_WINDOW_SLOTS, limits.window_bytes[QUOIT_WINDOW_SLOTS] - 16);
    assert_int_equal(quoit_port_set_translation(s->ports[1], QUOIT_WINDOW_SLOTS, 0, 0), QUOIT_OK);
    assert_aborts(s, QUOIT_WINDOW_SLOTS, 0);
}

/* What crosses the end of the translation arrives up to it. */
static void test_abort_begins_at_the_limit(void **state)
{
    struct setup *s = *state;
    translate(s, 1);
    assert_int_equal(write_bytes(s, 0, QUOIT_WINDOW_SLOTS, SLOTS_BYTES - 100, 0x55, 300), QUOIT_OK);
    memset(s->model[1] + SLOTS_AT + SLOTS_BYTES - 100, 0x55, 100);
    assert_memory_is_model(s);
    uint8_t got[300], expected[300];
    memset(expected, 0x55, 100);
    memset(expected + 100, 0xff, 200);
    assert_int_equal(quoit_port_read(s->ports[0], QUOIT_WINDOW_SLOTS, SLOTS_BYTES - 100, got, 300), QUOIT_OK);
    assert_memory_equal(got, expected, 300);
}

static void test_translation_moves(void **state)
{
    struct setup *s = *state;
    for (uint64_t i = 0; i < rig_rounds(&s->rig, 100); i++) {
        uint64_t at = (i * 5 % 100) * 4096, unit = limits_of(s->ports[1]).translation_bytes_align;
        uint64_t bytes = (64 + i * 8 + unit - 1) / unit * unit;
        assert_int_equal(quoit_port_set_translation(s->ports[1], QUOIT_WINDOW_MEMORY, at, bytes), QUOIT_OK);
        assert_int_equal(write_bytes(s, 0, QUOIT_WINDOW_MEMORY, 8, (uint8_t)i, bytes), QUOIT_OK);
        memset(s->model[1] + at + 8, (uint8_t)i, bytes - 8);
        assert_int_equal(quoit_port_write64(s->ports[0], QUOIT_WINDOW_MEMORY, bytes - 8, i), QUOIT_OK);
        memcpy(s->model[1] + at + bytes - 8, &i, 8);
        assert_int_equal(quoit_port_write64(s->ports[0], QUOIT_WINDOW_MEMORY, bytes, i), QUOIT_OK);
        assert_memory_is_model(s);
    }
}

static void test_link_needs_both_sides(void **state)
{
    struct setup *s = *state;
    uint64_t word = 7;
    translate(s, 1);
    for (uint32_t side = 0; side < 2; side++) {
        const uint32_t epochs[2] = {quoit_port_link_epoch(s->ports[0]), quoit_port_link_epoch(s->ports[1])};
        arrive(s);
        quoit_port_link_disable(s->ports[side]);
        arrive(s);
        quoit_port_link_disable(s->ports[side]);
        for (uint32_t end = 0; end < 2; end++) {
            rig_await_link(s->ports[end], false);
            assert_int_equal(quoit_port_link_epoch(s->ports[end]), epochs[end]);
            assert_int_equal(quoit_port_write(s->ports[end], QUOIT_WINDOW_SLOTS, 0, &word, 8), QUOIT_LINK_DOWN);
            assert_int_equal(quoit_port_write64(s->ports[end], QUOIT_WINDOW_SLOTS, 0, 1), QUOIT_LINK_DOWN);
            assert_int_equal(quoit_port_read(s->ports[end], QUOIT_WINDOW_SLOTS, 0, &word, 8), QUOIT_LINK_DOWN);
        }
        quoit_port_link_enable(s->ports[side]);
        quoit_port_link_enable(s->ports[side]);
        for (uint32_t end = 0; end < 2; end++) {
            rig_await_link(s->ports[end], true);
            assert_int_equal(quoit_port_link_epoch(s->ports[end]), epochs[end] + 1);
        }
    }
    assert_memory_is_model(s);
}

static void test_link_down_wipes(void **state)
{
    struct setup *s = *state;
    translate(s, 1);
    assert_int_equal(write_bytes(s, 0, QUOIT_WINDOW_SLOTS, 0, 0x31, 8), QUOIT_OK);
    memset(s->model[1] + SLOTS_AT, 0x31, 8);
    quoit_port_scratchpad_peer_write(s->ports[0], 3, 1234);
    arrive(s);
    set_link(s, 0, false);
    arrive(s);
    assert_int_equal(quoit_port_scratchpad_read(s->ports[1], 3), 0);
    quoit_port_scratchpad_peer_write(s->ports[0], 3, 99); /* lost */
    set_link(s, 0, true);
    arrive(s);
    assert_int_equal(quoit_port_scratchpad_read(s->ports[1], 3), 0);
    assert_aborts(s, QUOIT_WINDOW_SLOTS, 0);
    assert_aborts(s, QUOIT_WINDOW_MEMORY, 0);
    arrive(s);
    set_link(s, 1, false);
    translate(s, 1); /* holds when the link comes up */
    set_link(s, 1, true);
    assert_int_equal(write_bytes(s, 0, QUOIT_WINDOW_SLOTS, 0, 0x32, 8), QUOIT_OK);
    memset(s->model[1] + SLOTS_AT, 0x32, 8);
    assert_memory_is_model(s);
}

/* Everything that a bound opening sends in another epoch is refused, and nothing of it arrives, until it is bound
 * again. */
static void test_bound_to_an_epoch(void **state)
{
    struct setup *s = *state;
    struct quoit_port *port = s->ports[0];
    uint64_t words[2] = {0x2222222222222222u, 0x3333333333333333u}, back = 0;
    uint32_t epoch = quoit_port_link_epoch(port);
    translate(s, 1);
    assert_int_equal(quoit_port_bind(port, epoch + 1), QUOIT_LINK_DOWN);
    assert_int_equal(quoit_port_bind(port, epoch), QUOIT_OK);
    assert_int_equal(quoit_port_write64(port, QUOIT_WINDOW_MEMORY, 0, words[0]), QUOIT_OK);
    memcpy(s->model[1] + SEGMENTS_AT, words, 8);
    arrive(s);
    set_link(s, 1, false);
    assert_int_equal(quoit_port_bind(port, epoch), QUOIT_LINK_DOWN);
    set_link(s, 1, true);
    translate(s, 1);
    assert_int_equal(quoit_port_write64(port, QUOIT_WINDOW_MEMORY, 8, words[1]), QUOIT_LINK_DOWN);
    assert_int_equal(quoit_port_write(port, QUOIT_WINDOW_MEMORY, 8, words, 16), QUOIT_LINK_DOWN);
    assert_int_equal(quoit_port_write(port, QUOIT_WINDOW_MEMORY, 8, words, 8), QUOIT_LINK_DOWN);
    assert_int_equal(quoit_port_read(port, QUOIT_WINDOW_MEMORY, 0, &back, 8), QUOIT_LINK_DOWN);
    assert_false(quoit_port_ring(port, bell(s, 0)));
    arrive(s);
    assert_int_equal(quoit_port_doorbell_read(s->ports[1]), 0);
    quoit_port_scratchpad_peer_write(port, 0, 5);
    arrive(s);
    assert_int_equal(quoit_port_scratchpad_read(s->ports[1], 0), 0);
    assert_memory_is_model(s);

    assert_int_equal(quoit_port_bind(port, quoit_port_link_epoch(port)), QUOIT_OK);
    assert_int_equal(quoit_port_write(port, QUOIT_WINDOW_MEMORY, 8, words, 16), QUOIT_OK);
    memcpy(s->model[1] + SEGMENTS_AT + 8, words, 16);
    assert_int_equal(quoit_port_read(port, QUOIT_WINDOW_MEMORY, 0, &back, 8), QUOIT_OK);
    assert_int_equal(back, words[0]);
    assert_true(quoit_port_ring(port, bell(s, 0)));
    assert_memory_is_model(s);
}

static void test_scratchpads(void **state)
{
    struct setup *s = *state;
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < limits_of(s->ports[0]).scratchpad_count; i++) {
            quoit_port_scratchpad_peer_write(s->ports[0], i, 0x10000000u * round + i);
            quoit_port_scratchpad_peer_write(s->ports[1], i, UINT32_MAX - i - round);
        }
        for (uint32_t i = 0; i < limits_of(s->ports[0]).scratchpad_count; i++) {
            arrive(s);
            assert_int_equal(quoit_port_scratchpad_read(s->ports[1], i), 0x10000000u * round + i);
            assert_int_equal(quoit_port_scratchpad_read(s->ports[0], i), UINT32_MAX - i - round);
        }
    }
}

static void test_doorbells_stick_and_coalesce(void **state)
{
    struct setup *s = *state;
    uint64_t first = bell(s, 0), last = bell(s, 7), other = bell(s, 4), back = bell(s, 5);
    for (uint32_t i = 0; i < 10; i++)
        quoit_port_ring(s->ports[0], first | last);
    quoit_port_ring(s->ports[0], other);
    quoit_port_ring(s->ports[1], back);
    arrive(s);
    assert_int_equal(quoit_port_doorbell_read(s->ports[1]), first | last | other);
    assert_int_equal(quoit_port_doorbell_read(s->ports[1]), first | last | other);
    assert_int_equal(quoit_port_doorbell_read(s->ports[0]), back);
    quoit_port_doorbell_clear(s->ports[1], last | bell(s, 2));
    arrive(s);
    assert_int_equal(quoit_port_doorbell_read(s->ports[1]), first | other);
    quoit_port_doorbell_clear(s->ports[1], all_bells(s));
    arrive(s);
    assert_int_equal(quoit_port_doorbell_read(s->ports[1]), 0);
    assert_int_equal(quoit_port_doorbell_read(s->ports[0]), back);
    set_link(s, 1, false);
    quoit_port_ring(s->ports[0], first); /* lost */
    arrive(s);
    assert_int_equal(quoit_port_doorbell_read(s->ports[1]), 0);
}

/* Which parks of a host were woken: each has a sleeper announced, so that a wake moves its epoch. */
static uint32_t woken_by(struct setup *s, uint32_t host, void (*deed)(struct setup *s))
{
    uint32_t keys[32], woken = 0;
    for (uint32_t i = 0; i < 32; i++)
        keys[i] = quoit_park_prepare(rig_park(&s->rig, host, i));
    deed(s);
    arrive(s);
    rig_interrupt(&s->rig);
    for (uint32_t i = 0; i < 32; i++) {
        woken |= atomic_load(&rig_park(&s->rig, host, i)->epoch) != keys[i] ? 1u << i : 0;
        quoit_park_cancel(rig_park(&s->rig, host, i));
    }
    return woken;
}

static void ring_bit_2(struct setup *s)
{
    quoit_port_ring(s->ports[0], bell(s, 2));
}

static void ring_bits_2_and_6(struct setup *s)
{
    quoit_port_ring(s->ports[0], bell(s, 2) | bell(s, 6));
}

static void unmask_bit_2(struct setup *s)
{
    quoit_port_doorbell_unmask(s->ports[1], bell(s, 2));
}

static void set_vectors(struct setup *s)
{
    struct quoit_port_vector vector = rig_vector(4, 1);
    assert_int_equal(quoit_port_set_vector(s->ports[1], number(s, 2), &vector), QUOIT_OK);
    vector = rig_vector(8, 3);
    vector.park_stride = 2 * sizeof(struct quoit_park);
    assert_int_equal(quoit_port_set_vector(s->ports[1], number(s, 6), &vector), QUOIT_OK);
}

static void test_masked_bits_wake_nobody(void **state)
{
    struct setup *s = *state;
    set_vectors(s);
    assert_int_equal(woken_by(s, 1, ring_bit_2), 0); /* all bits start masked */
    arrive(s);
    assert_int_equal(quoit_port_doorbell_read(s->ports[1]), bell(s, 2));
    assert_int_equal(woken_by(s, 1, unmask_bit_2), 1u << 4); /* set already */
    quoit_port_doorbell_mask(s->ports[1], bell(s, 2));
    quoit_port_doorbell_clear(s->ports[1], bell(s, 2));
    assert_int_equal(woken_by(s, 1, unmask_bit_2), 0); /* not set */
    assert_int_equal(woken_by(s, 1, ring_bit_2), 1u << 4);
    quoit_port_doorbell_clear(s->ports[1], bell(s, 2));
    quoit_port_doorbell_mask(s->ports[1], bell(s, 2));
    assert_int_equal(woken_by(s, 1, ring_bit_2), 0);
}

static void test_vectors_wake_their_parks(void **state)
{
    struct setup *s = *state;
    quoit_port_doorbell_unmask(s->ports[1], all_bells(s));
    assert_int_equal(woken_by(s, 1, ring_bits_2_and_6), 0); /* no vector yet */
    set_vectors(s);
    quoit_port_doorbell_clear(s->ports[1], all_bells(s));
    assert_int_equal(woken_by(s, 1, ring_bits_2_and_6), 1u << 4 | 1u << 8 | 1u << 10 | 1u << 12);
    assert_int_equal(woken_by(s, 1, ring_bits_2_and_6), 0); /* still set: no second interrupt */
    quoit_port_doorbell_clear(s->ports[1], bell(s, 6));
    assert_int_equal(woken_by(s, 1, ring_bits_2_and_6), 1u << 8 | 1u << 10 | 1u << 12);
    quoit_port_doorbell_clear(s->ports[1], all_bells(s));
    assert_int_equal(woken_by(s, 0, ring_bits_2_and_6), 0); /* the ringer's own host */
    struct quoit_port_vector nobody = {0};
    assert_int_equal(quoit_port_set_vector(s->ports[1], number(s, 2), &nobody), QUOIT_OK);
    quoit_port_doorbell_clear(s->ports[1], all_bells(s));
    assert_int_equal(woken_by(s, 1, ring_bit_2), 0);
}

static void take_link_down(struct setup *s)
{
    arrive(s);
    set_link(s, 0, false);
}

static void take_link_up(struct setup *s)
{
    set_link(s, 0, true);
}

static void test_link_event_wakes_both_hosts(void **state)
{
    struct setup *s = *state;
    for (uint32_t side = 0; side < 2; side++) {
        struct quoit_port_vector vector = rig_vector(20 + side, 1);
        assert_int_equal(quoit_port_set_vector(s->ports[side], QUOIT_VECTOR_LINK, &vector), QUOIT_OK);
        assert_int_equal(woken_by(s, side, take_link_down), 1u << (20 + side));
        assert_int_equal(woken_by(s, side, take_link_up), 1u << (20 + side));
    }
}

/* Two openings of one end are one end. */
static void test_an_end_opened_twice(void **state)
{
    struct setup *s = *state;
    translate(s, 1);
    struct quoit_port *second = rig_open(&s->rig, 0);
    assert_true(quoit_port_link_is_up(second));
    assert_int_equal(quoit_port_write64(second, QUOIT_WINDOW_SLOTS, 64, 5), QUOIT_OK);
    memcpy(s->model[1] + SLOTS_AT + 64, &(uint64_t){5}, 8);
    rig_arrive(&s->rig, second);
    assert_memory_is_model(s);
    quoit_port_ring(second, bell(s, 1));
    rig_arrive(&s->rig, second);
    quoit_port_ring(s->ports[0], bell(s, 2));
    arrive(s);
    assert_int_equal(quoit_port_doorbell_read(s->ports[1]), bell(s, 1) | bell(s, 2));
    quoit_port_ring(s->ports[1], bell(s, 3));
    quoit_port_scratchpad_peer_write(s->ports[1], 0, 77);
    arrive(s);
    assert_int_equal(quoit_port_doorbell_read(second), bell(s, 3));
    assert_int_equal(quoit_port_scratchpad_read(second, 0), 77);
    uint32_t epoch = quoit_port_link_epoch(second);
    set_link(s, 0, false);
    assert_int_equal(quoit_port_write64(second, QUOIT_WINDOW_SLOTS, 64, 6), QUOIT_LINK_DOWN);
    set_link(s, 0, true);
    assert_int_equal(quoit_port_link_epoch(second), epoch + 1);
    quoit_port_close(second);
    assert_true(quoit_port_link_is_up(s->ports[0])); /* closing does not disable */
}

static void test_random_writes_and_reads(void **state)
{
    struct setup *s = *state;
    struct quoit_prng prng = {.state = rig_seed()};
    const uint64_t at[QUOIT_WINDOW_COUNT] = {SLOTS_AT, SEGMENTS_AT},
                   limit[QUOIT_WINDOW_COUNT] = {SLOTS_BYTES, SEGMENTS_BYTES};
    uint8_t *source = malloc(SEGMENTS_BYTES), *got = malloc(SEGMENTS_BYTES);
    translate(s, 0);
    translate(s, 1);
    for (uint32_t i = 0; i < rig_rounds(&s->rig, 20000); i++) {
        uint32_t side = (uint32_t)quoit_prng_choose(&prng, 2);
        enum quoit_window window = (enum quoit_window)quoit_prng_choose(&prng, QUOIT_WINDOW_COUNT);
        uint64_t largest = quoit_prng_choose(&prng, 50) == 0 ? limit[window] : 300;
        uint64_t bytes = quoit_prng_choose(&prng, largest + 1);
        uint64_t offset = quoit_prng_choose(&prng, limit[window] - bytes + 1);
        uint8_t *target = s->model[1 - side] + at[window] + offset;
        if (quoit_prng_choose(&prng, 4) == 0) {
            assert_int_equal(quoit_port_read(s->ports[side], window, offset, got, bytes), QUOIT_OK);
            assert_memory_equal(got, target, bytes);
            continue;
        }
        size_t skew = quoit_prng_choose(&prng, 8) % (SEGMENTS_BYTES - bytes + 1);
        for (uint64_t j = 0; j < bytes; j++)
            source[skew + j] = (uint8_t)(quoit_prng_next(&prng) >> 56);
        assert_int_equal(quoit_port_write(s->ports[side], window, offset, source + skew, bytes), QUOIT_OK);
        memcpy(target, source + skew, bytes);
        if (i % rig_rounds(&s->rig, 500) == 0)
            assert_memory_is_model(s);
    }
    assert_memory_is_model(s);
    free(source);
    free(got);
}

/* A mark arrives behind its bytes; ranges of both are checked. */
static void test_marks(void **state)
{
    struct setup *s = *state;
    struct quoit_port *port = s->ports[0];
    uint8_t bytes[6000];
    translate(s, 1);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 11);
    assert_int_equal(quoit_port_write_marked(port, QUOIT_WINDOW_SLOTS, 0, bytes, 8, 4, 1), QUOIT_INVALID);
    assert_int_equal(quoit_port_write_marked(port, QUOIT_WINDOW_SLOTS, 0, bytes, 0, 8, 1), QUOIT_INVALID);
    assert_int_equal(quoit_port_write_marked(port, QUOIT_WINDOW_SLOTS, 0, bytes, 8, UINT64_MAX - 7, 1),
                     QUOIT_OUT_OF_RANGE);
    static const size_t sizes[] = {1, 8, 13, 64, 4096, 4097, sizeof bytes};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t at = 64 + 8 * i + (sizes[i] & 7), mark = 0x1234567890u + i;
        assert_int_equal(quoit_port_write_marked(port, QUOIT_WINDOW_SLOTS, at, bytes, sizes[i], 16, mark), QUOIT_OK);
        memcpy(s->model[1] + SLOTS_AT + at, bytes, sizes[i]);
        memcpy(s->model[1] + SLOTS_AT + 16, &mark, sizeof mark);
        assert_memory_is_model(s);
    }
}

#define FLOOD_WORDS (SEGMENTS_BYTES / 8 - 1)

struct flood {
    struct quoit_port *port;
    uint32_t ok_count;
    uint64_t first; /* value of the first word */
};

/* Word i gets first + i, and the mark at the end counts them, until one is refused. */
static void run_flood(void *arg)
{
    struct flood *flood = arg;
    for (uint32_t i = 0; i < FLOOD_WORDS; i++) {
        uint64_t value = flood->first + i;
        enum quoit_status status = quoit_port_write_marked(flood->port, QUOIT_WINDOW_MEMORY, 8 * (uint64_t)i, &value, 8,
                                                           8 * FLOOD_WORDS, i + 1);
        if (status == QUOIT_LINK_DOWN)
            break;
        must(status == QUOIT_OK);
        flood->ok_count++;
        if (i % 16 == 0)
            quoit_wait_yield();
    }
}

static uint64_t word_there(struct setup *s, uint32_t i)
{
    return __atomic_load_n((uint64_t *)(void *)(s->rig.memory[1] + SEGMENTS_AT) + i, __ATOMIC_ACQUIRE);
}

/* Writes and their marks alternate when the cable is cut. A prefix of them has arrived, and the mark says which; with
 * posted writes some that returned OK may be lost, otherwise none. Nothing arrives later, and nothing is sent before
 * the opening is bound again. */
static void test_a_cut_loses_an_end(void **state)
{
    struct setup *s = *state;
    struct quoit_port *port = s->ports[0];
    struct quoit_port_limits limits;
    uint32_t lost_count = 0;
    quoit_port_limits(port, &limits);
    if ((limits.capabilities & QUOIT_PORT_CUTS) == 0)
        return;
    for (uint64_t round = 1; round <= 60; round++) {
        struct flood flood = {.port = port, .first = round << 32};
        struct rig_thread thread = {.run = run_flood, .arg = &flood};
        translate(s, 1);
        memset(s->rig.memory[1] + SEGMENTS_AT, 0, SEGMENTS_BYTES);
        assert_int_equal(quoit_port_bind(port, quoit_port_link_epoch(port)), QUOIT_OK);
        rig_thread_start(&s->rig, &thread);
        while (word_there(s, FLOOD_WORDS) < 20 * round % 400)
            quoit_wait_yield();
        assert_int_equal(quoit_port_cut(s->ports[1]), QUOIT_OK);
        rig_thread_join(&s->rig, &thread);
        uint64_t word;
        assert_int_equal(quoit_port_read(port, QUOIT_WINDOW_MEMORY, 0, &word, 8), QUOIT_LINK_DOWN);
        uint32_t arrived = (uint32_t)word_there(s, FLOOD_WORDS);
        assert_int_equal(quoit_port_mend(s->ports[1]), QUOIT_OK);
        translate(s, 1);
        assert_int_equal(quoit_port_write64(port, QUOIT_WINDOW_MEMORY, 0, 1), QUOIT_LINK_DOWN);
        quoit_clock_sleep_ns(100000);
        for (uint32_t i = 0; i < FLOOD_WORDS; i++)
            if (word_there(s, i) != (i < arrived ? flood.first + i : 0) &&
                !(i == arrived && word_there(s, i) == flood.first + i))
                fail_msg("round %u: word %u is %llx, %u arrived", (unsigned)round, i,
                         (unsigned long long)word_there(s, i), arrived);
        assert_int_equal(word_there(s, FLOOD_WORDS), arrived);
        assert_true(arrived <= flood.ok_count);
        if (limits.capabilities & QUOIT_PORT_ARRIVES_ON_RETURN)
            assert_int_equal(arrived, flood.ok_count);
        lost_count += flood.ok_count - arrived;
    }
    if ((limits.capabilities & QUOIT_PORT_ARRIVES_ON_RETURN) == 0)
        assert_int_not_equal(lost_count, 0);
    printf("lost %u posted writes\n", lost_count);
    memcpy(s->model[1], s->rig.memory[1], RIG_MEMORY_BYTES);
}

static const struct suite_test tests[] = {
    SUITE_TEST(test_open_checks_config),
    SUITE_TEST(test_ranges_are_checked),
    SUITE_TEST(test_translation_is_checked),
    SUITE_TEST(test_vector_is_checked),
    SUITE_TEST(test_writes_land_where_translated),
    SUITE_TEST(test_master_abort),
    SUITE_TEST(test_abort_begins_at_the_limit),
    SUITE_TEST(test_translation_moves),
    SUITE_TEST(test_link_needs_both_sides),
    SUITE_TEST(test_link_down_wipes),
    SUITE_TEST(test_bound_to_an_epoch),
    SUITE_TEST(test_scratchpads),
    SUITE_TEST(test_doorbells_stick_and_coalesce),
    SUITE_TEST(test_masked_bits_wake_nobody),
    SUITE_TEST(test_vectors_wake_their_parks),
    SUITE_TEST(test_link_event_wakes_both_hosts),
    SUITE_TEST(test_an_end_opened_twice),
    SUITE_TEST(test_random_writes_and_reads),
    SUITE_TEST(test_marks),
    SUITE_TEST(test_a_cut_loses_an_end),
};

int main(void)
{
    return suite_run(tests, sizeof tests / sizeof tests[0]);
}
