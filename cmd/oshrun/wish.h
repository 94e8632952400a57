/* SPDX-License-Identifier: BSD-3-Clause */
/* wish.h - what a sleeping PE waits for: the object, its value, the value wanted, the holder of a lock. */
#ifndef OSHRUN_WISH_H
#define OSHRUN_WISH_H

#include "job.h"

/* " for flag == 1, which is 0", or "" if the PE has not published it. Reads hosts' memory, which outlives the PEs. */
void wish_describe(const struct job *job, uint32_t pe, char text_out[WISH_TEXT_BYTES]);

#endif
