/* SPDX-License-Identifier: BSD-3-Clause */
/* tap.h - the network device of a host: a TAP device in the network namespace of the caller.
 *
 * A frame is read and written as a whole, with a struct virtio_net_hdr in front. TCP segments of up to 64 KiB are not
 * cut, and checksums are left out until a frame leaves the ring. Threads: any. Errors: SYSTEM, with errno and a message
 * for the user.
 */
#ifndef QUOIT_VETH_TAP_H
#define QUOIT_VETH_TAP_H

#include "veth/frame.h"

#include "base/status.h"

struct quoit_tap_config {
    const char *name; /* of the device, at most 15 characters */
    uint8_t mac[QUOIT_MAC_BYTES];
    uint32_t mtu;         /* 68 to QUOIT_VETH_MTU_MAX */
    uint32_t address;     /* IPv4, host byte order; 0: none */
    uint32_t prefix;      /* bits of the network */
    bool has_offload;     /* false: frames of at most the MTU, with checksums */
    uint32_t queue_count; /* 1 to QUOIT_VETH_CHANNELS_MAX; the kernel gives all frames of a flow to one queue */
};

/* Creates and configures the device. It exists until the descriptors of its queues, which do not block, are closed. */
QUOIT_MUST_USE enum quoit_status quoit_tap_open(const struct quoit_tap_config *config,
                                                int fds_out[QUOIT_VETH_CHANNELS_MAX]);
/* Sets the carrier that the kernel and routing daemons see. No effect on other kinds of descriptors. */
void quoit_tap_set_carrier(int fd, bool has_carrier);
/* Brings a device of this name up, such as "lo". */
QUOIT_MUST_USE enum quoit_status quoit_tap_set_up(const char *name);

#endif
