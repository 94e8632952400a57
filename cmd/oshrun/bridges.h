/* SPDX-License-Identifier: BSD-3-Clause */
/* bridges.h - which part of the ports of a ring of bridges is free for a job.
 *
 * What it is: the kernel module divides each port of a machine into parts, /dev/ntb0, /dev/ntb0.1 and so on
 *   (kernel/uapi/quoit_ntb.h). The ring that stays uses one, each job another. Every job of a ring is on all its
 *   machines, so a part that is free on this one is free on all.
 */
#ifndef OSHRUN_BRIDGES_H
#define OSHRUN_BRIDGES_H

#include <stdbool.h>

#include "share/share.h"

#define BRIDGES_TEXT_BYTES    (2 * QUOIT_SHARE_DEVICE_BYTES + 16)
#define BRIDGES_PROBLEM_BYTES 320

/* The first free part, as the value of --bridges. False: there is none; problem_out says why. */
bool bridges_find(const struct quoit_share_config *ring, char text_out[BRIDGES_TEXT_BYTES],
                  char problem_out[BRIDGES_PROBLEM_BYTES]);

#endif
