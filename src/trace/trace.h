/* SPDX-License-Identifier: BSD-3-Clause */
/* trace.h - rings of events in a host's memory, one per PE and one per lane: what `oshrun --trace` records.
 *
 * The threads of a PE or lane write; the launcher drains the rings continuously. A full ring drops the newest events
 * and counts them; no writer ever waits. An event is valid once its sequence, which is written last, says so: a writer
 * killed at any instant leaves every finished event intact.
 *
 * Times are those of quoit_clock_now_ns(), which all emulated hosts share. Without --trace there are no rings, and
 * tracing costs one comparison with NULL, outside the fast paths.
 *
 * Flows: everything that a request causes carries the number that its PE gave it, from frame to frame (`trace` in
 * wire/frame.h); together with the PE's number it identifies the flow within the job.
 *
 * Threads: any may write; one drains. Errors: none.
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
    /* events of PEs */
    QUOIT_TRACE_ENTER,   /* `name` (a call, or a wait inside one) begins at begin_ns; `depth` others enclose it */
    QUOIT_TRACE_LEAVE,   /* it ended at end_ns. `value`: how often it slept */
    QUOIT_TRACE_DIRECT,  /* a put directly into a neighbour's memory */
    QUOIT_TRACE_REQUEST, /* a request was handed to the proxy */
    /* events of lanes */
    QUOIT_TRACE_SEND,    /* a frame from this host was written into the neighbour's slot. `value`: its sequence */
    QUOIT_TRACE_RELAY,   /* the same for a frame between two other hosts */
    QUOIT_TRACE_DELIVER, /* a frame was executed here */
    QUOIT_TRACE_DMA, /* a payload went by DMA, from submission until its completion was seen. `value`: its index among
                      * the lane's outstanding ones, below QUOIT_TRACE_DMAS_MAX */
    QUOIT_TRACE_SLEEP,
    QUOIT_TRACE_CREDIT, /* the neighbour has returned `value` slots in total, on this side and in this class */
    QUOIT_TRACE_LINK,   /* the lane follows a link that goes down (value 0) or comes up (1) */
    QUOIT_TRACE_KIND_COUNT
};

struct quoit_trace_event {
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t flow;  /* quoit_trace_flow(); 0: none */
    uint64_t bytes; /* of payload */
    uint64_t value;
    uint32_t pe;    /* the peer; QUOIT_TRACE_NO_PE */
    uint32_t tid;   /* filled in by quoit_trace_write() */
    uint8_t kind;   /* enum quoit_trace_kind */
    uint8_t frame;  /* enum quoit_frame_kind, if the event concerns a frame */
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
    uint64_t event_count;            /* a power of two. Writer: the launcher, before the job starts */
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
/* Takes the oldest event; false if no complete one is there. event_count is the size the ring was made with: it is not
 * read from the ring, where a PE could have written anything, as it could into the event. */
bool quoit_trace_take(struct quoit_trace_ring *ring, uint64_t event_count, struct quoit_trace_event *event_out);

/* Of a ring that nobody writes to: appends a copy of an event of another ring of at most this size, as it is. False: it
 * is full. */
bool quoit_trace_keep(struct quoit_trace_ring *ring, const struct quoit_trace_event *event);

/* Begin and end of a named activity of this thread; activities nest. */
uint64_t quoit_trace_enter(struct quoit_trace_ring *ring, const char *name, uint64_t bytes, uint32_t pe);
void quoit_trace_leave(struct quoit_trace_ring *ring, uint64_t begin_ns, uint64_t sleep_count);

#endif
