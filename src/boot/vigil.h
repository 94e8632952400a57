/* SPDX-License-Identifier: BSD-3-Clause */
/* vigil.h - detects, from the records of the PEs of a host, that a PE left the job while others wait for it. For jobs
 * without oshrun, which detects it from messages.
 */
#ifndef QUOIT_BOOT_VIGIL_H
#define QUOIT_BOOT_VIGIL_H

#include <stdint.h>

#include "boot/boot.h"
#include "boot/still.h"

struct quoit_vigil {
    const struct quoit_boot *host; /* layout, and the memory as far as the records */
    uint64_t digest;               /* of what still.h says of the PEs; 0: some PE is at work */
    struct quoit_still *pes;       /* [local_count], zero at first; of who watches */
    uint64_t since_ns;
    uint64_t next_ns;
    uint64_t is_told;
};

enum quoit_vigil_verdict {
    QUOIT_VIGIL_FINE,
    QUOIT_VIGIL_LEFT, /* reported: a PE has finalized while others were elsewhere, or with a lock for which one waits */
};

/* Checks, at most about once a second. */
enum quoit_vigil_verdict quoit_vigil_step(struct quoit_vigil *vigil, uint64_t now_ns);

#endif
