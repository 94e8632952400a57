/* SPDX-License-Identifier: BSD-3-Clause */
/* pshmem.h - the profiling interface (specification, section 10): a tool defines shmem_NAME and calls pshmem_NAME for
 * the work. shmem.h declares both, with their types and constants. */
#ifndef QUOIT_PSHMEM_H
#define QUOIT_PSHMEM_H

#include <shmem.h>

#endif
