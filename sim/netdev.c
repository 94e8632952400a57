/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/netdev.h"
#include "base/assert.h"
#include "engine/ring/ring.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define DOORBELL      (1ull << 15) /* that no lane and no PE has */
#define CREDIT_SHARE  4            /* slots are given back for this part of them at once */
#define SPARE_SLOTS   8            /* that programs leave to acknowledgements */
#define PROGRAM_DMA   (QUOIT_DMA_DEPTH / 2)
#define LOOK_NS       20
#define LOOKS_MOST    1000000
#define POLL_NS       50000  /* that threads of user space go on looking after the last frame */
#define MARK_BYTES    4096u  /* of the count of frames, before the slots */
#define LARGE_SEGMENT 65160u /* 45 times 1448: what Linux hands over with segmentation offload */
#define GIGABIT_MSS   1448u
#define GIGABIT_EXTRA 24u /* preamble, check sequence, gap */
#define GIGABIT_PS    8000u

static const struct sim_netdev_traits table[] = {
    [SIM_DEVICE_PAPERS] = {"papers", GIGABIT_MSS, 256, 2048, true, true, false, false},
    [SIM_DEVICE_OURS] = {"ours", LARGE_SEGMENT, 32, 68u << 10, true, false, true, true},
    [SIM_DEVICE_GIGABIT] = {"gigabit", LARGE_SEGMENT, 0, 0, false, false, false, true},
};

const struct sim_netdev_traits *sim_netdev_traits(enum sim_device device)
{
    return &table[device];
}

void sim_netdev_work(struct sim_netdev *dev, uint64_t ns)
{
    dev->busy_ns += ns;
    sim_spend(dev->world, ns);
}

static void interrupt(struct sim_event *event)
{
    struct sim_netdev *dev = (struct sim_netdev *)((char *)event - offsetof(struct sim_netdev, interrupt));
    dev->is_interrupted = true;
    dev->interrupted_ns = dev->world->now_ns;
    sim_host_changed(dev->host);
}

void sim_netdev_open(struct sim_netdev *dev, struct sim_pe *pe, struct sim_netdev *peer, bool is_whole)
{
    const struct sim_config *config = &pe->world->config;
    enum quoit_side side = pe->host->index == 0 ? QUOIT_RIGHT : QUOIT_LEFT;
    dev->traits = sim_netdev_traits(config->pattern.device);
    dev->world = pe->world;
    dev->host = pe->host;
    dev->peer = peer;
    dev->port = quoit_engine_ring_port(quoit_fabric_engine(pe->fabric, "ring"), side);
    dev->end = pe->host->ends[side];
    dev->area_offset = pe->fabric->self.layout.segment_heap;
    dev->area = pe->fabric->self.segment + dev->area_offset;
    dev->area_bytes = config->job.heap_bytes / 2;
    dev->slot_count = is_whole && !dev->traits->has_threads ? 1 : dev->traits->slot_count;
    dev->slot_bytes = dev->slot_count == 1 ? dev->area_bytes - MARK_BYTES : dev->traits->slot_bytes;
    dev->has_dma = config->job.payload == QUOIT_PAYLOAD_DMA;
    dev->waits_for_each = config->pattern.issue == SIM_ISSUE_QUIET;
    dev->interrupt = (struct sim_event){.fire = interrupt, .kind = "nic", .who = pe->host->index};
}

/* Frames to a host, in order */

static struct sim_frame *push(struct sim_netdev *to, const struct sim_frame *from)
{
    struct sim_frame *frame = malloc(sizeof *frame);
    quoit_assert(frame != NULL);
    *frame = *from;
    frame->next = frame->next_departing = NULL;
    frame->arrives_ns = UINT64_MAX;
    if (to->last)
        to->last->next = frame;
    else
        to->first = frame;
    to->last = frame;
    return frame;
}

static bool is_due(const struct sim_netdev *dev)
{
    return dev->first && dev->first->arrives_ns <= dev->world->now_ns;
}

