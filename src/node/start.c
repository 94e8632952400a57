/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/start.h"
#include "base/log.h"
#include "env/clock.h"

#include <stddef.h>
#include <string.h>

#define POLL_NS 50000 /* between two looks at a neighbour that is not there yet */
#define MAGIC   (0x51540000u + QUOIT_WIRE_VERSION)

/* What each host writes into the scratchpads of its neighbour. */
enum scratchpad {
    PAD_MAGIC,        /* and wire version */
    PAD_HOST,         /* host id + 1: zero is "not written" */
    PAD_SHAPE,        /* digest of the job's shape */
    PAD_SLOTS_PAGES,  /* size of the window SLOTS it offers */
    PAD_MEMORY_PAGES, /* size of the window MEMORY it offers */
    PAD_READY,        /* the writer's windows are translated: MAGIC */
};

/* FNV-1a over the fields; all hosts run the same binary layout of struct quoit_shape. */
static uint32_t shape_digest(const struct quoit_shape *shape)
{
    const unsigned char *bytes = (const unsigned char *)shape;
    uint32_t digest = 2166136261u;
    for (size_t i = 0; i < sizeof *shape; i++)
        digest = (digest ^ bytes[i]) * 16777619u;
    return digest;
}

static struct quoit_port_vector lane_vector(const struct quoit_layout *layout, uint32_t first, uint32_t count)
{
    return (struct quoit_port_vector){
        .park_offset =
            layout->lanes + first * sizeof(struct quoit_lane_shared) + offsetof(struct quoit_lane_shared, park),
        .park_stride = sizeof(struct quoit_lane_shared),
        .park_count = count,
    };
}

/* Bits of direct puts wake the PEs that share them. In the protocol SCRATCHPAD there are none; one of the bits answers
 * transfers and wakes all lanes, any of which may wait for the scratchpads. */
static enum quoit_status set_direct_vectors(const struct quoit_layout *layout, struct quoit_port *port,
                                            uint32_t *bits_out)
{
    if (layout->shape.protocol == QUOIT_PROTOCOL_SCRATCHPAD) {
        struct quoit_port_vector vector = lane_vector(layout, 0, layout->shape.lane_count);
        *bits_out = 1u << QUOIT_DOORBELL_ANSWER;
        return quoit_port_set_vector(port, QUOIT_DOORBELL_ANSWER, &vector);
    }
    enum quoit_status status = QUOIT_OK;
    for (uint32_t i = 0; i < QUOIT_DOORBELL_DIRECT_COUNT && i < layout->local_count && status == QUOIT_OK; i++) {
        struct quoit_port_vector vector = {
            .park_offset = layout->pes + i * sizeof(struct quoit_pe_shared) + offsetof(struct quoit_pe_shared, park),
            .park_stride = QUOIT_DOORBELL_DIRECT_COUNT * sizeof(struct quoit_pe_shared),
            .park_count = (layout->local_count - i + QUOIT_DOORBELL_DIRECT_COUNT - 1) / QUOIT_DOORBELL_DIRECT_COUNT,
        };
        status = quoit_port_set_vector(port, QUOIT_DOORBELL_DIRECT + i, &vector);
        *bits_out |= 1u << (QUOIT_DOORBELL_DIRECT + i);
    }
    return status;
}

/* Doorbells of lanes wake the lanes, those of the barrier lane 0. */
static enum quoit_status set_vectors(const struct quoit_layout *layout, struct quoit_port *port)
{
    uint32_t bits = 0;
    enum quoit_status status = set_direct_vectors(layout, port, &bits);
    for (uint32_t lane = 0; lane < layout->shape.lane_count && status == QUOIT_OK; lane++) {
        struct quoit_port_vector vector = lane_vector(layout, lane, 1);
        status = quoit_port_set_vector(port, QUOIT_DOORBELL_LANE(lane), &vector);
        bits |= 1u << QUOIT_DOORBELL_LANE(lane);
    }
    struct quoit_port_vector vector = lane_vector(layout, 0, 1);
    for (uint32_t bit = QUOIT_DOORBELL_BARRIER; bit <= QUOIT_DOORBELL_BARRIER_END && status == QUOIT_OK; bit++) {
        status = quoit_port_set_vector(port, bit, &vector);
        bits |= 1u << bit;
    }
    if (status == QUOIT_OK)
        quoit_port_doorbell_unmask(port, bits);
    return status;
}

