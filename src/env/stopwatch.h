/* SPDX-License-Identifier: BSD-3-Clause */
/* stopwatch.h - the clock of every limit of oshrun, and of the agent under other launchers: monotonic time less the
 * time in which this process did not run, as after SIGSTOP, in a suspended machine or without a processor, and less the
 * time in which the job was stopped.
 *
 * The process says after each piece of work or sleep how long that was to take. What a piece takes beyond that and
 * QUOIT_STOPWATCH_SLACK_NS is not counted. A piece that ends early by an event counts for what it took. The reading
 * never goes back: in a piece of work, which is not to take any time, it advances by the slack at most.
 *
 * Pure: `now_ns` is the monotonic clock.
 */
#ifndef QUOIT_ENV_STOPWATCH_H
#define QUOIT_ENV_STOPWATCH_H

#include <stdbool.h>
#include <stdint.h>

#define QUOIT_STOPWATCH_SLACK_NS UINT64_C(250000000)

struct quoit_stopwatch {
    uint64_t mark_ns; /* of the monotonic clock: the end of the last piece */
    uint64_t read_ns; /* the reading then, and while it is held */
    bool is_held;
};

void quoit_stopwatch_start(struct quoit_stopwatch *watch, uint64_t now_ns);
/* A piece that was to take up to `expected_ns` (UINT64_MAX: any time) has ended. */
void quoit_stopwatch_mark(struct quoit_stopwatch *watch, uint64_t now_ns, uint64_t expected_ns);
/* Holds the reading, or lets it go on. */
void quoit_stopwatch_hold(struct quoit_stopwatch *watch, uint64_t now_ns, bool is_held);
uint64_t quoit_stopwatch_read(const struct quoit_stopwatch *watch, uint64_t now_ns);

#endif
