/* SPDX-License-Identifier: BSD-3-Clause */
/* interfaces.h - the network interfaces of this machine, as the kernel tells them.
 *
 * Threads: any.
 */
#ifndef QUOIT_NET_INTERFACES_H
#define QUOIT_NET_INTERFACES_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define QUOIT_INTERFACES_MAX 64u

struct quoit_interface {
    char name[IF_NAMESIZE];
    char text[INET6_ADDRSTRLEN];     /* the address; "": none */
    struct sockaddr_storage address; /* of IPv4 if there is one; no port */
    bool is_loopback;
    /* Of quoit_interface_look(): */
    bool is_virtual; /* a bridge of containers, a tunnel, half of a pair: others may not be behind it */
    uint16_t speed;  /* in 100 Mbit/s; 0: not known */
};

/* Those that are up and have an address. Returns the count. */
uint32_t quoit_interfaces_list(struct quoit_interface interfaces_out[QUOIT_INTERFACES_MAX]);
/* False: none of that name is up and has an address. */
bool quoit_interface_find(const char *name, struct quoit_interface *interface_out);
/* Whether a user who names a device, by its name or address, means this one. */
bool quoit_interface_is(const struct quoit_interface *interface, const char *device);
/* Two looks into /sys, for who has to choose. */
void quoit_interface_look(struct quoit_interface *interface);
/* Smaller is better: other machines before this one alone, IPv4 before IPv6, adapters before what is virtual, then by
 * speed. Less than QUOIT_INTERFACE_COSTS. */
uint32_t quoit_interface_cost(const struct quoit_interface *interface);
#define QUOIT_INTERFACE_COSTS (1u << 19)

#endif
