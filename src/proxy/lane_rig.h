/* SPDX-License-Identifier: BSD-3-Clause */
/* lane_rig.h - the lanes of host 0 of a ring of two, and requests of its PEs; nobody runs the other host. Included by
 * tests only. */
#ifndef QUOIT_PROXY_LANE_RIG_H
#define QUOIT_PROXY_LANE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lane/lane.h"
#include "proxy/engines.h"
#include "proxy/ring_rig.h"

#define LANES_MAX   2u
#define CHUNK_BYTES 1024u

struct world {
    struct ring_rig rig;
    struct quoit_lane_group group;
    struct quoit_lane lanes[LANES_MAX];
};

static inline void open_ports(struct world *world, uint8_t protocol, uint8_t barrier, uint32_t lane_count)
{
    const struct quoit_job_config job = {.host_count = 2,
                                         .pe_count = 6,
                                         .lane_count = lane_count,
                                         .slot_count = 8,
                                         .chunk_bytes = CHUNK_BYTES,
                                         .protocol = protocol,
                                         .barrier = barrier,
                                         .heap_bytes = 4096};
    struct quoit_port_config ports[QUOIT_SIDE_COUNT];
    *world = (struct world){0};
    rig_make(&world->rig, &job, &(struct quoit_port_knobs){0});
    struct rig_host *host = &world->rig.hosts[0];
    struct quoit_host_header *header = host->memory;
    rig_ports(&world->rig, host, ports);
    world->group = (struct quoit_lane_group){.layout = &host->layout,
                                             .memory = host->memory,
                                             .links = header->links,
                                             .dma_bytes = QUOIT_DMA_NEVER,
                                             .engine = quoit_engine_of((enum quoit_protocol)job.protocol),
                                             .barrier = quoit_barrier_of(&job)};
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        struct quoit_link_record *link = &header->links[side];
        uint64_t bits = (UINT64_C(1) << quoit_doorbells_most(&job, host->layout.local_count)) - 1;
        assert_int_equal(quoit_port_open(&ports[side], &world->group.ports[side]), QUOIT_OK);
        atomic_store(&link->own_doorbells, bits);
        atomic_store(&link->peer_doorbells, bits);
        atomic_store(&link->target, QUOIT_LINK_TARGET(0, true));
    }
}

static inline void close_ports(struct world *world)
{
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        quoit_port_close(world->group.ports[side]);
    rig_free(&world->rig);
}

/* As quoit_proxy_open() does it. */
static inline enum quoit_status open_lanes(struct world *world, uint32_t *lane_count_out)
{
    enum quoit_status status = world->group.engine->group_open(&world->group);
    for (*lane_count_out = 0; status == QUOIT_OK && *lane_count_out < world->group.layout->job.lane_count;
         ++*lane_count_out)
        status = quoit_lane_open(&world->lanes[*lane_count_out], &world->group, *lane_count_out);
    return status;
}

static inline void close_lanes(struct world *world, uint32_t lane_count)
{
    for (uint32_t i = 0; i < lane_count; i++)
        quoit_lane_close(&world->lanes[i]);
    world->group.engine->group_close(&world->group);
}

/* A PE puts to the other host. */
static inline void submit_of(struct world *world, uint32_t local, uint32_t bytes)
{
    const struct quoit_layout *layout = world->group.layout;
    struct quoit_channel *channel = quoit_memory_channel(layout, world->group.memory, local, 0);
    uint32_t tail = atomic_load(&channel->submit_tail);
    assert_in_range(tail, 0, QUOIT_REQUESTS_A_CHANNEL - 1);
    channel->requests[tail] = (struct quoit_request){
        .frame = {.kind = QUOIT_FRAME_PUT, .dest_host = 1, .bytes = bytes, .offset = layout->segment_heap},
        .data_offset = quoit_layout_staging(layout, local, 0, tail)};
    channel->submit[tail] = (uint16_t)tail;
    atomic_store(&channel->submit_tail, tail + 1);
}

static inline void submit(struct world *world, uint32_t bytes)
{
    submit_of(world, 0, bytes);
}

static inline void step(struct world *world)
{
    world->lanes[0].engine->step(&world->lanes[0]);
}

#endif
