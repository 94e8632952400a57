/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a lane of a ring that cannot be opened for want of memory says so and gives back what it had taken; an error of
 * a port, other than a link that is down, ends the lane with that error. A lane follows the loss of a link before it
 * takes new requests, and its doorbells interrupt nobody while it is awake. Method: the lanes of one host of two. Each
 * allocation of opening them fails once, with each engine; each kind of write of the queues' lane fails once, by a port
 * whose operations are replaced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdatomic.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/allocation_rig.h"
#include "proxy/lane_rig.h"

#define ALLOCATION_MAX 100u
#define SMALL_BYTES    64u /* travels with its header */
#define ANYWHERE       UINT64_MAX
#define NOWHERE        (UINT64_MAX - 1)

/* Memory */

static void fail_each_allocation(uint8_t protocol, uint8_t barrier)
{
    struct world world;
    uint32_t lane_count, fails_at = 0;
    bool has_failed;
    open_ports(&world, protocol, barrier, LANES_MAX);
    do {
        assert_in_range(++fails_at, 1, ALLOCATION_MAX);
        rig_allocations_begin(fails_at);
        enum quoit_status status = open_lanes(&world, &lane_count);
        has_failed = rig_allocations_has_failed();
        close_lanes(&world, lane_count);
        assert_int_equal(rig_allocations_end(), 0);
        assert_int_equal(status, has_failed ? QUOIT_NO_MEMORY : QUOIT_OK);
    } while (has_failed);
    assert_true(fails_at > 2 * LANES_MAX);
    close_ports(&world);
}

static void test_no_memory_for_queues(void **state)
{
    (void)state;
    fail_each_allocation(QUOIT_PROTOCOL_QUEUE, QUOIT_BARRIER_AUTO);
}

static void test_no_memory_for_scratchpads(void **state)
{
    (void)state;
    fail_each_allocation(QUOIT_PROTOCOL_SCRATCHPAD, QUOIT_BARRIER_AUTO);
}

static void test_no_memory_for_the_barrier(void **state)
{
    (void)state;
    fail_each_allocation(QUOIT_PROTOCOL_QUEUE, QUOIT_BARRIER_PAPERS);
}

/* Ports */

/* Which operation returns SYSTEM. Operations of a port have no handle but the port, which is the driver's. */
static struct {
    bool fails_write, fails_dma;
    uint64_t fails_word_at; /* in the window; ANYWHERE: every word; NOWHERE: none */
    uint64_t dma_cookie;
    bool has_dma; /* under way */
    bool holds_dma;
    uint64_t masked_bits; /* of either port */
    uint32_t mask_count;
    const struct quoit_port *left;
    uint64_t rung_bits[QUOIT_SIDE_COUNT];
} faults;

static enum quoit_status faulty_write(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                      const void *source, size_t bytes)
{
    (void)port, (void)window, (void)offset, (void)source, (void)bytes;
    return faults.fails_write ? QUOIT_SYSTEM : QUOIT_OK;
}

static enum quoit_status faulty_write64(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                        uint64_t value)
{
    (void)port, (void)window, (void)value;
    return faults.fails_word_at == ANYWHERE || faults.fails_word_at == offset ? QUOIT_SYSTEM : QUOIT_OK;
}

static enum quoit_status faulty_submit(struct quoit_port *port, uint32_t channel, enum quoit_window window,
                                       uint64_t offset, const void *source, size_t bytes, uint64_t cookie)
{
    (void)port, (void)channel, (void)window, (void)offset, (void)source, (void)bytes;
    faults.dma_cookie = cookie;
    faults.has_dma = true;
    return QUOIT_OK;
}

static uint32_t faulty_poll(struct quoit_port *port, uint32_t channel, struct quoit_dma_done *done_out,
                            uint32_t max_count)
{
    (void)port, (void)channel, (void)max_count;
    bool had_dma = faults.has_dma && !faults.holds_dma;
    done_out[0] =
        (struct quoit_dma_done){.cookie = faults.dma_cookie, .status = faults.fails_dma ? QUOIT_SYSTEM : QUOIT_OK};
    faults.has_dma &= !had_dma;
    return had_dma;
}

static bool note_ring(struct quoit_port *port, uint64_t bits)
{
    faults.rung_bits[port == faults.left ? QUOIT_LEFT : QUOIT_RIGHT] |= bits;
    return true;
}

