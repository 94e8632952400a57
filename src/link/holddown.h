/* SPDX-License-Identifier: BSD-3-Clause */
/* holddown.h - holds down a link that flaps, so that the ring is not re-routed at each flap. Pure.
 *
 * Each outage costs the whole ring: every host learns of it and every source retransmits. A link with outages in quick
 * succession starves the job, though it is up most of the time, while a ring with one link down loses little. So each
 * outage adds one to the link's score, each QUOIT_FLAP_FORGIVE_NS subtracts one, and above QUOIT_FLAP_FREE the link is
 * held down: QUOIT_HOLD_FIRST_NS, twice as long for each further point, at most QUOIT_HOLD_MOST_NS. A link is never
 * held while another one is down: that would partition the ring.
 */
#ifndef QUOIT_LINK_HOLDDOWN_H
#define QUOIT_LINK_HOLDDOWN_H

#include <stdint.h>

#define QUOIT_FLAP_FREE       4
#define QUOIT_FLAP_MOST       16
#define QUOIT_FLAP_FORGIVE_NS 100000000u
#define QUOIT_HOLD_FIRST_NS   10000000u
#define QUOIT_HOLD_MOST_NS    4000000000u

/* All zero is a valid start. */
struct quoit_holddown {
    uint32_t score;
    uint64_t forgiven_ns; /* until when the score was reduced */
};

/* Records an outage. Returns how long the link is held down from now on; 0: not at all. */
uint64_t quoit_holddown_outage(struct quoit_holddown *holddown, uint64_t now_ns);

#endif
