/* SPDX-License-Identifier: BSD-3-Clause */
/* network.h - the lane engine of hosts that are joined by a network: frames in its messages, large payload by its puts
 * and gets. See docs/design/network.md.
 */
#ifndef QUOIT_PROXY_NETWORK_H
#define QUOIT_PROXY_NETWORK_H

#include "lane/lane.h"

#define QUOIT_NETWORK_FRAMED_BYTES 4096u /* payload of a put, or of a message between hosts, that a frame carries */

extern const struct quoit_lane_engine quoit_network_engine;

#endif
