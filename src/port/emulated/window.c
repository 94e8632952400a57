/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/emulated/opening.h"

#include <string.h>

#include "base/assert.h"
#include "base/prng.h"

#define CHUNK_BYTES       65536u /* a long copy looks at the link this often */
#define PACED_CHUNK_BYTES 16384u /* the same where a rate is kept, so that the rate is smooth */
#define TORN_CHUNK_BYTES  512u   /* the longest piece where writes are torn */
#define WORD_BYTES        8u

static uint64_t window_extent(uint64_t second)
{
    return second;
}

enum quoit_status quoit_emulated_set_translation(struct quoit_port *port, enum quoit_window window,
                                                 uint64_t memory_offset, uint64_t bytes)
{
    struct quoit_emulated_port *self = quoit_emulated_port_of(port);
    uint32_t era = quoit_emulated_era(quoit_emulated_state(self->link));
    quoit_emulated_pair_set(&self->own->window[window], era, memory_offset, bytes);
    return QUOIT_OK;
}

/* Where a window leads while the link is in `state`; false if nowhere. */
static inline bool resolve(struct quoit_emulated_port *port, uint64_t state, enum quoit_window window,
                           struct quoit_emulated_range *range_out)
{
    struct quoit_emulated_pair *pair = &port->peer->window[window];
    for (;;) {
        uint64_t current = atomic_load_explicit(&pair->current, memory_order_acquire);
        if (quoit_emulated_up_state(current) != state)
            return false;
        if (quoit_emulated_view_read(port->window_view[window], current, range_out))
            return true;
        quoit_emulated_view_refresh(port, pair, port->window_view[window], window_extent);
    }
}

/* Writes what lies inside the translation; the rest vanishes. LINK_DOWN: the link left `state` before anything was
 * written. */
static inline enum quoit_status land(struct quoit_emulated_port *port, uint64_t state, enum quoit_window window,
                                     uint64_t offset, const char *source, size_t bytes)
{
    struct quoit_emulated_range range;
    if (!resolve(port, state, window, &range))
        return quoit_emulated_state(port->link) == state ? QUOIT_OK : QUOIT_LINK_DOWN;
    if (offset >= range.second)
        return QUOIT_OK;
    uint64_t room_bytes = range.second - offset;
    quoit_emulated_words_out(range.base + offset, source, bytes < room_bytes ? bytes : room_bytes);
    return QUOIT_OK;
}

static uint64_t draw(struct quoit_emulated_port *port, uint64_t n)
{
    uint64_t turn = atomic_fetch_add_explicit(&port->tear_count, 1, memory_order_relaxed);
    struct quoit_prng prng = {.state = ((uint64_t)port->knobs.torn_write_seed << 32) + turn};
    return quoit_prng_choose(&prng, n);
}

/* The first write of this opening that meets a link gone down counts as under way: the link has taken some of its
 * words. They land only if the peer has set up nothing else since. */
static void tear(struct quoit_emulated_port *port, enum quoit_window window, uint64_t offset, const char *source,
                 size_t bytes)
{
    uint64_t state = quoit_emulated_state(port->link);
    uint64_t current = atomic_load_explicit(&port->peer->window[window].current, memory_order_acquire);
    bool was_translated =
        quoit_emulated_epoch(quoit_emulated_up_state(current)) == quoit_emulated_epoch(state) && current != 0;
    struct quoit_emulated_range range;
    if (quoit_emulated_is_up(state) || !was_translated ||
        !quoit_emulated_view_read(port->window_view[window], current, &range))
        return;
    if (atomic_exchange_explicit(&port->torn_state, state, memory_order_relaxed) == state)
        return;
    uint64_t end = (offset + draw(port, bytes)) & ~(uint64_t)(WORD_BYTES - 1);
    if (end > range.second)
        end = range.second;
    if (end > offset)
        quoit_emulated_words_out(range.base + offset, source, end - offset);
}

static uint64_t chunk_bytes_of(struct quoit_emulated_port *port, uint64_t offset)
{
    if (port->knobs.torn_write_seed != 0)
        return WORD_BYTES * (1 + draw(port, TORN_CHUNK_BYTES / WORD_BYTES)) - offset % WORD_BYTES;
    return port->knobs.rate_bytes_per_s != 0 ? PACED_CHUNK_BYTES : CHUNK_BYTES;
}

