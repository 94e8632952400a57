/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/driver.h"

#include "base/assert.h"

static bool has_required_ops(const struct quoit_port_ops *ops)
{
    return ops && ops->open && ops->close && ops->link_enable && ops->link_is_up && ops->link_epoch && ops->bind &&
           ops->set_translation && ops->write && ops->write64 && ops->read && ops->scratchpad_read &&
           ops->scratchpad_peer_write && ops->ring && ops->doorbell_read && ops->doorbell_clear &&
           ops->doorbell_set_mask && ops->set_vector;
}

static bool is_power_of_two(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

/* What the wrappers below, and all layers above, rely on. */
static void check_limits(const struct quoit_port *port)
{
    for (uint32_t i = 0; i < QUOIT_WINDOW_COUNT; i++)
        quoit_assert(is_power_of_two(port->limits.window_bytes[i]));
    quoit_assert(is_power_of_two(port->limits.translation_align));
    quoit_assert(is_power_of_two(port->limits.translation_bytes_align));
    quoit_assert((port->limits.capabilities & QUOIT_PORT_CUTS) == 0 || port->ops.link_cut != NULL);
    quoit_assert(port->limits.scratchpad_count >= QUOIT_SCRATCHPAD_LEAST);
    quoit_assert(port->limits.scratchpad_count <= QUOIT_SCRATCHPAD_COUNT);
    quoit_assert(port->limits.dma_channel_count <= QUOIT_DMA_CHANNEL_COUNT);
    if (port->limits.dma_channel_count != 0) {
        quoit_assert(port->ops.dma_submit != NULL);
        quoit_assert(port->ops.dma_poll != NULL);
    }
}

static inline enum quoit_status check_range(const struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                            uint64_t bytes)
{
    if ((uint32_t)window >= QUOIT_WINDOW_COUNT)
        return QUOIT_INVALID;
    uint64_t window_bytes = port->limits.window_bytes[window];
    return offset <= window_bytes && bytes <= window_bytes - offset ? QUOIT_OK : QUOIT_OUT_OF_RANGE;
}

static const struct quoit_port_ops *ops_of(const struct quoit_port_driver *driver)
{
    while (driver->ops == NULL && driver->base != NULL)
        driver = driver->base;
    return driver->ops;
}

static void adjust(const struct quoit_port_driver *driver, struct quoit_port *port)
{
    if (driver->ops != NULL || driver->base == NULL)
        return;
    adjust(driver->base, port);
    if (driver->adjust)
        driver->adjust(port);
}

enum quoit_status quoit_port_open(const struct quoit_port_config *config, struct quoit_port **port_out)
{
    if (config->driver == NULL || config->endpoint == NULL || config->memory.base == NULL)
        return QUOIT_INVALID;
    const struct quoit_port_ops *ops = ops_of(config->driver);
    if (!has_required_ops(ops))
        return QUOIT_INVALID;
    struct quoit_port *port;
    enum quoit_status status = ops->open(config, &port);
    if (status != QUOIT_OK)
        return status;
    port->ops = *ops;
    port->memory = config->memory;
    adjust(config->driver, port);
    if (!port->ops.write_marked) /* two writes: between them the link may go down */
        port->limits.capabilities &= ~(uint32_t)QUOIT_PORT_WHOLE_MARKS;
    check_limits(port);
    *port_out = port;
    return QUOIT_OK;
}

void quoit_port_close(struct quoit_port *port)
{
    if (port != NULL)
        port->ops.close(port);
}

void quoit_port_limits(const struct quoit_port *port, struct quoit_port_limits *limits_out)
{
    *limits_out = port->limits;
}

void quoit_port_link_enable(struct quoit_port *port)
{
    port->ops.link_enable(port, true);
}

void quoit_port_link_disable(struct quoit_port *port)
{
    port->ops.link_enable(port, false);
}

bool quoit_port_link_is_up(const struct quoit_port *port)
{
    return port->ops.link_is_up(port);
}

uint32_t quoit_port_link_epoch(const struct quoit_port *port)
{
    return port->ops.link_epoch(port);
}

enum quoit_status quoit_port_bind(struct quoit_port *port, uint32_t epoch)
{
    return port->ops.bind(port, epoch);
}

static enum quoit_status set_cut(struct quoit_port *port, bool is_cut)
{
    if ((port->limits.capabilities & QUOIT_PORT_CUTS) == 0)
        return QUOIT_UNSUPPORTED;
    port->ops.link_cut(port, is_cut);
    return QUOIT_OK;
}

enum quoit_status quoit_port_cut(struct quoit_port *port)
{
    return set_cut(port, true);
}

enum quoit_status quoit_port_mend(struct quoit_port *port)
{
    return set_cut(port, false);
}

enum quoit_status quoit_port_set_translation(struct quoit_port *port, enum quoit_window window, uint64_t memory_offset,
                                             uint64_t bytes)
{
    enum quoit_status status = check_range(port, window, 0, bytes);
    if (status != QUOIT_OK)
        return status;
    if (memory_offset % port->limits.translation_align != 0 || bytes % port->limits.translation_bytes_align != 0)
        return QUOIT_INVALID;
    if (memory_offset > port->memory.bytes || bytes > port->memory.bytes - memory_offset)
        return QUOIT_OUT_OF_RANGE;
    return port->ops.set_translation(port, window, memory_offset, bytes);
}

enum quoit_status quoit_port_write(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                   const void *source, size_t bytes)
{
    enum quoit_status status = check_range(port, window, offset, bytes);
    return status == QUOIT_OK ? port->ops.write(port, window, offset, source, bytes) : status;
}

enum quoit_status quoit_port_write64(struct quoit_port *port, enum quoit_window window, uint64_t offset, uint64_t value)
{
    enum quoit_status status = check_range(port, window, offset, sizeof value);
    if (status != QUOIT_OK)
        return status;
    if (offset % sizeof value != 0)
        return QUOIT_INVALID;
    return port->ops.write64(port, window, offset, value);
}

enum quoit_status quoit_port_write_marked(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                          const void *source, size_t bytes, uint64_t mark_offset, uint64_t mark)
{
    enum quoit_status status = check_range(port, window, offset, bytes);
    if (status == QUOIT_OK)
        status = check_range(port, window, mark_offset, sizeof mark);
    if (status != QUOIT_OK)
        return status;
    if (mark_offset % sizeof mark != 0 || bytes == 0)
        return QUOIT_INVALID;
    if (port->ops.write_marked)
        return port->ops.write_marked(port, window, offset, source, bytes, mark_offset, mark);
    status = port->ops.write(port, window, offset, source, bytes);
    return status == QUOIT_OK ? port->ops.write64(port, window, mark_offset, mark) : status;
}

enum quoit_status quoit_port_write_from(struct quoit_port *port, enum quoit_window window, uint64_t offset, int fd,
                                        void *head, size_t head_bytes, size_t bytes, ssize_t *count_out)
{
    enum quoit_status status = check_range(port, window, offset, bytes);
    if (status != QUOIT_OK)
        return status;
    return port->ops.write_from ? port->ops.write_from(port, window, offset, fd, head, head_bytes, bytes, count_out)
                                : QUOIT_UNSUPPORTED;
}

enum quoit_status quoit_port_read(struct quoit_port *port, enum quoit_window window, uint64_t offset, void *destination,
                                  size_t bytes)
{
    enum quoit_status status = check_range(port, window, offset, bytes);
    return status == QUOIT_OK ? port->ops.read(port, window, offset, destination, bytes) : status;
}

uint32_t quoit_port_scratchpad_read(struct quoit_port *port, uint32_t index)
{
    quoit_assert(index < port->limits.scratchpad_count);
    return port->ops.scratchpad_read(port, index);
}

void quoit_port_scratchpad_peer_write(struct quoit_port *port, uint32_t index, uint32_t value)
{
    quoit_assert(index < port->limits.scratchpad_count);
    port->ops.scratchpad_peer_write(port, index, value);
}

bool quoit_port_ring(struct quoit_port *port, uint64_t bits)
{
    quoit_assert((bits & ~port->limits.doorbell_bits) == 0);
    return port->ops.ring(port, bits);
}

uint64_t quoit_port_doorbell_read(struct quoit_port *port)
{
    return port->ops.doorbell_read(port);
}

void quoit_port_doorbell_clear(struct quoit_port *port, uint64_t bits)
{
    quoit_assert((bits & ~port->limits.doorbell_bits) == 0);
    port->ops.doorbell_clear(port, bits);
}

void quoit_port_doorbell_mask(struct quoit_port *port, uint64_t bits)
{
    quoit_assert((bits & ~port->limits.doorbell_bits) == 0);
    port->ops.doorbell_set_mask(port, bits, true);
}

void quoit_port_doorbell_unmask(struct quoit_port *port, uint64_t bits)
{
    quoit_assert((bits & ~port->limits.doorbell_bits) == 0);
    port->ops.doorbell_set_mask(port, bits, false);
}

static enum quoit_status check_vector(const struct quoit_port *port, const struct quoit_port_vector *vector)
{
    if (vector->park_count == 0)
        return QUOIT_OK;
    uint64_t align = _Alignof(struct quoit_park);
    if (vector->park_offset % align != 0 || vector->park_stride % align != 0)
        return QUOIT_INVALID;
    if (vector->park_count > 1 && vector->park_stride < sizeof(struct quoit_park))
        return QUOIT_INVALID;
    uint64_t bytes = (uint64_t)(vector->park_count - 1) * vector->park_stride + sizeof(struct quoit_park);
    if (vector->park_offset > port->memory.bytes || bytes > port->memory.bytes - vector->park_offset)
        return QUOIT_OUT_OF_RANGE;
    return QUOIT_OK;
}

enum quoit_status quoit_port_set_vector(struct quoit_port *port, uint32_t bit, const struct quoit_port_vector *vector)
{
    if (bit >= QUOIT_VECTOR_DMA(port->limits.dma_channel_count))
        return QUOIT_INVALID;
    if (bit < QUOIT_DOORBELL_COUNT && (port->limits.doorbell_bits >> bit & 1) == 0)
        return QUOIT_INVALID;
    if (bit == QUOIT_VECTOR_LINK && vector->park_count > 1)
        return QUOIT_INVALID;
    enum quoit_status status = check_vector(port, vector);
    if (status == QUOIT_OK)
        port->ops.set_vector(port, bit, vector);
    return status;
}

enum quoit_status quoit_port_dma_submit(struct quoit_port *port, uint32_t channel, enum quoit_window window,
                                        uint64_t offset, const void *source, size_t bytes, uint64_t cookie)
{
    if (channel >= port->limits.dma_channel_count)
        return QUOIT_INVALID;
    enum quoit_status status = check_range(port, window, offset, bytes);
    if (status != QUOIT_OK)
        return status;
    return bytes == 0 ? QUOIT_INVALID : port->ops.dma_submit(port, channel, window, offset, source, bytes, cookie);
}

uint32_t quoit_port_dma_poll(struct quoit_port *port, uint32_t channel, struct quoit_dma_done *done_out,
                             uint32_t max_count)
{
    quoit_assert(channel < port->limits.dma_channel_count);
    return port->ops.dma_poll(port, channel, done_out, max_count);
}
