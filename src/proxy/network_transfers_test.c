/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: the payload of puts with signals starts at once, and no signal passes the puts before it. Method: the lane of
 * network_rig.h, whose network says in the order of the test that puts are done. */
#include "proxy/network_rig.h"

#define LARGE_BYTES (QUOIT_NETWORK_FRAMED_BYTES + 8) /* of a put of the network */
#define WORD_BYTES  8u

static void submit_signal(struct world *world, uint32_t local, uint32_t bytes, uint64_t value)
{
    submit(world, local,
           (struct quoit_frame){.kind = QUOIT_FRAME_PUT_SIGNAL,
                                .source_pe = (uint16_t)local,
                                .size = WORD_BYTES,
                                .bytes = bytes,
                                .operand = value,
                                .operand2 = world->layout.segment_heap});
}

/* The network says that the put of this request is done. */
static void end_put(struct world *world, uint32_t local, uint32_t request)
{
    world->net.put_cookie = quoit_lane_cookie(local, request);
    world->net.is_put_done = true;
    step(world);
}

static void check_signal(const struct world *world, uint32_t at, uint8_t flags, uint64_t value)
{
    const struct quoit_frame frame = sent_frame(world, at);
    assert_int_equal(frame.kind, QUOIT_FRAME_PUT_SIGNAL);
    assert_int_equal(frame.flags, flags | QUOIT_FRAME_PATIENT);
    assert_int_equal(frame.operand, value);
}

static void end(struct world *world, uint32_t sequence, uint32_t local, uint32_t request_count)
{
    const struct quoit_frame ack = {.kind = QUOIT_FRAME_ACK, .source_host = 1, .flow_sequence = sequence};
    hand_in(world, &ack, QUOIT_FRAME_BYTES);
    const struct quoit_channel *channel = quoit_memory_channel(&world->layout, world->memory, local, 0);
    assert_int_equal(atomic_load(&channel->complete_tail), request_count);
    assert_true(quoit_lane_is_quiescent(&world->lane));
    close_world(world);
}

/* Both are under way at once. The second is done first: the other host is not told before the first is too. */
static void test_signals_keep_their_order(void **state)
{
    struct world world;
    (void)state;
    open_world(&world);
    submit_signal(&world, 0, LARGE_BYTES, 1);
    submit_signal(&world, 0, LARGE_BYTES, 2);
    step(&world);
    assert_int_equal(world.net.put_count, 2);
    end_put(&world, 0, 1);
    assert_int_equal(world.net.sent_count, 0);
    end_put(&world, 0, 0);
    assert_int_equal(world.net.sent_count, 1);
    assert_int_equal(world.net.sent_bytes, 2 * QUOIT_FRAME_BYTES);
    check_signal(&world, 0, QUOIT_FRAME_LANDED, 1);
    check_signal(&world, QUOIT_FRAME_BYTES, QUOIT_FRAME_LANDED, 2);
    end(&world, 2, 0, 2);
}

/* The parts of one put: the signal, which travels with the last of them, is for all. A signal without large payload
 * waits for them too. */
static void test_a_signal_follows_all_parts(void **state)
{
    struct world world;
    (void)state;
    open_world(&world);
    submit_put(&world, 0, LARGE_BYTES, 0);
    submit_signal(&world, 0, LARGE_BYTES, 1);
    submit_signal(&world, 0, WORD_BYTES, 2);
    step(&world);
    assert_int_equal(world.net.put_count, 2);
    assert_int_equal(world.lane.submit_heads[0], 2);
    end_put(&world, 0, 1);
    assert_int_equal(world.net.sent_count, 0);
    assert_int_equal(world.lane.submit_heads[0], 2);
    end_put(&world, 0, 0);
    assert_int_equal(world.net.sent_count, 1);
    assert_int_equal(sent_frame(&world, 0).kind, QUOIT_FRAME_PUT);
    assert_int_equal(sent_frame(&world, 0).flags, QUOIT_FRAME_LANDED);
    check_signal(&world, QUOIT_FRAME_BYTES, QUOIT_FRAME_LANDED, 1);
    check_signal(&world, 2 * QUOIT_FRAME_BYTES, 0, 2);
    end(&world, 3, 0, 3);
}

/* Another PE's signal does not wait. */
static void test_pes_do_not_wait_for_each_other(void **state)
{
    struct world world;
    (void)state;
    open_world(&world);
    submit_signal(&world, 1, LARGE_BYTES, 1);
    submit_signal(&world, 0, LARGE_BYTES, 2);
    step(&world);
    assert_int_equal(world.net.put_count, 2);
    end_put(&world, 0, 0);
    assert_int_equal(world.net.sent_count, 1);
    check_signal(&world, 0, QUOIT_FRAME_LANDED, 2);
    end_put(&world, 1, 0);
    assert_int_equal(world.net.sent_count, 2);
    check_signal(&world, 0, QUOIT_FRAME_LANDED, 1);
    end(&world, 2, 1, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signals_keep_their_order),
        cmocka_unit_test(test_a_signal_follows_all_parts),
        cmocka_unit_test(test_pes_do_not_wait_for_each_other),
    };
    return cmocka_run_group_tests_name("network_transfers", tests, NULL, NULL);
}
