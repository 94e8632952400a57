/* SPDX-License-Identifier: BSD-3-Clause */
#include "link/holddown.h"

static void forgive(struct quoit_holddown *holddown, uint64_t now_ns)
{
    uint64_t points = (now_ns - holddown->forgiven_ns) / QUOIT_FLAP_FORGIVE_NS;
    if (holddown->score == 0 || points >= holddown->score) {
        holddown->score = 0;
        holddown->forgiven_ns = now_ns;
        return;
    }
    holddown->score -= (uint32_t)points;
    holddown->forgiven_ns += points * QUOIT_FLAP_FORGIVE_NS;
}

uint64_t quoit_holddown_outage(struct quoit_holddown *holddown, uint64_t now_ns)
{
    forgive(holddown, now_ns);
    if (holddown->score < QUOIT_FLAP_MOST)
        holddown->score++;
    if (holddown->score <= QUOIT_FLAP_FREE)
        return 0;
    uint64_t hold_ns = (uint64_t)QUOIT_HOLD_FIRST_NS << (holddown->score - QUOIT_FLAP_FREE - 1);
    return hold_ns < QUOIT_HOLD_MOST_NS ? hold_ns : QUOIT_HOLD_MOST_NS;
}
