/* SPDX-License-Identifier: BSD-3-Clause */
/* memory.h - the memory of one host: what its proxy and its PEs share, and where everything lies in it.
 *
 * One memfd a host, mapped whole by the proxy and by each PE of that host; fresh memory, all zero, is a valid start.
 * Offsets in it ("memory offsets") are what a port translates. From the front:
 *
 *   header      struct quoit_host_header
 *   pes         struct quoit_pe_shared of each local PE
 *   lanes       struct quoit_lane_shared of each lane
 *   traces      struct quoit_trace_ring of each local PE, then of each lane; only with --trace
 *   channels    struct quoit_channel of each local PE and lane, with its requests and staging chunks
 *   slots       what the neighbours write: per side (window SLOTS) credits, then queues of each lane and class;
 *               in the protocol SCRATCHPAD answer words, then the bypass buffers of each lane
 *   segments       the symmetric segments of the local PEs (window MEMORY), `segment_stride` apart:
 *               [runtime: coll workspace][data: globals and statics of the program][heap]
 *
 * A symmetric object has the same segment offset on every PE. All layouts follow from struct quoit_job_config alone, so
 * each side of a link knows where the other side's queues lie in the window; start-up verifies that both have the same
 * job config.
 */
#ifndef QUOIT_PROXY_MEMORY_H
#define QUOIT_PROXY_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "env/park.h"
#include "ring/ring.h"
#include "trace/trace.h"
#include "wire/frame.h"

#define QUOIT_LANES_MAX           8
#define QUOIT_LOCAL_PES_MAX       1024
#define QUOIT_REQUESTS_A_CHANNEL  64         /* under way at once from one PE on one lane; a power of two */
#define QUOIT_RUNTIME_BYTES       (4u << 20) /* of each segment, for coll; pages come as teams are made */
#define QUOIT_RUNTIME_AUDIT_BYTES 32768u     /* of them, at their end, for shmem/audit.h */
#define QUOIT_CALL_NAME_BYTES     48
#define QUOIT_BYPASS_COUNT        6 /* bypass buffers of a lane and direction in the protocol SCRATCHPAD, queues of */
#define QUOIT_BYPASS_DEPTH        2 /* so many places, so that one is filled while the other is emptied */
#define QUOIT_ANSWER_WORDS        8 /* by which the neighbour answers a lane there */

/* How transfers between hosts are carried: by our queues, or as the papers do it (docs/design/scratchpad-protocol.md).
 */
enum quoit_protocol { QUOIT_PROTOCOL_QUEUE, QUOIT_PROTOCOL_SCRATCHPAD, QUOIT_PROTOCOL_COUNT };
/* How the world's barrier goes from host to host: as all collectives do, or by the papers' start and end doorbells. */
enum quoit_barrier_kind { QUOIT_BARRIER_AUTO, QUOIT_BARRIER_PAPERS, QUOIT_BARRIER_KIND_COUNT };
/* What carries the payload in the protocol SCRATCHPAD. */
enum quoit_payload_kind { QUOIT_PAYLOAD_DMA, QUOIT_PAYLOAD_COPY, QUOIT_PAYLOAD_KIND_COUNT };

/* From which size on payload goes by DMA: a number of bytes, or one of these. */
#define QUOIT_DMA_MEASURED 0 /* each proxy finds out at start */
#define QUOIT_DMA_NEVER    UINT64_MAX

/* What the whole job agrees on. Made by the launcher, the same on all hosts. */
struct quoit_job_config {
    uint32_t host_count;
    uint32_t pe_count;
    uint32_t lane_count;  /* of each link: 1, 2, 4, 8 */
    uint32_t slot_count;  /* per queue, >= QUOIT_RING_SLOTS_MIN */
    uint32_t chunk_bytes; /* payload of a slot; a multiple of 64 */
    uint32_t trace_count; /* events that each ring of trace/trace.h holds; 0: nothing is traced */
    uint8_t protocol;     /* enum quoit_protocol */
    uint8_t barrier;      /* enum quoit_barrier_kind */
    uint8_t payload;      /* enum quoit_payload_kind */
    uint8_t unused[5];
    uint64_t data_bytes; /* globals and statics: the largest of all PEs, whole pages */
    uint64_t heap_bytes; /* the limit of each PE's symmetric heap, whole pages */
};

