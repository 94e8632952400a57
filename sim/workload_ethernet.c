/* SPDX-License-Identifier: BSD-3-Clause */
/* Throughput of an Ethernet device, for `quoit figures link`: a ping-pong in the driver, and over a small TCP what
 * NetPIPE measures (ping-pong of a message) and what Netperf does (a stream of messages).
 *
 * The TCP here cuts segments, keeps to the receiver's window, acknowledges, delays small segments as Nagle's algorithm
 * does unless the program is NetPIPE, and wakes programs. No segment is lost on these wires, so there is no congestion
 * control. Each segment, frame, copied byte and call has its price in the model. */
#include "base/assert.h"
#include "sim/netdev.h"

#include <stdlib.h>

#define STREAM_BYTES    (4u << 20) /* of the stream, at least, and at least so many messages: */
#define STREAM_MESSAGES 2u
#define STREAM_MOST     65536u /* messages */
#define PASSES          1u     /* of a ping-pong, after the first */
#define ENDS            2u

struct ethernet;

/* One end: the socket of its program, and the device. */
struct ether_end {
    struct sim_netdev dev;
    struct ethernet *both;
    struct sim_task *program; /* that waits; NULL: none */
    uint64_t queued;          /* bytes that the program gave */
    uint64_t sent;            /* of them, that the device got */
    uint64_t acknowledged;
    uint64_t limit; /* up to where the other end takes bytes */
    uint64_t received;
    uint64_t consumed;       /* of them, by the program */
    uint64_t announced;      /* limit that the other end knows */
    uint32_t unacknowledged; /* segments received since the last acknowledgement */
    uint64_t wanted;         /* bytes not consumed for which the program waits; 0: for room */
    struct sim_task *meeting;
    bool is_closing; /* nothing follows, so nothing is delayed */
};

struct ethernet {
    struct ether_end ends[ENDS];
    uint32_t open_count;
};

static const struct sim_model *model_of(const struct ether_end *end)
{
    return &end->dev.world->model;
}

static bool is_below_tcp(const struct ether_end *end)
{
    return end->dev.world->config.pattern.program == SIM_PROGRAM_DRIVER;
}

/* Of the program: until so many bytes have come that it has not consumed; 0: until there is room. */
static void wait(struct ether_end *end, uint64_t wanted)
{
    struct sim_world *world = end->dev.world;
    end->program = world->current;
    end->wanted = wanted;
    sim_block(world, UINT64_MAX);
    world->progress_ns = world->now_ns;
}

/* Linux wakes a writer when a third of its buffer is free. */
static bool has_room(const struct ether_end *end)
{
    return is_below_tcp(end) ? sim_netdev_has_room(&end->dev)
                             : end->queued - end->acknowledged <= model_of(end)->tcp_window_bytes / 3 * 2;
}

static void wake(struct ether_end *end)
{
    if (!end->program || (end->wanted ? end->received - end->consumed < end->wanted : !has_room(end)))
        return;
    sim_task_wake(end->program, model_of(end)->thread_wake_ns);
    end->program = NULL;
    sim_netdev_work(&end->dev, model_of(end)->wake_call_ns);
}

static void copy(struct ether_end *end, uint64_t bytes)
{
    sim_netdev_work(&end->dev, sim_model_time(model_of(end)->memory_ps_per_byte, bytes));
}

/* TCP */

static void send_segment(struct ether_end *end, uint32_t bytes)
{
    end->announced = end->consumed + model_of(end)->tcp_window_bytes;
    end->unacknowledged = 0;
    end->sent += bytes;
    struct sim_frame segment = {
        .bytes = bytes, .wire_bytes = bytes + SIM_FRAME_HEADERS, .received = end->received, .limit = end->announced};
    sim_netdev_work(&end->dev, model_of(end)->tcp_segment_ns);
    sim_netdev_queue(&end->dev, &segment);
}

/* What may leave now, does. */
static void push(struct ether_end *end)
{
    bool has_delay = end->dev.world->config.pattern.program == SIM_PROGRAM_NETPERF && !end->is_closing;
    while (end->queued > end->sent && sim_netdev_accepts(&end->dev)) {
        uint64_t left = end->queued - end->sent, most = end->dev.traits->segment_bytes;
        bool is_small = left < most;
        uint32_t bytes = (uint32_t)(is_small ? left : most);
        if (end->sent + bytes > end->limit || (is_small && has_delay && end->sent > end->acknowledged))
            return;
        send_segment(end, bytes);
    }
}

