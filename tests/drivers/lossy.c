/* SPDX-License-Identifier: BSD-3-Clause */
/* Port drivers for tests, derived from the emulated one: they lose a posted write at random, and the link with it. The
 * link comes back as soon as a host checks it. `split` writes bytes and mark one after the other, as real bridges do,
 * and may lose the mark alone. `deaf` loses no write, but each third ring of a doorbell. Their only registration is a
 * row each of src/port/drivers.c: --driver lossy, --driver split, --driver deaf. */
#include "base/prng.h"
#include "env/clock.h"
#include "port/emulated/emulated.h"

#define CHANCE 20000u /* one write of this many */
#define inner  quoit_driver_emulated.ops

/* Only what would be sent can be lost: a ring of no bit sends nothing. */
static bool loses(struct quoit_port *port)
{
    struct quoit_prng prng = {.state = quoit_clock_now_ns()};
    bool is_lost = quoit_prng_choose(&prng, CHANCE) == 0 && inner->ring(port, 0);
    if (is_lost)
        inner->link_cut(port, true);
    return is_lost;
}

static bool link_is_up(const struct quoit_port *port)
{
    inner->link_cut((struct quoit_port *)(uintptr_t)port, false);
    return inner->link_is_up(port);
}

static enum quoit_status lossy_write(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                     const void *source, size_t bytes)
{
    return loses(port) ? QUOIT_OK : inner->write(port, window, offset, source, bytes);
}

static enum quoit_status lossy_write64(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                       uint64_t value)
{
    return loses(port) ? QUOIT_OK : inner->write64(port, window, offset, value);
}

/* Bytes and mark together. */
static enum quoit_status lossy_marked(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                      const void *source, size_t bytes, uint64_t mark_offset, uint64_t mark)
{
    return loses(port) ? QUOIT_OK : inner->write_marked(port, window, offset, source, bytes, mark_offset, mark);
}

static void adjust(struct quoit_port *port)
{
    port->ops.link_is_up = link_is_up;
    port->ops.write = lossy_write;
    port->ops.write64 = lossy_write64;
    port->ops.write_marked = lossy_marked;
    port->limits.capabilities &= ~(uint32_t)QUOIT_PORT_ARRIVES_ON_RETURN;
}

static void adjust_split(struct quoit_port *port)
{
    adjust(port);
    port->ops.write_marked = NULL;
}

static bool deaf_ring(struct quoit_port *port, uint64_t bits)
{
    static _Atomic uint32_t ring_count; /* of this process */
    return inner->ring(port, ++ring_count % 3 == 0 ? 0 : bits);
}

static void adjust_deaf(struct quoit_port *port)
{
    port->ops.ring = deaf_ring;
    port->limits.capabilities &= ~(uint32_t)QUOIT_PORT_RINGS_ARRIVE;
}

const struct quoit_port_driver quoit_driver_deaf = {.name = "deaf",
                                                    .sentence = "for tests: each third ring of a doorbell is lost",
                                                    .base = &quoit_driver_emulated,
                                                    .adjust = adjust_deaf};
const struct quoit_port_driver quoit_driver_split = {.name = "split",
                                                     .sentence = "for tests: as lossy, and marks are lost alone",
                                                     .base = &quoit_driver_emulated,
                                                     .adjust = adjust_split};
const struct quoit_port_driver quoit_driver_lossy = {.name = "lossy",
                                                     .sentence = "for tests: links that lose posted writes at random",
                                                     .base = &quoit_driver_emulated,
                                                     .adjust = adjust};
