/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/proxy.h"
#include "base/digest.h"
#include "base/log.h"
#include "lane/lane.h"
#include "lane/outbox.h"
#include "link/service.h"
#include "proxy/engines.h"
#include "proxy/network.h"
#include "env/thread.h"
#include "virtual/clock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct quoit_proxy {
    struct quoit_proxy_config config;
    struct quoit_service *service; /* NULL: there are no links */
    struct quoit_lane_group links, network;
    struct quoit_outbox outbox;
    uint32_t lane_count; /* open; those of links come first */
    struct quoit_lane lanes[QUOIT_LANES_MAX + 1];
};

void quoit_proxy_stop(const struct quoit_layout *layout, void *memory)
{
    struct quoit_host_header *header = memory;
    atomic_store(&header->is_stopping, 1);
    for (uint32_t lane = 0; lane < layout->lane_count; lane++)
        quoit_park_wake(&quoit_memory_lane(layout, memory, lane)->park);
    quoit_park_wake(&header->manager_park);
}

/* The client of the ring service */

/* Those that are open. */
static uint32_t link_lane_count(const struct quoit_proxy *proxy)
{
    uint32_t most = proxy->config.layout->link_lane_count;
    return proxy->lane_count < most ? proxy->lane_count : most;
}

/* The lanes follow. PEs sleep for things that came through this link, and a doorbell may be lost with it; or they may
 * put directly again. */
static void link_changed(void *arg, enum quoit_side side)
{
    struct quoit_proxy *proxy = arg;
    const struct quoit_layout *layout = proxy->config.layout;
    (void)side;
    for (uint32_t i = 0; i < link_lane_count(proxy); i++)
        quoit_park_wake(&proxy->lanes[i].shared->park);
    for (uint32_t local = 0; local < layout->local_count; local++)
        quoit_park_wake(&quoit_memory_pe(layout, proxy->config.memory, local)->park);
}

static bool lanes_have_followed(void *arg, enum quoit_side side)
{
    const struct quoit_proxy *proxy = arg;
    for (uint32_t i = 0; i < link_lane_count(proxy); i++)
        if (!quoit_lane_has_followed(&proxy->lanes[i], side))
            return false;
    return true;
}

static void clean_slots(void *arg, enum quoit_side side)
{
    struct quoit_proxy *proxy = arg;
    proxy->links.engine->clean(proxy->config.layout, proxy->config.memory, side);
}

static uint64_t dead_links(void *arg)
{
    const struct quoit_proxy *proxy = arg;
    return link_lane_count(proxy) ? atomic_load_explicit(&proxy->lanes[0].dead_links, memory_order_acquire) : 0;
}

static void cut_off(void *arg, uint32_t first_link, uint32_t second_link)
{
    const struct quoit_proxy *proxy = arg;
    uint32_t first = proxy->config.layout->ring.first;
    proxy->config.on_cut_off(proxy->config.on_ready_arg, first + first_link, first + second_link);
}

/* Lane `first` and every `stride`-th from there on. */
static struct quoit_port_vector lanes_vector(const struct quoit_layout *layout, uint32_t first, uint32_t stride)
{
    return (struct quoit_port_vector){
        .park_offset =
            layout->lanes + first * sizeof(struct quoit_lane_shared) + offsetof(struct quoit_lane_shared, park),
        .park_stride = stride * (uint32_t)sizeof(struct quoit_lane_shared),
        .park_count = (layout->link_lane_count - first + stride - 1) / stride,
    };
}

/* Doorbells of lanes wake the lanes, those of a barrier lane 0; the engine defines the others. */
static void vectors_of(void *arg, uint64_t bits, struct quoit_port_vector vectors_out[QUOIT_DOORBELL_COUNT])
{
    const struct quoit_proxy *proxy = arg;
    const struct quoit_layout *layout = proxy->config.layout;
    const struct quoit_doorbells doorbells = quoit_doorbells_of(&layout->job, bits);
    for (uint32_t i = 0; bits != 0; i++, bits &= bits - 1) {
        struct quoit_port_vector *vector = &vectors_out[__builtin_ctzll(bits)];
        if (i < doorbells.lane_count)
            *vector = lanes_vector(layout, i, doorbells.lane_count);
        else if (i < doorbells.rest)
            *vector = lanes_vector(layout, 0, layout->link_lane_count);
        else
            *vector = proxy->links.engine->vector(layout, i - doorbells.rest, doorbells.rest_count);
    }
}

