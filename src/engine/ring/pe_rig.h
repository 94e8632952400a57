/* SPDX-License-Identifier: BSD-3-Clause */
/* pe_rig.h - PE 0 of a job of three hosts over a network, with engine `ring`. The test is its proxy. Included by tests
 * only. */
#ifndef QUOIT_ENGINE_RING_PE_RIG_H
#define QUOIT_ENGINE_RING_PE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "engine/ring/channel.h"

#define HOST_COUNT 3u
#define PE_COUNT   6u

struct pe_rig {
    struct quoit_layout layout;
    struct quoit_self self;
    struct quoit_engine *engine;
    struct quoit_context context, other_context;
    struct quoit_peer peers[PE_COUNT];
    char *memory;
    uint64_t heap; /* its offset */
};

/* The memory, in which the test may write what a proxy has told. */
static inline void pe_rig_map(struct pe_rig *rig, uint32_t chunk_bytes, bool has_loopback)
{
    const struct quoit_job_config job = {.host_count = HOST_COUNT,
                                         .pe_count = PE_COUNT,
                                         .lane_count = 1,
                                         .slot_count = 2,
                                         .chunk_bytes = chunk_bytes,
                                         .protocol = QUOIT_PROTOCOL_NETWORK,
                                         .has_loopback = has_loopback,
                                         .heap_bytes = 65536};
    memset(rig, 0, sizeof *rig);
    assert_int_equal(quoit_layout_make(&job, 0, &rig->layout), QUOIT_OK);
    rig->heap = rig->layout.segment_heap;
    rig->memory =
        mmap(NULL, rig->layout.total_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(rig->memory, MAP_FAILED);
}

static inline void pe_rig_open(struct pe_rig *rig, enum quoit_pe_endpoint_use use)
{
    const struct quoit_port_config no_ports[QUOIT_SIDE_COUNT] = {0};
    const struct quoit_job_config *job = &rig->layout.job;
    quoit_self_init(&rig->self, &rig->layout, rig->memory, 0, quoit_wait_policy_for(1, 1));
    assert_int_equal(quoit_engine_ring_open(&rig->self, no_ports, use, &rig->engine), QUOIT_OK);
    rig->self.engines[rig->self.engine_count++] = rig->engine;
    for (uint32_t pe = 0; pe < PE_COUNT; pe++) {
        uint32_t host = quoit_job_config_host_of_pe(job, pe);
        rig->peers[pe] = (struct quoit_peer){.engine = rig->engine,
                                             .pe = pe,
                                             .host = (uint16_t)host,
                                             .local = (uint16_t)(pe - quoit_job_config_first_pe(job, host))};
        assert_int_equal(rig->engine->ops->connect(rig->engine, &rig->peers[pe]), host != 0 || job->has_loopback);
    }
}

static inline void pe_rig_close(struct pe_rig *rig)
{
    rig->engine->ops->close(rig->engine);
    munmap(rig->memory, rig->layout.total_bytes);
}

static inline struct quoit_channel *pe_rig_channel(struct pe_rig *rig)
{
    return quoit_memory_channel(&rig->layout, rig->memory, 0, 0);
}

#endif
