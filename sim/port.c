/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/port.h"
#include "base/assert.h"
#include "sim/cache.h"
#include "sim/canary.h"
#include "sim/fault.h"
#include "sim/world.h"

#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES         4096
#define SMALL_PACKET_BYTES 32 /* a header and a word: the wire time of the smallest write */
#define DOORBELL_BITS      0xffffu
#define SLOTS_WINDOW_BYTES (128ull << 20) /* bypass buffers of 8 lanes for the papers' largest transfer */

/* One opening of an end. */
struct opening {
    struct quoit_port port;
    struct sim_end *end;
    uint32_t bound_epoch; /* 0: not bound */
    struct sim_dma dmas[QUOIT_DMA_CHANNEL_COUNT];
};

static struct opening *opening_of(struct quoit_port *port)
{
    return (struct opening *)port;
}

/* Every operation of the driver starts here, so a fault can occur between any two of them. */
static struct sim_end *enter(const struct quoit_port *port)
{
    struct sim_end *end = ((const struct opening *)port)->end;
    if (end->world->blinks_left > 0)
        sim_fault_blink(end);
    return end;
}

static const struct sim_model *model_of(const struct sim_end *end)
{
    return &end->world->model;
}

static const struct sim_config *config_of(const struct sim_end *end)
{
    return &end->world->config;
}

static bool is_up(const struct sim_end *end)
{
    return end->is_enabled && end->peer->is_enabled && !end->is_cut && !end->peer->is_cut && !end->is_ended;
}

/* How many bytes from `offset` on are within the translation. */
static uint64_t covered(const struct sim_end *end, enum quoit_window window, uint64_t offset, uint64_t bytes)
{
    uint64_t limit = end->translation_bytes[window];
    uint64_t left = offset < limit ? limit - offset : 0;
    return bytes < left ? bytes : left;
}

/* Interrupts: a bit that was clear and is not masked wakes the parks of its vector after a delay. */
static void wake_parks(struct sim_event *event)
{
    struct sim_interrupt *interrupt = (struct sim_interrupt *)event;
    const struct quoit_port_vector *vector = &interrupt->vector;
    struct sim_host *host = interrupt->end->host;
    sim_trace(host->world, "interrupt", interrupt->end->index, interrupt->bit, 0);
    for (uint32_t i = 0; i < vector->park_count; i++)
        quoit_park_wake((struct quoit_park *)(host->memory + vector->park_offset + (uint64_t)i * vector->park_stride));
}

static void init_interrupt(struct sim_interrupt *one, struct sim_end *end, uint32_t bit)
{
    one->end = end;
    one->bit = bit;
    one->event = (struct sim_event){.fire = wake_parks, .kind = "wake", .who = end->index};
}

static void interrupt(struct sim_interrupt *one)
{
    struct sim_world *world = one->end->world;
    if (one->vector.park_count == 0 || sim_event_is_scheduled(&one->event))
        return;
    uint64_t delay_ns = world->doorbell_delay_ns ? sim_choose(world, world->doorbell_delay_ns) : 0;
    sim_schedule(world, &one->event, world->now_ns + world->model.interrupt_ns + delay_ns);
}

static void interrupt_each(struct sim_end *end, uint64_t bits)
{
    for (; bits != 0; bits &= bits - 1)
        interrupt(&end->interrupts[__builtin_ctzll(bits)]);
}

static void set_bits(struct sim_end *end, uint64_t bits)
{
    uint64_t fresh = bits & ~end->doorbell & ~end->doorbell_mask;
    end->doorbell |= bits;
    interrupt_each(end, fresh);
}

/* Packets */

static uint64_t hash_of(const char *bytes, uint32_t count)
{
    uint64_t hash = 14695981039346656037u;
    uint64_t word;
    uint32_t at = 0;
    for (; at + 8 <= count; at += 8) {
        memcpy(&word, bytes + at, 8);
        hash = (hash ^ word) * 1099511628211u;
        hash ^= hash >> 29;
    }
    for (; at < count; at++)
        hash = (hash ^ (unsigned char)bytes[at]) * 1099511628211u;
    return hash;
}

static void finish_dma(struct sim_dma *dma, uint64_t cookie, enum quoit_status status)
{
    if (!dma)
        return;
    dma->done[dma->done_count++ % QUOIT_DMA_DEPTH] = (struct quoit_dma_done){.cookie = cookie, .status = status};
    interrupt(&dma->interrupt);
    sim_host_changed(dma->end->host);
}

