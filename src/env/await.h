/* SPDX-License-Identifier: BSD-3-Clause */
/* await.h - how long processes are waited for while a job starts and ends, whichever launcher waits.
 *
 * What counts is what the awaited processes do, not the clock. One that is stopped, that gets no processor or that
 * computes is waited for, and reported now and then. If none of them does anything though all could, for hang_ns, they
 * hang. Pure: no clock, no process; the caller looks at both, once per QUOIT_AWAIT_LOOK_NS.
 */
#ifndef QUOIT_ENV_AWAIT_H
#define QUOIT_ENV_AWAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "env/process.h"

#define QUOIT_AWAIT_LOOK_NS    1000000000u
#define QUOIT_AWAIT_HANG_TIMES 6u /* hang_ns in times of report_ns, by which all callers wait */

/* What the awaited processes have done since the last look. */
struct quoit_await_view {
    bool is_idle;     /* all of them sleep; what is not known counts as sleep */
    uint64_t busy_ns; /* most processor time of one */
};

/* All zero before the first step. */
struct quoit_await {
    uint64_t key;      /* of what is awaited; 0: nothing */
    uint64_t since_ns; /* when that began */
    uint64_t looked_ns;
    uint64_t report_ns; /* when to report */
    uint64_t idle_ns;   /* for how long all have done nothing */
};

enum quoit_await_verdict { QUOIT_AWAIT_GOES_ON, QUOIT_AWAIT_REPORT, QUOIT_AWAIT_HANGS };

/* Whether a look is due: something is awaited, and has been for the time of a look. key: differs whenever who is
 * awaited, or for what, does; 0: nobody. *next_ns_out: when to call again. */
bool quoit_await_is_due(struct quoit_await *await, uint64_t key, uint64_t report_ns, uint64_t now_ns,
                        uint64_t *next_ns_out);
/* Adds a process to the view, which begins as {.is_idle = true}. `process` all zero: not known. before_ns: its busy_ns
 * at the last look. */
void quoit_await_add(struct quoit_await_view *view, const struct quoit_process *process, uint64_t before_ns);
/* After the look. Reports come report_ns after the begin, and each time that the wait has become three times as long.
 */
enum quoit_await_verdict quoit_await_step(struct quoit_await *await, const struct quoit_await_view *view,
                                          uint64_t hang_ns, uint64_t now_ns);
/* "it is stopped", ... */
const char *quoit_await_state_text(const struct quoit_process *process);

#endif
