/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/emulated/opening.h"

#include <string.h>
#include <sys/uio.h>

#include "base/assert.h"
#include "base/prng.h"
#include "env/clock.h"

#define CHUNK_BYTES       65536u /* a long copy checks the link this often */
#define PACED_CHUNK_BYTES 16384u /* the same if a rate is set, so that the rate is smooth */
#define TORN_CHUNK_BYTES  512u   /* the longest piece where writes are torn */
#define WORD_BYTES        8u
#define MARKED_BYTES      4096u       /* up to here a write and its mark share one check of the link */
#define DYING_LIMIT_NS    1000000000u /* a process that cuts a link is done sooner */

static uint64_t window_extent(uint64_t second)
{
    return second;
}

enum quoit_status quoit_emulated_set_translation(struct quoit_port *port, enum quoit_window window,
                                                 uint64_t memory_offset, uint64_t bytes)
{
    struct quoit_emulated_port *self = quoit_emulated_port_of(port);
    uint32_t outage_count = quoit_emulated_outage_count(quoit_emulated_state(self->link));
    quoit_emulated_pair_set(&self->own->window[window], outage_count, memory_offset, bytes);
    return QUOIT_OK;
}

/* The destination of a window while the link is in `state`; false if it has none. */
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

/* The result of a write sent in `state`, once the link has left it: posted to a cut cable, or refused. */
static enum quoit_status fate(const struct quoit_emulated_port *port, uint64_t state)
{
    return (quoit_emulated_state(port->link) & ~QUOIT_EMULATED_DYING) == state ? QUOIT_OK : QUOIT_LINK_DOWN;
}

/* Writes what lies inside the translation; the rest vanishes. LINK_DOWN: the link left `state` before anything was
 * written. */
