/* SPDX-License-Identifier: BSD-3-Clause */
/* port.h - one end of one NTB link.
 *
 * What it is: the contract between everything above and a driver (driver.h). It promises what NTB hardware does and
 *   nothing more.
 *
 * Windows: a port has QUOIT_WINDOW_COUNT windows. The receiver makes a window inbound by translating it to a range of
 *   its own host memory; from then on the peer's writes at offset o land at that range + o. A write or read beyond the
 *   translated range, or while none is set, is a master abort: the write vanishes silently, the read returns all ones.
 * Posted writes: a write that returned has not arrived. Writes of one opening arrive in the order in which they were
 *   issued, and a doorbell or scratchpad arrives after every write issued before it on the same opening. No order is
 *   promised between two openings of an end, between two ports, between programmed copy and a DMA channel, or between
 *   two channels: a caller that needs such an order reads back first.
 * Read-back: a read through the window crosses the link and is slow; nothing above this layer reads in a loop. It
 *   returns OK after all earlier writes of this opening, by any thread, have arrived: apart from a response of the
 *   peer, the only way to know that they did.
 * Loss: when the link goes down, a prefix (in the order of issue) of what each opening had posted has arrived, the last
 *   write of it perhaps in part; the rest never does. Writes that returned OK may be among what is lost. Once a call on
 *   this opening returned LINK_DOWN, nothing that the opening posted before will still arrive; and what the opening
 *   sends next is refused until it is bound to the new epoch. Likewise, when an end sees the link down or in a new
 *   epoch, nothing of the old epoch will still arrive at it, except what a call or a DMA channel of the other end is
 *   copying at that moment: where a thread copies (emulated), one that loses the processor in the middle ends its copy
 *   when it runs again. That is over when the call has returned or the completion is there, which the other end waits
 *   for before it agrees to a new epoch of the link (docs/design/dma.md, direct-puts.md).
 * Aligned 8-byte stores (quoit_port_write64, and the aligned 8-byte words of a longer write) are never torn, nor are
 *   aligned 4- and 2-byte ones at the beginning and end of a write.
 * Arrival: a driver with QUOIT_PORT_ARRIVES_ON_RETURN promises more: a write that returned OK has arrived, and a write
 *   inside of one aligned 8-byte word that returned LINK_DOWN has not and will not. No hardware does.
 * Doorbells coalesce: ten rings may be seen as one. They are sticky until cleared. A doorbell is a hint; the window is
 *   the truth: clear first, then read the window.
 * There are no atomics across the link.
 * Scratchpads: words of 32 bits per link side, as many as the limits say, last writer wins; lost when the link goes
 *   down. For set-up, and for the metadata of the papers' protocol: a word arrives before a doorbell that is rung after
 *   it.
 * Link: up when both sides enabled it. Either end sees a change some time after it was made, and not at the same
 *   instant as the other. It may go down at any instant, in the middle of a write, and come back; going down wipes
 *   translations and scratchpads. link_epoch counts the times it came up, from before this opening on. A scratchpad
 *   write or a ring while it is down is lost; a translation set while it is down holds when it comes up.
 * Binding: an opening follows the link until it is bound to a link epoch. From then on everything it sends (writes,
 *   reads, DMA, scratchpads, doorbells) in another epoch is refused: a process that has not noticed that the link was
 *   down never writes behind a loss.
 *
 * Threads: a port may be used by many threads and, opened again with the same config, by many processes of its host
 *   (a PE writes directly into the neighbour's memory window). Each word of the window has one writer at a time;
 *   quoit_port_ring() may be called from any thread. set_translation, link_enable and interrupts belong to one process,
 *   the host's proxy.
 * Errors: QUOIT_LINK_DOWN until the link returns; QUOIT_OUT_OF_RANGE and QUOIT_INVALID are the caller's mistake; others
 *   are final for this port.
 */
#ifndef QUOIT_PORT_PORT_H
#define QUOIT_PORT_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"
#include "env/park.h"

enum quoit_window {
    QUOIT_WINDOW_SLOTS,  /* queues: slots and credits of all lanes */
    QUOIT_WINDOW_MEMORY, /* the symmetric segments of the host's PEs, for direct puts */
    QUOIT_WINDOW_COUNT
};

#define QUOIT_SCRATCHPAD_COUNT  8 /* the most that a port has */
#define QUOIT_SCRATCHPAD_LEAST  7
#define QUOIT_DOORBELL_COUNT    64 /* bits of a mask; the limits of a port say which of them it has */
#define QUOIT_DMA_CHANNEL_COUNT 2
#define QUOIT_DMA_DEPTH         64 /* outstanding descriptors of one channel */

