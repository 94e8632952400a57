/* SPDX-License-Identifier: BSD-3-Clause */
/* address.h - addresses of sockets, and their form on the wire.
 *
 * Threads: any.
 */
#ifndef QUOIT_NET_ADDRESS_H
#define QUOIT_NET_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

struct sockaddr_storage;

/* An address as another host is told it. */
struct quoit_wire_address {
    uint16_t family; /* AF_INET, AF_INET6; 0: none */
    uint16_t port;   /* as struct sockaddr_in has it */
    uint32_t scope;  /* of IPv6, on the host that tells it */
    uint8_t bytes[16];
};

/* Of the sockaddr_in or sockaddr_in6 in it. */
uint32_t quoit_address_bytes(const struct sockaddr_storage *address);
/* None, if it is of another family. */
struct quoit_wire_address quoit_address_tell(const struct sockaddr_storage *address);
/* A scope becomes that of `own`, this host's address in the network that both share. False: it is no address. */
bool quoit_address_read(const struct quoit_wire_address *told, const struct sockaddr_storage *own,
                        struct sockaddr_storage *address_out);

#endif
