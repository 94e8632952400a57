/* SPDX-License-Identifier: BSD-3-Clause */
/* DMA by an engine of the kernel, which the module gives to an opening with its first copy. It reads the host's memory,
 * which that copy pins. Completions come in order although the module ends in any order what a loss of the link ends,
 * and refuses what is submitted while it is down: a ring of the opening's own has all of them. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "port/linux/opening.h"

#define PAGE_BYTES 4096u
#define TAKE_COUNT 16

struct descriptor {
    uint64_t cookie;
    enum quoit_status status;
    bool has_ended;
};

/* Counts grow for ever and are taken modulo the depth. The module's cookie is the count at submit. */
struct quoit_linux_dma {
    pthread_mutex_t lock;
    int memory_fd;                 /* -1: not pinned yet */
    bool is_refused;               /* the memory cannot be pinned, or the engine sees it in pieces */
    _Atomic uint64_t submit_count; /* writers of both: under lock */
    _Atomic uint64_t poll_count;
    struct descriptor ring[QUOIT_DMA_DEPTH];
};

_Static_assert(QUOIT_DMA_DEPTH <= QUOIT_NTB_DMA_DEPTH, "the module takes what the ring has room for");

enum quoit_status quoit_linux_dma_open(struct quoit_linux_port *port)
{
    if (port->port.limits.dma_channel_count == 0)
        return QUOIT_OK;
    port->dma = calloc(1, sizeof *port->dma);
    if (port->dma == NULL)
        return QUOIT_NO_MEMORY;
    port->dma->memory_fd = -1;
    pthread_mutex_init(&port->dma->lock, NULL);
    return QUOIT_OK;
}

void quoit_linux_dma_close(struct quoit_linux_port *port)
{
    if (port->dma == NULL)
        return;
    if (port->dma->memory_fd >= 0)
        close(port->dma->memory_fd);
    pthread_mutex_destroy(&port->dma->lock);
    free(port->dma);
}

static void refuse(struct quoit_linux_dma *dma, const char *why)
{
    quoit_log(QUOIT_LOG_ERROR, "no DMA of a port: %s", why);
    dma->is_refused = true;
}

static enum quoit_status pin(struct quoit_linux_port *port)
{
    struct quoit_linux_dma *dma = port->dma;
    const struct quoit_port_memory *memory = &port->port.memory;
    uint64_t bytes = (memory->bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    if (dma->is_refused)
        return QUOIT_UNSUPPORTED;
    if (dma->memory_fd >= 0)
        return QUOIT_OK;
    enum quoit_status status = quoit_linux_device_pin(port->fd, memory->base, bytes, &dma->memory_fd);
    if (status == QUOIT_SYSTEM) {
        refuse(dma, errno == ENOMEM ? "the host's memory cannot be pinned once more (ulimit -l)" : strerror(errno));
        return QUOIT_UNSUPPORTED;
    }
    return status;
}

static enum quoit_status hand_over(struct quoit_linux_port *port, struct quoit_ntb_copy *copy)
{
    enum quoit_status status = pin(port);
    if (status != QUOIT_OK)
        return status;
    copy->memory_fd = port->dma->memory_fd;
    status = quoit_linux_device_copy(port->fd, copy);
    if (status == QUOIT_UNSUPPORTED && errno == EADDRNOTAVAIL)
        refuse(port->dma, "the engine sees the host's memory in pieces: it needs an IOMMU, or huge pages "
                          "(docs/build-a-ring.md)");
    return status;
}

enum quoit_status quoit_linux_dma_submit(struct quoit_port *port, uint32_t channel, enum quoit_window window,
                                         uint64_t offset, const void *source, size_t bytes, uint64_t cookie)
{
    struct quoit_linux_port *self = quoit_linux_port_of(port);
    struct quoit_linux_dma *dma = self->dma;
    uint64_t at = (uint64_t)((uintptr_t)source - (uintptr_t)port->memory.base); /* huge, if it lies before */
    quoit_assert(channel < QUOIT_LINUX_DMA_CHANNELS);
    if (at > port->memory.bytes || bytes > port->memory.bytes - at)
        return QUOIT_UNSUPPORTED;
    enum quoit_status status = QUOIT_FULL;
    pthread_mutex_lock(&dma->lock);
    uint64_t count = atomic_load_explicit(&dma->submit_count, memory_order_relaxed);
    if (count - atomic_load_explicit(&dma->poll_count, memory_order_relaxed) < QUOIT_DMA_DEPTH) {
        struct quoit_ntb_copy copy = {
            .window = window, .source = at, .offset = offset, .bytes = bytes, .cookie = count};
        status = hand_over(self, &copy);
    }
    bool is_lost = status == QUOIT_LINK_DOWN;
    if (status == QUOIT_OK || is_lost) {
        dma->ring[count % QUOIT_DMA_DEPTH] =
            (struct descriptor){.cookie = cookie, .status = status, .has_ended = is_lost};
        atomic_store_explicit(&dma->submit_count, count + 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&dma->lock);
    if (!is_lost)
        return status;
    quoit_linux_wake(self, QUOIT_VECTOR_DMA(channel));
    return QUOIT_OK;
}

static void take_ended(struct quoit_linux_port *port)
{
    struct quoit_ntb_done done[TAKE_COUNT];
    for (uint32_t count = TAKE_COUNT; count == TAKE_COUNT;) {
        count = quoit_linux_device_done(port->fd, done, TAKE_COUNT);
        for (uint32_t i = 0; i < count; i++) {
            struct descriptor *ended = &port->dma->ring[done[i].cookie % QUOIT_DMA_DEPTH];
            ended->status = done[i].status == 0          ? QUOIT_OK
                            : done[i].status == -ENOLINK ? QUOIT_LINK_DOWN
                                                         : QUOIT_SYSTEM;
            ended->has_ended = true;
        }
    }
}

uint32_t quoit_linux_dma_poll(struct quoit_port *port, uint32_t channel, struct quoit_dma_done *done_out,
                              uint32_t max_count)
{
    struct quoit_linux_port *self = quoit_linux_port_of(port);
    struct quoit_linux_dma *dma = self->dma;
    quoit_assert(channel < QUOIT_LINUX_DMA_CHANNELS);
    if (atomic_load_explicit(&dma->submit_count, memory_order_relaxed) ==
        atomic_load_explicit(&dma->poll_count, memory_order_relaxed))
        return 0; /* without a system call */
    uint32_t count = 0;
    pthread_mutex_lock(&dma->lock);
    uint64_t submitted = atomic_load_explicit(&dma->submit_count, memory_order_relaxed);
    uint64_t polled = atomic_load_explicit(&dma->poll_count, memory_order_relaxed);
    take_ended(self);
    for (; count < max_count && polled != submitted && dma->ring[polled % QUOIT_DMA_DEPTH].has_ended; polled++) {
        const struct descriptor *ended = &dma->ring[polled % QUOIT_DMA_DEPTH];
        done_out[count++] = (struct quoit_dma_done){.cookie = ended->cookie, .status = ended->status};
    }
    atomic_store_explicit(&dma->poll_count, polled, memory_order_relaxed);
    pthread_mutex_unlock(&dma->lock);
    return count;
}