/* Vectors that belong to no doorbell. */
#define QUOIT_VECTOR_LINK       QUOIT_DOORBELL_COUNT
#define QUOIT_VECTOR_DMA(index) (QUOIT_DOORBELL_COUNT + 1 + (index)) /* completions of a DMA channel */
#define QUOIT_VECTOR_COUNT      QUOIT_VECTOR_DMA(QUOIT_DMA_CHANNEL_COUNT)

struct quoit_port; /* one end; opaque, returned by quoit_port_open() */

/* The host's memory as the driver sees it: windows translate into it, and interrupts wake parks in it. */
struct quoit_port_memory {
    void *base;     /* where this process mapped it */
    uint64_t bytes; /* how much of it there is */
};

/* Identifies one end of one link: made by a driver's describe(), opaque to everything else. It may travel to another
 * process with its file descriptors; both sides run the same build. */
#define QUOIT_PORT_ENDPOINT_BYTES 128
#define QUOIT_PORT_ENDPOINT_FDS   3
struct quoit_port_endpoint {
    uint64_t bytes[QUOIT_PORT_ENDPOINT_BYTES / sizeof(uint64_t)];
    uint32_t fd_count;
    int fds[QUOIT_PORT_ENDPOINT_FDS]; /* of the process that holds this copy */
};

struct quoit_port_driver; /* driver.h */

struct quoit_port_config {
    const struct quoit_port_driver *driver;
    struct quoit_port_memory memory;
    const struct quoit_port_endpoint *endpoint; /* used during open only */
};

/* What a driver promises beyond the contract above. */
enum quoit_port_capability {
    QUOIT_PORT_ARRIVES_ON_RETURN = 1 << 0, /* see Arrival above */
    QUOIT_PORT_CUTS = 1 << 1,              /* cut and mend work */
    QUOIT_PORT_DIRECT = 1 << 2,            /* PEs of the host may open the end too, and write through its window */
    QUOIT_PORT_WHOLE_MARKS = 1 << 3,       /* the mark of a write of up to 4 KiB arrives whenever all of the bytes do */
    QUOIT_PORT_RINGS_ARRIVE = 1 << 4,      /* no ring is lost while the link is up */
};

struct quoit_port_limits {
    uint64_t window_bytes[QUOIT_WINDOW_COUNT]; /* the largest translation, a power of two */
    uint64_t translation_align;                /* of the start of an inbound range in host memory, a power of two */
    uint64_t translation_bytes_align;          /* of its length, a power of two */
    uint64_t doorbell_bits;                    /* the bits that may be used, the same at both ends; any mask */
    uint32_t scratchpad_count;                 /* QUOIT_SCRATCHPAD_LEAST or more, the same at both ends */
    uint32_t dma_channel_count;
    uint32_t capabilities; /* of enum quoit_port_capability */
};

/* A doorbell bit that is not masked, and was clear before, interrupts: it wakes every one of `park_count` parks that
 * are `park_stride` bytes apart in host memory from offset `park_offset`. park_count 0: none. */
struct quoit_port_vector {
    uint64_t park_offset;
    uint32_t park_stride;
    uint32_t park_count;
};

struct quoit_dma_done {
    uint64_t cookie;
    enum quoit_status status;
};

QUOIT_MUST_USE enum quoit_status quoit_port_open(const struct quoit_port_config *config, struct quoit_port **port_out);
/* Closes this opening of the port; does not disable the link. NULL is allowed. */
void quoit_port_close(struct quoit_port *port);
void quoit_port_limits(const struct quoit_port *port, struct quoit_port_limits *limits_out);

/* Link. enable and disable are this side's request; the link is up when both sides have enabled it. To wait for a
 * change, poll is_up; a change also wakes the park of QUOIT_VECTOR_LINK. */
void quoit_port_link_enable(struct quoit_port *port);
void quoit_port_link_disable(struct quoit_port *port);
bool quoit_port_link_is_up(const struct quoit_port *port);
uint32_t quoit_port_link_epoch(const struct quoit_port *port);
/* Binds this opening to `epoch`, for all its threads; LINK_DOWN, and nothing is changed, if the link is not up in it.
 */
QUOIT_MUST_USE enum quoit_status quoit_port_bind(struct quoit_port *port, uint32_t epoch);

/* For fault injection and tests: cuts the link for both ends at once, like pulling the cable, or restores it. Writes in
 * flight are lost. UNSUPPORTED without QUOIT_PORT_CUTS. */
