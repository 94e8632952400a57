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

#include "net/places.h"

#define QUOIT_INTERFACES_MAX 64u

/* One address of an interface. */
struct quoit_interface {
    char text[INET6_ADDRSTRLEN];     /* the address; "": none */
    struct sockaddr_storage address; /* no port */
    struct quoit_net_place place;    /* not open */
};

/* Of those that are up: each has an entry for each of its addresses. Returns the count. */
uint32_t quoit_interfaces_list(struct quoit_interface interfaces_out[QUOIT_INTERFACES_MAX]);
/* The best address of a device, in a list. NULL: it is not in it. */
const struct quoit_interface *quoit_interface_best(const struct quoit_interface *interfaces, uint32_t count,
                                                   const char *name);
/* The same, of this machine as it is now. False: none of that name is up and has an address. */
bool quoit_interface_find(const char *name, struct quoit_interface *interface_out);
/* The places of this machine that a list of devices takes (net/devices.h; NULL: all), the best of them. Those on
 * `open_device` are open, and come first. The loopback device is no place, unless it is that one. */
void quoit_interfaces_places(const char *devices, const char *open_device, struct quoit_net_places *places_out);
/* Names the network stack of this process: others of the machine that share it get the same value. 0: unknown. */
uint64_t quoit_interfaces_stack(void);

#endif
