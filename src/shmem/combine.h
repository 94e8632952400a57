/* SPDX-License-Identifier: BSD-3-Clause */
/* combine.h - into[i] = into[i] OP from[i], one function per operation and type: quoit_<op>_<name>. */
#ifndef QUOIT_SHMEM_COMBINE_H
#define QUOIT_SHMEM_COMBINE_H

#include "shmem/api.h"

#define X(N, T) quoit_combine quoit_and_##N, quoit_or_##N, quoit_xor_##N;
QUOIT_REDUCE_BITWISE_TYPES(X)
QUOIT_TO_ALL_BITWISE_TYPES(X)
#undef X
#define X(N, T) quoit_combine quoit_min_##N, quoit_max_##N;
QUOIT_REDUCE_ORDERED_TYPES(X)
#undef X
#define X(N, T) quoit_combine quoit_sum_##N, quoit_prod_##N;
QUOIT_REDUCE_ARITHMETIC_TYPES(X)
#undef X

#endif
