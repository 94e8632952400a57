/* SPDX-License-Identifier: BSD-3-Clause */
/* agent.h - what oshrun does for the PEs of a host, done by a thread of its lowest PE where another launcher started
 * them: makes the memory, answers the messages of protocol.h, and ends all PEs when one of them dies.
 *
 * The PEs connect to a socket with a random name in the abstract namespace, which they learn through the exchange. Only
 * processes of the same user are listened to. The name is gone when all have come, or when the process of the agent
 * ends.
 *
 * The agent ends PEs by END, so that each exits with the status of the one that failed; whom that does not reach is
 * left to the launcher (abort of exchange.h).
 */
#ifndef QUOIT_BOOT_AGENT_H
#define QUOIT_BOOT_AGENT_H

#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"
#include "boot/exchange.h"

#define QUOIT_AGENT_NAME_BYTES 64

/* Makes the socket, before its name is given to the others. Errors have been reported. */
QUOIT_MUST_USE enum quoit_status quoit_agent_listen(char name_out[QUOIT_AGENT_NAME_BYTES], int *listen_fd_out);
/* Starts the agent of exchange->size PEs, which takes listen_fd over. processes: the number of each, 0 if it is not
 * known, to notice one that ends before it has come. heap_bytes_asked: as in struct quoit_boot. Errors
 * have been reported. */
QUOIT_MUST_USE enum quoit_status quoit_agent_start(const struct quoit_exchange *exchange, int listen_fd,
                                                   const pid_t *processes, uint64_t heap_bytes_asked);
/* Connects to the agent called `name`. GONE: it has ended; SYSTEM, reported: it is another user's. */
QUOIT_MUST_USE enum quoit_status quoit_agent_connect(const char *name, int *fd_out);

#endif
