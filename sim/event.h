/* SPDX-License-Identifier: BSD-3-Clause */
/* event.h - the queue of future events, in order of time.
 *
 * An event is a member of the object that it happens to, and is scheduled at most once at a time. Order: time, then
 * tie, then the number of scheduling; tie is 0 unless ties are permuted. So the order never depends on addresses.
 * Errors: none; running out of memory ends the process.
 */
#ifndef SIM_EVENT_H
#define SIM_EVENT_H

#include <stdbool.h>
#include <stdint.h>

struct sim_event {
    void (*fire)(struct sim_event *event); /* called with the event no longer scheduled */
    const char *kind;                      /* for the trace */
    uint32_t who;                          /* for the trace */
    uint32_t place;                        /* in the heap, from 1; 0: not scheduled */
    uint64_t at_ns;
    uint64_t tie;
    uint64_t number;
};

struct sim_queue {
    struct sim_event **heap; /* from 1 */
    uint32_t count;
    uint32_t capacity;
    uint64_t number;
};

void sim_queue_add(struct sim_queue *queue, struct sim_event *event, uint64_t at_ns, uint64_t tie);
void sim_queue_remove(struct sim_queue *queue, struct sim_event *event);
/* Removes and returns the next event; NULL if there is none. */
struct sim_event *sim_queue_next(struct sim_queue *queue);
void sim_queue_free(struct sim_queue *queue);

static inline bool sim_event_is_scheduled(const struct sim_event *event)
{
    return event->place != 0;
}

#endif
