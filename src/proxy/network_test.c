/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: what a host of the job sends over a network is checked before it has an effect: a malformed message ends the
 * lane and changes no memory; a lane that cannot be opened for want of memory gives back what it had taken. Requests
 * keep their order and their turns, each is acknowledged once, a lane that sleeps is woken, and one that closes says
 * so. Method: the engine runs on a network of network_rig.h, which holds what the lane sends and hands in what the
 * test writes; each malformed message differs from a good one in one thing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdatomic.h>
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "env/clock.h"
#include "lane/outbox.h"
#include "proxy/allocation_rig.h"
#include "proxy/network_rig.h"

#define WANTED_BYTES   64u  /* of the get that is outstanding */
#define ELEMENT_BYTES  8u   /* it is strided, so its data comes in frames */
#define BUFFER_BYTES   256u /* of memory that is compared, where its data goes */
#define UNTOUCHED      0x5a
#define ALLOCATION_MAX 100u
#define LARGE_BYTES    (QUOIT_NETWORK_FRAMED_BYTES + 8) /* of a put of the network */
#define WORD_BYTES     8u
#define FAR_NS         UINT64_MAX /* a time that does not come */
#define WOKEN_NS       UINT64_C(20000000000)
#define ASLEEP_NS      UINT64_C(30000000)

/* PE 0 asks for data of the first PE of the other host; the lane has sent it. */
static void open_with_get(struct world *world)
{
    open_world(world);
    memset(buffer_of(world), UNTOUCHED, BUFFER_BYTES);
    submit(world, 0,
           (struct quoit_frame){.kind = QUOIT_FRAME_GET_STRIDED,
                                .size = ELEMENT_BYTES,
                                .bytes = WANTED_BYTES,
                                .operand = 2 * ELEMENT_BYTES});
    step(world);
    assert_int_equal(world->lane.status, QUOIT_OK);
    assert_int_equal(world->net.sent_bytes, QUOIT_FRAME_BYTES);
}

/* The reply to what was sent, as the other host's respond() makes it. */
static struct quoit_frame good_reply(const struct world *world)
{
    struct quoit_frame reply;
    memcpy(&reply, world->net.sent, sizeof reply);
    assert_int_equal(reply.kind, QUOIT_FRAME_GET_STRIDED);
    reply.kind = QUOIT_FRAME_DATA;
    reply.source_host = 1;
    reply.dest_host = 0;
    reply.source_pe = reply.dest_pe;
    reply.dest_pe = 0;
    return reply;
}

static uint32_t message_bytes(const struct quoit_frame *frame)
{
    return QUOIT_FRAME_BYTES + ((quoit_frame_payload_bytes(frame) + 7) & ~7u);
}

/* So many bytes of data have come, at `at`, and nothing else. */
static void check_buffer(const struct world *world, uint32_t at, uint32_t bytes)
{
    for (uint32_t i = 0; i < BUFFER_BYTES; i++)
        assert_int_equal(buffer_of(world)[i], i >= at && i < at + bytes ? 'd' : UNTOUCHED);
}

static void test_a_reply_completes_its_request(void **state)
{
    struct world world;
    (void)state;
    open_with_get(&world);
    struct quoit_frame reply = good_reply(&world);
    assert_true(world.net.is_awaited);
    hand_in(&world, &reply, message_bytes(&reply));
    assert_int_equal(world.lane.status, QUOIT_OK);
    assert_false(world.net.is_awaited);
    assert_int_equal(atomic_load(&channel_of(&world)->complete_tail), 1);
    check_buffer(&world, 0, WANTED_BYTES);
    assert_true(quoit_lane_is_quiescent(&world.lane));
    hand_in(&world, &reply, message_bytes(&reply)); /* nothing waits for it any more */
    assert_int_equal(world.lane.status, QUOIT_INVALID);
    assert_int_equal(atomic_load(&channel_of(&world)->complete_tail), 1);
    close_world(&world);
}

/* The parts of the wanted bytes that are allowed: any that ends where they end. */
static void test_a_part_goes_to_its_place(void **state)
{
    struct world world;
    (void)state;
    open_with_get(&world);
    struct quoit_frame reply = good_reply(&world);
    reply.operand2 = WANTED_BYTES - ELEMENT_BYTES;
    reply.bytes = ELEMENT_BYTES;
    hand_in(&world, &reply, message_bytes(&reply));
    assert_int_equal(world.lane.status, QUOIT_OK);
    check_buffer(&world, WANTED_BYTES - ELEMENT_BYTES, ELEMENT_BYTES);
    close_world(&world);
}

