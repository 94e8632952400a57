/* SPDX-License-Identifier: BSD-3-Clause */
/* emulated.h - an NTB link between two emulated hosts of one machine.
 *
 * What it is: a driver behind port.h. The link's registers (doorbells, masks, vectors, scratchpads, translations, link
 * state) live in a memfd of QUOIT_EMULATED_LINK_BYTES that both ends map: that memfd is "the cable and the chips". The
 * driver alone also holds the peer host's memory (`peer_memory_fd`), as the wires of the bridge do, and makes
 * accessible of it only what the peer has translated or named in a vector. Nothing above the driver may touch either.
 *
 * Weaker than hardware in one point: a thread that the kernel suspends in the middle of a copy may finish up to 64 KiB
 * of it (512 bytes where writes are torn) after the link went down or the translation was taken away. Stronger in one:
 * with latencies, a writer or ringer waits until what it sent has arrived.
 *
 * A process killed at any instant leaves the link usable for the others. An opening does not survive fork().
 *
 * A fresh memfd, all zero, is a link that neither side enabled. Both sides get the same knobs.
 */
#ifndef QUOIT_PORT_EMULATED_EMULATED_H
#define QUOIT_PORT_EMULATED_EMULATED_H

#include "port/port.h"

#define QUOIT_EMULATED_LINK_BYTES 8192

/* How the emulated hardware behaves beyond the contract's minimum. All zero: as fast as this machine goes. */
struct quoit_emulated_knobs {
    uint64_t window_bytes[QUOIT_WINDOW_COUNT]; /* 0: 64 MiB for slots, 64 GiB for memory. Powers of two */
    uint64_t translation_align;                /* 0: 4096 */
    uint64_t rate_bytes_per_s;                 /* 0: unlimited. Writes and DMA of one side keep this rate */
    uint64_t read_latency_ns;                  /* added to each read */
    uint64_t write_latency_ns;                 /* added to each programmed copy or DMA before it arrives */
    uint64_t dma_latency_ns;                   /* from submit to the start of the copy */
    uint64_t doorbell_latency_ns;              /* from ring to the bit being set */
    uint32_t torn_write_seed;   /* not 0: a write that meets link-down arrives in part, in whole 8-byte words */
    uint32_t dma_channel_count; /* 0: QUOIT_DMA_CHANNEL_COUNT */
    uint32_t dma_failures;      /* so many of 1000 descriptors fail, by chance, after a part of them was written */
};

struct quoit_emulated_config {
    int link_fd;        /* the link's memfd; the driver maps it and keeps no fd */
    int peer_memory_fd; /* the peer host's memory, already of its final size; likewise */
    uint32_t side;      /* 0 or 1: which end of the link this is */
    struct quoit_emulated_knobs knobs;
};

extern const struct quoit_port_ops quoit_port_emulated;

/* What a person with a cable can do, for faults and tests. Acts on the link, at once, for both ends. */
void quoit_emulated_link_cut(struct quoit_port *port);
void quoit_emulated_link_mend(struct quoit_port *port);

#endif
