/* SPDX-License-Identifier: BSD-3-Clause */
/* barrier.h - the library's own barrier of all PEs. Collective; called without the library's lock. */
#ifndef QUOIT_DSM_BARRIER_H
#define QUOIT_DSM_BARRIER_H

#include "dsm/state.h"

void quoit_dsm_barrier(struct quoit_dsm *dsm);

#endif