static void tcp_send(struct ether_end *end, uint64_t bytes, bool is_last)
{
    uint64_t most = end->dev.traits->segment_bytes;
    sim_netdev_work(&end->dev, model_of(end)->syscall_ns);
    for (uint64_t left = bytes; left > 0;) {
        uint64_t part = most - (end->queued - end->sent) % most;
        part = part < left ? part : left;
        while (end->queued + part - end->acknowledged > model_of(end)->tcp_window_bytes)
            wait(end, 0);
        copy(end, part);
        end->queued += part;
        left -= part;
        end->is_closing = is_last && left == 0;
        push(end);
    }
}

static void tcp_receive(struct ether_end *end, uint64_t bytes)
{
    uint64_t window = model_of(end)->tcp_window_bytes;
    while (bytes > 0) {
        uint64_t part = end->received - end->consumed;
        part = part < bytes ? part : bytes;
        if (part == 0) {
            wait(end, 1);
            continue;
        }
        sim_netdev_work(&end->dev, model_of(end)->syscall_ns);
        copy(end, part);
        end->consumed += part;
        bytes -= part;
        if (end->consumed + window - end->announced >= window / 2)
            send_segment(end, 0);
    }
}

/* In the task of the kernel. */
static void take(void *arg, const struct sim_frame *frame)
{
    struct ether_end *end = arg;
    const struct sim_model *model = model_of(end);
    const struct sim_netdev_traits *traits = end->dev.traits;
    sim_netdev_work(&end->dev, model->ethernet_frame_ns);
    if (is_below_tcp(end)) {
        end->received += frame->bytes;
        return;
    }
    if (traits->has_threads)
        sim_netdev_work(&end->dev, model->syscall_ns);
    if (traits->has_port)
        copy(end, frame->wire_bytes);
    if (traits->has_checksums)
        sim_netdev_work(&end->dev, sim_model_time(model->checksum_ps_per_byte, frame->wire_bytes));
    if (!traits->merges || frame->bytes == 0)
        sim_netdev_work(&end->dev, model->tcp_segment_ns);
    end->received += frame->bytes;
    end->unacknowledged += frame->bytes != 0;
    if (frame->received > end->acknowledged)
        end->acknowledged = frame->received;
    if (frame->limit > end->limit)
        end->limit = frame->limit;
    if (!traits->merges && end->unacknowledged >= 2)
        send_segment(end, 0);
}

/* In the task of the kernel, after some frames. */
static void after_batch(void *arg)
{
    struct ether_end *end = arg;
    if (end->dev.traits->merges && end->unacknowledged > 0 && !is_below_tcp(end)) {
        sim_netdev_work(&end->dev, model_of(end)->tcp_segment_ns);
        send_segment(end, 0);
    }
    push(end);
    wake(end);
}

/* Programs */

static void send_below(struct ether_end *end, uint64_t bytes)
{
    const struct sim_world *world = end->dev.world;
    uint64_t most = end->dev.slot_count == 1 ? bytes : end->dev.traits->segment_bytes;
    while (bytes > 0) {
        uint64_t part = bytes < most ? bytes : most;
        while (!has_room(end))
            wait(end, 0);
        sim_netdev_work(&end->dev, world->model.ethernet_frame_ns);
        sim_netdev_send(&end->dev, &(struct sim_frame){.bytes = (uint32_t)part, .wire_bytes = (uint32_t)part});
        bytes -= part;
    }
}

static void send_message(struct ether_end *end, uint64_t bytes, bool is_last)
{
    if (is_below_tcp(end))
        send_below(end, bytes);
    else
        tcp_send(end, bytes, is_last);
}

static void receive_message(struct ether_end *end, uint64_t bytes)
{
    if (!is_below_tcp(end)) {
        tcp_receive(end, bytes);
        return;
    }
    while (end->received - end->consumed < bytes)
        wait(end, bytes);
    end->consumed += bytes;
}

