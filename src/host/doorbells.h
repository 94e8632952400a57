/* SPDX-License-Identifier: BSD-3-Clause */
/* doorbells.h - the meaning of each doorbell bit of a port. */
#ifndef QUOIT_HOST_DOORBELLS_H
#define QUOIT_HOST_DOORBELLS_H

#include <stdint.h>

/* One bit per lane, two for the papers' barrier; the rest wake PEs after direct puts. */
#define QUOIT_DOORBELL_LANE(lane)   (lane)
#define QUOIT_DOORBELL_BARRIER      8 /* start */
#define QUOIT_DOORBELL_BARRIER_END  9
#define QUOIT_DOORBELL_DIRECT       10
#define QUOIT_DOORBELL_ANSWER       10 /* protocol SCRATCHPAD, which has no direct puts: responses to transfers */
#define QUOIT_DOORBELL_DIRECT_COUNT 6
static inline uint32_t quoit_doorbell_of_pe(uint32_t local)
{
    return QUOIT_DOORBELL_DIRECT + local % QUOIT_DOORBELL_DIRECT_COUNT;
}

#endif
