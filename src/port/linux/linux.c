/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/linux/linux.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "port/linux/opening.h"

#define PAGE_BYTES       4096u
#define HUGE_BYTES       ((uint64_t)2 << 20)
#define FD_OWNER         0 /* of an endpoint: the client of the port that all openings join */
#define WINDOW_BYTES_MIN PAGE_BYTES

_Static_assert(QUOIT_WINDOW_COUNT <= QUOIT_NTB_WINDOWS, "window i is the chip's window i");

static uint64_t power_of_two_within(uint64_t bytes)
{
    return (uint64_t)1 << (63 - __builtin_clzll(bytes));
}

/* What a chip tells only while the link is up is 0 before: then both ends are taken to have windows of one size, and
 * what cannot be translated is refused when the link comes up. The address that the bridge sees is not the offset in
 * memory: an IOMMU aligns it, and a huge page is aligned. */
static enum quoit_status set_limits(struct quoit_port_limits *limits, const struct quoit_ntb_info *info)
{
    if (info->inbound_count < QUOIT_WINDOW_COUNT || info->outbound_count < QUOIT_WINDOW_COUNT ||
        info->scratchpad_count < QUOIT_SCRATCHPAD_LEAST || info->doorbell_bits == 0) {
        quoit_log(QUOIT_LOG_ERROR,
                  "the bridge, of driver %s, has %u windows and %u scratchpads for us, but %u and %u are needed",
                  info->driver, info->outbound_count, info->scratchpad_count, QUOIT_WINDOW_COUNT,
                  QUOIT_SCRATCHPAD_LEAST);
        return QUOIT_UNSUPPORTED;
    }
    limits->translation_align = PAGE_BYTES;
    limits->translation_bytes_align = PAGE_BYTES;
    for (uint32_t i = 0; i < QUOIT_WINDOW_COUNT; i++) {
        const struct quoit_ntb_window *window = &info->windows[i];
        uint64_t bytes =
            window->bytes_max && window->bytes_max < window->peer_bytes ? window->bytes_max : window->peer_bytes;
        if (bytes < WINDOW_BYTES_MIN)
            return QUOIT_UNSUPPORTED;
        limits->window_bytes[i] = power_of_two_within(bytes);
        if (window->bytes_align > limits->translation_bytes_align)
            limits->translation_bytes_align = window->bytes_align;
    }
    limits->doorbell_bits = info->doorbell_bits;
    limits->scratchpad_count =
        info->scratchpad_count < QUOIT_SCRATCHPAD_COUNT ? info->scratchpad_count : QUOIT_SCRATCHPAD_COUNT;
    limits->dma_channel_count = info->has_dma ? QUOIT_LINUX_DMA_CHANNELS : 0;
    limits->capabilities = QUOIT_PORT_DIRECT;
    return QUOIT_OK;
}

static void unmap(struct quoit_linux_port *port)
{
    for (uint32_t i = 0; i < QUOIT_WINDOW_COUNT; i++)
        if (port->window[i])
            munmap(port->window[i], port->port.limits.window_bytes[i]);
    if (port->state)
        munmap((void *)(uintptr_t)port->state, (size_t)sysconf(_SC_PAGESIZE));
}

static enum quoit_status map(struct quoit_linux_port *port)
{
    enum quoit_status status = QUOIT_OK;
    port->state = quoit_linux_device_map_state(port->fd);
    for (uint32_t i = 0; i < QUOIT_WINDOW_COUNT && status == QUOIT_OK; i++) {
        uint64_t bytes = port->port.limits.window_bytes[i];
        status = quoit_linux_device_lease(port->fd, port->port.limits.doorbell_bits, i, bytes);
        if (status == QUOIT_OK && !(port->window[i] = quoit_linux_device_map_window(port->fd, i, bytes)))
            status = QUOIT_SYSTEM;
    }
    if (status == QUOIT_OK && !port->state)
        status = QUOIT_SYSTEM;
    if (status != QUOIT_OK)
        quoit_log(QUOIT_LOG_ERROR, "linux port: %s%s%s",
                  status == QUOIT_FULL ? "another client has doorbell bits or windows of it"
                                       : quoit_status_text(status),
                  status == QUOIT_SYSTEM ? ": " : "", status == QUOIT_SYSTEM ? strerror(errno) : "");
    return status;
}

