/* SPDX-License-Identifier: BSD-3-Clause */
/* network_join.h - hosts that a network joins meet: each learns the others' addresses, keys and networks by the
 * exchange of who starts the proxies (lane/network.h), and connects to them. See docs/design/network.md.
 */
#ifndef QUOIT_PROXY_NETWORK_JOIN_H
#define QUOIT_PROXY_NETWORK_JOIN_H

#include "lane/lane.h"
#include "net/net.h"

/* What this host reaches of another one. */
struct quoit_network_reach {
    struct quoit_net_window *window;
    uint64_t segments; /* where its segments begin in the window */
};

/* For the lane of an open network, which takes guests or does not. reaches_out: [host], but not of this one. Sets how
 * the lane and the PEs of this host wait, and leaves the contacts to the PEs; says what is wrong. */
QUOIT_MUST_USE enum quoit_status quoit_network_join(struct quoit_lane *lane, struct quoit_net *net, bool has_guests,
                                                    struct quoit_network_reach *reaches_out);

#endif
