/* SPDX-License-Identifier: BSD-3-Clause */
/* proxy.h - the process of a proxy that oshrun started (boot/proxy_process.h). */
#ifndef QUOIT_SERVE_PROXY_H
#define QUOIT_SERVE_PROXY_H

#include <stdint.h>

#include "boot/proxy_process.h"

/* What a START says of the network; its functions and arg are the caller's. The texts are those of the
 * message. */
struct quoit_lane_network quoit_serve_network(struct quoit_proxy_message *start);
/* Of the proxy of host `by`, as on_silence has it. Lost rather than waited for while who started the proxy is stopped.
 */
void quoit_serve_silence(uint32_t by, uint32_t host, enum quoit_net_silence silence, uint64_t silent_ns,
                         uint64_t dark_ns);
/* Serves the host of a START until the job ends. fds: what came with it. The exit status. */
int quoit_serve_proxy(struct quoit_proxy_message *start, const int *fds, uint32_t fd_count);

#endif
