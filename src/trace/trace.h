/* SPDX-License-Identifier: BSD-3-Clause */
/* trace.h - rings of events in the memory of a host, one for each PE and each lane: what `oshrun --trace` records.
 *
 * The threads of one PE, or one lane, write; the launcher takes, all the time. A ring that is full loses the newest
 * events and counts them; nobody ever waits. An event is there when its sequence says so, which is written last, so a
 * writer that is killed at any instant leaves every event it finished.
 *
 * Times are those of quoit_clock_now_ns(), the same on all emulated hosts. Without --trace there are no rings, and who
 * would write pays one comparison with NULL, beyond the fast ways.
 *
 * Flows: what a request causes on its way carries the number that its PE gave it, from frame to frame (`trace` in
 * wire/frame.h); together with the number of that PE it names the flow in the whole job.
 *
 * Threads: any may write; one takes. Errors: none.
 */
#ifndef QUOIT_TRACE_TRACE_H
#define QUOIT_TRACE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define QUOIT_TRACE_NAME_BYTES 48
#define QUOIT_TRACE_EVENTS_MIN 64
#define QUOIT_TRACE_EVENTS_MAX (1u << 22)
#define QUOIT_TRACE_NO_PE      UINT32_MAX
#define QUOIT_TRACE_DMAS_MAX   64

enum quoit_trace_kind {
    QUOIT_TRACE_NONE,
    /* by PEs */
    QUOIT_TRACE_ENTER,   /* `name` begins at begin_ns: a call, or a wait in one; `depth` others are around it */
    QUOIT_TRACE_LEAVE,   /* it has ended at end_ns. `value`: how often it slept */
    QUOIT_TRACE_DIRECT,  /* a put straight into a neighbour's memory */
    QUOIT_TRACE_REQUEST, /* a request was handed to the proxy */
    /* by lanes */
    QUOIT_TRACE_SEND,    /* a frame of this host was written into a slot of the neighbour. `value`: its sequence */
    QUOIT_TRACE_RELAY,   /* the same of a frame between two other hosts */
    QUOIT_TRACE_DELIVER, /* a frame was executed here */
    QUOIT_TRACE_DMA, /* a payload went by DMA, from its descriptor on until it was seen to be there. `value`: which of
                        those that the lane has under way, less than QUOIT_TRACE_DMAS_MAX */
    QUOIT_TRACE_SLEEP,
    QUOIT_TRACE_CREDIT, /* `value` slots were given back by the neighbour in all, on this side and of this class */
    QUOIT_TRACE_LINK,   /* the lane follows a link that goes down (value 0) or comes up (1) */
    QUOIT_TRACE_KIND_COUNT
};

struct quoit_trace_event {
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t flow;  /* quoit_trace_flow(); 0: none */
    uint64_t bytes; /* of payload */
    uint64_t value;
    uint32_t pe;    /* which it is for; QUOIT_TRACE_NO_PE */
    uint32_t tid;   /* filled in by quoit_trace_write() */
    uint8_t kind;   /* enum quoit_trace_kind */
    uint8_t frame;  /* enum quoit_frame_kind, where a frame is meant */
    uint8_t side;   /* enum quoit_side */
    uint8_t class;  /* enum quoit_class */
    uint32_t depth; /* filled in by quoit_trace_enter() and _leave() */
    char name[QUOIT_TRACE_NAME_BYTES];
    uint64_t unused[2];
};

struct quoit_trace_slot {
    _Atomic uint64_t sequence; /* of the event it holds, counted from 1; written last */
    struct quoit_trace_event event;
};
_Static_assert(sizeof(struct quoit_trace_slot) == 128, "two cache lines");

struct quoit_trace_ring {
    _Atomic uint64_t reserved_count; /* writers: those who write events */
    _Atomic uint64_t lost_count;     /* likewise */
    uint64_t event_count;            /* a power of two. Writer: the launcher, before there is anybody else */
    uint64_t unused0[5];
    _Atomic uint64_t taken_count; /* writer: the launcher. release; pairs with acquire in quoit_trace_write() */
    uint64_t unused1[7];
    struct quoit_trace_slot slots[];
};

static inline uint64_t quoit_trace_ring_bytes(uint64_t event_count)
{
    return sizeof(struct quoit_trace_ring) + event_count * sizeof(struct quoit_trace_slot);
}

static inline uint64_t quoit_trace_flow(uint32_t pe, uint32_t number)
{
    return number ? (uint64_t)(pe + 1) << 32 | number : 0;
}

/* Appends a copy of the event, or counts it as lost. */
void quoit_trace_write(struct quoit_trace_ring *ring, struct quoit_trace_event *event);
/* Takes the oldest event. False: there is none that is whole. event_count is what the ring was made for: a PE can write
 * anything there, also into the event. */
bool quoit_trace_take(struct quoit_trace_ring *ring, uint64_t event_count, struct quoit_trace_event *event_out);

/* Begin and end of what this thread does under a name; they nest. */
uint64_t quoit_trace_enter(struct quoit_trace_ring *ring, const char *name, uint64_t bytes, uint32_t pe);
void quoit_trace_leave(struct quoit_trace_ring *ring, uint64_t begin_ns, uint64_t sleep_count);

#endif