/* What lies beyond the window MEMORY goes through the slots. */
static struct quoit_window_range offered_memory(const struct quoit_proxy *proxy, enum quoit_side side)
{
    const struct quoit_layout *layout = proxy->config.layout;
    struct quoit_port_limits limits;
    quoit_port_limits(quoit_service_port(proxy->service, side), &limits);
    uint64_t bytes = layout->local_count * layout->segment_stride;
    uint64_t most = limits.window_bytes[QUOIT_WINDOW_MEMORY];
    return (struct quoit_window_range){.offset = layout->segments, .bytes = bytes < most ? bytes : most};
}

static enum quoit_status attach(struct quoit_proxy *proxy)
{
    const struct quoit_layout *layout = proxy->config.layout;
    struct quoit_client client = {
        .name = "the job",
        .digest = quoit_digest(&layout->job, sizeof layout->job),
        .doorbell_least = quoit_doorbells_least(&layout->job),
        .doorbell_most = quoit_doorbells_most(&layout->job, layout->local_count),
        .vectors = vectors_of,
        .has_failover = quoit_job_config_has_failover(&layout->job),
        .cut_off_limit_ns = proxy->config.link_limit_ns,
        .changed = link_changed,
        .has_followed = lanes_have_followed,
        .clean = clean_slots,
        .dead_links = dead_links,
        .cut_off = cut_off,
        .arg = proxy,
    };
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        client.windows[side][QUOIT_WINDOW_SLOTS] =
            (struct quoit_window_range){.offset = layout->slots[side], .bytes = layout->slots_bytes};
        client.windows[side][QUOIT_WINDOW_MEMORY] = offered_memory(proxy, side);
    }
    return quoit_service_attach(proxy->service, &client);
}

/* Opening */

static enum quoit_status open_service(struct quoit_proxy *proxy)
{
    const struct quoit_proxy_config *config = &proxy->config;
    struct quoit_host_header *header = config->memory;
    const struct quoit_service_config service = {
        .host = config->layout->host - config->layout->ring.first,
        .host_count = config->layout->ring.count,
        .ports = {config->ports[QUOIT_LEFT], config->ports[QUOIT_RIGHT]},
        .records = header->links,
        .park = &header->manager_park,
        .park_offset = offsetof(struct quoit_host_header, manager_park),
    };
    enum quoit_status status = quoit_service_open(&service, &proxy->service);
    if (status == QUOIT_OK)
        status = attach(proxy);
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT && status == QUOIT_OK; side++)
        if (config->is_down[side] && quoit_job_config_has_failover(&config->layout->job))
            quoit_service_expect_down(proxy->service, side);
    return status == QUOIT_OK ? quoit_service_start(proxy->service, config->link_timeout_ns) : status;
}

/* A link that was lost before the lanes existed may be in a later epoch, as the neighbour's lanes know. */
static void lead_lanes(struct quoit_proxy *proxy)
{
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        uint32_t target = atomic_load_explicit(&proxy->links.links[side].target, memory_order_relaxed);
        for (uint32_t i = 0; i < link_lane_count(proxy) && QUOIT_LINK_TARGET_EPOCH(target) != 0; i++)
            quoit_lane_begin_down(&proxy->lanes[i], side, QUOIT_LINK_TARGET_EPOCH(target));
    }
}

/* Up to lane end - 1. */
static enum quoit_status open_lanes(struct quoit_proxy *proxy, struct quoit_lane_group *group, uint32_t end)
{
    enum quoit_status status = group->engine->group_open ? group->engine->group_open(group) : QUOIT_OK;
    while (status == QUOIT_OK && proxy->lane_count < end) {
        status = quoit_lane_open(&proxy->lanes[proxy->lane_count], group, proxy->lane_count);
        proxy->lane_count++; /* one that was opened in part is closed too */
    }
    return status;
}

static enum quoit_status open_links(struct quoit_proxy *proxy)
{
    const struct quoit_layout *layout = proxy->config.layout;
    proxy->links.engine = quoit_engine_of((enum quoit_protocol)layout->job.protocol);
    proxy->links.barrier = quoit_barrier_of(&layout->job);
    enum quoit_status status = open_service(proxy);
    if (status != QUOIT_OK)
        return status;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        proxy->links.ports[side] = quoit_service_port(proxy->service, side);
    status = open_lanes(proxy, &proxy->links, layout->link_lane_count);
    if (status == QUOIT_OK)
        lead_lanes(proxy);
    return status;
}

static enum quoit_status open_network(struct quoit_proxy *proxy)
{
    proxy->network.network = proxy->config.network;
    proxy->network.engine = quoit_engine_of(QUOIT_PROTOCOL_NETWORK);
    return open_lanes(proxy, &proxy->network, proxy->config.layout->lane_count);
}

