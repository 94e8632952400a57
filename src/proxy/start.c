/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/start.h"
#include "base/log.h"
#include "proxy/engines.h"

#include <stddef.h>
#include <string.h>

#define MAGIC (0x51540000u + QUOIT_WIRE_VERSION)

/* What each host writes into the scratchpads of its neighbour. */
enum scratchpad {
    PAD_MAGIC,        /* and wire version */
    PAD_HOST,         /* host id + 1: zero is "not written" */
    PAD_SHAPE,        /* digest of the job's job */
    PAD_SLOTS_PAGES,  /* size of the window SLOTS it offers */
    PAD_MEMORY_PAGES, /* size of the window MEMORY it offers */
    PAD_LINK,         /* how far the writer is in bringing up the link: see start.h */
};

/* FNV-1a over the fields; all hosts run the same binary layout of struct quoit_job_config. */
static uint32_t job_digest(const struct quoit_job_config *job)
{
    const unsigned char *bytes = (const unsigned char *)job;
    uint32_t digest = 2166136261u;
    for (size_t i = 0; i < sizeof *job; i++)
        digest = (digest ^ bytes[i]) * 16777619u;
    return digest;
}

static struct quoit_port_vector lane_vector(const struct quoit_layout *layout, uint32_t lane)
{
    return (struct quoit_port_vector){
        .park_offset =
            layout->lanes + lane * sizeof(struct quoit_lane_shared) + offsetof(struct quoit_lane_shared, park),
        .park_stride = sizeof(struct quoit_lane_shared),
        .park_count = 1,
    };
}

/* Doorbells of lanes wake the lanes, those of the barrier lane 0; the engine says what the others do. */
static enum quoit_status set_vectors(const struct quoit_layout *layout, struct quoit_port *port)
{
    struct quoit_port_vector vectors[QUOIT_DOORBELL_COUNT];
    uint32_t bits = quoit_engine_of(&layout->job)->doorbells(layout, vectors);
    for (uint32_t lane = 0; lane < layout->job.lane_count; lane++) {
        vectors[QUOIT_DOORBELL_LANE(lane)] = lane_vector(layout, lane);
        bits |= 1u << QUOIT_DOORBELL_LANE(lane);
    }
    for (uint32_t bit = QUOIT_DOORBELL_BARRIER; bit <= QUOIT_DOORBELL_BARRIER_END; bit++) {
        vectors[bit] = lane_vector(layout, 0);
        bits |= 1u << bit;
    }
    enum quoit_status status = QUOIT_OK;
    for (uint32_t bit = 0; bit < QUOIT_DOORBELL_COUNT && status == QUOIT_OK; bit++)
        if (bits & (1u << bit))
            status = quoit_port_set_vector(port, bit, &vectors[bit]);
    const struct quoit_port_vector manager = {.park_offset = offsetof(struct quoit_host_header, manager_park),
                                              .park_stride = sizeof(struct quoit_park),
                                              .park_count = 1};
    if (status == QUOIT_OK)
        status = quoit_port_set_vector(port, QUOIT_VECTOR_LINK, &manager);
    if (status == QUOIT_OK)
        quoit_port_doorbell_unmask(port, bits);
    return status;
}

static uint64_t offered_memory_bytes(const struct quoit_layout *layout, const struct quoit_port *port)
{
    struct quoit_port_limits limits;
    quoit_port_limits(port, &limits);
    uint64_t bytes = layout->local_count * layout->segment_stride;
    uint64_t most = limits.window_bytes[QUOIT_WINDOW_MEMORY]; /* what lies beyond goes through the slots */
    return bytes < most ? bytes : most;
}

enum quoit_status quoit_proxy_offer_windows(const struct quoit_layout *layout, enum quoit_side side,
                                            struct quoit_port *port)
{
    enum quoit_status status =
        quoit_port_set_translation(port, QUOIT_WINDOW_SLOTS, layout->slots[side], layout->slots_bytes);
    if (status == QUOIT_OK)
        status =
            quoit_port_set_translation(port, QUOIT_WINDOW_MEMORY, layout->segments, offered_memory_bytes(layout, port));
    return status;
}

void quoit_proxy_introduce(const struct quoit_layout *layout, struct quoit_port *port)
{
    quoit_port_scratchpad_peer_write(port, PAD_HOST, layout->host + 1);
    quoit_port_scratchpad_peer_write(port, PAD_SHAPE, job_digest(&layout->job));
    quoit_port_scratchpad_peer_write(port, PAD_SLOTS_PAGES, (uint32_t)(layout->slots_bytes >> 12));
    quoit_port_scratchpad_peer_write(port, PAD_MEMORY_PAGES, (uint32_t)(offered_memory_bytes(layout, port) >> 12));
    quoit_port_scratchpad_peer_write(port, PAD_MAGIC, MAGIC);
}

enum quoit_status quoit_proxy_check_neighbour(const struct quoit_layout *layout, enum quoit_side side,
                                              struct quoit_port *port, uint32_t epoch)
{
    uint32_t neighbour = quoit_layout_neighbour(layout, side);
    uint32_t host = quoit_port_scratchpad_read(port, PAD_HOST);
    uint32_t slots_pages = quoit_port_scratchpad_read(port, PAD_SLOTS_PAGES);
    if (quoit_port_scratchpad_read(port, PAD_MAGIC) == MAGIC && host == neighbour + 1 &&
        quoit_port_scratchpad_read(port, PAD_SHAPE) == job_digest(&layout->job) &&
        slots_pages == layout->slots_bytes >> 12)
        return QUOIT_OK;
    if (!quoit_port_link_is_up(port) || quoit_port_link_epoch(port) != epoch)
        return QUOIT_LINK_DOWN;
    quoit_log(QUOIT_LOG_ERROR, "the %s neighbour should be host %u of this job, but is host %d of another job",
              side == QUOIT_LEFT ? "left" : "right", neighbour, (int)host - 1);
    return QUOIT_INVALID;
}

void quoit_proxy_tell_link(struct quoit_port *port, uint32_t word)
{
    quoit_port_scratchpad_peer_write(port, PAD_LINK, word);
}

uint32_t quoit_proxy_told_link(struct quoit_port *port)
{
    return quoit_port_scratchpad_read(port, PAD_LINK);
}

enum quoit_status quoit_proxy_open_ports(const struct quoit_proxy_config *config,
                                         struct quoit_port *ports_out[QUOIT_SIDE_COUNT])
{
    const struct quoit_layout *layout = config->layout;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        enum quoit_status status = quoit_port_open(&config->ports[side], &ports_out[side]);
        if (status == QUOIT_OK)
            status = set_vectors(layout, ports_out[side]);
        if (status != QUOIT_OK)
            return status;
        struct quoit_port_limits limits;
        quoit_port_limits(ports_out[side], &limits);
        if (layout->slots_bytes > limits.window_bytes[QUOIT_WINDOW_SLOTS]) {
            quoit_log(
                QUOIT_LOG_ERROR, "the queues need a window of %llu bytes, the port has %llu: use fewer lanes or slots",
                (unsigned long long)layout->slots_bytes, (unsigned long long)limits.window_bytes[QUOIT_WINDOW_SLOTS]);
            return QUOIT_OUT_OF_RANGE;
        }
    }
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        quoit_port_link_enable(ports_out[side]);
    return QUOIT_OK;
}