static void open_faulty(struct world *world, uint64_t dma_bytes)
{
    uint32_t lane_count;
    memset(&faults, 0, sizeof faults);
    faults.fails_word_at = NOWHERE;
    open_ports(world, QUOIT_PROTOCOL_QUEUE, QUOIT_BARRIER_AUTO, 1);
    world->group.dma_bytes = dma_bytes;
    faults.left = world->group.ports[QUOIT_LEFT];
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        struct quoit_port *port = world->group.ports[side];
        port->ops.write = faulty_write;
        port->ops.write64 = faulty_write64;
        port->ops.dma_submit = faulty_submit;
        port->ops.dma_poll = faulty_poll;
        port->ops.ring = note_ring;
    }
    assert_int_equal(open_lanes(world, &lane_count), QUOIT_OK);
}

static void close_faulty(struct world *world)
{
    close_lanes(world, 1);
    close_ports(world);
}

/* The lane takes it, and does what follows. */
static enum quoit_status put(struct world *world, uint32_t bytes)
{
    submit(world, bytes);
    for (int i = 0; i < 3; i++)
        step(world);
    assert_int_equal(world->lanes[0].submit_heads[0], 1);
    return world->lanes[0].status;
}

/* A small request of the other host's, by its right port. */
static void receive(struct world *world)
{
    const struct quoit_layout *layout = world->group.layout;
    char *slot =
        (char *)world->group.memory + layout->slots[QUOIT_LEFT] + quoit_layout_slot(layout, 0, QUOIT_CLASS_REQUEST, 0);
    const struct quoit_frame frame = {.sequence = 1,
                                      .kind = QUOIT_FRAME_PUT,
                                      .flags = QUOIT_FRAME_RIGHT,
                                      .source_host = 1,
                                      .bytes = SMALL_BYTES,
                                      .offset = layout->segment_heap,
                                      .flow_sequence = 1};
    memcpy(slot, &frame, sizeof frame);
}

static void test_no_port_fails(void **state)
{
    struct world world;
    (void)state;
    open_faulty(&world, QUOIT_DMA_NEVER);
    receive(&world);
    assert_int_equal(put(&world, CHUNK_BYTES), QUOIT_OK);
    close_faulty(&world);
    open_faulty(&world, 1);
    faults.fails_dma = true; /* which is made good by a copy */
    assert_int_equal(put(&world, CHUNK_BYTES), QUOIT_OK);
    close_faulty(&world);
}

static void test_a_header_is_not_written(void **state)
{
    struct world world;
    (void)state;
    open_faulty(&world, QUOIT_DMA_NEVER);
    faults.fails_write = true;
    assert_int_equal(put(&world, SMALL_BYTES), QUOIT_SYSTEM);
    close_faulty(&world);
}

static void test_a_sequence_is_not_written(void **state)
{
    struct world world;
    (void)state;
    open_faulty(&world, QUOIT_DMA_NEVER);
    faults.fails_word_at = ANYWHERE;
    assert_int_equal(put(&world, SMALL_BYTES), QUOIT_SYSTEM);
    close_faulty(&world);
}

static void test_payload_is_not_written(void **state)
{
    struct world world;
    (void)state;
    open_faulty(&world, QUOIT_DMA_NEVER);
    faults.fails_write = true;
    assert_int_equal(put(&world, CHUNK_BYTES), QUOIT_SYSTEM);
    close_faulty(&world);
}

static void test_failed_dma_is_not_made_good(void **state)
{
    struct world world;
    (void)state;
    open_faulty(&world, 1);
    faults.fails_dma = true;
    faults.fails_write = true;
    assert_int_equal(put(&world, CHUNK_BYTES), QUOIT_SYSTEM);
    close_faulty(&world);
}

static void test_credits_are_not_written(void **state)
{
    struct world world;
    (void)state;
    open_faulty(&world, QUOIT_DMA_NEVER);
    faults.fails_word_at = quoit_layout_credit(world.group.layout, 0, QUOIT_CLASS_REQUEST);
    receive(&world);
    for (int i = 0; i < 3; i++)
        step(&world);
    assert_int_equal(world.lanes[0].status, QUOIT_SYSTEM);
    close_faulty(&world);
}

/* Links */

/* A lane whose DMA is under way follows the loss of a link later. Until then it takes no requests, which it would send
 * as if the link were there; then it tells the manager. */
