/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/await.h"

#define BUSY_SHARE 4u /* a process that uses less than this part of a processor only looks whether others have come */

bool quoit_await_is_due(struct quoit_await *await, uint64_t key, uint64_t report_ns, uint64_t now_ns,
                        uint64_t *next_ns_out)
{
    if (key != await->key)
        *await =
            (struct quoit_await){.key = key, .since_ns = now_ns, .looked_ns = now_ns, .report_ns = now_ns + report_ns};
    *next_ns_out = key ? await->looked_ns + QUOIT_AWAIT_LOOK_NS : UINT64_MAX;
    return key && now_ns >= *next_ns_out;
}

void quoit_await_add(struct quoit_await_view *view, const struct quoit_process *process, uint64_t before_ns)
{
    uint64_t busy_ns = process->busy_ns > before_ns ? process->busy_ns - before_ns : 0;
    view->is_idle &= process->state == 0 || process->state == 'S' || process->state == 'I';
    view->busy_ns = busy_ns > view->busy_ns ? busy_ns : view->busy_ns;
}

enum quoit_await_verdict quoit_await_step(struct quoit_await *await, const struct quoit_await_view *view,
                                          uint64_t hang_ns, uint64_t now_ns)
{
    uint64_t look_ns = now_ns - await->looked_ns;
    if (view->busy_ns > look_ns / BUSY_SHARE)
        await->idle_ns = 0;
    else if (view->is_idle) /* of a caller that was stopped itself, or starved, no more than one look counts */
        await->idle_ns += look_ns < 2ull * QUOIT_AWAIT_LOOK_NS ? look_ns : QUOIT_AWAIT_LOOK_NS;
    await->looked_ns = now_ns;
    if (await->idle_ns >= hang_ns)
        return QUOIT_AWAIT_HANGS;
    if (now_ns < await->report_ns)
        return QUOIT_AWAIT_GOES_ON;
    await->report_ns = now_ns + 2 * (now_ns - await->since_ns);
    return QUOIT_AWAIT_REPORT;
}

const char *quoit_await_state_text(const struct quoit_process *process)
{
    switch (process->state) {
    case 'T':
        return "it is stopped by a signal (SIGCONT continues it)";
    case 't':
        return "a debugger holds it";
    case 'R':
        return "it runs, or waits for a processor";
    case 'D':
        return "it waits for a disk or another device";
    case 'S':
    case 'I':
        return "it sleeps";
    case 'Z':
    case 'X':
        return "it ends";
    default:
        return "what it does cannot be seen";
    }
}
