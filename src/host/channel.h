/* SPDX-License-Identifier: BSD-3-Clause */
/* channel.h - the queues between one PE and one lane: requests to the proxy, completions back. */
#ifndef QUOIT_HOST_CHANNEL_H
#define QUOIT_HOST_CHANNEL_H

#include <stdatomic.h>
#include <stdint.h>

#include "wire/frame.h"

#define QUOIT_REQUESTS_A_CHANNEL 64 /* outstanding from one PE on one lane; a power of two */

#define QUOIT_REQUEST_IS_TAKEN 0x80000000u /* in many_bytes */

/* A PE's request for another host. The PE writes it before its index enters the submission queue; the proxy checks
 * every field. The proxy writes `result` before the index enters the completion queue. */
struct quoit_request {
    struct quoit_frame frame; /* kind, op, size, dest_host, dest_pe, bytes, offset, operands */
    uint64_t data_offset;     /* memory offset of the payload, or of the buffer for the response: in this PE's staging
                               * chunk or symmetric segment */
    uint64_t result;          /* VALUE: the old value */
    uint32_t spread;
    /* PUT_MANY: bytes of the payload so far. Writer: the PE, which appends by compare-and-swap (release), until the
     * proxy takes the request by setting IS_TAKEN (acquire). */
    _Atomic uint32_t many_bytes;
    uint32_t unused[10];
};
_Static_assert(sizeof(struct quoit_request) == 128, "two cache lines");

/* Between one PE and one lane. Both queues hold request indices and have an entry per request, so they are never full.
 */
struct quoit_channel {
    _Atomic uint32_t submit_tail; /* writer: the PE. release; pairs with acquire in the proxy */
    uint32_t unused0[15];
    _Atomic uint32_t complete_tail; /* writer: the proxy. release; pairs with acquire in the PE */
    uint32_t unused1[15];
    uint16_t submit[QUOIT_REQUESTS_A_CHANNEL];
    uint16_t complete[QUOIT_REQUESTS_A_CHANNEL];
    struct quoit_request requests[QUOIT_REQUESTS_A_CHANNEL];
};

#endif
