/* SPDX-License-Identifier: BSD-3-Clause */
/* places.h - where the hosts of a job can be called, and the one rule by which all of them choose where they are.
 *
 * Each host lists its places, addresses of its network interfaces. All hosts get the lists of all, and each finds the
 * same by itself: quoit_net_places_choose() looks at nothing else. See docs/design/network.md.
 *
 * Threads: any.
 */
#ifndef QUOIT_NET_PLACES_H
#define QUOIT_NET_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/address.h"

#define QUOIT_NET_PLACES_MAX         8u
#define QUOIT_NET_PLACE_DEVICE_BYTES 16

/* Best first. FABRIC: IP over InfiniBand or Omni-Path. VIRTUAL: a bridge of containers, a tunnel, half of a pair:
 * others may not be behind it. */
enum quoit_net_place_kind {
    QUOIT_NET_PLACE_FABRIC,
    QUOIT_NET_PLACE_ETHERNET,
    QUOIT_NET_PLACE_VIRTUAL,
    QUOIT_NET_PLACE_LOOPBACK
};

struct quoit_net_place {
    struct quoit_wire_address address; /* of no family: there is no place; port 0: not known */
    char device[QUOIT_NET_PLACE_DEVICE_BYTES];
    uint16_t speed;      /* in 100 Mbit/s; 0: not known */
    uint8_t prefix_bits; /* of the address that its subnet has */
    uint8_t kind;        /* enum quoit_net_place_kind */
    uint8_t is_ssh;      /* the connection of ssh by which this host was reached came here */
    uint8_t is_open;     /* the host can be called here; else it could be, by another --network-device */
    uint8_t zero[2];
};

/* Of a host. */
struct quoit_net_places {
    uint64_t stack; /* names its network stack: equal of hosts that share one; 0: unknown */
    struct quoit_net_place list[QUOIT_NET_PLACES_MAX]; /* best first; behind the last, of no family */
};
_Static_assert(sizeof(struct quoit_net_places) == 8 + QUOIT_NET_PLACES_MAX * 48, "no padding crosses the network");

enum quoit_net_places_verdict {
    QUOIT_NET_PLACES_CHOSEN,
    QUOIT_NET_PLACES_NONE,     /* the first host has no place */
    QUOIT_NET_PLACES_LOOPBACK, /* the first host has the loopback device alone, the second is elsewhere */
    QUOIT_NET_PLACES_SAME,     /* both have one address, and it is all that would join the hosts */
    QUOIT_NET_PLACES_APART,    /* both have no kind of address in common */
    QUOIT_NET_PLACES_NO_MEMORY
};

/* What two hosts do not agree on. */
struct quoit_net_places_trouble {
    uint32_t hosts[2];
    const struct quoit_net_place *place; /* of the second one; NULL: none */
};

/* Chooses one place of each host: taken_out[host] is its index. hosts: [host_count] lists. open_only: of places that
 * are open. */
enum quoit_net_places_verdict quoit_net_places_choose(const struct quoit_net_places *const *hosts, uint32_t host_count,
                                                      bool open_only, uint8_t *taken_out,
                                                      struct quoit_net_places_trouble *trouble_out);
/* Whether any host has one that is open. */
bool quoit_net_places_any_open(const struct quoit_net_places *const *hosts, uint32_t host_count);
/* Smaller is better, of places of one host: link-local addresses and the loopback device last, fabrics before Ethernet
 * and that before what is virtual, then by speed, then what ssh used, IPv4 before IPv6. Less than
 * QUOIT_NET_PLACE_COSTS. */
uint64_t quoit_net_place_cost(const struct quoit_net_place *place);
#define QUOIT_NET_PLACE_COSTS (UINT64_C(1) << 32)
/* "eth0 10.1.0.4/16"; with its port, if it has one: "eth0 10.1.0.4/16 port 50000". Returns text_out. */
#define QUOIT_NET_PLACE_TEXT_BYTES 96
const char *quoit_net_place_print(const struct quoit_net_place *place, char text_out[QUOIT_NET_PLACE_TEXT_BYTES]);
/* Of a host, between commas, as far as they fit; "no device", if there is none. Returns text_out. */
const char *quoit_net_places_print(const struct quoit_net_places *places, char *text_out, size_t bytes);

#endif
