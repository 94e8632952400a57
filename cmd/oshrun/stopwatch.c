/* SPDX-License-Identifier: BSD-3-Clause */
#include "stopwatch.h"

void stopwatch_start(struct stopwatch *watch, uint64_t now_ns)
{
    *watch = (struct stopwatch){.mark_ns = now_ns};
}

void stopwatch_mark(struct stopwatch *watch, uint64_t now_ns, uint64_t expected_ns)
{
    uint64_t took_ns = now_ns - watch->mark_ns;
    if (expected_ns != UINT64_MAX && took_ns > expected_ns + STOPWATCH_SLACK_NS)
        watch->lost_ns += took_ns - expected_ns;
    watch->mark_ns = now_ns;
}

void stopwatch_hold(struct stopwatch *watch, uint64_t now_ns, bool is_held)
{
    if (watch->is_held == is_held)
        return;
    if (is_held)
        watch->held_ns = stopwatch_read(watch, now_ns);
    else
        watch->lost_ns = now_ns - watch->held_ns;
    watch->is_held = is_held;
}

uint64_t stopwatch_read(const struct stopwatch *watch, uint64_t now_ns)
{
    return watch->is_held ? watch->held_ns : now_ns - watch->lost_ns;
}
