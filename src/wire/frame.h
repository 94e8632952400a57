/* SPDX-License-Identifier: BSD-3-Clause */
/* frame.h - the contents of a slot: a 64-byte header, then the payload. Pure layout, little-endian.
 *
 * A slot is quoit_slot_bytes(chunk_bytes) long and starts with a header. The sender writes the payload and header words
 * 1..7, then word 0 (`sequence`) by one aligned 8-byte store: a slot without the expected sequence holds no frame yet,
 * whatever else it contains. Sequences of a queue count 1, 2, 3, ...; slot index = (sequence - 1) % slot_count. Memory
 * that was never written is zero, so it holds no frame.
 *
 * A receiver checks a frame with quoit_frame_check() before it uses any field: a peer can write anything.
 */
#ifndef QUOIT_WIRE_FRAME_H
#define QUOIT_WIRE_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define QUOIT_FRAME_BYTES      64
#define QUOIT_WIRE_VERSION     9
#define QUOIT_STRIDE_SIZE_MAX  16 /* bytes of a strided element */
#define QUOIT_CHUNK_BYTES_MAX  (1u << 20)
#define QUOIT_MESSAGE_PORTS    16         /* destinations of a MESSAGE on a host */
#define QUOIT_MANY_BYTES_MAX   4096u      /* payload of a PUT_MANY */
#define QUOIT_TAKE_BYTES_MAX   (1u << 20) /* of a TAKE, so that it does not keep a lane for long */
#define QUOIT_LINK_STATE_BITS  21         /* of a link end; the sum over 1024 links fits 32 bits */
#define QUOIT_LINK_STATE_MAX   ((1u << QUOIT_LINK_STATE_BITS) - 1)
#define QUOIT_LINK_ENDS_MAX    (1u << (32 - QUOIT_LINK_STATE_BITS))
#define QUOIT_LINK_UPDATES_MAX 6 /* in one TOPOLOGY */

/* Requests may cause replies; replies cause nothing and are always accepted. Each class has its own queues, so a reply
 * never waits behind a request. */
enum quoit_class { QUOIT_CLASS_REQUEST, QUOIT_CLASS_REPLY, QUOIT_CLASS_COUNT };

enum quoit_frame_kind {
    QUOIT_FRAME_NONE,
    /* requests */
    QUOIT_FRAME_PUT,         /* payload -> offset */
    QUOIT_FRAME_PUT_STRIDED, /* payload of elements of `size` bytes -> offset, offset + operand, ...; operand in bytes,
                                a two's complement number */
    QUOIT_FRAME_PUT_SIGNAL,  /* payload -> offset, then amo `op` with value operand on the word at operand2 */
    QUOIT_FRAME_GET,         /* bytes at offset -> DATA */
    QUOIT_FRAME_GET_STRIDED, /* elements of `size` bytes at offset, offset + operand, ... -> DATA; `bytes` is their sum
                              */
    QUOIT_FRAME_AMO,         /* `op` on `size` bytes at offset, operand, operand2 (compare); nothing returns */
    QUOIT_FRAME_AMO_FETCH,   /* the same -> VALUE */
    QUOIT_FRAME_MESSAGE,     /* to a host, not to a PE: payload for its port `op`; the PE fields are ignored */
    QUOIT_FRAME_PUT_MANY,    /* payload of small puts, each a struct quoit_frame_put and its bytes, to any PEs of the
                                host, in order; dest_pe and offset are those of the first */
    /* replies */
    QUOIT_FRAME_DATA,     /* payload of a get; token of the request */
    QUOIT_FRAME_VALUE,    /* operand is the old value; token of the request */
    QUOIT_FRAME_ACK,      /* every request of the flow up to flow_sequence is executed */
    QUOIT_FRAME_TOPOLOGY, /* to a neighbour: `size` link-state updates, quoit_frame_update(). No PE sends or gets it */
    QUOIT_FRAME_KIND_COUNT
};

/* The atomic operations, as encoded on the wire. FETCH and TAKE are only used with AMO_FETCH. */
enum quoit_amo {
    QUOIT_AMO_SET,
    QUOIT_AMO_ADD,
    QUOIT_AMO_AND,
    QUOIT_AMO_OR,
    QUOIT_AMO_XOR,
    QUOIT_AMO_SWAP,
    QUOIT_AMO_COMPARE_SWAP, /* operand2 is compared, operand is stored */
    QUOIT_AMO_FETCH,
    QUOIT_AMO_TAKE, /* allocates the memory of `operand` bytes at offset; the VALUE is 0 or an errno */
    QUOIT_AMO_COUNT
};

/* LANDED: the payload already is at its destination and the slot carries none. Set by the last sender, only on PUT*:
 *   a DATA frame does not say where its payload goes. Landing overtakes frames still waiting in the neighbour's slots.
 * RIGHT: the request goes right while all links are up; the bit names the flow, also when a link is down and the frame
 *   travels left. A reply names the flow of its request.
 * ORDERED: the payload must not land, because a fence precedes the request and earlier requests may not be executed
 * yet, or because it is a retransmission and may already be executed.
 * PATIENT: the acknowledgement may wait for another message to the same host. On networks only. */
#define QUOIT_FRAME_LANDED  0x01u
#define QUOIT_FRAME_RIGHT   0x02u
#define QUOIT_FRAME_ORDERED 0x04u
#define QUOIT_FRAME_PATIENT 0x08u

