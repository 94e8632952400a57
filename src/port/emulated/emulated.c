/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/emulated/emulated.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "env/map.h"
#include "port/emulated/opening.h"

#define SLOTS_WINDOW_BYTES  ((uint64_t)128 << 20)
#define MEMORY_WINDOW_BYTES ((uint64_t)64 << 30)
#define TRANSLATION_ALIGN   4096u
#define ALL_DOORBELLS       ((1u << QUOIT_DOORBELL_COUNT) - 1)

static bool is_power_of_two(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

static enum quoit_status set_limits(struct quoit_port_limits *limits, const struct quoit_emulated_knobs *knobs)
{
    const uint64_t default_bytes[QUOIT_WINDOW_COUNT] = {SLOTS_WINDOW_BYTES, MEMORY_WINDOW_BYTES};
    for (uint32_t i = 0; i < QUOIT_WINDOW_COUNT; i++) {
        limits->window_bytes[i] = knobs->window_bytes[i] != 0 ? knobs->window_bytes[i] : default_bytes[i];
        if (!is_power_of_two(limits->window_bytes[i]))
            return QUOIT_INVALID;
    }
    limits->translation_align = knobs->translation_align != 0 ? knobs->translation_align : TRANSLATION_ALIGN;
    limits->arrives_on_return = true; /* a copy ends with the processor's stores to the peer's memory */
    limits->doorbell_bits = ALL_DOORBELLS;
    limits->dma_channel_count = knobs->dma_channel_count != 0 ? knobs->dma_channel_count : QUOIT_DMA_CHANNEL_COUNT;
    if (!is_power_of_two(limits->translation_align) || limits->dma_channel_count > QUOIT_DMA_CHANNEL_COUNT)
        return QUOIT_INVALID;
    return QUOIT_OK;
}

/* Maps all of a file; NULL, said once, if that cannot be done or the file is shorter than min_bytes. */
static void *map_whole(int fd, const char *what, uint64_t min_bytes, int protection, uint64_t *bytes_out)
{
    struct stat file;
    if (fstat(fd, &file) != 0) {
        quoit_log(QUOIT_LOG_ERROR, "emulated port: fd %d of the %s: %s", fd, what, strerror(errno));
        return NULL;
    }
    if ((uint64_t)file.st_size < min_bytes) {
        quoit_log(QUOIT_LOG_ERROR, "emulated port: the %s has %lld bytes, fewer than %llu", what,
                  (long long)file.st_size, (unsigned long long)min_bytes);
        return NULL;
    }
    *bytes_out = (uint64_t)file.st_size;
    void *base = quoit_map_file(fd, *bytes_out, protection);
    if (base == NULL)
        quoit_log(QUOIT_LOG_ERROR, "emulated port: mapping the %s: %s", what, strerror(errno));
    return base;
}

static bool slows_or_tears(const struct quoit_emulated_knobs *knobs)
{
    return knobs->rate_bytes_per_s != 0 || knobs->write_latency_ns != 0 || knobs->doorbell_latency_ns != 0 ||
           knobs->torn_write_seed != 0;
}

static enum quoit_status emulated_open(const struct quoit_port_config *config, struct quoit_port **port_out)
{
    const struct quoit_emulated_config *own_config = config->driver_config;
    if (own_config == NULL || own_config->side >= QUOIT_EMULATED_SIDE_COUNT)
        return QUOIT_INVALID;
    struct quoit_emulated_port *port = calloc(1, sizeof *port);
    if (port == NULL)
        return QUOIT_NO_MEMORY;
    port->knobs = own_config->knobs;
    port->side = own_config->side;
    port->is_plain = !slows_or_tears(&port->knobs);
    enum quoit_status status = set_limits(&port->port.limits, &port->knobs);
    if (status != QUOIT_OK)
        goto free_port;

    status = QUOIT_SYSTEM;
    port->link =
        map_whole(own_config->link_fd, "link", QUOIT_EMULATED_LINK_BYTES, PROT_READ | PROT_WRITE, &port->link_bytes);
    if (port->link == NULL)
        goto free_port;
    port->peer_memory = map_whole(own_config->peer_memory_fd, "peer's memory", 1, PROT_NONE, &port->peer_memory_bytes);
    if (port->peer_memory == NULL)
        goto unmap_link;
    status = quoit_emulated_dma_open(port);
    if (status != QUOIT_OK)
        goto unmap_peer;
    port->own = &port->link->side[port->side];
    port->peer = &port->link->side[1 - port->side];
    pthread_mutex_init(&port->refresh_lock, NULL);
    quoit_park_setup(); /* this opening wakes parks */
    *port_out = &port->port;
    return QUOIT_OK;

unmap_peer:
    munmap(port->peer_memory, port->peer_memory_bytes);
unmap_link:
    munmap(port->link, port->link_bytes);
free_port:
    free(port);
    return status;
}

static void emulated_close(struct quoit_port *port)
{
    struct quoit_emulated_port *self = quoit_emulated_port_of(port);
    quoit_emulated_dma_close(self);
    pthread_mutex_destroy(&self->refresh_lock);
    munmap(self->peer_memory, self->peer_memory_bytes);
    munmap(self->link, self->link_bytes);
    free(self);
}

const struct quoit_port_ops quoit_port_emulated = {
    .name = "emulated",
    .open = emulated_open,
    .close = emulated_close,
    .link_enable = quoit_emulated_link_enable,
    .link_is_up = quoit_emulated_link_is_up,
    .link_epoch = quoit_emulated_link_epoch,
    .bind = quoit_emulated_bind,
    .set_translation = quoit_emulated_set_translation,
    .write = quoit_emulated_write,
    .write64 = quoit_emulated_write64,
    .read = quoit_emulated_read,
    .scratchpad_read = quoit_emulated_scratchpad_read,
    .scratchpad_peer_write = quoit_emulated_scratchpad_peer_write,
    .ring = quoit_emulated_ring,
    .doorbell_read = quoit_emulated_doorbell_read,
    .doorbell_clear = quoit_emulated_doorbell_clear,
    .doorbell_set_mask = quoit_emulated_doorbell_set_mask,
    .set_vector = quoit_emulated_set_vector,
    .dma_submit = quoit_emulated_dma_submit,
    .dma_poll = quoit_emulated_dma_poll,
};
