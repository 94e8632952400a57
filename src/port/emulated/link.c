/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/emulated/opening.h"

/* One exchange is the whole change: who sees the new state sees everything wiped with it. */
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

void quoit_emulated_link_cut(struct quoit_port *port)
{
    change_link(quoit_emulated_port_of(port), QUOIT_EMULATED_CUT, 0);
}

void quoit_emulated_link_mend(struct quoit_port *port)
{
    change_link(quoit_emulated_port_of(port), 0, QUOIT_EMULATED_CUT);
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
    atomic_store_explicit(&self->bound_state, state, memory_order_relaxed);
    return QUOIT_OK;
}

uint32_t quoit_emulated_scratchpad_read(struct quoit_port *port, uint32_t index)
{
    struct quoit_emulated_port *self = quoit_emulated_port_of(port);
    uint64_t word =
        atomic_load_explicit(&self->own->scratchpad[index], memory_order_acquire); /* pairs with peer_write */
    return (uint32_t)(word >> 32) == quoit_emulated_era(quoit_emulated_state(self->link)) ? (uint32_t)word : 0;
}

void quoit_emulated_scratchpad_peer_write(struct quoit_port *port, uint32_t index, uint32_t value)
{
    struct quoit_emulated_port *self = quoit_emulated_port_of(port);
    uint64_t state = quoit_emulated_sending_state(self);
    if (!quoit_emulated_is_up(state))
        return; /* it is lost on the way */
    atomic_store_explicit(&self->peer->scratchpad[index], (uint64_t)quoit_emulated_era(state) << 32 | value,
                          memory_order_release);
}
