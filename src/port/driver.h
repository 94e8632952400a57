/* SPDX-License-Identifier: BSD-3-Clause */
/* driver.h - what a port driver provides, and the table of the drivers compiled in. See docs/write-a-port.md.
 *
 * What it is: a driver makes the memory of its hosts (real bridges reach only memory known to the device), makes or
 * names links, and describes each end of a link by an endpoint: bytes and file descriptors that only the driver
 * interprets and that the boot protocol carries to every process that opens the end. A job runs on one driver, chosen
 * by name. Nothing above src/port includes the header of a driver. A driver is a folder, a struct quoit_port_driver,
 * and a row of drivers.c.
 *
 * Threads: the launcher calls the functions of struct quoit_port_driver, one at a time.
 */
#ifndef QUOIT_PORT_DRIVER_H
#define QUOIT_PORT_DRIVER_H

#include "port/port.h"

#define QUOIT_PORT_SHARES_MAX 32 /* links with one wire in common */

/* The behaviour of a driver without hardware; one with hardware ignores it. All zero: as fast as this machine allows,
 * with posted writes. */
struct quoit_port_knobs {
    uint64_t window_bytes[QUOIT_WINDOW_COUNT]; /* 0: the driver's default. Powers of two */
    uint64_t translation_align;                /* 0: the driver's default */
    uint64_t rate_bytes_per_s;                 /* 0: unlimited. Writes and DMA of one side share this rate */
    uint64_t read_latency_ns;                  /* added to each read */
    uint64_t write_latency_ns;                 /* from each programmed copy or DMA to its arrival */
    uint64_t dma_latency_ns;                   /* from submit to the start of the copy */
    uint64_t doorbell_latency_ns;              /* from ring to the bit being set */
    uint32_t torn_write_seed;   /* not 0: a write that meets link-down arrives in part, in whole 8-byte words */
    uint32_t dma_channel_count; /* 0: QUOIT_DMA_CHANNEL_COUNT */
    uint32_t dma_failures;      /* this many of 1000 descriptors fail, at random, after a part of them was written */
    uint32_t arrives_on_return; /* not 0: writes wait until they have arrived; 0: posted */
};

/* Part of a wire's rate that a share gets while others have something to send too; alone, it gets all. A share with a
 * percentage gets that; those without divide the rest by their weights. */
struct quoit_port_part {
    uint32_t percent; /* 1..99; 0: none */
    uint32_t weight;  /* 1..100; 0: 100 */
};

/* Links that are shares of one link (src/share) have its wire in common. */
struct quoit_port_wire {
    int fd;         /* of link_create(), used for nothing else */
    uint32_t share; /* which of those on the wire; below QUOIT_PORT_SHARES_MAX */
    struct quoit_port_part part;
};

/* One end of a link, before it is described. */
struct quoit_port_site {
    int link_fd;                        /* of link_create(), or the device of this end, open, where links are cables */
    int peer_memory_fd;                 /* of memory_create() of the host at the other end; -1: on another machine */
    uint32_t side;                      /* 0 or 1: which end of the link */
    const struct quoit_port_wire *wire; /* NULL: its own */
    struct quoit_port_knobs knobs;
};

struct quoit_port_driver {
    const char *name;
    const char *sentence; /* for the help of --driver */
    /* The driver that this one is derived from: members below that are NULL are inherited from it. NULL: not derived.
     */
    const struct quoit_port_driver *base;
    /* With `base`: overrides entries of `ops` and limits of a port that `base` has just opened. */
    void (*adjust)(struct quoit_port *port);
    /* Makes the memory of one host, all zero, of its final size; a descriptor that can be mapped shared. SYSTEM, with
     * errno. */
    enum quoit_status (*memory_create)(const char *label, uint64_t bytes, int *fd_out);
    /* Makes a link between two hosts of this machine, which neither end has enabled. NULL without `base`: the links
     * exist already. */
    enum quoit_status (*link_create)(int *fd_out);
    /* The endpoint refers to the site's file descriptors, which stay the caller's. */
    enum quoit_status (*describe)(const struct quoit_port_site *site, struct quoit_port_endpoint *endpoint_out);
    /* Whether an end of a link that exists already, by the path of its device, can be opened. FULL: somebody uses it.
     * SYSTEM, with errno. NULL: links are made. */
    enum quoit_status (*probe)(const char *path);
    const struct quoit_port_ops *ops;
};

