/* SPDX-License-Identifier: BSD-3-Clause */
/* api.h - how the routines of shmem.h are defined: strong under pshmem_NAME, weak under shmem_NAME. */
#ifndef QUOIT_SHMEM_API_H
#define QUOIT_SHMEM_API_H

#define QUOIT_WITHOUT_GENERICS
#include <shmem.h>

#include "shmem/job.h"

/* Followed by the body. */
#define QUOIT_API(RETURN, NAME, PARAMETERS)                                                                            \
    __attribute__((weak, alias("pshmem_" #NAME))) RETURN shmem_##NAME PARAMETERS;                                      \
    RETURN pshmem_##NAME PARAMETERS

#define QUOIT_INLINE static inline __attribute__((always_inline))

#endif
