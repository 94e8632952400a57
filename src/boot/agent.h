/* SPDX-License-Identifier: BSD-3-Clause */
/* agent.h - stands in for oshrun where another launcher started the PEs: a thread of the lowest PE of a host, which
 * makes the memory, answers the messages of protocol.h, and ends all PEs when one of them dies. When the job has
 * several hosts, it starts the proxy of its own, through which the agents speak with each other (proxy_process.h).
 *
 * The PEs connect to a socket with a random name in the abstract namespace, which they learn through the exchange. The
 * agent accepts processes of the same user only. It closes the socket when all PEs have connected.
 *
 * The agent ends PEs by the message END, so that each exits with the status of the one that failed. PEs that END does
 * not reach are left to the launcher (abort of exchange.h).
 */
#ifndef QUOIT_BOOT_AGENT_H
#define QUOIT_BOOT_AGENT_H

#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"
#include "boot/boot.h"
#include "boot/exchange.h"
#include "boot/hosts.h"

#define QUOIT_AGENT_NAME_BYTES 40

/* Creates the socket. The name is published afterwards. Errors have been reported. */
QUOIT_MUST_USE enum quoit_status quoit_agent_listen(char name_out[QUOIT_AGENT_NAME_BYTES], int *listen_fd_out);
struct quoit_agent_config {
    const struct quoit_boot *boot; /* exchange, heap_bytes_asked, network; valid until the agent has sent LAYOUT */
    const struct quoit_hosts *hosts;
    uint32_t host;          /* of this agent */
    const pid_t *processes; /* of each rank: its pid, to detect one that ends before it has connected; 0: unknown */
    int listen_fd;          /* the agent's from now on */
};
/* Starts the agent of the PEs of one host. Takes `hosts` over. Errors have been reported. */
QUOIT_MUST_USE enum quoit_status quoit_agent_start(const struct quoit_agent_config *config);
/* Connects to the agent called `name`. GONE: it has ended; SYSTEM, reported: it is another user's. */
QUOIT_MUST_USE enum quoit_status quoit_agent_connect(const char *name, int *fd_out);

#endif
