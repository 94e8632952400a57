/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/node.h"
#include "base/log.h"
#include "node/links.h"
#include "node/scratchpad_lane.h"
#include "node/start.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct quoit_node {
    struct quoit_node_config config;
    struct quoit_port *ports[QUOIT_SIDE_COUNT];
    struct quoit_links links;
    struct quoit_scratchpad_node *scratchpad; /* protocol SCRATCHPAD, else NULL */
    uint32_t lane_count;
    struct quoit_mover movers[QUOIT_LANES_MAX];
    struct quoit_lane lanes[QUOIT_LANES_MAX];
};

void quoit_node_stop(const struct quoit_layout *layout, void *memory)
{
    struct quoit_host_header *header = memory;
    atomic_store(&header->is_stopping, 1);
    for (uint32_t lane = 0; lane < layout->shape.lane_count; lane++)
        quoit_park_wake(&quoit_memory_lane(layout, memory, lane)->park);
    quoit_park_wake(&header->manager_park);
}

enum quoit_status quoit_node_open(const struct quoit_node_config *config, struct quoit_node **node_out)
{
    struct quoit_node *node = calloc(1, sizeof *node);
    if (!node)
        return QUOIT_NO_MEMORY;
    node->config = *config;
    quoit_park_setup();
    enum quoit_status status = QUOIT_OK;
    if (config->layout->shape.protocol == QUOIT_PROTOCOL_SCRATCHPAD) {
        node->scratchpad = calloc(1, sizeof *node->scratchpad);
        status = node->scratchpad ? QUOIT_OK : QUOIT_NO_MEMORY;
    }
    if (status == QUOIT_OK)
        status = quoit_node_open_ports(&node->config, node->ports);
    if (status == QUOIT_OK)
        status = quoit_links_start(&node->links, &node->config, node->ports);
    if (status == QUOIT_OK)
        status = quoit_movers_open(node->movers, &node->config, node->ports);
    while (status == QUOIT_OK && node->lane_count < config->layout->shape.lane_count) {
        status = quoit_lane_open(&node->lanes[node->lane_count], &node->config, node->lane_count, node->ports,
                                 &node->movers[node->lane_count], node->scratchpad);
        node->lane_count++; /* one that was opened in part is closed too */
    }
    if (status != QUOIT_OK) {
        quoit_node_close(node);
        return status;
    }
    quoit_links_lead(&node->links, node->lanes);
    *node_out = node;
    return QUOIT_OK;
}

enum quoit_status quoit_node_serve(struct quoit_node *node, uint32_t lane_index)
{
    struct quoit_lane *lane = &node->lanes[lane_index];
    quoit_lane_run(lane);
    if (lane->status != QUOIT_OK && lane->status != QUOIT_LINK_DOWN) { /* which the manager tells, who knows the link */
        quoit_log(QUOIT_LOG_ERROR, "lane %u of host %u ended: %s", lane->index, lane->layout->host,
                  quoit_status_text(lane->status));
        quoit_node_stop(lane->layout, lane->memory); /* the others cannot go on without it */
    }
    return lane->status;
}

enum quoit_status quoit_node_manage(struct quoit_node *node)
{
    quoit_links_run(&node->links);
    if (node->links.status != QUOIT_OK) {
        quoit_log(QUOIT_LOG_ERROR, "host %u cannot bring a link up again: %s", node->config.layout->host,
                  quoit_status_text(node->links.status));
        quoit_node_stop(node->config.layout, node->config.memory);
    }
    return node->links.status;
}

const struct quoit_lane *quoit_node_lane(const struct quoit_node *node, uint32_t lane_index)
{
    return &node->lanes[lane_index];
}

void quoit_node_close(struct quoit_node *node)
{
    if (!node)
        return;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        quoit_port_close(node->ports[side]); /* before the lanes, whose buffers a DMA under way may read */
    for (uint32_t i = 0; i < node->lane_count; i++)
        quoit_lane_close(&node->lanes[i]);
    free(node->scratchpad);
    free(node);
}

/* A lane, or the manager. */
struct service {
    struct quoit_node *node;
    uint32_t lane_index;
    enum quoit_status status;
    pthread_t thread;
};

static void *serve(void *arg)
{
    struct service *service = arg;
    service->status = quoit_node_serve(service->node, service->lane_index);
    return NULL;
}

static void *manage(void *arg)
{
    struct service *service = arg;
    service->status = quoit_node_manage(service->node);
    return NULL;
}

/* The first lane runs on the caller's thread. */
static enum quoit_status serve_all(struct quoit_node *node)
{
    struct service services[QUOIT_LANES_MAX];
    struct service manager = {.node = node};
    uint32_t started_count = 1;
    enum quoit_status status = QUOIT_OK;
    for (uint32_t i = 0; i < node->lane_count; i++)
        services[i] = (struct service){.node = node, .lane_index = i};
    int error = pthread_create(&manager.thread, NULL, manage, &manager);
    bool has_manager = error == 0;
    while (error == 0 && started_count < node->lane_count) {
        error = pthread_create(&services[started_count].thread, NULL, serve, &services[started_count]);
        started_count += error == 0;
    }
    if (error != 0) {
        quoit_log(QUOIT_LOG_ERROR, "cannot start service thread %u: %s", started_count, strerror(error));
        quoit_node_stop(node->config.layout, node->config.memory);
        status = QUOIT_SYSTEM;
    }
    serve(&services[0]);
    for (uint32_t i = 1; i < started_count; i++)
        pthread_join(services[i].thread, NULL);
    if (has_manager)
        pthread_join(manager.thread, NULL);
    for (uint32_t i = 0; i < started_count && status == QUOIT_OK; i++)
        status = services[i].status;
    return status == QUOIT_OK ? manager.status : status;
}

enum quoit_status quoit_node_run(const struct quoit_node_config *config)
{
    struct quoit_node *node;
    enum quoit_status status = quoit_node_open(config, &node);
    if (status != QUOIT_OK)
        return status;
    config->on_ready(config->on_ready_arg);
    status = serve_all(node);
    quoit_node_close(node);
    return status;
}
