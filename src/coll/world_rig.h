/* SPDX-License-Identifier: BSD-3-Clause */
/* world_rig.h - any number of hosts in this process, each with its proxy in a thread. Included by tests only. */
#ifndef QUOIT_COLL_WORLD_RIG_H
#define QUOIT_COLL_WORLD_RIG_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#include "proxy/proxy.h"
#include "proxy/ring_rig.h"

struct world;
struct pe;

/* What runs on which hosts. */
struct play {
    uint32_t host_count;
    uint32_t pe_count;
    uint64_t window_bytes; /* of the memory windows; 0: all of the memory */
    uint32_t step_count;
    uint32_t size_log_max;
    void (*run)(struct pe *pe); /* before the steps */
    bool is_network;            /* teams take their hosts for those of a network */
    uint64_t schedules;         /* of such teams */
};

struct host {
    struct world *world;
    struct rig_host *rig;
    pthread_t thread;
    enum quoit_status status;
};

struct world {
    struct quoit_job_config job;
    struct quoit_port_knobs knobs;
    struct ring_rig rig;
    struct host hosts[RIG_HOSTS_MAX];
    pthread_barrier_t ready;    /* proxies and the test */
    pthread_barrier_t quiesced; /* PEs */
    uint64_t seed;
    struct play play;
    _Atomic uint32_t error_count;
};

static inline void proxy_is_ready(void *arg)
{
    struct world *world = arg;
    pthread_barrier_wait(&world->ready);
}

static inline void *run_proxy(void *arg)
{
    struct host *host = arg;
    struct quoit_proxy_config config = {
        .layout = &host->rig->layout,
        .memory = host->rig->memory,
        .machine.policy = quoit_wait_policy_for(100, 2),
        .link_timeout_ns = 20000000000u,
        .on_ready = proxy_is_ready,
        .on_ready_arg = host->world,
    };
    rig_ports(&host->world->rig, host->rig, config.ports);
    host->status = quoit_proxy_run(&config);
    return NULL;
}

static inline void start_world(struct world *world)
{
    uint32_t host_count = world->job.host_count;
    pthread_barrier_init(&world->ready, NULL, host_count + 1);
    pthread_barrier_init(&world->quiesced, NULL, world->job.pe_count);
    rig_make(&world->rig, &world->job, &world->knobs);
    for (uint32_t i = 0; i < host_count; i++) {
        world->hosts[i].world = world;
        world->hosts[i].rig = &world->rig.hosts[i];
    }
    if (host_count == 1)
        return;
    for (uint32_t i = 0; i < host_count; i++)
        assert_int_equal(pthread_create(&world->hosts[i].thread, NULL, run_proxy, &world->hosts[i]), 0);
    pthread_barrier_wait(&world->ready);
}

static inline void stop_world(struct world *world)
{
    for (uint32_t i = 0; i < world->job.host_count && world->job.host_count > 1; i++)
        quoit_proxy_stop(&world->hosts[i].rig->layout, world->hosts[i].rig->memory);
    for (uint32_t i = 0; i < world->job.host_count; i++) {
        if (world->job.host_count > 1)
            pthread_join(world->hosts[i].thread, NULL);
        assert_int_equal(world->hosts[i].status, QUOIT_OK);
    }
    rig_free(&world->rig);
    pthread_barrier_destroy(&world->ready);
    pthread_barrier_destroy(&world->quiesced);
}

#endif
