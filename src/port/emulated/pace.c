/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/emulated/opening.h"

#include <sched.h>

#include "env/clock.h"

#define NS_PER_S       1000000000u
#define SLEEP_FROM_NS  200000u /* shorter waits yield: a sleep ends up to 60 us late */
#define SLEEP_EARLY_NS 100000u

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

uint64_t quoit_emulated_take_wire(struct quoit_emulated_port *port, uint64_t bytes)
{
    if (port->knobs.rate_bytes_per_s == 0)
        return quoit_clock_now_ns();
    uint64_t duration_ns = (uint64_t)((unsigned __int128)bytes * NS_PER_S / port->knobs.rate_bytes_per_s);
    uint64_t now_ns = quoit_clock_now_ns();
    uint64_t free_ns = atomic_load_explicit(&port->own->wire_free_ns, memory_order_relaxed);
    uint64_t end_ns;
    do {
        end_ns = (free_ns > now_ns ? free_ns : now_ns) + duration_ns;
    } while (!atomic_compare_exchange_weak_explicit(&port->own->wire_free_ns, &free_ns, end_ns, memory_order_relaxed,
                                                    memory_order_relaxed));
    return end_ns;
}

void quoit_emulated_pace(struct quoit_emulated_port *port, uint64_t bytes)
{
    if (port->knobs.rate_bytes_per_s != 0)
        wait_until(quoit_emulated_take_wire(port, bytes));
}
