/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/emulated/opening.h"

#include "env/clock.h"
#include "env/primitives.h"
#include "env/wait.h"

#define NS_PER_S       1000000000u
#define SLEEP_FROM_NS  200000u /* shorter waits yield: a sleep ends up to 60 us late */
#define SLEEP_EARLY_NS 100000u
#define BURST_BYTES    32768u
#define SHORT_BYTES    4096u
#define AHEAD_NS       200000u     /* a sender that sleeps until half of it is sent is awake in time */
#define RECENT_NS      50000u      /* a share that sent so lately has more to send */
#define DUE_NS_MAX     1000000000u /* further ahead is no time that a share wrote: a wire is writable by all who use it */
#define LATE_NS_MAX    4000000u    /* about a turn of another program on the processor */
#define AWAY_NS_MAX    200000u     /* a sender that stays away for longer has nothing to send */

void quoit_emulated_wait_until(uint64_t deadline_ns, uint64_t sleep_from_ns, uint64_t sleep_early_ns)
{
    for (;;) {
        uint64_t now_ns = quoit_clock_now_ns();
        if (now_ns >= deadline_ns)
            return;
        if (QUOIT_HAS_PRIMITIVES && quoit_primitives->ends_sleeps_in_time)
            quoit_clock_sleep_ns(deadline_ns - now_ns);
        else if (deadline_ns - now_ns > sleep_from_ns)
            quoit_clock_sleep_ns(deadline_ns - now_ns - sleep_early_ns);
        else
            quoit_wait_yield();
    }
}

void quoit_emulated_delay(uint64_t duration_ns)
{
    if (duration_ns != 0)
        quoit_emulated_wait_until(quoit_clock_now_ns() + duration_ns, SLEEP_FROM_NS, SLEEP_EARLY_NS);
}

/* A sender that waited for the wire woke late, or is still behind what the wire could have sent since: it may make good
 * for that, within bounds. A sender that did something else has lost its time, as on a real wire. */
static void set_late(struct quoit_emulated_port *port, uint64_t now_ns, uint64_t free_ns)
{
    uint64_t late_ns = now_ns > free_ns ? now_ns - free_ns : 0;
    atomic_store_explicit(&port->late_ns, late_ns < LATE_NS_MAX ? late_ns : LATE_NS_MAX, memory_order_relaxed);
    atomic_store_explicit(&port->left_ns, now_ns, memory_order_relaxed);
}

/* The time from which on a sender that comes now may use the wire. */
static uint64_t usable_from(const struct quoit_emulated_port *port, uint64_t now_ns)
{
    uint64_t left_ns = atomic_load_explicit(&port->left_ns, memory_order_relaxed);
    return now_ns - left_ns < AWAY_NS_MAX ? now_ns - atomic_load_explicit(&port->late_ns, memory_order_relaxed)
                                          : now_ns;
}

static uint64_t duration_ns_of(const struct quoit_emulated_port *port, uint64_t bytes)
{
    return (uint64_t)((unsigned __int128)bytes * NS_PER_S / port->knobs.rate_bytes_per_s);
}

/* Adds to what is taken already; returns when all of it will have been sent. No more than most_ns is taken already. */
static uint64_t take(_Atomic uint64_t *free_ns, uint64_t now_ns, uint64_t duration_ns, uint64_t most_ns)
{
    uint64_t before_ns = atomic_load_explicit(free_ns, memory_order_relaxed);
    uint64_t end_ns;
    do {
        end_ns = (before_ns > now_ns && before_ns - now_ns < most_ns ? before_ns : now_ns) + duration_ns;
    } while (!atomic_compare_exchange_weak_explicit(free_ns, &before_ns, end_ns, memory_order_relaxed,
                                                    memory_order_relaxed));
    return end_ns;
}

/* What a client wrote, in its bounds. */
static struct quoit_port_part part_of(const struct quoit_emulated_port *port, uint32_t share)
{
    uint32_t word = atomic_load_explicit(&port->wire->side[port->side].parts[share], memory_order_relaxed);
    struct quoit_port_part part = {.percent = word >> 16, .weight = word & 0xffff};
    part.percent = part.percent < 100 ? part.percent : 99;
    part.weight = part.weight == 0 || part.weight > 100 ? 100 : part.weight;
    return part;
}

/* How long the share's part needs for what the whole wire sends in duration_ns, while the other shares that have
 * something to send do so. */
