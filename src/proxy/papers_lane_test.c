/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a lane of the papers' protocol executes what its neighbour offers and responds to it, and ends the job on what
 * no correct host writes, unless the link is down or was, which wipes the scratchpads. Payload goes by DMA or is
 * copied, as the job asks. Its lanes take requests first come, first served, in any order that no fence forbids, and
 * PEs have their turns. Method: the lane of one host of two, over ports whose operations
 * are a neighbour of this file: it holds what the lane writes, and offers what the test says from the left. */
#include "proxy/lane_rig.h"
#include "papers/lane.h"

#define STEPS       4
#define LARGE_BYTES CHUNK_BYTES /* goes by DMA */
#define WORD_BYTES  8u
#define OTHER_EPOCH 1u

/* Operations of a port have no handle but the port, which is the driver's. */
static struct {
    const struct quoit_port *left;
    uint32_t offered_words[QUOIT_SCRATCHPAD_COUNT], taken_words[QUOIT_SCRATCHPAD_COUNT];
    uint64_t bits, rung_bits;
    uint64_t offered_count, placed_count[QUOIT_BYPASS_COUNT];
    uint64_t dma_cookie;
    uint32_t write_count, dma_count, epoch;
    bool is_down, has_dma, refuses_dma;
} neighbour;

static bool link_is_up(const struct quoit_port *port)
{
    return port != neighbour.left || !neighbour.is_down;
}

static uint32_t link_epoch(const struct quoit_port *port)
{
    return port == neighbour.left ? neighbour.epoch : 0;
}

static enum quoit_status take_write(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                    const void *source, size_t bytes)
{
    (void)port, (void)window, (void)offset, (void)source, (void)bytes;
    neighbour.write_count++;
    return QUOIT_OK;
}

static enum quoit_status take_response(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                       uint64_t value)
{
    (void)port, (void)window, (void)offset, (void)value;
    return QUOIT_OK;
}

static uint32_t offer_word(struct quoit_port *port, uint32_t index)
{
    assert_ptr_equal(port, neighbour.left);
    return neighbour.offered_words[index];
}

static void take_metadata(struct quoit_port *port, uint32_t index, uint32_t value)
{
    assert_ptr_not_equal(port, neighbour.left);
    neighbour.taken_words[index] = value;
}

static uint64_t offer_bits(struct quoit_port *port)
{
    return port == neighbour.left ? neighbour.bits : 0;
}

static void clear_bits(struct quoit_port *port, uint64_t bits)
{
    neighbour.bits &= port == neighbour.left ? ~bits : ~UINT64_C(0);
}

static bool take_ring(struct quoit_port *port, uint64_t bits)
{
    neighbour.rung_bits |= port == neighbour.left ? 0 : bits;
    return true;
}

static enum quoit_status take_dma(struct quoit_port *port, uint32_t channel, enum quoit_window window, uint64_t offset,
                                  const void *source, size_t bytes, uint64_t cookie)
{
    (void)port, (void)channel, (void)window, (void)offset, (void)source, (void)bytes;
    if (neighbour.refuses_dma)
        return QUOIT_UNSUPPORTED;
    neighbour.dma_count++;
    neighbour.dma_cookie = cookie;
    neighbour.has_dma = true;
    return QUOIT_OK;
}

static uint32_t complete_dma(struct quoit_port *port, uint32_t channel, struct quoit_dma_done *done_out,
                             uint32_t max_count)
{
    (void)port, (void)channel, (void)max_count;
    bool had_dma = neighbour.has_dma;
    neighbour.has_dma = false;
    done_out[0] = (struct quoit_dma_done){.cookie = neighbour.dma_cookie, .status = QUOIT_OK};
    return had_dma;
}

