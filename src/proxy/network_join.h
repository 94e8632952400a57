/* SPDX-License-Identifier: BSD-3-Clause */
/* network_join.h - hosts that a network joins meet: each learns the others' addresses, keys and networks by the
 * exchange of who starts the proxies (lane/network.h), and connects to them. See docs/design/network.md.
 */
#ifndef QUOIT_PROXY_NETWORK_JOIN_H
#define QUOIT_PROXY_NETWORK_JOIN_H

#include "lane/lane.h"
#include "net/meeting.h"
#include "net/net.h"

/* What this host reaches of another one. */
struct quoit_network_reach {
    struct quoit_net_window *window;
    uint64_t segments; /* where its segments begin in the window */
};

/* A network whose driver opens one device may have opened another one than all hosts have in common. Then it is closed,
 * opened at that one, and joined again; the second exchange is the hosts' own (net/meeting.h). All hosts do so or none.
 */
struct quoit_network_retry {
    bool is_due;                           /* after a join that was OK: once more */
    bool is_second;                        /* it is this time */
    char device[QUOIT_ADDRESS_TEXT_BYTES]; /* to open; "": as configured */
    struct quoit_meeting meeting;          /* of host 0 */
    struct quoit_net_place own, host_0;    /* where they are called */
};

/* For the lane of an open network, which takes PE endpoints or does not. retry: {0} the first time; to be closed after
 * the last. reaches_out: [host], but not of this one. Sets how the lane and the PEs of this host wait, and leaves the
 * contacts to the PEs; says what is wrong. */
QUOIT_MUST_USE enum quoit_status quoit_network_join(struct quoit_lane *lane, struct quoit_net *net,
                                                    bool has_pe_endpoints, struct quoit_network_retry *retry,
                                                    struct quoit_network_reach *reaches_out);
void quoit_network_retry_close(struct quoit_network_retry *retry);

#endif
