/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/late.h"
#include "base/log.h"
#include "env/clock.h"
#include "env/signals.h"

#include <errno.h>
#include <time.h>

static void *run(void *arg)
{
    struct quoit_late *late = arg;
    uint64_t until_ns = quoit_clock_now_ns() + late->limit_ns;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
                                   .tv_nsec = (long)(until_ns % 1000000000u)};
    while (sem_clockwait(&late->is_over, CLOCK_MONOTONIC, &until) != 0)
        if (errno == ETIMEDOUT) {
            quoit_say(
                "warning: PE 0 has waited %.1f s in shmem_init for PEs that have not called it; it goes on waiting "
                "[Q0316]",
                (double)late->limit_ns / 1e9);
            break;
        }
    return NULL;
}

void quoit_late_begin(struct quoit_late *late, uint64_t limit_ns)
{
    sigset_t before;
    late->limit_ns = limit_ns;
    sem_init(&late->is_over, 0, 0);
    quoit_signals_block(&before);
    late->has_thread = pthread_create(&late->thread, NULL, run, late) == 0;
    quoit_signals_restore(&before);
}

void quoit_late_end(struct quoit_late *late)
{
    sem_post(&late->is_over);
    if (late->has_thread)
        pthread_join(late->thread, NULL);
    sem_destroy(&late->is_over);
}