static void open_world_of(struct world *world, uint32_t lane_count)
{
    open_ports(world, QUOIT_PROTOCOL_SCRATCHPAD, QUOIT_BARRIER_AUTO, lane_count);
    memset(&neighbour, 0, sizeof neighbour);
    neighbour.left = world->group.ports[QUOIT_LEFT];
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        struct quoit_port_ops *ops = &world->group.ports[side]->ops;
        ops->link_is_up = link_is_up;
        ops->link_epoch = link_epoch;
        ops->write = take_write;
        ops->write64 = take_response;
        ops->scratchpad_read = offer_word;
        ops->scratchpad_peer_write = take_metadata;
        ops->doorbell_read = offer_bits;
        ops->doorbell_clear = clear_bits;
        ops->ring = take_ring;
        ops->dma_submit = take_dma;
        ops->dma_poll = complete_dma;
    }
    assert_int_equal(open_lanes(world, &lane_count), QUOIT_OK);
}

static void open_world(struct world *world)
{
    open_world_of(world, 1);
}

static void close_world(struct world *world)
{
    close_lanes(world, world->group.layout->job.lane_count);
    close_ports(world);
}

static void steps(struct world *world)
{
    for (int i = 0; i < STEPS && world->lanes[0].status == QUOIT_OK; i++)
        step(world);
}

/* A transfer of host 1 to host 0, with payload of 'd'. `skew`: by which its count is wrong. */
static void offer(struct world *world, const struct quoit_frame *frame, uint32_t skew)
{
    const struct quoit_lane *lane = &world->lanes[0];
    uint32_t buffer = quoit_bypass_of(frame, 0);
    uint32_t place = buffer * QUOIT_BYPASS_DEPTH + (uint32_t)(neighbour.placed_count[buffer]++ % QUOIT_BYPASS_DEPTH);
    char *at = lane->memory + lane->layout->slots[QUOIT_LEFT] + quoit_bypass_offset(lane->layout, 0, place);
    assert_false(quoit_scratchpad_has_head(frame));
    memset(at + QUOIT_FRAME_BYTES, 'd', frame->bytes);
    quoit_scratchpad_pack(frame, (++neighbour.offered_count + skew) * QUOIT_LANES_MAX, neighbour.offered_words);
    neighbour.bits |= quoit_doorbell_of_lane(&lane->own_doorbells[QUOIT_LEFT], 0);
    steps(world);
}

static struct quoit_frame put_of_host_1(const struct world *world)
{
    return (struct quoit_frame){.kind = QUOIT_FRAME_PUT,
                                .flags = QUOIT_FRAME_RIGHT,
                                .source_host = 1,
                                .bytes = WORD_BYTES,
                                .offset = world->group.layout->segment_heap,
                                .token = 3};
}

/* What the lane offers to its right neighbour, as its first transfer. */
static struct quoit_frame taken(void)
{
    struct quoit_frame frame;
    bool has_head;
    assert_int_equal(quoit_scratchpad_unpack(neighbour.taken_words, QUOIT_LANES_MAX, &frame, &has_head), QUOIT_OK);
    return frame;
}

static void test_a_put_is_executed_and_responded_to(void **state)
{
    struct world world;
    (void)state;
    open_world(&world);
    const struct quoit_frame put = put_of_host_1(&world);
    offer(&world, &put, 0);
    assert_int_equal(world.lanes[0].status, QUOIT_OK);
    assert_memory_equal(world.lanes[0].memory + quoit_layout_segment(world.group.layout, 0) + put.offset, "dddddddd",
                        WORD_BYTES);
    const struct quoit_frame response = taken();
    assert_int_equal(response.kind, QUOIT_FRAME_ACK);
    assert_int_equal(response.source_host, 0);
    assert_int_equal(response.dest_host, 1);
    assert_int_equal(response.token, put.token);
    close_world(&world);
}

