/* SPDX-License-Identifier: BSD-3-Clause */
/* No wake is lost. A sleeper on a vector's park (1) announces itself: sleeper_count + 1, (2) clears its doorbell bit,
 * (3) looks at its condition, (4) sleeps unless the park's epoch has moved since before (1). A ringer (a) writes, (b)
 * sets the bit, (c) loads sleeper_count and, if somebody sleeps, moves the epoch and wakes. (2) and (b) are atomic
 * read-modify-writes of one word, so they stand in one order:
 *   - (b) before (2): (2) reads what (b) wrote, or what a later operation in the chain wrote, and acquires: (3) sees
 * (a).
 *   - (2) before (b): (b) acquires, so (c) sees (1). Either the sleeper has not slept yet, and the moved epoch keeps it
 *     from sleeping, or it sleeps and is woken.
 * (c) is left out only where the bit is masked or marked delivered. The mark stands only if (c) was done by a ringer
 * after the last clear: the mark is set by an exchange that fails if bits were cleared since the ringer's (b), and each
 * clear removes it. So a marked bit at (b) means that (2) of a sleeper that still has to be woken comes after (b):
 * first case. The mask is settled by order too: a ringer sets the bit and then loads the mask, unmask changes the mask
 * and then loads the bits, all of them sequentially consistent: at least one of both sees the other and wakes.
 *
 * A ringer killed between (b) and (c) leaves a bit that is set and not marked, so the next ring wakes in its stead:
 * that is why a bit found set is not reason enough to leave out (c).
 */
#include "port/emulated/opening.h"

#include "base/assert.h"

#define STRIDE_SHIFT 32
#define NO_EXTENT    (UINT64_MAX / 2 + 1) /* more than any memory has */

/* NO_EXTENT of what quoit_port_set_vector() refuses: registers that a hostile process wrote wake nothing. */
static uint64_t vector_extent(uint64_t second)
{
    uint64_t stride = second >> STRIDE_SHIFT, count = (uint32_t)second;
    if (count == 0)
        return 0;
    if (stride % _Alignof(struct quoit_park) != 0 || (count > 1 && stride < sizeof(struct quoit_park)) ||
        count > UINT64_MAX / 2 / (stride + 1))
        return NO_EXTENT;
    return (count - 1) * stride + sizeof(struct quoit_park);
}

/* Of the link's vector. The owner of a shared ring, which cuts links, wakes by a client's: each park more would be a
 * page of the client's memory that the owner takes. */
static uint64_t link_extent(uint64_t second)
{
    return (uint32_t)second > 1 ? NO_EXTENT : vector_extent(second);
}

/* True if some thread was asleep. */
static inline bool wake_parks(char *base, uint64_t second)
{
    uint64_t stride = second >> STRIDE_SHIFT, count = (uint32_t)second;
    bool was_asleep = false;
    if ((uintptr_t)base % _Alignof(struct quoit_park) != 0)
        return false;
    for (uint64_t i = 0; i < count; i++) {
        struct quoit_park *park = (struct quoit_park *)(void *)(base + i * stride);
        was_asleep |= atomic_load_explicit(&park->sleeper_count, memory_order_relaxed) != 0;
        quoit_park_wake(park);
    }
    return was_asleep;
}

/* The interrupt wire: wakes the parks of the peer's vector in the peer's memory. */
static inline bool interrupt_peer(struct quoit_emulated_port *port, uint32_t bit,
                                  uint64_t (*extent_of)(uint64_t second))
{
    struct quoit_emulated_pair *pair = &port->peer->vector[bit];
    struct quoit_emulated_range range;
    for (uint32_t look = 0; look < QUOIT_EMULATED_LOOKS; look++) {
        uint64_t current = atomic_load_explicit(&pair->current, memory_order_acquire);
        if (current == 0)
            return false;
        if (quoit_emulated_view_read(port->vector_view[bit], current, &range))
            return wake_parks(range.base, range.second);
        quoit_emulated_view_refresh(port, pair, port->vector_view[bit], extent_of);
    }
    return false;
}

static void interrupt_own(struct quoit_emulated_port *port, uint32_t bit, uint64_t (*extent_of)(uint64_t second))
{
    uint64_t current, offset, second, memory_bytes = port->port.memory.bytes;
    if (!quoit_emulated_pair_get(&port->own->vector[bit], &current, &offset, &second))
        return;
    uint64_t bytes = extent_of(second);
    if (bytes != 0 && bytes <= memory_bytes && offset <= memory_bytes - bytes)
        wake_parks((char *)port->port.memory.base + offset, second);
}

