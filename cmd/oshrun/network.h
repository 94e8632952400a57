/* SPDX-License-Identifier: BSD-3-Clause */
/* network.h - hosts that are joined by a network (--network, --rings): how their proxies find each other.
 *
 * Each proxy sends its contact to the oshrun of its machine. Once those of all hosts are there, oshrun writes them to
 * the board (boot/board.h), and notifies the proxies.
 */
#ifndef OSHRUN_NETWORK_H
#define OSHRUN_NETWORK_H

#include "boot/board.h"
#include "boot/proxy_process.h"
#include "job.h"

struct network_board;

bool network_is_used(const struct job *job);
/* Whether there are no links beside it. */
bool network_is_alone(const struct job *job);
/* Before the first START; the tag is chance. False: reported. */
bool network_open(struct job *job);
/* What is there of the proxies of this machine; on the head: of all hosts. */
struct quoit_board *network_board(const struct job *job);
uint64_t network_tag(const struct job *job);
/* Of an agent: the tag that the head drew. */
void network_take_tag(struct job *job, uint64_t tag);
/* The network's part of LOAD and of START. */
void network_describe_load(const struct job *job, struct quoit_proxy_message *message_out);
void network_describe(const struct job *job, struct quoit_proxy_message *start);

#endif