/* A host's memory serves the accesses of its ports one after another, with a turn-around between reads and writes.
 * Returns when the access begins. */
static uint64_t take_memory(struct sim_host *host, uint32_t bytes, bool is_write)
{
    const struct sim_world *world = host->world;
    uint64_t start_ns = host->memory_free_ns > world->now_ns ? host->memory_free_ns : world->now_ns;
    if (host->memory_is_written != is_write)
        start_ns += world->model.memory_turn_ns;
    host->memory_is_written = is_write;
    host->memory_free_ns = start_ns + sim_model_time(world->model.memory_bus_ps_per_byte, bytes);
    return start_ns;
}

void sim_way_deliver(struct sim_way *way, const struct sim_packet *packet)
{
    struct sim_end *to = way->end->peer;
    if (packet->arrived_count)
        ++*packet->arrived_count;
    switch (packet->kind) {
    case SIM_PACKET_WRITE:
        sim_trace(to->world, "write", to->index, packet->offset, hash_of(packet->data, packet->bytes));
        take_memory(to->host, packet->bytes, true);
        memcpy(to->host->memory + to->translation_offset[packet->window] + packet->offset, packet->data,
               covered(to, packet->window, packet->offset, packet->bytes));
        if (packet->has_mark) {
            sim_trace_text(to->world, "land", way->end->index, packet->mark_offset, packet->number);
            sim_mark_land(way->end, packet->mark_offset, packet->number);
            memcpy(to->host->memory + to->translation_offset[packet->window] + packet->mark_offset, &packet->mark,
                   covered(to, packet->window, packet->mark_offset, sizeof packet->mark));
        }
        break;
    case SIM_PACKET_DOORBELL:
        sim_trace(to->world, "doorbell", to->index, packet->offset, to->doorbell);
        set_bits(to, packet->offset);
        break;
    case SIM_PACKET_SCRATCHPAD:
        memcpy(&to->scratchpads[packet->offset], packet->data, packet->bytes);
        sim_trace(to->world, "scratchpad", to->index, packet->offset, to->scratchpads[packet->offset]);
        break;
    case SIM_PACKET_DMA_END:
        sim_trace(to->world, "dma end", way->end->index, packet->offset, 0);
        finish_dma(packet->dma, packet->offset, packet->status);
        break;
    }
    sim_host_changed(to->host);
}

static void arrive(struct sim_event *event)
{
    struct sim_way *way = (struct sim_way *)event;
    struct sim_packet *packet = way->first;
    sim_canary_look(way);
    packet = way->first;
    way->first = packet->next;
    if (way->first)
        sim_schedule(way->end->world, event, way->first->arrives_ns);
    else
        way->last = NULL;
    sim_way_deliver(way, packet);
    free(packet);
}

/* Puts a packet on the wire; returns when its last byte has left. ready_ns: when the sender has the last byte. */
static uint64_t send_packet(struct sim_end *end, uint32_t way_index, struct sim_packet *packet, uint64_t ready_ns)
{
    struct sim_world *world = end->world;
    struct sim_way *way = &end->ways[way_index];
    uint32_t wire_bytes = packet->bytes < SMALL_PACKET_BYTES ? SMALL_PACKET_BYTES : packet->bytes;
    uint64_t start_ns = *end->wire_free_ns > world->now_ns ? *end->wire_free_ns : world->now_ns;
    *end->wire_free_ns = start_ns + end->slowness * sim_model_time(world->model.link_ps_per_byte, wire_bytes);
    uint64_t sent_ns = *end->wire_free_ns > ready_ns ? *end->wire_free_ns : ready_ns;
    packet->arrives_ns = sent_ns + world->model.link_latency_ns + end->extra_latency_ns;
    if (world->skew_ns)
        packet->arrives_ns += sim_choose(world, 2) * sim_choose(world, world->skew_ns);
    if (packet->arrives_ns < way->last_arrival_ns)
        packet->arrives_ns = way->last_arrival_ns;
    way->last_arrival_ns = packet->arrives_ns;
    packet->next = NULL;
    if (way->last) {
        way->last->next = packet;
    } else {
        way->first = packet;
        sim_schedule(world, &way->event, packet->arrives_ns);
    }
    way->last = packet;
    return sent_ns;
}

