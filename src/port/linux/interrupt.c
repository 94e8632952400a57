/* SPDX-License-Identifier: BSD-3-Clause */
/* Interrupts: a thread of the opening that has vectors waits for eventfds, one for each vector, and wakes the parks of
 * the vector. The opening of the host's proxy has those of doorbells and of the link, no other one. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "port/linux/opening.h"
#include "env/thread.h"

#define VECTOR_COUNT QUOIT_VECTOR_DMA(QUOIT_LINUX_DMA_CHANNELS) /* of the bits, the link and completions */

struct quoit_linux_interrupts {
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* fds, vectors */
    int control_fd;       /* fds have changed, or is_stopping */
    _Atomic bool is_stopping;
    int fds[VECTOR_COUNT]; /* -1: none */
    struct quoit_port_vector vectors[VECTOR_COUNT];
};

void quoit_linux_wake(struct quoit_linux_port *port, uint32_t bit)
{
    pthread_mutex_lock(&port->interrupts->lock);
    struct quoit_port_vector vector = port->interrupts->vectors[bit];
    pthread_mutex_unlock(&port->interrupts->lock);
    for (uint32_t i = 0; i < vector.park_count; i++)
        quoit_park_wake((struct quoit_park *)(void *)((char *)port->port.memory.base + vector.park_offset +
                                                      (uint64_t)i * vector.park_stride));
}

static void *run(void *arg)
{
    struct quoit_linux_port *port = arg;
    struct quoit_linux_interrupts *self = port->interrupts;
    struct pollfd polls[VECTOR_COUNT + 1];
    while (!atomic_load_explicit(&self->is_stopping, memory_order_acquire)) {
        pthread_mutex_lock(&self->lock);
        for (uint32_t i = 0; i < VECTOR_COUNT; i++)
            polls[i] = (struct pollfd){.fd = self->fds[i], .events = POLLIN};
        pthread_mutex_unlock(&self->lock);
        polls[VECTOR_COUNT] = (struct pollfd){.fd = self->control_fd, .events = POLLIN};
        if (poll(polls, VECTOR_COUNT + 1, -1) < 0)
            quoit_assert(errno == EINTR);
        for (uint32_t i = 0; i <= VECTOR_COUNT; i++) {
            uint64_t count;
            if ((polls[i].revents & POLLIN) == 0)
                continue;
            if (read(polls[i].fd, &count, sizeof count) == sizeof count && i < VECTOR_COUNT)
                quoit_linux_wake(port, i);
        }
    }
    return NULL;
}

static void tell_thread(struct quoit_linux_interrupts *self)
{
    (void)!write(self->control_fd, &(uint64_t){1}, sizeof(uint64_t));
}

enum quoit_status quoit_linux_interrupts_open(struct quoit_linux_port *port)
{
    struct quoit_linux_interrupts *self = calloc(1, sizeof *self);
    if (self == NULL)
        return QUOIT_NO_MEMORY;
    self->control_fd = eventfd(0, EFD_CLOEXEC);
    if (self->control_fd < 0) {
        free(self);
        return QUOIT_SYSTEM;
    }
    for (uint32_t i = 0; i < VECTOR_COUNT; i++)
        self->fds[i] = -1;
    pthread_mutex_init(&self->lock, NULL);
    port->interrupts = self;
    return QUOIT_OK;
}

void quoit_linux_interrupts_close(struct quoit_linux_port *port)
{
    struct quoit_linux_interrupts *self = port->interrupts;
    if (self->has_thread) {
        atomic_store_explicit(&self->is_stopping, true, memory_order_release); /* pairs with acquire in run() */
        tell_thread(self);
        pthread_join(self->thread, NULL);
    }
    for (uint32_t i = 0; i < VECTOR_COUNT; i++)
        if (self->fds[i] >= 0)
            close(self->fds[i]);
    close(self->control_fd);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

static enum quoit_status begin(struct quoit_linux_port *port, uint32_t bit)
{
    struct quoit_linux_interrupts *self = port->interrupts;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return QUOIT_SYSTEM;
    const struct quoit_ntb_eventfd wanted = {.fd = fd,
                                             .bits = bit < QUOIT_DOORBELL_COUNT ? (uint64_t)1 << bit : 0,
                                             .on_link = bit == QUOIT_VECTOR_LINK,
                                             .on_dma = bit > QUOIT_VECTOR_LINK};
    enum quoit_status status = quoit_linux_device_signal(port->fd, &wanted);
    if (status == QUOIT_OK && !self->has_thread)
        status = quoit_thread_status(pthread_create(&self->thread, NULL, run, port));
    if (status != QUOIT_OK) {
        close(fd);
        return status;
    }
    self->has_thread = true;
    self->fds[bit] = fd;
    tell_thread(self);
    return QUOIT_OK;
}

void quoit_linux_set_vector(struct quoit_port *port, uint32_t bit, const struct quoit_port_vector *vector)
{
    struct quoit_linux_port *self = quoit_linux_port_of(port);
    quoit_assert(bit < VECTOR_COUNT);
    pthread_mutex_lock(&self->interrupts->lock);
    self->interrupts->vectors[bit] = *vector;
    enum quoit_status status = QUOIT_OK;
    if (vector->park_count != 0 && self->interrupts->fds[bit] < 0)
        status = begin(self, bit);
    pthread_mutex_unlock(&self->interrupts->lock);
    if (status != QUOIT_OK)
        quoit_log(QUOIT_LOG_ERROR, "the interrupt of vector %u: %s", bit, quoit_status_text(status));
}
