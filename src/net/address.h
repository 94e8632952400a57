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
/* scope: of IPv6, this host's device in the network that both share, in place of the other host's. False: it is no
 * address. */
bool quoit_address_read(const struct quoit_wire_address *told, uint32_t scope, struct sockaddr_storage *address_out);

/* As text, without port and scope; "": none. Of QUOIT_ADDRESS_TEXT_BYTES. */
#define QUOIT_ADDRESS_TEXT_BYTES 46
void quoit_address_print(const struct quoit_wire_address *address, char text_out[QUOIT_ADDRESS_TEXT_BYTES]);
/* False: the text is none, and address_out has no family. */
bool quoit_address_parse(const char *text, struct quoit_wire_address *address_out);
/* Bits of an address of its family. */
uint32_t quoit_address_bits(const struct quoit_wire_address *address);
/* Whether both are of one family, and begin with the same `bits`. */
bool quoit_address_agrees(const struct quoit_wire_address *a, const struct quoit_wire_address *b, uint32_t bits);
bool quoit_address_is_loopback(const struct quoit_wire_address *address);
bool quoit_address_is_link_local(const struct quoit_wire_address *address);

#endif
