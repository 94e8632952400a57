/* SPDX-License-Identifier: BSD-3-Clause */
/* start.h - bringing up the two links of a host. Private to node.
 *
 * As in the papers, the neighbours tell each other through the scratchpads who they are and what windows they have;
 * here also a digest of the job's shape, so that two hosts that disagree never exchange a frame.
 */
#ifndef QUOIT_NODE_START_H
#define QUOIT_NODE_START_H

#include "node/node.h"

/* Opens both ports, enables the links, sets windows and interrupt vectors, and waits until both neighbours did the
 * same. TIMEOUT names who did not come; INVALID: a neighbour of another shape or the wrong one. ports_out may be partly
 * open on failure; the caller closes what is not NULL. */
QUOIT_MUST_USE enum quoit_status quoit_node_start_links(const struct quoit_node_config *config,
                                                        struct quoit_port *ports_out[QUOIT_SIDE_COUNT]);

#endif
