/* SPDX-License-Identifier: BSD-3-Clause */
/* network.h - hosts that are joined by a network (--network, --rings): how their proxies find each other. */
#ifndef OSHRUN_NETWORK_H
#define OSHRUN_NETWORK_H

#include "job.h"
#include "lane/network.h"

struct network_board; /* shared by the proxies of the job on this machine, and their oshrun */

bool network_is_used(const struct job *job);
/* Whether there are no links beside it. Proxies are started before the PEs then, and wait for what they serve. */
bool network_is_alone(const struct job *job);
/* Before the first proxy is forked; the tag is chance. False: reported. */
bool network_open(struct job *job);
uint64_t network_tag(const struct job *job);
/* Of an agent: the tag that the head drew. */
void network_take_tag(struct job *job, uint64_t tag);
/* Of a proxy: loads the library that it will need. */
void network_load(const struct job *job);
/* For hosts of several machines: what this host's proxy wrote, and what all did. */
const void *network_contact(const struct job *job, uint32_t host);
void network_take_contacts(struct job *job, const void *contacts);
/* Of the head. True: this was the last one. */
bool network_add_contact(struct job *job, uint32_t host, const void *contact);

/* How the proxy of a host joins the others. on_lost and arg are the proxy's; the rest is filled in. */
struct network_seat {
    struct network_board *board;
    uint32_t host;
    uint32_t host_count;
    uint64_t timeout_ns;
    struct quoit_lane_network config;
};
void network_sit_down(const struct job *job, uint32_t host, struct network_seat *seat_out);
/* For config.exchange, in two parts. */
void network_offer(const struct network_seat *seat, const void *own, uint32_t bytes);
bool network_gather(const struct network_seat *seat, uint32_t bytes, void *all_out);

#endif