/* Tells the neighbour: the count of frames, and the doorbell unless its threads poll. */
static void announce(struct sim_netdev *dev, struct sim_frame *frame)
{
    uint64_t start_ns = dev->world->now_ns;
    bool is_awake = dev->traits->has_threads && start_ns - dev->peer->worked_ns < POLL_NS;
    if (quoit_port_write64(dev->port, QUOIT_WINDOW_MEMORY, dev->area_offset, frame->ordinal) != QUOIT_OK)
        sim_fail(dev->world, "a frame is lost");
    if (!is_awake)
        quoit_port_ring(dev->port, DOORBELL);
    frame->arrives_ns = dev->end->ways[0].last_arrival_ns;
    dev->busy_ns += dev->world->now_ns - start_ns;
}

static bool complete(struct sim_netdev *dev)
{
    struct quoit_dma_done done[8];
    uint32_t count = dev->dma_count ? quoit_port_dma_poll(dev->port, 0, done, 8) : 0;
    for (uint32_t i = 0; i < count; i++) {
        dev->dma_count--;
        dev->busy_ns += dev->world->model.dma_poll_ns / count;
        announce(dev, (struct sim_frame *)(uintptr_t)done[i].cookie);
    }
    return count > 0;
}

bool sim_netdev_has_room(const struct sim_netdev *dev)
{
    uint32_t spare = dev->slot_count > SPARE_SLOTS ? SPARE_SLOTS : 0;
    return !dev->traits->has_port ||
           (dev->sent_count - dev->credit_count + spare < dev->slot_count && dev->dma_count < PROGRAM_DMA);
}

bool sim_netdev_accepts(const struct sim_netdev *dev)
{
    return dev->traits->has_threads || sim_netdev_has_room(dev);
}

void sim_netdev_send(struct sim_netdev *dev, const struct sim_frame *from)
{
    struct sim_world *world = dev->world;
    while (dev->dma_count == QUOIT_DMA_DEPTH)
        if (!complete(dev))
            sim_netdev_work(dev, world->model.poll_ns);
    uint64_t start_ns = world->now_ns, ordinal = dev->sent_count++;
    uint64_t offset = MARK_BYTES + ordinal % dev->slot_count * dev->slot_bytes;
    char *source = dev->area + dev->area_bytes + offset;
    size_t bytes = from->wire_bytes < sizeof ordinal ? sizeof ordinal : from->wire_bytes;
    struct sim_frame *frame = push(dev->peer, from);
    enum quoit_status status;
    if (dev->sent_count - dev->credit_count > dev->slot_count || bytes > dev->slot_bytes)
        sim_fail(world, "a frame of %zu bytes has no slot", bytes);
    frame->has_slot = true;
    frame->ordinal = ordinal;
    memcpy(source, &ordinal, sizeof ordinal);
    memcpy(source + bytes - sizeof ordinal, &ordinal, sizeof ordinal);
    if (!dev->has_dma) {
        status = quoit_port_write(dev->port, QUOIT_WINDOW_MEMORY, dev->area_offset + offset, source, bytes);
        dev->busy_ns += world->now_ns - start_ns;
        if (status == QUOIT_OK)
            announce(dev, frame);
    } else {
        dev->dma_count++;
        status = quoit_port_dma_submit(dev->port, 0, QUOIT_WINDOW_MEMORY, dev->area_offset + offset, source, bytes,
                                       (uintptr_t)frame);
        dev->busy_ns += world->now_ns - start_ns;
        while (status == QUOIT_OK && dev->waits_for_each && frame->arrives_ns == UINT64_MAX)
            if (!complete(dev))
                sim_netdev_work(dev, world->model.poll_ns);
    }
    if (status != QUOIT_OK)
        sim_fail(world, "a frame cannot be sent: %s", quoit_status_text(status));
}