static struct sim_packet *new_packet(enum sim_packet_kind kind, enum quoit_window window, uint64_t offset,
                                     const void *data, uint32_t bytes)
{
    struct sim_packet *packet = malloc(sizeof *packet + bytes);
    quoit_assert(packet != NULL);
    *packet = (struct sim_packet){.kind = kind, .window = window, .offset = offset, .bytes = bytes};
    if (bytes)
        memcpy(packet->data, data, bytes);
    return packet;
}

/* Some words of the arriving write have landed already. */
static void tear_first(struct sim_way *way)
{
    struct sim_packet *packet = way->first;
    if (!packet || packet->kind != SIM_PACKET_WRITE || packet->offset % 8 != 0)
        return;
    packet->bytes = 8 * (uint32_t)sim_choose(way->end->world, (packet->bytes + 7) / 8);
    packet->arrived_count = NULL;
    packet->has_mark = false;
    sim_way_deliver(way, packet);
}

static void lose_packets(struct sim_end *end)
{
    for (uint32_t i = 0; i < SIM_WAYS_OUT; i++) {
        struct sim_way *way = &end->ways[i];
        tear_first(way);
        while (way->first) {
            struct sim_packet *packet = way->first;
            way->first = packet->next;
            if (packet->kind == SIM_PACKET_DMA_END)
                finish_dma(packet->dma, packet->offset, QUOIT_LINK_DOWN);
            free(packet);
        }
        way->last = NULL;
        way->last_arrival_ns = 0;
        if (sim_event_is_scheduled(&way->event))
            sim_queue_remove(&end->world->queue, &way->event);
    }
    if (!end->is_ended) /* else what other clients have sent still occupies it */
        *end->wire_free_ns = 0;
}

/* Opening and the link */

static void engine_step(struct sim_event *event);

static void init_dma(struct sim_dma *dma, struct sim_end *end, uint32_t channel)
{
    dma->end = end;
    dma->channel = channel;
    dma->event = (struct sim_event){.fire = engine_step, .kind = "dma", .who = end->index};
    init_interrupt(&dma->interrupt, end, QUOIT_VECTOR_DMA(channel));
}

static enum quoit_status port_open(const struct quoit_port_config *config, struct quoit_port **port_out)
{
    struct sim_end *end;
    memcpy(&end, config->endpoint->bytes, sizeof end);
    struct opening *opening = calloc(1, sizeof *opening);
    if (!opening)
        return QUOIT_NO_MEMORY;
    opening->end = end;
    opening->port.limits = (struct quoit_port_limits){
        .window_bytes = {SLOTS_WINDOW_BYTES, model_of(end)->window_memory_mib << 20},
        .translation_align = 4096,
        .translation_bytes_align = 1,
        .doorbell_bits = DOORBELL_BITS,
        .scratchpad_count = QUOIT_SCRATCHPAD_COUNT,
        .dma_channel_count = QUOIT_DMA_CHANNEL_COUNT,
        .capabilities = QUOIT_PORT_CUTS | QUOIT_PORT_WHOLE_MARKS | QUOIT_PORT_RINGS_ARRIVE |
                        (config_of(end)->has_direct_puts ? QUOIT_PORT_DIRECT | QUOIT_PORT_ARRIVES_ON_RETURN : 0) |
                        (config_of(end)->has_posted_puts ? QUOIT_PORT_DIRECT : 0),
    };
    for (uint32_t i = 0; i < QUOIT_DMA_CHANNEL_COUNT; i++)
        init_dma(&opening->dmas[i], end, i);
    *port_out = &opening->port;
    return QUOIT_OK;
}

/* Outstanding DMA is dropped: data already sent may still arrive, without a completion. */
static void port_close(struct quoit_port *port)
{
    struct opening *opening = opening_of(port);
    struct sim_end *end = opening->end;
    for (uint32_t i = 0; i < QUOIT_DMA_CHANNEL_COUNT; i++) {
        struct sim_dma *dma = &opening->dmas[i];
        if (sim_event_is_scheduled(&dma->event))
            sim_queue_remove(&end->world->queue, &dma->event);
        if (sim_event_is_scheduled(&dma->interrupt.event))
            sim_queue_remove(&end->world->queue, &dma->interrupt.event);
        for (struct sim_packet *packet = end->ways[1 + i].first; packet; packet = packet->next)
            if (packet->dma == dma)
                packet->dma = NULL;
    }
    free(opening);
}

