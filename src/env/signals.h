/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QUOIT_ENV_SIGNALS_H
#define QUOIT_ENV_SIGNALS_H
/* Signals are for the threads of the program. A thread that is started between the two, by this library or by one that
 * it calls, takes none. For the calling thread alone; no errors. */
#include <pthread.h>
#include <signal.h>

static inline void quoit_signals_block(sigset_t *before_out)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, before_out);
}

/* `before`: as quoit_signals_block gave it. */
static inline void quoit_signals_restore(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

#endif
