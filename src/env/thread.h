/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QUOIT_ENV_THREAD_H
#define QUOIT_ENV_THREAD_H
/* What an error of pthread_create means: EAGAIN is a limit that the user can raise. */
#include "base/status.h"

#include <errno.h>

static inline enum quoit_status quoit_thread_status(int error)
{
    return error == 0 ? QUOIT_OK : error == EAGAIN ? QUOIT_NO_THREAD : QUOIT_SYSTEM;
}

#endif