/* After a change of a link's state. */
static void follow_change(struct sim_end *end, bool was_up)
{
    struct sim_end *ends[2] = {end, end->peer};
    if (is_up(end) == was_up)
        return;
    sim_trace(end->world, was_up ? "link down" : "link up", end->index, end->peer->index, end->link_epoch);
    for (int i = 0; i < 2; i++) {
        if (was_up) {
            lose_packets(ends[i]);
            memset(ends[i]->translation_bytes, 0, sizeof ends[i]->translation_bytes);
            memset(ends[i]->scratchpads, 0, sizeof ends[i]->scratchpads);
        } else {
            ends[i]->link_epoch++;
        }
        interrupt(&ends[i]->interrupts[QUOIT_VECTOR_LINK]);
        sim_host_changed(ends[i]->host);
    }
}

static void link_enable(struct quoit_port *port, bool is_enabled)
{
    struct sim_end *end = enter(port);
    bool was_up = is_up(end);
    end->is_enabled = is_enabled;
    follow_change(end, was_up);
}

void sim_link_cut(struct sim_end *end, bool is_cut)
{
    struct sim_end *const ends[] = {end, end->other};
    for (int i = 0; i < 2 && ends[i]; i++) {
        bool was_up = is_up(ends[i]);
        ends[i]->is_cut = ends[i]->peer->is_cut = is_cut;
        follow_change(ends[i], was_up);
    }
}

void sim_end_close(struct sim_end *end)
{
    bool was_up = is_up(end);
    end->is_ended = end->peer->is_ended = true;
    follow_change(end, was_up);
}

/* Whether this opening can send: the link is up, in the epoch to which the opening is bound. */
static bool reaches(const struct quoit_port *port)
{
    const struct opening *opening = (const struct opening *)port;
    return is_up(opening->end) && (opening->bound_epoch == 0 || opening->bound_epoch == opening->end->link_epoch);
}

static bool link_is_up(const struct quoit_port *port)
{
    return is_up(enter(port));
}

static uint32_t link_epoch(const struct quoit_port *port)
{
    return enter(port)->link_epoch;
}

static enum quoit_status port_bind(struct quoit_port *port, uint32_t epoch)
{
    struct sim_end *end = enter(port);
    if (!is_up(end) || end->link_epoch != epoch)
        return QUOIT_LINK_DOWN;
    opening_of(port)->bound_epoch = epoch;
    sim_trace_text(end->world, "bind", end->index, epoch, !end->world->current->is_service);
    return QUOIT_OK;
}

static enum quoit_status set_translation(struct quoit_port *port, enum quoit_window window, uint64_t memory_offset,
                                         uint64_t bytes)
{
    struct sim_end *end = enter(port);
    sim_spend(end->world, model_of(end)->register_write_ns);
    end->translation_offset[window] = memory_offset;
    end->translation_bytes[window] = bytes;
    return QUOIT_OK;
}

/* Windows */

/* The bytes of a write that travel in one packet. Never splits an aligned word of 8 bytes. */
static uint32_t piece_bytes(struct sim_world *world, uint64_t offset, size_t left)
{
    uint64_t most = world->model.piece_bytes;
    if (world->tears_writes && left > 16)
        most = 8 + 8 * sim_choose(world, left / 8 < 64 ? left / 8 : 64);
    if (left <= most)
        return (uint32_t)left;
    uint64_t cut = (offset + most) & ~7ull;
    return (uint32_t)(cut > offset ? cut - offset : 8 - offset % 8);
}

static bool arrives_on_return(const struct quoit_port *port)
{
    return port->limits.capabilities & QUOIT_PORT_ARRIVES_ON_RETURN;
}

/* The counter to increment when a write has arrived; posted writes have none. */
static uint32_t *count_of(const struct quoit_port *port, uint32_t *arrived_count)
{
    return arrives_on_return(port) ? arrived_count : NULL;
}

/* If writes arrive on return, waits until this one has arrived or is lost. */
static enum quoit_status finish_write(struct quoit_port *port, uint32_t sent_count, const uint32_t *arrived_count)
{
    struct sim_end *end = ((const struct opening *)port)->end;
    struct sim_world *world = end->world;
    if (!arrives_on_return(port))
        return reaches(port) ? QUOIT_OK : QUOIT_LINK_DOWN;
    uint64_t there_ns = end->ways[0].last_arrival_ns;
    if (*arrived_count < sent_count)
        sim_spend_until(world, there_ns + 1); /* after the arrivals of that instant */
    return *arrived_count == sent_count ? QUOIT_OK : QUOIT_LINK_DOWN;
}