/* A PE has put by itself, and wants the other one woken. It knows the way from the host's memory. */
static void test_a_put_of_the_pe_itself_wakes(void **state)
{
    struct world world;
    struct quoit_frame frame;
    (void)state;
    open_world(&world);
    const struct quoit_contacts *contacts = quoit_memory_contacts(&world.layout, world.memory);
    assert_true(contacts->is_told);
    assert_string_equal(contacts->network.driver, "rig");
    assert_int_equal(contacts->notice_ns, QUOIT_NET_NOTICE_NS);
    assert_int_equal(contacts->hosts[1].segments, world.layout.segments);
    assert_int_equal(contacts->hosts[1].key.memory_bytes, world.layout.total_bytes);
    submit_put(&world, 0, WORD_BYTES, QUOIT_FRAME_LANDED);
    step(&world);
    assert_int_equal(world.lane.status, QUOIT_OK);
    assert_int_equal(world.net.sent_bytes, QUOIT_FRAME_BYTES);
    memcpy(&frame, world.net.sent, sizeof frame);
    assert_int_equal(frame.kind, QUOIT_FRAME_PUT);
    assert_int_equal(frame.flags, QUOIT_FRAME_LANDED);
    assert_int_equal(frame.bytes, WORD_BYTES);
    assert_int_equal(frame.offset, world.layout.segment_heap);
    assert_int_equal(world.net.put_count, 0);
    close_world(&world);
}

static void too_many_bytes(struct quoit_frame *frame)
{
    frame->bytes = WANTED_BYTES + ELEMENT_BYTES;
}
static void part_beyond_the_end(struct quoit_frame *frame)
{
    frame->operand2 = ELEMENT_BYTES;
}
static void part_behind_the_end(struct quoit_frame *frame)
{
    frame->operand2 = WANTED_BYTES + ELEMENT_BYTES;
    frame->bytes = ELEMENT_BYTES;
}
static void part_far_away(struct quoit_frame *frame)
{
    frame->operand2 = UINT64_MAX - ELEMENT_BYTES + 1; /* with the bytes it would wrap to 0 */
    frame->bytes = ELEMENT_BYTES;
}
static void token_of_no_request(struct quoit_frame *frame)
{
    frame->token = 1;
}
static void token_of_no_channel(struct quoit_frame *frame)
{
    frame->token = 2 * QUOIT_REQUESTS_A_CHANNEL;
}
static void value_instead_of_data(struct quoit_frame *frame)
{
    frame->kind = QUOIT_FRAME_VALUE;
}
static void for_another_pe(struct quoit_frame *frame)
{
    frame->dest_pe = 1;
}
static void for_another_host(struct quoit_frame *frame)
{
    frame->source_host = 0;
    frame->dest_host = 1;
}
static void acknowledgement_of_nothing(struct quoit_frame *frame)
{
    *frame = (struct quoit_frame){.kind = QUOIT_FRAME_ACK, .source_host = 1, .flow_sequence = 1};
}
static void put_that_skips_one(struct quoit_frame *frame)
{
    frame->kind = QUOIT_FRAME_PUT;
    frame->flow_sequence = 2;
}
static void get_that_frames_do_not_carry(struct quoit_frame *frame)
{
    frame->kind = QUOIT_FRAME_GET;
}
static void message_that_skips_one(struct quoit_frame *frame)
{
    frame->kind = QUOIT_FRAME_MESSAGE;
    frame->flow_sequence = 2;
}
static void link_update(struct quoit_frame *frame)
{
    *frame = (struct quoit_frame){.kind = QUOIT_FRAME_TOPOLOGY, .source_host = 1, .size = 1};
}
static void unknown_kind(struct quoit_frame *frame)
{
    frame->kind = QUOIT_FRAME_KIND_COUNT;
}

static void test_malformed(void **state)
{
    static void (*const mistakes[])(struct quoit_frame * frame) = {
        too_many_bytes,         part_beyond_the_end,
        part_behind_the_end,    part_far_away,
        token_of_no_request,    token_of_no_channel,
        value_instead_of_data,  for_another_pe,
        for_another_host,       acknowledgement_of_nothing,
        put_that_skips_one,     get_that_frames_do_not_carry,
        message_that_skips_one, link_update,
        unknown_kind,
    };
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        struct world world;
        open_with_get(&world);
        struct quoit_frame frame = good_reply(&world);
        mistakes[i](&frame);
        hand_in(&world, &frame, message_bytes(&frame));
        if (world.lane.status != QUOIT_INVALID || atomic_load(&channel_of(&world)->complete_tail) != 0)
            fail_msg("mistake %zu: status %s, %u requests complete", i, quoit_status_text(world.lane.status),
                     atomic_load(&channel_of(&world)->complete_tail));
        check_buffer(&world, 0, 0);
        close_world(&world);
    }
}

/* Two puts of 8 bytes, to each PE of the host; the second is changed before. */
static void hand_in_many(struct world *world, void (*change)(struct quoit_frame_put *second))
{
    const uint64_t word = 0x1111, heap = world->layout.segment_heap;
    struct quoit_frame frame = {.kind = QUOIT_FRAME_PUT_MANY, .source_host = 1, .bytes = 48, .flow_sequence = 1};
    struct quoit_frame_put puts[2] = {{.offset = heap + 8, .bytes = 8},
                                      {.offset = heap + 16, .bytes = 8, .dest_pe = 1}};
    if (change)
        change(&puts[1]);
    memcpy(world->net.coming, &frame, sizeof frame);
    for (uint32_t i = 0; i < 2; i++) {
        memcpy(world->net.coming + sizeof frame + 24 * i, &puts[i], sizeof puts[i]);
        memcpy(world->net.coming + sizeof frame + 24 * i + sizeof puts[i], &word, sizeof word);
    }
    world->net.coming_bytes = sizeof frame + frame.bytes;
    step(world);
}