static enum quoit_status linux_open(const struct quoit_port_config *config, struct quoit_port **port_out)
{
    struct quoit_ntb_info info;
    if (config->endpoint->fd_count != FD_OWNER + 1)
        return QUOIT_INVALID;
    struct quoit_linux_port *port = calloc(1, sizeof *port);
    if (port == NULL)
        return QUOIT_NO_MEMORY;
    for (uint32_t i = 0; i < QUOIT_WINDOW_COUNT; i++)
        port->ranges[i].memory_fd = -1;
    enum quoit_status status = quoit_linux_device_open(config->endpoint->fds[FD_OWNER], &port->fd);
    if (status != QUOIT_OK) {
        quoit_log(QUOIT_LOG_ERROR, "linux port: opening the device: %s", strerror(errno));
        goto free_port;
    }
    status = quoit_linux_device_info(port->fd, &info);
    if (status == QUOIT_OK && info.version != QUOIT_NTB_VERSION) {
        quoit_log(QUOIT_LOG_ERROR, "linux port: the kernel module speaks version %u, not %u", info.version,
                  QUOIT_NTB_VERSION);
        status = QUOIT_UNSUPPORTED;
    }
    if (status == QUOIT_OK)
        status = set_limits(&port->port.limits, &info);
    if (status == QUOIT_OK)
        status = map(port);
    if (status == QUOIT_OK)
        status = quoit_linux_interrupts_open(port);
    if (status != QUOIT_OK)
        goto unmap;
    status = quoit_linux_dma_open(port);
    if (status != QUOIT_OK)
        goto close_interrupts;
    quoit_park_setup(); /* this opening wakes parks */
    *port_out = &port->port;
    return QUOIT_OK;

close_interrupts:
    quoit_linux_interrupts_close(port);
unmap:
    unmap(port);
    close(port->fd);
free_port:
    free(port);
    return status;
}

static void linux_close(struct quoit_port *port)
{
    struct quoit_linux_port *self = quoit_linux_port_of(port);
    quoit_linux_interrupts_close(self);
    unmap(self);
    for (uint32_t i = 0; i < QUOIT_WINDOW_COUNT; i++)
        if (self->ranges[i].memory_fd >= 0)
            close(self->ranges[i].memory_fd);
    close(self->fd); /* ends what is copied still */
    quoit_linux_dma_close(self);
    free(self);
}

static enum quoit_status make_file(const char *label, uint64_t bytes, unsigned flags, int *fd_out)
{
    int fd = memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
    if (fd < 0)
        return QUOIT_SYSTEM;
    /* Huge pages are reserved now or not at all. A process that shrank the file would end all that map it. */
    if (ftruncate(fd, (off_t)bytes) != 0 || ((flags & MFD_HUGETLB) && fallocate(fd, 0, 0, (off_t)bytes) != 0) ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return QUOIT_SYSTEM;
    }
    *fd_out = fd;
    return QUOIT_OK;
}

/* A bridge reaches contiguous memory: one huge page, if it suffices and the host has reserved one, else pages that an
 * IOMMU puts together. Larger huge pages would not do: a PE maps parts of a host's memory, its globals for example.
 * Futexes of several processes lie in it, so it cannot be memory of the device. */
static enum quoit_status make_memory(const char *label, uint64_t bytes, int *fd_out)
{
    if (bytes <= HUGE_BYTES && make_file(label, HUGE_BYTES, MFD_HUGETLB | MFD_HUGE_2MB, fd_out) == QUOIT_OK)
        return QUOIT_OK;
    return make_file(label, bytes, 0, fd_out);
}

static enum quoit_status describe(const struct quoit_port_site *site, struct quoit_port_endpoint *endpoint_out)
{
    if (site->link_fd < 0)
        return QUOIT_INVALID;
    *endpoint_out = (struct quoit_port_endpoint){.fd_count = FD_OWNER + 1, .fds = {[FD_OWNER] = site->link_fd}};
    return QUOIT_OK;
}

/* An opening leases all doorbell bits of its port, or part. */
static enum quoit_status probe(const char *path)
{
    struct quoit_ntb_info info;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return QUOIT_SYSTEM;
    enum quoit_status status = quoit_linux_device_info(fd, &info);
    if (status == QUOIT_OK)
        status = quoit_linux_device_lease(fd, info.doorbell_bits, 0, 0);
    int error = errno;
    close(fd);
    errno = error;
    return status;
}

static const struct quoit_port_ops ops = {
    .open = linux_open,
    .close = linux_close,
    .link_enable = quoit_linux_link_enable,
    .link_is_up = quoit_linux_link_is_up,
    .link_epoch = quoit_linux_link_epoch,
    .bind = quoit_linux_bind,
    .set_translation = quoit_linux_set_translation,
    .write = quoit_linux_write,
    .write64 = quoit_linux_write64,
    .read = quoit_linux_read,
    .scratchpad_read = quoit_linux_scratchpad_read,
    .scratchpad_peer_write = quoit_linux_scratchpad_peer_write,
    .ring = quoit_linux_ring,
    .doorbell_read = quoit_linux_doorbell_read,
    .doorbell_clear = quoit_linux_doorbell_clear,
    .doorbell_set_mask = quoit_linux_doorbell_set_mask,
    .set_vector = quoit_linux_set_vector,
    .dma_submit = quoit_linux_dma_submit,
    .dma_poll = quoit_linux_dma_poll,
};

const struct quoit_port_driver quoit_driver_linux = {
    .name = "linux",
    .sentence = "bridges of this machine, through /dev/ntbN of the kernel module",
    .memory_create = make_memory,
    .describe = describe,
    .probe = probe,
    .ops = &ops,
};
