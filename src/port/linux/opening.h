/* SPDX-License-Identifier: BSD-3-Clause */
/* opening.h - one process's opening of one end of a cable. Private to this folder.
 *
 * What it is: a client of /dev/ntbN that is joined to those of the host's other processes, with its own mappings of the
 * windows and of the link's state. What concerns more than one process is in the kernel module, which also looks after
 * it when a process dies. While the link is down, or in an epoch that the opening is not bound to, the module puts
 * another page behind the mappings, so a store that is late by an instant harms nobody and raises no signal.
 *
 * Threads: all functions may be called from any thread of the process; the translations from one at a time.
 */
#ifndef QUOIT_PORT_LINUX_OPENING_H
#define QUOIT_PORT_LINUX_OPENING_H

#include "port/driver.h"
#include "port/linux/device.h"

struct quoit_linux_interrupts; /* interrupt.c */
struct quoit_linux_dma;        /* dma.c */

#define QUOIT_LINUX_DMA_CHANNELS 1 /* of an opening, if an engine is there */

/* Memory that is exposed, or was before the link went down. */
struct quoit_linux_range {
    uint64_t offset;
    uint64_t bytes;
    int memory_fd; /* -1: none is pinned */
};

struct quoit_linux_port {
    struct quoit_port port;
    int fd;
    char *window[QUOIT_WINDOW_COUNT];
    const struct quoit_ntb_state *state;
    _Atomic uint64_t bound_link; /* a value of state->link; 0: the opening follows the link */
    struct quoit_linux_range ranges[QUOIT_WINDOW_COUNT];
    struct quoit_linux_interrupts *interrupts;
    struct quoit_linux_dma *dma; /* NULL: there is no engine */
};

#define QUOIT_LINUX_UP 1u /* of state->link; the epoch stands above it */

static inline struct quoit_linux_port *quoit_linux_port_of(const struct quoit_port *port)
{
    return (struct quoit_linux_port *)(uintptr_t)port;
}

static inline uint64_t quoit_linux_link(const struct quoit_linux_port *port)
{
    return __atomic_load_n(&port->state->link, __ATOMIC_ACQUIRE); /* pairs with publish() of kernel/link.c */
}

/* The link for what this opening sends; 0: it may not send. */
static inline uint64_t quoit_linux_sending_link(const struct quoit_linux_port *port)
{
    uint64_t link = quoit_linux_link(port);
    uint64_t bound = atomic_load_explicit(&port->bound_link, memory_order_relaxed);
    return __builtin_expect(bound == link, 1) || (bound == 0 && link & QUOIT_LINUX_UP) ? link : 0;
}

/* What was stored to windows before, by this thread, has left the processor. */
static inline void quoit_linux_flush_stores(void)
{
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* window.c */
enum quoit_status quoit_linux_set_translation(struct quoit_port *port, enum quoit_window window, uint64_t memory_offset,
                                              uint64_t bytes);
enum quoit_status quoit_linux_write(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                    const void *source, size_t bytes);
enum quoit_status quoit_linux_write64(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                      uint64_t value);
enum quoit_status quoit_linux_read(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                   void *destination, size_t bytes);

/* interrupt.c */
enum quoit_status quoit_linux_interrupts_open(struct quoit_linux_port *port);
void quoit_linux_interrupts_close(struct quoit_linux_port *port);
void quoit_linux_set_vector(struct quoit_port *port, uint32_t bit, const struct quoit_port_vector *vector);
void quoit_linux_wake(struct quoit_linux_port *port, uint32_t bit); /* as if the bit had fired */

/* dma.c */
enum quoit_status quoit_linux_dma_open(struct quoit_linux_port *port);
void quoit_linux_dma_close(struct quoit_linux_port *port);
enum quoit_status quoit_linux_dma_submit(struct quoit_port *port, uint32_t channel, enum quoit_window window,
                                         uint64_t offset, const void *source, size_t bytes, uint64_t cookie);
uint32_t quoit_linux_dma_poll(struct quoit_port *port, uint32_t channel, struct quoit_dma_done *done_out,
                              uint32_t max_count);

/* link.c */
void quoit_linux_link_enable(struct quoit_port *port, bool is_enabled);
bool quoit_linux_link_is_up(const struct quoit_port *port);
uint32_t quoit_linux_link_epoch(const struct quoit_port *port);
enum quoit_status quoit_linux_bind(struct quoit_port *port, uint32_t epoch);
uint32_t quoit_linux_scratchpad_read(struct quoit_port *port, uint32_t index);
void quoit_linux_scratchpad_peer_write(struct quoit_port *port, uint32_t index, uint32_t value);
bool quoit_linux_ring(struct quoit_port *port, uint64_t bits);
uint64_t quoit_linux_doorbell_read(struct quoit_port *port);
void quoit_linux_doorbell_clear(struct quoit_port *port, uint64_t bits);
void quoit_linux_doorbell_set_mask(struct quoit_port *port, uint64_t bits, bool is_masked);

#endif
