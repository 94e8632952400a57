/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/emulated/opening.h"

#include <sched.h>

#include "env/clock.h"

#define NS_PER_S       1000000000u
#define SLEEP_FROM_NS  200000u /* shorter waits yield: a sleep ends up to 60 us late */
#define SLEEP_EARLY_NS 100000u
#define BURST_BYTES    32768u
#define DUE_NS_MAX     1000000000u

static void wait_until(uint64_t deadline_ns)
{
    for (;;) {
        uint64_t now_ns = quoit_clock_now_ns();
        if (now_ns >= deadline_ns)
            return;
        if (deadline_ns - now_ns > SLEEP_FROM_NS)
            quoit_clock_sleep_ns(deadline_ns - now_ns - SLEEP_EARLY_NS);
        else
            sched_yield();
    }
}

void quoit_emulated_delay(uint64_t duration_ns)
{
    if (duration_ns != 0)
        wait_until(quoit_clock_now_ns() + duration_ns);
}

static uint64_t duration_ns_of(const struct quoit_emulated_port *port, uint64_t bytes)
{
    return (uint64_t)((unsigned __int128)bytes * NS_PER_S / port->knobs.rate_bytes_per_s);
}

/* Adds to what is taken already; returns when all of it will have been sent. */
static uint64_t take(_Atomic uint64_t *free_ns, uint64_t now_ns, uint64_t duration_ns)
{
    uint64_t before_ns = atomic_load_explicit(free_ns, memory_order_relaxed);
    uint64_t end_ns;
    do {
        end_ns = (before_ns > now_ns ? before_ns : now_ns) + duration_ns;
    } while (!atomic_compare_exchange_weak_explicit(free_ns, &before_ns, end_ns, memory_order_relaxed,
                                                    memory_order_relaxed));
    return end_ns;
}

/* A share takes the wire only when its own part has sent what it took before, save BURST_BYTES: so no share stands in
 * the wire's queue with more than that. Its part is the rate by the number of shares that have something to send. */
static uint64_t take_part(struct quoit_emulated_port *port, uint64_t bytes)
{
    const uint64_t burst_ns = duration_ns_of(port, BURST_BYTES), duration_ns = duration_ns_of(port, bytes);
    _Atomic uint64_t *due = port->wire->side[port->side].due_ns;
    uint64_t now_ns = quoit_clock_now_ns(), part_count = 1;
    uint64_t due_ns = atomic_load_explicit(&due[port->share], memory_order_relaxed);
    if (due_ns > now_ns + burst_ns && due_ns < now_ns + DUE_NS_MAX) { /* more is no time that a share wrote */
        wait_until(due_ns - burst_ns);
        now_ns = quoit_clock_now_ns();
    }
    for (uint32_t share = 0; share < QUOIT_PORT_SHARES_MAX; share++)
        part_count +=
            share != port->share && atomic_load_explicit(&due[share], memory_order_relaxed) + burst_ns > now_ns;
    take(&due[port->share], now_ns, duration_ns * part_count);
    return take(&port->wire->side[port->side].free_ns, now_ns, duration_ns);
}

uint64_t quoit_emulated_take_wire(struct quoit_emulated_port *port, uint64_t bytes)
{
    if (port->knobs.rate_bytes_per_s == 0)
        return quoit_clock_now_ns();
    if (port->wire != NULL)
        return take_part(port, bytes);
    return take(&port->own->wire_free_ns, quoit_clock_now_ns(), duration_ns_of(port, bytes));
}

void quoit_emulated_pace(struct quoit_emulated_port *port, uint64_t bytes)
{
    if (port->knobs.rate_bytes_per_s != 0)
        wait_until(quoit_emulated_take_wire(port, bytes));
}
