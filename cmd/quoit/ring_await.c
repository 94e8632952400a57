/* SPDX-License-Identifier: BSD-3-Clause */
/* What is waited for while a ring starts or is asked: who does nothing is named, not given up by the clock. */
#include "ring.h"

#include <stdio.h>

#include "base/log.h"
#include "env/clock.h"

enum quoit_await_verdict ring_await_look(struct ring_await *await, uint64_t key, pid_t pid, uint64_t hang_ns,
                                         int *wait_ms_out)
{
    uint64_t now_ns = quoit_clock_now_ns(), next_ns;
    enum quoit_await_verdict verdict = QUOIT_AWAIT_GOES_ON;
    if (quoit_await_is_due(&await->await, key, RING_REPORT_NS, now_ns, &next_ns)) {
        struct quoit_await_view view = {.is_idle = true};
        uint64_t before_ns = await->process.busy_ns;
        (void)quoit_process_look(pid, &await->process);
        quoit_await_add(&view, &await->process, before_ns);
        verdict = quoit_await_step(&await->await, &view, hang_ns, now_ns);
        next_ns = now_ns + QUOIT_AWAIT_LOOK_NS;
    }
    *wait_ms_out = (int)((next_ns - now_ns) / 1000000) + 1;
    return verdict;
}

void ring_await_describe(const struct ring_await *await, const char *who, pid_t pid, char text_out[RING_SILENCE_BYTES])
{
    char cure[48] = "";
    if (await->process.state == 'T')
        snprintf(cure, sizeof cure, "\n  kill -CONT %d", (int)pid);
    snprintf(text_out, RING_SILENCE_BYTES, "still waiting for %s (process %d), after %llu s: %s%s [Q0246]", who,
             (int)pid, (unsigned long long)((quoit_clock_now_ns() - await->await.since_ns) / 1000000000u),
             quoit_await_state_text(&await->process), cure);
}
