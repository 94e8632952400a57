/* SPDX-License-Identifier: BSD-3-Clause */
/* start.h - the two ports of a host, and what neighbours tell each other through the scratchpads. Private to proxy.
 *
 * As in the papers, the neighbours tell each other who they are and what windows they have; here also a digest of the
 * job config, so that two hosts that disagree never exchange a frame, and how far they are in bringing up the link
 * (links.c). Scratchpads are wiped when a link goes down, so all of it is told again.
 */
#ifndef QUOIT_PROXY_START_H
#define QUOIT_PROXY_START_H

#include "proxy/proxy.h"

/* Opens both ports, sets interrupt vectors and enables the links. ports_out may be partly open on failure; the caller
 * closes what is not NULL. */
QUOIT_MUST_USE enum quoit_status quoit_proxy_open_ports(const struct quoit_proxy_config *config,
                                                        struct quoit_port *ports_out[QUOIT_SIDE_COUNT]);
/* Lets the neighbour write into the slots of this side and the segments of our PEs. */
QUOIT_MUST_USE enum quoit_status quoit_proxy_offer_windows(const struct quoit_layout *layout, enum quoit_side side,
                                                           struct quoit_port *port);
/* Tells the neighbour who we are, before the first word of quoit_proxy_tell_link(). */
void quoit_proxy_introduce(const struct quoit_layout *layout, struct quoit_port *port);
/* INVALID, with a line logged: the neighbour that has introduced itself is the wrong one or of another job config.
 * LINK_DOWN: the link has left `epoch`, so what was read may have been wiped in the middle and says nothing. */
QUOIT_MUST_USE enum quoit_status quoit_proxy_check_neighbour(const struct quoit_layout *layout, enum quoit_side side,
                                                             struct quoit_port *port, uint32_t epoch);
/* One word of ours for the neighbour, and the neighbour's last word; 0: none. */
void quoit_proxy_tell_link(struct quoit_port *port, uint32_t word);
uint32_t quoit_proxy_told_link(struct quoit_port *port);

#endif
