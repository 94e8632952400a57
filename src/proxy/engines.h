/* SPDX-License-Identifier: BSD-3-Clause */
/* engines.h - the lane engine of each protocol, and the barrier of each kind. */
#ifndef QUOIT_PROXY_ENGINES_H
#define QUOIT_PROXY_ENGINES_H

#include "lane/engine.h"

const struct quoit_lane_engine *quoit_engine_of(enum quoit_protocol protocol);
/* NULL: barriers are left to the PEs. */
const struct quoit_lane_barrier *quoit_barrier_of(const struct quoit_job_config *job);

#endif