static void second_outside(struct quoit_frame_put *second)
{
    second->offset = UINT64_MAX - 4;
}
static void second_too_long(struct quoit_frame_put *second)
{
    second->bytes = 9;
}
static void second_for_nobody(struct quoit_frame_put *second)
{
    second->dest_pe = 2;
}

static void test_many_puts_in_a_frame(void **state)
{
    static void (*const mistakes[])(struct quoit_frame_put * second) = {second_outside, second_too_long,
                                                                        second_for_nobody};
    struct world world;
    (void)state;
    open_world(&world);
    hand_in_many(&world, NULL);
    assert_int_equal(world.lane.status, QUOIT_OK);
    for (uint32_t local = 0; local < 2; local++)
        for (uint32_t i = 0; i < 4; i++)
            assert_int_equal(heap_word(&world, local, i), i == 1 + local ? 0x1111 : 0);
    struct quoit_frame ack; /* one for all */
    memcpy(&ack, world.net.sent, sizeof ack);
    assert_int_equal(world.net.sent_count, 1);
    assert_int_equal(world.net.sent_bytes, QUOIT_FRAME_BYTES);
    assert_int_equal(ack.kind, QUOIT_FRAME_ACK);
    assert_int_equal(ack.flow_sequence, 1);
    close_world(&world);
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        open_world(&world);
        hand_in_many(&world, mistakes[i]);
        assert_int_equal(world.lane.status, QUOIT_INVALID);
        assert_int_equal(heap_word(&world, 0, 1), 0); /* nor is the first, which is good, executed */
        close_world(&world);
    }
}

/* A request to which the PE adds puts until it is taken: then it is sent with those it has, once. */
static void test_many_puts_are_taken(void **state)
{
    struct world world;
    (void)state;
    open_world(&world);
    struct quoit_request *request = &channel_of(&world)->requests[0];
    const struct quoit_frame_put put = {.offset = world.layout.segment_heap, .bytes = 8, .dest_pe = 1};
    for (uint32_t i = 0; i < 3; i++)
        memcpy(buffer_of(&world) + 24 * i, &put, sizeof put);
    submit(&world, 0, (struct quoit_frame){.kind = QUOIT_FRAME_PUT_MANY, .bytes = 24});
    atomic_store(&request->many_bytes, 72);
    step(&world);
    assert_int_equal(world.lane.status, QUOIT_OK);
    assert_int_equal(atomic_load(&request->many_bytes), 72 | QUOIT_REQUEST_IS_TAKEN);
    assert_int_equal(world.net.sent_bytes, QUOIT_FRAME_BYTES + 72);
    struct quoit_frame sent;
    memcpy(&sent, world.net.sent, sizeof sent);
    assert_int_equal(sent.bytes, 72);
    step(&world);
    assert_int_equal(world.net.sent_count, 1);
    close_world(&world);

    open_world(&world); /* a PE whose memory is damaged */
    memcpy(buffer_of(&world), &put, sizeof put);
    submit(&world, 0, (struct quoit_frame){.kind = QUOIT_FRAME_PUT_MANY, .bytes = 24});
    atomic_store(&channel_of(&world)->requests[0].many_bytes, 48); /* the second has no bytes */
    step(&world);
    assert_int_equal(world.lane.status, QUOIT_INVALID);
    assert_int_equal(world.net.sent_count, 0);
    close_world(&world);
}

/* A message that ends before its frame, or before its payload. */
static void test_cut_short(void **state)
{
    static const uint32_t lengths[] = {1, QUOIT_FRAME_BYTES - 1, QUOIT_FRAME_BYTES,
                                       QUOIT_FRAME_BYTES + WANTED_BYTES - 1};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct world world;
        open_with_get(&world);
        struct quoit_frame reply = good_reply(&world);
        hand_in(&world, &reply, lengths[i]);
        assert_int_equal(world.lane.status, QUOIT_INVALID);
        check_buffer(&world, 0, 0);
        close_world(&world);
    }
}

static void acknowledge(struct world *world, uint32_t sequence)
{
    const struct quoit_frame ack = {.kind = QUOIT_FRAME_ACK, .source_host = 1, .flow_sequence = sequence};
    hand_in(world, &ack, QUOIT_FRAME_BYTES);
}

/* Payload that no frame carries is a put of the network, of which a frame tells the other host when it is done. Behind
 * a fence it waits for the puts before it, and travels in a frame. */