/* Whether nothing is lost when a link goes down. The papers' protocol and their barrier cannot send again. */
static inline bool quoit_job_config_survives_loss(const struct quoit_job_config *job)
{
    return job->protocol == QUOIT_PROTOCOL_QUEUE && job->barrier != QUOIT_BARRIER_PAPERS;
}

/* PEs lie over the hosts in blocks: the first pe_count % host_count hosts have one more. */
static inline uint32_t quoit_job_config_pes_of_host(const struct quoit_job_config *job, uint32_t host)
{
    return job->pe_count / job->host_count + (host < job->pe_count % job->host_count ? 1 : 0);
}
static inline uint32_t quoit_job_config_first_pe(const struct quoit_job_config *job, uint32_t host)
{
    uint32_t more = job->pe_count % job->host_count;
    return host * (job->pe_count / job->host_count) + (host < more ? host : more);
}
uint32_t quoit_job_config_host_of_pe(const struct quoit_job_config *job, uint32_t pe);

#define QUOIT_JOB_DESCRIPTOR_MAGIC 0x51434131u
#define QUOIT_PROGRAM_NAME_BYTES   40

/* Who this memory belongs to, for `quoit top`, which finds it among the descriptors of the launcher. Writer: the
 * launcher, before anybody else has the memory. */
struct quoit_job_descriptor {
    uint32_t magic; /* QUOIT_JOB_DESCRIPTOR_MAGIC, which changes with this layout; 0: a job without a launcher */
    uint32_t host;
    struct quoit_job_config job;
    uint64_t start_ns;                      /* of the job, by the monotonic clock */
    char program[QUOIT_PROGRAM_NAME_BYTES]; /* of PE 0 */
};

struct quoit_host_header {
    _Atomic uint32_t is_stopping;      /* writer: the proxy, told by the launcher */
    _Atomic uint32_t has_plain_stores; /* writers: PEs. Some PE's objects may be changed by stores that wake nobody */
    /* Writer: the proxy. The port's link epoch in which both ends of a side have offered their windows, so that PEs may
     * put directly; 0: the link is down. */
    _Atomic uint32_t direct_epoch[QUOIT_SIDE_COUNT];
    _Atomic uint32_t down_count[QUOIT_SIDE_COUNT]; /* writer: the proxy. How often the link went down */
    _Atomic uint64_t barrier_arrived_count;        /* writer: the first PE. Barriers of the papers the host came to */
    _Atomic uint64_t barrier_released_count;       /* writer: lane 0. Those that it may leave */
    uint32_t unused[6];
    /* Writer: the proxy, at start. Payload of so many bytes and more goes by DMA; a put to a neighbour of so many and
     * more goes through the proxy, for its DMA. QUOIT_DMA_NEVER */
    _Atomic uint64_t dma_bytes[QUOIT_SIDE_COUNT];
    _Atomic uint64_t direct_bytes[QUOIT_SIDE_COUNT];
    uint64_t unused1[4];
    struct quoit_park manager_park; /* the thread of the proxy that looks after the links sleeps here */
    struct quoit_job_descriptor descriptor;
};

/* Bytes and messages that went out of one side of one host. */
struct quoit_link_count {
    _Atomic uint64_t byte_count;    /* payload that was written through the port */
    _Atomic uint64_t dma_count;     /* of it: bytes that went by DMA */
    _Atomic uint64_t message_count; /* frames and direct puts */
    _Atomic uint64_t relay_count;   /* of them: on their way from another host to another host */
    _Atomic uint64_t doorbell_count;
    _Atomic uint64_t resend_count; /* frames that were sent again, of the proxy's */
};

