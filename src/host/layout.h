/* SPDX-License-Identifier: BSD-3-Clause */
/* layout.h - the layout of a host's memory, which its proxy and its PEs share.
 *
 * One memfd per host, mapped whole by the proxy and by each PE of that host; zeroed memory is a valid start. Offsets in
 * it ("memory offsets") are what a port translates. From the front:
 *
 *   header      struct quoit_host_header
 *   pes         struct quoit_pe_shared of each local PE
 *   lanes       struct quoit_lane_shared of each lane
 *   traces      struct quoit_trace_ring of each local PE, then of each lane; only with --trace
 *   profiles    struct quoit_profile of each local PE; only with --profile
 *   channels    struct quoit_channel of each local PE and lane, with its requests and staging chunks
 *   messages    payload of messages from this host to others: QUOIT_MESSAGES_MAX chunks
 *   contacts    struct quoit_contacts; only where a network joins all hosts
 *   slots       written by the neighbours: per side (window SLOTS) the words of each lane (credits), then its slots
 *   segments    the symmetric segments of the local PEs (window MEMORY), `segment_stride` apart:
 *               [runtime: coll workspace][data: globals and statics of the program][heap]
 *
 * A symmetric object has the same segment offset on every PE. Every layout follows from struct quoit_job_config alone,
 * so each end of a link knows where the other end's queues lie in the window; start-up verifies that both have the same
 * job config.
 */
#ifndef QUOIT_HOST_LAYOUT_H
#define QUOIT_HOST_LAYOUT_H

#include <stdint.h>

#include "base/status.h"
#include "host/channel.h"
#include "host/contact.h"
#include "host/doorbells.h"
#include "host/header.h"
#include "host/job_config.h"
#include "host/lane_record.h"
#include "host/rendezvous_slot.h"
#include "host/pe_record.h"
#include "host/protocol.h"
#include "ring/route.h"
#include "trace/profile.h"
#include "trace/trace.h"

#define QUOIT_MESSAGES_MAX 8 /* outstanding messages from one host */
/* The runtime region of a segment, for coll; pages are allocated as teams are created. */
#define QUOIT_RUNTIME_LINK_BYTES (4u << 20) /* so much a small window reaches of it */
#define QUOIT_RUNTIME_HALVING_BYTES                                                                                    \
    (512u << 10) /* behind that, for reductions over networks, which have no windows                                   \
                  */
#define QUOIT_RUNTIME_BYTES       (QUOIT_RUNTIME_LINK_BYTES + QUOIT_RUNTIME_HALVING_BYTES)
#define QUOIT_RUNTIME_AUDIT_BYTES 32768u
#define QUOIT_RUNTIME_MARK_BYTES  65536u
#define QUOIT_RUNTIME_MAIL_BYTES  4096u
/* At the end of the part for links: for shmem/audit.h, quoit_layout_mark() in the first segment of a host, and
 * quoit_layout_rendezvous_slot(). */
#define QUOIT_RUNTIME_AUDIT_AT           (QUOIT_RUNTIME_LINK_BYTES - QUOIT_RUNTIME_AUDIT_BYTES)
#define QUOIT_RUNTIME_MARKS_AT           (QUOIT_RUNTIME_AUDIT_AT - QUOIT_RUNTIME_MARK_BYTES)
#define QUOIT_RUNTIME_RENDEZVOUS_SLOT_AT (QUOIT_RUNTIME_MARKS_AT - QUOIT_RUNTIME_MAIL_BYTES)

/* All offsets are from the start of the host's memory. */
struct quoit_layout {
    struct quoit_job_config job;
    uint32_t host;
    uint32_t local_count;
    uint32_t first_pe;
    struct quoit_host_range ring; /* that links join to this host, and itself */
    uint32_t link_lane_count;     /* lanes of links: 0..link_lane_count - 1 */
    uint32_t lane_count;          /* with that of a network, which is the last */
    uint64_t pes;
    uint64_t lanes;
    uint64_t traces;
    uint64_t profiles;
    uint64_t profile_bytes; /* of one; 0: none */
    uint64_t channels;
    uint64_t staging;
    uint64_t messages;                /* payload of this host's messages */
    uint64_t contacts;                /* 0: none */
    uint64_t slots[QUOIT_SIDE_COUNT]; /* inbound range of each side's window SLOTS */
    uint64_t slots_bytes;             /* of one side */
    uint64_t segments;
    uint64_t segment_stride;
    uint64_t segment_data;    /* offset of data in a segment */
    uint64_t segment_heap;    /* offset of the heap in a segment */
    uint32_t lane_line_count; /* in the window SLOTS */
    uint32_t lane_slot_count;
    uint64_t total_bytes;
};

/* INVALID, with a line logged, if the job config is outside the limits. Segments are aligned to 2 MiB. */
QUOIT_MUST_USE enum quoit_status quoit_layout_make(const struct quoit_job_config *job, uint32_t host,
                                                   struct quoit_layout *layout_out);