static void test_a_put_behind_a_fence_waits(void **state)
{
    struct world world;
    (void)state;
    open_world(&world);
    submit_put(&world, 0, LARGE_BYTES, 0);
    submit_put(&world, 0, LARGE_BYTES, QUOIT_FRAME_ORDERED);
    memset(world.memory + quoit_layout_staging(&world.layout, 0, 0, 1), 'o', LARGE_BYTES);
    step(&world);
    step(&world);
    assert_int_equal(world.net.put_count, 1);
    assert_int_equal(world.net.put_bytes, LARGE_BYTES);
    assert_int_equal(world.net.put_offset, world.layout.segments + world.layout.segment_heap);
    assert_int_equal(world.net.sent_count, 0);
    assert_int_equal(world.lane.submit_heads[0], 1);

    world.net.is_put_done = true;
    step(&world);
    assert_int_equal(world.net.put_count, 1);
    assert_int_equal(world.lane.submit_heads[0], 2);
    assert_int_equal(atomic_load(&channel_of(&world)->complete_tail), 1);
    assert_int_equal(world.net.sent_count, 1);
    assert_int_equal(world.net.sent_bytes, 2 * QUOIT_FRAME_BYTES + LARGE_BYTES);
    assert_int_equal(sent_frame(&world, 0).flags, QUOIT_FRAME_LANDED);
    const struct quoit_frame ordered = sent_frame(&world, QUOIT_FRAME_BYTES);
    assert_int_equal(ordered.kind, QUOIT_FRAME_PUT);
    assert_int_equal(ordered.flags, QUOIT_FRAME_ORDERED);
    assert_int_equal(ordered.flow_sequence, 2);
    for (uint32_t i = 0; i < LARGE_BYTES; i++)
        assert_int_equal(world.net.sent[2 * QUOIT_FRAME_BYTES + i], 'o');

    acknowledge(&world, 2);
    assert_int_equal(atomic_load(&channel_of(&world)->complete_tail), 2);
    assert_true(quoit_lane_is_quiescent(&world.lane));
    close_world(&world);
}

/* So is that of a put with a signal. The signal follows in a frame, and the next one waits for it. */
static void test_a_large_put_with_a_signal(void **state)
{
    const struct quoit_frame signal = {.kind = QUOIT_FRAME_PUT_SIGNAL, .size = WORD_BYTES, .operand = 7};
    struct world world;
    (void)state;
    open_world(&world);
    struct quoit_frame large = signal, next = signal;
    large.bytes = LARGE_BYTES;
    large.operand2 = next.operand2 = world.layout.segment_heap;
    submit(&world, 0, large);
    submit(&world, 0, next);
    step(&world);
    assert_int_equal(world.net.put_count, 1);
    assert_int_equal(world.net.put_bytes, LARGE_BYTES);
    assert_int_equal(world.net.sent_count, 0);
    world.net.is_put_done = true;
    step(&world);
    assert_int_equal(world.net.sent_count, 1);
    assert_int_equal(world.net.sent_bytes, 2 * QUOIT_FRAME_BYTES);
    const struct quoit_frame first = sent_frame(&world, 0), second = sent_frame(&world, QUOIT_FRAME_BYTES);
    assert_int_equal(first.kind, QUOIT_FRAME_PUT_SIGNAL);
    assert_int_equal(first.flags, QUOIT_FRAME_LANDED | QUOIT_FRAME_PATIENT);
    assert_int_equal(first.bytes, LARGE_BYTES);
    assert_int_equal(first.operand, 7);
    assert_int_equal(second.flags, QUOIT_FRAME_PATIENT);
    assert_int_equal(second.bytes, 0);
    assert_int_equal(atomic_load(&channel_of(&world)->complete_tail), 0);
    acknowledge(&world, 1);
    assert_int_equal(atomic_load(&channel_of(&world)->complete_tail), 1);
    assert_true(world.net.is_awaited);
    acknowledge(&world, 2);
    assert_int_equal(atomic_load(&channel_of(&world)->complete_tail), 2);
    assert_false(world.net.is_awaited);
    assert_true(quoit_lane_is_quiescent(&world.lane));
    close_world(&world);
}

/* A put that the network does not take is tried again when there was no room; a host that has gone is lost, once; and
 * what can never be done ends the lane. */
static void test_a_put_that_is_refused(void **state)
{
    static const enum quoit_status statuses[] = {QUOIT_FULL, QUOIT_GONE, QUOIT_OUT_OF_RANGE};
    (void)state;
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        struct world world;
        open_world(&world);
        submit_put(&world, 0, LARGE_BYTES, 0);
        world.put_status = statuses[i];
        step(&world);
        step(&world);
        assert_int_equal(world.lane.submit_heads[0], 0);
        assert_int_equal(world.lost_count, statuses[i] == QUOIT_GONE);
        assert_int_equal(world.lane.status, statuses[i] == QUOIT_OUT_OF_RANGE ? QUOIT_OUT_OF_RANGE : QUOIT_OK);
        world.put_status = QUOIT_OK;
        step(&world);
        assert_int_equal(world.net.put_count, statuses[i] != QUOIT_OUT_OF_RANGE);
        close_world(&world);
    }
}