/* Where a write goes, for the model of caches. */
static const char *destination_of(const struct sim_end *end, enum quoit_window window, uint64_t offset)
{
    return end->peer->host->memory + end->peer->translation_offset[window] + offset;
}

/* A lane's lines are in crossing_ns, which the lane that takes its frame pays. */
static uint64_t line_ns(struct sim_end *end, enum quoit_window window, uint64_t offset)
{
    const struct sim_task *task = end->world->current;
    if (task->lane) {
        end->sent_from[task->lane->index] = task->cores;
        return 0;
    }
    return sim_cache_write_line_ns(end->world, destination_of(end, window, offset));
}

/* The processor copies into the window, at most the limit of posted bytes ahead of the wire. */
static enum quoit_status port_write(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                    const void *source, size_t bytes)
{
    struct sim_end *end = enter(port);
    struct sim_world *world = end->world;
    uint64_t call_ns = world->model.write_call_ns + line_ns(end, window, offset);
    uint32_t sent_count = 0, arrived_count = 0;
    for (size_t at = 0; at < bytes;) {
        if (!reaches(port))
            return QUOIT_LINK_DOWN; /* what was sent before is lost too */
        uint32_t part = piece_bytes(world, offset + at, bytes - at);
        uint64_t copied_ns = world->now_ns + call_ns +
                             sim_cache_copy_ns(world, destination_of(end, window, offset + at),
                                               (const char *)source + at, part, world->model.write_ps_per_byte);
        call_ns = 0;
        struct sim_packet *packet = new_packet(SIM_PACKET_WRITE, window, offset + at, (const char *)source + at, part);
        packet->arrived_count = count_of(port, &arrived_count);
        sent_count++;
        uint64_t sent_ns = send_packet(end, 0, packet, copied_ns);
        uint64_t posted_ns = end->slowness * sim_model_time(world->model.link_ps_per_byte, world->model.posted_bytes);
        uint64_t free_ns = sent_ns > copied_ns + posted_ns ? sent_ns - posted_ns : copied_ns;
        sim_spend(world, free_ns - world->now_ns);
        at += part;
    }
    return finish_write(port, sent_count, &arrived_count);
}

static enum quoit_status port_write64(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                      uint64_t value)
{
    struct sim_end *end = enter(port);
    uint32_t arrived_count = 0;
    if (!reaches(port))
        return QUOIT_LINK_DOWN;
    uint64_t cost_ns = model_of(end)->word_ns + line_ns(end, window, offset);
    struct sim_packet *packet = new_packet(SIM_PACKET_WRITE, window, offset, &value, sizeof value);
    packet->arrived_count = count_of(port, &arrived_count);
    send_packet(end, 0, packet, end->world->now_ns + cost_ns);
    sim_spend(end->world, cost_ns);
    return finish_write(port, 1, &arrived_count);
}

/* One packet for a put that fits a PE's journal. */
static enum quoit_status port_write_marked(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                           const void *source, size_t bytes, uint64_t mark_offset, uint64_t mark)
{
    struct sim_end *end = enter(port);
    const struct sim_model *model = model_of(end);
    if (bytes > PAGE_BYTES || arrives_on_return(port)) {
        enum quoit_status status = port_write(port, window, offset, source, bytes);
        return status == QUOIT_OK ? port_write64(port, window, mark_offset, mark) : status;
    }
    uint64_t number = sim_mark_post(end, mark_offset);
    sim_trace_text(end->world, "post", end->index, reaches(port), number);
    if (!reaches(port))
        return QUOIT_LINK_DOWN;
    uint64_t cost_ns =
        model->posted_ns + model->write_call_ns + model->word_ns + line_ns(end, window, offset) +
        sim_cache_copy_ns(end->world, destination_of(end, window, offset), source, bytes, model->write_ps_per_byte);
    struct sim_packet *packet = new_packet(SIM_PACKET_WRITE, window, offset, source, (uint32_t)bytes);
    packet->has_mark = true;
    packet->mark_offset = mark_offset;
    packet->mark = mark;
    packet->number = number;
    send_packet(end, 0, packet, end->world->now_ns + cost_ns);
    sim_spend(end->world, cost_ns);
    return QUOIT_OK;
}

/* The window is memory of the same machine, so a read finds all that the processor wrote before. */
static void land_all(struct sim_end *end)
{
    struct sim_way *way = &end->ways[0];
    while (way->first) {
        struct sim_packet *packet = way->first;
        way->first = packet->next;
        sim_way_deliver(way, packet);
        free(packet);
    }
    way->last = NULL;
    if (sim_event_is_scheduled(&way->event))
        sim_queue_remove(&end->world->queue, &way->event);
}

