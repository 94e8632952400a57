/* SPDX-License-Identifier: BSD-3-Clause */
/* proxies_rig.h - the hosts of a ring in one process, each with its proxy in a thread. Included by tests only, whose
 * threads are the PEs, with fabrics of their own. */
#ifndef QUOIT_FABRIC_PROXIES_RIG_H
#define QUOIT_FABRIC_PROXIES_RIG_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fabric/fabric.h"
#include "proxy/proxy.h"
#include "proxy/ring_rig.h"

struct proxies_rig;

struct rig_proxy {
    struct proxies_rig *rig;
    struct rig_host *host;
    pthread_t thread;
    enum quoit_status status;
};

struct proxies_rig {
    /* The test fills in: */
    struct quoit_job_config job;
    struct quoit_port_knobs knobs;
    uint64_t link_limit_ns;
    uint64_t dma_bytes;
    struct quoit_wait_policy policy; /* of PEs */
    void (*on_cut_off)(void *rig, uint32_t first_link, uint32_t second_link);

    struct ring_rig ring;
    struct rig_proxy proxies[RIG_HOSTS_MAX];
    pthread_barrier_t ready;    /* proxies and the test */
    pthread_barrier_t quiesced; /* PEs, before they close their fabrics */
};

static inline void rig_proxy_is_ready(void *arg)
{
    struct proxies_rig *rig = arg;
    pthread_barrier_wait(&rig->ready);
}

static inline void *rig_run_proxy(void *arg)
{
    struct rig_proxy *proxy = arg;
    struct proxies_rig *rig = proxy->rig;
    struct quoit_proxy_config config = {
        .layout = &proxy->host->layout,
        .memory = proxy->host->memory,
        .machine.policy = quoit_wait_policy_for(100, 2),
        .link_timeout_ns = 20000000000u,
        .link_limit_ns = rig->link_limit_ns,
        .dma_bytes = rig->dma_bytes,
        .on_ready = rig_proxy_is_ready,
        .on_cut_off = rig->on_cut_off,
        .on_ready_arg = rig,
    };
    rig_ports(&rig->ring, proxy->host, config.ports);
    proxy->status = quoit_proxy_run(&config);
    return NULL;
}

/* A single host has no proxy. */
static inline uint32_t rig_proxy_count(const struct proxies_rig *rig)
{
    return rig->job.host_count > 1 ? rig->job.host_count : 0;
}

static inline void rig_start(struct proxies_rig *rig)
{
    pthread_barrier_init(&rig->ready, NULL, rig_proxy_count(rig) + 1);
    pthread_barrier_init(&rig->quiesced, NULL, rig->job.pe_count);
    rig_make(&rig->ring, &rig->job, &rig->knobs);
    for (uint32_t i = 0; i < rig_proxy_count(rig); i++) {
        rig->proxies[i] = (struct rig_proxy){.rig = rig, .host = &rig->ring.hosts[i]};
        assert_int_equal(pthread_create(&rig->proxies[i].thread, NULL, rig_run_proxy, &rig->proxies[i]), 0);
    }
    pthread_barrier_wait(&rig->ready);
}

/* Where the PE runs. */
static inline struct rig_host *rig_host_of(struct proxies_rig *rig, uint32_t pe)
{
    return &rig->ring.hosts[quoit_job_config_host_of_pe(&rig->job, pe)];
}

/* Of the calling thread, which is this PE. */
static inline struct quoit_fabric *rig_open_fabric(struct proxies_rig *rig, uint32_t pe)
{
    struct rig_host *host = rig_host_of(rig, pe);
    struct quoit_fabric_config config = {
        .layout = &host->layout, .memory = host->memory, .pe_self = pe, .policy = rig->policy};
    struct quoit_fabric *fabric;
    rig_ports(&rig->ring, host, config.ports);
    if (quoit_fabric_open(&config, &fabric) != QUOIT_OK)
        abort();
    return fabric;
}

/* Once all PEs have done what they wanted of others. */
static inline void rig_close_fabric(struct proxies_rig *rig, struct quoit_fabric *fabric)
{
    pthread_barrier_wait(&rig->quiesced);
    quoit_fabric_close(fabric);
}

/* One after another, so that all but the first see a neighbour leave. The memory stays. */
static inline void rig_stop(struct proxies_rig *rig)
{
    for (uint32_t i = 0; i < rig_proxy_count(rig); i++) {
        quoit_proxy_stop(&rig->proxies[i].host->layout, rig->proxies[i].host->memory);
        pthread_join(rig->proxies[i].thread, NULL);
        assert_int_equal(rig->proxies[i].status, QUOIT_OK);
    }
}

static inline void rig_end(struct proxies_rig *rig)
{
    rig_free(&rig->ring);
    pthread_barrier_destroy(&rig->ready);
    pthread_barrier_destroy(&rig->quiesced);
}

#endif
