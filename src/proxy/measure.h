/* SPDX-License-Identifier: BSD-3-Clause */
/* measure.h - from which size on DMA beats programmed copy on a port. Private to proxy.
 *
 * Before the lanes of a host run, its slots in the neighbour hold nothing, and what stands behind their headers is
 * never looked at: there both are timed, a payload at a time, at chunk size and downwards as long as DMA wins. Where it
 * loses, as on a machine whose links are emulated, that is known after a few chunks.
 */
#ifndef QUOIT_PROXY_MEASURE_H
#define QUOIT_PROXY_MEASURE_H

#include "host/layout.h"
#include "port/port.h"

struct quoit_measured {
    uint64_t dma_bytes;    /* payload of so many bytes and more should go by DMA; QUOIT_DMA_NEVER */
    uint64_t direct_bytes; /* a put to a neighbour of so many and more should go through the proxy, for its DMA */
    uint64_t copy_ns;      /* a chunk's, until its arrival may be announced; 0: not measured */
    uint64_t dma_ns;
};

/* The link is up, no lane runs, and the port has DMA channels. A link that fails meanwhile measures as never. */
struct quoit_measured quoit_measure(const struct quoit_layout *layout, void *memory, struct quoit_port *port);

#endif