/* How a PE crashed, written by its crash handler (boot/crash.h) while it dies, read by the launcher afterwards. */
struct quoit_crash_record {
    _Atomic uint32_t signal; /* 0: none. Written last */
    uint32_t is_inside;      /* the program was inside a library: `instruction` is where it will return to */
    uint64_t fault_address;  /* of SIGSEGV, SIGBUS */
    uint64_t instruction;    /* in the program; 0: not known */
    uint64_t call_from;      /* return address of the API routine last entered */
    char call[QUOIT_CALL_NAME_BYTES];
    uint64_t unused[6];
};
_Static_assert(sizeof(struct quoit_crash_record) == 128, "two cache lines");

struct quoit_pe_shared {
    struct quoit_park park; /* the PE sleeps here; woken by local PEs, the proxy, and the neighbours' doorbells */
    /* writer of all that follows: the PE */
    char waiting_in[QUOIT_CALL_NAME_BYTES];           /* API routine in which the PE sleeps now, "" while it runs */
    _Atomic uint64_t waiting_from;                    /* its return address in the PE */
    _Atomic uint64_t waiting_since_ns;                /* when that sleep, or the first of several, began */
    _Atomic uint32_t pid;                             /* of the PE, from shmem_init to shmem_finalize; else 0 */
    _Atomic uint32_t process;                         /* the same, set once, before the PE is ready */
    _Atomic uint64_t load_base;                       /* where the program is loaded; set once */
    struct quoit_link_count direct[QUOIT_SIDE_COUNT]; /* direct puts of this PE */
    struct quoit_crash_record crash;
    _Atomic uint32_t processor; /* where it last yielded, + 1; 0: never so far */
    /* Where `process` has mapped this memory, for those who copy by process_vm_writev. Set once, before the PE is
     * ready.
     */
    _Atomic uint64_t memory_base;
};

/* Where the time of a put goes, as RING-22 measures it; the protocol SCRATCHPAD counts it. */
enum quoit_put_step {
    QUOIT_PUT_SETUP,       /* choosing the place in the window and translating to it */
    QUOIT_PUT_BIT,         /* waiting for a free interrupt bit and a free bypass buffer */
    QUOIT_PUT_PAYLOAD,     /* DMA or copy */
    QUOIT_PUT_SCRATCHPADS, /* waiting for them and writing them */
    QUOIT_PUT_DOORBELL,
    QUOIT_PUT_TURNAROUND, /* from the proxy's first sight of the put to its acknowledgement */
    QUOIT_PUT_STEP_COUNT
};
const char *quoit_put_step_name(enum quoit_put_step step);

struct quoit_lane_shared {
    struct quoit_park park; /* the service thread of this lane sleeps here */
    struct quoit_link_count out[QUOIT_SIDE_COUNT];
    _Atomic uint64_t sleep_count;
    _Atomic uint64_t put_count;                    /* puts acknowledged, to which the times belong */
    _Atomic uint64_t put_ns[QUOIT_PUT_STEP_COUNT]; /* sums */
    _Atomic uint64_t sleep_ns;                     /* in all, without the sleep that lasts still */
    _Atomic uint64_t sleep_since_ns;               /* 0: awake */
};

/* A request of a PE for another host. Written by the PE before its index enters the submission queue; the proxy checks
 * every field. result is written by the proxy before the index enters the completion queue. */
struct quoit_request {
    struct quoit_frame frame; /* kind, op, size, dest_host, dest_pe, bytes, offset, operands */
    uint64_t data_offset;     /* memory offset the payload is read from, or the answer is written to: the own staging
                                 chunk or the own symmetric segment */
    uint64_t result;          /* VALUE: the old value */
    uint32_t spread;
    uint32_t unused[11];
};
_Static_assert(sizeof(struct quoit_request) == 128, "two cache lines");

/* Between one PE and one lane. Both queues hold request indices; as many entries as requests, so they are never full.
 */
struct quoit_channel {
    _Atomic uint32_t submit_tail; /* writer: the PE. release; pairs with acquire in the proxy */
    uint32_t unused0[15];
    _Atomic uint32_t complete_tail; /* writer: the proxy. release; pairs with acquire in the PE */
    uint32_t unused1[15];
    uint16_t submit[QUOIT_REQUESTS_A_CHANNEL];
    uint16_t complete[QUOIT_REQUESTS_A_CHANNEL];
    struct quoit_request requests[QUOIT_REQUESTS_A_CHANNEL];
};