static enum quoit_status copy_out_with_knobs(struct quoit_emulated_port *port, uint64_t state, enum quoit_window window,
                                             uint64_t offset, const char *source, size_t bytes)
{
    quoit_emulated_delay(port->knobs.write_latency_ns);
    for (;;) {
        uint64_t chunk_bytes = chunk_bytes_of(port, offset);
        if (chunk_bytes > bytes)
            chunk_bytes = bytes;
        quoit_emulated_pace(port, chunk_bytes);
        if (!quoit_emulated_is_up(state) || quoit_emulated_state(port->link) != state)
            break;
        if (land(port, state, window, offset, source, chunk_bytes) != QUOIT_OK)
            break;
        bytes -= chunk_bytes;
        if (bytes == 0)
            return QUOIT_OK;
        offset += chunk_bytes;
        source += chunk_bytes;
    }
    if (port->knobs.torn_write_seed != 0)
        tear(port, window, offset, source, bytes);
    return QUOIT_LINK_DOWN;
}

enum quoit_status quoit_emulated_copy_out(struct quoit_emulated_port *port, uint64_t state, enum quoit_window window,
                                          uint64_t offset, const char *source, size_t bytes)
{
    if (!port->is_plain)
        return copy_out_with_knobs(port, state, window, offset, source, bytes);
    if (!quoit_emulated_is_up(state))
        return QUOIT_LINK_DOWN;
    for (;;) {
        size_t chunk_bytes = bytes < CHUNK_BYTES ? bytes : CHUNK_BYTES;
        if (land(port, state, window, offset, source, chunk_bytes) != QUOIT_OK)
            return QUOIT_LINK_DOWN;
        bytes -= chunk_bytes;
        if (bytes == 0)
            return QUOIT_OK;
        offset += chunk_bytes;
        source += chunk_bytes;
        if (quoit_emulated_state(port->link) != state)
            return QUOIT_LINK_DOWN;
    }
}

enum quoit_status quoit_emulated_write64(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                         uint64_t value)
{
    struct quoit_emulated_port *self = quoit_emulated_port_of(port);
    uint64_t state = quoit_emulated_sending_state(self);
    uint64_t current = atomic_load_explicit(&self->peer->window[window].current, memory_order_acquire);
    struct quoit_emulated_range range;
    if (self->is_plain && quoit_emulated_up_state(current) == state &&
        quoit_emulated_view_read(self->window_view[window], current, &range) && offset + WORD_BYTES <= range.second) {
        /* Release: after all earlier writes of this thread. */
        atomic_store_explicit((_Atomic uint64_t *)(void *)(range.base + offset), value, memory_order_release);
        return QUOIT_OK;
    }
    return quoit_emulated_copy_out(self, state, window, offset, (const char *)&value, sizeof value);
}

enum quoit_status quoit_emulated_write(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                       const void *source, size_t bytes)
{
    struct quoit_emulated_port *self = quoit_emulated_port_of(port);
    quoit_assert(offset <= port->limits.window_bytes[window]);
    quoit_assert(bytes <= port->limits.window_bytes[window] - offset);
    if (bytes == WORD_BYTES && offset % WORD_BYTES == 0) { /* the commonest put */
        uint64_t value;
        memcpy(&value, source, sizeof value);
        return quoit_emulated_write64(port, window, offset, value);
    }
    return quoit_emulated_copy_out(self, quoit_emulated_sending_state(self), window, offset, source, bytes);
}

enum quoit_status quoit_emulated_read(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                      void *destination, size_t bytes)
{
    struct quoit_emulated_port *self = quoit_emulated_port_of(port);
    quoit_assert(offset <= port->limits.window_bytes[window]);
    quoit_assert(bytes <= port->limits.window_bytes[window] - offset);
    uint64_t state = quoit_emulated_sending_state(self);
    if (!quoit_emulated_is_up(state))
        return QUOIT_LINK_DOWN;
    quoit_emulated_delay(self->knobs.read_latency_ns);
    /* A copy is in the peer's memory as soon as the processor's stores are: a full barrier is the round trip. */
    atomic_fetch_add(&self->fence, 1);
    struct quoit_emulated_range range = {NULL, 0};
    if (!resolve(self, state, window, &range) || offset >= range.second)
        range.second = offset; /* nothing of it is translated */
    uint64_t room_bytes = range.second - offset;
    size_t inside_bytes = bytes < room_bytes ? bytes : (size_t)room_bytes;
    if (inside_bytes != 0)
        quoit_emulated_words_in(destination, range.base + offset, inside_bytes);
    memset((char *)destination + inside_bytes, 0xff, bytes - inside_bytes);
    return quoit_emulated_state(self->link) == state ? QUOIT_OK : QUOIT_LINK_DOWN;
}
