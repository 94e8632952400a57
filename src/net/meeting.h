/* SPDX-License-Identifier: BSD-3-Clause */
/* meeting.h - a second exchange among the hosts of a job, over TCP, where the launcher's first one has shown each where
 * host 0 can be called: of drivers that must know their device before they have an address.
 *
 * Each host sends its bytes to host 0, which sends those of all to each. Who does not know the tag of the job is
 * dropped. All functions block.
 *
 * Threads: one at a time.
 */
#ifndef QUOIT_NET_MEETING_H
#define QUOIT_NET_MEETING_H

#include <stdbool.h>
#include <stdint.h>

#include "net/places.h"
#include "net/ports.h"

struct quoit_meeting {
    bool is_open;
    int listeners[QUOIT_NET_PLACES_MAX]; /* [place]; -1: none */
};

struct quoit_meeting_config {
    uint64_t tag;
    uint32_t host;
    uint32_t host_count;
    const struct quoit_net_place *host_0; /* where it is called */
    const char *device;                   /* by which this host calls it */
    uint64_t limit_ns;
};

/* Listens at all places of this host where that can be, and notes the ports in them. */
void quoit_meeting_open(struct quoit_meeting *meeting_out, struct quoit_net_places *places, struct quoit_ports ports);
/* Fills all_out with the bytes of hosts 0..H-1, `bytes` each. False: not all have come in time; why_out says what was
 * in the way, as far as it is known. */
#define QUOIT_MEETING_WHY_BYTES 256
bool quoit_meeting_exchange(const struct quoit_meeting *meeting, const struct quoit_meeting_config *config,
                            const void *own, uint32_t bytes, void *all_out, char why_out[QUOIT_MEETING_WHY_BYTES]);
/* One that is not open stays so. */
void quoit_meeting_close(struct quoit_meeting *meeting);

#endif