static uint64_t stretch(const struct quoit_emulated_port *port, uint64_t duration_ns, uint64_t now_ns,
                        uint64_t recent_ns)
{
    const struct quoit_port_part own = part_of(port, port->share);
    uint64_t percents = 0, weights = 0;
    for (uint32_t share = 0; share < QUOIT_PORT_SHARES_MAX; share++) {
        uint64_t due_ns = atomic_load_explicit(&port->wire->side[port->side].due_ns[share], memory_order_relaxed);
        bool is_sending = due_ns != 0 && due_ns + recent_ns > now_ns && due_ns < now_ns + DUE_NS_MAX;
        if (share != port->share && !is_sending)
            continue;
        const struct quoit_port_part part = part_of(port, share);
        percents += part.percent;
        weights += part.percent != 0 ? 0 : part.weight;
    }
    uint64_t whole = weights != 0 && percents < 100 ? 100 : percents; /* without weights nobody is there for the rest */
    if (own.percent != 0)
        return duration_ns * whole / own.percent;
    uint64_t rest = percents < 100 ? 100 - percents : 1;
    return duration_ns * 100 / rest * weights / own.weight;
}

/* When this opening's part of the wire has sent all that it took. */
static _Atomic uint64_t *due_of(struct quoit_emulated_port *port)
{
    return port->wire != NULL ? &port->wire->side[port->side].due_ns[port->share] : &port->own->wire_free_ns;
}

void quoit_emulated_has_waited(struct quoit_emulated_port *port)
{
    if (port->knobs.rate_bytes_per_s != 0)
        set_late(port, quoit_clock_now_ns(), atomic_load_explicit(due_of(port), memory_order_relaxed));
}

/* Whether a write passes what other shares have taken of the wire: it is short, and so is all that its own share has
 * taken or is late with. */
static bool is_passing(const struct quoit_emulated_port *port, uint64_t bytes, uint64_t now_ns, uint64_t from_ns,
                       uint64_t due_ns)
{
    const uint64_t short_ns = duration_ns_of(port, SHORT_BYTES);
    return bytes <= SHORT_BYTES && due_ns < now_ns + short_ns && now_ns < from_ns + short_ns;
}

/* A share takes the wire only when its own part has sent what it took before, but for what it may be ahead: so no share
 * stands in the wire's queue with more than that. On a real wire the packets of shares alternate, so a short write
 * arrives when the share's part has sent it, and not behind all that stands there. The wire is taken for it as for all:
 * what follows pays, so nothing but what stood there can arrive beyond the rate. */
static uint64_t take_part(struct quoit_emulated_port *port, uint64_t bytes)
{
    const uint64_t burst_ns = duration_ns_of(port, BURST_BYTES), duration_ns = duration_ns_of(port, bytes);
    const uint64_t ahead_ns = burst_ns > AHEAD_NS ? burst_ns : AHEAD_NS;
    const uint64_t recent_ns = burst_ns > RECENT_NS ? burst_ns : RECENT_NS;
    _Atomic uint64_t *due = due_of(port);
    uint64_t now_ns = quoit_clock_now_ns();
    uint64_t due_ns = atomic_load_explicit(due, memory_order_relaxed);
    if (due_ns > now_ns + ahead_ns && due_ns < now_ns + DUE_NS_MAX) {
        quoit_emulated_wait_until(due_ns - ahead_ns / 2, 0, 0);
        now_ns = quoit_clock_now_ns();
        set_late(port, now_ns, due_ns);
    }
    const uint64_t from_ns = usable_from(port, now_ns);
    uint64_t own_ns = stretch(port, duration_ns, now_ns, recent_ns);
    own_ns = own_ns < DUE_NS_MAX / 2 ? own_ns : DUE_NS_MAX / 2;
    const uint64_t own_end_ns = take(due, from_ns, own_ns, DUE_NS_MAX);
    set_late(port, now_ns, own_end_ns);
    const uint64_t end_ns = take(&port->wire->side[port->side].free_ns, from_ns, duration_ns, DUE_NS_MAX);
    return own_end_ns < end_ns && is_passing(port, bytes, now_ns, from_ns, due_ns) ? own_end_ns : end_ns;
}

static uint64_t take_whole(struct quoit_emulated_port *port, uint64_t bytes)
{
    uint64_t now_ns = quoit_clock_now_ns();
    uint64_t end_ns = take(due_of(port), usable_from(port, now_ns), duration_ns_of(port, bytes), UINT64_MAX);
    set_late(port, now_ns, end_ns);
    return end_ns;
}

uint64_t quoit_emulated_take_wire(struct quoit_emulated_port *port, uint64_t bytes)
{
    if (port->knobs.rate_bytes_per_s == 0)
        return quoit_clock_now_ns();
    return port->wire != NULL ? take_part(port, bytes) : take_whole(port, bytes);
}

void quoit_emulated_pace(struct quoit_emulated_port *port, uint64_t bytes, bool may_sleep)
{
    if (port->knobs.rate_bytes_per_s == 0)
        return;
    uint64_t end_ns = quoit_emulated_take_wire(port, bytes);
    quoit_emulated_wait_until(end_ns, may_sleep ? 0 : SLEEP_FROM_NS, may_sleep ? 0 : SLEEP_EARLY_NS);
    set_late(port, quoit_clock_now_ns(), end_ns);
}
