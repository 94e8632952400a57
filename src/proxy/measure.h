/* SPDX-License-Identifier: BSD-3-Clause */
/* measure.h - the size from which on DMA beats programmed copy on a port. Private to proxy.
 *
 * Before the lanes of a host run, its slots in the neighbour hold no frames, and nothing reads the payload parts: there
 * both methods are timed, at chunk size and downwards as long as DMA wins: one payload at a time, and some in a row.
 * Where it loses, as on emulated links, a few chunks show it.
 */
#ifndef QUOIT_PROXY_MEASURE_H
#define QUOIT_PROXY_MEASURE_H

#include "host/layout.h"
#include "port/port.h"

struct quoit_measured {
    uint64_t dma_bytes;    /* payload size from which on DMA should be used; QUOIT_DMA_NEVER */
    uint64_t queued_bytes; /* the same for a lane that has more to move meanwhile */
    uint64_t direct_bytes; /* size from which on a put to a neighbour should go through the proxy, to use its DMA */
    uint64_t copy_ns;      /* time of a chunk until its arrival may be announced; 0: not measured */
    uint64_t dma_ns;
};

#define QUOIT_MEASURED_NEVER                                                                                           \
    {                                                                                                                  \
        .dma_bytes = QUOIT_DMA_NEVER, .queued_bytes = QUOIT_DMA_NEVER, .direct_bytes = QUOIT_DMA_NEVER                 \
    }

/* The link is up, no lane runs, and the port has DMA channels. If the link fails meanwhile, the result is never. */
struct quoit_measured quoit_measure(const struct quoit_layout *layout, void *memory, struct quoit_port *port);

#endif
