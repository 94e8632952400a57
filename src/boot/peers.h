/* SPDX-License-Identifier: BSD-3-Clause */
/* peers.h - what the head of another launcher's job knows of the hosts: which of them are ready, and which have passed
 * shmem_finalize (control.h). Pure.
 *
 * Threads: one at a time.
 */
#ifndef QUOIT_BOOT_PEERS_H
#define QUOIT_BOOT_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "boot/control.h"

struct quoit_peer;

struct quoit_peers {
    uint32_t host_count;
    uint32_t ready_count;
    uint32_t finalized_count;
    struct quoit_peer *list;
    bool has_left; /* a host has finalized, of whose PEs and others': */
    struct quoit_control_left left;
};

/* NO_MEMORY. */
QUOIT_MUST_USE enum quoit_status quoit_peers_open(struct quoit_peers *peers, uint32_t host_count);
void quoit_peers_close(struct quoit_peers *peers);
/* HOST_READY. True: this was the last one, and all may go. */
bool quoit_peers_ready(struct quoit_peers *peers, uint32_t host);
/* HOST_FINALIZED. True: this was the last one, and all may leave; until the next GO. */
bool quoit_peers_finalized(struct quoit_peers *peers, uint32_t host);
bool quoit_peers_has_finalized(const struct quoit_peers *peers, uint32_t host);
/* Whether the other hosts are to know it: nobody has left after fewer collectives since the last GO. */
bool quoit_peers_left(struct quoit_peers *peers, const struct quoit_control_left *left);

#endif