static enum quoit_status read_window(struct quoit_port *port, struct sim_end *end, enum quoit_window window,
                                     uint64_t offset, void *destination, size_t bytes)
{
    struct sim_world *world = end->world;
    uint32_t epoch = end->link_epoch;
    memset(destination, 0xff, bytes);
    if (!reaches(port))
        return QUOIT_LINK_DOWN;
    uint64_t latency_ns = world->model.reads_stay ? 0 : world->model.link_latency_ns + end->extra_latency_ns;
    uint64_t there_ns = world->now_ns + latency_ns;
    if (world->model.reads_stay)
        land_all(end);
    else if (end->ways[0].last_arrival_ns > there_ns)
        there_ns = end->ways[0].last_arrival_ns;
    sim_spend_until(world, there_ns + 1); /* after the arrivals of that instant */
    if (reaches(port) && end->link_epoch == epoch)
        memcpy(destination, end->peer->host->memory + end->peer->translation_offset[window] + offset,
               covered(end->peer, window, offset, bytes));
    sim_spend(world, latency_ns + world->model.read_call_ns + sim_model_time(world->model.read_ps_per_byte, bytes));
    return reaches(port) && end->link_epoch == epoch ? QUOIT_OK : QUOIT_LINK_DOWN;
}

static enum quoit_status port_read(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                   void *destination, size_t bytes)
{
    struct sim_end *end = enter(port);
    enum quoit_status status = read_window(port, end, window, offset, destination, bytes);
    sim_trace_text(end->world, "read", end->index, status == QUOIT_OK, offset);
    return status;
}

/* Scratchpads and doorbells */

static uint32_t scratchpad_read(struct quoit_port *port, uint32_t index)
{
    struct sim_end *end = enter(port);
    sim_spend(end->world, model_of(end)->scratchpad_read_ns);
    return end->scratchpads[index];
}

/* The papers access these registers through their kernel driver; ours are mapped. */
static uint64_t driver_ns(const struct sim_end *end)
{
    return quoit_job_config_traits(&end->world->config.job)->calls_driver ? model_of(end)->driver_call_ns : 0;
}

static void scratchpad_peer_write(struct quoit_port *port, uint32_t index, uint32_t value)
{
    struct sim_end *end = enter(port);
    sim_spend(end->world, model_of(end)->scratchpad_write_ns + driver_ns(end));
    if (!reaches(port))
        return;
    sim_trace_text(end->world, "word", end->index, index, value);
    send_packet(end, 0, new_packet(SIM_PACKET_SCRATCHPAD, 0, index, &value, sizeof value), end->world->now_ns);
}

static bool port_ring(struct quoit_port *port, uint64_t bits)
{
    struct sim_end *end = enter(port);
    uint64_t cost_ns = model_of(end)->doorbell_ring_ns + driver_ns(end);
    uint64_t done_ns = end->world->now_ns + cost_ns;
    bool does_reach = reaches(port);
    if (does_reach)
        send_packet(end, 0, new_packet(SIM_PACKET_DOORBELL, 0, bits, NULL, 0), done_ns);
    sim_spend(end->world, cost_ns);
    return does_reach;
}

static uint64_t doorbell_read(struct quoit_port *port)
{
    struct sim_end *end = enter(port);
    sim_spend(end->world, model_of(end)->register_read_ns);
    return end->doorbell;
}

static void doorbell_clear(struct quoit_port *port, uint64_t bits)
{
    struct sim_end *end = enter(port);
    sim_spend(end->world, model_of(end)->register_write_ns);
    end->doorbell &= ~bits;
}

static void doorbell_set_mask(struct quoit_port *port, uint64_t bits, bool is_masked)
{
    struct sim_end *end = enter(port);
    sim_spend(end->world, model_of(end)->register_write_ns);
    uint64_t opened = is_masked ? 0 : bits & end->doorbell_mask & end->doorbell;
    end->doorbell_mask = is_masked ? end->doorbell_mask | bits : end->doorbell_mask & ~bits;
    interrupt_each(end, opened);
    if (!is_masked)
        sim_canary_unmasked(end);
}

