/* SPDX-License-Identifier: BSD-3-Clause */
/* proxy.h - the process of a proxy that oshrun started (boot/proxy_process.h). */
#ifndef QUOIT_SERVE_PROXY_H
#define QUOIT_SERVE_PROXY_H

#include <stdint.h>

#include "boot/proxy_process.h"

/* What a START says of the network; exchange, on_lost and arg are the caller's. The texts are those of the message. */
struct quoit_lane_network quoit_serve_network(struct quoit_proxy_message *start);
/* Serves the host of a START until the job ends. fds: what came with it. The exit status. */
int quoit_serve_proxy(struct quoit_proxy_message *start, const int *fds, uint32_t fd_count);

#endif
