/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/proxy.h"
#include "base/log.h"
#include "lane/lane.h"
#include "proxy/engines.h"
#include "proxy/links.h"
#include "proxy/start.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct quoit_proxy {
    struct quoit_proxy_config config;
    struct quoit_port *ports[QUOIT_SIDE_COUNT];
    struct quoit_links links;
    struct quoit_lane_group group;
    uint32_t lane_count;
    struct quoit_lane lanes[QUOIT_LANES_MAX];
};

void quoit_proxy_stop(const struct quoit_layout *layout, void *memory)
{
    struct quoit_host_header *header = memory;
    atomic_store(&header->is_stopping, 1);
    for (uint32_t lane = 0; lane < layout->job.lane_count; lane++)
        quoit_park_wake(&quoit_memory_lane(layout, memory, lane)->park);
    quoit_park_wake(&header->manager_park);
}

static enum quoit_status open_lanes(struct quoit_proxy *proxy)
{
    const struct quoit_proxy_config *config = &proxy->config;
    proxy->group = (struct quoit_lane_group){
        .layout = config->layout,
        .memory = config->memory,
        .ports = {proxy->ports[QUOIT_LEFT], proxy->ports[QUOIT_RIGHT]},
        .policy = config->policy,
        .dma_bytes = config->dma_bytes,
        .engine = quoit_engine_of(&config->layout->job),
        .barrier = quoit_barrier_of(&config->layout->job),
    };
    enum quoit_status status = proxy->group.engine->group_open(&proxy->group);
    while (status == QUOIT_OK && proxy->lane_count < config->layout->job.lane_count) {
        status = quoit_lane_open(&proxy->lanes[proxy->lane_count], &proxy->group, proxy->lane_count);
        proxy->lane_count++; /* one that was opened in part is closed too */
    }
    return status;
}

enum quoit_status quoit_proxy_open(const struct quoit_proxy_config *config, struct quoit_proxy **proxy_out)
{
    struct quoit_proxy *proxy = calloc(1, sizeof *proxy);
    if (!proxy)
        return QUOIT_NO_MEMORY;
    proxy->config = *config;
    quoit_park_setup();
    enum quoit_status status = quoit_proxy_open_ports(&proxy->config, proxy->ports);
    if (status == QUOIT_OK)
        status = quoit_links_start(&proxy->links, &proxy->config, proxy->ports);
    if (status == QUOIT_OK)
        status = open_lanes(proxy);
    if (status != QUOIT_OK) {
        quoit_proxy_close(proxy);
        return status;
    }
    quoit_links_lead(&proxy->links, proxy->lanes);
    *proxy_out = proxy;
    return QUOIT_OK;
}

enum quoit_status quoit_proxy_serve(struct quoit_proxy *proxy, uint32_t lane_index)
{
    struct quoit_lane *lane = &proxy->lanes[lane_index];
    quoit_lane_run(lane);
    if (lane->status != QUOIT_OK && lane->status != QUOIT_LINK_DOWN) { /* which the manager tells, who knows the link */
        quoit_log(QUOIT_LOG_ERROR, "lane %u of host %u ended: %s", lane->index, lane->layout->host,
                  quoit_status_text(lane->status));
        quoit_proxy_stop(lane->layout, lane->memory); /* the others cannot go on without it */
    }
    return lane->status;
}

enum quoit_status quoit_proxy_manage(struct quoit_proxy *proxy)
{
    quoit_links_run(&proxy->links);
    if (proxy->links.status != QUOIT_OK) {
        quoit_log(QUOIT_LOG_ERROR, "host %u cannot bring a link up again: %s", proxy->config.layout->host,
                  quoit_status_text(proxy->links.status));
        quoit_proxy_stop(proxy->config.layout, proxy->config.memory);
    }
    return proxy->links.status;
}

const struct quoit_lane *quoit_proxy_lane(const struct quoit_proxy *proxy, uint32_t lane_index)
{
    return &proxy->lanes[lane_index];
}

void quoit_proxy_close(struct quoit_proxy *proxy)
{
    if (!proxy)
        return;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        quoit_port_close(proxy->ports[side]); /* before the lanes, whose buffers a DMA under way may read */
    for (uint32_t i = 0; i < proxy->lane_count; i++)
        quoit_lane_close(&proxy->lanes[i]);
    if (proxy->group.engine)
        proxy->group.engine->group_close(&proxy->group);
    free(proxy);
}

/* A lane, or the manager. */
struct service {
    struct quoit_proxy *proxy;
    uint32_t lane_index;
    enum quoit_status status;
    pthread_t thread;
};

static void *serve(void *arg)
{
    struct service *service = arg;
    service->status = quoit_proxy_serve(service->proxy, service->lane_index);
    return NULL;
}

static void *manage(void *arg)
{
    struct service *service = arg;
    service->status = quoit_proxy_manage(service->proxy);
    return NULL;
}

/* The first lane runs on the caller's thread. */
static enum quoit_status serve_all(struct quoit_proxy *proxy)
{
    struct service services[QUOIT_LANES_MAX];
    struct service manager = {.proxy = proxy};
    uint32_t started_count = 1;
    enum quoit_status status = QUOIT_OK;
    for (uint32_t i = 0; i < proxy->lane_count; i++)
        services[i] = (struct service){.proxy = proxy, .lane_index = i};
    int error = pthread_create(&manager.thread, NULL, manage, &manager);
    bool has_manager = error == 0;
    while (error == 0 && started_count < proxy->lane_count) {
        error = pthread_create(&services[started_count].thread, NULL, serve, &services[started_count]);
        started_count += error == 0;
    }
    if (error != 0) {
        quoit_log(QUOIT_LOG_ERROR, "cannot start service thread %u: %s", started_count, strerror(error));
        quoit_proxy_stop(proxy->config.layout, proxy->config.memory);
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

enum quoit_status quoit_proxy_run(const struct quoit_proxy_config *config)
{
    struct quoit_proxy *proxy;
    enum quoit_status status = quoit_proxy_open(config, &proxy);
    if (status != QUOIT_OK)
        return status;
    config->on_ready(config->on_ready_arg);
    status = serve_all(proxy);
    quoit_proxy_close(proxy);
    return status;
}