struct quoit_frame {
    uint64_t sequence; /* of the queue; written last */
    uint8_t kind;
    uint8_t op;
    uint8_t size; /* bytes of an amo operand (4, 8) or of a strided element (1..16); of a DATA: 0 if not
                     strided; of a TOPOLOGY the number of updates */
    uint8_t flags;
    uint16_t source_host;
    uint16_t dest_host;
    uint16_t source_pe; /* local index on the source host (of a reply: the PE that served the request) */
    uint16_t dest_pe;   /* local index on the destination host */
    uint32_t bytes;     /* of the payload; of a GET: the bytes requested */
    uint64_t offset;    /* in the symmetric segment of the PE acted on */
    uint32_t token;     /* the source ring's identifier of the request; returned in the reply */
    uint32_t flow_sequence;
    uint64_t operand;
    uint64_t operand2;
    uint32_t trace;            /* set by the source, carried unchanged */
    uint32_t topology_version; /* of the topology under which it was sent. Outdated frames have no effect */
};
_Static_assert(sizeof(struct quoit_frame) == QUOIT_FRAME_BYTES, "a frame header is one cache line");

/* Distance between slots: the header and a payload of up to chunk_bytes. */
static inline uint64_t quoit_slot_bytes(uint32_t chunk_bytes)
{
    return QUOIT_FRAME_BYTES + (uint64_t)chunk_bytes;
}

static inline enum quoit_class quoit_frame_class(uint8_t kind)
{
    return kind >= QUOIT_FRAME_DATA ? QUOIT_CLASS_REPLY : QUOIT_CLASS_REQUEST;
}

/* Whether source_pe and dest_pe name PEs; frames between hosts have none. */
static inline int quoit_frame_is_of_pes(uint8_t kind)
{
    return kind != QUOIT_FRAME_MESSAGE && kind != QUOIT_FRAME_ACK && kind != QUOIT_FRAME_TOPOLOGY;
}

/* Whether the response to the request is a DATA or VALUE. */
static inline int quoit_frame_needs_response(uint8_t kind)
{
    return kind == QUOIT_FRAME_GET || kind == QUOIT_FRAME_GET_STRIDED || kind == QUOIT_FRAME_AMO_FETCH;
}

/* Bytes of payload behind the header in the slot, which is what a relay copies. */
static inline uint32_t quoit_frame_payload_bytes(const struct quoit_frame *frame)
{
    int carries = frame->kind == QUOIT_FRAME_PUT || frame->kind == QUOIT_FRAME_PUT_STRIDED ||
                  frame->kind == QUOIT_FRAME_PUT_SIGNAL || frame->kind == QUOIT_FRAME_MESSAGE ||
                  frame->kind == QUOIT_FRAME_PUT_MANY || frame->kind == QUOIT_FRAME_DATA;
    return carries && !(frame->flags & QUOIT_FRAME_LANDED) ? frame->bytes : 0;
}

/* A put of a PUT_MANY; its bytes follow, and zeros up to a multiple of 8. */
struct quoit_frame_put {
    uint64_t offset;
    uint32_t bytes; /* at least 1 */
    uint16_t dest_pe;
    uint16_t unused; /* 0 */
};
_Static_assert(sizeof(struct quoit_frame_put) == 16, "words that follow it stay aligned");

/* From one put of a PUT_MANY to the next. */
static inline uint32_t quoit_frame_put_bytes(uint32_t bytes)
{
    return (uint32_t)sizeof(struct quoit_frame_put) + ((bytes + 7) & ~7u);
}

/* A link-state update: link end 2 host + side (0 left, 1 right) is up in epoch state / 2, or went down after it if the
 * state is odd. Six fit offset, operand and operand2 of a TOPOLOGY, each as end << QUOIT_LINK_STATE_BITS | state. */
struct quoit_link_update {
    uint32_t end;
    uint32_t state;
};
static inline struct quoit_link_update quoit_frame_update(const struct quoit_frame *frame, uint32_t index)
{
    const uint64_t pairs[] = {frame->offset, frame->operand, frame->operand2};
    uint32_t word = (uint32_t)(pairs[index / 2] >> (index % 2 * 32));
    return (struct quoit_link_update){.end = word >> QUOIT_LINK_STATE_BITS, .state = word & QUOIT_LINK_STATE_MAX};
}
/* Appends to a frame that has fewer than QUOIT_LINK_UPDATES_MAX. */
static inline void quoit_frame_add_update(struct quoit_frame *frame, uint32_t end, uint32_t state)
{
    uint64_t *const pairs[] = {&frame->offset, &frame->operand, &frame->operand2};
    uint32_t index = frame->size++;
    *pairs[index / 2] |= (uint64_t)(end << QUOIT_LINK_STATE_BITS | state) << (index % 2 * 32);
}

/* What a receiver knows about the job, to check frames against. */
struct quoit_frame_limits {
    uint32_t host_count;
    uint32_t chunk_bytes;
    uint64_t segment_bytes;    /* of one PE's symmetric segment */
    const uint32_t *pe_counts; /* PEs of each host */
    bool has_loopback;         /* a host sends frames to itself, too */
};

/* OK, or INVALID if any field is outside what `class` and the limits allow (kind, hosts, PEs, chunk, range of offset
 * and bytes, stride range, amo size and alignment, flags). Source and destination host must differ, unless there is a
 * loopback. Fields that a kind does not use are ignored; sequence, token and flow_sequence are checked by the ring. */
QUOIT_MUST_USE enum quoit_status quoit_frame_check(const struct quoit_frame *frame, enum quoit_class class,
                                                   const struct quoit_frame_limits *limits);
/* The same for the puts in the payload of a PUT_MANY that quoit_frame_check() has accepted: each is whole, and inside
 * the segment of a PE of the host. */
QUOIT_MUST_USE enum quoit_status quoit_frame_check_many(const struct quoit_frame *frame, const char *payload,
                                                        const struct quoit_frame_limits *limits);

#endif
