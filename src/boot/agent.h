/* SPDX-License-Identifier: BSD-3-Clause */
/* agent.h - stands in for oshrun where another launcher started the PEs: a process of its own on each host (program.h),
 * `oshrun --host-agent` or a program of libshmem.a, which makes the memory, answers the messages of protocol.h, and
 * ends all PEs when one of them dies. When the job has several hosts, it starts the proxy of its own, which carries
 * what the agents send each other (control.h); the one of host 0 is the head.
 *
 * The lowest PE of a host starts it and hands over what it has learned from the exchange: START with two descriptors,
 * the socket on which it listens and a file with a struct quoit_agent_start. The PEs connect to that socket, which has
 * a random name in the abstract namespace. The agent accepts processes of the same user only. It closes the socket when
 * all PEs have connected.
 *
 * The agent ends PEs by the message END, so that each exits with the status of the one that failed. PEs that have not
 * connected are left to the launcher, which a PE asks to end them (abort of exchange.h). It ends when the processes of
 * all its PEs have ended.
 */
#ifndef QUOIT_BOOT_AGENT_H
#define QUOIT_BOOT_AGENT_H

#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"
#include "boot/boot.h"
#include "boot/hosts.h"
#include "net/devices.h"
#include "net/ports.h"
#include "boot/protocol.h"

#define QUOIT_AGENT_OPTION     "--host-agent"
#define QUOIT_AGENT_NAME_BYTES 40
#define QUOIT_AGENT_TEXT_BYTES 64

struct quoit_agent_pe {
    uint32_t rank;
    int32_t process; /* its pid, to detect one that ends before it has connected; 0: unknown */
};

/* What the agent must know of the job. */
struct quoit_agent_start {
    struct quoit_version version;
    uint32_t magic; /* QUOIT_BOOT_MAGIC */
    uint32_t host;  /* of this agent */
    uint32_t log_level;
    uint32_t has_loopback;
    int32_t launcher; /* as in struct quoit_exchange */
    uint32_t unused;
    uint64_t heap_bytes_asked;
    uint64_t link_timeout_ns;
    uint64_t network_limit_ns;
    char driver[QUOIT_AGENT_TEXT_BYTES]; /* as in struct quoit_boot_network */
    char provider[QUOIT_AGENT_TEXT_BYTES];
    char device[QUOIT_DEVICES_BYTES];
    char ports[QUOIT_PORTS_BYTES];
    struct quoit_hosts hosts;    /* without host_of_rank */
    struct quoit_agent_pe pes[]; /* of this host, the lowest first */
};

/* Of a PE. Threads: one at a time. */

/* Creates the socket. The name is published afterwards. Errors have been reported. */
QUOIT_MUST_USE enum quoit_status quoit_agent_listen(char name_out[QUOIT_AGENT_NAME_BYTES], int *listen_fd_out);
/* Starts the agent of the host of this PE, its lowest. processes: the pid of each rank, or 0. Closes listen_fd. The
 * socket to it goes to *fd_out, and serves as this PE's WATCH connection; its process, until it sends its own, to
 * *pid_out: a child, to be waited for once it has answered or ended. Errors have been reported. */
QUOIT_MUST_USE enum quoit_status quoit_agent_start(const struct quoit_boot *boot, const struct quoit_hosts *hosts,
                                                   const pid_t *processes, int listen_fd, int *fd_out, pid_t *pid_out);
/* Connects to the agent called `name`. GONE: it has ended; SYSTEM, reported: it is another user's. */
QUOIT_MUST_USE enum quoit_status quoit_agent_connect(const char *name, int *fd_out);

/* Of the agent: */

/* What quoit_agent_start sent, mapped for as long as the process lives, with the socket on which the PEs meet. NULL:
 * that PE has ended, or it was reported. */
const struct quoit_agent_start *quoit_agent_receive_start(int *listen_fd_out);
/* The agent, until it ends; the status to exit with. */
int quoit_agent_serve(void);

#endif
