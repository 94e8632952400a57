/* SPDX-License-Identifier: BSD-3-Clause */
/* ports.h - the ports of TCP at which processes of a job listen, as in --network-ports 50000-50100.
 *
 * Threads: any.
 */
#ifndef QUOIT_NET_PORTS_H
#define QUOIT_NET_PORTS_H

#include <stdbool.h>
#include <stdint.h>

struct sockaddr_storage;

#define QUOIT_PORTS_BYTES 16 /* of the text, with its zero */

/* Both are in it. low 0: any that the kernel chooses. */
struct quoit_ports {
    uint16_t low;
    uint16_t high;
};

/* "LOW-HIGH", or one; NULL, "": any. False: it is neither. */
bool quoit_ports_read(const char *text, struct quoit_ports *ports_out);
/* A socket that listens at the address, whose port is set, and does not block. -1, with errno; EADDRINUSE: none of the
 * ports is free. */
int quoit_ports_listen(struct sockaddr_storage *address, struct quoit_ports ports, int backlog);

#endif