static void set_vector(struct quoit_port *port, uint32_t bit, const struct quoit_port_vector *vector)
{
    struct sim_end *end = enter(port);
    if (bit < QUOIT_VECTOR_DMA(0))
        end->interrupts[bit].vector = *vector;
    else
        opening_of(port)->dmas[bit - QUOIT_VECTOR_DMA(0)].interrupt.vector = *vector;
}

/* DMA */

/* A fault: how long the engine delays reading its source. */
static uint64_t stall(struct sim_world *world)
{
    return world->dma_stall_ns ? sim_choose(world, world->dma_stall_ns) : 0;
}

static void engine_next(struct sim_dma *dma, uint64_t at_ns)
{
    if (dma->engine_count != dma->submit_count)
        sim_schedule(dma->end->world, &dma->event, at_ns + stall(dma->end->world));
}

/* How much the engine reads at once. */
static uint32_t engine_bytes(struct sim_world *world, uint64_t offset, size_t left)
{
    uint32_t part = piece_bytes(world, offset, left);
    uint32_t most = 8 + 8 * (uint32_t)(world->dma_stall_ns ? sim_choose(world, 64) : 0);
    return world->dma_stall_ns && part > most ? most : part;
}

/* The descriptor has been read completely, or has failed after a part of it was sent. */
static void end_descriptor(struct sim_dma *dma, uint64_t at_ns, bool is_lost, enum quoit_status status)
{
    struct sim_end *end = dma->end;
    struct sim_world *world = end->world;
    uint64_t cookie = dma->descriptors[dma->engine_count % QUOIT_DMA_DEPTH].cookie;
    uint64_t late_ns = world->dma_delay_ns ? sim_choose(world, world->dma_delay_ns) : 0;
    if (is_lost) {
        finish_dma(dma, cookie, QUOIT_LINK_DOWN);
    } else {
        struct sim_packet *packet = new_packet(SIM_PACKET_DMA_END, 0, cookie, NULL, 0);
        packet->status = status;
        packet->dma = dma;
        send_packet(end, 1 + dma->channel, packet, at_ns + late_ns);
    }
    dma->piece_at = 0;
    dma->engine_count++;
    engine_next(dma, at_ns + world->model.dma_descriptor_ns);
}

/* Reads a piece of the source and sends it. */
static void engine_step(struct sim_event *event)
{
    struct sim_dma *dma = (struct sim_dma *)event;
    struct sim_end *end = dma->end;
    struct sim_world *world = end->world;
    const struct sim_descriptor *descriptor = &dma->descriptors[dma->engine_count % QUOIT_DMA_DEPTH];
    uint64_t next_ns = world->now_ns;
    bool is_lost = !is_up(end) || end->link_epoch != descriptor->epoch;
    bool has_failed = !is_lost && world->dma_fails_one_in && sim_choose(world, world->dma_fails_one_in) == 0;
    if (!is_lost && !has_failed && dma->piece_at < descriptor->bytes) {
        uint64_t offset = descriptor->offset + dma->piece_at;
        uint32_t part = engine_bytes(world, offset, descriptor->bytes - dma->piece_at);
        uint64_t read_ns = take_memory(end->host, part, false) + sim_model_time(world->model.dma_ps_per_byte, part);
        struct sim_packet *packet =
            new_packet(SIM_PACKET_WRITE, descriptor->window, offset, descriptor->source + dma->piece_at, part);
        uint64_t sent_ns = send_packet(end, 1 + dma->channel, packet, read_ns);
        uint64_t posted_ns = sim_model_time(world->model.link_ps_per_byte, world->model.posted_bytes);
        next_ns = sent_ns > read_ns + posted_ns ? sent_ns - posted_ns : read_ns;
        uint64_t page = dma->piece_at / PAGE_BYTES;
        dma->piece_at += part;
        if (world->config.has_page_dma && dma->piece_at < descriptor->bytes && dma->piece_at / PAGE_BYTES != page)
            next_ns += world->model.dma_descriptor_ns;
    }
    if (dma->piece_at < descriptor->bytes && !is_lost && !has_failed)
        sim_schedule(world, event, next_ns + stall(world));
    else
        end_descriptor(dma, next_ns, is_lost, has_failed ? QUOIT_SYSTEM : QUOIT_OK);
}