/* What is offered without its turn, by a link that may be down, or have been. */
static void test_metadata_of_another_turn(void **state)
{
    static const struct {
        bool is_down;
        uint32_t epoch;
        enum quoit_status status;
    } cases[] = {{false, 0, QUOIT_INVALID}, {true, 0, QUOIT_LINK_DOWN}, {false, OTHER_EPOCH, QUOIT_LINK_DOWN}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world world;
        open_world(&world);
        const struct quoit_frame put = put_of_host_1(&world);
        neighbour.is_down = cases[i].is_down;
        neighbour.epoch = cases[i].epoch;
        offer(&world, &put, 1);
        assert_int_equal(world.lanes[0].status, cases[i].status);
        close_world(&world);
    }
}

static void test_frames_that_no_host_sends(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 4; wrong++) {
        struct world world;
        open_world(&world);
        struct quoit_frame frame = put_of_host_1(&world);
        if (wrong == 0)
            frame.kind = QUOIT_FRAME_GET; /* its way is the other one */
        if (wrong == 1)
            frame.dest_pe = 3; /* of three */
        if (wrong == 2)
            frame.offset = world.group.layout->segment_stride;
        if (wrong == 3) { /* nobody waits for it */
            frame.kind = QUOIT_FRAME_ACK;
            frame.bytes = 0;
        }
        offer(&world, &frame, 0);
        assert_int_equal(world.lanes[0].status, QUOIT_INVALID);
        close_world(&world);
    }
}

/* A PE whose memory is damaged: nothing is sent for it. */
static void test_a_request_that_is_not_valid(void **state)
{
    struct world world;
    (void)state;
    open_world(&world);
    submit(&world, WORD_BYTES);
    quoit_memory_channel(world.group.layout, world.group.memory, 0, 0)->requests[0].frame.dest_host = 2;
    steps(&world);
    assert_int_equal(world.lanes[0].status, QUOIT_INVALID);
    assert_int_equal(neighbour.write_count, 0);
    assert_int_equal(neighbour.rung_bits, 0);
    close_world(&world);
}