/* The adapter interrupts at that time, or later if it did so shortly before. */
static void interrupt_at(struct sim_netdev *dev, uint64_t at_ns)
{
    uint64_t least_ns = dev->interrupted_ns + dev->world->model.nic_interrupt_gap_ns;
    if (!sim_event_is_scheduled(&dev->interrupt) && !dev->is_interrupted)
        sim_schedule(dev->world, &dev->interrupt, at_ns > least_ns ? at_ns : least_ns);
}

/* Cuts a segment, as the adapter does. */
static void send_gigabit(struct sim_netdev *dev, const struct sim_frame *segment)
{
    struct sim_world *world = dev->world;
    struct sim_netdev *peer = dev->peer;
    uint32_t left = segment->bytes;
    sim_netdev_work(dev, world->model.register_write_ns);
    uint64_t ready_ns = world->now_ns + world->model.dma_start_ns;
    do {
        struct sim_frame *frame = push(peer, segment);
        frame->bytes = left < GIGABIT_MSS ? left : GIGABIT_MSS;
        dev->wire_free_ns = (dev->wire_free_ns > ready_ns ? dev->wire_free_ns : ready_ns) +
                            sim_model_time(GIGABIT_PS, frame->bytes + SIM_FRAME_HEADERS + GIGABIT_EXTRA);
        frame->arrives_ns = dev->wire_free_ns + world->model.link_latency_ns;
        interrupt_at(peer, frame->arrives_ns);
        left -= frame->bytes;
    } while (left > 0);
}

static void wake_transmitter(struct sim_netdev *dev)
{
    if (!dev->transmitter)
        return;
    sim_task_wake(dev->transmitter, dev->world->model.thread_wake_ns);
    dev->transmitter = NULL;
    sim_netdev_work(dev, dev->world->model.wake_call_ns);
}

static void depart(struct sim_netdev *dev, const struct sim_frame *segment)
{
    struct sim_frame *frame = malloc(sizeof *frame);
    quoit_assert(frame != NULL);
    *frame = *segment;
    frame->next_departing = NULL;
    if (dev->departing_last)
        dev->departing_last->next_departing = frame;
    else
        dev->departing = frame;
    dev->departing_last = frame;
    wake_transmitter(dev);
}

void sim_netdev_queue(struct sim_netdev *dev, const struct sim_frame *segment)
{
    sim_netdev_work(dev, dev->world->model.ethernet_frame_ns);
    if (dev->traits->has_threads)
        depart(dev, segment);
    else if (dev->traits->has_port)
        sim_netdev_send(dev, segment);
    else
        send_gigabit(dev, segment);
}

/* The thread that reads the TAP device: into the neighbour's slot, or into a buffer for DMA. */
static void transmit(void *arg)
{
    struct sim_netdev *dev = arg;
    struct sim_world *world = dev->world;
    while (!dev->is_stopping) {
        struct sim_frame *frame = dev->departing;
        if (!frame || !sim_netdev_has_room(dev)) {
            dev->transmitter = world->current;
            sim_block(world, UINT64_MAX);
            continue;
        }
        dev->departing = frame->next_departing;
        dev->departing_last = dev->departing ? dev->departing_last : NULL;
        sim_netdev_work(dev,
                        world->model.syscall_ns +
                            (dev->has_dma ? sim_model_time(world->model.memory_ps_per_byte, frame->wire_bytes) : 0));
        sim_netdev_send(dev, frame);
        free(frame);
    }
}

/* The kernel's task, and the thread that writes the TAP device */

static void give_back(struct sim_netdev *dev)
{
    uint32_t least = dev->slot_count > CREDIT_SHARE ? dev->slot_count / CREDIT_SHARE : 1;
    if (!dev->traits->has_port || dev->taken_count - dev->credited_count < least)
        return;
    dev->credited_count = dev->taken_count;
    announce(dev, push(dev->peer, &(struct sim_frame){.ordinal = dev->taken_count}));
}

