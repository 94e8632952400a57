/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.h - monotonic time in nanoseconds. Any thread. */
#ifndef QUOIT_ENV_CLOCK_H
#define QUOIT_ENV_CLOCK_H

#include <stdint.h>

uint64_t quoit_clock_now_ns(void);

/* Sleeps at least `duration_ns`; a signal does not shorten it. */
void quoit_clock_sleep_ns(uint64_t duration_ns);

#endif
