/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/clock.h"
#include "env/primitives.h"

#include <errno.h>
#include <time.h>

#define NS_PER_S 1000000000u

uint64_t quoit_clock_now_ns(void)
{
    if (QUOIT_HAS_PRIMITIVES)
        return quoit_primitives->now_ns();
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void quoit_clock_sleep_ns(uint64_t duration_ns)
{
    if (QUOIT_HAS_PRIMITIVES) {
        quoit_primitives->sleep_ns(duration_ns);
        return;
    }
    struct timespec left = {.tv_sec = (time_t)(duration_ns / NS_PER_S), .tv_nsec = (long)(duration_ns % NS_PER_S)};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        ;
}
