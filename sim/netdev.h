/* SPDX-License-Identifier: BSD-3-Clause */
/* netdev.h - two hosts with an Ethernet device each, in virtual time: the hosts 0 and 1, and what their drivers charge.
 *
 * The frames of the devices on NTB travel through the simulated port: payload into a slot of the neighbour by
 * programmed copy or by DMA, then a word that counts frames, then the doorbell. Gigabit Ethernet is a wire of its own.
 * What a slot holds when its frame is taken is checked.
 *
 * Tasks: programs, and one of each host's kernel (sim_netdev_serve()) that takes completions and frames. Time that a
 * device works is added to busy_ns; waiting is not, unless the device polls.
 */
#ifndef SIM_NETDEV_H
#define SIM_NETDEV_H

#include "sim/workload.h"

#define SIM_FRAME_HEADERS 66u          /* Ethernet, IPv4, TCP with time stamps */
#define SIM_NETDEV_AREA   (4ull << 20) /* of slots, at least */

struct sim_netdev_traits {
    const char *name;
    uint32_t segment_bytes; /* TCP payload that the kernel hands over at once */
    uint32_t slot_count;
    uint32_t slot_bytes;
    bool has_port;      /* else Gigabit Ethernet */
    bool has_checksums; /* the kernel sums what it receives */
    bool has_threads;   /* of user space, in front of a TAP device; they poll while traffic lasts */
    bool merges;        /* frames taken together are one segment for TCP, with one acknowledgement */
};

struct sim_netdev;

struct sim_frame {
    struct sim_frame *next;
    struct sim_frame *next_departing; /* in the queue of the TAP device */
    uint64_t arrives_ns;              /* UINT64_MAX: not known yet */
    uint64_t ordinal;                 /* of those with a slot */
    uint64_t received;                /* of the sender's socket: bytes, and up to where the other may send */
    uint64_t limit;
    uint32_t bytes; /* payload of TCP, or of the message below it; 0: an acknowledgement */
    uint32_t wire_bytes;
    bool has_slot;
};

/* Called for each frame by the task of the kernel. */
typedef void sim_netdev_take(void *arg, const struct sim_frame *frame);

struct sim_netdev {
    const struct sim_netdev_traits *traits;
    struct sim_world *world;
    struct sim_host *host;
    struct sim_netdev *peer;
    struct quoit_port *port; /* to the peer */
    struct sim_end *end;
    char *area;           /* slots, which the peer writes; sources of the same size behind them */
    uint64_t area_offset; /* in the window, the same at both */
    uint64_t area_bytes;
    uint32_t slot_count;
    uint64_t slot_bytes;
    bool has_dma;
    bool waits_for_each;            /* DMA: for its end before the next */
    uint64_t sent_count;            /* slots ever used */
    uint64_t credit_count;          /* of them, that the peer has taken */
    uint64_t taken_count;           /* slots of this host that were taken */
    uint64_t credited_count;        /* as told to the peer */
    uint32_t dma_count;             /* under way */
    struct sim_frame *first, *last; /* to this host, in order */
    struct sim_frame *departing, *departing_last;
    struct sim_task *transmitter; /* waits for departing frames; NULL: does not wait */
    struct sim_event interrupt;   /* of Gigabit Ethernet */
    uint64_t interrupted_ns;
    uint64_t wire_free_ns;
    struct sim_task *tasks[2];
    bool is_interrupted;
    bool is_stopping;
    uint64_t busy_ns;
    uint64_t worked_ns; /* when the kernel's task last had something to do */
    sim_netdev_take *take;
    void (*after_batch)(void *arg); /* after frames were taken, or a queue has room */
    void *arg;
};

/* Of the protocols in sim_pattern: papers, ours, gigabit. */
const struct sim_netdev_traits *sim_netdev_traits(enum sim_device device);
/* In the task of the host's PE. Whole messages of config.bytes fit a slot if is_whole. */
void sim_netdev_open(struct sim_netdev *dev, struct sim_pe *pe, struct sim_netdev *peer, bool is_whole);
/* Starts the tasks of the kernel and of the device. */
void sim_netdev_start(struct sim_netdev *dev);
/* The tasks of this end stop soon. */
void sim_netdev_stop(struct sim_netdev *dev);
bool sim_netdev_is_running(const struct sim_netdev *dev);
void sim_netdev_close(struct sim_netdev *dev);

/* Work of the running task for this device. */
void sim_netdev_work(struct sim_netdev *dev, uint64_t ns);
/* Whether there is room for send(), and for data by queue(); acknowledgements always have some. */
bool sim_netdev_has_room(const struct sim_netdev *dev);
bool sim_netdev_accepts(const struct sim_netdev *dev);
/* From the kernel to the device: `segment` is copied. */
void sim_netdev_queue(struct sim_netdev *dev, const struct sim_frame *segment);
/* Below the kernel: into a slot of the neighbour. */
void sim_netdev_send(struct sim_netdev *dev, const struct sim_frame *frame);

#endif
