/* SPDX-License-Identifier: BSD-3-Clause */
/* ring_rig.h - the hosts of a ring in one process, for tests: memory and links by the first driver of the table. */
#ifndef QUOIT_PROXY_RING_RIG_H
#define QUOIT_PROXY_RING_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/layout.h"
#include "port/driver.h"
#include "port/port.h"
#include "share/share.h"

#define RIG_HOSTS_MAX 16

struct rig_host {
    struct quoit_layout layout;
    int memory_fd;
    int link_fd; /* to the right */
    void *memory;
    struct quoit_port_endpoint links[QUOIT_SIDE_COUNT];
};

struct ring_rig {
    uint32_t host_count;
    struct quoit_shared_ring *shared; /* on which it has a share; NULL: the ring is its own */
    const struct quoit_share *share;
    struct rig_host hosts[RIG_HOSTS_MAX];
};

static inline struct quoit_port_endpoint rig_describe(const struct rig_host *owner, const struct rig_host *peer,
                                                      uint32_t side, const struct quoit_port_knobs *knobs)
{
    const struct quoit_port_site site = {
        .link_fd = owner->link_fd, .peer_memory_fd = peer->memory_fd, .side = side, .knobs = *knobs};
    struct quoit_port_endpoint endpoint;
    assert_int_equal(quoit_port_driver_describe(quoit_port_driver_at(0), &site, &endpoint), QUOIT_OK);
    return endpoint;
}

static inline void rig_make(struct ring_rig *rig, const struct quoit_job_config *job,
                            const struct quoit_port_knobs *knobs)
{
    const struct quoit_port_driver *driver = quoit_port_driver_at(0);
    rig->host_count = job->host_count;
    assert_in_range(rig->host_count, 1, RIG_HOSTS_MAX);
    for (uint32_t i = 0; i < rig->host_count; i++) {
        struct rig_host *host = &rig->hosts[i];
        assert_int_equal(quoit_layout_make(job, i, &host->layout), QUOIT_OK);
        assert_int_equal(quoit_port_driver_memory(driver, "host", host->layout.total_bytes, &host->memory_fd),
                         QUOIT_OK);
        host->memory = mmap(NULL, host->layout.total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, host->memory_fd, 0);
        assert_ptr_not_equal(host->memory, MAP_FAILED);
        assert_int_equal(quoit_port_driver_link(driver, &host->link_fd), QUOIT_OK);
    }
    for (uint32_t i = 0; i < rig->host_count && rig->host_count > 1; i++) {
        struct rig_host *host = &rig->hosts[i],
                        *left = &rig->hosts[quoit_ring_neighbour(rig->host_count, QUOIT_LEFT, i)];
        host->links[QUOIT_RIGHT] =
            rig_describe(host, &rig->hosts[quoit_ring_neighbour(rig->host_count, QUOIT_RIGHT, i)], 0, knobs);
        host->links[QUOIT_LEFT] = rig_describe(left, left, 1, knobs);
    }
}

/* The same on a share of a ring. */
static inline void rig_make_shared(struct ring_rig *rig, const struct quoit_job_config *job,
                                   struct quoit_shared_ring *shared)
{
    struct quoit_share_request request = {.label = "a job"};
    rig->host_count = job->host_count;
    rig->shared = shared;
    for (uint32_t i = 0; i < rig->host_count; i++) {
        assert_int_equal(quoit_layout_make(job, i, &rig->hosts[i].layout), QUOIT_OK);
        request.memory_bytes[i] = rig->hosts[i].layout.total_bytes;
    }
    assert_int_equal(quoit_share_take(shared, &request, &rig->share), QUOIT_OK);
    for (uint32_t i = 0; i < rig->host_count; i++) {
        struct rig_host *host = &rig->hosts[i];
        host->memory =
            mmap(NULL, host->layout.total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, rig->share->memory_fds[i], 0);
        assert_ptr_not_equal(host->memory, MAP_FAILED);
        assert_int_equal(quoit_share_describe(rig->share, i, 0, &host->links[QUOIT_RIGHT]), QUOIT_OK);
        assert_int_equal(quoit_share_describe(rig->share, i, 1, &host->links[QUOIT_LEFT]), QUOIT_OK);
    }
}

static inline void rig_free(struct ring_rig *rig)
{
    for (uint32_t i = 0; i < rig->host_count; i++) {
        munmap(rig->hosts[i].memory, rig->hosts[i].layout.total_bytes);
        if (!rig->shared) {
            close(rig->hosts[i].memory_fd);
            close(rig->hosts[i].link_fd);
        }
    }
    if (rig->share)
        quoit_share_end(rig->shared, rig->share);
}

/* Both ports of a host. */
static inline void rig_ports(const struct ring_rig *rig, const struct rig_host *host,
                             struct quoit_port_config ports_out[QUOIT_SIDE_COUNT])
{
    for (int side = 0; side < QUOIT_SIDE_COUNT && rig->host_count > 1; side++)
        ports_out[side] = (struct quoit_port_config){
            .driver = quoit_port_driver_at(0),
            .memory = {.base = host->memory, .bytes = host->layout.total_bytes},
            .endpoint = &host->links[side],
        };
}

#endif