static void add_figures(struct ethernet *both, uint64_t bytes, uint64_t start_ns)
{
    struct sim_world *world = both->ends[0].dev.world;
    double ns = (double)(world->now_ns - start_ns);
    double busy = (double)(both->ends[0].dev.busy_ns + both->ends[1].dev.busy_ns);
    sim_metric_add(world, "throughput", "Mbit/s", 8000.0 * (double)bytes / ns);
    sim_metric_add(world, "processor time", "ns/KiB", 1024.0 * busy / (double)bytes);
    sim_metric_add(world, "processors", "%", 100.0 * busy / ns / (ENDS * (double)world->model.core_count));
}

static void clear_busy(struct ethernet *both)
{
    for (uint32_t i = 0; i < ENDS; i++)
        both->ends[i].dev.busy_ns = 0;
}

/* Half of a round trip, as NetPIPE reports it. */
static void ping_pong(struct ether_end *end, bool is_first)
{
    struct sim_world *world = end->dev.world;
    uint64_t bytes = world->config.bytes, start_ns = 0;
    for (uint32_t i = 0; i < 1 + PASSES; i++) {
        if (i == 1 && is_first) {
            start_ns = world->now_ns;
            clear_busy(end->both);
        }
        if (is_first)
            send_message(end, bytes, true);
        receive_message(end, bytes);
        if (!is_first)
            send_message(end, bytes, true);
    }
    if (is_first)
        add_figures(end->both, 2 * PASSES * bytes, start_ns);
}

static void stream(struct ether_end *end, bool is_first)
{
    struct sim_world *world = end->dev.world;
    uint64_t bytes = world->config.bytes, start_ns = world->now_ns;
    uint64_t count = STREAM_BYTES / bytes > STREAM_MESSAGES ? STREAM_BYTES / bytes : STREAM_MESSAGES;
    count = count < STREAM_MOST ? count : STREAM_MOST;
    if (is_first) {
        for (uint64_t i = 1; i <= count; i++)
            send_message(end, bytes, i == count);
        return;
    }
    receive_message(end, bytes * count);
    add_figures(end->both, bytes * count, start_ns);
}

static void setup(struct sim_world *world)
{
    world->workload_state = calloc(1, sizeof(struct ethernet));
    quoit_assert(world->workload_state != NULL);
}

static void teardown(struct sim_world *world)
{
    struct ethernet *both = world->workload_state;
    for (uint32_t i = 0; both && i < ENDS; i++)
        sim_netdev_close(&both->ends[i].dev);
    free(both);
    world->workload_state = NULL;
}

/* Both ends have got as far as this one. */
static void meet(struct ether_end *end, uint32_t count)
{
    struct ethernet *both = end->both;
    if (++both->open_count < count) {
        end->meeting = end->dev.world->current;
        sim_block(end->dev.world, UINT64_MAX);
        return;
    }
    struct ether_end *other = &both->ends[end == &both->ends[0]];
    sim_task_wake(other->meeting, 0);
}

static void run(struct sim_pe *pe)
{
    struct sim_world *world = pe->world;
    struct ethernet *both = world->workload_state;
    enum sim_program program = world->config.pattern.program;
    uint32_t host = pe->host->index;
    if (host >= ENDS || pe->index != pe->host->layout.first_pe)
        return;
    struct ether_end *end = &both->ends[host];
    end->both = both;
    sim_netdev_open(&end->dev, pe, &both->ends[1 - host].dev, program == SIM_PROGRAM_DRIVER);
    end->dev.take = take;
    end->dev.after_batch = after_batch;
    end->dev.arg = end;
    end->limit = end->announced = world->model.tcp_window_bytes;
    meet(end, ENDS);
    sim_netdev_start(&end->dev);
    (program == SIM_PROGRAM_NETPERF ? stream : ping_pong)(end, host == 0);
    meet(end, 2 * ENDS);
    sim_netdev_stop(&end->dev);
    while (sim_netdev_is_running(&end->dev))
        sim_spend(world, world->model.poll_ns);
}

static uint64_t heap_bytes(uint32_t pe_count)
{
    (void)pe_count;
    return 2 * SIM_NETDEV_AREA;
}

const struct sim_workload sim_workload_ethernet = {
    .name = "ethernet",
    .sentence = "messages of --bytes between hosts 0 and 1 by --program over --device",
    .measures = true,
    .heap_bytes = heap_bytes,
    .setup = setup,
    .run = run,
    .teardown = teardown,
};
