/* SPDX-License-Identifier: BSD-3-Clause */
/* local.h - the engine for PEs of the same host: their segments are mapped, so a put is a copy and an atomic is one
 * instruction; above the plain size, copies use the methods of local/paths.h.
 *
 * Every operation is complete when it returns. fabric issues the processor fences that quiet and fence need.
 */
#ifndef QUOIT_ENGINE_LOCAL_LOCAL_H
#define QUOIT_ENGINE_LOCAL_LOCAL_H

#include "engine/engine.h"
#include "local/paths.h"

QUOIT_MUST_USE enum quoit_status quoit_engine_local_open(struct quoit_self *self, const struct quoit_paths *paths,
                                                         struct quoit_engine **engine_out);

#endif
