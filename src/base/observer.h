/* SPDX-License-Identifier: BSD-3-Clause */
/* observer.h - named points in the code where the simulator and the virtual clock attach.
 *
 * Each point is one call of quoit_observe(); while quoit_observer is NULL it costs one load and one predicted branch.
 * The simulator and the virtual clock (src/virtual) set the pointer before the first call, from one thread; a point
 * whose member is NULL is not observed. An observer runs in the thread that passes the point. It changes nothing,
 * except that frame_received may corrupt `frame` to inject faults.
 */
#ifndef QUOIT_BASE_OBSERVER_H
#define QUOIT_BASE_OBSERVER_H

#include <stddef.h>
#include <stdint.h>

struct quoit_departure;
struct quoit_frame;
struct quoit_lane;
struct quoit_link_record;
struct quoit_ring_engine;
struct quoit_slot;
struct quoit_verdict;

struct quoit_observer {
    void (*log_line)(int level, const char *text); /* called before the line is written */
    void (*assertion)(const char *condition, const char *file, int line);
    /* PE: a request is about to be handed to the proxy. */
    void (*request_submitted)(struct quoit_ring_engine *ring, struct quoit_slot *slot);
    /* PE: a direct put of this sequence, which the link of `side` took, goes by a request. */
    void (*put_remade)(struct quoit_ring_engine *ring, int side, uint64_t sequence);
    /* Lane: a request was read from a PE's channel; a frame is about to enter the ring; the ring took it with this
     * status; the ring has a slot of the neighbour for a frame, which is about to be written; a frame is about to be
     * executed for a local PE; it was executed; a request is about to complete; the ring was informed that a link went
     * up or down. */
    void (*request_taken)(struct quoit_lane *lane);
    void (*frame_received)(struct quoit_lane *lane, struct quoit_frame *frame);
    void (*frame_taken)(struct quoit_lane *lane, int side, int class, const struct quoit_frame *frame, int status,
                        const struct quoit_verdict *verdict);
    void (*frame_sending)(struct quoit_lane *lane, const struct quoit_verdict *verdict);
    /* Lane: DMA of a frame's payload has begun, and its header follows; it has ended, and the header is about to be
     * written if the status is OK. */
    void (*payload_leaving)(struct quoit_lane *lane, const struct quoit_departure *departure);
    void (*payload_left)(struct quoit_lane *lane, const struct quoit_departure *departure, int status);
    void (*frame_executing)(struct quoit_lane *lane, const struct quoit_verdict *verdict, const char *payload);
    void (*frame_executed)(struct quoit_lane *lane, const struct quoit_verdict *verdict, const char *payload);
    void (*request_completing)(struct quoit_lane *lane, uint64_t cookie);
    void (*link_followed)(struct quoit_lane *lane, int side);
    /* Manager: its end of a link is now in this state. */
    void (*link_moved)(const struct quoit_link_record *record, int state);
    /* PE: a collective has seen the flag for which it waited. */
    void (*flag_seen)(const void *flag);
    /* The processor copies, or has copied, this many bytes within its host's memory. */
    void (*copied)(size_t bytes);
    /* PE: an atomic or a strided transfer is about to access this many bytes of a PE of the same host. */
    void (*accessed)(size_t bytes);
};

/* NULL: no observer is attached. */
extern const struct quoit_observer *quoit_observer;

#define quoit_observe(point, ...)                                                                                      \
    do {                                                                                                               \
        if (__builtin_expect(quoit_observer != NULL, 0) && quoit_observer->point)                                      \
            quoit_observer->point(__VA_ARGS__);                                                                        \
    } while (0)

#endif
