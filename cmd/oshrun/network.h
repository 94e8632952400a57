/* SPDX-License-Identifier: BSD-3-Clause */
/* network.h - hosts that are joined by a network (--network): how their proxies find each other. */
#ifndef OSHRUN_NETWORK_H
#define OSHRUN_NETWORK_H

#include "job.h"
#include "lane/network.h"

struct network_board; /* shared by the proxies of the job, on this machine */

bool network_is_used(const struct job *job);
/* Before the first proxy is forked. False: reported. */
bool network_open(struct job *job);

/* How the proxy of a host joins the others. on_lost and arg are the proxy's; the rest is filled in. */
struct network_seat {
    struct network_board *board;
    uint32_t host;
    uint32_t host_count;
    uint64_t timeout_ns;
    struct quoit_lane_network config;
};
void network_sit_down(const struct job *job, uint32_t host, struct network_seat *seat_out);
/* For config.exchange. */
bool network_exchange(const struct network_seat *seat, const void *own, uint32_t bytes, void *all_out);

#endif
