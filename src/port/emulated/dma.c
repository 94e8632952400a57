/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/emulated/opening.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/prng.h"
#include "env/clock.h"
#include "env/thread.h"

#define NS_PER_S 1000000000u

struct descriptor {
    const char *source;
    size_t bytes;
    uint64_t offset;
    uint64_t cookie;
    uint64_t state;    /* of the link at submit: a copy does not outlive it */
    uint64_t start_ns; /* not before this time */
    enum quoit_window window;
    enum quoit_status status;
};

/* A queue of this process, in its own memory: its locks die with it. Counts grow for ever and are taken modulo the
 * depth. */
struct quoit_emulated_channel {
    struct quoit_emulated_port *port;
    pthread_mutex_t lock;
    pthread_cond_t work;
    pthread_t thread;
    bool is_started;
    bool is_closing;
    struct quoit_port_vector vector; /* woken by a completion */
    struct quoit_prng chance;        /* of dma_failures; the thread's */
    uint64_t submit_count;
    _Atomic uint64_t done_count; /* writer: the channel's thread */
    _Atomic uint64_t poll_count; /* writers: the pollers, under lock */
    struct descriptor entry[QUOIT_DMA_DEPTH];
};

/* Waits, with the lock held, until there is work whose time has come; false when the channel closes. */
static bool wait_for_work(struct quoit_emulated_channel *channel)
{
    for (;;) {
        if (channel->is_closing)
            return false;
        uint64_t done = atomic_load_explicit(&channel->done_count, memory_order_relaxed);
        if (done == channel->submit_count) {
            pthread_cond_wait(&channel->work, &channel->lock);
            continue;
        }
        uint64_t start_ns = channel->entry[done % QUOIT_DMA_DEPTH].start_ns;
        if (start_ns == 0 || quoit_clock_now_ns() >= start_ns)
            return true;
        struct timespec limit = {.tv_sec = (time_t)(start_ns / NS_PER_S), .tv_nsec = (long)(start_ns % NS_PER_S)};
        pthread_cond_timedwait(&channel->work, &channel->lock, &limit);
    }
}

static enum quoit_status copy(struct quoit_emulated_channel *channel, const struct descriptor *entry)
{
    struct quoit_emulated_port *port = channel->port;
    if (quoit_emulated_state(port->link) != entry->state || (entry->state & QUOIT_EMULATED_DYING))
        return QUOIT_LINK_DOWN;
    bool fails = port->knobs.dma_failures != 0 && quoit_prng_choose(&channel->chance, 1000) < port->knobs.dma_failures;
    size_t bytes = fails ? quoit_prng_choose(&channel->chance, entry->bytes + 1) : entry->bytes;
    enum quoit_status status = bytes == 0 ? QUOIT_OK
                                          : quoit_emulated_copy_out(port, entry->state, entry->window, entry->offset,
                                                                    entry->source, bytes, true);
    return fails && status == QUOIT_OK ? QUOIT_SYSTEM : status;
}

/* The interrupt. quoit_park_wake() costs one load per park when nobody sleeps. */
static void wake(const struct quoit_emulated_channel *channel, const struct quoit_port_vector *vector)
{
    char *base = (char *)channel->port->port.memory.base + vector->park_offset;
    for (uint32_t i = 0; i < vector->park_count; i++)
        quoit_park_wake((struct quoit_park *)(void *)(base + (uint64_t)i * vector->park_stride));
}

static void *run_channel(void *arg)
{
    struct quoit_emulated_channel *channel = arg;
    prctl(PR_SET_TIMERSLACK, 1); /* it waits for the wire by short sleeps */
    pthread_mutex_lock(&channel->lock);
    while (wait_for_work(channel)) {
        uint64_t done = atomic_load_explicit(&channel->done_count, memory_order_relaxed);
        struct descriptor *entry = &channel->entry[done % QUOIT_DMA_DEPTH];
        pthread_mutex_unlock(&channel->lock); /* the entry is ours until done_count passes it */
        entry->status = copy(channel, entry);
        pthread_mutex_lock(&channel->lock);
        atomic_store_explicit(&channel->done_count, done + 1,
                              memory_order_release); /* pairs with acquire in dma_poll() */
        struct quoit_port_vector vector = channel->vector;
        pthread_mutex_unlock(&channel->lock);
        wake(channel, &vector);
        pthread_mutex_lock(&channel->lock);
    }
    pthread_mutex_unlock(&channel->lock);
    return NULL;
}