static inline enum quoit_status land(struct quoit_emulated_port *port, uint64_t state, enum quoit_window window,
                                     uint64_t offset, const char *source, size_t bytes)
{
    struct quoit_emulated_range range;
    if (!resolve(port, state, window, &range))
        return fate(port, state);
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

/* The first write of this opening that meets a link gone down counts as in flight: the link has taken some of its
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
                                             uint64_t offset, const char *source, size_t bytes, bool may_sleep)
{
    quoit_emulated_delay(port->knobs.write_latency_ns);
    for (;;) {
        uint64_t chunk_bytes = chunk_bytes_of(port, offset);
        if (chunk_bytes > bytes)
            chunk_bytes = bytes;
        quoit_emulated_pace(port, chunk_bytes, may_sleep);
        if (!quoit_emulated_is_up(state))
            break;
        if (quoit_emulated_state(port->link) != state) {
            if (fate(port, state) == QUOIT_OK)
                return QUOIT_OK;
            break;
        }
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
                                          uint64_t offset, const char *source, size_t bytes, bool may_sleep)
{
    if (!port->is_plain)
        return copy_out_with_knobs(port, state, window, offset, source, bytes, may_sleep);
    if (!quoit_emulated_is_up(state))
        return QUOIT_LINK_DOWN;
    if (state & QUOIT_EMULATED_DYING)
        return QUOIT_OK;
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
            return fate(port, state);
    }
}

/* Sends a write that is not the plain one of a word: waits in the queue, if there is one. */
static enum quoit_status send(struct quoit_emulated_port *port, uint64_t state, const struct quoit_emulated_post *post,
                              const char *source)
{
    if (port->queue == NULL) {
        enum quoit_status status =
            quoit_emulated_copy_out(port, state, post->window, post->offset, source, post->bytes, false);
        if (status == QUOIT_OK && post->has_mark)
            status = quoit_emulated_copy_out(port, state, post->window, post->mark_offset, (const char *)&post->mark,
                                             sizeof post->mark, false);
        return status;
    }
    if (!quoit_emulated_is_up(state)) {
        quoit_emulated_queue_lose(port);
        return QUOIT_LINK_DOWN;
    }
    if ((state & QUOIT_EMULATED_DYING) == 0)
        quoit_emulated_post_write(port, state, *post, source);
    return QUOIT_OK;
}

void quoit_emulated_land_posted(struct quoit_emulated_port *port, uint64_t state,
                                const struct quoit_emulated_post *post, const char *data)
{
    if (quoit_emulated_state(port->link) != state) {
        if (port->knobs.torn_write_seed != 0)
            tear(port, post->window, post->offset, data, post->bytes);
        return;
    }
    if (land(port, state, post->window, post->offset, data, post->bytes) == QUOIT_OK && post->has_mark)
        (void)land(port, state, post->window, post->mark_offset, (const char *)&post->mark, sizeof post->mark);
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
    const struct quoit_emulated_post post = {.window = (uint8_t)window, .offset = offset, .bytes = sizeof value};
    return send(self, state, &post, (const char *)&value);
}

enum quoit_status quoit_emulated_write_marked(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                              const void *source, size_t bytes, uint64_t mark_offset, uint64_t mark)
{
    struct quoit_emulated_port *self = quoit_emulated_port_of(port);
    uint64_t state = quoit_emulated_sending_state(self);
    struct quoit_emulated_range range;
    if (self->is_plain && bytes <= MARKED_BYTES && resolve(self, state, window, &range) &&
        offset + bytes <= range.second && mark_offset + WORD_BYTES <= range.second) {
        if (bytes == WORD_BYTES && offset % WORD_BYTES == 0) {
            uint64_t value;
            memcpy(&value, source, sizeof value);
            atomic_store_explicit((_Atomic uint64_t *)(void *)(range.base + offset), value, memory_order_release);
        } else {
            quoit_emulated_words_out(range.base + offset, source, bytes);
        }
        atomic_store_explicit((_Atomic uint64_t *)(void *)(range.base + mark_offset), mark, memory_order_release);
        return QUOIT_OK;
    }
    if (bytes > UINT32_MAX) {
        enum quoit_status status = quoit_emulated_write(port, window, offset, source, bytes);
        return status == QUOIT_OK ? quoit_emulated_write64(port, window, mark_offset, mark) : status;
    }
    const struct quoit_emulated_post post = {.window = (uint8_t)window,
                                             .offset = offset,
                                             .bytes = (uint32_t)bytes,
                                             .has_mark = true,
                                             .mark_offset = mark_offset,
                                             .mark = mark};
    return send(self, state, &post, source);
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
    const char *from = source;
    uint64_t state = quoit_emulated_sending_state(self);
    if (self->queue == NULL)
        return quoit_emulated_copy_out(self, state, window, offset, from, bytes, false);
    enum quoit_status status = QUOIT_OK;
    for (size_t part; bytes != 0 && status == QUOIT_OK; from += part, offset += part, bytes -= part) {
        part = bytes < CHUNK_BYTES ? bytes : CHUNK_BYTES;
        const struct quoit_emulated_post post = {.window = (uint8_t)window, .offset = offset, .bytes = (uint32_t)part};
        status = send(self, quoit_emulated_sending_state(self) == state ? state : 0, &post, from);
    }
    return status;
}

/* The kernel is the copier: into the window, where the link is looked at before, and by the write of the mark after it;
 * or, where writes are posted late, into what is posted. Into the window it keeps to no rate, and
 * it tears nothing by itself. */
enum quoit_status quoit_emulated_write_from(struct quoit_port *port, enum quoit_window window, uint64_t offset, int fd,
                                            void *head, size_t head_bytes, size_t bytes, ssize_t *count_out)
{
    struct quoit_emulated_port *self = quoit_emulated_port_of(port);
    uint64_t state = quoit_emulated_sending_state(self);
    struct quoit_emulated_range range;
    if (!quoit_emulated_is_up(state)) {
        quoit_emulated_queue_lose(self);
        return QUOIT_LINK_DOWN;
    }
    if ((!self->is_plain && self->queue == NULL) || !resolve(self, state, window, &range) || offset > range.second ||
        bytes > range.second - offset)
        return QUOIT_UNSUPPORTED;
    if (self->queue != NULL) {
        const struct quoit_emulated_post post = {
            .window = (uint8_t)window, .offset = offset, .bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX};
        return quoit_emulated_post_from(self, state, post, fd, head, head_bytes, count_out);
    }
    const struct iovec parts[] = {{.iov_base = head, .iov_len = head_bytes},
                                  {.iov_base = range.base + offset, .iov_len = bytes}};
    *count_out = readv(fd, parts, 2);
    return QUOIT_OK;
}

/* The link is down, or will be seen down in a moment: what was posted before is lost, and the caller may report it. */
static enum quoit_status refuse_read(struct quoit_emulated_port *port)
{
    uint64_t deadline_ns = quoit_clock_now_ns() + DYING_LIMIT_NS;
    while (quoit_emulated_state(port->link) & QUOIT_EMULATED_DYING) {
        if (quoit_clock_now_ns() > deadline_ns)
            quoit_emulated_link_cut(&port->port, true); /* the process that began it died */
        quoit_emulated_delay(1000);
    }
    quoit_emulated_queue_lose(port);
    return QUOIT_LINK_DOWN;
}

enum quoit_status quoit_emulated_read(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                      void *destination, size_t bytes)
{
    struct quoit_emulated_port *self = quoit_emulated_port_of(port);
    quoit_assert(offset <= port->limits.window_bytes[window]);
    quoit_assert(bytes <= port->limits.window_bytes[window] - offset);
    uint64_t state = quoit_emulated_sending_state(self);
    if (!quoit_emulated_is_up(state) || (state & QUOIT_EMULATED_DYING))
        return refuse_read(self);
    quoit_emulated_queue_arrive(self);
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
    return quoit_emulated_state(self->link) == state ? QUOIT_OK : refuse_read(self);
}