void quoit_emulated_announce_link(struct quoit_emulated_port *port)
{
    interrupt_peer(port, QUOIT_EMULATED_VECTOR_LINK, link_extent);
    interrupt_own(port, QUOIT_EMULATED_VECTOR_LINK, link_extent);
}

static void mark_delivered(struct quoit_emulated_side *side, uint64_t seen, uint64_t bits)
{
    uint64_t word = atomic_load_explicit(&side->doorbell, memory_order_relaxed);
    do {
        if (word >> QUOIT_EMULATED_CLEARED_SHIFT != seen >> QUOIT_EMULATED_CLEARED_SHIFT)
            return;
    } while (!atomic_compare_exchange_weak(&side->doorbell, &word, word | bits << QUOIT_EMULATED_DELIVERED_SHIFT));
}

bool quoit_emulated_ring(struct quoit_port *port, uint64_t bits)
{
    struct quoit_emulated_port *self = quoit_emulated_port_of(port);
    if (!self->is_plain && self->queue == NULL)
        quoit_emulated_delay(self->knobs.doorbell_latency_ns);
    uint64_t state = quoit_emulated_sending_state(self);
    if (!quoit_emulated_is_up(state)) {
        quoit_emulated_queue_lose(self);
        return false;
    }
    if (__builtin_expect((state & QUOIT_EMULATED_DYING) != 0, 0))
        return true;
    if (self->queue != NULL)
        quoit_emulated_post_ring(self, state, bits);
    else
        quoit_emulated_ring_now(self, bits);
    return true;
}

void quoit_emulated_ring_now(struct quoit_emulated_port *self, uint64_t bits)
{
    struct quoit_emulated_side *peer = self->peer;
    uint64_t seen = atomic_fetch_or(&peer->doorbell, bits);
    uint64_t due = bits & ~(seen >> QUOIT_EMULATED_DELIVERED_SHIFT) & atomic_load(&peer->unmasked_bits);
    uint64_t delivered = 0;
    for (uint64_t left = due; left != 0; left &= left - 1) {
        uint32_t bit = (uint32_t)__builtin_ctzll(left);
        if (interrupt_peer(self, bit, vector_extent))
            delivered |= (uint64_t)1 << bit;
    }
    if (delivered != 0) /* no sleeper: the next ringer has nothing to save, so no second exchange is paid */
        mark_delivered(peer, seen, delivered);
}

uint64_t quoit_emulated_doorbell_read(struct quoit_port *port)
{
    struct quoit_emulated_port *self = quoit_emulated_port_of(port);
    return atomic_load(&self->own->doorbell) & QUOIT_EMULATED_BITS;
}

void quoit_emulated_doorbell_clear(struct quoit_port *port, uint64_t bits)
{
    struct quoit_emulated_side *own = quoit_emulated_port_of(port)->own;
    uint64_t gone = bits | bits << QUOIT_EMULATED_DELIVERED_SHIFT;
    uint64_t word = atomic_load_explicit(&own->doorbell, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&own->doorbell, &word, (word & ~gone) + QUOIT_EMULATED_CLEARED_ONE))
        ;
}

void quoit_emulated_doorbell_set_mask(struct quoit_port *port, uint64_t bits, bool is_masked)
{
    struct quoit_emulated_port *self = quoit_emulated_port_of(port);
    if (is_masked) {
        atomic_fetch_and(&self->own->unmasked_bits, ~bits);
        return;
    }
    atomic_fetch_or(&self->own->unmasked_bits, bits);
    for (uint64_t left = bits & atomic_load(&self->own->doorbell); left != 0; left &= left - 1)
        interrupt_own(self, (uint32_t)__builtin_ctzll(left), vector_extent);
}

void quoit_emulated_set_vector(struct quoit_port *port, uint32_t bit, const struct quoit_port_vector *vector)
{
    struct quoit_emulated_port *self = quoit_emulated_port_of(port);
    if (bit >= QUOIT_VECTOR_DMA(0)) {
        quoit_emulated_dma_set_vector(self, bit - QUOIT_VECTOR_DMA(0), vector);
        return;
    }
    uint32_t index = bit == QUOIT_VECTOR_LINK ? QUOIT_EMULATED_VECTOR_LINK : bit;
    quoit_assert(index < QUOIT_EMULATED_VECTOR_COUNT);
    uint64_t second = vector->park_count == 0 ? 0 : (uint64_t)vector->park_stride << STRIDE_SHIFT | vector->park_count;
    quoit_emulated_pair_set(&self->own->vector[index], 0, vector->park_offset, second);
}