static enum quoit_status start_thread(struct quoit_emulated_channel *channel)
{
    int error = pthread_create(&channel->thread, NULL, run_channel, channel);
    if (error != 0) {
        quoit_log(QUOIT_LOG_INFO, "emulated port: no thread for a dma channel: %s", strerror(error));
        return quoit_thread_status(error);
    }
    channel->is_started = true;
    return QUOIT_OK;
}

enum quoit_status quoit_emulated_dma_submit(struct quoit_port *port, uint32_t channel_index, enum quoit_window window,
                                            uint64_t offset, const void *source, size_t bytes, uint64_t cookie)
{
    struct quoit_emulated_port *self = quoit_emulated_port_of(port);
    quoit_assert(channel_index < port->limits.dma_channel_count);
    struct quoit_emulated_channel *channel = &self->channels[channel_index];
    enum quoit_status status = QUOIT_FULL;
    pthread_mutex_lock(&channel->lock);
    if (channel->submit_count - atomic_load_explicit(&channel->poll_count, memory_order_relaxed) == QUOIT_DMA_DEPTH)
        goto unlock;
    status = channel->is_started ? QUOIT_OK : start_thread(channel);
    if (status != QUOIT_OK)
        goto unlock;
    uint64_t latency_ns = self->knobs.dma_latency_ns;
    channel->entry[channel->submit_count++ % QUOIT_DMA_DEPTH] =
        (struct descriptor){.source = source,
                            .bytes = bytes,
                            .offset = offset,
                            .cookie = cookie,
                            .state = quoit_emulated_sending_state(self),
                            .start_ns = latency_ns != 0 ? quoit_clock_now_ns() + latency_ns : 0,
                            .window = window};
    pthread_cond_signal(&channel->work);
unlock:
    pthread_mutex_unlock(&channel->lock);
    return status;
}

uint32_t quoit_emulated_dma_poll(struct quoit_port *port, uint32_t channel_index, struct quoit_dma_done *done_out,
                                 uint32_t max_count)
{
    struct quoit_emulated_port *self = quoit_emulated_port_of(port);
    quoit_assert(channel_index < port->limits.dma_channel_count);
    struct quoit_emulated_channel *channel = &self->channels[channel_index];
    if (atomic_load_explicit(&channel->done_count, memory_order_acquire) ==
        atomic_load_explicit(&channel->poll_count, memory_order_relaxed))
        return 0;
    uint32_t count = 0;
    pthread_mutex_lock(&channel->lock);
    uint64_t done = atomic_load_explicit(&channel->done_count, memory_order_relaxed);
    uint64_t polled = atomic_load_explicit(&channel->poll_count, memory_order_relaxed);
    for (; count < max_count && polled != done; polled++) {
        const struct descriptor *entry = &channel->entry[polled % QUOIT_DMA_DEPTH];
        done_out[count++] = (struct quoit_dma_done){.cookie = entry->cookie, .status = entry->status};
    }
    atomic_store_explicit(&channel->poll_count, polled, memory_order_relaxed);
    pthread_mutex_unlock(&channel->lock);
    return count;
}

void quoit_emulated_dma_set_vector(struct quoit_emulated_port *port, uint32_t channel_index,
                                   const struct quoit_port_vector *vector)
{
    struct quoit_emulated_channel *channel = &port->channels[channel_index];
    pthread_mutex_lock(&channel->lock);
    channel->vector = *vector;
    pthread_mutex_unlock(&channel->lock);
}

enum quoit_status quoit_emulated_dma_open(struct quoit_emulated_port *port)
{
    uint32_t count = port->port.limits.dma_channel_count;
    port->channels = calloc(count, sizeof *port->channels);
    if (port->channels == NULL)
        return QUOIT_NO_MEMORY;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    for (uint32_t i = 0; i < count; i++) {
        port->channels[i].port = port;
        port->channels[i].chance.state = 2 * port->side + i;
        pthread_mutex_init(&port->channels[i].lock, NULL);
        pthread_cond_init(&port->channels[i].work, &monotonic);
    }
    pthread_condattr_destroy(&monotonic);
    return QUOIT_OK;
}

void quoit_emulated_dma_close(struct quoit_emulated_port *port)
{
    for (uint32_t i = 0; i < port->port.limits.dma_channel_count; i++) {
        struct quoit_emulated_channel *channel = &port->channels[i];
        pthread_mutex_lock(&channel->lock);
        channel->is_closing = true;
        pthread_cond_signal(&channel->work);
        pthread_mutex_unlock(&channel->lock);
        if (channel->is_started)
            pthread_join(channel->thread, NULL);
        pthread_cond_destroy(&channel->work);
        pthread_mutex_destroy(&channel->lock);
    }
    free(port->channels);
}
