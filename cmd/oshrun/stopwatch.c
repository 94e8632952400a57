/* SPDX-License-Identifier: BSD-3-Clause */
#include "stopwatch.h"

void stopwatch_start(struct stopwatch *watch, uint64_t now_ns)
{
    *watch = (struct stopwatch){.mark_ns = now_ns, .read_ns = now_ns};
}

static uint64_t counted(const struct stopwatch *watch, uint64_t now_ns, uint64_t expected_ns)
{
    uint64_t took_ns = now_ns - watch->mark_ns;
    if (watch->is_held)
        return 0;
    return expected_ns != UINT64_MAX && took_ns > expected_ns + STOPWATCH_SLACK_NS ? expected_ns + STOPWATCH_SLACK_NS
                                                                                   : took_ns;
}

void stopwatch_mark(struct stopwatch *watch, uint64_t now_ns, uint64_t expected_ns)
{
    watch->read_ns += counted(watch, now_ns, expected_ns);
    watch->mark_ns = now_ns;
}

void stopwatch_hold(struct stopwatch *watch, uint64_t now_ns, bool is_held)
{
    if (watch->is_held == is_held)
        return;
    stopwatch_mark(watch, now_ns, 0);
    watch->is_held = is_held;
}

uint64_t stopwatch_read(const struct stopwatch *watch, uint64_t now_ns)
{
    return watch->read_ns + counted(watch, now_ns, 0);
}
