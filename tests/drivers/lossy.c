/* SPDX-License-Identifier: BSD-3-Clause */
/* A port driver for tests: the emulated one, which loses a posted write every now and then, and the link with it. The
 * link comes back as soon as a host looks at it. It joins by a row of src/port/drivers.c alone: --driver lossy. */
#include "base/prng.h"
#include "port/emulated/opening.h"

#define CHANCE 20000u /* one write of so many */

static bool loses(struct quoit_port *port)
{
    struct quoit_emulated_port *self = quoit_emulated_port_of(port);
    struct quoit_prng prng = {.state = atomic_fetch_add(&self->tear_count, 1) + (uintptr_t)self};
    if (quoit_prng_choose(&prng, CHANCE) != 0 || !quoit_emulated_is_up(quoit_emulated_sending_state(self)))
        return false;
    quoit_emulated_link_cut(port, true);
    return true;
}

static bool link_is_up(const struct quoit_port *port)
{
    quoit_emulated_link_cut((struct quoit_port *)(uintptr_t)port, false);
    return quoit_emulated_link_is_up(port);
}

static enum quoit_status lossy_write(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                     const void *source, size_t bytes)
{
    return loses(port) ? QUOIT_OK : quoit_emulated_write(port, window, offset, source, bytes);
}

static enum quoit_status lossy_write64(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                       uint64_t value)
{
    return loses(port) ? QUOIT_OK : quoit_emulated_write64(port, window, offset, value);
}

static enum quoit_status lossy_open(const struct quoit_port_config *config, struct quoit_port **port_out)
{
    return quoit_driver_emulated.ops->open(config, port_out);
}

static void lossy_close(struct quoit_port *port)
{
    quoit_driver_emulated.ops->close(port);
}

static enum quoit_status memory_create(const char *label, uint64_t bytes, int *fd_out)
{
    return quoit_driver_emulated.memory_create(label, bytes, fd_out);
}

static enum quoit_status link_create(int *fd_out)
{
    return quoit_driver_emulated.link_create(fd_out);
}

static enum quoit_status describe(const struct quoit_port_site *site, struct quoit_port_endpoint *endpoint_out)
{
    return quoit_driver_emulated.describe(site, endpoint_out);
}

static const struct quoit_port_ops ops = {
    .open = lossy_open,
    .close = lossy_close,
    .link_enable = quoit_emulated_link_enable,
    .link_is_up = link_is_up,
    .link_epoch = quoit_emulated_link_epoch,
    .bind = quoit_emulated_bind,
    .link_cut = quoit_emulated_link_cut,
    .set_translation = quoit_emulated_set_translation,
    .write = lossy_write,
    .write64 = lossy_write64,
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

const struct quoit_port_driver quoit_driver_lossy = {
    .name = "lossy",
    .sentence = "for tests: links that lose posted writes at random",
    .memory_create = memory_create,
    .link_create = link_create,
    .describe = describe,
    .ops = &ops,
};