/* What the lane has sent last comes to itself. */
static void hand_back(struct world *world)
{
    memcpy(world->net.coming, world->net.sent, world->net.sent_bytes);
    world->net.coming_bytes = world->net.sent_bytes;
    step(world);
    assert_int_equal(world->lane.status, QUOIT_OK);
}

/* With a loopback a put from one PE to the other leaves, comes back, is executed and acknowledged. Without one no PE
 * may ask for that. */
static void test_a_put_to_the_own_host(void **state)
{
    struct world world;
    (void)state;
    make_world_with(&world, true);
    assert_int_equal(quoit_lane_open(&world.lane, &world.group, 0), QUOIT_OK);
    world.net.is_looped = true;
    memset(buffer_of(&world), 'p', WORD_BYTES);
    submit(&world, 0, (struct quoit_frame){.kind = QUOIT_FRAME_PUT, .bytes = WORD_BYTES, .dest_pe = 1});
    step(&world);
    assert_int_equal(world.lane.status, QUOIT_OK);
    assert_int_equal(world.net.sent_to, 0);
    assert_int_equal(world.net.sent_count, 1);
    assert_int_equal(sent_frame(&world, 0).kind, QUOIT_FRAME_PUT);
    assert_int_equal(heap_word(&world, 1, 0), 0);
    hand_back(&world);
    assert_int_equal(heap_word(&world, 0, 0), 0);
    assert_int_equal(heap_word(&world, 1, 0), 0x7070707070707070);
    assert_int_equal(world.net.sent_count, 2);
    assert_int_equal(sent_frame(&world, 0).kind, QUOIT_FRAME_ACK);
    assert_int_equal(atomic_load(&channel_of(&world)->complete_tail), 0);
    hand_back(&world);
    assert_int_equal(atomic_load(&channel_of(&world)->complete_tail), 1);
    assert_true(quoit_lane_is_quiescent(&world.lane));
    close_world(&world);

    open_world(&world);
    world.net.is_looped = true;
    submit_put(&world, 0, WORD_BYTES, 0);
    step(&world);
    assert_int_equal(world.lane.status, QUOIT_INVALID);
    assert_int_equal(world.net.sent_count, 0);
    close_world(&world);
}

static void test_an_acknowledgement_does_not_go_back(void **state)
{
    struct world world;
    (void)state;
    open_world(&world);
    submit_put(&world, 0, WORD_BYTES, 0);
    submit_put(&world, 0, WORD_BYTES, 0);
    step(&world);
    acknowledge(&world, 1);
    assert_int_equal(atomic_load(&channel_of(&world)->complete_tail), 1);
    assert_false(quoit_lane_is_quiescent(&world.lane)); /* the first request is over, the second is not */
    assert_true(world.net.is_awaited);
    acknowledge(&world, 2);
    assert_int_equal(atomic_load(&channel_of(&world)->complete_tail), 2);
    assert_true(quoit_lane_is_quiescent(&world.lane));
    assert_false(world.net.is_awaited);
    acknowledge(&world, 2);
    assert_int_equal(world.lane.status, QUOIT_OK);
    acknowledge(&world, 1);
    assert_int_equal(world.lane.status, QUOIT_INVALID);
    close_world(&world);
}

static void test_a_request_is_acknowledged_once(void **state)
{
    struct world world;
    (void)state;
    open_world(&world);
    const struct quoit_frame put = {.kind = QUOIT_FRAME_PUT,
                                    .source_host = 1,
                                    .bytes = WORD_BYTES,
                                    .offset = world.layout.segment_heap,
                                    .flow_sequence = 1};
    hand_in(&world, &put, message_bytes(&put));
    assert_int_equal(world.lane.status, QUOIT_OK);
    assert_memory_equal(world.memory + quoit_layout_segment(&world.layout, 0) + put.offset, "dddddddd", WORD_BYTES);
    assert_int_equal(world.net.sent_count, 1);
    assert_int_equal(world.net.sent_bytes, QUOIT_FRAME_BYTES);
    assert_int_equal(sent_frame(&world, 0).kind, QUOIT_FRAME_ACK);
    assert_int_equal(sent_frame(&world, 0).flow_sequence, 1);
    submit_put(&world, 0, WORD_BYTES, 0);
    step(&world);
    assert_int_equal(world.net.sent_count, 2);
    assert_int_equal(world.net.sent_bytes, QUOIT_FRAME_BYTES + WORD_BYTES);
    assert_int_equal(sent_frame(&world, 0).kind, QUOIT_FRAME_PUT);
    close_world(&world);
}

/* A word with a signal comes from the other host, the number-th request. */
static void hand_in_patient(struct world *world, uint32_t number)
{
    const struct quoit_frame put = {.kind = QUOIT_FRAME_PUT_SIGNAL,
                                    .flags = QUOIT_FRAME_PATIENT,
                                    .source_host = 1,
                                    .size = WORD_BYTES,
                                    .bytes = WORD_BYTES,
                                    .offset = world->layout.segment_heap,
                                    .operand = number,
                                    .operand2 = world->layout.segment_heap + WORD_BYTES,
                                    .flow_sequence = number};
    hand_in(world, &put, message_bytes(&put));
    assert_int_equal(world->lane.status, QUOIT_OK);
    assert_memory_equal(world->memory + quoit_layout_segment(&world->layout, 0) + put.operand2, &put.operand,
                        WORD_BYTES);
}

