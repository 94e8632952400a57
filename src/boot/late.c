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
    int error = 0;
    pthread_mutex_lock(&late->mutex);
    while (!late->is_over && error != ETIMEDOUT)
        error = pthread_cond_timedwait(&late->ended, &late->mutex, &until);
    if (!late->is_over)
        quoit_say("warning: PE 0 has waited %.1f s in shmem_init for PEs that have not called it; it goes on waiting "
                  "[Q0316]",
                  (double)late->limit_ns / 1e9);
    pthread_mutex_unlock(&late->mutex);
    return NULL;
}

void quoit_late_begin(struct quoit_late *late, uint64_t limit_ns)
{
    pthread_condattr_t attributes;
    sigset_t before;
    late->limit_ns = limit_ns;
    late->is_over = false;
    pthread_mutex_init(&late->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&late->ended, &attributes);
    pthread_condattr_destroy(&attributes);
    quoit_signals_block(&before);
    late->has_thread = pthread_create(&late->thread, NULL, run, late) == 0;
    quoit_signals_restore(&before);
}

void quoit_late_end(struct quoit_late *late)
{
    pthread_mutex_lock(&late->mutex);
    late->is_over = true;
    pthread_cond_signal(&late->ended);
    pthread_mutex_unlock(&late->mutex);
    if (late->has_thread)
        pthread_join(late->thread, NULL);
    pthread_cond_destroy(&late->ended);
    pthread_mutex_destroy(&late->mutex);
}
