/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/put_times.h"
#include "base/assert.h"

const char *quoit_put_step_name(enum quoit_put_step step)
{
    static const char *const names[QUOIT_PUT_STEP_COUNT] = {
        [QUOIT_PUT_SETUP] = "translation set-up", [QUOIT_PUT_BIT] = "waiting for an interrupt bit",
        [QUOIT_PUT_PAYLOAD] = "payload",          [QUOIT_PUT_SCRATCHPADS] = "scratchpads",
        [QUOIT_PUT_DOORBELL] = "doorbell",        [QUOIT_PUT_TURNAROUND] = "until the acknowledgement, in all",
    };
    quoit_assert(step < QUOIT_PUT_STEP_COUNT);
    return names[step];
}
