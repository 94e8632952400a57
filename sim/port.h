/* SPDX-License-Identifier: BSD-3-Clause */
/* port.h - the simulated NTB link: a driver behind port/port.h, in virtual time.
 *
 * An end has registers and several egress queues of packets: one for programmed writes, doorbells and scratchpads, and
 * one for each DMA channel. All queues of an end share the wire. A packet copies its bytes when it is sent and writes
 * them when it arrives; packets of one queue arrive in order, those of two queues in any order. When the link goes
 * down, packets in flight are lost. Writes are posted, as on hardware, unless the world is configured to return from
 * them on arrival. A write of up to 4 KiB and its mark are one packet.
 */
#ifndef SIM_PORT_H
#define SIM_PORT_H

#include "host/job_config.h"
#include "port/driver.h"
#include "sim/event.h"
#include "sim/mark.h"

struct sim_world;
struct sim_host;
struct sim_cores;

#define SIM_WAYS_OUT (1 + QUOIT_DMA_CHANNEL_COUNT)

enum sim_packet_kind { SIM_PACKET_WRITE, SIM_PACKET_DOORBELL, SIM_PACKET_SCRATCHPAD, SIM_PACKET_DMA_END };

struct sim_packet {
    struct sim_packet *next;
    enum sim_packet_kind kind;
    enum quoit_window window;
    uint64_t offset; /* in the window; which scratchpad; which bits; cookie */
    uint64_t arrives_ns;
    uint32_t bytes;
    enum quoit_status status; /* of DMA_END */
    struct sim_dma *dma;      /* likewise; NULL: its opening was closed */
    uint64_t mark_offset;     /* of a write: the word behind it, in the same window */
    uint64_t mark;
    uint64_t number; /* of the put: see mark.h */
    bool has_mark;
    uint32_t *arrived_count; /* counted up when it arrives; NULL: no waiter */
    char data[];
};

struct sim_way {
    struct sim_event event; /* arrival of the first packet */
    struct sim_end *end;
    struct sim_packet *first;
    struct sim_packet *last;
    uint64_t last_arrival_ns;
};

struct sim_descriptor {
    enum quoit_window window;
    uint64_t offset;
    const char *source;
    size_t bytes;
    uint64_t cookie;
    uint32_t epoch; /* of the link when it was submitted; 0: it cannot leave */
};

struct sim_interrupt {
    struct sim_event event;
    struct sim_end *end;
    uint32_t bit; /* or vector, as of port.h */
    struct quoit_port_vector vector;
};

/* A channel of one opening. */
struct sim_dma {
    struct sim_event event; /* the engine takes the next piece */
    struct sim_end *end;
    uint32_t channel;
    struct sim_interrupt interrupt;
    struct sim_descriptor descriptors[QUOIT_DMA_DEPTH];
    uint32_t submit_count; /* ever */
    uint32_t engine_count; /* descriptors read completely */
    uint32_t done_count;   /* descriptors whose data arrived, or was lost */
    uint32_t polled_count;
    size_t piece_at; /* in the descriptor being read */
    struct quoit_dma_done done[QUOIT_DMA_DEPTH];
};

/* The end of an outage. */
struct sim_mend {
    struct sim_event event;
    struct sim_end *end;
};

/* One end of a link. */
struct sim_end {
    struct sim_world *world;
    struct sim_host *host;
    struct sim_end *peer;
    struct sim_end *other; /* the same end for the other client of the link (world.h); NULL: there is none */
    uint32_t index;        /* of all ends */
    bool is_enabled;
    bool is_cut;          /* a fault: the cable is cut, the same at both ends and for all clients */
    bool is_dead;         /* a fault: cut for ever */
    bool is_ended;        /* a fault: this client's part of the link is no more */
    struct sim_mend mend; /* when it will be restored */
    uint32_t link_epoch;
    uint64_t translation_offset[QUOIT_WINDOW_COUNT];
    uint64_t translation_bytes[QUOIT_WINDOW_COUNT];
    uint32_t scratchpads[QUOIT_SCRATCHPAD_COUNT];
    const struct sim_cores *sent_from[QUOIT_LANES_MAX]; /* where each lane last wrote through the window */
    uint64_t doorbell;
    uint64_t doorbell_mask;
    struct sim_interrupt interrupts[QUOIT_VECTOR_DMA(0)];
    struct sim_way ways[SIM_WAYS_OUT];
    struct sim_marks marks;
    uint64_t own_wire_free_ns;
    uint64_t *wire_free_ns;    /* shared by all clients */
    uint64_t slowness;         /* a fault: the wire is slower by this factor; 1: as modelled */
    uint64_t extra_latency_ns; /* a fault */
};

extern const struct quoit_port_driver sim_port_driver;

/* The endpoint of a simulated end holds its address. */
void sim_port_describe(struct sim_end *end, struct quoit_port_endpoint *endpoint_out);

/* A put through the port, with its mark at mark_offset, is sent again by a request. */
void sim_port_remake(struct quoit_port *port, uint64_t mark_offset, uint64_t number);

/* `end` is zeroed memory; both ends of a link name each other. */
void sim_end_init(struct sim_end *end, struct sim_host *host, struct sim_end *peer, uint32_t index);
void sim_end_free(struct sim_end *end);
/* One link for two clients, each with an end of its own, as share/share.h divides it: wire and cuts are in common. */
void sim_end_share(struct sim_end *end, struct sim_end *other);
/* The client's part of the link, at both ends, is cut for ever. */
void sim_end_close(struct sim_end *end);
/* Cuts the cable at an instant, or restores it. Of a write that is arriving, some words have arrived. */
void sim_link_cut(struct sim_end *end, bool is_cut);
/* Performs the packet's effect, now. The packet stays the caller's. */
void sim_way_deliver(struct sim_way *way, const struct sim_packet *packet);

#endif
