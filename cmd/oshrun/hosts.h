/* SPDX-License-Identifier: BSD-3-Clause */
/* hosts.h - the memories and links of the hosts, and their proxies. */
#ifndef OSHRUN_HOSTS_H
#define OSHRUN_HOSTS_H

#include "job.h"

/* Creates memories and links and starts the proxies. False: an error was reported; the job must end. */
bool hosts_start(struct job *job, uint64_t data_bytes);
/* Asks the proxies to stop. */
void hosts_stop(struct job *job);
void hosts_kill(struct job *job);
bool hosts_are_gone(const struct job *job);
/* The host whose proxy reports two links down for too long; NULL: none. job->dead_links has the links. */
const struct host *hosts_cut_off(const struct job *job);
/* The endpoint with which a process of `host` opens its port of `side`. */
enum quoit_status hosts_describe(const struct job *job, uint32_t host, enum quoit_side side,
                                 struct quoit_port_endpoint *endpoint_out);
uint32_t hosts_neighbour(const struct job *job, uint32_t host, enum quoit_side side);
/* NULL before the layout. */
struct quoit_pe_shared *hosts_pe_shared(const struct job *job, uint32_t pe);

#endif