QUOIT_MUST_USE enum quoit_status quoit_port_cut(struct quoit_port *port);
QUOIT_MUST_USE enum quoit_status quoit_port_mend(struct quoit_port *port);

/* Inbound: lets the peer write memory[offset, offset+bytes) through `window`. bytes 0 clears. */
QUOIT_MUST_USE enum quoit_status quoit_port_set_translation(struct quoit_port *port, enum quoit_window window,
                                                            uint64_t memory_offset, uint64_t bytes);

/* Outbound. Programmed copy of `bytes` from `source` to the peer at `offset` of its window; posted. */
QUOIT_MUST_USE enum quoit_status quoit_port_write(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                                  const void *source, size_t bytes);
/* One aligned 8-byte store, after all earlier writes of the calling thread on this port. */
QUOIT_MUST_USE enum quoit_status quoit_port_write64(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                                    uint64_t value);
/* `bytes` (1 or more) from `source`, followed by the 8-byte word `mark` at `mark_offset` of the same window: the
 * mark arrives only if all of the bytes have. */
QUOIT_MUST_USE enum quoit_status quoit_port_write_marked(struct quoit_port *port, enum quoit_window window,
                                                         uint64_t offset, const void *source, size_t bytes,
                                                         uint64_t mark_offset, uint64_t mark);
/* Programmed copy from a descriptor, without a buffer between: one readv() of `head_bytes` into `head`, and of at most
 * `bytes` more to the peer at `offset` of its window; posted, and its words may be torn. *count_out is what readv()
 * returned; if negative, errno says why. UNSUPPORTED, nothing is read: the kernel can write neither into the window nor
 * into what the driver posts, or the window is not translated that far. */
QUOIT_MUST_USE enum quoit_status quoit_port_write_from(struct quoit_port *port, enum quoit_window window,
                                                       uint64_t offset, int fd, void *head, size_t head_bytes,
                                                       size_t bytes, ssize_t *count_out);
/* A round trip: returns OK after every earlier write of this opening arrived. */
QUOIT_MUST_USE enum quoit_status quoit_port_read(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                                 void *destination, size_t bytes);

/* Scratchpads: the peer writes this side's with peer_write; they are read here. */
uint32_t quoit_port_scratchpad_read(struct quoit_port *port, uint32_t index);
void quoit_port_scratchpad_peer_write(struct quoit_port *port, uint32_t index, uint32_t value);

/* Doorbells. ring sets the peer's bits, or returns false if the link is down. The others act on this side's bits. */
bool quoit_port_ring(struct quoit_port *port, uint64_t bits);
uint64_t quoit_port_doorbell_read(struct quoit_port *port);
void quoit_port_doorbell_clear(struct quoit_port *port, uint64_t bits);
void quoit_port_doorbell_mask(struct quoit_port *port, uint64_t bits);   /* masked bits still set, but wake no thread */
void quoit_port_doorbell_unmask(struct quoit_port *port, uint64_t bits); /* wakes if one of the bits is set already */
/* Sets what bit `bit`, QUOIT_VECTOR_LINK, of one park at most, or QUOIT_VECTOR_DMA(channel) wakes. Initially all bits
 * are masked and have no vector. DMA channels and their vectors belong to one opening, the rest to the end of the link.
 */
QUOIT_MUST_USE enum quoit_status quoit_port_set_vector(struct quoit_port *port, uint32_t bit,
                                                       const struct quoit_port_vector *vector);

/* DMA: asynchronous copies of `bytes` (1 or more). `source` must stay unchanged until done. FULL: poll first. Other
 * errors of submit: nothing is copied, quoit_port_write() may still do it; UNSUPPORTED: the
 * engine reads the host's memory alone and `source` is not in it, or others have all engines. Completions of one
 * channel come in order. poll returns the number of completions written, 0..max_count. A descriptor completes with
 * QUOIT_LINK_DOWN if the link was down, or went down, between submit and completion, and with another status if the
 * engine failed; then a part of it may have arrived. What completed with OK arrives before anything that this port
 * writes or rings after that poll. After each completion the parks of the channel's vector are woken. Closing drops
 * what is outstanding. */
QUOIT_MUST_USE enum quoit_status quoit_port_dma_submit(struct quoit_port *port, uint32_t channel,
                                                       enum quoit_window window, uint64_t offset, const void *source,
                                                       size_t bytes, uint64_t cookie);
uint32_t quoit_port_dma_poll(struct quoit_port *port, uint32_t channel, struct quoit_dma_done *done_out,
                             uint32_t max_count);

#endif
