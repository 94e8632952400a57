/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: frames that PEs of other hosts send by themselves are executed, and each response goes to the PE that sent it;
 * what no PE sends ends the lane and changes no memory. Method: the engine runs on a network of network_rig.h; each
 * malformed frame differs from a good one in one thing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "proxy/network_rig.h"

#define PE_ENDPOINT 5u /* the end of PE 3, the second of host 1; hosts come first */

static struct quoit_frame pe_endpoint_frame(const struct world *world, uint32_t sequence)
{
    return (struct quoit_frame){.kind = QUOIT_FRAME_AMO,
                                .op = QUOIT_AMO_ADD,
                                .size = 8,
                                .source_host = 1,
                                .source_pe = 1,
                                .dest_pe = 1,
                                .offset = world->layout.segment_heap + 8,
                                .operand = 5,
                                .flow_sequence = sequence};
}

/* A PE of the other host sends frames by itself: it, and nobody else, gets the response. */
static void test_frames_of_a_pe_itself(void **state)
{
    struct world world;
    (void)state;
    open_world(&world);
    assert_int_equal(world.net.config.pe_endpoint_count, 4);
    assert_true(quoit_memory_contacts(&world.layout, world.memory)->takes_pe_endpoints);
    struct quoit_frame frame = pe_endpoint_frame(&world, 1);
    world.net.coming_from = PE_ENDPOINT;
    hand_in(&world, &frame, QUOIT_FRAME_BYTES);
    assert_int_equal(heap_word(&world, 1, 1), 5);
    assert_int_equal(world.net.sent_to, PE_ENDPOINT);
    assert_int_equal(sent_frame(&world, 0).kind, QUOIT_FRAME_ACK);
    assert_int_equal(sent_frame(&world, 0).flow_sequence, 1);
    assert_int_equal(sent_frame(&world, 0).dest_host, 1);
    frame.kind = QUOIT_FRAME_AMO_FETCH;
    frame.token = 9;
    hand_in(&world, &frame, QUOIT_FRAME_BYTES);
    assert_int_equal(heap_word(&world, 1, 1), 10);
    assert_int_equal(world.net.sent_count, 2);
    assert_int_equal(world.net.sent_to, PE_ENDPOINT);
    assert_int_equal(sent_frame(&world, 0).kind, QUOIT_FRAME_VALUE);
    assert_int_equal(sent_frame(&world, 0).token, 9);
    assert_int_equal(sent_frame(&world, 0).operand, 5);
    world.net.coming_from = 0; /* its host counts by itself */
    frame = pe_endpoint_frame(&world, 1);
    hand_in(&world, &frame, QUOIT_FRAME_BYTES);
    assert_int_equal(world.net.sent_to, 1);
    world.net.config.on_lost(world.net.config.arg, PE_ENDPOINT, QUOIT_GONE); /* the next one begins anew */
    assert_int_equal(world.lost_count, 0);
    world.net.coming_from = PE_ENDPOINT;
    hand_in(&world, &frame, QUOIT_FRAME_BYTES);
    assert_int_equal(world.lane.status, QUOIT_OK);
    assert_int_equal(world.net.sent_to, PE_ENDPOINT);
    assert_int_equal(sent_frame(&world, 0).flow_sequence, 1);
    assert_int_equal(heap_word(&world, 1, 1), 20);
    close_world(&world);
}

static void of_another_host(struct quoit_frame *frame)
{
    frame->source_host = 0;
}
static void of_another_pe(struct quoit_frame *frame)
{
    frame->source_pe = 0;
}
static void to_another_host(struct quoit_frame *frame)
{
    frame->dest_host = 1;
}
static void one_too_far(struct quoit_frame *frame)
{
    frame->flow_sequence = 2;
}
static void outside(struct quoit_frame *frame)
{
    frame->offset = UINT64_MAX - 7;
}
static void an_acknowledgement(struct quoit_frame *frame)
{
    *frame = (struct quoit_frame){.kind = QUOIT_FRAME_ACK, .source_host = 1, .source_pe = 1};
}
static void a_get(struct quoit_frame *frame)
{
    frame->kind = QUOIT_FRAME_GET_STRIDED;
    frame->bytes = 8;
    frame->operand = 8;
}
static void a_message(struct quoit_frame *frame)
{
    frame->kind = QUOIT_FRAME_MESSAGE;
}

static void test_malformed_of_a_pe_itself(void **state)
{
    static void (*const mistakes[])(struct quoit_frame * frame) = {
        of_another_host, of_another_pe, to_another_host, one_too_far, outside, an_acknowledgement, a_get, a_message};
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        struct world world;
        open_world(&world);
        struct quoit_frame frame = pe_endpoint_frame(&world, 1);
        mistakes[i](&frame);
        world.net.coming_from = PE_ENDPOINT;
        hand_in(&world, &frame, QUOIT_FRAME_BYTES);
        if (world.lane.status != QUOIT_INVALID || world.net.sent_count != 0 || heap_word(&world, 1, 1) != 0)
            fail_msg("mistake %zu: status %s, %u messages", i, quoit_status_text(world.lane.status),
                     world.net.sent_count);
        close_world(&world);
    }
}

/* Descriptors suffice for as many. */
static void test_none_in_a_large_job(void **state)
{
    struct quoit_job_config job = {
        .host_count = 2, .pe_count = QUOIT_PE_ENDPOINTS_MAX, .protocol = QUOIT_PROTOCOL_NETWORK};
    struct rlimit limit, few;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    few = limit;
    few.rlim_cur = 2 * QUOIT_PE_ENDPOINTS_MAX;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_int_equal(quoit_contacts_pe_endpoint_count(&job), QUOIT_PE_ENDPOINTS_MAX);
    few.rlim_cur--;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_int_equal(quoit_contacts_pe_endpoint_count(&job), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    job.pe_count++;
    assert_int_equal(quoit_contacts_pe_endpoint_count(&job), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_of_a_pe_itself),
        cmocka_unit_test(test_malformed_of_a_pe_itself),
        cmocka_unit_test(test_none_in_a_large_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