static enum quoit_status dma_submit(struct quoit_port *port, uint32_t channel, enum quoit_window window,
                                    uint64_t offset, const void *source, size_t bytes, uint64_t cookie)
{
    struct sim_end *end = enter(port);
    struct sim_dma *dma = &opening_of(port)->dmas[channel];
    sim_spend(end->world, model_of(end)->dma_submit_ns);
    if (dma->submit_count - dma->polled_count == QUOIT_DMA_DEPTH)
        return QUOIT_FULL;
    dma->descriptors[dma->submit_count % QUOIT_DMA_DEPTH] =
        (struct sim_descriptor){.window = window,
                                .offset = offset,
                                .source = source,
                                .bytes = bytes,
                                .cookie = cookie,
                                .epoch = reaches(port) ? end->link_epoch : 0};
    bool was_idle = dma->engine_count == dma->submit_count;
    dma->submit_count++;
    if (was_idle)
        engine_next(dma, end->world->now_ns + model_of(end)->dma_start_ns);
    if (end->world->config.has_page_dma && bytes > PAGE_BYTES) /* the others, while the engine works on the first */
        sim_spend(end->world, (bytes - 1) / PAGE_BYTES * model_of(end)->dma_submit_ns);
    return QUOIT_OK;
}

static uint32_t dma_poll(struct quoit_port *port, uint32_t channel, struct quoit_dma_done *done_out, uint32_t max_count)
{
    struct sim_end *end = enter(port);
    struct sim_dma *dma = &opening_of(port)->dmas[channel];
    uint32_t count = 0;
    if (dma->polled_count == dma->done_count)
        return 0; /* a load, which is part of every check */
    sim_spend(end->world, model_of(end)->dma_poll_ns);
    while (count < max_count && dma->polled_count != dma->done_count)
        done_out[count++] = dma->done[dma->polled_count++ % QUOIT_DMA_DEPTH];
    return count;
}

static void link_cut(struct quoit_port *port, bool is_cut)
{
    sim_link_cut(enter(port), is_cut);
}

static const struct quoit_port_ops ops = {
    .open = port_open,
    .close = port_close,
    .link_enable = link_enable,
    .link_is_up = link_is_up,
    .link_epoch = link_epoch,
    .bind = port_bind,
    .link_cut = link_cut,
    .set_translation = set_translation,
    .write = port_write,
    .write64 = port_write64,
    .write_marked = port_write_marked,
    .read = port_read,
    .scratchpad_read = scratchpad_read,
    .scratchpad_peer_write = scratchpad_peer_write,
    .ring = port_ring,
    .doorbell_read = doorbell_read,
    .doorbell_clear = doorbell_clear,
    .doorbell_set_mask = doorbell_set_mask,
    .set_vector = set_vector,
    .dma_submit = dma_submit,
    .dma_poll = dma_poll,
};

void sim_port_describe(struct sim_end *end, struct quoit_port_endpoint *endpoint_out)
{
    *endpoint_out = (struct quoit_port_endpoint){0};
    memcpy(endpoint_out->bytes, &end, sizeof end);
}

const struct quoit_port_driver sim_port_driver = {.name = "simulated", .ops = &ops};

void sim_end_init(struct sim_end *end, struct sim_host *host, struct sim_end *peer, uint32_t index)
{
    end->world = host->world;
    end->host = host;
    end->peer = peer;
    end->index = index;
    end->doorbell_mask = UINT64_MAX;
    end->slowness = 1;
    end->mend.end = end;
    end->wire_free_ns = &end->own_wire_free_ns;
    for (uint32_t i = 0; i < SIM_WAYS_OUT; i++) {
        end->ways[i].end = end;
        end->ways[i].event = (struct sim_event){.fire = arrive, .kind = "arrive", .who = index};
    }
    for (uint32_t i = 0; i < QUOIT_VECTOR_DMA(0); i++)
        init_interrupt(&end->interrupts[i], end, i);
}

void sim_end_share(struct sim_end *end, struct sim_end *other)
{
    end->other = other;
    other->other = end;
    other->wire_free_ns = end->wire_free_ns;
}

void sim_port_remake(struct quoit_port *port, uint64_t mark_offset, uint64_t number)
{
    struct sim_end *end = opening_of(port)->end;
    sim_trace_text(end->world, "remade", end->index, mark_offset, number);
    sim_mark_remake(end, mark_offset, number);
}

void sim_end_free(struct sim_end *end)
{
    sim_marks_free(&end->marks);
    for (uint32_t i = 0; i < SIM_WAYS_OUT; i++) {
        while (end->ways[i].first) {
            struct sim_packet *packet = end->ways[i].first;
            end->ways[i].first = packet->next;
            free(packet);
        }
    }
}
