/* SPDX-License-Identifier: BSD-3-Clause */
/* veth.h - the Ethernet device of a host: carries frames between a TAP device and the ring. LINK (docs/papers.md) has
 * the same three layers: the port, the queues (queue.h), the virtual Ethernet (here).
 *
 * A client of the ring service (link/service.h) with two threads per channel. The transmitter reads the device, selects
 * the route (topology.h) and writes the frame into a slot of the neighbour. While the slots are full it does not read,
 * so that frames queue in the kernel. The receiver writes frames for this host to the device, and forwards the others
 * from slot to slot. A frame that meets a dead link is turned round once.
 *
 * Threads: run() blocks its caller; stop() may be called from any thread or signal handler; stats() from any thread.
 * Errors: a device that fails ends run(), with a line logged.
 */
#ifndef QUOIT_VETH_VETH_H
#define QUOIT_VETH_VETH_H

#include "env/wait.h"
#include "link/service.h"
#include "veth/queue.h"

struct quoit_veth_config {
    struct quoit_service *service;
    const struct quoit_link_record *records; /* [QUOIT_SIDE_COUNT], as in the service's config */
    void *memory;                            /* of the host */
    uint64_t offset; /* of quoit_veth_bytes() there, a multiple of the port's translation unit */
    uint32_t host;
    uint32_t host_count;
    uint32_t ring;                           /* 24 bits, the same on all hosts */
    uint32_t channel_count;                  /* the same on all hosts */
    int device_fds[QUOIT_VETH_CHANNELS_MAX]; /* one a channel, of quoit_tap_open() or any that keep the bounds of
                                                frames; they stay the caller's */
    uint64_t dma_bytes; /* frames of at least so many bytes leave this host by DMA; QUOIT_VETH_DMA_NEVER */
    struct quoit_wait_policy policy;
};

#define QUOIT_VETH_STATS_TABLE(X)                                                                                      \
    X(sent_frames, "frames from the device onto the ring")                                                             \
    X(sent_bytes, "their bytes")                                                                                       \
    X(dma_frames, "of these: frames that left by DMA")                                                                 \
    X(received_frames, "frames from the ring to the device")                                                           \
    X(received_bytes, "their bytes")                                                                                   \
    X(forwarded_frames, "frames passed on to the next host")                                                           \
    X(turned_frames, "frames that met a dead link and went back")                                                      \
    X(lost_frames, "frames dropped at a dead link")                                                                    \
    X(refused_frames, "frames that the device did not take")                                                           \
    X(link_out_frames, "the device's frames to the neighbours; what is out and in nowhere was lost with a link")       \
    X(link_in_frames, "the device's frames from the neighbours")                                                       \
    X(malformed_frames, "malformed frames from a neighbour")                                                           \
    X(full_waits, "times that the transmitter waited for slots")

struct quoit_veth_stats {
#define X(name, sentence) uint64_t name;
    QUOIT_VETH_STATS_TABLE(X)
#undef X
};

struct quoit_veth; /* opaque */

/* Bytes of the host's memory that the device needs. */
uint64_t quoit_veth_bytes(uint32_t channel_count);
/* Attaches to the service: FULL or OUT_OF_RANGE as there; OUT_OF_RANGE too for more than QUOIT_VETH_HOSTS_MAX hosts or
 * QUOIT_VETH_CHANNELS_MAX channels, and with DMA for more channels than a port has of DMA. */
QUOIT_MUST_USE enum quoit_status quoit_veth_open(const struct quoit_veth_config *config, struct quoit_veth **veth_out);
/* Carries frames until stop(). */
QUOIT_MUST_USE enum quoit_status quoit_veth_run(struct quoit_veth *veth);
void quoit_veth_stop(struct quoit_veth *veth);
/* Counts of the device at this place of a host's memory; any process that maps it. */
void quoit_veth_stats(const void *memory, uint64_t offset, struct quoit_veth_stats *stats_out);
/* After run() has ended and while no manager runs. NULL is allowed. */
void quoit_veth_close(struct quoit_veth *veth);

#endif
