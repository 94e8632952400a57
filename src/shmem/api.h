/* SPDX-License-Identifier: BSD-3-Clause */
/* api.h - how the routines of shmem.h are defined: strong as pshmem_NAME, weak as shmem_NAME. */
#ifndef QUOIT_SHMEM_API_H
#define QUOIT_SHMEM_API_H

#define QUOIT_WITHOUT_GENERICS
#include <shmem.h>

#include "shmem/job.h"

/* Begins the definition of a routine; its body follows. */
#define QUOIT_API(RETURN, NAME, PARAMETERS)                                                                            \
    __attribute__((weak, alias("pshmem_" #NAME))) RETURN shmem_##NAME PARAMETERS;                                      \
    RETURN pshmem_##NAME PARAMETERS

#define QUOIT_INLINE static inline __attribute__((always_inline))

#endif
