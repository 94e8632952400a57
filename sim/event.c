/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/event.h"
#include "base/assert.h"

#include <stdlib.h>

static bool is_before(const struct sim_event *a, const struct sim_event *b)
{
    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns;
    if (a->tie != b->tie)
        return a->tie < b->tie;
    return a->number < b->number;
}

static void put_at(struct sim_queue *queue, struct sim_event *event, uint32_t place)
{
    queue->heap[place] = event;
    event->place = place;
}

static void move_up(struct sim_queue *queue, struct sim_event *event, uint32_t place)
{
    while (place > 1 && is_before(event, queue->heap[place / 2])) {
        put_at(queue, queue->heap[place / 2], place);
        place /= 2;
    }
    put_at(queue, event, place);
}

static void move_down(struct sim_queue *queue, struct sim_event *event, uint32_t place)
{
    for (uint32_t child = 2 * place; child <= queue->count; child = 2 * place) {
        if (child < queue->count && is_before(queue->heap[child + 1], queue->heap[child]))
            child++;
        if (!is_before(queue->heap[child], event))
            break;
        put_at(queue, queue->heap[child], place);
        place = child;
    }
    put_at(queue, event, place);
}

void sim_queue_add(struct sim_queue *queue, struct sim_event *event, uint64_t at_ns, uint64_t tie)
{
    quoit_assert(event->place == 0);
    if (queue->count + 1 >= queue->capacity) {
        queue->capacity = queue->capacity ? 2 * queue->capacity : 256;
        queue->heap = realloc(queue->heap, queue->capacity * sizeof(struct sim_event *));
        quoit_assert(queue->heap != NULL);
    }
    event->at_ns = at_ns;
    event->tie = tie;
    event->number = queue->number++;
    queue->count++;
    move_up(queue, event, queue->count);
}

void sim_queue_remove(struct sim_queue *queue, struct sim_event *event)
{
    uint32_t place = event->place;
    quoit_assert(place > 0);
    quoit_assert(queue->heap[place] == event);
    struct sim_event *last = queue->heap[queue->count--];
    event->place = 0;
    if (last == event)
        return;
    if (place > 1 && is_before(last, queue->heap[place / 2]))
        move_up(queue, last, place);
    else
        move_down(queue, last, place);
}

struct sim_event *sim_queue_next(struct sim_queue *queue)
{
    if (queue->count == 0)
        return NULL;
    struct sim_event *event = queue->heap[1];
    sim_queue_remove(queue, event);
    return event;
}

void sim_queue_free(struct sim_queue *queue)
{
    free(queue->heap);
}
