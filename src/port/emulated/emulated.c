/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/emulated/emulated.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "env/map.h"
#include "port/emulated/opening.h"

/* The contents of an endpoint. */
enum { FD_LINK, FD_PEER_MEMORY, FD_WIRE, FD_COUNT };
struct emulated_end {
    uint32_t side;
    uint32_t share; /* on a wire, which is then the last descriptor, */
    uint32_t part;  /* and its part there */
    struct quoit_port_knobs knobs;
};
_Static_assert(sizeof(struct emulated_end) <= QUOIT_PORT_ENDPOINT_BYTES, "it fits an endpoint");

#define SLOTS_WINDOW_BYTES  ((uint64_t)128 << 20)
#define MEMORY_WINDOW_BYTES ((uint64_t)64 << 30)
#define TRANSLATION_ALIGN   4096u

static bool is_power_of_two(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

static enum quoit_status set_limits(struct quoit_port_limits *limits, const struct quoit_port_knobs *knobs)
{
    const uint64_t default_bytes[QUOIT_WINDOW_COUNT] = {SLOTS_WINDOW_BYTES, MEMORY_WINDOW_BYTES};
    for (uint32_t i = 0; i < QUOIT_WINDOW_COUNT; i++) {
        limits->window_bytes[i] = knobs->window_bytes[i] != 0 ? knobs->window_bytes[i] : default_bytes[i];
        if (!is_power_of_two(limits->window_bytes[i]))
            return QUOIT_INVALID;
    }
    limits->translation_align = knobs->translation_align != 0 ? knobs->translation_align : TRANSLATION_ALIGN;
    limits->translation_bytes_align = 1;
    limits->capabilities = QUOIT_PORT_CUTS | QUOIT_PORT_DIRECT | QUOIT_PORT_WHOLE_MARKS | QUOIT_PORT_RINGS_ARRIVE |
                           (knobs->arrives_on_return ? QUOIT_PORT_ARRIVES_ON_RETURN : 0);
    limits->doorbell_bits = QUOIT_EMULATED_BITS;
    limits->scratchpad_count = QUOIT_SCRATCHPAD_COUNT;
    limits->dma_channel_count = knobs->dma_channel_count != 0 ? knobs->dma_channel_count : QUOIT_DMA_CHANNEL_COUNT;
    if (!is_power_of_two(limits->translation_align) || limits->dma_channel_count > QUOIT_DMA_CHANNEL_COUNT)
        return QUOIT_INVALID;
    return QUOIT_OK;
}

/* Maps a whole file; NULL, with one message, if that fails or the file is shorter than min_bytes. */
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

static void remember_file(struct quoit_emulated_port *port, int fd)
{
    struct stat file = {0};
    (void)!fstat(fd, &file); /* the file has just been mapped */
    port->peer_memory_fd = fd;
    port->peer_device = file.st_dev;
    port->peer_inode = file.st_ino;
}

static bool is_slow(const struct quoit_port_knobs *knobs)
{
    return knobs->rate_bytes_per_s != 0 || knobs->write_latency_ns != 0 || knobs->doorbell_latency_ns != 0;
}

static bool slows_or_tears(const struct quoit_port_knobs *knobs)
{
    return is_slow(knobs) || knobs->torn_write_seed != 0;
}

static enum quoit_status emulated_open(const struct quoit_port_config *config, struct quoit_port **port_out)
{
    struct emulated_end end;
    memcpy(&end, config->endpoint->bytes, sizeof end);
    uint32_t fd_count = config->endpoint->fd_count;
    if ((fd_count != FD_WIRE && fd_count != FD_COUNT) || end.side >= QUOIT_EMULATED_SIDE_COUNT ||
        end.share >= QUOIT_PORT_SHARES_MAX)
        return QUOIT_INVALID;
    struct quoit_emulated_port *port = calloc(1, sizeof *port);
    if (port == NULL)
        return QUOIT_NO_MEMORY;
    port->knobs = end.knobs;
    port->side = end.side;
    port->share = end.share;
    port->is_plain = !slows_or_tears(&port->knobs);
    port->is_posted = !port->knobs.arrives_on_return;
    enum quoit_status status = set_limits(&port->port.limits, &port->knobs);
    if (status != QUOIT_OK)
        goto free_port;

    status = QUOIT_SYSTEM;
    port->link = map_whole(config->endpoint->fds[FD_LINK], "link", QUOIT_EMULATED_LINK_BYTES, PROT_READ | PROT_WRITE,
                           &port->link_bytes);
    if (port->link == NULL)
        goto free_port;
    port->peer_memory =
        map_whole(config->endpoint->fds[FD_PEER_MEMORY], "peer's memory", 1, PROT_NONE, &port->peer_memory_bytes);
    if (port->peer_memory == NULL)
        goto unmap_link;
    remember_file(port, config->endpoint->fds[FD_PEER_MEMORY]);
    if (fd_count == FD_COUNT)
        port->wire = map_whole(config->endpoint->fds[FD_WIRE], "wire", QUOIT_EMULATED_LINK_BYTES,
                               PROT_READ | PROT_WRITE, &port->wire_bytes);
    if (fd_count == FD_COUNT && port->wire == NULL)
        goto unmap_peer;
    status = quoit_emulated_dma_open(port);
    if (status != QUOIT_OK)
        goto unmap_wire;
    port->own = &port->link->side[port->side];
    port->peer = &port->link->side[1 - port->side];
    if (port->wire != NULL)
        atomic_store_explicit(&port->wire->side[port->side].parts[port->share], end.part, memory_order_relaxed);
    pthread_mutex_init(&port->refresh_lock, NULL);
    if (port->is_posted && is_slow(&port->knobs))
        status = quoit_emulated_queue_open(port);
    if (status != QUOIT_OK)
        goto close_dma;
    quoit_park_setup(); /* this opening wakes parks */
    *port_out = &port->port;
    return QUOIT_OK;

close_dma:
    quoit_emulated_dma_close(port);
    pthread_mutex_destroy(&port->refresh_lock);
unmap_wire:
    if (port->wire != NULL)
        munmap(port->wire, port->wire_bytes);
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
    quoit_emulated_queue_close(self);
    quoit_emulated_dma_close(self);
    pthread_mutex_destroy(&self->refresh_lock);
    if (self->wire != NULL)
        munmap(self->wire, self->wire_bytes);
    munmap(self->peer_memory, self->peer_memory_bytes);
    munmap(self->link, self->link_bytes);
    free(self);
}

static enum quoit_status make_file(const char *label, uint64_t bytes, int *fd_out)
{
    int fd = memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return QUOIT_SYSTEM;
    /* A process that shrank the file would end all that map it by SIGBUS. */
    if (ftruncate(fd, (off_t)bytes) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return QUOIT_SYSTEM;
    }
    *fd_out = fd;
    return QUOIT_OK;
}

static enum quoit_status make_link(int *fd_out)
{
    return make_file("quoit-link", QUOIT_EMULATED_LINK_BYTES, fd_out);
}

static enum quoit_status describe(const struct quoit_port_site *site, struct quoit_port_endpoint *endpoint_out)
{
    struct emulated_end end = {.side = site->side, .knobs = site->knobs};
    *endpoint_out = (struct quoit_port_endpoint){
        .fd_count = FD_WIRE, .fds = {[FD_LINK] = site->link_fd, [FD_PEER_MEMORY] = site->peer_memory_fd}};
    if (site->wire != NULL) {
        end.share = site->wire->share;
        end.part = site->wire->part.weight | site->wire->part.percent << 16;
        endpoint_out->fds[FD_WIRE] = site->wire->fd;
        endpoint_out->fd_count = FD_COUNT;
    }
    memcpy(endpoint_out->bytes, &end, sizeof end);
    return QUOIT_OK;
}

static const struct quoit_port_ops ops = {
    .open = emulated_open,
    .close = emulated_close,
    .link_enable = quoit_emulated_link_enable,
    .link_is_up = quoit_emulated_link_is_up,
    .link_epoch = quoit_emulated_link_epoch,
    .bind = quoit_emulated_bind,
    .link_cut = quoit_emulated_link_cut,
    .set_translation = quoit_emulated_set_translation,
    .write = quoit_emulated_write,
    .write64 = quoit_emulated_write64,
    .write_marked = quoit_emulated_write_marked,
    .write_from = quoit_emulated_write_from,
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

const struct quoit_port_driver quoit_driver_emulated = {
    .name = "emulated",
    .sentence = "links between emulated hosts of this machine",
    .memory_create = make_file,
    .link_create = make_link,
    .describe = describe,
    .ops = &ops,
};
