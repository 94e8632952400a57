/* SPDX-License-Identifier: BSD-3-Clause */
/* put_times.h - the steps of a put whose times are summed, as RING-22 measures them. */
#ifndef QUOIT_HOST_PUT_TIMES_H
#define QUOIT_HOST_PUT_TIMES_H

/* Steps of a put, as RING-22 measures them; only the protocol SCRATCHPAD counts them. */
enum quoit_put_step {
    QUOIT_PUT_SETUP,       /* choosing the place in the window and setting its translation */
    QUOIT_PUT_BIT,         /* waiting for a free interrupt bit and a free bypass buffer */
    QUOIT_PUT_PAYLOAD,     /* DMA or copy */
    QUOIT_PUT_SCRATCHPADS, /* waiting for them and writing them */
    QUOIT_PUT_DOORBELL,
    QUOIT_PUT_TURNAROUND, /* from the proxy's first sight of the put to its acknowledgement */
    QUOIT_PUT_STEP_COUNT
};
const char *quoit_put_step_name(enum quoit_put_step step);

#endif
