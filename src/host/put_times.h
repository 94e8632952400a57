/* SPDX-License-Identifier: BSD-3-Clause */
/* put_times.h - the steps in which the time of a put is counted, as RING-22 measures them. */
#ifndef QUOIT_HOST_PUT_TIMES_H
#define QUOIT_HOST_PUT_TIMES_H

/* Where the time of a put goes, as RING-22 measures it; the protocol SCRATCHPAD counts it. */
enum quoit_put_step {
    QUOIT_PUT_SETUP,       /* choosing the place in the window and translating to it */
    QUOIT_PUT_BIT,         /* waiting for a free interrupt bit and a free bypass buffer */
    QUOIT_PUT_PAYLOAD,     /* DMA or copy */
    QUOIT_PUT_SCRATCHPADS, /* waiting for them and writing them */
    QUOIT_PUT_DOORBELL,
    QUOIT_PUT_TURNAROUND, /* from the proxy's first sight of the put to its acknowledgement */
    QUOIT_PUT_STEP_COUNT
};
const char *quoit_put_step_name(enum quoit_put_step step);

#endif