/* The last message is an acknowledgement alone, of all up to `sequence`. */
static void check_told(const struct world *world, uint32_t sent_count, uint32_t sequence)
{
    assert_int_equal(world->net.sent_count, sent_count);
    assert_int_equal(world->net.sent_bytes, QUOIT_FRAME_BYTES);
    assert_int_equal(sent_frame(world, 0).kind, QUOIT_FRAME_ACK);
    assert_int_equal(sent_frame(world, 0).flow_sequence, sequence);
}

static void test_a_patient_acknowledgement_travels_in_company(void **state)
{
    struct world world;
    (void)state;
    open_world(&world);
    hand_in_patient(&world, 1);
    assert_int_equal(world.net.sent_count, 0);
    assert_false(quoit_lane_is_quiescent(&world.lane));
    submit(&world, 0,
           (struct quoit_frame){
               .kind = QUOIT_FRAME_PUT_SIGNAL, .size = WORD_BYTES, .operand2 = world.layout.segment_heap});
    step(&world);
    assert_int_equal(world.net.sent_count, 1);
    assert_int_equal(world.net.sent_bytes, 2 * QUOIT_FRAME_BYTES);
    assert_int_equal(sent_frame(&world, 0).kind, QUOIT_FRAME_PUT_SIGNAL);
    assert_int_equal(sent_frame(&world, 0).flags, QUOIT_FRAME_PATIENT);
    assert_int_equal(sent_frame(&world, QUOIT_FRAME_BYTES).kind, QUOIT_FRAME_ACK);
    assert_int_equal(sent_frame(&world, QUOIT_FRAME_BYTES).flow_sequence, 1);
    acknowledge(&world, 1);
    assert_int_equal(world.net.sent_count, 1);
    assert_true(quoit_lane_is_quiescent(&world.lane));
    close_world(&world);
}

/* Where there is no company it goes alone: after a while, when more are pending, before a sleep, and with that of a
 * request that does not wait, which asks for it. */
static void test_a_patient_acknowledgement_is_not_forgotten(void **state)
{
    struct world world;
    uint32_t step_count = 0, sequence = 1;
    (void)state;
    open_world(&world);
    hand_in_patient(&world, sequence);
    while (world.net.sent_count == 0) {
        assert_in_range(++step_count, 1, 1000);
        step(&world);
    }
    check_told(&world, 1, sequence);
    while (world.net.sent_count == 1) {
        assert_in_range(sequence, 1, QUOIT_REQUESTS_A_CHANNEL / 2);
        hand_in_patient(&world, ++sequence);
    }
    check_told(&world, 2, sequence);
    hand_in_patient(&world, ++sequence);
    assert_int_equal(world.net.sent_count, 2);
    world.lane.engine->arm(&world.lane);
    assert_int_not_equal(world.lane.engine->step(&world.lane), 0); /* the network may have more to do now */
    check_told(&world, 3, sequence);
    assert_int_equal(world.lane.engine->step(&world.lane), 0);
    hand_in_patient(&world, ++sequence);
    assert_int_equal(world.net.sent_count, 3);
    const struct quoit_frame asks = {.kind = QUOIT_FRAME_PUT, .source_host = 1, .flow_sequence = ++sequence};
    hand_in(&world, &asks, message_bytes(&asks));
    check_told(&world, 4, sequence);
    close_world(&world);
}

/* A frame whose payload has landed already brings none, whatever it says of its length. */
static void test_nothing_is_read_behind_a_landed_frame(void **state)
{
    static const uint8_t kinds[] = {QUOIT_FRAME_PUT, QUOIT_FRAME_PUT_STRIDED};
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct world world;
        open_world(&world);
        const struct quoit_frame put = {.kind = kinds[i],
                                        .flags = QUOIT_FRAME_LANDED,
                                        .source_host = 1,
                                        .size = ELEMENT_BYTES,
                                        .bytes = 4 * ELEMENT_BYTES,
                                        .offset = world.layout.segment_heap,
                                        .operand = ELEMENT_BYTES,
                                        .flow_sequence = 1};
        char *landed = world.memory + quoit_layout_segment(&world.layout, 0) + put.offset;
        memset(landed, 'l', put.bytes);
        hand_in(&world, &put, QUOIT_FRAME_BYTES);
        assert_int_equal(world.lane.status, QUOIT_OK);
        assert_int_equal(sent_frame(&world, 0).kind, QUOIT_FRAME_ACK);
        for (uint32_t at = 0; at < put.bytes; at++)
            assert_int_equal(landed[at], 'l');
        close_world(&world);
    }
}

