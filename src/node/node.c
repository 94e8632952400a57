/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/node.h"
#include "base/log.h"
#include "node/lane.h"
#include "node/scratchpad_lane.h"
#include "node/start.h"

#include <pthread.h>
#include <stdlib.h>

static void *run_lane(void *arg)
{
    struct quoit_lane *lane = arg;
    quoit_lane_run(lane);
    if (lane->status != QUOIT_OK) {
        quoit_log(QUOIT_LOG_ERROR, "lane %u of host %u ended: %s", lane->index, lane->layout->host,
                  quoit_status_text(lane->status));
        quoit_node_stop(lane->layout, lane->memory); /* the others cannot go on without it */
    }
    return NULL;
}

void quoit_node_stop(const struct quoit_layout *layout, void *memory)
{
    struct quoit_host_header *header = memory;
    atomic_store(&header->is_stopping, 1);
    for (uint32_t lane = 0; lane < layout->shape.lane_count; lane++)
        quoit_park_wake(&quoit_memory_lane(layout, memory, lane)->park);
}

/* The first lane runs on the caller's thread. */
static enum quoit_status run_lanes(struct quoit_lane *lanes, uint32_t lane_count)
{
    pthread_t threads[QUOIT_LANES_MAX];
    uint32_t started_count = 1;
    enum quoit_status status = QUOIT_OK;
    for (; started_count < lane_count; started_count++) {
        if (pthread_create(&threads[started_count], NULL, run_lane, &lanes[started_count]) != 0) {
            quoit_log(QUOIT_LOG_ERROR, "cannot start service thread %u", started_count);
            quoit_node_stop(lanes[0].layout, lanes[0].memory);
            status = QUOIT_SYSTEM;
            break;
        }
    }
    run_lane(&lanes[0]);
    for (uint32_t i = 1; i < started_count; i++)
        pthread_join(threads[i], NULL);
    for (uint32_t i = 0; i < lane_count && status == QUOIT_OK; i++)
        status = lanes[i].status;
    return status;
}

enum quoit_status quoit_node_run(const struct quoit_node_config *config)
{
    uint32_t lane_count = config->layout->shape.lane_count;
    struct quoit_port *ports[QUOIT_SIDE_COUNT] = {NULL, NULL};
    bool is_scratchpad = config->layout->shape.protocol == QUOIT_PROTOCOL_SCRATCHPAD;
    struct quoit_lane *lanes = calloc(lane_count, sizeof *lanes);
    struct quoit_scratchpad_node *scratchpad_node = is_scratchpad ? calloc(1, sizeof *scratchpad_node) : NULL;
    quoit_park_setup();
    bool has_memory = lanes && (scratchpad_node || !is_scratchpad);
    enum quoit_status status = has_memory ? quoit_node_start_links(config, ports) : QUOIT_NO_MEMORY;
    for (uint32_t i = 0; i < lane_count && status == QUOIT_OK; i++)
        status = quoit_lane_open(&lanes[i], config, i, ports, scratchpad_node);
    if (status == QUOIT_OK) {
        config->on_ready(config->on_ready_arg);
        status = run_lanes(lanes, lane_count);
    }
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        quoit_port_close(ports[side]); /* before the lanes, whose buffers a DMA under way may read */
    for (uint32_t i = 0; i < lane_count && lanes; i++)
        quoit_lane_close(&lanes[i]);
    free(scratchpad_node);
    free(lanes);
    return status;
}