/* drivers.c. NULL: no driver of that name. */
const struct quoit_port_driver *quoit_port_driver_find(const char *name);
/* Whether the hosts of a job are emulated: processes of one machine. */
bool quoit_port_driver_is_one_machine(const struct quoit_port_driver *driver);
/* The index-th driver of the table, the default first; NULL: there are no more. */
const struct quoit_port_driver *quoit_port_driver_at(uint32_t index);

/* The functions above, of the driver or of its base. */
QUOIT_MUST_USE enum quoit_status quoit_port_driver_memory(const struct quoit_port_driver *driver, const char *label,
                                                          uint64_t bytes, int *fd_out);
/* *fd_out is -1 if the links exist already. */
QUOIT_MUST_USE enum quoit_status quoit_port_driver_link(const struct quoit_port_driver *driver, int *fd_out);
QUOIT_MUST_USE enum quoit_status quoit_port_driver_describe(const struct quoit_port_driver *driver,
                                                            const struct quoit_port_site *site,
                                                            struct quoit_port_endpoint *endpoint_out);
/* UNSUPPORTED: links are made. */
QUOIT_MUST_USE enum quoit_status quoit_port_driver_probe(const struct quoit_port_driver *driver, const char *path);

/* One end. All are required except: write_marked (NULL: a write, then a write64); write_from (NULL: UNSUPPORTED);
 * link_cut (NULL without QUOIT_PORT_CUTS); dma_* (NULL if dma_channel_count is 0). The wrappers of port.c check
 * arguments against the limits; the driver asserts. */
struct quoit_port_ops {
    enum quoit_status (*open)(const struct quoit_port_config *config, struct quoit_port **port_out);
    void (*close)(struct quoit_port *port);
    void (*link_enable)(struct quoit_port *port, bool is_enabled);
    bool (*link_is_up)(const struct quoit_port *port);
    uint32_t (*link_epoch)(const struct quoit_port *port);
    enum quoit_status (*bind)(struct quoit_port *port, uint32_t epoch);
    void (*link_cut)(struct quoit_port *port, bool is_cut);
    enum quoit_status (*set_translation)(struct quoit_port *port, enum quoit_window window, uint64_t memory_offset,
                                         uint64_t bytes);
    enum quoit_status (*write)(struct quoit_port *port, enum quoit_window window, uint64_t offset, const void *source,
                               size_t bytes);
    enum quoit_status (*write64)(struct quoit_port *port, enum quoit_window window, uint64_t offset, uint64_t value);
    enum quoit_status (*write_marked)(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                      const void *source, size_t bytes, uint64_t mark_offset, uint64_t mark);
    enum quoit_status (*write_from)(struct quoit_port *port, enum quoit_window window, uint64_t offset, int fd,
                                    void *head, size_t head_bytes, size_t bytes, ssize_t *count_out);
    enum quoit_status (*read)(struct quoit_port *port, enum quoit_window window, uint64_t offset, void *destination,
                              size_t bytes);
    uint32_t (*scratchpad_read)(struct quoit_port *port, uint32_t index);
    void (*scratchpad_peer_write)(struct quoit_port *port, uint32_t index, uint32_t value);
    bool (*ring)(struct quoit_port *port, uint64_t bits);
    uint64_t (*doorbell_read)(struct quoit_port *port);
    void (*doorbell_clear)(struct quoit_port *port, uint64_t bits);
    void (*doorbell_set_mask)(struct quoit_port *port, uint64_t bits, bool is_masked);
    void (*set_vector)(struct quoit_port *port, uint32_t bit, const struct quoit_port_vector *vector);
    enum quoit_status (*dma_submit)(struct quoit_port *port, uint32_t channel, enum quoit_window window,
                                    uint64_t offset, const void *source, size_t bytes, uint64_t cookie);
    uint32_t (*dma_poll)(struct quoit_port *port, uint32_t channel, struct quoit_dma_done *done_out,
                         uint32_t max_count);
};

/* The first member of each driver's port. */
struct quoit_port {
    struct quoit_port_ops ops; /* writer of ops and memory: quoit_port_open(), after the driver's open */
    struct quoit_port_memory memory;
    struct quoit_port_limits limits; /* writer: the driver's open */
};

#endif
