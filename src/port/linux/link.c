/* SPDX-License-Identifier: BSD-3-Clause */
/* Link, scratchpads and doorbells. A port that was removed is one whose link never comes up again: calls that have no
 * status to return do nothing then. */
#include "port/linux/opening.h"

void quoit_linux_link_enable(struct quoit_port *port, bool is_enabled)
{
    (void)!quoit_linux_device_want_link(quoit_linux_port_of(port)->fd, is_enabled);
}

bool quoit_linux_link_is_up(const struct quoit_port *port)
{
    return quoit_linux_link(quoit_linux_port_of(port)) & QUOIT_LINUX_UP;
}

uint32_t quoit_linux_link_epoch(const struct quoit_port *port)
{
    return (uint32_t)(quoit_linux_link(quoit_linux_port_of(port)) >> 1);
}

enum quoit_status quoit_linux_bind(struct quoit_port *port, uint32_t epoch)
{
    struct quoit_linux_port *self = quoit_linux_port_of(port);
    enum quoit_status status = epoch == 0 ? QUOIT_LINK_DOWN : quoit_linux_device_accept(self->fd, epoch);
    if (status == QUOIT_OK)
        atomic_store_explicit(&self->bound_link, (uint64_t)epoch << 1 | QUOIT_LINUX_UP, memory_order_relaxed);
    return status;
}

uint32_t quoit_linux_scratchpad_read(struct quoit_port *port, uint32_t index)
{
    uint32_t value;
    (void)!quoit_linux_device_scratchpad(quoit_linux_port_of(port)->fd, index, &value); /* 0 while the link is down */
    return value;
}

void quoit_linux_scratchpad_peer_write(struct quoit_port *port, uint32_t index, uint32_t value)
{
    quoit_linux_flush_stores();
    (void)!quoit_linux_device_scratchpad_peer(quoit_linux_port_of(port)->fd, index, value);
}

bool quoit_linux_ring(struct quoit_port *port, uint64_t bits)
{
    struct quoit_linux_port *self = quoit_linux_port_of(port);
    if (quoit_linux_sending_link(self) == 0)
        return false;
    if (bits == 0)
        return true;
    quoit_linux_flush_stores();
    return quoit_linux_device_bits(self->fd, QUOIT_NTB_RING, bits) == QUOIT_OK;
}

uint64_t quoit_linux_doorbell_read(struct quoit_port *port)
{
    uint64_t bits;
    (void)!quoit_linux_device_bits_set(quoit_linux_port_of(port)->fd, &bits);
    return bits;
}

void quoit_linux_doorbell_clear(struct quoit_port *port, uint64_t bits)
{
    (void)!quoit_linux_device_bits(quoit_linux_port_of(port)->fd, QUOIT_NTB_CLEAR, bits);
}

void quoit_linux_doorbell_set_mask(struct quoit_port *port, uint64_t bits, bool is_masked)
{
    unsigned long command = is_masked ? QUOIT_NTB_MASK : QUOIT_NTB_UNMASK;
    (void)!quoit_linux_device_bits(quoit_linux_port_of(port)->fd, command, bits);
}