static void check_slot(struct sim_netdev *dev, const struct sim_frame *frame)
{
    const char *slot = dev->area + MARK_BYTES + frame->ordinal % dev->slot_count * dev->slot_bytes;
    uint64_t head, tail;
    size_t bytes = frame->wire_bytes < sizeof head ? sizeof head : frame->wire_bytes;
    memcpy(&head, slot, sizeof head);
    memcpy(&tail, slot + bytes - sizeof tail, sizeof tail);
    if (head != frame->ordinal || tail != frame->ordinal)
        sim_fail(dev->world, "the slot of frame %llu holds %llu and %llu", (unsigned long long)frame->ordinal,
                 (unsigned long long)head, (unsigned long long)tail);
}

static void take_first(struct sim_netdev *dev)
{
    struct sim_frame *frame = dev->first;
    dev->first = frame->next;
    dev->last = dev->first ? dev->last : NULL;
    if (frame->has_slot) {
        check_slot(dev, frame);
        dev->taken_count++;
    } else if (dev->traits->has_port) {
        dev->credit_count = frame->ordinal;
    }
    if (frame->has_slot || !dev->traits->has_port)
        dev->take(dev->arg, frame);
    free(frame);
    give_back(dev);
}

static bool has_work(const struct sim_netdev *dev)
{
    return dev->is_stopping || (dev->traits->has_port ? is_due(dev) : dev->is_interrupted);
}

/* Returns when there is something to do. Threads that poll are busy meanwhile, for so long; others get an interrupt. */
static void await_work(struct sim_netdev *dev)
{
    struct sim_world *world = dev->world;
    uint64_t start_ns = world->now_ns;
    bool has_waited = false;
    while (!has_work(dev) && !complete(dev)) {
        sim_idle(world, LOOK_NS, LOOKS_MOST, has_waited);
        has_waited = true;
    }
    uint64_t waited_ns = world->now_ns - start_ns;
    if (dev->traits->has_threads)
        dev->busy_ns += waited_ns < POLL_NS ? waited_ns : POLL_NS;
    if (has_waited && (!dev->traits->has_threads || waited_ns >= POLL_NS))
        sim_netdev_work(dev, world->model.interrupt_ns + (dev->traits->has_threads ? world->model.thread_wake_ns : 0));
    dev->worked_ns = world->now_ns;
}

static void serve(void *arg)
{
    struct sim_netdev *dev = arg;
    while (!dev->is_stopping) {
        await_work(dev);
        dev->is_interrupted = false;
        while (is_due(dev)) {
            take_first(dev);
            complete(dev);
        }
        complete(dev);
        dev->after_batch(dev->arg);
        if (dev->departing && sim_netdev_has_room(dev))
            wake_transmitter(dev);
        if (!dev->traits->has_port && dev->first)
            interrupt_at(dev, dev->first->arrives_ns);
        dev->worked_ns = dev->world->now_ns;
    }
}

void sim_netdev_start(struct sim_netdev *dev)
{
    dev->tasks[0] = sim_task_start(dev->host, "network", serve, dev);
    if (dev->traits->has_threads)
        dev->tasks[1] = sim_task_start(dev->host, "transmitter", transmit, dev);
    for (int i = 0; i < 2 && dev->tasks[i]; i++)
        dev->tasks[i]->is_service = true;
}

bool sim_netdev_is_running(const struct sim_netdev *dev)
{
    for (int i = 0; i < 2 && dev->tasks[i]; i++)
        if (dev->tasks[i]->state != SIM_TASK_ENDED)
            return true;
    return false;
}

void sim_netdev_stop(struct sim_netdev *dev)
{
    dev->is_stopping = true;
    sim_host_changed(dev->host);
    if (dev->transmitter)
        sim_task_wake(dev->transmitter, 0);
    dev->transmitter = NULL;
}

void sim_netdev_close(struct sim_netdev *dev)
{
    for (struct sim_frame *frame = dev->first, *next; frame; frame = next) {
        next = frame->next;
        free(frame);
    }
    for (struct sim_frame *frame = dev->departing, *next; frame; frame = next) {
        next = frame->next_departing;
        free(frame);
    }
}
