/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/prng.h"
#include "port/emulated/opening.h"

#define DYING_NS_MAX 100000u /* from a cut to when both ends see it */

/* One exchange is the whole change: a process that sees the new state sees everything wiped with it. */
static void change_link(struct quoit_emulated_port *port, uint64_t set_flags, uint64_t clear_flags)
{
    uint64_t old = atomic_load(&port->link->state), new;
    do {
        new = (old & ~clear_flags) | set_flags;
        if (quoit_emulated_is_up(new) && !quoit_emulated_is_up(old))
            new += (uint64_t)1 << QUOIT_EMULATED_EPOCH_SHIFT;
    } while (!atomic_compare_exchange_weak(&port->link->state, &old, new));
    if (quoit_emulated_is_up(new) != quoit_emulated_is_up(old))
        quoit_emulated_announce_link(port);
}

void quoit_emulated_link_enable(struct quoit_port *port, bool is_enabled)
{
    struct quoit_emulated_port *self = quoit_emulated_port_of(port);
    uint64_t flag = QUOIT_EMULATED_ENABLED(self->side);
    change_link(self, is_enabled ? flag : 0, is_enabled ? 0 : flag);
}

/* The cable is cut before either end detects it: writes from now on are posted, and lost. */
static void begin_dying(struct quoit_emulated_port *port)
{
    uint64_t old = atomic_load(&port->link->state);
    do {
        if (!quoit_emulated_is_up(old))
            return;
    } while (!atomic_compare_exchange_weak(&port->link->state, &old, old | QUOIT_EMULATED_DYING));
    struct quoit_prng chance = {.state = quoit_emulated_epoch(old)};
    quoit_emulated_delay(quoit_prng_choose(&chance, DYING_NS_MAX));
}

void quoit_emulated_link_cut(struct quoit_port *port, bool is_cut)
{
    struct quoit_emulated_port *self = quoit_emulated_port_of(port);
    if (is_cut && self->is_posted)
        begin_dying(self);
    change_link(self, is_cut ? QUOIT_EMULATED_CUT : 0, is_cut ? QUOIT_EMULATED_DYING : QUOIT_EMULATED_CUT);
}

bool quoit_emulated_link_is_up(const struct quoit_port *port)
{
    return quoit_emulated_is_up(quoit_emulated_state(quoit_emulated_port_of(port)->link));
}

uint32_t quoit_emulated_link_epoch(const struct quoit_port *port)
{
    return quoit_emulated_epoch(quoit_emulated_state(quoit_emulated_port_of(port)->link));
}

enum quoit_status quoit_emulated_bind(struct quoit_port *port, uint32_t epoch)
{
    struct quoit_emulated_port *self = quoit_emulated_port_of(port);
    uint64_t state = quoit_emulated_state(self->link);
    if (!quoit_emulated_is_up(state) || quoit_emulated_epoch(state) != epoch)
        return QUOIT_LINK_DOWN;
    quoit_emulated_queue_lose(self);
    atomic_store_explicit(&self->bound_state, state & ~QUOIT_EMULATED_DYING, memory_order_relaxed);
    return QUOIT_OK;
}

uint32_t quoit_emulated_scratchpad_read(struct quoit_port *port, uint32_t index)
{
    struct quoit_emulated_port *self = quoit_emulated_port_of(port);
    uint64_t word =
        atomic_load_explicit(&self->own->scratchpad[index], memory_order_acquire); /* pairs with peer_write */
    return (uint32_t)(word >> 32) == quoit_emulated_outage_count(quoit_emulated_state(self->link)) ? (uint32_t)word : 0;
}

void quoit_emulated_scratchpad_peer_write(struct quoit_port *port, uint32_t index, uint32_t value)
{
    struct quoit_emulated_port *self = quoit_emulated_port_of(port);
    uint64_t state = quoit_emulated_sending_state(self);
    if (!quoit_emulated_is_up(state) || (state & QUOIT_EMULATED_DYING))
        return; /* it is lost in flight */
    if (self->queue != NULL)
        quoit_emulated_post_scratchpad(self, state, index, value);
    else
        quoit_emulated_scratchpad_now(self, state, index, value);
}

void quoit_emulated_scratchpad_now(struct quoit_emulated_port *port, uint64_t state, uint32_t index, uint32_t value)
{
    atomic_store_explicit(&port->peer->scratchpad[index], (uint64_t)quoit_emulated_outage_count(state) << 32 | value,
                          memory_order_release);
}