static void test_payload_goes_as_the_job_asks(void **state)
{
    static const struct {
        enum quoit_payload_kind kind;
        uint32_t bytes;
        bool refuses_dma, is_dma;
    } cases[] = {{QUOIT_PAYLOAD_DMA, LARGE_BYTES, false, true},
                 {QUOIT_PAYLOAD_DMA, LARGE_BYTES, true, false},
                 {QUOIT_PAYLOAD_DMA, WORD_BYTES, false, false},
                 {QUOIT_PAYLOAD_COPY, LARGE_BYTES, false, false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world world;
        open_world(&world);
        world.rig.hosts[0].layout.job.payload = (uint8_t)cases[i].kind;
        neighbour.refuses_dma = cases[i].refuses_dma;
        submit(&world, cases[i].bytes);
        steps(&world);
        assert_int_equal(world.lanes[0].status, QUOIT_OK);
        assert_int_equal(neighbour.dma_count, cases[i].is_dma);
        assert_int_equal(neighbour.write_count, !cases[i].is_dma);
        assert_int_equal(taken().kind, QUOIT_FRAME_PUT);
        assert_int_equal(taken().bytes, cases[i].bytes);
        close_world(&world);
    }
}

/* The neighbour has taken the lane's first `count` transfers, all of requests to it. */
static void take_transfers(struct world *world, uint64_t count)
{
    const struct quoit_frame frame = {.kind = QUOIT_FRAME_PUT, .dest_host = 1};
    const uint32_t words[] = {QUOIT_RESPONSE_READ, QUOIT_RESPONSE_BYPASS + quoit_bypass_of(&frame, 1)};
    const struct quoit_layout *layout = world->group.layout;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        memcpy(world->lanes[0].memory + layout->slots[QUOIT_RIGHT] + quoit_response_offset(layout, 0, words[i]), &count,
               sizeof count);
}

static void steps_of(struct world *world, uint32_t lane)
{
    for (int i = 0; i < STEPS; i++)
        world->lanes[lane].engine->step(&world->lanes[lane]);
    assert_int_equal(world->lanes[lane].status, QUOIT_OK);
}

static struct quoit_frame *request_of(struct world *world, uint32_t index)
{
    return &quoit_memory_channel(world->group.layout, world->group.memory, 0, 0)->requests[index].frame;
}

static void acknowledge(struct world *world, uint32_t token)
{
    const struct quoit_frame ack = {
        .kind = QUOIT_FRAME_ACK, .flags = QUOIT_FRAME_RIGHT, .source_host = 1, .token = token};
    offer(world, &ack, 0);
}

/* The bit of lane 0 is not free again, so lane 1 takes what was submitted to the channel of lane 0; but not before the
 * first is done, if a fence stands between them, or if the second one is no mere copy. */
static void test_any_lane_takes_the_next_request(void **state)
{
    static const struct {
        uint8_t kind, flags;
        bool may_overtake;
    } seconds[] = {{QUOIT_FRAME_PUT, 0, true},
                   {QUOIT_FRAME_PUT, QUOIT_FRAME_ORDERED, false},
                   {QUOIT_FRAME_PUT_SIGNAL, 0, false},
                   {QUOIT_FRAME_AMO, 0, false}};
    (void)state;
    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++) {
        struct world world;
        open_world_of(&world, 2);
        submit(&world, WORD_BYTES);
        submit(&world, WORD_BYTES);
        *request_of(&world, 1) = (struct quoit_frame){
            .kind = seconds[i].kind,
            .op = seconds[i].kind == QUOIT_FRAME_PUT ? 0 : QUOIT_AMO_SET,
            .size = seconds[i].kind == QUOIT_FRAME_PUT ? 0 : 8,
            .flags = seconds[i].flags,
            .dest_host = 1,
            .bytes = seconds[i].kind == QUOIT_FRAME_AMO ? 0 : WORD_BYTES,
            .offset = world.group.layout->segment_heap,
            .operand2 = seconds[i].kind == QUOIT_FRAME_PUT_SIGNAL ? world.group.layout->segment_heap : 0};
        steps_of(&world, 0);
        const uint64_t first_bits = neighbour.rung_bits;
        const struct quoit_frame first = taken();
        steps_of(&world, 0);
        assert_int_equal(neighbour.rung_bits, first_bits);
        steps_of(&world, 1);
        assert_int_equal(neighbour.rung_bits != first_bits, seconds[i].may_overtake);
        acknowledge(&world, first.token);
        steps_of(&world, 1);
        assert_true(neighbour.rung_bits != first_bits);
        const struct quoit_channel *channel = quoit_memory_channel(world.group.layout, world.group.memory, 0, 0);
        assert_int_equal(atomic_load(&channel->complete_tail), 1);
        assert_int_equal(channel->complete[0], 0);
        close_world(&world);
    }
}

/* All have more to send at any time, and none waits for longer than the others take for a transfer each. */
static void test_pes_take_turns(void **state)
{
    enum { PES = 3, ROUNDS = 4 };
    struct world world;
    (void)state;
    open_world(&world);
    for (uint32_t i = 0; i < PES * (ROUNDS + 1); i++)
        submit_of(&world, i % PES, WORD_BYTES);
    for (uint32_t count = 1; count <= PES * ROUNDS; count++) {
        steps(&world);
        for (uint32_t local = 0; local < PES; local++)
            assert_int_equal(world.lanes[0].submit_heads[local], (count + PES - 1 - local) / PES);
        take_transfers(&world, count);
    }
    assert_int_equal(world.lanes[0].status, QUOIT_OK);
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_put_is_executed_and_responded_to),
        cmocka_unit_test(test_metadata_of_another_turn),
        cmocka_unit_test(test_frames_that_no_host_sends),
        cmocka_unit_test(test_a_request_that_is_not_valid),
        cmocka_unit_test(test_payload_goes_as_the_job_asks),
        cmocka_unit_test(test_any_lane_takes_the_next_request),
        cmocka_unit_test(test_pes_take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
