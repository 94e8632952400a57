/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/stopwatch.h"

void quoit_stopwatch_start(struct quoit_stopwatch *watch, uint64_t now_ns)
{
    *watch = (struct quoit_stopwatch){.mark_ns = now_ns, .read_ns = now_ns};
}

static uint64_t counted(const struct quoit_stopwatch *watch, uint64_t now_ns, uint64_t expected_ns)
{
    uint64_t took_ns = now_ns - watch->mark_ns;
    if (watch->is_held)
        return 0;
    return expected_ns != UINT64_MAX && took_ns > expected_ns + QUOIT_STOPWATCH_SLACK_NS
               ? expected_ns + QUOIT_STOPWATCH_SLACK_NS
               : took_ns;
}

void quoit_stopwatch_mark(struct quoit_stopwatch *watch, uint64_t now_ns, uint64_t expected_ns)
{
    watch->read_ns += counted(watch, now_ns, expected_ns);
    watch->mark_ns = now_ns;
}

void quoit_stopwatch_hold(struct quoit_stopwatch *watch, uint64_t now_ns, bool is_held)
{
    if (watch->is_held == is_held)
        return;
    quoit_stopwatch_mark(watch, now_ns, 0);
    watch->is_held = is_held;
}

uint64_t quoit_stopwatch_read(const struct quoit_stopwatch *watch, uint64_t now_ns)
{
    return watch->read_ns + counted(watch, now_ns, 0);
}