/* Where things lie in the memory of one host; all offsets from its start. */
struct quoit_layout {
    struct quoit_job_config job;
    uint32_t host;
    uint32_t local_count;
    uint32_t first_pe;
    uint64_t pes;
    uint64_t lanes;
    uint64_t traces;
    uint64_t channels;
    uint64_t staging;
    uint64_t slots[QUOIT_SIDE_COUNT]; /* inbound range of each side's window SLOTS */
    uint64_t slots_bytes;             /* of one side */
    uint64_t segments;
    uint64_t segment_stride;
    uint64_t segment_data; /* offset of data in a segment */
    uint64_t segment_heap; /* offset of the heap in a segment */
    uint64_t total_bytes;
};

/* INVALID, with a line logged, if the job config is outside the limits. segment alignment is 2 MiB. */
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
/* The ring of events of a local PE, or of lane l under index local_count + l; NULL: nothing is traced. */
static inline struct quoit_trace_ring *quoit_memory_trace(const struct quoit_layout *layout, void *memory,
                                                          uint32_t index)
{
    if (layout->job.trace_count == 0)
        return NULL;
    return (struct quoit_trace_ring *)((char *)memory + layout->traces +
                                       index * quoit_trace_ring_bytes(layout->job.trace_count));
}
static inline struct quoit_channel *quoit_memory_channel(const struct quoit_layout *layout, void *memory,
                                                         uint32_t local, uint32_t lane)
{
    return (struct quoit_channel *)((char *)memory + layout->channels) + local * layout->job.lane_count + lane;
}
/* Memory offset of the staging chunk of one request. */
static inline uint64_t quoit_layout_staging(const struct quoit_layout *layout, uint32_t local, uint32_t lane,
                                            uint32_t request)
{
    uint64_t channel = (uint64_t)local * layout->job.lane_count + lane;
    return layout->staging + (channel * QUOIT_REQUESTS_A_CHANNEL + request) * layout->job.chunk_bytes;
}
static inline uint64_t quoit_layout_segment(const struct quoit_layout *layout, uint32_t local)
{
    return layout->segments + local * layout->segment_stride;
}
/* Offsets inside one side's window SLOTS: the credit word and the first slot of a queue. */
uint64_t quoit_layout_credit(const struct quoit_layout *layout, uint32_t lane, enum quoit_class class);
uint64_t quoit_layout_slot(const struct quoit_layout *layout, uint32_t lane, enum quoit_class class,
                           uint32_t slot_index);

/* The same in the protocol SCRATCHPAD: a word by which a neighbour answers a lane, and a bypass buffer. */
uint64_t quoit_layout_answer(const struct quoit_layout *layout, uint32_t lane, uint32_t word);
uint64_t quoit_layout_bypass(const struct quoit_layout *layout, uint32_t lane, uint32_t place);

/* The host at the other end of `side`'s link. */
static inline uint32_t quoit_proxy_neighbour(const struct quoit_layout *layout, enum quoit_side side)
{
    uint32_t host_count = layout->job.host_count;
    return (layout->host + (side == QUOIT_RIGHT ? 1 : host_count - 1)) % host_count;
}

/* Doorbell bits: one a lane, two kept for the barrier of the papers, the rest wake PEs after direct puts. */
#define QUOIT_DOORBELL_LANE(lane)   (lane)
#define QUOIT_DOORBELL_BARRIER      8 /* start */
#define QUOIT_DOORBELL_BARRIER_END  9
#define QUOIT_DOORBELL_DIRECT       10
#define QUOIT_DOORBELL_ANSWER       10 /* in the protocol SCRATCHPAD, which has no direct puts: answers to transfers */
#define QUOIT_DOORBELL_DIRECT_COUNT 6
static inline uint32_t quoit_doorbell_of_pe(uint32_t local)
{
    return QUOIT_DOORBELL_DIRECT + local % QUOIT_DOORBELL_DIRECT_COUNT;
}

#endif