/* However many requests a PE hands over at once, the next one has its turn before the last of them. */
static void test_pes_take_turns(void **state)
{
    struct world world;
    (void)state;
    open_world(&world);
    for (uint32_t i = 0; i < QUOIT_REQUESTS_A_CHANNEL; i++)
        submit_put(&world, 0, WORD_BYTES, 0);
    submit_put(&world, 1, WORD_BYTES, 0);
    step(&world);
    assert_in_range(world.lane.submit_heads[0], 1, QUOIT_REQUESTS_A_CHANNEL - 1);
    assert_int_equal(world.lane.submit_heads[1], 1);
    for (uint32_t i = 0; i < QUOIT_REQUESTS_A_CHANNEL; i++)
        step(&world);
    assert_int_equal(world.lane.submit_heads[0], QUOIT_REQUESTS_A_CHANNEL);
    acknowledge(&world, QUOIT_REQUESTS_A_CHANNEL + 1);
    assert_true(quoit_lane_is_quiescent(&world.lane));
    close_world(&world);
}

/* A host that has left acknowledges no message any more. */
static void test_a_message_to_a_host_that_leaves(void **state)
{
    struct world world;
    struct quoit_outbox outbox;
    (void)state;
    open_world(&world);
    quoit_outbox_open(&outbox, &world.layout, world.memory);
    world.group.outbox = &outbox;
    assert_int_equal(quoit_outbox_send(&outbox, 1, 0, "dddddddd", WORD_BYTES), QUOIT_OK);
    step(&world);
    assert_int_equal(sent_frame(&world, 0).kind, QUOIT_FRAME_MESSAGE);
    assert_false(quoit_outbox_is_empty(&outbox));
    world.net.config.on_left(world.net.config.arg, 1);
    assert_true(quoit_outbox_is_empty(&outbox));
    assert_true(quoit_lane_is_quiescent(&world.lane));
    assert_int_equal(world.lost_count, 0);
    world.group.outbox = NULL;
    quoit_outbox_close(&outbox);
    close_world(&world);
}

/* A PE whose memory is damaged. */
static void test_a_request_that_is_under_way(void **state)
{
    struct world world;
    (void)state;
    open_world(&world);
    submit_put(&world, 0, WORD_BYTES, 0);
    channel_of(&world)->submit[1] = 0;
    atomic_store(&channel_of(&world)->submit_tail, 2);
    step(&world);
    assert_int_equal(world.lane.status, QUOIT_INVALID);
    assert_int_equal(world.lane.submit_heads[0], 1);
    close_world(&world);
}

/* Sleep */

/* Whether the lane is woken when it sleeps now, for limit_ns at most. `fd` becomes readable meanwhile, if it is one. */
static bool is_woken(struct world *world, uint64_t limit_ns, int fd)
{
    const uint64_t one = 1, end_ns = quoit_clock_now_ns() + limit_ns;
    struct quoit_park *park = world->lane.waiter.park;
    uint32_t key = quoit_park_prepare(park);
    errno = EINTR; /* as a signal may have left it */
    world->lane.engine->arm(&world->lane);
    if (fd >= 0)
        assert_int_equal(write(fd, &one, sizeof one), sizeof one);
    while (!quoit_park_was_woken(park, key) && quoit_clock_now_ns() < end_ns)
        quoit_clock_sleep_ns(200000);
    bool was_woken = quoit_park_was_woken(park, key);
    quoit_park_cancel(park);
    return was_woken;
}

/* The descriptor says something only while quoit_net_arm() says so; else the network is looked at every so often. */
static void test_what_cannot_be_waited_for_is_polled(void **state)
{
    (void)state;
    for (int has_fd = 0; has_fd < 2; has_fd++)
        for (int can_arm = 0; can_arm < 2; can_arm++) {
            struct world world;
            make_world(&world);
            int fd = has_fd ? eventfd(0, EFD_CLOEXEC) : -1;
            assert_int_equal(fd >= 0, has_fd);
            world.wait_fd = fd;
            world.can_arm = can_arm != 0;
            world.until_ns = FAR_NS;
            assert_int_equal(quoit_lane_open(&world.lane, &world.group, 0), QUOIT_OK);
            bool is_polled = !has_fd || !can_arm;
            assert_int_equal(is_woken(&world, is_polled ? WOKEN_NS : ASLEEP_NS, -1), is_polled);
            close_world(&world);
            if (fd >= 0)
                close(fd);
        }
}

/* A lane that sleeps for long; returns the descriptor that wakes it, which the caller closes. */
static int open_asleep(struct world *world)
{
    int fd = eventfd(0, EFD_CLOEXEC);
    assert_true(fd >= 0);
    make_world(world);
    world->wait_fd = fd;
    world->can_arm = true;
    world->until_ns = FAR_NS;
    assert_int_equal(quoit_lane_open(&world->lane, &world->group, 0), QUOIT_OK);
    assert_false(is_woken(world, ASLEEP_NS, -1));
    return fd;
}

