/* SPDX-License-Identifier: BSD-3-Clause */
/* network_sleep.h - wakes a lane that sleeps on its park when the network has something for it.
 *
 * A lane sleeps for its PEs on a futex, and a network speaks by a descriptor. A thread beside the lane polls the
 * descriptor while the lane sleeps, and wakes its park. The thread calls nothing of the network.
 *
 * Threads: all functions belong to the lane's thread.
 */
#ifndef QUOIT_PROXY_NETWORK_SLEEP_H
#define QUOIT_PROXY_NETWORK_SLEEP_H

#include "env/park.h"
#include "net/net.h"

struct quoit_network_sleep;

QUOIT_MUST_USE enum quoit_status quoit_network_sleep_open(struct quoit_net *net, struct quoit_park *park,
                                                          struct quoit_network_sleep **sleep_out);
/* Before the net is closed. NULL is allowed. */
void quoit_network_sleep_close(struct quoit_network_sleep *sleep);
/* The lane has announced that it sleeps: whatever arrives from now on, or the time of the next heartbeat, wakes it. */
void quoit_network_sleep_arm(struct quoit_network_sleep *sleep);

#endif