static enum quoit_status offer_windows(const struct quoit_layout *layout, enum quoit_side side, struct quoit_port *port)
{
    struct quoit_port_limits limits;
    quoit_port_limits(port, &limits);
    uint64_t memory_bytes = layout->local_count * layout->area_stride;
    if (memory_bytes > limits.window_bytes[QUOIT_WINDOW_MEMORY])
        memory_bytes = limits.window_bytes[QUOIT_WINDOW_MEMORY]; /* what lies beyond goes through the slots */
    if (layout->slots_bytes > limits.window_bytes[QUOIT_WINDOW_SLOTS]) {
        quoit_log(QUOIT_LOG_ERROR,
                  "the queues need a window of %llu bytes, the port has %llu: use fewer lanes or slots",
                  (unsigned long long)layout->slots_bytes, (unsigned long long)limits.window_bytes[QUOIT_WINDOW_SLOTS]);
        return QUOIT_OUT_OF_RANGE;
    }
    enum quoit_status status =
        quoit_port_set_translation(port, QUOIT_WINDOW_SLOTS, layout->slots[side], layout->slots_bytes);
    if (status == QUOIT_OK)
        status = quoit_port_set_translation(port, QUOIT_WINDOW_MEMORY, layout->areas, memory_bytes);
    if (status != QUOIT_OK)
        return status;
    quoit_port_scratchpad_peer_write(port, PAD_HOST, layout->host + 1);
    quoit_port_scratchpad_peer_write(port, PAD_SHAPE, shape_digest(&layout->shape));
    quoit_port_scratchpad_peer_write(port, PAD_SLOTS_PAGES, (uint32_t)(layout->slots_bytes >> 12));
    quoit_port_scratchpad_peer_write(port, PAD_MEMORY_PAGES, (uint32_t)(memory_bytes >> 12));
    quoit_port_scratchpad_peer_write(port, PAD_MAGIC, MAGIC);
    quoit_port_scratchpad_peer_write(port, PAD_READY, MAGIC);
    return QUOIT_OK;
}

static enum quoit_status check_neighbour(const struct quoit_layout *layout, enum quoit_side side,
                                         struct quoit_port *port)
{
    uint32_t neighbour = quoit_node_neighbour(layout, side);
    uint32_t host = quoit_port_scratchpad_read(port, PAD_HOST);
    uint32_t slots_pages = quoit_port_scratchpad_read(port, PAD_SLOTS_PAGES);
    if (quoit_port_scratchpad_read(port, PAD_MAGIC) == MAGIC && host == neighbour + 1 &&
        quoit_port_scratchpad_read(port, PAD_SHAPE) == shape_digest(&layout->shape) &&
        slots_pages == layout->slots_bytes >> 12)
        return QUOIT_OK;
    quoit_log(QUOIT_LOG_ERROR, "the %s neighbour should be host %u of this job, but is host %d of another shape",
              side == QUOIT_LEFT ? "left" : "right", neighbour, (int)host - 1);
    return QUOIT_INVALID;
}

static bool wait_for(bool (*is_there)(struct quoit_port *port), struct quoit_port *port, uint64_t deadline_ns)
{
    while (!is_there(port)) {
        if (quoit_clock_now_ns() > deadline_ns)
            return false;
        quoit_clock_sleep_ns(POLL_NS);
    }
    return true;
}

static bool link_is_up(struct quoit_port *port)
{
    return quoit_port_link_is_up(port);
}

static bool neighbour_is_ready(struct quoit_port *port)
{
    return quoit_port_scratchpad_read(port, PAD_READY) == MAGIC;
}

enum quoit_status quoit_node_start_links(const struct quoit_node_config *config,
                                         struct quoit_port *ports_out[QUOIT_SIDE_COUNT])
{
    const struct quoit_layout *layout = config->layout;
    uint64_t deadline_ns = quoit_clock_now_ns() + config->link_timeout_ns;
    enum quoit_status status = QUOIT_OK;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT && status == QUOIT_OK; side++) {
        status = quoit_port_open(&config->ports[side], &ports_out[side]);
        if (status == QUOIT_OK)
            status = set_vectors(layout, ports_out[side]);
        if (status == QUOIT_OK)
            quoit_port_link_enable(ports_out[side]);
    }
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT && status == QUOIT_OK; side++)
        status = wait_for(link_is_up, ports_out[side], deadline_ns) ? offer_windows(layout, side, ports_out[side])
                                                                    : QUOIT_TIMEOUT;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT && status == QUOIT_OK; side++)
        status = wait_for(neighbour_is_ready, ports_out[side], deadline_ns)
                     ? check_neighbour(layout, side, ports_out[side])
                     : QUOIT_TIMEOUT;
    if (status == QUOIT_TIMEOUT)
        quoit_log(QUOIT_LOG_ERROR, "a neighbour of host %u did not come up in %llu ms", layout->host,
                  (unsigned long long)(config->link_timeout_ns / 1000000));
    return status;
}