static void test_the_network_wakes_the_lane(void **state)
{
    struct world world;
    (void)state;
    int fd = open_asleep(&world);
    assert_true(is_woken(&world, WOKEN_NS, fd)); /* the thread polls already */
    uint64_t count;
    assert_int_equal(read(fd, &count, sizeof count), sizeof count);
    world.until_ns = quoit_clock_now_ns() + ASLEEP_NS;
    assert_true(is_woken(&world, WOKEN_NS, -1)); /* by the time, for heartbeats */
    assert_true(quoit_clock_now_ns() >= world.until_ns);
    world.until_ns = FAR_NS;
    assert_false(is_woken(&world, ASLEEP_NS, -1));
    close_world(&world);
    close(fd);
}

/* The thread still waits out an earlier sleep when the next one must end sooner: it waits anew, and wakes nobody. */
static void test_a_sleep_that_ends_sooner(void **state)
{
    struct world world;
    (void)state;
    int fd = open_asleep(&world);
    for (uint32_t i = 0; i < 4; i++) {
        world.until_ns = FAR_NS / 2 - i;
        assert_false(is_woken(&world, ASLEEP_NS, -1));
    }
    world.until_ns = quoit_clock_now_ns() + ASLEEP_NS;
    assert_true(is_woken(&world, WOKEN_NS, -1));
    assert_true(quoit_clock_now_ns() >= world.until_ns);
    world.until_ns = FAR_NS;
    assert_false(is_woken(&world, ASLEEP_NS, -1));
    assert_true(is_woken(&world, WOKEN_NS, fd));
    close_world(&world);
    close(fd);
}

/* The machine */

static void test_who_shares_processors(void **state)
{
    (void)state;
    for (int is_far = 0; is_far < 2; is_far++) {
        struct world world;
        make_world(&world);
        struct quoit_machine *machine = &((struct quoit_host_header *)world.memory)->machine;
        machine->core_count = 4; /* of each host; it has two PEs and a lane */
        world.is_far = is_far != 0;
        assert_int_equal(quoit_lane_open(&world.lane, &world.group, 0), QUOIT_OK);
        assert_int_equal(machine->pe_count, is_far ? 2 : 4);
        assert_int_equal(machine->core_count, 4);
        assert_int_equal(quoit_wait_shares(machine->policy), !is_far);
        assert_int_equal(quoit_wait_shares(world.lane.waiter.policy), !is_far);
        close_world(&world);
    }
}

/* Memory */

static void test_no_memory_for_what_is_sent(void **state)
{
    struct world world;
    (void)state;
    open_world(&world);
    submit_put(&world, 0, WORD_BYTES, 0);
    rig_allocations_begin(1);
    step(&world);
    assert_true(rig_allocations_has_failed());
    assert_int_equal(rig_allocations_end(), 0);
    assert_int_equal(world.lane.status, QUOIT_NO_MEMORY);
    assert_int_equal(world.net.sent_count, 0);
    close_world(&world);
}

static void test_no_memory(void **state)
{
    struct world world;
    bool has_failed = true;
    (void)state;
    for (uint32_t fails_at = 1; has_failed; fails_at++) {
        assert_in_range(fails_at, 1, ALLOCATION_MAX);
        make_world(&world);
        rig_allocations_begin(fails_at);
        enum quoit_status status = quoit_lane_open(&world.lane, &world.group, 0);
        has_failed = rig_allocations_has_failed();
        quoit_lane_close(&world.lane);
        assert_int_equal(rig_allocations_end(), 0);
        assert_int_equal(status, has_failed ? QUOIT_NO_MEMORY : QUOIT_OK);
        free_world(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_put_of_the_pe_itself_wakes),
        cmocka_unit_test(test_a_reply_completes_its_request),
        cmocka_unit_test(test_a_part_goes_to_its_place),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_many_puts_in_a_frame),
        cmocka_unit_test(test_many_puts_are_taken),
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_a_put_behind_a_fence_waits),
        cmocka_unit_test(test_a_large_put_with_a_signal),
        cmocka_unit_test(test_a_put_that_is_refused),
        cmocka_unit_test(test_a_put_to_the_own_host),
        cmocka_unit_test(test_an_acknowledgement_does_not_go_back),
        cmocka_unit_test(test_a_request_is_acknowledged_once),
        cmocka_unit_test(test_a_patient_acknowledgement_travels_in_company),
        cmocka_unit_test(test_a_patient_acknowledgement_is_not_forgotten),
        cmocka_unit_test(test_nothing_is_read_behind_a_landed_frame),
        cmocka_unit_test(test_pes_take_turns),
        cmocka_unit_test(test_a_message_to_a_host_that_leaves),
        cmocka_unit_test(test_a_request_that_is_under_way),
        cmocka_unit_test(test_what_cannot_be_waited_for_is_polled),
        cmocka_unit_test(test_the_network_wakes_the_lane),
        cmocka_unit_test(test_a_sleep_that_ends_sooner),
        cmocka_unit_test(test_who_shares_processors),
        cmocka_unit_test(test_no_memory_for_what_is_sent),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