enum quoit_status quoit_proxy_open(const struct quoit_proxy_config *config, struct quoit_proxy **proxy_out)
{
    struct quoit_proxy *proxy = calloc(1, sizeof *proxy);
    if (!proxy)
        return QUOIT_NO_MEMORY;
    proxy->config = *config;
    proxy->links = (struct quoit_lane_group){
        .layout = config->layout,
        .memory = config->memory,
        .links = ((struct quoit_host_header *)config->memory)->links,
        .policy = config->machine.policy,
        .dma_bytes = config->dma_bytes,
        .outbox = quoit_job_config_has_messages(&config->layout->job) ? &proxy->outbox : NULL,
        .on_message = config->on_message,
        .on_message_arg = config->on_message_arg,
    };
    proxy->network = proxy->links;
    ((struct quoit_host_header *)config->memory)->machine = config->machine;
    quoit_outbox_open(&proxy->outbox, config->layout, config->memory);
    quoit_park_setup();
    enum quoit_status status = quoit_layout_has_links(config->layout) ? open_links(proxy) : QUOIT_OK;
    if (status == QUOIT_OK && config->network)
        status = open_network(proxy);
    if (status != QUOIT_OK) {
        quoit_proxy_close(proxy);
        return status;
    }
    *proxy_out = proxy;
    return QUOIT_OK;
}

enum quoit_status quoit_proxy_serve(struct quoit_proxy *proxy, uint32_t lane_index)
{
    struct quoit_lane *lane = &proxy->lanes[lane_index];
    quoit_lane_run(lane);
    if (lane->status != QUOIT_OK && lane->status != QUOIT_LINK_DOWN) { /* LINK_DOWN is reported by the manager, which
                                                                        * knows the link */
        quoit_log(QUOIT_LOG_ERROR, "lane %u of host %u ended: %s", lane->index, lane->layout->host,
                  quoit_status_text(lane->status));
        quoit_proxy_stop(lane->layout, lane->memory); /* the others cannot continue without it */
    }
    return lane->status;
}

enum quoit_status quoit_proxy_manage(struct quoit_proxy *proxy)
{
    struct quoit_host_header *header = proxy->config.memory;
    if (!proxy->service) /* there are no links */
        return QUOIT_OK;
    enum quoit_status status = quoit_service_manage(proxy->service, &header->is_stopping);
    if (status != QUOIT_OK) {
        quoit_log(QUOIT_LOG_ERROR, "host %u cannot bring a link up again: %s", proxy->config.layout->host,
                  quoit_status_text(status));
        quoit_proxy_stop(proxy->config.layout, proxy->config.memory);
    }
    return status;
}

const struct quoit_lane *quoit_proxy_lane(const struct quoit_proxy *proxy, uint32_t lane_index)
{
    return &proxy->lanes[lane_index];
}

enum quoit_status quoit_proxy_send(struct quoit_proxy *proxy, uint32_t dest_host, uint32_t port, const void *payload,
                                   uint32_t bytes)
{
    if (!quoit_job_config_has_messages(&proxy->config.layout->job))
        return QUOIT_UNSUPPORTED;
    if (proxy->config.network && bytes > QUOIT_NETWORK_FRAMED_BYTES)
        return QUOIT_OUT_OF_RANGE;
    return quoit_outbox_send(&proxy->outbox, dest_host, port, payload, bytes);
}

bool quoit_proxy_has_sent(const struct quoit_proxy *proxy)
{
    return quoit_outbox_is_empty(&proxy->outbox);
}

void quoit_proxy_close(struct quoit_proxy *proxy)
{
    if (!proxy)
        return;
    quoit_service_close(proxy->service); /* before the lanes, whose buffers an outstanding DMA may read */
    for (uint32_t i = 0; i < proxy->lane_count; i++)
        quoit_lane_close(&proxy->lanes[i]);
    if (proxy->links.engine)
        proxy->links.engine->group_close(&proxy->links);
    quoit_outbox_close(&proxy->outbox);
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
    quoit_virtual_serve(service->proxy->config.layout->host, service->lane_index);
    service->status = quoit_proxy_serve(service->proxy, service->lane_index);
    return NULL;
}

static void *manage(void *arg)
{
    struct service *service = arg;
    quoit_virtual_serve(service->proxy->config.layout->host, service->proxy->lane_count);
    service->status = quoit_proxy_manage(service->proxy);
    return NULL;
}

/* The first lane runs on the caller's thread. The proxy is ready when all threads are there. */
static enum quoit_status serve_all(struct quoit_proxy *proxy)
{
    struct service services[QUOIT_LANES_MAX + 1];
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
    if (error == 0) {
        proxy->config.on_ready(proxy->config.on_ready_arg);
        serve(&services[0]);
    } else {
        quoit_proxy_stop(proxy->config.layout, proxy->config.memory);
        status = quoit_thread_status(error);
    }
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
    status = serve_all(proxy);
    quoit_proxy_close(proxy);
    return status;
}
