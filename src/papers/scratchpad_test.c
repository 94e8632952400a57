/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: the rules of the papers' protocol: states of a bit, ownership and contents of the scratchpads, and a choice of
 * bypass buffers that leaves no cycle in which full buffers could wait for each other.
 * Method: tables written out again here; random frames packed and unpacked (QUOIT_SEED replays); for rings of 2 to 9
 * hosts every route of every transfer is walked, each step between buffers is an edge, and the graph must have no
 * cycle.
 */
#include "papers/scratchpad.h"
#include "base/prng.h"
#include "ring/route.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HOSTS_MAX    9
#define VERTICES_MAX (HOSTS_MAX * QUOIT_SIDE_COUNT * QUOIT_BYPASS_COUNT)

static void test_a_bit_goes_round(void **state)
{
    (void)state;
    static const enum quoit_transfer_state round[] = {QUOIT_TRANSFER_FREE, QUOIT_TRANSFER_COPYING, QUOIT_TRANSFER_READY,
                                                      QUOIT_TRANSFER_OFFERED};
    static const char *const names[] = {"free", "copying", "ready", "offered"};
    enum quoit_transfer_state now = QUOIT_TRANSFER_FREE;
    for (int i = 0; i < 10; i++) {
        for (int to = 0; to < QUOIT_TRANSFER_STATE_COUNT; to++)
            assert_int_equal(quoit_transfer_may_move(round[i % 4], round[to]), (i + 1) % 4 == to);
        assert_string_equal(quoit_transfer_state_name(now), names[i % 4]);
        quoit_transfer_move(&now, round[(i + 1) % 4]);
        assert_int_equal(now, round[(i + 1) % 4]);
    }
}

static void test_scratchpads_have_one_owner(void **state)
{
    (void)state;
    struct quoit_scratchpads scratchpads = {0};
    for (uint32_t owner = 0; owner < QUOIT_LANES_MAX; owner++) {
        assert_true(quoit_scratchpads_take(&scratchpads, owner));
        for (uint32_t lane = 0; lane < QUOIT_LANES_MAX; lane++)
            assert_false(quoit_scratchpads_take(&scratchpads, lane));
        quoit_scratchpads_release(&scratchpads, owner);
    }
}

static void test_metadata_there_and_back(void **state)
{
    (void)state;
    const char *seed = getenv("QUOIT_SEED");
    struct quoit_prng prng = {.state = seed ? strtoull(seed, NULL, 10) : 1};
    print_message("QUOIT_SEED=%llu\n", (unsigned long long)prng.state);
    for (int i = 0; i < 1000; i++) {
        uint64_t chance[8];
        for (int j = 0; j < 8; j++)
            chance[j] = quoit_prng_next(&prng);
        struct quoit_frame back, frame = {
                                     .kind = (uint8_t)(chance[0] % QUOIT_FRAME_KIND_COUNT),
                                     .flags = chance[0] >> 8 & 7,
                                     .source_host = chance[1] % QUOIT_RING_HOSTS_MAX,
                                     .dest_host = (chance[1] >> 16) % QUOIT_RING_HOSTS_MAX,
                                     .source_pe = (chance[1] >> 32) % QUOIT_LOCAL_PES_MAX,
                                     .dest_pe = (chance[1] >> 48) % QUOIT_LOCAL_PES_MAX,
                                     .token = (uint32_t)(chance[2] % (QUOIT_LOCAL_PES_MAX * QUOIT_REQUESTS_A_CHANNEL)),
                                     .bytes = (uint32_t)(chance[3] % (QUOIT_CHUNK_BYTES_MAX + 1)),
                                     .offset = chance[4] & ((1ull << 37) - 1),
                                 };
        uint32_t words[QUOIT_METADATA_WORDS];
        uint64_t count = chance[5];
        bool has_head;
        quoit_scratchpad_pack(&frame, count, words);
        assert_int_equal(quoit_scratchpad_unpack(words, count, &back, &has_head), QUOIT_OK);
        assert_memory_equal(&back, &frame, sizeof frame);
        assert_int_equal(has_head, quoit_scratchpad_has_head(&frame));
        assert_int_equal(quoit_scratchpad_unpack(words, count + 1, &back, &has_head), QUOIT_INVALID);
    }
}

