/* SPDX-License-Identifier: BSD-3-Clause */
/* header.h - the first page of a host's memory: what its proxy publishes, and the flag that stops it. */
#ifndef QUOIT_HOST_HEADER_H
#define QUOIT_HOST_HEADER_H

#include <stdatomic.h>
#include <stdint.h>

#include "env/park.h"
#include "host/job_descriptor.h"
#include "host/machine.h"
#include "link/state.h"
#include "ring/ring.h"

struct quoit_host_header {
    _Atomic uint32_t is_stopping; /* writer: the proxy, on the launcher's signal */
    _Atomic uint32_t is_ended;    /* writer: the first process to decide, without oshrun, that the job must end */
    _Atomic uint64_t barrier_arrived_count;  /* writer: the host's first PE. Papers' barriers entered by the host */
    _Atomic uint64_t barrier_released_count; /* writer: lane 0. Of these, the ones it may leave */
    struct quoit_machine machine;     /* writer: the proxy, or the creator of the memory of the only host, at start */
    _Atomic uint32_t is_reported;     /* writer: the agent. It has reported how a PE crashed, which therefore may die */
    _Atomic uint32_t finalized_count; /* writer: the agent. How often the PEs of all hosts have passed shmem_finalize */
    uint32_t unused[5];
    /* Writer: the proxy, at start. Payload sizes from which on frames go by DMA, and puts to a neighbour go through the
     * proxy to use its DMA. May be QUOIT_DMA_NEVER. */
    _Atomic uint64_t dma_bytes[QUOIT_SIDE_COUNT];
    _Atomic uint64_t direct_bytes[QUOIT_SIDE_COUNT];
    uint64_t unused1[4];
    struct quoit_park manager_park;                   /* the thread of the ring service sleeps here */
    struct quoit_link_record links[QUOIT_SIDE_COUNT]; /* writer: the ring service */
    struct quoit_job_descriptor descriptor;
};

#endif