static inline struct quoit_pe_shared *quoit_memory_pe(const struct quoit_layout *layout, void *memory, uint32_t local)
{
    return (struct quoit_pe_shared *)((char *)memory + layout->pes) + local;
}
static inline struct quoit_lane_shared *quoit_memory_lane(const struct quoit_layout *layout, void *memory,
                                                          uint32_t lane)
{
    return (struct quoit_lane_shared *)((char *)memory + layout->lanes) + lane;
}
/* The event ring of a local PE or, with index local_count + l, of lane l; NULL without tracing. */
static inline struct quoit_trace_ring *quoit_memory_trace(const struct quoit_layout *layout, void *memory,
                                                          uint32_t index)
{
    if (layout->job.trace_count == 0)
        return NULL;
    return (struct quoit_trace_ring *)((char *)memory + layout->traces +
                                       index * quoit_trace_ring_bytes(layout->job.trace_count));
}
/* NULL without a profile. */
static inline struct quoit_profile *quoit_memory_profile(const struct quoit_layout *layout, void *memory,
                                                         uint32_t local)
{
    if (layout->profile_bytes == 0)
        return NULL;
    return (struct quoit_profile *)((char *)memory + layout->profiles + local * layout->profile_bytes);
}
static inline struct quoit_channel *quoit_memory_channel(const struct quoit_layout *layout, void *memory,
                                                         uint32_t local, uint32_t lane)
{
    return (struct quoit_channel *)((char *)memory + layout->channels) + local * layout->lane_count + lane;
}
/* Memory offset of the staging chunk of one request. */
static inline uint64_t quoit_layout_staging(const struct quoit_layout *layout, uint32_t local, uint32_t lane,
                                            uint32_t request)
{
    uint64_t channel = (uint64_t)local * layout->lane_count + lane;
    return layout->staging + (channel * QUOIT_REQUESTS_A_CHANNEL + request) * layout->job.chunk_bytes;
}
/* Memory offset of the payload of an outstanding message. */
static inline uint64_t quoit_layout_message(const struct quoit_layout *layout, uint32_t entry)
{
    return layout->messages + (uint64_t)entry * layout->job.chunk_bytes;
}
/* NULL: the protocol has none. */
static inline struct quoit_contacts *quoit_memory_contacts(const struct quoit_layout *layout, void *memory)
{
    return layout->contacts ? (struct quoit_contacts *)(void *)((char *)memory + layout->contacts) : NULL;
}
static inline uint64_t quoit_layout_segment(const struct quoit_layout *layout, uint32_t local)
{
    return layout->segments + local * layout->segment_stride;
}
#define QUOIT_LINE_BYTES 64u

/* Offsets within one side's window SLOTS. A lane has lines, for words that the neighbour writes, and slots, for frames
 * with their payload; host/protocol.h says how many. */
uint64_t quoit_layout_lane_line(const struct quoit_layout *layout, uint32_t lane, uint32_t line);
uint64_t quoit_layout_lane_slot(const struct quoit_layout *layout, uint32_t lane, uint32_t slot);
/* In the protocol QUEUE: the credit word, and a slot of a queue. */
static inline uint64_t quoit_layout_credit(const struct quoit_layout *layout, uint32_t lane, enum quoit_class class)
{
    return quoit_layout_lane_line(layout, lane, class);
}
static inline uint64_t quoit_layout_slot(const struct quoit_layout *layout, uint32_t lane, enum quoit_class class,
                                         uint32_t slot_index)
{
    return quoit_layout_lane_slot(layout, lane, class * layout->job.slot_count + slot_index);
}

/* Whether this host has ports, and links at them. */
static inline bool quoit_layout_has_links(const struct quoit_layout *layout)
{
    return layout->ring.count > 1;
}
/* Whether links join this host to that one, or it is the same. */
static inline bool quoit_layout_is_on_ring(const struct quoit_layout *layout, uint32_t host)
{
    return host - layout->ring.first < layout->ring.count;
}
/* The host at the other end of `side`'s link. */
static inline uint32_t quoit_layout_neighbour(const struct quoit_layout *layout, enum quoit_side side)
{
    return layout->ring.first + quoit_ring_neighbour(layout->ring.count, side, layout->host - layout->ring.first);
}

/* Segment offset, in the first segment of the host at the other end of `side`'s link, of the word that PE `local` of
 * this host writes behind its direct puts. PEs with adjacent numbers do not share a cache line. */
static inline uint64_t quoit_layout_mark(enum quoit_side side, uint32_t local)
{
    const uint32_t line_count = (QUOIT_LOCAL_PES_MAX + 1) / 2, line_bytes = 64;
    _Static_assert(QUOIT_SIDE_COUNT * ((QUOIT_LOCAL_PES_MAX + 1) / 2) * 64 == QUOIT_RUNTIME_MARK_BYTES,
                   "a word for each PE");
    return QUOIT_RUNTIME_MARKS_AT + ((uint64_t)side * line_count + local % line_count) * line_bytes +
           local / line_count * (line_bytes / 2);
}

/* Segment offset of a PE's struct quoit_rendezvous_slot. */
static inline uint64_t quoit_layout_rendezvous_slot(void)
{
    _Static_assert(sizeof(struct quoit_rendezvous_slot) <= QUOIT_RUNTIME_MAIL_BYTES, "the mails have room");
    return QUOIT_RUNTIME_RENDEZVOUS_SLOT_AT;
}

#endif