static void test_operands_travel_where_they_are_used(void **state)
{
    (void)state;
    static const struct {
        uint8_t kind, size;
        bool has_head; /* for a frame that is not traced */
    } cases[] = {
        {QUOIT_FRAME_PUT, 0, false},      {QUOIT_FRAME_PUT_STRIDED, 4, true}, {QUOIT_FRAME_PUT_SIGNAL, 8, true},
        {QUOIT_FRAME_GET, 0, false},      {QUOIT_FRAME_GET_STRIDED, 4, true}, {QUOIT_FRAME_AMO, 8, true},
        {QUOIT_FRAME_AMO_FETCH, 8, true}, {QUOIT_FRAME_DATA, 0, false},       {QUOIT_FRAME_DATA, 4, true},
        {QUOIT_FRAME_VALUE, 0, true},     {QUOIT_FRAME_ACK, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct quoit_frame frame = {.kind = cases[i].kind, .size = cases[i].size};
        assert_int_equal(quoit_scratchpad_has_head(&frame), cases[i].has_head);
        frame.trace = 1;
        assert_true(quoit_scratchpad_has_head(&frame));
    }
}

static void test_replies(void **state)
{
    (void)state;
    struct quoit_frame request = {.kind = QUOIT_FRAME_GET_STRIDED,
                                  .size = 4,
                                  .flags = QUOIT_FRAME_RIGHT | QUOIT_FRAME_ORDERED,
                                  .source_host = 1,
                                  .dest_host = 3,
                                  .source_pe = 5,
                                  .dest_pe = 7,
                                  .bytes = 40,
                                  .offset = 4096,
                                  .token = 99,
                                  .trace = 77,
                                  .operand = 12};
    struct quoit_frame reply = quoit_scratchpad_reply(&request, 0);
    struct quoit_frame wanted = {.kind = QUOIT_FRAME_DATA,
                                 .size = 4,
                                 .flags = QUOIT_FRAME_RIGHT,
                                 .source_host = 3,
                                 .dest_host = 1,
                                 .source_pe = 7,
                                 .dest_pe = 5,
                                 .bytes = 40,
                                 .offset = 4096,
                                 .token = 99,
                                 .trace = 77,
                                 .operand = 12};
    assert_memory_equal(&reply, &wanted, sizeof reply);
    request.kind = QUOIT_FRAME_GET;
    wanted.size = 0;
    wanted.operand = 0;
    reply = quoit_scratchpad_reply(&request, 0);
    assert_memory_equal(&reply, &wanted, sizeof reply);
    request.kind = QUOIT_FRAME_AMO_FETCH;
    wanted.kind = QUOIT_FRAME_VALUE;
    wanted.bytes = 0;
    wanted.offset = 0;
    wanted.operand = 1234;
    reply = quoit_scratchpad_reply(&request, 1234);
    assert_memory_equal(&reply, &wanted, sizeof reply);
    request.kind = QUOIT_FRAME_PUT;
    wanted.kind = QUOIT_FRAME_ACK;
    wanted.operand = 0;
    reply = quoit_scratchpad_reply(&request, 1234);
    assert_memory_equal(&reply, &wanted, sizeof reply);
}

/* A vertex: the host of a buffer, the direction of its transfers, which of the six. */
static uint32_t vertex_of(uint32_t host, enum quoit_side heading, uint32_t buffer)
{
    return (host * QUOIT_SIDE_COUNT + heading) * QUOIT_BYPASS_COUNT + buffer;
}

struct graph {
    bool has_edge[VERTICES_MAX][VERTICES_MAX];
    unsigned char mark[VERTICES_MAX]; /* 0 not seen, 1 on the path, 2 done */
};

static bool has_cycle_from(struct graph *graph, uint32_t vertex)
{
    graph->mark[vertex] = 1;
    for (uint32_t next = 0; next < VERTICES_MAX; next++)
        if (graph->has_edge[vertex][next] && graph->mark[next] != 2 &&
            (graph->mark[next] == 1 || has_cycle_from(graph, next)))
            return true;
    graph->mark[vertex] = 2;
    return false;
}

/* Walks the frame's route; the buffer that it holds waits for the next one. Returns the host where it is delivered. */
static uint32_t walk(struct graph *graph, const struct quoit_frame *frame, uint32_t host_count)
{
    enum quoit_side heading = quoit_transfer_heading(frame);
    uint32_t before = VERTICES_MAX;
    for (uint32_t host = frame->source_host; host != frame->dest_host;) {
        host = quoit_ring_neighbour(host_count, heading, host);
        uint32_t buffer = quoit_bypass_of(frame, host);
        assert_int_equal(quoit_bypass_is_local(buffer), host == frame->dest_host);
        uint32_t vertex = vertex_of(host, heading, buffer);
        if (before != VERTICES_MAX)
            graph->has_edge[before][vertex] = true;
        before = vertex;
    }
    return before;
}

static void add_ways(struct graph *graph, uint32_t host_count, uint8_t kind, uint32_t from, uint32_t to)
{
    struct quoit_frame request = {.kind = kind, .source_host = (uint16_t)from, .dest_host = (uint16_t)to};
    struct quoit_frame reply = quoit_scratchpad_reply(&request, 0);
    enum quoit_side heading = quoit_transfer_heading(&reply);
    uint32_t delivered = walk(graph, &request, host_count);
    walk(graph, &reply, host_count);
    /* A request waits for room for its reply, that is for the first buffer of the reply's route. */
    uint32_t next = quoit_ring_neighbour(host_count, heading, to);
    graph->has_edge[delivered][vertex_of(next, heading, quoit_bypass_of(&reply, next))] = true;
}

/* Payload and replies travel in one direction; the request of a get travels towards the source of its data. */
static void test_headings(void **state)
{
    (void)state;
    static const uint8_t to_the_left[] = {QUOIT_FRAME_GET, QUOIT_FRAME_GET_STRIDED};
    for (uint8_t kind = QUOIT_FRAME_PUT; kind < QUOIT_FRAME_KIND_COUNT; kind++) {
        struct quoit_frame frame = {.kind = kind};
        bool is_left = memchr(to_the_left, kind, sizeof to_the_left) != NULL;
        assert_int_equal(quoit_transfer_heading(&frame), is_left ? QUOIT_LEFT : QUOIT_RIGHT);
    }
}

static void test_no_circle_of_buffers(void **state)
{
    (void)state;
    struct graph *graph = calloc(1, sizeof *graph);
    for (uint32_t host_count = 2; host_count <= HOSTS_MAX; host_count++) {
        memset(graph, 0, sizeof *graph);
        for (uint32_t from = 0; from < host_count; from++)
            for (uint32_t to = 0; to < host_count; to++)
                for (uint8_t kind = QUOIT_FRAME_PUT; kind < QUOIT_FRAME_DATA && from != to; kind++)
                    add_ways(graph, host_count, kind, from, to);
        for (uint32_t vertex = 0; vertex < VERTICES_MAX; vertex++)
            assert_false(graph->mark[vertex] == 0 && has_cycle_from(graph, vertex));
    }
    free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_bit_goes_round),
        cmocka_unit_test(test_scratchpads_have_one_owner),
        cmocka_unit_test(test_metadata_there_and_back),
        cmocka_unit_test(test_operands_travel_where_they_are_used),
        cmocka_unit_test(test_replies),
        cmocka_unit_test(test_headings),
        cmocka_unit_test(test_no_circle_of_buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
