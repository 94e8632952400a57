/* SPDX-License-Identifier: BSD-3-Clause */
/* turn.h - what the files of this folder share: this process's place at the clock. */
#ifndef QUOIT_VIRTUAL_TURN_H
#define QUOIT_VIRTUAL_TURN_H

#include "virtual/clock.h"

struct quoit_virtual_self {
    struct quoit_virtual *clock; /* NULL: there is none */
    uint32_t pe;                 /* QUOIT_VIRTUAL_PES_MAX: this process has not joined, or has left */
};

extern struct quoit_virtual_self quoit_virtual_self;

/* With the lock: gives the turn to whose it is now, and returns when it is this PE's again. */
void quoit_virtual_pass(struct quoit_virtual *clock);

/* primitives.c. Makes this process use the clock, for the calling thread; undoes it. */
void quoit_virtual_attach(void);
void quoit_virtual_detach(void);

#endif
