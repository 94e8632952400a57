/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/node.h"
#include "base/log.h"
#include "node/links.h"
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
    quoit_park_wake(&header->manager_park);
}

static void *run_manager(void *arg)
{
    struct quoit_links *links = arg;
    quoit_links_run(links);
    if (links->status != QUOIT_OK) {
        quoit_log(QUOIT_LOG_ERROR, "host %u cannot bring a link up again: %s", links->config->layout->host,
                  quoit_status_text(links->status));
        quoit_node_stop(links->config->layout, links->config->memory);
    }
    return NULL;
}

/* The first lane runs on the caller's thread. */
static enum quoit_status run_threads(struct quoit_lane *lanes, uint32_t lane_count, struct quoit_links *links)
{
    pthread_t threads[QUOIT_LANES_MAX], manager;
    uint32_t started_count = 1;
    enum quoit_status status = QUOIT_OK;
    bool has_manager = pthread_create(&manager, NULL, run_manager, links) == 0;
    while (has_manager && started_count < lane_count &&
           pthread_create(&threads[started_count], NULL, run_lane, &lanes[started_count]) == 0)
        started_count++;
    if (!has_manager || started_count < lane_count) {
        quoit_log(QUOIT_LOG_ERROR, "cannot start service thread %u", started_count);
        quoit_node_stop(lanes[0].layout, lanes[0].memory);
        status = QUOIT_SYSTEM;
    }
    run_lane(&lanes[0]);
    for (uint32_t i = 1; i < started_count; i++)
        pthread_join(threads[i], NULL);
    if (has_manager)
        pthread_join(manager, NULL);
    for (uint32_t i = 0; i < lane_count && status == QUOIT_OK; i++)
        status = lanes[i].status;
    return status == QUOIT_OK ? links->status : status;
}

enum quoit_status quoit_node_run(const struct quoit_node_config *config)
{
    uint32_t lane_count = config->layout->shape.lane_count;
    struct quoit_port *ports[QUOIT_SIDE_COUNT] = {NULL, NULL};
    struct quoit_lane *lanes = calloc(lane_count, sizeof *lanes);
    struct quoit_links links;
    quoit_park_setup();
    enum quoit_status status = lanes ? quoit_node_open_ports(config, ports) : QUOIT_NO_MEMORY;
    if (status == QUOIT_OK)
        status = quoit_links_start(&links, config, ports);
    for (uint32_t i = 0; i < lane_count && status == QUOIT_OK; i++)
        status = quoit_lane_open(&lanes[i], config, i, ports);
    if (status == QUOIT_OK) {
        links.lanes = lanes;
        config->on_ready(config->on_ready_arg);
        status = run_threads(lanes, lane_count, &links);
    }
    for (uint32_t i = 0; i < lane_count && lanes; i++)
        quoit_lane_close(&lanes[i]);
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        quoit_port_close(ports[side]);
    free(lanes);
    return status;
}
