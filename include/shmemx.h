/* SPDX-License-Identifier: BSD-3-Clause */
/* shmemx.h - reserved for extensions of the specification. There are none. */
#ifndef QUOIT_SHMEMX_H
#define QUOIT_SHMEMX_H

#include <shmem.h>

#endif