static void test_no_request_passes_the_loss_of_a_link(void **state)
{
    struct world world;
    (void)state;
    open_faulty(&world, 1);
    faults.holds_dma = true;
    assert_int_equal(put(&world, CHUNK_BYTES), QUOIT_OK);
    assert_true(faults.has_dma);
    struct quoit_host_header *header = world.group.memory;
    const struct quoit_lane *lane = &world.lanes[0];
    uint32_t key = quoit_park_prepare(&header->manager_park);
    atomic_store(&header->links[QUOIT_LEFT].target, QUOIT_LINK_TARGET(1, false));
    submit(&world, SMALL_BYTES);
    for (int i = 0; i < 3; i++)
        step(&world);
    assert_false(quoit_lane_has_followed(lane, QUOIT_LEFT));
    assert_int_equal(lane->submit_heads[0], 1);
    assert_false(quoit_park_was_woken(&header->manager_park, key));

    faults.holds_dma = false;
    for (int i = 0; i < 3; i++)
        step(&world);
    assert_true(quoit_lane_has_followed(lane, QUOIT_LEFT));
    assert_int_equal(lane->submit_heads[0], 2);
    assert_true(quoit_park_was_woken(&header->manager_park, key));
    assert_int_equal(lane->status, QUOIT_OK);
    quoit_park_cancel(&header->manager_park);
    close_faulty(&world);
}

/* Each neighbour says by which bits its lanes are woken: the right one for a request, the left one for a credit. */
static void test_doorbells_of_each_neighbour(void **state)
{
    struct world world;
    (void)state;
    open_faulty(&world, QUOIT_DMA_NEVER);
    struct quoit_lane *lane = &world.lanes[0];
    lane->peer_lane_doorbell[QUOIT_LEFT] = 0x100;
    lane->peer_lane_doorbell[QUOIT_RIGHT] = 0x20;
    assert_int_equal(put(&world, SMALL_BYTES), QUOIT_OK);
    assert_int_equal(faults.rung_bits[QUOIT_LEFT], 0);
    assert_int_equal(faults.rung_bits[QUOIT_RIGHT], 0x20);
    receive(&world);
    for (int i = 0; i < 3; i++)
        step(&world);
    assert_int_equal(faults.rung_bits[QUOIT_LEFT], 0x100);
    assert_int_equal(faults.rung_bits[QUOIT_RIGHT], 0x20);
    close_faulty(&world);
}

static void note_mask(struct quoit_port *port, uint64_t bits, bool is_masked)
{
    (void)port;
    faults.masked_bits = is_masked ? faults.masked_bits | bits : faults.masked_bits & ~bits;
    faults.mask_count++;
}

/* While a lane polls, a bit that wakes it alone interrupts no thread; one that it shares with another lane does. */
static void test_doorbells_of_awake_lanes(void **state)
{
    (void)state;
    for (int is_shared = 0; is_shared < 2; is_shared++) {
        struct world world;
        uint32_t lane_count;
        memset(&faults, 0, sizeof faults);
        open_ports(&world, QUOIT_PROTOCOL_QUEUE, QUOIT_BARRIER_AUTO, LANES_MAX);
        const struct quoit_job_config *job = &world.group.layout->job;
        struct quoit_host_header *header = world.group.memory;
        uint64_t scarce = (UINT64_C(1) << quoit_doorbells_least(job)) - 1, own = 0;
        for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
            world.group.ports[side]->ops.doorbell_set_mask = note_mask;
            if (is_shared)
                atomic_store(&header->links[side].own_doorbells, scarce);
        }
        assert_int_equal(open_lanes(&world, &lane_count), QUOIT_OK);
        const struct quoit_doorbells doorbells = world.lanes[0].own_doorbells[QUOIT_LEFT];
        for (uint32_t lane = 0; lane < LANES_MAX && !is_shared; lane++)
            own |= quoit_doorbell_of_lane(&doorbells, lane);
        assert_int_equal(doorbells.lane_count, is_shared ? 1 : LANES_MAX);
        assert_int_equal(faults.masked_bits, own);
        assert_int_equal(faults.mask_count, is_shared ? 0 : QUOIT_SIDE_COUNT * LANES_MAX);
        close_lanes(&world, lane_count);
        close_ports(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_memory_for_queues),      cmocka_unit_test(test_no_memory_for_scratchpads),
        cmocka_unit_test(test_no_memory_for_the_barrier), cmocka_unit_test(test_no_port_fails),
        cmocka_unit_test(test_a_header_is_not_written),   cmocka_unit_test(test_a_sequence_is_not_written),
        cmocka_unit_test(test_payload_is_not_written),    cmocka_unit_test(test_failed_dma_is_not_made_good),
        cmocka_unit_test(test_credits_are_not_written),   cmocka_unit_test(test_no_request_passes_the_loss_of_a_link),
        cmocka_unit_test(test_doorbells_of_awake_lanes),  cmocka_unit_test(test_doorbells_of_each_neighbour),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
