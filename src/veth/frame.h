/* SPDX-License-Identifier: BSD-3-Clause */
/* frame.h - an Ethernet frame in a slot, and the host that a MAC address belongs to. Pure.
 *
 * A slot carries a header, the virtio_net_hdr of the TAP device (checksum and segmentation offload), and the Ethernet
 * frame. Unicast takes the shorter direction; a broadcast goes once around the ring, or in both directions up to a dead
 * link. Frames may be lost with a link, as on any Ethernet; they are not retransmitted.
 */
#ifndef QUOIT_VETH_FRAME_H
#define QUOIT_VETH_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#define QUOIT_VETH_ALL       0xffffu /* as dest: every host but the source */
#define QUOIT_VETH_HOSTS_MAX 1024u
#define QUOIT_MAC_BYTES      6
#define QUOIT_VNET_BYTES     10u /* of struct virtio_net_hdr */
#define QUOIT_ETHERNET_BYTES 14u
#define QUOIT_VETH_MTU_MAX   65000u

#define QUOIT_VETH_CHANNELS_MAX 8 /* of a device, as queues of the TAP device */

enum quoit_veth_kind {
    QUOIT_VETH_ETHERNET,
    QUOIT_VETH_TOPOLOGY, /* one word per link: see topology.h */
    QUOIT_VETH_KIND_COUNT
};

struct quoit_veth_header {
    uint8_t kind;      /* enum quoit_veth_kind */
    uint8_t is_turned; /* it met a dead link and travels in the other direction */
    uint16_t hops;     /* hosts that it may still reach, the receiver included */
    uint16_t source;   /* host */
    uint16_t dest;     /* host, or QUOIT_VETH_ALL */
    uint32_t bytes;    /* behind the header */
    uint32_t unused;
};
_Static_assert(sizeof(struct quoit_veth_header) == 16, "crosses links");

/* Whether a header from a neighbour is valid: a known kind, hosts of the ring, a length that a slot holds. */
bool quoit_veth_header_is_valid(const struct quoit_veth_header *header, uint32_t host_count);

/* The address of a host's device: locally administered, from the ring's 24-bit number and the host's. */
void quoit_veth_mac(uint32_t ring, uint32_t host, uint8_t mac_out[QUOIT_MAC_BYTES]);

/* Other addresses (of bridges, containers) are learned from the source addresses of frames, as in a switch.
 * Threads: one learner and any number of readers. A zeroed table is valid. */
#define QUOIT_VETH_MACS 256
struct quoit_veth_macs {
    uint32_t ring;
    uint32_t host_count;
    _Atomic uint64_t learned[QUOIT_VETH_MACS]; /* address << 16 | host + 1; 0: none */
};
void quoit_veth_learn(struct quoit_veth_macs *macs, const uint8_t mac[QUOIT_MAC_BYTES], uint32_t host);
/* The host of an address; QUOIT_VETH_ALL: broadcast, multicast, or unknown; host_count: an address of this ring that no
 * host has. */
uint32_t quoit_veth_host_of(const struct quoit_veth_macs *macs, const uint8_t mac[QUOIT_MAC_BYTES]);

#endif
