/* SPDX-License-Identifier: BSD-3-Clause */
/* local.h - the engine for PEs of the same host: their segments are mapped here, so a put is a copy and an atomic is
 * one of the processor; above the sizes that a table names, on the paths of local/paths.h.
 *
 * Everything is complete when it returns. What quiet and fence owe to it are processor fences, which fabric makes.
 */
#ifndef QUOIT_ENGINE_LOCAL_LOCAL_H
#define QUOIT_ENGINE_LOCAL_LOCAL_H

#include "engine/engine.h"
#include "local/paths.h"

QUOIT_MUST_USE enum quoit_status quoit_engine_local_open(struct quoit_self *self, const struct quoit_paths *paths,
                                                         struct quoit_engine **engine_out);

#endif
